"""Nested states as named tensors and a text, and back.

A state is dicts, lists and tuples of tensors and plain values. Its tensors get the names of their places, joined by dots; the
rest, with the places of the tensors, becomes JSON.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._forebay import Checkpoint, Tensor

# The note of a checkpoint with the structure of its state.
NOTE = "forebay.state"

# What JSON holds as it is.
_PLAIN = (str, bool, int, type(None))


@dataclass
class Gathered:
    """A state ready to be saved."""

    structure: str = ""
    # Name, type, shape, address, bytes.
    tensors: list[tuple[str, str, list[int], int, int]] = field(default_factory=list)
    # What owns the memory at these addresses.
    owners: list[Any] = field(default_factory=list)
    # Names of tensors that are parts of larger ones, of which other ranks hold the rest.
    shards: set[str] = field(default_factory=set)
    # GPUs whose copies to the host are on their way.
    devices: set[Any] = field(default_factory=set)
    _names: dict[Any, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def known(self, key: Any) -> str | None:
        """The name of a tensor whose memory was added before."""
        return self._names.get(key)

    def add(self, place: str, key: Any, tensor: tuple[str, list[int], int, int], owner: Any) -> str:
        """The name of a new tensor."""
        name, n = place, 1
        while name in self._used:
            name, n = f"{place}~{n}", n + 1
        self._used.add(name)
        if tensor[3] > 0:
            self._names[key] = name
        self.tensors.append((name, *tensor))
        self.owners.append(owner)
        return name


@dataclass
class Shard:
    """A part of a tensor whose other parts other ranks have: `part` begins at `offset` of a tensor of `shape`."""

    part: Any
    shape: Sequence[int]
    offset: Sequence[int]

    def __post_init__(self) -> None:
        ends = [at + side for at, side in zip(self.offset, self.part.shape, strict=True)]
        if any(at < 0 or end > side for at, end, side in zip(self.offset, ends, self.shape, strict=True)):
            raise ValueError(f"a part of {list(self.part.shape)} at {list(self.offset)} is not within {list(self.shape)}")


@dataclass
class Piece:
    """A saved shard."""

    kind: str
    name: str
    offset: list[int]
    part: list[int]
    checkpoint: Checkpoint


def _shard_of(value: Any) -> Shard | None:
    """The shard that a value is, if it is one: also of a DTensor of torch."""
    if isinstance(value, Shard):
        return value
    if not (_is_torch(value) and hasattr(value, "placements")):
        return None
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    if any(placement.is_partial() for placement in value.placements):
        raise TypeError("a DTensor of partial sums cannot be saved or restored: redistribute it first")
    _, offset = compute_local_shape_and_global_offset(value.shape, value.device_mesh, value.placements)
    return Shard(value.to_local(), tuple(value.shape), tuple(offset))


def pieces_of(checkpoint: Checkpoint) -> dict[str, Piece]:
    """The shards of a rank's part, by place."""
    found: dict[str, Piece] = {}

    def walk(encoded: Any) -> None:
        if not isinstance(encoded, dict):
            return
        ((kind, inner),) = encoded.items()
        if kind == "shard":
            found[inner["place"]] = Piece(inner["kind"], inner["name"], inner["offset"], inner["part"], checkpoint)
        elif kind == "dict":
            for _, item in inner:
                walk(item)
        elif kind in ("list", "tuple"):
            for item in inner:
                walk(item)

    for encoded in parse(checkpoint.notes[NOTE]).values():
        walk(encoded)
    return found


def gather(state: Mapping[str, Any]) -> Gathered:
    """Names the tensors of a state."""
    gathered = Gathered()
    encoded = {name: _encode(value, name, gathered) for name, value in state.items()}
    for device in gathered.devices:
        sys.modules["torch"].cuda.synchronize(device)
    gathered.structure = json.dumps(encoded, separators=(",", ":"), allow_nan=False)
    return gathered


def parse(structure: str) -> dict[str, Any]:
    """The structure of a saved state."""
    parsed: dict[str, Any] = json.loads(structure)
    return parsed


