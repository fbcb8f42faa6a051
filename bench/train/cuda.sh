#!/bin/sh
# Checks the CUDA engine and times it beside PyTorch, on a machine with a GPU and a python3 that has torch (and its nvidia packages).
#
#   sh bench/train/cuda.sh TEST_BINARY STEP_TIME [OUT]
#
# from the repository's root. The binaries may come from another machine:
#   cargo test --release -p forebay-train --no-run --test it        # target/release/deps/it-...
#   cargo build --release -p forebay-train --example step_time      # target/release/examples/step_time
set -eu
tests=$1 step_time=$2 out=${3:-.}
packages=$(python3 -c 'import nvidia.cudnn, os; print(os.path.dirname(list(nvidia.cudnn.__path__)[0]))')
LD_LIBRARY_PATH=$packages/cudnn/lib:$packages/cu13/lib:${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH
"$tests" cuda --test-threads 1 --nocapture
for precision in bf16 tf32 f32; do
    "$step_time" alexnet cuda:$precision 64 30 | cut -c1-300
done
status=0
python3 bench/train/compare.py --ours "$step_time" --models alexnet --devices cuda:bf16 --batches 64,128,256 --steps 50 --rounds 2 \
    --out "$out/alexnet.json" || status=$?
python3 bench/train/compare.py --ours "$step_time" --models resnet50 --devices cuda:bf16 --batches 64,128 --steps 30 --rounds 2 \
    --out "$out/resnet50.json" || status=$?
exit $status
