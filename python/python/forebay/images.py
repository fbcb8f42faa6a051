"""The loader of images."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import frameworks
from ._forebay import Images

_STATE_VERSION = 1
_NORMALIZE = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}

Path = str | os.PathLike[str]


class ImageLoader:
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
        antialias: Whether reductions are filtered, as torchvision and Pillow do. False gives TensorFlow's pixels.
        errors: "raise" to raise the error of a sample that cannot be read or decoded; "skip" to leave it out and count it in
            `stats()`.
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
        antialias: bool = True,
        errors: str = "raise",
        return_index: bool = False,
        image_key: str | None = None,
        label_key: str | None = None,
        max_sample_size: int = 256 << 20,
    ) -> None:
        if errors not in ("raise", "skip"):
            raise ValueError(f'errors={errors!r} is neither "raise" nor "skip"')
        if output is not None and output not in frameworks.names():
            raise ValueError(f"output={output!r} is not one of {', '.join(frameworks.names())}")
        self._output = output
        self._return_index = return_index
        self._seed = _count("seed", seed, 0)
        self._shuffle = train if shuffle is None else bool(shuffle)
        self._images = Images(
            {
                "data": _paths(data),
                "batch_size": _count("batch_size", batch_size, 1),
                "size": _size(image_size),
                "dtype": dtype,
                "layout": layout,
                "crop": crop or ("random" if train else "usual"),
                "scale": crop_scale,
                "ratio": crop_ratio,
                "resize": resize,
                "flip": (0.5 if train else 0.0) if flip is None else float(flip),
                "antialias": antialias,
                "normalize": _normalize(normalize),
                "seed": self._seed,
                "shuffle": self._shuffle,
                "threads": _threads(threads),
                "prefetch": _count("prefetch", prefetch, 0),
                "rank": _count("rank", rank, 0),
                "world_size": _count("world_size", world_size, 1),
                "drop_last": train if drop_last is None else bool(drop_last),
                "skip_errors": errors == "skip",
                "image_key": image_key,
                "label_key": label_key,
                "max_sample_size": _count("max_sample_size", max_sample_size, 1),
            }
        )

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._images.batches_per_epoch()

    def __iter__(self) -> Iterator[Any]:
        """An epoch: the next one, or what is left of the one whose state was loaded."""
        return self._batches(self._output or frameworks.usual())

    def torch(self) -> Iterator[Any]:
        """An epoch as torch tensors."""
        return self._batches("torch")

    def numpy(self) -> Iterator[Any]:
        """An epoch as NumPy arrays."""
        return self._batches("numpy")

    def jax(self) -> Iterator[Any]:
        """An epoch as JAX arrays."""
        return self._batches("jax")

    def tf(self) -> Iterator[Any]:
        """An epoch as TensorFlow tensors."""
        return self._batches("tf")

    def _batches(self, framework: str) -> Iterator[Any]:
        convert, images = frameworks.converter(framework), self._images
        run = images.begin()
        try:
            while (batch := images.next(run)) is not None:
                if self._return_index:
                    yield convert(batch[0]), convert(batch[1]), convert(batch[2])
                else:
                    yield convert(batch[0]), convert(batch[1])
        finally:
            images.end(run)

    @property
    def n_samples(self) -> int:
        """Samples of the data, over all ranks."""
        return self._images.n_samples

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by label; empty if the data has none."""
        return self._images.classes

    @property
    def notes(self) -> list[str]:
        """What was noticed about the data: files left out, damaged shards."""
        return self._images.notes

    @property
    def epoch(self) -> int:
        """The epoch that is being iterated, or the next one."""
        return self._images.place()[0]

    def name_of(self, index: int) -> str:
        """The file of a sample, by its index in the data; with the offset in a shard."""
        return self._images.name_of(index)

    def augmentation(self, index: int, epoch: int, width: int, height: int) -> dict[str, Any]:
        """What sample `index` shows in `epoch`, of an image of `width` times `height` pixels.

        Returns a dict of `crop` (left, top, width, height), `resized` (width and height that the crop is resized to),
        `offset` (corner of the sample in the resized crop) and `flipped`.
        """
        crop, resized, offset, flipped = self._images.view(index, epoch, (width, height))
        return {"crop": crop, "resized": resized, "offset": offset, "flipped": flipped}

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch, small and made of plain values.

        It holds for any number of threads, any batch size and any number of ranks, if all ranks have taken the same number
        of batches and no sample was skipped. Where samples were skipped, each rank loads its own state.
        """
        epoch, taken = self._images.place()
        return {
            "version": _STATE_VERSION,
            "epoch": epoch,
            "samples_taken": taken,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "data": self._images.fingerprint(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a place: the next `for` begins with the next sample after it.

        Raises:
            ValueError: The state is of other data, another seed or another order.
        """
        ours = self.state_dict()
        missing = [key for key in ours if key not in state]
        if missing:
            raise ValueError(f"not a state of an ImageLoader: it has no {', '.join(missing)}")
        if state["version"] != _STATE_VERSION:
            raise ValueError(f"the state has version {state['version']}; this forebay reads version {_STATE_VERSION}")
        for key, said in (
            ("data", "the state is of other data: the names, labels or order of the samples differ"),
            ("seed", f"the state is of seed {state['seed']}; this loader has seed {ours['seed']}"),
            ("shuffle", f"the state has shuffle={state['shuffle']}; this loader has shuffle={ours['shuffle']}"),
        ):
            if state[key] != ours[key]:
                raise ValueError(said)
        self._images.set_place(int(state["epoch"]), int(state["samples_taken"]))

    def stats(self) -> dict[str, Any]:
        """What the running epoch has done, or the last one did.

        Keys: `batches`, `samples`, `failed` and `failures` (file, reason), `bytes_read`, `threads`, `wall_s`, `wait_s`
        (seconds that the loop waited), `wait_by_cause_s` (the same seconds by cause: "storage", "decode", "threads" for too
        few of them, "prefetch" for too little of it, "cores", "order", "other"), `first_batch_s`, `copied_batches` (batches
        that were copied because the program keeps many).
        """
        return self._images.stats()

    def __repr__(self) -> str:
        width, height = self._images.size
        return f"ImageLoader({self.n_samples} samples from {self._images.packing}, {width}x{height}, {len(self)} batches)"

    def __reduce__(self) -> Any:
        raise TypeError("a loader has threads and cannot be pickled: make it in the process that uses it")


def _paths(data: Path | Sequence[Path]) -> list[str]:
    several = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    return [os.fspath(path) for path in several]


def _count(name: str, value: int, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if not least <= number < 1 << 63:
        raise ValueError(f"{name} is at least {least}, not {number}")
    return number


def _size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    width, height = (size, size) if isinstance(size, int) else size
    return min(_count("image_size", width, 1), 1 << 31), min(_count("image_size", height, 1), 1 << 31)


def _threads(threads: int | str) -> int:
    if isinstance(threads, str):
        if threads != "auto":
            raise ValueError(f'threads is a number or "auto", not {threads!r}')
        return 0
    return _count("threads", threads, 1)


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
