"""Times nvJPEG through torchvision: `decode_torch.py DIR BATCH SECONDS` prints one line. Files are read before the clock starts."""

import pathlib
import sys
import time

import torch
from torchvision.io import ImageReadMode, decode_jpeg, read_file


def main() -> None:
    folder, batch, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    files = [read_file(str(path)) for path in sorted(pathlib.Path(folder).glob("*.jp*g"))]

    def decode(first: int) -> None:
        chosen = [files[(first + i) % len(files)] for i in range(batch)]
        decode_jpeg(chosen, mode=ImageReadMode.RGB, device="cuda")

    for i in range(3):
        decode(i * batch)
    torch.cuda.synchronize()
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        decode(n)
        n += batch
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - begin
    print(f"nvjpeg {folder} batch {batch}: {n / elapsed:.0f} images/s")


main()
