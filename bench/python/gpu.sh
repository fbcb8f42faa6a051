#!/usr/bin/env bash
# Everything of the Python package that needs a GPU, in one go: bench/python/gpu.sh WHEEL
# Needs Python with torch, torchvision and pytest, and the CUDA toolkit's compute-sanitizer for the last part.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip install --quiet --no-index --no-deps --target "$work/site" "$1"
export PYTHONPATH=$work/site PATH=$work/site/bin:$PATH PYTHONUNBUFFERED=1
chmod +x "$work/site/bin/forebay"
forebay data make imagenet "$work/imagenet" --count 4000 >/dev/null && forebay data make caltech101 "$work/caltech" --count 8000 >/dev/null
failed=0
timeout 180 python3 -m pytest -q -rs "$here/tests/cuda" || failed=1
timeout 200 python3 "$here/bench/python/gpu.py" --data "$work/imagenet" "$work/caltech" --folder "$work" || failed=1
if command -v compute-sanitizer >/dev/null; then
    timeout 120 compute-sanitizer --error-exitcode 9 python3 -m pytest -q "$here/tests/cuda" -k 'kept or images_are' || failed=1
else
    echo "compute-sanitizer: not run, it is not on the path"
fi
exit $failed
