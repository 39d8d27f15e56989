#!/bin/bash
# tests/gpu/numerics.sh: measures what the GPU's arithmetic is and sets it against what the oracle takes for granted.
# Prints the table and writes $OUT/numerics.tsv and $OUT/<gpu>-products.bin (vectors for the tests: belongs into
# tests/vectors). Needs nvcc and a C compiler only. B: where to build (build/gpu-numerics), OUT: where to write (B),
# ARCH: 80, 89, 90a, ... (the device's), STEP: of the arguments of functions and conversions every n-th (1). Exit status: 0 all holds, 1 something does not, 77 no CUDA device.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build/gpu-numerics}
OUT=${OUT:-$B}
nvcc=${NVCC:-${CUDA_HOME:-/usr/local/cuda}/bin/nvcc}
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || {
    echo "SKIP: no nvcc"
    exit 77
}
if [ -z "${ARCH:-}" ]; then
    # "9.0" -> "90a": wgmma is in no other target.
    ARCH=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ') || ARCH=
    [ -n "$ARCH" ] || [ ! -e /dev/nvidiactl ] || ARCH=90
    [ -n "$ARCH" ] || {
        echo "SKIP: no CUDA device"
        exit 77
    }
    [ "$ARCH" = 90 ] && ARCH=90a
fi
mkdir -p "$B" "$OUT"
cc=${CC:-$(command -v gcc || command -v cc)}
cflags=(-std=c11 -D_GNU_SOURCE -I. -O2 -Wall -Wextra -ffp-contract=off)
pids=()
objects=()
for file in engine/base/{tensor_core,dtype,err,pool}.c tests/gpu/numerics{,_models,_products,_scan,_table}.c; do
    object=$B/$(basename "$file" .c).o
    objects+=("$object")
    "$cc" "${cflags[@]}" -c -o "$object" "$file" &
    pids+=($!)
done
for file in tests/gpu/numerics_{device,warp,warpgroup,functions}.cu; do
    object=$B/$(basename "$file" .cu).$ARCH.o
    objects+=("$object")
    "$nvcc" -O2 -std=c++17 -I. -gencode "arch=compute_$ARCH,code=sm_$ARCH" -c -o "$object" "$file" &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    wait "$pid"
done
"$nvcc" -gencode "arch=compute_$ARCH,code=sm_$ARCH" -o "$B/numerics" "${objects[@]}" -lpthread -lm
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//') || gpu=
vectors=$OUT/${gpu:-gpu}-products.bin
status=0
"$B/numerics" --tsv "$OUT/numerics.tsv" --vectors "$vectors" --step "${STEP:-1}" || status=$?
if [ "$status" -ne 77 ]; then
    echo "$OUT/numerics.tsv: the table; $vectors: vectors; $B/numerics --replay FILE searches their arithmetic without a GPU"
fi
exit "$status"
