#!/usr/bin/env python3
"""What sensors say of an NVIDIA card, beside nvidia-smi, and what reading them costs.

    sensors.py --bench build/bin/llama-bench --ggprof ggprof --model 1b.gguf --out DIRECTORY \\
        [--runs 3] [--rounds 12] [--repeats 8] [--seconds 300]

`ggprof` has its agent beside it. The first table is of RUNS recordings, each beside an nvidia-smi
that prints the card's power, clock and memory; both count from the recording's first event to its
last. The second one has the tokens per second of ROUNDS rounds in turns: without sensors, with them,
and without them once more, which shows the noise. No round begins after SECONDS. The recordings of
the first table stay in DIRECTORY, with a page of the first.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

PROMPT, TOKENS = 2048, 256
SMI = ["nvidia-smi", "--query-gpu=power.draw.instant,clocks.sm,memory.used"]
SMI += ["--format=csv,noheader,nounits", "-i", "0", "-lms", "50"]
VARIANTS = [("without", ["--no-sensors"]), ("with", []), ("again without", ["--no-sensors"])]


def record(options, words, file, repeats):
    """Runs llama-bench recorded: its median tokens per second of the prompt and of generation."""
    bench = [options.bench, "-m", options.model, "-ngl", "99", "-o", "json"]
    bench += ["-p", str(PROMPT), "-n", str(TOKENS), "-r", str(repeats)]
    command = [options.ggprof, "run", *words, "--summary-to", "stderr", "-o", str(file), "--"]
    done = subprocess.run(command + bench, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command + bench} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return [statistics.median(test["samples_ts"]) for test in json.loads(done.stdout)]


def asked(options, *words):
    """What `ggprof` prints, which is JSON."""
    return json.loads(subprocess.run([options.ggprof, *words], capture_output=True).stdout)


class Smi:
    """What nvidia-smi says, each with the time of day when it was said."""

    def __init__(self):
        self.said = []
        self.process = subprocess.Popen(SMI, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.said.append((time.time(), [float(word) for word in line.split(",")]))

    def end(self):
        self.process.terminate()
        self.process.wait()

    def between(self, start, end):
        """Power in W, clock in MHz and memory in MiB: a list of each."""
        return list(zip(*[values for at, values in self.said if start <= at <= end]))


def mean_over(sensor, start, end):
    """The mean of what a sensor of a recording said, each value until the next one."""
    times = sensor["times_ns"] + [end]
    pieces = [
        (max(0, min(until, end) - max(at, start)), value)
        for at, until, value in zip(times, times[1:], sensor["values"])
    ]
    return sum(ns * value for ns, value in pieces) / max(1, sum(ns for ns, _ in pieces))


def energy(options, number):
    """One line of the first table."""
    file = options.out / f"sensors-{number}.ggprof"
    smi = Smi()
    time.sleep(1)
    record(options, [], file, 3 * options.repeats)
    smi.end()
    report = asked(options, "report", str(file), "--format", "json")
    start, end = (report["when"][key] / 1e9 for key in ("start_unix_ns", "end_unix_ns"))
    power, clock, memory = smi.between(start, end)
    joules = statistics.mean(power) * (end - start)
    ours = next(row for row in report["energy"] if row["device"].startswith("GPU 0"))
    copy = options.out / "sensors.json"
    subprocess.run([options.ggprof, "convert", str(file), "-o", str(copy)], check=True)
    whole = json.loads(copy.read_text())
    copy.unlink()
    first = min(record["start_ns"] for record in whole["records"])
    last = first + (end - start) * 1e9
    sensors = {it["quantity"]: it for it in whole["ggprof"]["sensors"] if it["device"] == 0}
    own = mean_over(sensors["DevicePower"], first, last) / 1e6 * (end - start)
    inside = [
        sum(first <= at <= last for at in sensors[name]["times_ns"])
        for name in ("DevicePower", "DeviceClock", "DeviceMemory")
    ]
    most = max(sensors["DeviceMemory"]["values"]) / 2**20
    print(
        f"| {end - start:.1f} s | {ours['joules']:.0f} J by {ours['from']} | {own:.0f} J"
        f" | {joules:.0f} J ({len(power)}) | x {ours['joules'] / joules:.3f}"
        f" | {ours['clock_median_hz'] / 1e6:.0f}, {statistics.median(clock):.0f} MHz"
        f" | {most:.0f}, {max(memory):.0f} MiB | {', '.join(map(str, inside))} |",
        flush=True,
    )
    return file


def cost(options):
    """The second table."""
    speeds = {name: ([], []) for name, _ in VARIANTS}
    began, rounds = time.monotonic(), 0
    file = options.out / "cost.ggprof"
    while rounds < options.rounds and time.monotonic() - began < options.seconds:
        turn = rounds % len(VARIANTS)
        for name, words in VARIANTS[turn:] + VARIANTS[:turn]:
            for of_test, speed in zip(speeds[name], record(options, words, file, options.repeats)):
                of_test.append(speed)
            file.unlink()
        rounds += 1
    print(f"\nTokens per second, {rounds} rounds; medians, and ratios to `without` of the round")
    print("| sensors | generation | ratio | prompt | ratio |")
    print("| :--- | ---: | ---: | ---: | ---: |")
    for name, _ in VARIANTS:
        cells = []
        for test in (1, 0):
            here, base = speeds[name][test], speeds["without"][test]
            quarters = statistics.quantiles([a / b for a, b in zip(here, base)], n=4)
            spread = f"x {quarters[1]:.3f} ({quarters[0]:.3f} to {quarters[2]:.3f})"
            cells += [f"{statistics.median(here):.1f}", "" if name == "without" else spread]
        print(f"| {name} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--ggprof", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    # Loads kernels from the disk.
    record(options, [], options.out / "warm-up.ggprof", 1)
    print(f"{Path(options.model).stem}: prompts of {PROMPT} and {TOKENS} tokens")
    print("| time | energy | power x time | by nvidia-smi (readings) | ratio | clock, nvidia-smi's"
          " | memory, nvidia-smi's | readings of power, clock, memory |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    files = [energy(options, number) for number in range(options.runs)]
    page = str(options.out / "sensors.html")
    subprocess.run([options.ggprof, "convert", str(files[0]), "-o", page], check=True)
    cost(options)


if __name__ == "__main__":
    main()
