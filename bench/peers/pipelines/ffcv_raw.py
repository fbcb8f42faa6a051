"""FFCV's raw mode: images decoded and resized when the file is written, converted to f32 when it is read."""

from pathlib import Path

import numpy as np
import torch
from ffcv.fields import RGBImageField
from ffcv.fields.rgb_image import SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import Convert, NormalizeImage, ToTensor
from ffcv.writer import DatasetWriter
from PIL import Image

from data import SIDE_PX, image_files
from task import BATCH, PREFETCH_BATCHES, Epoch, Task


class Resized:
    """The images of a folder as FFCV's writer wants them: indexable, each a tuple of fields."""

    def __init__(self, files: list[str]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[np.ndarray]:
        image = Image.open(self.files[index]).convert("RGB")
        return (np.asarray(image.resize((SIDE_PX, SIDE_PX), Image.Resampling.BILINEAR)),)


def epochs(task: Task) -> Epoch:
    """The pipeline of `task`, ready to be iterated."""
    path = task.data / f"{task.dataset}.beton"
    if not path.exists():
        _write(path, image_files(task.data / task.dataset))
    loader = Loader(
        str(path),
        batch_size=BATCH,
        num_workers=task.threads,
        order=OrderOption.RANDOM,
        os_cache=True,
        batches_ahead=PREFETCH_BATCHES,
        pipelines={"image": [SimpleRGBImageDecoder(), *_to_float(task.variant)]},
    )
    return lambda: (len(image) for (image,) in loader)


def _to_float(variant: str) -> list[object]:
    """Two ways to f32: a table look-up compiled into the fused stage, or a cast by torch."""
    if variant == "normalize":
        return [NormalizeImage(np.zeros(3), np.ones(3), np.float32), ToTensor()]
    return [ToTensor(), Convert(torch.float32)]


def _write(path: Path, files: list[str]) -> None:
    partial = path.with_suffix(".partial")
    fields = {"image": RGBImageField(write_mode="raw", max_resolution=SIDE_PX)}
    DatasetWriter(str(partial), fields, num_workers=1).from_indexed_dataset(Resized(files))
    partial.rename(path)
