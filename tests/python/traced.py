"""Runs a job under `forebay trace` and reads its record."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Forebay

N_FILES, FILE_BYTES = 20, 30_000


class Traced:
    """The record of a job, with what tests ask of it."""

    def __init__(self, folder: Path) -> None:
        self.cell: dict[str, Any] = json.loads((folder / "record.json").read_text())["cells"][0]
        self.totals: dict[str, Any] = self.cell["totals"]

    def below(self, folder: Path) -> dict[str, Any]:
        """Sums over the files in a folder."""
        return next(found for found in self.cell["folders"] if found["name"] == str(folder.resolve()))

    def named(self, end: str) -> dict[str, Any]:
        """The file whose path ends so."""
        return next(file for file in self.cell["files"] if file["name"].endswith(end))

    def saves(self) -> list[bool]:
        """Of each checkpoint, whether it was restored."""
        return [save["is_restore"] for save in self.cell["saves"]]


@pytest.fixture
def traced(forebay: Forebay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a script in a folder with twenty files of 30,000 bytes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for i in range(N_FILES):
        (tmp_path / "data" / f"{i:02}.bin").write_bytes(os.urandom(FILE_BYTES))

    def run(script: str, *words: object) -> Traced:
        (tmp_path / "job.py").write_text(script)
        forebay("trace", "--out", "traced", "--", sys.executable, "job.py", *words)
        found = Traced(tmp_path / "traced")
        assert found.totals["lost_events"] == 0
        assert found.cell["kept_every"] == 1
        # What the kernel counted is what was seen, but for the loader of programs.
        read = found.cell["read"]
        unseen = read["kernel"] - read["calls"] - read["other"]
        assert abs(unseen) < 0.05 * read["kernel"] + 2_000_000, read
        return found

    return run
