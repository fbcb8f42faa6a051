"""The loader of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._forebay import RecordFeed
from .loader import Loader, Path, common, count, paths


class RecordLoader(Loader):
    """Batches of records from TFRecord or tar shards, or from indexed binary.

    Without `fields`, a batch is a list of whole records: `bytes`, or of a tar sample a dict of the files that it consists of,
    by extension. With `fields`, a batch is a dict by name. Numbers of a fixed shape become arrays; `bytes` of any length
    become a list.

        loader = forebay.RecordLoader("shards", batch_size=64, fields={"x": ("float32", (28, 28)), "label": "int64", "name": bytes})

    Args:
        data: A shard, several, or a folder of shards. The files `NAME.off.idx` and `NAME.sz.idx` beside a file `NAME` make it
            indexed binary, whose offsets and sizes they hold.
        batch_size: Records per batch.
        fields: From the name of a `tf.train.Example` feature, or the extension of a file in tar samples, to what it is: `bytes`,
            a type for one number, or (type, shape). Floats of a feature are "float32", its integers "int64"; its byte strings,
            and files in tar samples, may hold values of any type in little-endian order.
        max_sample_size: Largest record to read, in bytes. Larger ones fail.
        shuffle, seed, threads, prefetch, rank, world_size, drop_last, output, errors, device, map, map_threads: As for
            `ArrayLoader`.

    Raises:
        FileNotFoundError, PermissionError, OSError: The data cannot be read.
        ValueError: A value is out of range, or the records have no names.
        SampleError: During iteration, a record is damaged or lacks a field, or a field has another type or shape.
    """

    def __init__(
        self,
        data: Path | Sequence[Path],
        *,
        batch_size: int,
        fields: Mapping[str, Any] | None = None,
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
        max_sample_size: int = 256 << 20,
    ) -> None:
        settings = {
            "common": common(
                paths(data), batch_size=batch_size, seed=seed, shuffle=bool(shuffle), threads=threads, prefetch=prefetch,
                rank=rank, world_size=world_size, drop_last=bool(drop_last), errors=errors, device=device, map=map,
                map_threads=map_threads,
            ),
            "fields": [(str(name), _numbers(name, what)) for name, what in (fields or {}).items()],
            "max_sample_size": count("max_sample_size", max_sample_size, 1),
        }  # fmt: skip
        super().__init__(
            seed=seed, shuffle=bool(shuffle), errors=errors, output=output, device=device, map=map, map_threads=map_threads
        )
        self._feed: RecordFeed = RecordFeed(settings)

    def __repr__(self) -> str:
        return f"RecordLoader({self.n_samples} records from {self._feed.packing}, {len(self)} batches)"


def _numbers(name: str, what: Any) -> tuple[str, list[int]] | None:
    if what is bytes:
        return None
    if isinstance(what, str):
        return what, []
    if isinstance(what, tuple) and len(what) == 2 and isinstance(what[0], str):
        sides = (what[1],) if isinstance(what[1], int) else what[1]
        return what[0], [count(f"a side of {name}", side, 1) for side in sides]
    raise TypeError(f"{name} is bytes, a type, or (type, shape), not {what!r}")
