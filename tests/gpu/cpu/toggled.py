#!/usr/bin/env python3
"""What recording costs with many threads, within one process: a recording is stopped and continued
while llama-bench generates, and the speeds of both kinds of stretches are compared, each with its
neighbours. What differs from one process to the next does not matter so.

    toggled.py --bench build/bin/llama-bench --ggprof ggprof --model 1b.gguf \\
        [--threads 16] [--stretches 40] [--seconds 1.0]
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

# Speeds right beside a change belong to neither kind.
MARGIN = 0.1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--ggprof", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--stretches", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        changes, ended, samples = run(options, Path(directory))
    report(options, changes, ended, samples)


def run(options, directory):
    """When recording was continued and stopped, when the program ended, and its repetitions."""
    command = [options.bench, "-m", options.model, "-ngl", "0", "-p", "0", "-o", "json"]
    command += ["-n", str(options.tokens), "-r", str(options.repeats), "-t", str(options.threads)]
    recording = ["--paused", "--no-sensors", "--summary-to", "stderr"]
    recording += ["--max-size", "64MB", "-o", str(directory / "r.ggprof")]
    command = [options.ggprof, "run", *recording, "--", *command]
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    with open(directory / "out", "w+") as out, open(directory / "err", "w+") as errors:
        program = subprocess.Popen(command, env=environment, stdout=out, stderr=errors)
        time.sleep(3)
        changes = []
        for stretch in range(options.stretches):
            if program.poll() is not None:
                break
            word = "stop" if stretch % 2 else "start"
            asked = time.monotonic()
            subprocess.run([options.ggprof, "ctl", word], capture_output=True, check=False)
            changes.append((word, asked, time.monotonic()))
            time.sleep(options.seconds)
        if program.wait() != 0:
            errors.seek(0)
            sys.exit(f"failed:\n{errors.read()[-2000:]}")
        ended = os.stat(directory / "out").st_mtime - time.time() + time.monotonic()
        out.seek(0)
        return changes, ended, json.load(out)[-1]["samples_ns"]


def report(options, changes, ended, samples):
    # The last repetition ends when the program prints its result.
    ends, end = [], ended
    for sample in reversed(samples):
        ends.append((end - sample / 1e9, end, sample))
        end -= sample / 1e9
    stretches = []
    for (word, _, begun), (_, until, _) in zip(changes, changes[1:]):
        inside = [ns for start, end, ns in ends if start > begun + MARGIN and end < until - MARGIN]
        if len(inside) >= 3:
            stretches.append((word, statistics.median(inside)))
    ratios = []
    for before, this, after in zip(stretches, stretches[1:], stretches[2:]):
        if before[0] == after[0] != this[0]:
            ratio = statistics.mean([before[1], after[1]]) / this[1]
            ratios.append(ratio if this[0] == "start" else 1 / ratio)
    quarters = statistics.quantiles(ratios, n=4)
    alone = statistics.median(ns for word, ns in stretches if word == "stop")
    print(
        f"{Path(options.model).stem}, {options.threads} threads, {len(stretches)} stretches: "
        f"{options.tokens / alone * 1e9:.1f} t/s unrecorded, recorded x {quarters[1]:.3f} "
        f"({quarters[0]:.3f} to {quarters[2]:.3f})"
    )


if __name__ == "__main__":
    main()
