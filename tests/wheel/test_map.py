"""A Python function on every batch, in threads."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import forebay

Make = Callable[..., forebay.ImageLoader]


def test_results_come_in_order_from_threads(loader: Make) -> None:
    seen = set()

    def slow(batch: tuple[np.ndarray, ...]) -> tuple[int, str]:
        seen.add(threading.current_thread().name)
        time.sleep(0.03 if batch[2][0] % 8 == 0 else 0.001)
        return int(batch[2][0]), batch[0].sum().item()

    plain = [(int(indices[0]), images.sum().item()) for images, _, indices in loader(return_index=True)]
    made = loader(return_index=True, map=slow, map_threads=3)
    assert list(made) == plain and list(made) == plain
    assert len(seen) > 1 and all(name.startswith("forebay:map") for name in seen)
    assert made.stats()["copied_batches"] == 0


def test_threads_work_at_the_same_time(loader: Make) -> None:
    together = threading.Barrier(3, timeout=20)
    made = loader(map=lambda batch: together.wait() >= 0, map_threads=3)
    assert len(made) == 6 and list(made) == [True] * 6


def test_errors_are_raised_or_counted(loader: Make) -> None:
    def odd(batch: tuple[np.ndarray, ...]) -> int:
        first = int(batch[2][0])
        if first in (8, 16):
            raise KeyError(f"batch {first}")
        return first

    with pytest.raises(KeyError, match="batch 8"):
        list(loader(return_index=True, map=odd))
    made = loader(return_index=True, map=odd, errors="skip")
    assert list(made) == [0, 4, 12, 20] and made.stats()["map_failed"] == 2
    with pytest.raises(TypeError, match="map is a function"):
        loader(map=3)
    with pytest.raises(ValueError, match="map_threads is at least 1"):
        loader(map=odd, map_threads=0)


def test_the_place_is_that_of_the_batch_that_the_loop_got(loader: Make, photos: Path) -> None:
    def make() -> forebay.ImageLoader:
        return loader(return_index=True, shuffle=True, map=lambda batch: batch[2].tolist(), map_threads=4)

    whole = list(make())
    stopped = make()
    for number, _ in enumerate(stopped, 1):
        if number == 2:
            break
    state = stopped.state_dict()
    assert state["samples_taken"] == 8 and stopped.epoch == 0
    resumed = make()
    resumed.load_state_dict(state)
    assert list(resumed) == whole[2:] and resumed.epoch == 1
    assert list(stopped) != whole, "the next epoch"


def test_no_threads_are_left(loader: Make) -> None:
    made = loader(map=lambda batch: 1)
    for _ in made:
        break
    list(made)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("forebay:map")]
