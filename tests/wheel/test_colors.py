"""Changes of colours against a second implementation of torchvision's definitions, in NumPy; `tests/torch` has torchvision itself."""

import colorsys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_images import by_pillow

import forebay

Make = Callable[..., forebay.ImageLoader]
STRONG = (0.4, (0.5, 1.5), 0.8, 0.3)


def fused(a: np.ndarray, b: float, c: np.ndarray) -> np.ndarray:
    """a * b + c in single precision, rounded once, as PyTorch adds a multiple."""
    return (np.float64(np.float32(b)) * np.asarray(a, np.float64) + np.asarray(c, np.float64)).astype(np.float32)


def grey(image: np.ndarray) -> np.ndarray:
    red, green, blue = (image[..., c].astype(np.float32) for c in range(3))
    return np.floor(fused(blue, 0.114, fused(green, 0.587, red * np.float32(0.2989))))


def blended(image: np.ndarray, other: np.ndarray, factor: float) -> np.ndarray:
    return np.clip(fused(other, 1.0 - factor, image * np.float32(factor)), 0, 255).astype(np.uint8)


def changed(image: np.ndarray, kind: str, factor: float) -> np.ndarray:
    """torchvision.transforms.v2.functional.adjust_*, for bytes."""
    if kind == "brightness":
        return np.clip(image * np.float32(factor), 0, 255).astype(np.uint8)
    if kind == "contrast":
        return blended(image, grey(image).mean(dtype=np.float32), factor)
    if kind == "saturation":
        return blended(image, grey(image)[..., None], factor)
    turned = np.empty_like(image)
    for place in np.ndindex(image.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(image[place] / 255))
        turned[place] = np.array(colorsys.hsv_to_rgb((hue + factor) % 1.0, saturation, value)) * 255.999
    return turned


@pytest.mark.parametrize(
    ("jitter", "apart"), [((0.4, (0.5, 1.5), 0.8, 0), 0), ((0, 0, 0, 0.3), 1)], ids=["brightness, contrast, saturation", "hue"]
)
def test_colours_are_as_defined(loader: Make, jitter: tuple, apart: int) -> None:
    """Hue to one grey level: this reference computes it in double precision."""
    plain = loader(train=True, crop="center", flip=0, layout="NHWC", dtype="uint8", return_index=True, drop_last=False)
    made = loader(train=True, crop="center", flip=0, layout="NHWC", dtype="uint8", return_index=True, drop_last=False, jitter=jitter)
    kinds, worst = set(), 0
    for (before, _, indices), (after, _, same) in zip(plain, made, strict=True):
        assert indices.tolist() == same.tolist()
        for image, found, index in zip(before, after, indices.tolist(), strict=True):
            colors = made.augmentation(index, 0, 100, 100)["colors"]
            assert len(colors) == (3 if apart == 0 else 1)
            kinds.add(tuple(kind for kind, _ in colors))
            for kind, factor in colors:
                image = changed(image, kind, factor)
            worst = max(worst, int(np.abs(image.astype(int) - found).max()))
    assert worst <= apart, f"{worst} grey levels"
    assert len(kinds) == (6 if apart == 0 else 1), "in every order"


def test_jitter_leaves_crops_alone_and_is_normalised_last(loader: Make, photos: Path) -> None:
    made = loader(train=True, jitter=(0, 0, 0, 0), dtype="uint8", layout="NHWC", return_index=True)
    for images, _, indices in made:
        for image, index in zip(images, indices.tolist(), strict=True):
            path = Path(made.name_of(index))
            with Image.open(path) as opened:
                what = made.augmentation(index, 0, *opened.size)
            assert what["colors"] == [] and np.abs(image.astype(int) - by_pillow(path, what, 32)).max() <= 1
    settings = {"train": True, "jitter": STRONG, "seed": 4}
    for (bytes_, _), (unit, _) in zip(loader(**settings, dtype="uint8"), loader(**settings, normalize="unit"), strict=True):
        assert np.allclose(bytes_ / np.float32(255), unit, atol=1e-6)
    epochs = [np.concatenate([images.copy() for images, _ in made]) for made in [loader(**settings)] for _ in range(2)]
    again = np.concatenate([images.copy() for images, _ in loader(**settings, threads=4, batch_size=4)])
    assert np.array_equal(epochs[0], again) and not np.array_equal(*epochs)


@pytest.mark.parametrize(
    ("jitter", "said"),
    [
        ((0.1, 0.1, 0.1), "jitter is"),
        ((-0.1, 0, 0, 0), "negative"),
        (((1.2, 0.8), 0, 0, 0), "brightness is two rising numbers"),
        ((0, 0, 0, 0.6), "hue is two rising numbers"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(loader: Make, jitter: tuple, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        loader(jitter=jitter)
