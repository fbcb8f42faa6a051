#!/bin/sh
# Times AlexNet's training steps on two cores beside PyTorch's, round by round. Wants a machine with nothing else to do.
#
#   sh bench/train/cpu.sh [PYTHON [OUT [ROUNDS]]]
#
# from the repository's root. PYTHON is one that has torch; OUT is a folder for the times of every step. Both sides have the cores 0 and 1.
set -eu
python=${1:-python3} out=${2:-.} rounds=${3:-3}
cargo build --release -p forebay-train --example step_time
mkdir -p "$out"
exec taskset -c 0,1 "$python" bench/train/compare.py --ours "${CARGO_TARGET_DIR:-target}/release/examples/step_time" --models alexnet \
    --devices cpu:2 --batches 16,64 --steps 5 --rounds "$rounds" --out "$out/alexnet-cpu.json"
