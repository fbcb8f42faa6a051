"""One checkpoint of several ranks: each saves its part, and the first commits the manifest when all parts are durable.

A rank's parts lie in `ranks/00001-of-00004`, and `step-000000000100.ranks.json` makes the parts of a step a checkpoint. It is
written, synced and renamed after every part is on the disk, so a crash leaves the previous checkpoints or the new one. Ranks
need a common folder and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import states
from ._forebay import Checkpoint, CheckpointError, Store, Tensor

_NAME = re.compile(r"step-(\d{12})\.ranks\.json")
_POLL_S = 0.02
# How long the first rank waits for the parts of others when it is closed.
_PATIENCE_S = 60.0


class Parts:
    """What `Store` is for one process, for several; see `Checkpointer`."""

    def __init__(self, dirs: Sequence[str], mode: str, keep: int, format: str, rank: int, world_size: int) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} of world_size {world_size} does not exist: ranks count from 0")
        if format != "safetensors":
            raise ValueError(f'a checkpoint of several ranks has the format "safetensors", not {format!r}')
        self._dirs, self._mode, self._keep, self._format = list(dirs), mode, keep, format
        self._rank, self._world_size = rank, world_size
        # A part more than checkpoints are kept: ranks are not at the same step at the same time.
        self._own = Store(self._folders(rank, world_size), mode, keep + 1, format)
        self._failure: BaseException | None = None
        self._commits: list[threading.Thread] = []
        self._closing = threading.Event()
        self._is_ready = False

    def _folders(self, rank: int, world_size: int) -> list[str]:
        return [os.path.join(dir, "ranks", f"{rank:05}-of-{world_size:05}") for dir in self._dirs]

    def _part(self, rank: int, step: int) -> Path:
        return Path(self._folders(rank, self._world_size)[-1]) / f"step-{step:012}"

    def _manifest(self, step: int) -> Path:
        return Path(self._dirs[-1]) / f"step-{step:012}.ranks.json"

    def _prepare(self) -> None:
        """Removes this rank's parts that no manifest ever counted: the same steps come again."""
        committed = self.steps()
        last = committed[-1] if committed else -1
        for folder in self._folders(self._rank, self._world_size):
            for part in Path(folder).glob("step-*"):
                if int(part.name[5:17]) > last:
                    shutil.rmtree(part)
        torch = sys.modules.get("torch")
        if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
            # No rank may count another's part before that one has looked.
            torch.distributed.barrier()
        self._is_ready = True

    def save(self, step: int, metric: float | None, gathered: states.Gathered, notes: Mapping[str, str]) -> None:
        """Saves this rank's part: its shards, and its share of what all ranks have."""
        self._raise()
        if not self._is_ready:
            self._prepare()
        if self._manifest(step).exists() or self._part(self._rank, step).exists():
            raise ValueError(f"step {step} is saved already: several ranks save a step once")
        common = [tensor for tensor in gathered.tensors if tensor[0] not in gathered.shards]
        total, before, mine = max(sum(tensor[4] for tensor in common), 1), 0, set(gathered.shards)
        for tensor in common:
            if min(before * self._world_size // total, self._world_size - 1) == self._rank:
                mine.add(tensor[0])
            before += tensor[4]
        self._own.save(step, metric, [tensor for tensor in gathered.tensors if tensor[0] in mine], notes)
        if self._rank == 0:
            names = [tensor[0] for tensor in common]
            thread = threading.Thread(target=self._commit, args=(step, names), name="forebay:commit", daemon=True)
            self._commits.append(thread)
            thread.start()
        if self._mode == "direct":
            self.wait()

    def _commit(self, step: int, names: list[str]) -> None:
        try:
            self._own.wait()
            parts = [self._part(rank, step) for rank in range(self._world_size)]
            while not all((part / "model.safetensors").exists() for part in parts):
                if self._closing.wait(_POLL_S):
                    missing = [rank for rank, part in enumerate(parts) if not part.exists()]
                    raise TimeoutError(f"step {step} is no checkpoint: ranks {missing} have not saved it")
            saved = set().union(*map(_names_in, parts))
            if absent := [name for name in names if name not in saved]:
                raise CheckpointError(f"step {step}: no rank saved {absent[0]}: the states of the ranks differ in names or sizes")
            for part in parts:
                _sync(part.parent)
            self._write(step)
        except BaseException as error:
            self._failure = error

    def _write(self, step: int) -> None:
        path = self._manifest(step)
        staging = path.with_name(f".staging-{path.name}")
        with open(staging, "w") as file:
            json.dump({"version": 1, "step": step, "world_size": self._world_size}, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(staging, path)
        _sync(path.parent)
        for old in self.steps()[: -self._keep]:
            self._manifest(old).unlink(missing_ok=True)

    def _raise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def wait(self) -> bool:
        """Waits until the last save of this rank is durable; on the first rank, until it is a checkpoint."""
        reached = self._own.wait()
        for thread in self._commits:
            while thread.is_alive():
                thread.join(_POLL_S)
        self._commits.clear()
        self._raise()
        return reached

    def steps(self) -> list[int]:
        """The steps whose manifest is there, oldest first."""
        dir = Path(self._dirs[-1])
        names = [_NAME.fullmatch(path.name) for path in dir.iterdir()] if dir.is_dir() else []
        return sorted(int(name[1]) for name in names if name)

    def restore(self, step: int | None) -> Union:
        """Reads the parts of the newest checkpoint whose parts all verify."""
        steps = self.steps()
        if step is not None:
            steps = [known for known in steps if known == step]
        if not steps:
            wanted = "" if step is None else f" of step {step}"
            raise FileNotFoundError(f"no checkpoint{wanted} of several ranks in {self._dirs[-1]}")
        passed_over: list[str] = []
        for candidate in reversed(steps):
            try:
                world_size = json.loads(self._manifest(candidate).read_text())["world_size"]
                stores = [Store(self._folders(rank, world_size)[-1:], "async", 1, self._format) for rank in range(world_size)]
                own = self._rank if world_size == self._world_size else 0
                return Union([store.restore(candidate) for store in stores], own, passed_over)
            except (CheckpointError, OSError, ValueError, KeyError) as error:
                passed_over.append(f"step {candidate}: {error}")
        raise CheckpointError("no valid checkpoint of several ranks: " + "; ".join(passed_over))

    def close(self) -> None:
        """Finishes the saves in progress. The first rank waits for the parts of the others for a minute."""
        deadline = time.monotonic() + _PATIENCE_S
        try:
            self._own.close()
        finally:
            for thread in self._commits:
                thread.join(max(deadline - time.monotonic(), 0))
            self._closing.set()
            for thread in self._commits:
                thread.join()
            self._commits.clear()
        self._raise()


class Union:
    """The parts of a checkpoint as one, with the interface of `Checkpoint`."""

    def __init__(self, parts: Sequence[Checkpoint], own: int, passed_over: list[str]) -> None:
        self._where: dict[str, tuple[Checkpoint, str, list[int]]] = {}
        self._pieces: dict[str, list[states.Piece]] = {}
        self.notes, self.step, self.passed_over = parts[own].notes, parts[0].step, passed_over
        for part in parts:
            for name, dtype, shape in part.tensors:
                self._where.setdefault(name, (part, dtype, shape))
            for place, piece in states.pieces_of(part).items():
                self._pieces.setdefault(place, []).append(piece)

    @property
    def tensors(self) -> list[tuple[str, str, list[int]]]:
        """Name, type and shape of every tensor that is saved whole, and of every shard."""
        return [(name, dtype, shape) for name, (_, dtype, shape) in self._where.items()]

    def header_of(self, name: str) -> tuple[str, list[int]]:
        """Type and shape of a tensor."""
        return self._where[name][1:]

    def bytes_of(self, name: str) -> Tensor:
        """The bytes of a tensor."""
        return self._where[name][0].bytes_of(name)

    def pieces(self, place: str) -> list[states.Piece]:
        """All shards of a tensor."""
        return self._pieces[place]


def _names_in(part: Path) -> list[str]:
    with open(part / "model.safetensors", "rb") as file:
        return list(json.loads(file.read(int.from_bytes(file.read(8), "little"))))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
