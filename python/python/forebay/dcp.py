"""Checkpoints of forebay for `torch.distributed.checkpoint`: a storage reader, also of checkpoints of several ranks."""

from __future__ import annotations

import io
import os
from typing import Any

import torch
from torch.distributed.checkpoint import LoadPlan, LoadPlanner, StorageReader
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType
from torch.futures import Future

from . import states
from .checkpoints import Checkpointer, Restored


class Reader(StorageReader):
    """Reads what `forebay.Checkpointer` saved: `dcp.load({"model": model.state_dict()}, storage_reader=Reader("checkpoints"))`.

    The names are those that DCP gives to the same nested state, and every rank reads the parts that it needs of any number of
    ranks' shards. NumPy arrays are values, as in checkpoints of DCP. `torch.distributed.checkpoint.format_utils` turns it into a
    file of `torch.save`, with this as the reader.

    Args:
        dir: The folder of the checkpoints.
        step: The step to read; the newest that verifies if not given.
    """

    def __init__(self, dir: str | os.PathLike[str], step: int | None = None) -> None:
        super().__init__()
        self._dir, self._step = os.fspath(dir), step
        self._tensors: dict[str, dict[tuple[int, ...], torch.Tensor]] = {}
        self._values: dict[str, Any] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Reads from another folder from now on, if one is given."""
        if checkpoint_id is not None:
            self._dir = os.fspath(checkpoint_id)
        self._tensors, self._values = {}, {}

    def read_metadata(self, *_: Any) -> Metadata:
        """Reads and verifies the checkpoint.

        Raises:
            FileNotFoundError: There is none.
            CheckpointError: None is valid.
        """
        self.reset()
        restored = Restored(Checkpointer(self._dir)._read(self._step))
        nested, pieces = _outline(restored)
        flat, places = flatten_state_dict(nested)
        described: dict[str, Any] = {}
        for name, value in flat.items():
            if id(value) not in pieces:
                self._values[name] = value
                described[name] = BytesStorageMetadata()
                continue
            self._tensors[name] = pieces[id(value)]
            chunks = [ChunkStorageMetadata(torch.Size(at), part.shape) for at, part in self._tensors[name].items()]
            described[name] = TensorStorageMetadata(TensorProperties(dtype=value.dtype), value.shape, chunks)
        return Metadata(described, planner_data=places)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *_: Any, **__: Any) -> None:
        """Nothing is left to set up."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Copies what the plan asks for."""
        for item in plan.items:
            name = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                buffer = io.BytesIO()
                torch.save(self._values[name], buffer)
                buffer.seek(0)
                planner.load_bytes(item, buffer)
                continue
            part = self._tensors[name][tuple(item.storage_index.offset or [0] * len(item.lengths))]
            window = tuple(slice(at, at + n) for at, n in zip(item.storage_offsets, item.lengths, strict=True))
            target = planner.resolve_tensor(item).detach()
            target.copy_(part[window])
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a folder."""
        return os.path.isdir(checkpoint_id)


def _outline(restored: Restored) -> tuple[dict[str, Any], dict[int, dict[tuple[int, ...], torch.Tensor]]]:
    """The state with tensors without memory, and by their ids the saved pieces, by their offsets."""
    checkpoint = restored._checkpoint
    pieces: dict[int, dict[tuple[int, ...], torch.Tensor]] = {}

    def empty(shape: Any, parts: dict[tuple[int, ...], torch.Tensor]) -> torch.Tensor:
        stand_in = torch.empty(tuple(shape), dtype=next(iter(parts.values())).dtype, device="meta")
        pieces[id(stand_in)] = parts
        return stand_in

    def tensor(kind: str, name: str) -> Any:
        saved = states.tensor_of(kind, name, checkpoint)
        return empty(saved.shape, {(0,) * saved.dim(): saved}) if kind == "torch" else saved

    def shard(what: dict[str, Any]) -> Any:
        if what["kind"] != "torch":
            return states.joined(what, checkpoint)
        parts = states.parts_of(what, checkpoint)
        return empty(what["shape"], {tuple(piece.offset): part for piece, part in parts})

    return {name: states.decode(restored._found(name), tensor, shard) for name in restored}, pieces
