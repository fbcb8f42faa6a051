"""Our checkpoints read by torch.distributed.checkpoint: with our reader, and with torch's reader of safetensors."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

import forebay
from forebay.dcp import Reader


def trained(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 4).to(torch.bfloat16))
    model[1].register_buffer("turned", torch.randn(3, 2).T)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    return model, optimizer


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


def test_dcp_loads_into_a_model_and_an_optimizer(tmp_path: Path) -> None:
    model, optimizer = trained(1)
    other, resumed = trained(2)
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(4, model=other)
        saver.save(7, model=model, optimizer=optimizer, extra={"epoch": 3, "best": 0.5})
    state = {"model": other.state_dict(), "optimizer": resumed.state_dict(), "extra": {"epoch": 0, "best": 0.0}}
    dcp.load(state, storage_reader=Reader(tmp_path))
    assert state["extra"] == {"epoch": 3, "best": 0.5}
    other.load_state_dict(state["model"])
    resumed.load_state_dict(state["optimizer"])
    assert equal(other.state_dict(), model.state_dict()) and equal(resumed.state_dict(), optimizer.state_dict())
    older = {"model": model.state_dict()}
    dcp.load(older, storage_reader=Reader(tmp_path, step=4))
    assert not torch.equal(older["model"]["0.weight"], other.state_dict()["0.weight"])


def test_dcp_rebuilds_a_state_without_a_model(tmp_path: Path) -> None:
    """What torch's converter to a file of `torch.save` does."""
    model, optimizer = trained(1)
    model[0].weight = torch.nn.Parameter(model[0].weight.detach())
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, model=model, optimizer=optimizer, array=np.arange(3), same=model.state_dict()["0.weight"])
    found: dict[str, Any] = {}
    _load_state_dict(found, Reader(tmp_path), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    assert equal(dict(found["model"]), dict(model.state_dict())) and torch.equal(found["same"], model[0].weight)
    assert found["array"].tolist() == [0, 1, 2]
    assert equal(found["optimizer"]["state"]["0"], optimizer.state_dict()["state"][0]), "DCP's keys are texts"


def test_torchs_reader_of_safetensors_loads_a_model(tmp_path: Path) -> None:
    model, (other, _) = trained(1)[0], trained(2)
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(2, model=model)
    state = {"model": other.state_dict()}
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path / "step-000000000002")))
    assert equal(state["model"], model.state_dict())


def test_what_is_not_there_or_does_not_fit_is_an_error(tmp_path: Path) -> None:
    model, _ = trained(1)
    with pytest.raises(FileNotFoundError, match="no valid checkpoint"):
        Reader(tmp_path).read_metadata()
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, model=model)
    with pytest.raises(dcp.CheckpointException, match="Size mismatch between saved"):
        dcp.load({"model": {"0.weight": torch.zeros(7, 6)}}, storage_reader=Reader(tmp_path))
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: model.absent"):
        dcp.load({"model": {"absent": torch.zeros(1)}}, storage_reader=Reader(tmp_path))


JOB = """
import os, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard
import forebay
from forebay.dcp import Reader

folder, what = sys.argv[1:]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0 if what == "save" else 5)
model = nn.Sequential(nn.Linear(10, 17), nn.ReLU(), nn.Linear(17, 3))
fully_shard(model[0]), fully_shard(model)
if what == "save":
    with forebay.Checkpointer(folder, rank=rank, world_size=size) as saver:
        saver.save(3, model=model, extra={"rank": rank})
else:
    state = {"model": model.state_dict(), "extra": {"rank": -1}}
    dcp.load(state, storage_reader=Reader(folder))
    assert state["extra"] == {"rank": 0}
    model.load_state_dict(state["model"])
out = model(torch.ones(2, 10)).sum().item()
if rank == 0:
    print("out", f"{out:.6f}", flush=True)
dist.barrier()
# Gloo's threads sometimes abort a process that ends: "terminate called without an active exception", also without forebay.
os._exit(0)
"""


def test_shards_of_several_ranks_are_resharded_by_dcp(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)

    def run(n: int, what: str) -> str:
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
        done = subprocess.run(
            [*launch, tmp_path / "job.py", tmp_path / "saved", what], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return next(line for line in done.stdout.splitlines() if line.startswith("out"))

    saved = run(2, "save")
    assert run(3, "load") == run(1, "load") == saved
    plain = torch.nn.Sequential(torch.nn.Linear(10, 17), torch.nn.ReLU(), torch.nn.Linear(17, 3))
    state = {"model": plain.state_dict()}
    dcp.load(state, storage_reader=Reader(tmp_path / "saved"))
    plain.load_state_dict(state["model"])
    assert saved == f"out {plain(torch.ones(2, 10)).sum().item():.6f}", "into a model without shards"
