#!/bin/sh
# Checks decoding on the GPU and times it beside nvJPEG (through torchvision) and the CPU, in turns, on a machine with a GPU and a
# python3 that has torch and torchvision.
#
#   sh bench/train/decode.sh DECODE_RATE FIXTURES LARGE SMALL
#
# FIXTURES are the JPEG files of crates/forebay-jpeg/tests/fixtures, LARGE and SMALL folders of baseline files, such as photographs
# of 126 KB and of 14 KB. The program may come from another machine:
#   cargo build --release -p forebay-decode --example decode_rate      # target/release/examples/decode_rate
set -eu
program=$1 fixtures=$2 large=$3 small=$4
here=$(dirname "$0") cores=$(nproc)
toolkit=$(python3 -c 'import nvidia, os; print(list(nvidia.__path__)[0])' 2>/dev/null || echo /nonexistent)
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$toolkit/cu13/lib:/usr/local/cuda/lib64
export LD_LIBRARY_PATH
"$program" check "$fixtures" 1000 1 0
"$program" check "$fixtures" 1 1 0
"$program" check "$large" 64 1 0
"$program" check "$small" 64 1 0
"$program" fuzz "$fixtures" 128 1 "${FUZZ_SECONDS:-20}"
seconds=3
for turn in 1 2 3; do
    for folder in "$large" "$small"; do
        for batch in 128 256; do
            for threads in 1 2 4 8; do
                "$program" gpu "$folder" $batch $threads $seconds
            done
            "$program" host "$folder" $batch 8 $seconds
            python3 "$here/decode_torch.py" "$folder" $batch $seconds || echo "torchvision did not run"
        done
        "$program" cpu "$folder" 1 "$cores" $seconds
    done
done
