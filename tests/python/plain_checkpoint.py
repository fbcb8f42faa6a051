"""Checkpoints through our side: arrays to plain files, and those through the example program `checkpoint_files`."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest


@dataclass
class Checkpoint:
    """What a checkpoint holds."""

    arrays: dict[str, np.ndarray]
    notes: dict[str, str] = field(default_factory=dict)
    strings: dict[str, list[str]] = field(default_factory=dict)


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Names, types, shapes and bits."""
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name


def write_ours(kind: str, folder: Path, stem: str, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint with our encoder."""
    plain = folder / f"{stem}.plain"
    plain.mkdir(parents=True)
    tensors = []
    for n, (name, array) in enumerate(checkpoint.arrays.items()):
        (plain / f"{n}.bin").write_bytes(array.tobytes())
        tensors.append({"name": name, "dtype": str(array.dtype), "shape": list(array.shape)})
    (plain / "tensors.json").write_text(json.dumps({"tensors": tensors, "notes": checkpoint.notes}))
    _run("pack", kind, plain, folder, stem)


def read_ours(kind: str, folder: Path, stem: str) -> Checkpoint:
    """Reads a checkpoint with our decoder."""
    plain = folder / f"{stem}.read"
    _run("unpack", kind, folder, stem, plain)
    said = json.loads((plain / "tensors.json").read_text())
    arrays = {}
    for n, tensor in enumerate(said["tensors"]):
        dtype = np.dtype(getattr(ml_dtypes, tensor["dtype"], tensor["dtype"]))
        arrays[tensor["name"]] = np.frombuffer((plain / f"{n}.bin").read_bytes(), dtype).reshape(tensor["shape"])
    return Checkpoint(arrays, said["notes"], said["strings"])


def refusal(kind: str, folder: Path, stem: str) -> str:
    """What our decoder says when it cannot read a checkpoint."""
    return _run("unpack", kind, folder, stem, folder / "nowhere", status=2).stderr


def _run(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    program = os.environ.get("FOREBAY_CHECKPOINT_FILES")
    if not program:
        pytest.fail("set FOREBAY_CHECKPOINT_FILES to the path of the example checkpoint_files", pytrace=False)
    command = [program, *(str(a) for a in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, f"exit status {done.returncode}, not {status}: {command}\n{done.stderr}"
    return done


def random_array(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Any bits that the type has: also numbers that are none."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    n_bytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    bits = random.integers(0, 2 if dtype == "bool" else 256, n_bytes, dtype=np.uint8)
    return np.frombuffer(bits.tobytes(), kind).reshape(shape)
