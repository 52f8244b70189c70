#!/bin/sh
# Everything: builds llama-bench, writes the models, prints one table for each.
#
#   run.sh SOURCE AGENT DIRECTORY [SECONDS [ROUNDS]]
#
# SOURCE as for build.sh, or a llama-bench that is built already; AGENT is libggprof_agent.so.
set -eu
here=$(dirname "$0")
directory=$3
mkdir -p "$directory"
case $1 in
*llama-bench) bench=$1 ;;
*) bench=$(sh "$here/build.sh" "$1" "$directory/build") ;;
esac
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for model in 1b-q4_0 8b-q8_0; do
    file=$directory/$model.gguf
    [ -f "$file" ] || python3 "$here/make_model.py" $model "$file"
    python3 "$here/compare.py" --bench "$bench" --agent "$2" --model "$file" \
        --out "$directory/$model" --seconds "${4:-20}" --rounds "${5:-3}"
done
