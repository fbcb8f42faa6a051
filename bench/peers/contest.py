"""Runs one contestant in a process of its own, and again when something else disturbed the machine meanwhile."""

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cpu import machine_busy_s
from data import packed_path
from task import BATCH, PREFETCH_BATCHES, Task

HERE = Path(__file__).parent
FOREBAY = "forebay"
REPEATS_OF_SHORT_MODES = 5


class NotRun(Exception):
    """A contestant could not run; the message says why."""


@dataclass(frozen=True)
class Limits:
    """How much foreign CPU use is tolerated, and how often a disturbed measurement is repeated."""

    foreign_cores_max: float
    retries: int
    timeout_s: float


def measure(task: Task, forebay: Path, n_epochs: int, limits: Limits) -> dict[str, Any]:
    """The least disturbed of up to `1 + retries` runs, with how disturbed it was."""
    runs: list[dict[str, Any]] = []
    for _ in range(1 + limits.retries):
        runs.append(_run_watched(_command(task, forebay, n_epochs), limits.timeout_s))
        if runs[-1]["foreign_cores"] <= limits.foreign_cores_max:
            break
    best = min(runs, key=lambda run: run["foreign_cores"])
    parse = _from_forebay if task.peer == FOREBAY else json.loads
    described = asdict(task) | {"data": str(task.data)}
    disturbed = best["foreign_cores"] > limits.foreign_cores_max
    return described | parse(best.pop("stdout")) | best | {"runs": len(runs), "disturbed": disturbed}


def _run_watched(command: list[str], timeout_s: float) -> dict[str, Any]:
    """Foreign use is what the machine was busy with beyond the process tree that we started."""
    before, busy, begin = _children_cpu_s(), machine_busy_s(), time.monotonic()
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired as e:
        raise NotRun(f"no result after {timeout_s:.0f} s") from e
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines() or ["no message"]
        raise NotRun(f"exit status {done.returncode}: {reason[-1]}")
    wall_s = time.monotonic() - begin
    foreign_s = machine_busy_s() - busy - (_children_cpu_s() - before)
    return {"stdout": done.stdout, "foreign_cores": foreign_s / wall_s}


def _command(task: Task, forebay: Path, n_epochs: int) -> list[str]:
    if task.peer == FOREBAY:
        return _forebay_command(task, forebay, n_epochs)
    arguments = {
        "--peer": task.peer,
        "--variant": task.variant,
        "--mode": task.mode,
        "--data": task.data,
        "--set": task.dataset,
        "--threads": task.threads,
        "--epochs": n_epochs,
        "--started": time.monotonic(),
    }
    return [sys.executable, "measure.py", *(str(x) for pair in arguments.items() for x in pair)]


def _forebay_command(task: Task, forebay: Path, n_epochs: int) -> list[str]:
    path = packed_path(task.data, task.dataset, task.mode)
    if task.mode in ("full", "read"):
        path = task.data / task.dataset
    read_only = ["--read-only"] if task.mode in ("read", "tfrecord", "tar") else []
    repeats = n_epochs * (1 if task.mode == "full" else REPEATS_OF_SHORT_MODES)
    numbers = {"--threads": task.threads, "--batch": BATCH, "--prefetch": PREFETCH_BATCHES, "--repeats": repeats}
    flags = [str(x) for pair in numbers.items() for x in pair]
    return [str(forebay), "ingest", str(path), *flags, "--warm", *read_only, "--json", "-"]


def _from_forebay(stdout: str) -> dict[str, Any]:
    (cell,) = json.loads(stdout)["cells"]
    if cell["failed_samples"]:
        raise NotRun(f"{cell['failed_samples']} samples failed")
    units = [{key: sample[key] for key in ("images", "wall_s", "cpu_s")} for sample in cell["samples"]]
    firsts = [sample["first_batch_s"] for sample in cell["samples"] if sample["first_batch_s"] is not None]
    first_batch_s = median(firsts) if firsts else None
    return {"units": units, "first_batch_s": first_batch_s, "start_s": None, "cache": cell["medium"]["cache"]}


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def environment() -> dict[str, Any]:
    """The machine, as far as it matters to the figures."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ":")
    return {"cpu": cpu.split(":", 1)[1].strip(), "cores": os.cpu_count(), "kernel": os.uname().release}
