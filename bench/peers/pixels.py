"""Are forebay's pixels TensorFlow's? Decodes a folder with both and prints the largest difference.

The reference is `tf.io.decode_jpeg(dct_method="INTEGER_ACCURATE")` (or `decode_png`), then `tf.image.resize`, bilinear
without antialias. Usage: `pixels.py --forebay BINARY [--size 224] FOLDER`. Exit status 1 if any value is further off
than the tolerance: 1e-3 of a grey level, which leaves room for the order of float additions and for nothing else.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

TOLERANCE = 1e-3
SUFFIXES = (".jpg", ".jpeg", ".png")


def image_paths(folder: Path) -> list[Path]:
    """The images below `folder`, in the order in which forebay decodes them."""
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)


def tensorflow_pixels(path: Path, width: int, height: int) -> np.ndarray:
    """One image as TensorFlow decodes and resizes it: (height, width, 3), f32, 0 to 255."""
    encoded = path.read_bytes()
    if encoded.startswith(b"\x89PNG"):
        image = tf.io.decode_png(encoded, channels=3)
    else:
        image = tf.io.decode_jpeg(encoded, channels=3, dct_method="INTEGER_ACCURATE")
    return tf.image.resize(image, (height, width), method="bilinear", antialias=False).numpy()


def forebay_pixels(forebay: Path, source: Path, width: int, height: int, *flags: str) -> np.ndarray:
    """All images of a folder or list file as forebay decodes and resizes them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pixels.npy"
        size = f"{width}x{height}"
        command = [forebay, "data", "decode", source, "--to", out, "--size", size, *flags]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        return np.load(out)


def differences(forebay: Path, folder: Path, width: int, height: int) -> dict[str, float]:
    """The largest absolute difference per image."""
    ours = forebay_pixels(forebay, folder, width, height)
    paths = image_paths(folder)
    if len(ours) != len(paths):
        raise ValueError(f"{len(paths)} images in {folder}, {len(ours)} decoded")
    pairs = zip(paths, ours, strict=True)
    return {str(p.relative_to(folder)): float(np.abs(tensorflow_pixels(p, width, height) - x).max()) for p, x in pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--forebay", required=True, type=Path)
    parser.add_argument("--size", type=int, default=224)
    options = parser.parse_args()
    found = differences(options.forebay, options.folder, options.size, options.size)
    worst = max(found, key=lambda name: found[name])
    print(
        f"{len(found)} images, largest difference {found[worst]:.2e} grey levels ({worst}), tolerance {TOLERANCE:.0e}"
    )
    return int(found[worst] > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
