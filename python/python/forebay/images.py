"""The loader of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._forebay import Images
from .loader import Loader, Path, common, count, paths

_NORMALIZE = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}


class ImageLoader(Loader):
    """Batches of images and labels from a folder, a list, TFRecord, tar or tensor shards.

    Reading, decoding and augmentation run in threads of Rust, which never hold Python's lock. Batches are lent to the
    framework without a copy. Each `for` over the loader is one epoch.

    Args:
        data: A folder of images or shards, an image, a shard, or a list of `path label` lines; or a Python sequence of image
            files or shards. The class of an image is its folder.
        batch_size: Samples per batch.
        image_size: Side of a sample in pixels, or (width, height); 224, or the size of tensor shards, if not given.
        train: True shuffles, takes random crops and mirrors half of the images; False keeps the order of the data and takes
            the centre of each image. `shuffle`, `crop` and `flip` change either.
        seed: Seed of the order and of the augmentation. Both depend on it, on the epoch and on the sample only.
        threads: Threads that read and decode. "auto" adds threads as long as more help, during the first epoch.
        prefetch: Batches prepared ahead of the loop.
        rank, world_size: The part of this rank. The parts are disjoint and cover the data.
        drop_last: Whether samples that make no full batch are left out; every rank then has the same number of batches.
            By default as `train`.
        layout: "NCHW" or "NHWC".
        dtype: "float32", "float16", "bfloat16" or "uint8".
        normalize: None for values from 0 to 255, "unit" for 0 to 1, "imagenet" for ImageNet's mean and deviation, or
            (mean, std) with three numbers each, of values from 0 to 1.
        output: "torch", "numpy", "jax" or "tf"; by default torch if it is installed, else numpy.
        shuffle: Whether the order is random, new in each epoch. By default as `train`.
        crop: "random" for torchvision's RandomResizedCrop, "center" for its Resize and CenterCrop, "none" to resize the whole
            image to the sample's width and height. By default "random" with `train` and else "center", or "none" for tensor
            shards in their own size.
        crop_scale, crop_ratio: Of random crops: range of the share of the image's area, and of width divided by height.
        resize: Of centre crops: length that the shorter side is resized to first; 256/224 of the sample's side if not given.
        flip: Probability that left and right are exchanged.
        jitter: torchvision's ColorJitter: (brightness, contrast, saturation, hue), each a number or a range (low, high); 0
            changes nothing.
        antialias: Whether reductions are filtered, as torchvision and Pillow do. False gives TensorFlow's pixels.
        errors: "raise" to raise the error of a sample that cannot be read or decoded; "skip" to leave it out and count it in
            `stats()`.
        device: A CUDA device of torch, such as "cuda:0": batches are on it when the loop gets them. Their memory in the host
            is locked, and copies run on a stream of their own while the batch before is used.
        map: A function of a batch, run in `map_threads` threads of Python; the loop gets what it returns, in order.
            With errors="skip", batches that it raises an error for are left out and counted.
        map_threads: Threads for `map`; as many batches are mapped ahead.
        return_index: Whether each batch has the samples' indices in the data as its third tensor; `name_of` has their files.
        image_key, label_key: Names of the TFRecord features with image and label, if they are not found by themselves.
        max_sample_size: Largest file or record to read, in bytes. Larger ones fail.

    Raises:
        FileNotFoundError, PermissionError, OSError: The data cannot be read.
        ValueError: A value is out of range, or there are no images.
        SampleError: During iteration, a sample cannot be decoded.
    """

    def __init__(
        self,
        data: Path | Sequence[Path],
        *,
        batch_size: int,
        image_size: int | tuple[int, int] | None = None,
        train: bool = False,
        seed: int = 0,
        threads: int | str = "auto",
        prefetch: int = 2,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool | None = None,
        layout: str = "NCHW",
        dtype: str = "float32",
        normalize: str | tuple[Sequence[float], Sequence[float]] | None = None,
        output: str | None = None,
        shuffle: bool | None = None,
        crop: str | None = None,
        crop_scale: tuple[float, float] = (0.08, 1.0),
        crop_ratio: tuple[float, float] = (3 / 4, 4 / 3),
        resize: int | None = None,
        flip: float | None = None,
        jitter: Sequence[float | tuple[float, float]] | None = None,
        antialias: bool = True,
        errors: str = "raise",
        device: Any = None,
        map: Callable[[Any], Any] | None = None,
        map_threads: int = 2,
        return_index: bool = False,
        image_key: str | None = None,
        label_key: str | None = None,
        max_sample_size: int = 256 << 20,
    ) -> None:
        self._return_index = return_index
        shuffled = train if shuffle is None else bool(shuffle)
        settings = {
            "common": common(
                paths(data), batch_size=batch_size, seed=seed, shuffle=shuffled, threads=threads, prefetch=prefetch, rank=rank,
                world_size=world_size, drop_last=train if drop_last is None else bool(drop_last), errors=errors, device=device,
                map=map, map_threads=map_threads,
            ),
            "size": _size(image_size),
            "dtype": dtype,
            "layout": layout,
            "crop": crop or ("random" if train else "usual"),
            "scale": crop_scale,
            "ratio": crop_ratio,
            "resize": resize,
            "flip": (0.5 if train else 0.0) if flip is None else float(flip),
            "jitter": _jitter(jitter),
            "antialias": antialias,
            "normalize": _normalize(normalize),
            "image_key": image_key,
            "label_key": label_key,
            "max_sample_size": count("max_sample_size", max_sample_size, 1),
        }  # fmt: skip
        super().__init__(
            seed=seed, shuffle=shuffled, errors=errors, output=output, device=device, map=map, map_threads=map_threads
        )
        self._feed: Images = Images(settings)

    def _chosen(self, batch: Any) -> Any:
        return batch if self._return_index else batch[:2]

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by label; empty if the data has none."""
        return self._feed.classes

    def augmentation(self, index: int, epoch: int, width: int, height: int) -> dict[str, Any]:
        """What sample `index` shows in `epoch`, of an image of `width` times `height` pixels.

        Returns a dict of `crop` (left, top, width, height), `resized` (width and height that the crop is resized to),
        `offset` (corner of the sample in the resized crop), `flipped`, and `colors`: the changes by `jitter` in their order, as
        pairs of "brightness", "contrast", "saturation" or "hue" and a factor.
        """
        crop, resized, offset, flipped = self._feed.view(index, epoch, (width, height))
        colors = self._feed.tints(index, epoch)
        return {"crop": crop, "resized": resized, "offset": offset, "flipped": flipped, "colors": colors}

    def __repr__(self) -> str:
        width, height = self._feed.size
        return f"ImageLoader({self.n_samples} samples from {self._feed.packing}, {width}x{height}, {len(self)} batches)"


