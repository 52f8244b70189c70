#!/bin/sh
# Builds llama-bench with ggml's CUDA backend from source, for the card in this machine.
#
#   build.sh SOURCE BUILD
#
# SOURCE is a llama.cpp source folder, or the archive of the crate `llama-cpp-sys-4`, which
# holds one (`cargo fetch` puts it under ~/.cargo/registry/cache). BUILD is made.
set -eu
source=$1
build=$2

mkdir -p "$build"
if [ -f "$source" ]; then
    mkdir -p "$build/source"
    tar xzf "$source" -C "$build/source"
    source=$(dirname "$(find "$build/source" -path '*/llama.cpp/ggml/CMakeLists.txt' | head -1)")/..
fi
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)

cmake -G Ninja -S "$source" -B "$build" \
    -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
    -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$architecture" -DGGML_CUDA_FA_ALL_QUANTS=OFF \
    -DGGML_NATIVE=OFF -DGGML_CCACHE=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF >"$build/configure.log" 2>&1 ||
    { tail -20 "$build/configure.log"; exit 1; }
cmake --build "$build" --target llama-bench >"$build/build.log" 2>&1 ||
    { tail -40 "$build/build.log"; exit 1; }
echo "$build/bin/llama-bench"
