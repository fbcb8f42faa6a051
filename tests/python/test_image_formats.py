"""WebP, GIF, BMP and TIFF as Pillow writes them have Pillow's pixels; what is cut off is an error; AVIF is named."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Forebay, flat
from odd_images import SIZES, picture
from PIL import Image

LOSSY_TOLERANCE = 0
"""Grey levels that lossy WebP may be off: none, since libwebp's upsampling and colour conversion are of integers."""

RGB = ["webp-lossless", "webp-lossy", "webp-coarse", "gif", "bmp", "tiff", "tiff-lzw", "tiff-deflate", "tiff-packbits"]
OTHERS = ["webp-rgba", "webp-lossy-rgba", "webp-gray", "gif-transparent", "gif-animation"]
OTHERS += ["bmp-gray", "bmp-palette", "bmp-bilevel", "bmp-rgba"]
OTHERS += ["tiff-gray", "tiff-bilevel", "tiff-fax", "tiff-rgba", "tiff-16", "tiff-strips"]


def _write(folder: Path, kind: str, width: int, height: int) -> Path:
    """One image of a kind."""
    rgb = Image.fromarray(picture(width, height))
    rgba = Image.fromarray(picture(width, height, 4), "RGBA")
    path = folder / f"{kind}-{width}x{height}.{kind.split('-')[0]}"
    match kind:
        case "webp-lossless":
            rgb.save(path, lossless=True)
        case "webp-lossy":
            rgb.save(path, quality=85)
        case "webp-coarse":
            rgb.save(path, quality=5)
        case "webp-rgba":
            rgba.save(path, lossless=True, exact=True)
        case "webp-lossy-rgba":
            rgba.save(path, quality=80)
        case "webp-gray":
            rgb.convert("L").save(path, lossless=True)
        case "gif-transparent":
            rgb.quantize(64).save(path, transparency=3, interlace=1)
        case "gif-animation":
            rgb.save(path, save_all=True, append_images=[Image.fromarray(picture(width, height)[::-1])])
        case "bmp-gray" | "tiff-gray":
            rgb.convert("L").save(path)
        case "bmp-palette":
            rgb.quantize(200).save(path)
        case "bmp-bilevel" | "tiff-bilevel":
            rgb.convert("1").save(path)
        case "bmp-rgba" | "tiff-rgba":
            rgba.save(path)
        case "tiff-lzw":
            rgb.save(path, compression="tiff_lzw")
        case "tiff-packbits":
            rgb.save(path, compression="packbits")
        case "tiff-deflate":
            rgb.save(path, compression="tiff_adobe_deflate")
        case "tiff-fax":
            rgb.convert("1").save(path, compression="group4")
        case "tiff-16":
            Image.fromarray(picture(width, height, 1)[..., 0].astype(np.uint16) * 257 ^ 0x5A).save(path)
        case "tiff-strips":
            rgb.save(path, compression="tiff_lzw", tiffinfo={278: 2})
        case _:
            rgb.save(path)
    return path


def _pillow_pixels(path: Path) -> np.ndarray:
    """The first image as Pillow decodes it: grey replicated, alpha dropped, 16 bits cut to the upper byte."""
    with Image.open(path) as image:
        if image.mode.startswith("I;16"):
            pixels = (np.asarray(image) >> 8).astype(np.uint8)
        elif image.mode in ("RGB", "RGBA", "LA", "L"):
            pixels = np.asarray(image)
        else:
            pixels = np.asarray(image.convert("RGB"))
    if pixels.ndim == 2 or pixels.shape[-1] == 2:
        grey = pixels if pixels.ndim == 2 else pixels[..., 0]
        return np.repeat(grey[..., None], 3, axis=-1)
    return pixels[..., :3]


def _forebay_pixels(forebay: Forebay, path: Path, out: Path) -> np.ndarray:
    """The image at its own size."""
    with Image.open(path) as image:
        size = f"{image.width}x{image.height}"
    forebay("data", "decode", path, "--to", out, "--size", size, "--dtype", "u8")
    return np.load(out)[0]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("kind", [*RGB, *OTHERS])
def test_pixels_are_pillows(forebay: Forebay, tmp_path: Path, kind: str, width: int, height: int) -> None:
    path = _write(tmp_path, kind, width, height)
    theirs = _pillow_pixels(path).astype(int)
    ours = _forebay_pixels(forebay, path, tmp_path / "pixels.npy").astype(int)
    assert ours.shape == theirs.shape
    tolerance = LOSSY_TOLERANCE if kind in ("webp-lossy", "webp-coarse", "webp-lossy-rgba") else 0
    assert np.abs(ours - theirs).max() <= tolerance


@pytest.mark.parametrize("kind", ["webp-lossless", "webp-lossy", "gif", "bmp", "tiff", "tiff-lzw", "tiff-deflate"])
def test_a_file_cut_off_is_bad(forebay: Forebay, tmp_path: Path, kind: str) -> None:
    whole = _write(tmp_path, kind, 17, 33).read_bytes()
    folder = tmp_path / "cut"
    folder.mkdir()
    suffix = kind.split("-")[0]
    # The last byte of a TIFF file may be padding, and so may those of a bitmap's rows: from there on nothing is lost.
    cuts = list(range(1, len(whole) - 4, 7))
    for cut in cuts:
        (folder / f"{cut:05}.{suffix}").write_bytes(whole[:cut])
    said = flat(forebay("data", "verify", folder, status=1).stdout)
    assert f": 0 samples good, {len(cuts)} bad;" in said


@pytest.mark.parametrize("mode", ["P", "LA"])
def test_a_tiff_that_is_not_decoded_is_a_failed_sample(forebay: Forebay, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.tiff"
    Image.fromarray(picture(17, 33)).convert(mode).save(path)
    said = flat(forebay("data", "decode", path, "--to", tmp_path / "a.npy", status=2).stderr)
    assert "tiff image cannot be decoded" in said
    assert "not support" in said


def test_unsupported_images_are_named_and_counted(forebay: Forebay, tmp_path: Path) -> None:
    image = Image.fromarray(picture(17, 33))
    image.save(tmp_path / "a.avif")
    image.save(tmp_path / "b.jp2")
    image.save(tmp_path / "c.webp")
    note = "2 files left out: 1 AVIF image (not supported), 1 JPEG 2000 image (not supported)"
    assert note in flat(forebay("data", "inspect", tmp_path).stdout)
    assert "a.avif: AVIF is not supported" in flat(forebay("ingest", tmp_path / "a.avif", status=2).stderr)
    (tmp_path / "b.jp2").rename(tmp_path / "b")
    assert note in flat(forebay("data", "verify", tmp_path).stdout)
