"""Token files: sequences, targets, order, resume."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay

LENGTH = 16
TOKENS = np.random.default_rng(2).integers(0, 50_000, 16 * 403 + 9, dtype=np.uint16)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    TOKENS.tofile(tmp_path / "a.bin")
    return tmp_path / "a.bin"


def make(data: Any, **settings: Any) -> forebay.TokenLoader:
    return forebay.TokenLoader(data, **{"length": LENGTH, "batch_size": 8, "output": "numpy", "threads": 2, **settings})


def starts(loader: forebay.TokenLoader) -> list[int]:
    """Where in the stream the sequences of an epoch begin; their values are checked."""
    place = {TOKENS[at : at + 8].tobytes(): at for at in range(0, len(TOKENS) - LENGTH, LENGTH)}
    found = []
    for inputs, targets in loader:
        assert inputs.shape == targets.shape == (len(inputs), LENGTH)
        assert np.array_equal(inputs[:, 1:], targets[:, :-1]), "targets are one token later"
        for sequence, target in zip(inputs, targets, strict=True):
            at = place[sequence[:8].astype(np.uint16).tobytes()]
            assert np.array_equal(sequence, TOKENS[at : at + LENGTH]) and target[-1] == TOKENS[at + LENGTH]
            found.append(at // LENGTH)
    return found


def test_sequences_are_packed_in_order_and_shuffled_by_blocks(file: Path) -> None:
    assert starts(make(file)) == list(range(400)), "403 sequences, the last three make no batch"
    assert starts(make(file, drop_last=False)) == list(range(403))
    loader = make(file, shuffle=True, block=10, drop_last=False)
    epochs = [starts(loader), starts(loader)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(403)) and epochs[0] != epochs[1]
    # Sequences are near others of their block: among any 160 neighbours, few blocks.
    blocks = [len({at // 10 for at in epochs[0][i : i + 80]}) for i in range(0, 320, 40)]
    assert max(blocks) < 35, blocks
    assert starts(make(file, shuffle=True, block=10, drop_last=False, seed=1)) != epochs[0]


def test_a_state_continues_with_the_next_sequence(file: Path) -> None:
    settings = {"shuffle": True, "block": 10, "drop_last": False}
    wanted = starts(make(file, **settings))
    stopped = make(file, **settings)
    for number, _ in enumerate(stopped, 1):
        if number == 7:
            break
    resumed = make(file, **settings, batch_size=5, threads=3)
    resumed.load_state_dict(stopped.state_dict())
    assert starts(resumed) == wanted[56:]


@pytest.mark.parametrize(("stored", "dtype"), [("uint16", "int64"), ("uint32", "int32"), ("int32", "int64"), ("int64", "int32")])
def test_types(tmp_path: Path, stored: str, dtype: str) -> None:
    TOKENS.astype(stored).tofile(tmp_path / "a.bin")
    np.save(tmp_path / "b.npy", TOKENS.astype(stored))
    for name in ("a.bin", "b.npy"):
        loader = make(tmp_path / name, stored=stored, dtype=dtype, drop_last=False)
        batches = [(inputs.dtype, inputs.copy()) for inputs, _ in loader]
        assert {kind for kind, _ in batches} == {np.dtype(dtype)}
        assert np.array_equal(np.concatenate([inputs for _, inputs in batches]).reshape(-1), TOKENS[: 403 * LENGTH])
    both = make(tmp_path, stored=stored, drop_last=False)
    assert both.n_samples == 806 and Path(both.name_of(405).removesuffix(" row 2")).name == "b.npy"


def test_what_cannot_be_read_is_refused(tmp_path: Path, file: Path) -> None:
    def refused(data: Any, said: str, **settings: Any) -> None:
        with pytest.raises(ValueError, match=said):
            make(data, **settings)

    refused(file, "make no sequence of 10001", length=10_000)
    refused(file, 'stored "float32" is not one of uint8', stored="float32")
    refused(file, 'dtype "uint16" is not one of int32, int64', dtype="uint16")
    refused(file, "length is at least 1", length=0)
    refused(file, "length and block are at most", length=1 << 31)
    (tmp_path / "odd.bin").write_bytes(bytes(101))
    refused(tmp_path / "odd.bin", "no whole number of uint16 tokens")
    np.save(tmp_path / "x.npy", np.zeros((4, 4), np.int32))
    refused(tmp_path / "x.npy", "tokens have one side")
    np.save(tmp_path / "x.npy", np.zeros(400, np.float32))
    refused(tmp_path / "x.npy", "tokens are integers, found float32")
    np.save(tmp_path / "y.npy", np.zeros(99, np.int32))
    refused([file, tmp_path / "y.npy"], "tokens of int32, but those of .*a.bin are uint16")
    np.full(99, 1 << 31, np.uint32).tofile(tmp_path / "large.bin")
    with pytest.raises(forebay.SampleError, match="token 2147483648 does not fit into int32"):
        list(make(tmp_path / "large.bin", stored="uint32", dtype="int32", batch_size=2))
