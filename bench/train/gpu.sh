#!/bin/sh
# Everything about decoding on a GPU in one call of at most ten minutes: checks, rates beside nvJPEG and the CPU, training end to end.
# For a machine with a GPU and a python3 that has torch and torchvision (and its nvidia packages).
#
#   sh bench/train/gpu.sh BINARIES OUT
#
# from the repository's root. BINARIES is a folder with `forebay` and `decode_rate`, which may come from another machine:
#   cargo build --release -p forebay -p forebay-decode --example decode_rate --bin forebay && strip target/release/forebay \
#       target/release/examples/decode_rate
# OUT gets the records and the output. Every step has a time limit, and one that fails does not end the others.
set -u
binaries=$(realpath "$1") out=$2 here=$(dirname "$0")
mkdir -p "$out"
work=$(mktemp -d) fixtures=$here/../../crates/forebay-jpeg/tests/fixtures
# Folders of pip packages, where forebay looks for CUDA's libraries.
VIRTUAL_ENV=$(python3 -c 'import sys; print(sys.prefix)')
export VIRTUAL_ENV
toolkit=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])')
LD_LIBRARY_PATH=$toolkit/cu13/lib:$toolkit/cudnn/lib:${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH
say() { echo "== $* (after $(($(date +%s) - begin)) s)"; }
try() { timeout -k 5 "$@" 2>&1 || echo "FAILED with status $?: $*"; }
begin=$(date +%s)
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

say data
try 60 "$binaries/forebay" data make imagenet "$work/large" --count 4000
try 60 "$binaries/forebay" data make caltech101 "$work/small" --count 9000
# `decode_rate` reads one folder: some of the files, of all classes.
for size in large small; do
    mkdir "$work/$size-flat"
    find "$work/$size" -name '*.jpg' | sort | awk 'NR % 4 == 0' | while read -r file; do
        ln -s "$file" "$work/$size-flat/$(echo "$file" | tr / _)"
    done
done

say checks
try 20 "$binaries/decode_rate" check "$fixtures" 1000 1 0
try 20 "$binaries/decode_rate" check "$fixtures" 1 1 0
try 60 compute-sanitizer --error-exitcode 9 "$binaries/decode_rate" check "$fixtures" 1000 1 0
for size in large small; do
    try 40 "$binaries/decode_rate" check "$work/$size-flat" 64 1 0
done
try 40 "$binaries/decode_rate" fuzz "$fixtures" 128 1 "${FUZZ_SECONDS:-15}"
echo "two processes on one GPU:"
try 30 "$binaries/decode_rate" fuzz "$fixtures" 64 1 5 &
try 30 "$binaries/decode_rate" check "$work/small-flat" 64 1 0
wait

# One after the other in every turn, as the machine drifts.
say rates
for turn in 1 2; do
    for size in large small; do
        for threads in 1 4 8 16; do
            try 20 "$binaries/decode_rate" gpu "$work/$size-flat" 128 $threads 2
        done
        try 20 "$binaries/decode_rate" gpu "$work/$size-flat" 256 8 2
        try 20 "$binaries/decode_rate" host "$work/$size-flat" 128 8 2
        try 40 python3 "$here/decode_torch.py" "$work/$size-flat" 256 2
        try 20 "$binaries/decode_rate" cpu "$work/$size-flat" 1 "$(nproc)" 2
        for decode in cpu gpu; do
            record=$out/ingest-$size-$decode-$turn.json
            try 30 "$binaries/forebay" ingest "$work/$size" --threads "$(nproc)" --prefetch 4 --batch 128 --repeats 2 --warmups 1 \
                --decode $decode --json "$record" >"$out/last.txt"
            echo "ingest $size $decode: $(python3 "$here/figures.py" "$record" || cat "$out/last.txt")"
        done
    done
done

say training
for turn in 1 2; do
    for model in alexnet resnet50; do
        for size in large small; do
            steps=250
            for decode in cpu gpu; do
                record=$out/train-$model-$size-$decode-$turn.json
                try 45 "$binaries/forebay" train "$work/$size" --model $model --device cuda --batch 128 --threads "$(nproc)" --prefetch 4 \
                    --steps $steps --baseline 30 --decode $decode --json "$record" >"$out/last.txt"
                echo "train $model $size $decode: $(python3 "$here/figures.py" "$record" || cat "$out/last.txt")"
            done
        done
    done
done
try 45 "$binaries/forebay" train "$work/large" --model alexnet --device cuda --batch 128 --prefetch 4 --steps 250 --decode auto \
    --json "$out/train-auto.json"
rm -rf "$work"
say end
