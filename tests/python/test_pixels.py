"""The decoded and resized batch equals TensorFlow's, for every kind of image, larger and smaller than the output."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from odd_images import picture, write_jpegs, write_pngs
from PIL import Image
from pixels import TOLERANCE, differences, forebay_pixels, image_paths, tensorflow_pixels

OUTPUTS = [(224, 224), (32, 48), (299, 64)]


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("odd")
    for kind, write in (("jpeg", write_jpegs), ("png", write_pngs)):
        (folder / kind).mkdir()
        write(folder / kind)
    return lambda kind: folder / kind


@pytest.mark.parametrize(("width", "height"), OUTPUTS)
@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_odd_images_have_tensorflows_pixels(binary: Path, odd: Callable, kind: str, width: int, height: int) -> None:
    off = {n: d for n, d in differences(binary, odd(kind), width, height).items() if d > TOLERANCE}
    assert not off, f"largest difference per image: {off}"


@pytest.mark.parametrize(("width", "height"), OUTPUTS)
def test_generated_photographs_have_tensorflows_pixels(binary: Path, photos: Path, width: int, height: int) -> None:
    off = {n: d for n, d in differences(binary, photos, width, height).items() if d > TOLERANCE}
    assert not off, f"largest difference per image: {off}"


def test_bytes_are_the_rounded_floats_and_nchw_is_the_transpose(binary: Path, photos: Path) -> None:
    floats = forebay_pixels(binary, photos, 224, 224)
    assert (floats.dtype, floats.shape) == (np.float32, (60, 224, 224, 3))
    rounded = forebay_pixels(binary, photos, 224, 224, "--dtype", "u8")
    assert (rounded.dtype, rounded.shape) == (np.uint8, floats.shape)
    assert np.abs(rounded - floats).max() <= 0.5 + TOLERANCE
    planes = forebay_pixels(binary, photos, 224, 224, "--layout", "nchw")
    assert np.array_equal(planes, floats.transpose(0, 3, 1, 2))


def test_a_list_file_is_decoded_in_its_order(binary: Path, photos: Path, tmp_path: Path) -> None:
    paths = image_paths(photos)
    chosen = [paths[5], paths[0], paths[9]]
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"{path} {label}\n" for label, path in enumerate(chosen)))
    decoded = forebay_pixels(binary, listed, 64, 64)
    for path, ours in zip(chosen, decoded, strict=True):
        assert np.abs(tensorflow_pixels(path, 64, 64) - ours).max() <= TOLERANCE


def test_scaled_decoding_is_close_but_has_to_be_asked_for(binary: Path, tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    Image.fromarray(picture(1280, 960)).save(path, quality=90)
    exact = forebay_pixels(binary, tmp_path, 128, 96)
    scaled = forebay_pixels(binary, tmp_path, 128, 96, "--scaled")
    assert np.abs(exact[0] - tensorflow_pixels(path, 128, 96)).max() <= TOLERANCE
    assert not np.array_equal(scaled, exact)
    box_averaged = np.asarray(Image.open(path).resize((128, 96), Image.Resampling.BOX), dtype=np.float32)
    assert np.abs(scaled[0] - box_averaged).mean() < np.abs(exact[0] - box_averaged).mean()
