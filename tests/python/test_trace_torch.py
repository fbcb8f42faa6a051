"""`forebay trace` on jobs of PyTorch: loaders with and without workers, killed workers, checkpoints; and planted causes."""

from pathlib import Path

import pytest
from traced import FILE_BYTES, N_FILES, traced  # noqa: F401

TRAIN = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

class Files(Dataset):
    def __init__(self, decode_s, n):
        self.decode_s, self.n = decode_s, n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        with open(f"data/{i % 20:02}.bin", "rb", buffering=0) as file:
            found = file.read()
        busy(self.decode_s)
        return torch.frombuffer(bytearray(found[:400]), dtype=torch.uint8).float()

if __name__ == "__main__":
    workers, how, decode_s, compute_s, epochs, n = int(sys.argv[1]), sys.argv[2], *map(float, sys.argv[3:5]), *map(int, sys.argv[5:7])
    torch.set_num_threads(1)
    model = torch.nn.Linear(400, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    context = how if workers else None
    for epoch in range(epochs):
        for batch in DataLoader(Files(decode_s, n), batch_size=4, num_workers=workers, multiprocessing_context=context):
            model(batch).pow(2).mean().backward()
            optimizer.step()
            time.sleep(compute_s)
    torch.save(model.state_dict(), "model.pt")
    torch.load("model.pt")
"""


@pytest.mark.parametrize(("workers", "how"), [(0, "none"), (2, "fork"), (2, "spawn"), (4, "fork")])
def test_a_loader_has_every_byte_step_and_fetch(traced, tmp_path: Path, workers: int, how: str) -> None:
    found = traced(TRAIN, workers, how, 0.0, 0.0, 2, N_FILES)
    data = found.below(tmp_path / "data")
    assert (data["opens"], data["bytes_read"]) == (2 * N_FILES, 2 * N_FILES * FILE_BYTES)
    assert found.totals["steps"] == 2 * N_FILES // 4
    fetch = found.cell["fetch"]
    assert (fetch["batches"], fetch["samples"], fetch["workers"]) == (10, 40, 2 * workers)
    assert found.saves() == [False, True]
    assert found.cell["saves"][0]["bytes"] > 400 * 2 * 4
    assert 0 < found.totals["wait_s"] <= found.totals["loop_s"]


def test_a_loader_that_decodes_is_told_from_one_without_prefetch_and_from_one_that_computes(traced, tmp_path: Path) -> None:
    found = traced(TRAIN, 1, "fork", 0.05, 0.0, 1, 40)
    assert found.cell["limit"]["name"] in ["decode", "threads"], found.cell["verdict"]


def test_without_workers_and_with_computing_to_hide_behind_prefetch_is_missing(traced, tmp_path: Path) -> None:
    found = traced(TRAIN, 0, "none", 0.01, 0.1, 1, 40)
    assert (found.cell["limit"]["name"], found.cell["lever"]["name"]) == ("prefetch", "prefetch"), found.cell["verdict"]


def test_a_loop_that_computes_is_its_own_limit(traced, tmp_path: Path) -> None:
    found = traced(TRAIN, 0, "none", 0.0, 0.3, 1, 40)
    assert (found.cell["limit"]["name"], found.cell["lever"]["name"]) == ("accelerator", "none"), found.cell["verdict"]


def test_many_metadata_calls_are_named(traced, tmp_path: Path) -> None:
    script = TRAIN.replace("        busy(self.decode_s)\n", "        import os\n        for _ in range(3000): os.stat(\"data/00.bin\")\n")
    found = traced(script, 1, "fork", 0.0, 0.0, 1, 400)
    rule = next(rule for rule in found.cell["rules"] if rule["id"] == "R5")
    assert rule["applies"], rule
