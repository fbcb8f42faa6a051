"""A traced job of PyTorch, played again without PyTorch: the same calls and bytes, and nearly the same share of waiting."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Forebay
from test_trace_torch import TRAIN
from traced import FILE_BYTES, N_FILES, Traced, traced  # noqa: F401

BIG = 4_000_000
STATS = "        busy(self.decode_s)\n        import os\n        for _ in range(3000): os.stat(\"data/00.bin\")\n"
JOBS = {
    "decode": (TRAIN, (1, "fork", 0.01, 0.02, 2, 40)),
    "prefetch": (TRAIN, (0, "none", 0.01, 0.06, 2, 40)),
    "metadata": (TRAIN.replace("        busy(self.decode_s)\n", STATS), (1, "fork", 0.0, 0.02, 2, 40)),
    # Once through files that are not in memory.
    "storage": (TRAIN, (1, "fork", 0.0, 0.002, 1, 20)),
}


@pytest.fixture
def played(forebay: Forebay, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Plays the traced job again; returns the cell with the notes."""

    def run(*flags: object) -> dict[str, Any]:
        (tmp_path / "mine.toml").write_text(forebay("workload", "import", "--from-trace", "traced").stdout)
        forebay("workload", "run", "mine.toml", "--data", "data", "--json", "played.json", *flags)
        record = json.loads((tmp_path / "played.json").read_text())
        return record["cells"][0] | {"notes": record["notes"]}

    return run


def shares(cell: dict[str, Any]) -> tuple[float, float]:
    """How far waiting and computing are from those of the traced job, as shares of the loop."""
    said = re.search(r"waited ([\d.]+) % and computed ([\d.]+) %; the traced job ([\d.]+) % and ([\d.]+) %", " ".join(cell["notes"]))
    assert said, cell["notes"]
    waited, computed, *traced = (float(share) / 100 for share in said.groups())
    assert waited == pytest.approx(cell["wait_s"] / cell["wall_s"], abs=0.001) and computed == pytest.approx(cell["au_epoch"], abs=0.001)
    return abs(waited - traced[0]), abs(computed - traced[1])


@pytest.mark.parametrize("cause", JOBS)
def test_a_planted_cause_comes_back(traced, played, tmp_path: Path, cause: str) -> None:
    script, words = JOBS[cause]
    flags: tuple[object, ...] = ()
    if cause == "storage":
        for file in (tmp_path / "data").iterdir():
            file.write_bytes(os.urandom(BIG))
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        flags = ("--cold",)
    found = traced(script, *words)
    # Another program may take the cores while either runs; a replay that is right comes near in one of three.
    for _ in range(3):
        cell = played(*flags)
        off = shares(cell)
        if max(off) <= 0.05:
            break
    assert max(off) <= 0.05, (off, cell["notes"])
    data = found.below(tmp_path / "data")
    assert abs(cell["bytes_moved"] - data["bytes_read"]) <= 0.01 * data["bytes_read"]
    assert cell["steps"] == found.totals["steps"]


def test_calls_of_a_replay_are_those_of_the_job(traced, played, forebay: Forebay, binary: Path, tmp_path: Path) -> None:
    found = traced(TRAIN, 2, "fork", 0.0, 0.0, 2, N_FILES).below(tmp_path / "data")
    cell = played()
    assert cell["read_threads"] == 2 and cell["prefetch"] == 4, "as the hook marked them"
    assert cell["samples"] == 2 * N_FILES
    forebay("trace", "--out", "again", "--", binary, "workload", "run", "mine.toml", "--data", "data", "--checkpoint-dir", "saves")
    again = Traced(tmp_path / "again").below(tmp_path / "data")
    assert (again["reads"], again["bytes_read"]) == (found["reads"], found["bytes_read"])
    assert found["bytes_read"] == 2 * N_FILES * FILE_BYTES
    assert again["opens"] == found["opens"] + N_FILES, "each file is opened once more, to see how much of it is cached"
