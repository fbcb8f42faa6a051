"""What `forebay data make` writes is what others can read."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from conftest import Forebay
from PIL import Image
from pixels import image_paths


def test_generated_photographs_decode_in_pillow_and_tensorflow(photos: Path) -> None:
    paths = image_paths(photos)
    assert len(paths) == 60
    for path in paths:
        with Image.open(path) as image:
            image.load()
            pillow = np.asarray(image.convert("RGB"))
        tensor = tf.io.decode_jpeg(path.read_bytes(), channels=3, dct_method="INTEGER_ACCURATE").numpy()
        assert tensor.shape == pillow.shape
        assert np.abs(tensor.astype(int) - pillow.astype(int)).max() <= 1
        assert tensor.std() > 10, f"{path} is nearly a flat colour"


def test_the_same_seed_gives_the_same_bytes(photos: Path, forebay: Forebay, tmp_path: Path) -> None:
    forebay("data", "make", "caltech101", tmp_path / "again", "--count", 60, "--seed", 7)
    forebay("data", "make", "caltech101", tmp_path / "other", "--count", 60, "--seed", 8)

    def contents(folder: Path) -> list[tuple[str, bytes]]:
        return [(str(p.relative_to(folder)), p.read_bytes()) for p in image_paths(folder)]

    assert contents(tmp_path / "again") == contents(photos)
    assert contents(tmp_path / "other") != contents(photos)