def _size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    width, height = (size, size) if isinstance(size, int) else size
    return min(count("image_size", width, 1), 1 << 31), min(count("image_size", height, 1), 1 << 31)


def _normalize(normalize: Any) -> tuple[list[float], list[float]] | None:
    if normalize is None:
        return None
    if isinstance(normalize, str):
        if normalize not in _NORMALIZE:
            raise ValueError(f"normalize={normalize!r} is not one of {', '.join(_NORMALIZE)}, and no (mean, std)")
        normalize = _NORMALIZE[normalize]
    mean, std = ([float(value) for value in part] for part in normalize)
    if len(mean) != 3 or len(std) != 3:
        raise ValueError("normalize is (mean, std) with three numbers each: red, green, blue")
    return mean, std


def _jitter(jitter: Any) -> list[tuple[float, float] | None] | None:
    if jitter is None:
        return None
    if len(jitter) != 4:
        raise ValueError("jitter is (brightness, contrast, saturation, hue)")
    ranges: list[tuple[float, float] | None] = []
    for place, value in enumerate(jitter):
        middle = 0.0 if place == 3 else 1.0
        if not isinstance(value, (int, float)):
            low, high = (float(end) for end in value)
        elif value < 0:
            raise ValueError(f"jitter has a negative number, {value}: give a range (low, high)")
        else:
            low, high = middle - value, middle + value
            low = low if place == 3 else max(low, 0.0)
        # As in torchvision, a range that holds only what changes nothing is not drawn from.
        ranges.append(None if low == high == middle else (low, high))
    return ranges if any(ranges) else None
