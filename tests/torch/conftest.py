"""The installed package `forebay`, against PyTorch and torchvision."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """192 JPEGs of four classes that a small network can tell apart: stripes of four directions, in any colour."""
    folder = tmp_path_factory.mktemp("stripes")
    rng = np.random.default_rng(5)
    for number in range(192):
        kind = number % 4
        width, height = (int(n) for n in rng.integers(60, 140, 2))
        y, x = np.mgrid[0:height, 0:width]
        along = (x, y, x + y, np.hypot(x - width / 2, y - height / 2))[kind]
        wave = np.sin(along / rng.uniform(3, 5) + rng.uniform(0, 6))[..., None]
        image = 128 + 90 * wave * rng.uniform(0.4, 1, 3) + rng.normal(0, 12, (height, width, 3))
        (folder / str(kind)).mkdir(exist_ok=True)
        Image.fromarray(np.clip(image, 0, 255).astype(np.uint8)).save(folder / str(kind) / f"{number:03}.jpg", quality=92)
    return folder
