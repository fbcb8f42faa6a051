"""Saving and restoring of models, optimisers and loaders."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, MutableMapping
from types import TracebackType
from typing import Any

from . import ranks, states
from ._forebay import Checkpoint, Store

Path = str | os.PathLike[str]


class Checkpointer:
    """Saves named states into a folder, durably, and restores the newest one that verifies.

    A checkpoint is a folder `step-000000000100` with `model.safetensors` and a manifest with checksums. It gets its name last,
    after everything is on the disk, so a crash or a power cut leaves the previous checkpoints or the new one, never a half.
    One process at a time saves to a folder; any number may read.

    Args:
        dir: The folder of the checkpoints; made if missing.
        burst_dir: A folder on a faster disk that is written first and drained to `dir` in the background.
        mode: When `save` returns: "async", once the state is copied in memory; "burst", once it is durable in `burst_dir`;
            "direct", once it is durable in `dir`. "async" if not given.
        keep: Number of newest checkpoints that stay in each folder.
        format: "safetensors", or "tensorflow" for a TensorFlow V2 bundle.
        rank, world_size: With several ranks, each saves its part of one checkpoint: its shards (DTensors of torch, or
            `forebay.Shard`) and its share of the tensors that all have. The first rank makes the parts a checkpoint once all
            are durable. Every rank makes its Checkpointer before any saves, calls `save` for the same steps, and reads `dir`.
    """

    def __init__(
        self,
        dir: Path,
        burst_dir: Path | None = None,
        *,
        mode: str = "async",
        keep: int = 5,
        format: str = "safetensors",
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        dirs = [os.fspath(dir)] if burst_dir is None else [os.fspath(burst_dir), os.fspath(dir)]
        self._dirs = dirs
        self._store: Store | ranks.Parts
        if (rank, world_size) == (0, 1):
            self._store = Store(dirs, mode, int(keep), format)
        else:
            self._store = ranks.Parts(dirs, mode, int(keep), format, rank, world_size)
        # Saves in progress are finished when the program ends or the object goes.
        self._close = weakref.finalize(self, _close_in, os.getpid(), self._store)

    def save(self, step: int, *, metric: float | None = None, **state: Any) -> None:
        """Saves the state of a step: `save(100, model=model, optimizer=optimizer, loader=loader, extra={"seed": 1})`.

        Each keyword is an object with `state_dict()`, or a tensor, or dicts, lists and tuples of tensors and plain values.
        Tensors may be torch's or NumPy's; those on a GPU are copied to the host first, while training waits. A tensor that
        occurs twice is saved once.

        Raises:
            TypeError: A value cannot be saved; the message names its place.
            OSError: The folder cannot be written, or its disk is full.
            CheckpointError: Another process saves there, or an earlier save failed in the background.
        """
        if not state:
            raise ValueError("nothing to save: give model=, optimizer=, loader= or any other name")
        gathered = states.gather({name: _state_of(value) for name, value in state.items()})
        notes = {states.NOTE: gathered.structure}
        if isinstance(self._store, ranks.Parts):
            self._store.save(step, metric, gathered, notes)
            return
        if gathered.shards:
            raise TypeError(f"{min(gathered.shards)} is a part of a tensor: give the Checkpointer rank and world_size")
        self._store.save(step, metric, gathered.tensors, notes)

    def wait(self) -> bool:
        """Waits until the last save is durable in `dir`. False if a newer one replaced it.

        Raises what made that save fail. Ctrl-C ends the wait and not the save.
        """
        return self._store.wait()

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, oldest first. They are not verified."""
        return self._store.steps()

    def restore(self, step: int | None = None, **into: Any) -> Restored:
        """Reads the newest valid checkpoint, or that of a step, into existing objects.

        Each keyword is an object with `load_state_dict`, or dicts and lists of tensors, which are overwritten in place. What
        is not asked for is in the result: `restore(model=model).state("extra")`.

        Raises:
            FileNotFoundError: There is no checkpoint.
            CheckpointError: None of the checkpoints is valid; the message lists their damage.
            ValueError: The checkpoint is of another model; the message names the first tensor that differs. Nothing has been
                changed then.
        """
        restored = Restored(self._read(step))
        found = {name: restored._found(name) for name in into}
        for name, target in into.items():
            states.check(name, _own_state(target), found[name], restored._checkpoint)
        for name, target in into.items():
            if hasattr(target, "load_state_dict"):
                # A module copies the values into its own; an optimiser may keep what it is given.
                built = states.build(found[name], restored._checkpoint, copies=True)
                target.load_state_dict(states.resharded(built, _own_state(target)))
            else:
                built = states.build(found[name], restored._checkpoint, copies=False)
                states.fill(target, states.resharded(built, target), name)
        return restored

    def _read(self, step: int | None) -> Checkpoint | ranks.Union:
        """From checkpoints of one process and of several ranks, the newest."""
        alone, parts = self._store, self._store
        if isinstance(self._store, ranks.Parts):
            alone = Store(self._dirs, "async", 1, "safetensors")
        else:
            parts = ranks.Parts(self._dirs, "async", 1, "safetensors", 0, 1)
        found = {"alone": alone.steps(), "parts": parts.steps()}
        wanted = {kind: [known for known in steps if step in (None, known)] for kind, steps in found.items()}
        newest = max(wanted.values(), key=lambda steps: steps[-1] if steps else -1)
        if newest and newest is wanted["parts"]:
            return parts.restore(step)
        return (alone if newest else self._store).restore(step)

    def close(self) -> None:
        """Finishes the saves in progress and gives up the folder.

        Raises an error that no save has reported. Checkpoints that a burst buffer still holds alone are drained by the next
        program that saves there.
        """
        self._close.detach()
        self._store.close()

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a checkpointer has threads and cannot be pickled: make it in the process that uses it")


class Restored:
    """A checkpoint that was read and verified."""

    def __init__(self, checkpoint: Checkpoint | ranks.Union) -> None:
        structure = checkpoint.notes.get(states.NOTE)
        if structure is None:
            names = ", ".join(name for name, _, _ in checkpoint.tensors[:3])
            raise ValueError(f"the checkpoint was not saved by forebay.Checkpointer (its tensors: {names} …)")
        self._checkpoint = checkpoint
        self._structure = states.parse(structure)

    @property
    def step(self) -> int:
        """The step that it was saved at."""
        return self._checkpoint.step

    @property
    def passed_over(self) -> list[str]:
        """Newer checkpoints that were skipped, with their damage."""
        return self._checkpoint.passed_over

    def __iter__(self) -> Iterator[str]:
        """The names that it was saved with."""
        return iter(self._structure)

    def state(self, name: str) -> Any:
        """What was saved under a name. Tensors use the checkpoint's memory, which stays as long as they do."""
        return states.build(self._found(name), self._checkpoint, copies=False)

    def _found(self, name: str) -> Any:
        if name not in self._structure:
            raise ValueError(f"the checkpoint has no {name!r}, only {', '.join(self._structure)}")
        return self._structure[name]


def _state_of(value: Any) -> Any:
    return value.state_dict() if hasattr(value, "state_dict") else value


def _own_state(target: Any) -> Any:
    if hasattr(target, "load_state_dict"):
        return target.state_dict() if hasattr(target, "state_dict") else None
    if not isinstance(target, (MutableMapping, list)) and not states.is_tensor(target):
        raise TypeError(f"a {type(target).__name__} cannot be restored into: give a module, tensors, a dict or a list")
    return target


def _close_in(process: int, store: Store | ranks.Parts) -> None:
    # A fork has no threads to close.
    if os.getpid() == process:
        store.close()