def _encode(value: Any, place: str, gathered: Gathered) -> Any:
    shard = _shard_of(value)
    if shard is not None:
        at = ",".join(str(side) for side in shard.offset)
        kind = "torch" if _is_torch(shard.part) else "numpy"
        name = (_add_torch if kind == "torch" else _add_numpy)(shard.part, f"{place}@{at}", gathered)
        gathered.shards.add(name)
        what = {"place": place, "kind": kind, "name": name, "offset": list(shard.offset), "part": list(shard.part.shape)}
        return {"shard": {**what, "shape": list(shard.shape)}}
    if _is_torch(value):
        return {"torch": _add_torch(value, place, gathered)}
    if _is_array(value):
        return {"numpy": _add_numpy(value, place, gathered)}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        pairs = []
        for key, item in value.items():
            if not isinstance(key, _PLAIN):
                raise TypeError(f"{place}: a key of type {type(key).__name__} cannot be saved")
            pairs.append([key, _encode(item, f"{place}.{key}", gathered)])
        return {"dict": pairs}
    if isinstance(value, (list, tuple)):
        items = [_encode(item, f"{place}.{at}", gathered) for at, item in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    raise TypeError(f"{place}: a {type(value).__name__} cannot be saved; give tensors, plain values, dicts and lists")


def _add_torch(tensor: Any, place: str, gathered: Gathered) -> str:
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise TypeError(f"{place}: only dense tensors can be saved")
    key = ("torch", str(tensor.device), tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
    if (name := gathered.known(key)) is not None:
        return name
    # What a view says about its values, such as being conjugated, is carried out before they are read as bytes.
    values = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if _is_on_gpu(values):
        gathered.devices.add(values.device)
        values = _locked_like(values).copy_(values, non_blocking=True)
    values = values.cpu()
    dtype = str(values.dtype).removeprefix("torch.")
    n_bytes = values.numel() * values.element_size()
    return gathered.add(place, key, (dtype, list(values.shape), values.data_ptr(), n_bytes), values)


def _is_on_gpu(tensor: Any) -> bool:
    return bool(tensor.is_cuda)


def _locked_like(tensor: Any) -> Any:
    """Memory of the host that a GPU writes to by itself; torch keeps it for the next save."""
    return sys.modules["torch"].empty_like(tensor, device="cpu", pin_memory=True)


def _add_numpy(array: Any, place: str, gathered: Gathered) -> str:
    import numpy

    values = numpy.asarray(array)
    if values.dtype.hasobject:
        raise TypeError(f"{place}: an array of Python objects cannot be saved")
    address = values.__array_interface__["data"][0]
    key = ("numpy", address, values.dtype.str, values.shape, values.strides)
    if (name := gathered.known(key)) is not None:
        return name
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    # A contiguous copy gains a dimension where there was none.
    little = numpy.ascontiguousarray(little).reshape(values.shape)
    address = little.__array_interface__["data"][0]
    return gathered.add(place, key, (little.dtype.name, list(little.shape), address, little.nbytes), (array, little))


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return True
    # JAX's arrays and TensorFlow's tensors and variables.
    return hasattr(value, "__array__") and hasattr(value, "dtype") and hasattr(value, "shape")


def is_tensor(value: Any) -> bool:
    """Whether a value has memory that can be saved, or overwritten."""
    return _is_torch(value) or _is_array(value) or isinstance(value, Shard)


def _tensors(encoded: Any, place: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Place and shape of every tensor of a structure."""
    if not isinstance(encoded, dict):
        return {}
    ((kind, inner),) = encoded.items()
    if kind in ("torch", "numpy"):
        return {place: shapes[inner]}
    if kind == "shard":
        return {place: tuple(inner["shape"])}
    found: dict[str, tuple[int, ...]] = {}
    for key, item in inner if kind == "dict" else enumerate(inner) if kind in ("list", "tuple") else ():
        found |= _tensors(item, f"{place}.{key}", shapes)
    return found


def _shapes(state: Any, place: str) -> dict[str, tuple[int, ...]]:
    """Place and shape of every tensor of an object's own state."""
    if is_tensor(state):
        return {place: tuple(state.shape)}
    items = state.items() if isinstance(state, Mapping) else enumerate(state) if isinstance(state, (list, tuple)) else ()
    found: dict[str, tuple[int, ...]] = {}
    for key, item in items:
        found |= _shapes(item, f"{place}.{key}")
    return found


def check(name: str, own: Any, encoded: Any, checkpoint: Checkpoint) -> None:
    """Compares the tensors of an object with those of a checkpoint. An object without
    tensors, such as a new optimiser, takes any.

    Raises:
        ValueError: Names the first tensor that differs.
    """
    shapes = {saved: tuple(shape) for saved, _, shape in checkpoint.tensors}
    wanted, found = _shapes(own, name), _tensors(encoded, name, shapes)
    if not wanted:
        return
    for place, shape in wanted.items():
        if place not in found:
            raise ValueError(f"the checkpoint is of another {name}: it has no tensor {place}")
        saved = found[place]
        if saved != shape:
            said = f"{place} has shape {list(saved)} there and {list(shape)} here"
            raise ValueError(f"the checkpoint is of another {name}: {said}")
    for place in found:
        if place not in wanted:
            raise ValueError(f"the checkpoint is of another {name}: its tensor {place} is not here")


def resharded(built: Any, own: Any) -> Any:
    """A built state, cut as an object's own: whole tensors become the shards that it has in their places."""
    shard = _shard_of(own) if is_tensor(own) else None
    if shard is not None:
        cut = tuple(slice(at, at + side) for at, side in zip(shard.offset, shard.part.shape, strict=True))
        part = built[cut]
        if isinstance(own, Shard):
            return Shard(part, own.shape, own.offset)
        torch = sys.modules["torch"]
        part = part.contiguous().to(own.device)
        placed = torch.distributed.tensor.DTensor.from_local
        return placed(part, own.device_mesh, own.placements, run_check=False, shape=own.shape, stride=own.stride())
    if isinstance(built, Mapping) and isinstance(own, Mapping):
        return {key: resharded(item, own[key]) if key in own else item for key, item in built.items()}
    if isinstance(built, (list, tuple)) and isinstance(own, (list, tuple)) and len(built) == len(own):
        return type(built)(resharded(item, mine) for item, mine in zip(built, own, strict=True))
    return built


def parts_of(what: dict[str, Any], checkpoint: Any) -> list[tuple[Piece, Any]]:
    """The saved parts of a tensor that several ranks had."""
    if not hasattr(checkpoint, "pieces"):
        raise ValueError(f"{what['place']} is a part of a tensor: restore with the rank and world_size of a run of several ranks")
    parts = [(piece, tensor_of(piece.kind, piece.name, piece.checkpoint)) for piece in checkpoint.pieces(what["place"])]
    # Ranks may have the same part.
    n, of = sum({tuple(piece.offset): math.prod(piece.part) for piece, _ in parts}.values()), math.prod(what["shape"])
    if n != of:
        raise ValueError(f"{what['place']}: the ranks saved {n} of its {of} values")
    return parts


def joined(what: dict[str, Any], checkpoint: Any) -> Any:
    """A whole tensor of its shards."""
    parts = parts_of(what, checkpoint)
    piece, first = parts[0]
    whole = first.new_empty(what["shape"]) if piece.kind == "torch" else first.__class__(what["shape"], first.dtype)
    for piece, part in parts:
        whole[tuple(slice(at, at + side) for at, side in zip(piece.offset, piece.part, strict=True))] = part
    return whole


def build(encoded: Any, checkpoint: Checkpoint, *, copies: bool) -> Any:
    """A saved state; with `copies`, its tensors own their memory."""
    built: dict[tuple[str, str], Any] = {}

    def tensor(kind: str, name: str) -> Any:
        if (kind, name) not in built:
            made = tensor_of(kind, name, checkpoint)
            built[kind, name] = (made.clone() if kind == "torch" else made.copy()) if copies else made
        return built[kind, name]

    return decode(encoded, tensor, lambda what: joined(what, checkpoint))


def decode(part: Any, tensor: Callable[[str, str], Any], shard: Callable[[dict[str, Any]], Any]) -> Any:
    """A saved state, with what the functions make of its tensors."""
    if not isinstance(part, dict):
        return part
    ((kind, inner),) = part.items()
    match kind:
        case "torch" | "numpy":
            return tensor(kind, inner)
        case "shard":
            return shard(inner)
        case "dict":
            return {key: decode(item, tensor, shard) for key, item in inner}
        case "list":
            return [decode(item, tensor, shard) for item in inner]
        case "tuple":
            return tuple(decode(item, tensor, shard) for item in inner)
        case "float":
            return float(inner)
        case "bytes":
            return base64.b64decode(inner)
    raise ValueError(f"a newer version of forebay saved this state: it has a {kind!r}")


def tensor_of(kind: str, name: str, checkpoint: Checkpoint) -> Any:
    """A saved tensor, in the checkpoint's memory."""
    dtype, shape = checkpoint.header_of(name)
    return (_torch_of if kind == "torch" else _numpy_of)(checkpoint.bytes_of(name), dtype, shape)


def _torch_of(values: Tensor, dtype: str, shape: list[int]) -> Any:
    import torch

    wanted = getattr(torch, dtype)
    if values.nbytes == 0:
        return torch.empty(shape, dtype=wanted)
    return torch.from_dlpack(values).view(wanted).reshape(shape)


def _numpy_of(values: Tensor, dtype: str, shape: list[int]) -> Any:
    import numpy

    try:
        wanted = numpy.dtype(dtype)
    except TypeError:
        import ml_dtypes

        wanted = numpy.dtype(getattr(ml_dtypes, dtype))
    if values.nbytes == 0:
        return numpy.empty(shape, wanted)
    return numpy.from_dlpack(values).view(wanted).reshape(shape)


def fill(target: Any, value: Any, place: str) -> None:
    """Overwrites the tensors of a state in place; other values replace those of their dict or list."""
    if is_tensor(target):
        _overwrite(target, value, place)
        return
    for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
        inner = target[key] if isinstance(target, list) else target.get(key)
        if is_tensor(inner) or isinstance(inner, (dict, list)):
            fill(inner, item, f"{place}.{key}")
        else:
            target[key] = item


def _overwrite(target: Any, value: Any, place: str) -> None:
    if isinstance(target, Shard):
        _overwrite(target.part, value.part, place)
        return
    if _is_torch(target):
        torch = sys.modules["torch"]
        with torch.no_grad():
            target.copy_(value if _is_torch(value) else torch.from_numpy(value))
    elif hasattr(target, "assign"):
        target.assign(value)
    else:
        try:
            target[...] = value
        except TypeError as error:
            raise TypeError(f"{place}: a {type(target).__name__} cannot be overwritten") from error
