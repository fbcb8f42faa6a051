"""Images of every kind that a decoder meets, written by Pillow and, where Pillow cannot, by hand."""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

SIZES = [(1, 1), (7, 9), (17, 33), (640, 480)]
"""Width, height: the smallest, smaller than a block, odd in both directions, and larger than the output."""

_ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def picture(width: int, height: int, channels: int = 3) -> np.ndarray:
    """Smooth colour with edges and noise: every DCT coefficient and every chroma upsampling path gets work."""
    rng = np.random.default_rng(width * 1000 + height)
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / (5 + 3 * c) + c) * np.cos(y / (7 + 2 * c)) for c in range(channels)]
    edges = 40.0 * ((x // 11 + y // 13) % 2)
    image = 128 + 80 * np.stack(waves, -1) + edges[..., None] + rng.normal(0, 8, (height, width, channels))
    return np.clip(image, 0, 255).astype(np.uint8)


def write_jpegs(folder: Path) -> None:
    """Every sampling, sequential and progressive, plus grayscale, CMYK, restart markers and extreme qualities."""
    for w, h in SIZES:
        rgb = Image.fromarray(picture(w, h))
        for sampling in ("4:4:4", "4:2:2", "4:2:0"):
            name = f"{w}x{h}-{sampling.replace(':', '')}"
            rgb.save(folder / f"{name}.jpg", quality=90, subsampling=sampling)
            rgb.save(folder / f"{name}-progressive.jpg", quality=80, subsampling=sampling, progressive=True)
        rgb.save(folder / f"{w}x{h}-best.jpg", quality=100, subsampling="4:4:4", optimize=True)
        rgb.save(folder / f"{w}x{h}-coarse.jpg", quality=5, subsampling="4:2:0")
        rgb.save(folder / f"{w}x{h}-restart.jpg", quality=85, subsampling="4:2:0", restart_marker_blocks=3)
        rgb.convert("L").save(folder / f"{w}x{h}-gray.jpg", quality=90)
        rgb.convert("L").save(folder / f"{w}x{h}-gray-progressive.jpg", quality=90, progressive=True)
        Image.fromarray(picture(w, h, 4), "CMYK").save(folder / f"{w}x{h}-cmyk.jpg", quality=90)


def write_pngs(folder: Path) -> None:
    """Every colour type, 1 and 16 bits, and interlacing."""
    for w, h in SIZES:
        rgb, name = Image.fromarray(picture(w, h)), f"{w}x{h}"
        rgb.save(folder / f"{name}-rgb.png")
        rgb.convert("L").save(folder / f"{name}-gray.png")
        rgb.convert("1").save(folder / f"{name}-bilevel.png")
        rgb.quantize(200).save(folder / f"{name}-palette.png")
        rgb.quantize(12).save(folder / f"{name}-palette4.png", bits=4)
        Image.fromarray(picture(w, h, 4), "RGBA").save(folder / f"{name}-rgba.png")
        Image.fromarray(picture(w, h, 2), "LA").save(folder / f"{name}-gray-alpha.png")
        _write_png16(folder / f"{name}-rgb16.png", picture(w, h))
        _write_interlaced(folder / f"{name}-interlaced.png", picture(w, h))


def _write_png16(path: Path, image: np.ndarray) -> None:
    """Sixteen bits a channel, the low byte different from the high one."""
    wide = (image.astype(np.uint16) << 8) | (image[::-1].astype(np.uint16) ^ 0x5A)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in wide)
    _write_png(path, image.shape, 16, rows, interlaced=False)


def _write_interlaced(path: Path, image: np.ndarray) -> None:
    passes = [image[y0::dy, x0::dx] for x0, y0, dx, dy in _ADAM7]
    rows = b"".join(b"\0" + row.tobytes() for part in passes if part.size for row in part)
    _write_png(path, image.shape, 8, rows, interlaced=True)


def _write_png(path: Path, shape: tuple[int, ...], bits: int, rows: bytes, interlaced: bool) -> None:
    truecolour = 2
    header = struct.pack(">IIBBBBB", shape[1], shape[0], bits, truecolour, 0, 0, int(interlaced))
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    framed = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(framed))
