#!/usr/bin/env python3
"""What recording costs on a machine with many cores: generation by the CPU, all variants
interleaved, as one table.

    threads.py --bench build/bin/llama-bench --ggprof ggprof --model 1b.gguf \\
        [--threads 4,8,16] [--seconds 180] [--variants unprofiled,idle,file]

No round begins after SECONDS. `ggprof` has its agent beside it. A run counts by the median of its
repetitions.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VARIANTS = {
    "unprofiled": None,
    "idle": None,
    "file": [],
    "ring": ["--max-size", "16MB"],
    "--threads": ["--threads"],
    "--no-sensors": ["--no-sensors"],
}


def run(options, threads, variant, directory):
    command = [options.bench, "-m", options.model, "-ngl", "0", "-p", "0", "-o", "json"]
    command += ["-n", str(options.tokens), "-r", str(options.repeats), "-t", str(threads)]
    if VARIANTS[variant] is not None:
        recording = ["--summary-to", "stderr", "-o", str(Path(directory, "r.ggprof"))]
        command = [options.ggprof, "run", *VARIANTS[variant], *recording, "--", *command]
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    if variant == "idle":
        agent = Path(options.ggprof).resolve().with_name("libggprof_agent.so")
        environment["LD_PRELOAD"] = str(agent)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return statistics.median(json.loads(done.stdout)[-1]["samples_ts"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--ggprof", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", default="4,8,16")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--variants", default="unprofiled,file,ring,--threads")
    options = parser.parse_args()
    counts = [int(count) for count in options.threads.split(",")]
    names, speeds = options.variants.split(","), {}
    began, rounds = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() - began < options.seconds:
            for count in counts:
                turn = rounds % len(names)
                for name in names[turn:] + names[:turn]:
                    speed = run(options, count, name, directory)
                    speeds.setdefault((count, name), []).append(speed)
            rounds += 1
    print(f"{options.model}: {rounds} rounds; tokens/s unprofiled, and median of the rounds' ratios")
    for count in counts:
        alone = speeds[count, "unprofiled"]
        line = f"{count:3} threads {statistics.median(alone):8.1f} ({min(alone):.1f}-{max(alone):.1f})"
        for name in names[1:]:
            ratios = [there / here for there, here in zip(speeds[count, name], alone)]
            quarters = statistics.quantiles(ratios, n=4)
            line += f"  {name} {quarters[1]:.3f} ({quarters[0]:.3f}-{quarters[2]:.3f})"
        print(line)


if __name__ == "__main__":
    main()
