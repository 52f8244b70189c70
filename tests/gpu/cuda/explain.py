#!/usr/bin/env python3
"""What `ggprof explain` says of causes that are staged on a CUDA card, and what following it brings.

    explain.py BENCH GGPROF MODELS DIRECTORY [ROUNDS]

BENCH is llama-bench, GGPROF the command with its agent; MODELS has 1b-q4_0.gguf, 8b-q8_0.gguf and
experts-q4_0.gguf (make_model.py). Each program is recorded with its cause and with the advice followed,
in turns; the table has the medians. The recordings stay in DIRECTORY.
"""

import json
import os
import statistics
import subprocess
import sys

PROMPT = "-p 512 -n 0"
TOKENS = "-p 0 -n 128"
# Cause, model, phase, arguments of both, those of the cause, those of the advice, the rule.
CAUSES = [
    ("one layer too few", "8b-q8_0", "tg", TOKENS, "-ngl 32", "-ngl 33", "R1"),
    ("-ctk q5_1 -ctv q5_1", "8b-q8_0", "pp", f"{PROMPT} -ngl 99 -fa 1", "-ctk q5_1 -ctv q5_1", "", "R1"),
    ("-ot exps=CPU", "experts-q4_0", "tg", f"{TOKENS} -ngl 99", "-ot exps=CPU", "", "R1"),
    ("-ncmoe 8", "experts-q4_0", "tg", f"{TOKENS} -ngl 99", "-ncmoe 8", "-ncmoe 0", "R1"),
    ("CUDA graphs off", "1b-q4_0", "tg", f"{TOKENS} -ngl 99", "GGML_CUDA_DISABLE_GRAPHS=1", "", "R12"),
    ("pageable weights", "8b-q8_0", "pp", f"{PROMPT} -ngl 0", "-lm mmap", "-lm none", "R5"),
    ("twelve layers copied", "8b-q8_0", "pp", PROMPT, "-ngl 20", "-ngl 99", "R5"),
    ("32 threads", "8b-q8_0", "tg", "-p 0 -n 16 -ngl 0", "-t 32", "-t 15", "R9"),
]
HEALTHY = ["1b-q4_0", "8b-q8_0", "experts-q4_0"]


def explained(words, model, file):
    bench, ggprof, models, directory = sys.argv[1:5]
    words = words.split()
    variables = dict(word.split("=", 1) for word in words if word[:5] == "GGML_")
    words = [word for word in words if word[:5] != "GGML_"]
    file = os.path.join(directory, file)
    command = [bench, "-m", f"{models}/{model}.gguf", "-r", "1", *words]
    subprocess.run(
        [ggprof, "run", "-o", file, "--", *command],
        env=os.environ | variables, check=True, capture_output=True,
    )
    answer = subprocess.run(
        [ggprof, "explain", file, "--format", "json"], check=True, capture_output=True
    )
    return json.loads(answer.stdout)


def wall_ms(explanation, phase):
    phases = [it for it in explanation["phases"] if it["phase"].startswith(phase)]
    return sum(it["wall_ns"] for it in phases) / 1e6


def main():
    os.makedirs(sys.argv[4], exist_ok=True)
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 3
    print("| staged cause | first finding | ms | promised | then | of the promise |")
    print("| :--- | :--- | ---: | ---: | ---: | ---: |")
    for cause, model, phase, both, slow, advice, rule in CAUSES:
        # The first run reads the model from the disk.
        explained(f"{both} {slow}", model, "warm-up.ggprof")
        firsts, before, promised, then = [], [], [], []
        for number in range(rounds):
            name = f"{rule}-{model}-{phase}{slow.replace(' ', '')}-{number}".replace("/", "")
            told = explained(f"{both} {slow}", model, f"{name}.ggprof")
            first = (told.get("findings") or [{}])[0]
            firsts.append(first)
            before.append(wall_ms(told, phase))
            promised.append(first.get("cost_ns", 0) / 1e6)
            then.append(wall_ms(explained(f"{both} {advice}", model, f"{name}-then.ggprof"), phase))
        first = firsts[-1]
        right = all(it.get("rule") == rule for it in firsts)
        before, promised, then = map(statistics.median, (before, promised, then))
        print(
            f"| {cause}{'' if right else f' (not {rule} first)'} | {first.get('rule')}: {first.get('text')};"
            f" try {first.get('try')} | {before:.1f} | {promised:.1f} | {then:.1f} |"
            f" {(before - then) / promised if promised else 0:.2f} |",
            flush=True,
        )
    for model in HEALTHY:
        told = explained("-p 512 -n 128 -ngl 99", model, f"healthy-{model}.ggprof")
        findings = [f"{it['rule']} {it['text']}" for it in told.get("findings", [])]
        print(f"healthy {model}: {'; '.join(findings) or told.get('healthy') or told.get('nothing_found')}", flush=True)


if __name__ == "__main__":
    main()
