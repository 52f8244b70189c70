#!/bin/sh
# Makes the recordings of examples/ anew, and measures the machine that they are made on.
#
#   examples.sh BENCH GGPROF MODELS DIRECTORY
#
# BENCH is llama-bench with ggml's CUDA backend (build.sh builds one), GGPROF the command with its agent.
# Models are written into MODELS where they are missing (7.7 GB and 0.5 GB), recordings into DIRECTORY.
set -eu
bench=$1 ggprof=$2 models=$3 directory=$4
mkdir -p "$models" "$directory"

model() { # NAME
    [ -f "$models/$1.gguf" ] || python3 "$(dirname "$0")/make_model.py" "$1" "$models/$1.gguf"
}

# An example is of what lasts: the first run reads the model from the disk, and the first two graph runs
# of the second one are llama-bench's warm-up, which loads kernels.
record() { # FILE ARGUMENT...
    file=$directory/$1
    shift
    "$bench" "$@" -r 1 >"$directory/log" 2>&1 || { cat "$directory/log"; exit 1; }
    "$ggprof" run --strict --cuda full --graphs 3.. -o "$file" -- "$bench" "$@" -r 1
    "$ggprof" report "$file" --by placement
    "$ggprof" explain "$file" --peaks "$directory/peaks-h200.json"
}

model 8b-q8_0
model experts-q4_0
"$ggprof" peaks -o "$directory/peaks-h200.json"
record llama-8b-ngl32-h200.ggprof.gz -m "$models/8b-q8_0.gguf" -ngl 32 -p 0 -n 0 -pg 512,32
record llama-moe-cpu-h200.ggprof.gz -m "$models/experts-q4_0.gguf" -ngl 99 -ncmoe 8 -p 0 -n 0 \
    -pg 512,32
rm "$directory/log"
ls -l "$directory"
