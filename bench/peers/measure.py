"""Measures one pipeline of one peer in this process and prints one JSON object.

Import and construction happen before the clock starts. One warm-up epoch, then the timed ones. Where an epoch is too
short to time, a timed unit is several whole epochs.
"""

import argparse
import importlib
import json
import math
import sys
import time
from pathlib import Path

from cpu import tree_cpu_s
from plan import MODES, PEERS
from task import Epoch, Task

MIN_UNIT_S = 0.5


def main() -> None:
    task, n_epochs, started_s = _arguments()
    epoch = importlib.import_module(f"pipelines.{PEERS[task.peer].pipeline}").epochs(task)
    warm_up_s, first_batch_s = _warm_up(epoch)
    start_s = time.monotonic() - warm_up_s + first_batch_s - started_s
    passes = max(1, math.ceil(MIN_UNIT_S / warm_up_s))
    units = [_timed_unit(epoch, passes) for _ in range(n_epochs)]
    json.dump({"units": units, "first_batch_s": first_batch_s, "start_s": start_s}, sys.stdout)


def _warm_up(epoch: Epoch) -> tuple[float, float]:
    begin = time.monotonic()
    batches = epoch()
    next(batches)
    first_batch_s = time.monotonic() - begin
    for _ in batches:
        pass
    return time.monotonic() - begin, first_batch_s


def _timed_unit(epoch: Epoch, passes: int) -> dict[str, float]:
    cpu, wall = tree_cpu_s(), time.monotonic()
    images = sum(sum(epoch()) for _ in range(passes))
    return {"images": images, "wall_s": time.monotonic() - wall, "cpu_s": tree_cpu_s() - cpu}


def _arguments() -> tuple[Task, int, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, choices=PEERS)
    parser.add_argument("--variant", required=True)
    parser.add_argument("--mode", required=True, choices=MODES)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--set", required=True, dest="dataset")
    parser.add_argument("--threads", required=True, type=int)
    parser.add_argument("--epochs", required=True, type=int)
    parser.add_argument("--started", type=float, default=time.monotonic(), help="time.monotonic() of the caller")
    a = parser.parse_args()
    return Task(a.peer, a.variant, a.mode, a.data, a.dataset, a.threads), a.epochs, a.started


if __name__ == "__main__":
    main()
