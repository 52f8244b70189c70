#!/bin/bash
# What timing costs on a real GPU, and whether every dispatch finds its node. Needs nothing but
# what pack.sh gathered and the vendor's Vulkan driver. Usage: run.sh [ROUNDS]
# [TOKENS] [PROMPT]
#
# VK_ICD_FILENAMES names the driver; without it NVIDIA's is taken. MODES names what takes turns:
# none, markers (what ggml does to name its pipelines, alone), and those of --vulkan. No round
# begins after LIMIT seconds, and no step takes more than STEP.
set -u
cd "$(dirname "$0")" || exit 1
rounds=${1:-5}
tokens=${2:-128}
prompt=${3:-512}
modes=${MODES:-none markers off sample group pair serial}
limit=${LIMIT:-600}
step=${STEP:-30}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar --extract --gzip --file bench.tar.gz --directory "$work"
bench=$work/bench
if [ -z "${VK_ICD_FILENAMES:-}" ]; then
    # The one without X: libGLX_nvidia.so.0 fails on a machine without a display.
    echo '{"file_format_version":"1.0.0","ICD":{"library_path":"libEGL_nvidia.so.0","api_version":"1.3.0"}}' \
        >"$work/nvidia.json"
    export VK_ICD_FILENAMES=$work/nvidia.json
fi
driver=$(ldconfig -p 2>/dev/null | sed -n 's|.*libEGL_nvidia.so.0.* => \(.*\)/[^/]*|\1|p' | head -1)
paths=$bench/lib:${driver:-/usr/lib/x86_64-linux-gnu}:/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
"$bench/write_model" "$work/model.gguf" ${MODEL:-}
command=("$bench/llama-bench" --library-path "$paths" "$bench/program" -m "$work/model.gguf"
    -ngl 99 -t 1 -o csv)

# Tokens per second of each test, from llama-bench's last column but one.
speeds() {
    sed -n 's/.*,"\([0-9.]*\)","[0-9.]*"$/\1/p'
}
run() { # MODE ARGUMENT...
    local mode=$1 before=()
    shift
    case $mode in
    none) ;;
    markers) before=(env GGML_VK_DEBUG_MARKERS=1) ;;
    *) before=("$bench/ggprof" run --vulkan "$mode" -o "$work/$mode.ggprof" --) ;;
    esac
    timeout -s KILL "$step" "${before[@]}" "${command[@]}" "$@" 2>>"$work/errors" | speeds
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# The driver's own caches.
run none -p "$prompt" -n 8 -r 1 >/dev/null
rounded=0
while [ "$rounded" -lt "$rounds" ] && [ "$SECONDS" -lt "$limit" ]; do
    for mode in $modes; do
        run "$mode" -p "$prompt" -n "$tokens" -r 5 >"$work/speeds"
        sed -n 1p "$work/speeds" >>"$work/pp.$mode"
        sed -n 2p "$work/speeds" >>"$work/tg.$mode"
    done
    rounded=$((rounded + 1))
done

echo "tokens per second, median of $rounded interleaved rounds of 5, and the ratio to none"
printf '%-8s %12s %8s %12s %8s\n' mode "tg$tokens" ratio "pp$prompt" ratio
for mode in $modes; do
    tg=$(median <"$work/tg.$mode") pp=$(median <"$work/pp.$mode")
    tg0=$(median <"$work/tg.none") pp0=$(median <"$work/pp.none")
    printf '%-8s %12s %8s %12s %8s\n' "$mode" "$tg" \
        "$(awk "BEGIN { printf \"%.3f\", $tg / $tg0 }")" "$pp" \
        "$(awk "BEGIN { printf \"%.3f\", $pp / $pp0 }")"
done

echo
echo "what was recorded of tg16: works, of no node, without times, flagged concurrent,"
echo "backwards; sum of their spans and time with any of them, in ms of the device's ticks"
timed=$(printf '%s\n' $modes | grep -v -e none -e markers -e off)
for mode in $timed; do
    run "$mode" -p 0 -n 16 -r 1 >/dev/null
    "$bench/dump_spool" "$work/$mode.ggprof" >"$work/dump"
    grep '^DeviceClock' "$work/dump" | head -2
    grep '^DeviceWork' "$work/dump" |
        sed 's/.*flags: \([0-9]*\),.*position: \([0-9]*\),.*start: \([0-9]*\), end: \([0-9]*\),.*/\3 \4 \1 \2/' |
        sort -n |
        awk -v mode="$mode" '
            { works++; kind = $3 % 4 }
            kind == 0 && $4 == 4294967295 { lost++ }
            int($3 / 16) % 2 { untimed++; next }
            int($3 / 4) % 2 { beside++ }
            $2 < $1 { backwards++ }
            !(($1, $2) in seen) { sum += $2 - $1; seen[$1, $2] = 1 }
            { from = $1 > until ? $1 : until; if ($2 > from) busy += $2 - from
              if ($2 > until) until = $2 }
            END { printf "%-7s works %d dispatches-without-node %d untimed %d concurrent %d " \
                         "backwards %d spans %.3f busy %.3f\n",
                  mode, works, lost, untimed, beside, backwards, sum / 1e6, busy / 1e6 }'
done
echo
for mode in $timed; do
    timeout -s KILL "$step" "$bench/ggprof" report "$work/$mode.ggprof" --top-ops 12 | head -25
done
echo
echo "errors:"
sort "$work/errors" | uniq -c | sort -rn | head -12
