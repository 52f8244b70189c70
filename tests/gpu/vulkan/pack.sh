#!/bin/bash
# Gathers what run.sh needs on a machine that has a GPU and nothing else: llama-bench and
# ggml's Vulkan backend of Debian sid with the libraries they load, the Vulkan loader, ggprof
# and its agent, and a program that writes a model. Usage: pack.sh DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
workspace=$(cd "$here/../../.." && pwd)
mkdir -p "$1"
target=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$workspace"
cargo build --quiet --release -p ggprof -p ggprof-agent
cargo build --quiet --release -p ggprof-spool --example dump_spool
cargo build --quiet --release -p ggprof-e2e --example write_model
mkdir -p "$work/bench/lib"
for file in ggprof libggprof_agent.so examples/dump_spool examples/write_model; do
    strip --strip-debug -o "$work/bench/$(basename $file)" "target/release/$file"
done

# apt with directories of its own, and the same mirror as this machine.
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/root"
: >"$work/apt/status"
mirror=$(apt-get -o Debug::NoLocking=1 --print-uris update | sed -n "s|^'\(.*/debian\)/dists/.*|\1|p" | head -1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $mirror sid main" >"$work/apt/sources.list"
apt() {
    apt-get --quiet --yes --download-only --no-install-recommends -o Debug::NoLocking=1 \
        -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State="$work/apt" -o Dir::State::status="$work/apt/status" \
        -o Dir::Cache="$work/apt" -o Acquire::Languages=none "$@"
}
apt update
apt install llama.cpp-tools libggml0-backend-vulkan
for package in "$work"/apt/archives/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done

# ggml looks for backends beside the running program, which is the loader: it gets the
# program's name.
libraries="$work/root/usr/lib/x86_64-linux-gnu"
cp -L "$libraries/ld-linux-x86-64.so.2" "$work/bench/llama-bench"
cp "$work/root/usr/bin/llama-bench" "$work/bench/program"
for backend in libggml-vulkan libggml-cpu-haswell libggml-cpu-sapphirerapids libggml-cpu-zen4; do
    cp "$libraries/ggml/backends0/$backend.so" "$work/bench/"
done
cp -L "$libraries"/llama/libllama-bench-impl.so "$work/bench/lib/"
needed() { # every library that a file needs, and those need
    "$work/bench/llama-bench" --library-path "$libraries:$libraries/llama" --list "$1" |
        sed -n 's|.* => \(/[^ ]*\).*|\1|p'
}
for file in "$work/bench/program" "$work"/bench/libggml-*.so; do
    for library in $(needed "$file"); do
        cp -Lu "$library" "$work/bench/lib/"
    done
done
tar --create --gzip --file "$target/bench.tar.gz" --directory "$work" bench
cp "$here/run.sh" "$target/"
du -sh "$target"
