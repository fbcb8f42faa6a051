"""One checkpoint of several ranks with PyTorch's own shards: saved by two, restored by three and by one."""

import subprocess
import sys
from pathlib import Path

JOB = """
import os, sys
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
import forebay

folder, what = sys.argv[1:]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0 if what == "save" else 5)
model = nn.Sequential(nn.Linear(10, 17), nn.ReLU(), nn.Linear(17, 3))
fully_shard(model[0]), fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
saver = forebay.Checkpointer(folder, rank=rank, world_size=size)

def step(seed):
    x = torch.randn(12, 10, generator=torch.Generator().manual_seed(seed))
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

if what == "save":
    for seed in range(3):
        step(seed)
    saver.save(3, model=model, optimizer=optimizer)
    saver.wait()
    dist.barrier()
else:
    step(0)
    assert saver.restore(model=model, optimizer=optimizer).step == 3
losses = [step(seed) for seed in (7, 8)]
if rank == 0:
    print("losses", *(f"{loss:.6f}" for loss in losses), flush=True)
saver.close()
dist.barrier()
# Gloo's threads sometimes abort a process that ends: "terminate called without an active exception", also without forebay.
os._exit(0)
"""


def test_fsdp_is_resharded(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)

    def run(n: int, what: str) -> str:
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
        done = subprocess.run(
            [*launch, tmp_path / "job.py", tmp_path / "saved", what], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return next(line for line in done.stdout.splitlines() if line.startswith("losses"))

    saved = run(2, "save")
    assert len(list(tmp_path.glob("saved/ranks/*/step-*"))) == 2
    assert run(2, "restore") == run(3, "restore") == saved
