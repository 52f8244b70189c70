#!/bin/sh
# What `ggprof diff` explains on a CUDA card: flash attention off against on, and CUDA graphs on
# against off.
#
#   diff.sh BENCH GGPROF MODEL DIRECTORY [PAIRS]
#
# BENCH is llama-bench, GGPROF the command with its agent beside it. The recordings are made in turns
# and stay in DIRECTORY; about five seconds each.
set -eu
bench=$1 ggprof=$2 model=$3 directory=$4 pairs=${5:-4}
mkdir -p "$directory"

record() { # FILE ARGUMENT...
    file=$1
    shift
    "$ggprof" run -o "$directory/$file" -- "$bench" -m "$model" -ngl 99 -p 512 -n 128 -r 3 "$@" \
        >"$directory/log" 2>&1 || cat "$directory/log"
}

# The first run loads kernels from the disk.
record warm-up.ggprof -fa 1
pair=1
while [ "$pair" -le "$pairs" ]; do
    record "plain-$pair.ggprof" -fa 0
    record "flash-$pair.ggprof" -fa 1
    GGML_CUDA_DISABLE_GRAPHS=1 record "graphs-off-$pair.ggprof" -fa 1
    pair=$((pair + 1))
done
for sides in "plain flash" "flash graphs-off"; do
    a=${sides% *} b=${sides#* }
    echo "== $a against $b"
    "$ggprof" diff "$directory/$a"-?.ggprof --vs "$directory/$b"-?.ggprof --top 10 | cut -c1-200
    "$ggprof" diff "$directory/$a"-?.ggprof --vs "$directory/$b"-?.ggprof --format json |
        python3 "$(dirname "$0")/explained.py"
    echo "one recording a side:"
    "$ggprof" diff "$directory/$a"-1.ggprof "$directory/$b"-1.ggprof --format json |
        python3 "$(dirname "$0")/explained.py"
done
