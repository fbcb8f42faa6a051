"""One checkpoint of several ranks: parts, the manifest, other numbers of ranks, crashes."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay
from forebay import ranks

W = np.arange(12 * 5, dtype=np.float32).reshape(12, 5)
COMMON = {f"c{i}": np.full((64, 4), i, np.int32) for i in range(6)}


def shard(rank: int, of: int, values: np.ndarray = W) -> forebay.Shard:
    rows = np.array_split(np.arange(len(values)), of)[rank]
    return forebay.Shard(values[rows].copy(), values.shape, (int(rows[0]), 0))


def save(folder: Path, step: int, of: int, add: float = 0, **settings: Any) -> list[forebay.Checkpointer]:
    savers = [forebay.Checkpointer(folder, rank=rank, world_size=of, **settings) for rank in range(of)]
    for rank, saver in enumerate(savers):
        model = {"w": shard(rank, of, W + np.float32(add)), **COMMON}
        saver.save(step, model=model, extra={"rank": rank, "step": step})
    return savers


def close(savers: list[forebay.Checkpointer]) -> None:
    for saver in reversed(savers):
        saver.close()


def test_each_rank_saves_its_share_and_any_number_restores(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    savers = save(slow, 7, 3, burst_dir=tmp_path / "fast")
    assert savers[0].wait() and savers[0].steps() == savers[2].steps() == [7]
    close(savers)
    sizes = [path.stat().st_size for path in sorted(slow.glob("ranks/*/step-*/model.safetensors"))]
    assert len(sizes) == 3 and max(sizes) < 1.6 * min(sizes), sizes
    for of in (3, 2, 1, 5):
        for rank in range(of):
            reader = forebay.Checkpointer(slow, rank=rank, world_size=of)
            into = {"w": forebay.Shard(np.zeros_like(shard(rank, of).part), W.shape, shard(rank, of).offset)}
            into |= {name: np.zeros_like(value) for name, value in COMMON.items()}
            restored = reader.restore(model=into)
            assert restored.step == 7 and np.array_equal(into["w"].part, shard(rank, of).part)
            assert all(np.array_equal(into[name], value) for name, value in COMMON.items())
            assert restored.state("extra") == {"rank": rank if of == 3 else 0, "step": 7}
    whole = {"w": np.zeros_like(W), **{name: np.zeros_like(value) for name, value in COMMON.items()}}
    forebay.Checkpointer(slow).restore(model=whole)
    assert np.array_equal(whole["w"], W)


def test_a_state_of_one_process_is_restored_by_ranks_and_the_newest_counts(tmp_path: Path) -> None:
    with forebay.Checkpointer(tmp_path, mode="direct") as alone:
        alone.save(3, model={"w": W})
    into = {"w": shard(1, 2, np.zeros_like(W))}
    assert forebay.Checkpointer(tmp_path, rank=1, world_size=2).restore(model=into).step == 3
    assert np.array_equal(into["w"].part, W[6:])
    close(save(tmp_path, 5, 2))
    assert forebay.Checkpointer(tmp_path).restore().step == 5 and forebay.Checkpointer(tmp_path).restore(3).step == 3


def test_without_all_parts_there_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close(save(tmp_path, 1, 2))
    first = forebay.Checkpointer(tmp_path, rank=0, world_size=2)
    first.save(2, model={"w": shard(0, 2, W + 1)})
    monkeypatch.setattr(ranks, "_PATIENCE_S", 0.2)
    with pytest.raises(TimeoutError, match=r"step 2 is no checkpoint: ranks \[1\] have not saved it"):
        first.close()
    assert first.steps() == [1]
    # The run goes on from step 1 and comes to step 2 again, in which the other rank is first.
    savers = [forebay.Checkpointer(tmp_path, rank=rank, world_size=2) for rank in range(2)]
    assert savers[0].restore().step == 1
    for rank in (0, 1):
        savers[rank]._store._prepare()
    for rank in (1, 0):
        savers[rank].save(2, model={"w": shard(rank, 2, W + 9)})
    assert savers[0].wait()
    with pytest.raises(ValueError, match="step 2 is saved already"):
        savers[1].save(2, model={"w": shard(1, 2)})
    close(savers)
    assert np.array_equal(forebay.Checkpointer(tmp_path).restore().state("model")["w"], W + 9)


def test_a_damaged_part_makes_the_one_before_count(tmp_path: Path) -> None:
    close(save(tmp_path, 1, 2))
    close(save(tmp_path, 2, 2, add=1))
    path = next(tmp_path.glob("ranks/00001-of-00002/step-000000000002/model.safetensors"))
    stored = bytearray(path.read_bytes())
    stored[-9] ^= 1
    path.write_bytes(stored)
    restored = forebay.Checkpointer(tmp_path).restore()
    assert restored.step == 1 and np.array_equal(restored.state("model")["w"], W)
    assert len(restored.passed_over) == 1 and restored.passed_over[0].startswith("step 2: ")
    with pytest.raises(forebay.CheckpointError, match="no valid checkpoint of several ranks: step 2"):
        forebay.Checkpointer(tmp_path).restore(2)
    with pytest.raises(FileNotFoundError, match="step 4"):
        forebay.Checkpointer(tmp_path, rank=0, world_size=2).restore(4)


def test_old_manifests_and_parts_go(tmp_path: Path) -> None:
    savers = [forebay.Checkpointer(tmp_path, rank=rank, world_size=2, keep=2) for rank in range(2)]
    for step in range(1, 6):
        for rank, saver in enumerate(savers):
            saver.save(step, model={"w": shard(rank, 2, W + step)})
        assert savers[0].wait() and savers[1].wait()
    assert savers[0].steps() == [4, 5]
    close(savers)
    assert len(list(tmp_path.glob("ranks/00001-of-00002/step-*"))) == 3
    manifest = json.loads((tmp_path / "step-000000000005.ranks.json").read_text())
    assert manifest == {"version": 1, "step": 5, "world_size": 2}
    assert np.array_equal(forebay.Checkpointer(tmp_path).restore(4).state("model")["w"], W + 4)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rank 2 of world_size 2 does not exist"):
        forebay.Checkpointer(tmp_path, rank=2, world_size=2)
    with pytest.raises(ValueError, match='format "safetensors"'):
        forebay.Checkpointer(tmp_path, rank=0, world_size=2, format="tensorflow")
    with pytest.raises(ValueError, match="is not within"):
        forebay.Shard(W, (10, 5), (0, 0))
    with pytest.raises(TypeError, match="model.w@0,0 is a part of a tensor"):
        forebay.Checkpointer(tmp_path).save(1, model={"w": shard(0, 2)})
    savers = [forebay.Checkpointer(tmp_path, rank=rank, world_size=2) for rank in range(2)]
    savers[0].save(1, model=COMMON)
    savers[1].save(1, model={"c0": COMMON["c0"]})
    with pytest.raises(forebay.CheckpointError, match="no rank saved model.c"):
        savers[0].wait()
    assert savers[0].steps() == []
    close(savers)
    close(save(tmp_path, 2, 2))
    with pytest.raises(ValueError, match=r"model.w has shape \[12, 5\] there and \[11, 5\] here"):
        forebay.Checkpointer(tmp_path, rank=0, world_size=2).restore(model={"w": shard(0, 2, W[:11])})
    assert not [thread for thread in threading.enumerate() if thread.name == "forebay:commit"]
