#!/usr/bin/env python3
"""What recording costs on a CUDA card: all variants, interleaved, as one table.

    compare.py --bench build/bin/llama-bench --agent libggprof_agent.so \\
        --model 1b.gguf --out DIRECTORY [--seconds 20] [--rounds 3] [--prompt 2048]

Each variant generates tokens for about SECONDS, after as many prompts; those that --long does
not name take an eighth of that. The order turns from round to round. Recordings of the first
round stay in DIRECTORY.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

# Name, level of the agent (None: not loaded, "": loaded and idle), further environment.
VARIANTS = [
    ("unprofiled", None, {}),
    ("agent idle", "", {}),
    ("off", "off", {}),
    ("sample", "sample", {}),
    ("graph", "graph", {}),
    ("full", "full", {}),
    ("full, 512", "full", {"GGML_CUDA_GRAPH_CHUNK_SIZE": "512"}),
    ("graphs off", None, {"GGML_CUDA_DISABLE_GRAPHS": "1"}),
]
TOKENS = 256


def run(options, level, environment, spool, work):
    env = dict(os.environ, **environment)
    for name in [name for name in env if name.startswith("GGPROF_")]:
        if name != "GGPROF_CUPTI":
            del env[name]
    if level is not None:
        env["LD_PRELOAD"] = str(options.agent)
    if level:
        env["GGPROF_SPOOL"] = str(spool)
        env["GGPROF_CUDA"] = level
    command = [options.bench, "-m", options.model, "-ngl", "99", "-o", "json", *work]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    if "ggprof:" in done.stderr:
        print([line for line in done.stderr.splitlines() if "ggprof:" in line])
    return [test["avg_ts"] for test in json.loads(done.stdout)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--agent", required=True, type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=2048)
    parser.add_argument("--long", default="unprofiled;sample")
    parser.add_argument("--variants", default=";".join(name for name, _, _ in VARIANTS))
    options = parser.parse_args()
    options.agent = options.agent.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = options.variants.split(";")
    variants = [variant for variant in VARIANTS if variant[0] in wanted]

    def work(repeats):
        return ["-p", str(options.prompt), "-n", str(TOKENS), "-r", str(repeats)]

    rate = run(options, None, {}, None, work(2))[-1]

    def repeats(name):
        seconds = options.seconds if name in options.long.split(";") else options.seconds / 8
        return max(2, round(seconds * rate / TOKENS))

    speeds = {name: ([], []) for name, _, _ in variants}
    for number in range(options.rounds):
        turn = number % len(variants)
        for name, level, environment in variants[turn:] + variants[:turn]:
            spool = options.out / f"{name}-{number}-%p.spool"
            prompt, tokens = run(options, level, environment, spool, work(repeats(name)))
            speeds[name][0].append(prompt)
            speeds[name][1].append(tokens)
            if number > 0 and level:
                for file in options.out.glob(f"{name}-{number}-*.spool"):
                    file.unlink()
    print(f"{options.model}: {TOKENS} tokens and prompts of {options.prompt}, repeated;")
    print(f"{options.rounds} rounds; median tokens/s (lowest-highest)")
    print(f"{'':14}{'repeats':>8}{'generation':>26}{'ratio':>8}{'prompt':>28}{'ratio':>8}")
    bases = [statistics.median(speeds[variants[0][0]][test]) for test in (0, 1)]
    for name, _, _ in variants:
        line = f"{name:14}{repeats(name):>8}"
        for test, width in ((1, 26), (0, 28)):
            values = speeds[name][test]
            middle = statistics.median(values)
            spread = f"{middle:.1f} ({min(values):.1f}-{max(values):.1f})"
            line += f"{spread:>{width}}{middle / bases[test]:>8.3f}"
        print(line)
    print(json.dumps({"model": options.model, "speeds": speeds}))


if __name__ == "__main__":
    main()
