"""One measurement: who, what, on which data, with how many workers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

BATCH = 64
PREFETCH_BATCHES = 2

Epoch = Callable[[], Iterator[int]]
"""Starts one pass over the data and yields the number of samples of each batch as it arrives."""


@dataclass(frozen=True)
class Task:
    """`variant` is one of the peer's settings; see `plan.PEERS`."""

    peer: str
    variant: str
    mode: str
    data: Path
    dataset: str
    threads: int
