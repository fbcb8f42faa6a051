"""The installed package `forebay`, against NumPy, Pillow and safetensors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import forebay

N_IMAGES = 23


def picture(width: int, height: int, seed: int) -> np.ndarray:
    """Smooth colour with edges, different for every seed."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / (9 + 2 * c) + seed) * np.cos(y / (11 + c)) for c in range(3)]
    edges = 40.0 * ((x // 17 + y // 13 + seed) % 2)
    return np.clip(120 + 80 * np.stack(waves, -1) + edges[..., None], 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of many sizes in three class folders, without loss."""
    folder = tmp_path_factory.mktemp("photos")
    for number in range(N_IMAGES):
        kind = folder / "abc"[number % 3]
        kind.mkdir(exist_ok=True)
        width, height = 60 + 7 * number, 150 - 4 * number
        Image.fromarray(picture(width, height, number)).save(kind / f"{number:02}.png")
    return folder


@pytest.fixture
def loader(photos: Path) -> Callable[..., forebay.ImageLoader]:
    """A loader of the images, with small samples."""

    def make(**settings: Any) -> forebay.ImageLoader:
        given = {"batch_size": 4, "image_size": 32, "output": "numpy", "threads": 2, **settings}
        return forebay.ImageLoader(settings.pop("data", photos), **{k: v for k, v in given.items() if k != "data"})

    return make
