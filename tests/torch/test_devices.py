"""Copies to a device, with streams and events that only count: their order, errors, places. `tests/cuda` has a GPU."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import forebay
from forebay import devices


class Event:
    """A copy that is done when somebody waits for it."""

    def record(self, stream: Any) -> None:
        self.done = False

    def query(self) -> bool:
        return self.done

    def synchronize(self) -> None:
        self.done = True


class Stream:
    waited: list[Event] = []

    def __init__(self, device: Any = None) -> None:
        self.device = device

    def wait_event(self, event: Event) -> None:
        self.waited.append(event)

    def synchronize(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class Cudart:
    locked: dict[int, int] = {}

    def cudaHostRegister(self, address: int, n: int, flags: int) -> int:
        assert address not in self.locked and flags == 0
        self.locked[address] = n
        return 0

    def cudaHostUnregister(self, address: int) -> None:
        del self.locked[address]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(devices, "find", lambda device: torch.device("cpu"))
    for name, value in (("Stream", Stream), ("Event", Event), ("stream", lambda stream: stream)):
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "cudart", Cudart)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
    Stream.waited.clear()
    yield
    assert Cudart.locked == {}, "every ring is unlocked"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.arange(600, dtype=np.int64).reshape(60, 10))
    return tmp_path / "rows.npy"


def test_batches_come_in_order_and_each_is_waited_for(gpu: None, rows: Path) -> None:
    loader = forebay.ArrayLoader(rows, batch_size=4, device="cuda:0", prefetch=3)
    wanted = [batch["data"].clone() for batch in forebay.ArrayLoader(rows, batch_size=4, output="torch")]
    for _ in range(3):
        before = len(Stream.waited)
        for number, batch in enumerate(loader):
            assert torch.equal(batch["data"], wanted[number]) and Cudart.locked
            assert loader.state_dict()["samples_taken"] == (4 * (number + 1)) % 60, "the place of the batch that the loop has"
        assert number == 14 and len(Stream.waited) - before == 15
    assert loader.epoch == 3 and loader.stats()["copied_batches"] == 0


def test_an_early_end_and_a_state_lose_nothing(gpu: None, rows: Path) -> None:
    def firsts(loader: forebay.ArrayLoader) -> list[int]:
        return [int(batch["data"][0, 0]) // 10 for batch in loader]

    settings = {"batch_size": 4, "shuffle": True, "device": "cuda:0"}
    whole = firsts(forebay.ArrayLoader(rows, **settings))
    stopped = forebay.ArrayLoader(rows, **settings)
    for number, _ in enumerate(stopped, 1):
        if number == 6:
            break
    resumed = forebay.ArrayLoader(rows, **settings)
    resumed.load_state_dict(stopped.state_dict())
    assert firsts(resumed) == whole[6:]


def test_an_error_comes_after_the_batches_before_it(gpu: None, rows: Path) -> None:
    def fails(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if int(batch["data"][0, 0]) == 80:
            raise KeyError("third")
        return batch

    seen = []
    with pytest.raises(KeyError, match="third"):
        for batch in forebay.ArrayLoader(rows, batch_size=4, device="cuda:0", map=fails):
            seen.append(int(batch["data"][0, 0]))
    assert seen == [0, 40]


def test_a_device_that_is_not_there_is_named(rows: Path) -> None:
    for device, error, said in (
        ("cuda:99", RuntimeError, "device='cuda:99' is not there: torch finds"),
        ("meta", ValueError, "CUDA devices only"),
        ("gpu", ValueError, "device='gpu' is not a device of torch"),
    ):
        with pytest.raises(error, match=said):
            forebay.ArrayLoader(rows, batch_size=4, device=device)
    assert next(iter(forebay.ArrayLoader(rows, batch_size=4, device="cpu")))["data"].shape == (4, 10)
