"""Batches on a GPU: their values, their order against torch's streams, their memory. `cargo xtask torch` runs this where there is
a GPU; `compute-sanitizer python -m pytest tests/cuda` looks for uses of memory that was given back.
"""

import gc
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision

import forebay

DEVICE = torch.device("cuda:0")
N = 512


@pytest.fixture(scope="session")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Rows of 600 KB that say which row they are, and their labels."""
    folder = tmp_path_factory.mktemp("arrays")
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (N, 3, 224, 224))
    x[:] = np.arange(N, dtype=np.float32)[:, None, None, None]
    x.flush()
    np.save(folder / "y.npy", np.arange(N))
    return {"x": folder / "x.npy", "y": folder / "y.npy"}


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs of noise, in blocks that survive compression."""
    folder = tmp_path_factory.mktemp("photos")
    random_ = torch.Generator().manual_seed(3)
    for number in range(96):
        (folder / str(number % 3)).mkdir(exist_ok=True)
        small = torch.randint(0, 256, (3, 12 + number % 9, 15), dtype=torch.uint8, generator=random_)
        image = small.repeat_interleave(16, 1).repeat_interleave(16, 2).contiguous()
        torchvision.io.write_jpeg(image, str(folder / str(number % 3) / f"{number}.jpg"))
    return folder


def rows(path: Path, **settings: Any) -> forebay.ArrayLoader:
    return forebay.ArrayLoader(path, **{"batch_size": 32, "output": "torch", "device": "cuda:0", **settings})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_images_are_those_of_the_host(photos: Path, dtype: str) -> None:
    def make(**settings: Any) -> forebay.ImageLoader:
        return forebay.ImageLoader(photos, batch_size=16, image_size=128, train=True, dtype=dtype, output="torch", **settings)

    host, device = make(), make(device="cuda:0")
    for _ in range(3):
        n = 0
        for (ours, labels), (theirs, wanted) in zip(device, host, strict=True):
            assert ours.device == labels.device == DEVICE and ours.dtype == theirs.dtype
            assert torch.equal(ours.cpu(), theirs) and torch.equal(labels.cpu(), wanted)
            n += len(labels)
        assert n == 96
    assert device.stats()["copied_batches"] == 0


def test_several_fields_and_tokens_arrive(arrays: dict[str, Path], tmp_path: Path) -> None:
    for batch in rows(arrays, shuffle=True):
        assert batch["x"].device == batch["y"].device == DEVICE
        assert torch.equal(batch["x"][:, 0, 0, 0].long(), batch["y"]) and torch.equal(batch["x"].amax((1, 2, 3)).long(), batch["y"])
    tokens = np.random.default_rng(0).integers(0, 60_000, 100_001, dtype=np.uint16)
    tokens.tofile(tmp_path / "a.bin")
    loader = forebay.TokenLoader(tmp_path / "a.bin", length=100, batch_size=50, device="cuda")
    found = torch.cat([inputs.flatten() for inputs, _ in loader]).cpu()
    assert torch.equal(found, torch.from_numpy(tokens[:100_000].astype(np.int64)))


def test_a_batch_may_be_used_at_once_on_the_current_stream(arrays: dict[str, Path]) -> None:
    """The side stream is kept busy, so a loop that did not wait for it would read what was there before."""
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        sums = []
        with torch.cuda.stream(stream):
            for batch in rows(arrays["x"]):
                torch.cuda._sleep(2_000_000)
                sums.append(batch["data"].double().sum())
                del batch
        stream.synchronize()
        rows_of = np.arange(N).reshape(-1, 32).sum(1) * 3 * 224 * 224
        assert [int(total) for total in sums] == rows_of.tolist()


def test_kept_batches_stay_and_others_are_given_back(arrays: dict[str, Path]) -> None:
    random.seed(1)
    kept: list[tuple[torch.Tensor, int]] = []
    peaks = []
    for _ in range(20):
        loader = rows(arrays, shuffle=True, seed=random.randrange(100), prefetch=random.randrange(4))
        for number, batch in enumerate(loader):
            batch["x"].add_(1)
            if random.random() < 0.1:
                kept.append((batch["x"], int(batch["y"].sum())))
                kept = kept[-6:]
            if random.random() < 0.02:
                break
            assert number < 16
        del batch, loader
        gc.collect()
        for x, total in kept:
            assert int((x[:, 0, 0, 0] - 1).sum()) == total
        peaks.append(torch.cuda.memory_allocated())
        assert peaks[-1] <= (len(kept) + 2) * 32 * 3 * 224 * 224 * 4 + (8 << 20)
    assert torch.cuda.memory_reserved() < 2 << 30


def test_copies_run_while_a_batch_is_used(arrays: dict[str, Path]) -> None:
    """Prints the waits; copies that were not hidden would add to every step."""

    def steps(batches: Iterator[Any]) -> float:
        start = time.perf_counter()
        for batch in batches:
            torch.cuda._sleep(20_000_000)
            batch["data"].sum().item()
        return time.perf_counter() - start

    held = next(iter(rows(arrays["x"])))
    steps(iter([held]))
    alone = steps(iter([held] * 16))
    for _ in range(2):
        fed = steps(iter(rows(arrays["x"])))
    print(f"16 steps on one batch: {alone:.3f} s; fed by a loader: {fed:.3f} s ({fed / alone:.2f}x)")
    assert fed < 2 * alone


def test_errors_and_devices_that_are_not_there(arrays: dict[str, Path]) -> None:
    with pytest.raises(RuntimeError, match="device='cuda:99' is not there: torch finds"):
        rows(arrays["x"], device="cuda:99")
    with pytest.raises(ValueError, match="CUDA devices only"):
        rows(arrays["x"], device="meta")
    with pytest.raises(ValueError, match='is for output="torch"'):
        rows(arrays["x"], output="numpy")

    def fails(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if int(batch["data"][0, 0, 0, 0]) == 64:
            raise KeyError("batch 2")
        return batch

    seen = []
    with pytest.raises(KeyError, match="batch 2"):
        for batch in rows(arrays["x"], map=fails):
            assert batch["data"].device == DEVICE
            seen.append(int(batch["data"][0, 0, 0, 0]))
    assert seen == [0, 32]
