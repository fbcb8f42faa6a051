"""The loaders of arrays and of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._forebay import Arrays, Tokens
from .loader import Loader, Path, common, count, paths


class ArrayLoader(Loader):
    """Batches of rows of arrays: npy, npz, Parquet, and HDF5 where it is built in.

    The first side of every array counts samples. A batch is a dict of the fields by name. Uncompressed values are read row by
    row from any place of a file, so files may be larger than memory. Compressed ones (deflated npz members, HDF5 chunks,
    Parquet row groups) are decoded piece by piece; with `shuffle`, pieces then come in random order, two in turns, and
    their rows are mixed in a window of 4,096.

    With one field, a batch is an array without gaps. With several, the fields of a sample lie together and each array is a
    strided view; `contiguous()` of torch or `numpy.ascontiguousarray` copy it. For JAX and TensorFlow, it is copied.

    Args:
        data: A file, a folder of files of one kind, or several files, whose rows follow each other; or a dict from names to
            such, for arrays in files of their own: `{"x": "x.npy", "y": "y.npy"}`. The array of an npy file is named `data`.
        batch_size: Samples per batch.
        fields: Names of the arrays or columns to read; all if not given. HDF5 names may be paths, such as "train/x".
        shuffle: Whether the order is random, new in each epoch.
        seed: Seed of the order.
        threads: Threads that read and decode. "auto" adds threads as long as more help, during the first epoch.
        prefetch: Batches prepared ahead of the loop.
        rank, world_size: The part of this rank. The parts are disjoint and cover the data.
        drop_last: Whether samples that make no full batch are left out; every rank then has the same number of batches.
        output: "torch", "numpy", "jax" or "tf"; by default torch if it is installed, else numpy.
        errors: "raise", or "skip" to leave out samples that cannot be read and count them.
        device, map, map_threads: As for `ImageLoader`.

    Raises:
        FileNotFoundError, PermissionError, OSError: The data cannot be read.
        ValueError: A value is out of range, a field is not there, or arrays do not fit together.
        SampleError: During iteration, a sample cannot be decoded.
    """

    def __init__(
        self,
        data: Path | Sequence[Path] | Mapping[str, Path | Sequence[Path]],
        *,
        batch_size: int,
        fields: Sequence[str] | None = None,
        shuffle: bool = False,
        seed: int = 0,
        threads: int | str = "auto",
        prefetch: int = 2,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        output: str | None = None,
        errors: str = "raise",
        device: Any = None,
        map: Callable[[Any], Any] | None = None,
        map_threads: int = 2,
    ) -> None:
        columns = None
        if isinstance(data, Mapping):
            if fields is not None:
                raise ValueError("fields are the names of the dict: give one or the other")
            columns = [(str(name), paths(files)) for name, files in data.items()]
            data = [path for _, files in columns for path in files]
        if isinstance(fields, str):
            raise TypeError(f"fields is a list of names: [{fields!r}]")
        settings = {
            "common": common(
                paths(data), batch_size=batch_size, seed=seed, shuffle=bool(shuffle), threads=threads, prefetch=prefetch,
                rank=rank, world_size=world_size, drop_last=bool(drop_last), errors=errors, device=device, map=map,
                map_threads=map_threads,
            ),
            "columns": columns,
            "fields": None if fields is None else [str(name) for name in fields],
        }  # fmt: skip
        super().__init__(
            seed=seed, shuffle=bool(shuffle), errors=errors, output=output, device=device, map=map, map_threads=map_threads
        )
        self._feed: Arrays = Arrays(settings)

    @property
    def fields(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and shape of each field in one sample, by name."""
        return {name: (dtype, tuple(shape)) for name, dtype, shape in self._feed.fields}

    def __repr__(self) -> str:
        return f"ArrayLoader({self.n_samples} samples of {', '.join(self.fields)}, {len(self)} batches)"


class TokenLoader(Loader):
    """Batches of token sequences for language models, as pairs of inputs and targets.

    The tokens of a file are one stream: documents, one after the other, with whatever the tokeniser put between them. It is
    packed into sequences of `length` tokens without padding; the targets are the tokens one later. What does not fill a
    sequence at the end of a file is left out. Inputs and targets are two views of the same memory.

    With `shuffle`, blocks of neighbouring sequences come in random order, and sequences are mixed among eight blocks, so
    that a disk reads runs of neighbours. An order takes four bytes of memory per sequence, whatever the files hold.

    Args:
        data: A token file, several, or a folder of `.bin` and `.npy` files. `.bin` files hold nothing but tokens.
        length: Tokens of a sequence.
        batch_size: Sequences per batch.
        stored: Type of the tokens in files without a header: "uint8", "uint16", "uint32", "int32" or "int64".
        dtype: Type of the tokens in a batch: "int64" or "int32".
        block: Neighbouring sequences that stay together when blocks are shuffled.
        shuffle, seed, threads, prefetch, rank, world_size, drop_last, output, errors, device, map, map_threads: As for
            `ArrayLoader`.

    Raises:
        FileNotFoundError, PermissionError, OSError: The data cannot be read.
        ValueError: A value is out of range, or the files hold no whole sequence.
    """

    def __init__(
        self,
        data: Path | Sequence[Path],
        *,
        length: int,
        batch_size: int,
        stored: str = "uint16",
        dtype: str = "int64",
        block: int = 256,
        shuffle: bool = False,
        seed: int = 0,
        threads: int | str = "auto",
        prefetch: int = 2,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = True,
        output: str | None = None,
        errors: str = "raise",
        device: Any = None,
        map: Callable[[Any], Any] | None = None,
        map_threads: int = 2,
    ) -> None:
        settings = {
            "common": common(
                paths(data), batch_size=batch_size, seed=seed, shuffle=bool(shuffle), threads=threads, prefetch=prefetch,
                rank=rank, world_size=world_size, drop_last=bool(drop_last), errors=errors, device=device, map=map,
                map_threads=map_threads,
            ),
            "stored": stored,
            "dtype": dtype,
            "length": count("length", length, 1),
            "block": count("block", block, 1),
        }  # fmt: skip
        super().__init__(
            seed=seed, shuffle=bool(shuffle), errors=errors, output=output, device=device, map=map, map_threads=map_threads
        )
        self._length = length
        self._feed: Tokens = Tokens(settings)

    def __repr__(self) -> str:
        return f"TokenLoader({self.n_samples} sequences of {self._length} tokens, {len(self)} batches)"
