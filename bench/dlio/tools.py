"""The two tools, each started on the same workload and the same files, and what they say of it."""

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psutil

WORKLOAD = """\
model:
  name: unet3d
framework: pytorch
workflow:
  generate_data: False
  train: True
dataset:
  data_folder: {data}
  format: npz
  num_files_train: {files}
  num_samples_per_file: 1
  {length}: {record}
  {resize}: 2097152
reader:
  data_loader: pytorch
  batch_size: {batch}
  read_threads: 4
  prefetch_size: 2
train:
  epochs: 2
  computation_time: 0.1
"""


@dataclass
class Shape:
    """unet3d, scaled: a record is a square of bytes."""

    files: int = 64
    record: int = 2896 * 2896
    batch: int = 4

    @property
    def step_bytes(self) -> int:
        return self.record * self.batch

    @property
    def bytes(self) -> int:
        return self.record * self.files


@dataclass
class Result:
    """One run: utilisation as DLIO reckons it, and what else was asked for."""

    au: float
    first_step_s: float
    compute_s: float
    # Bytes of records a second, over whole epochs.
    rate: float
    pss_bytes: int = 0
    whole: dict = field(default_factory=dict)


def pinned(cores: str | None) -> list[str]:
    return ["taskset", "-c", cores] if cores else []


class Dlio:
    name = "DLIO"

    def __init__(self, python: Path, shape: Shape, data: Path, work: Path) -> None:
        self.program, self.shape, self.work, self.data = python.parent / "dlio_benchmark", shape, work, data
        names = {"length": "record_length", "resize": "record_length_resize"}
        (work / "workload").mkdir(parents=True, exist_ok=True)
        text = WORKLOAD.format(data=data, files=shape.files, record=shape.record, batch=shape.batch, **names)
        (work / "workload" / "bench.yaml").write_text(text)
        self.environment = os.environ | {"DFTRACER_ENABLE": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

    def start(self, out: Path, ranks: int, cores: str | None, *overrides: str) -> subprocess.Popen[str]:
        words = [str(self.program), "--config-dir", str(self.work), "workload=bench"]
        words += [f"++workload.output.folder={out}", f"++hydra.run.dir={out}/hydra", *overrides]
        many = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        log = (self.work / "dlio.log").open("w")
        return subprocess.Popen(pinned(cores) + many + words, env=self.environment, cwd=self.work, stdout=log, stderr=log)

    def run(self, seconds: float, cores: str | None = None, threads: int = 4, ranks: int = 1) -> Result:
        """Trains; `seconds` is what a step computes."""
        out = self.work / f"out-{time.monotonic_ns()}"
        began = time.time()
        words = [f"++workload.train.computation_time={seconds}", f"++workload.reader.read_threads={threads}"]
        job = self.start(out, ranks, cores, *words)
        peak = watch(job)
        self.check(job)
        summary = json.loads((out / "summary.json").read_text())
        output = json.loads((out / "0_output.json").read_text())
        start = datetime.fromisoformat(json.loads((out / "per_epoch_stats.json").read_text())["1"]["block1"]["start"])
        first = start.timestamp() + output["1"]["load"]["block1"][0] - began
        compute = output["2"]["compute"]["block1"]
        au = summary["metric"]["train_au_mean_percentage"]
        rate = summary["metric"]["train_throughput_mean_samples_per_second"] * self.shape.record
        return Result(au, first, sum(compute) / len(compute), rate, peak, summary["metric"])

    def make(self, ranks: int) -> float:
        """Makes the data; the seconds between the first and the last file, without imports."""
        words = ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"]
        self.check(job := self.start(self.work / "made", ranks, None, *words))
        said = (self.work / "dlio.log").read_text()
        times = [re.search(rf"(\S+) {what}", said)[1] for what in ("Starting data generation", "Generation done")]
        start, end = (datetime.fromisoformat(word) for word in times)
        return (end - start).total_seconds()

    def check(self, job: subprocess.Popen[str]) -> None:
        if job.wait() != 0:
            raise SystemExit(f"DLIO failed:\n{(self.work / 'dlio.log').read_text()[-3000:]}")


class Forebay:
    name = "forebay"

    def __init__(self, program: Path, shape: Shape, data: Path, work: Path) -> None:
        self.program, self.shape, self.work, self.data = program, shape, work, data
        names = {"length": "record_length_bytes", "resize": "record_length_bytes_resize"}
        work.mkdir(parents=True, exist_ok=True)
        text = WORKLOAD.format(data=data, files=shape.files, record=shape.record, batch=shape.batch, **names)
        (work / "bench.yaml").write_text(text)

    def run(
        self, seconds: float, cores: str | None = None, threads: int = 4, accelerators: int = 1, *overrides: str
    ) -> Result:
        """Trains; `seconds` is what a step computes."""
        record = self.work / "record.json"
        words = [self.program, "workload", "run", self.work / "bench.yaml", "--data", self.data, "--json", record]
        words += ["--accelerators", accelerators, "--threshold", "0.0001", f"++workload.train.computation_time={seconds}"]
        words += [f"++workload.reader.read_threads={threads}", *overrides]
        command = pinned(cores) + [str(word) for word in words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.work)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        (cell,) = json.loads(record.read_text())["cells"]
        compute = cell["compute_s"] / cell["steps"]
        rate = cell["samples_per_s"] * self.shape.record
        return Result(cell["au_dlio"], cell["first_step_s"], compute, rate, cell["peak_rss_bytes"], cell)

    def make(self, folder: Path) -> float:
        """Makes the data; the whole command, with its process and until it is on the device."""
        start = time.monotonic()
        words = [self.program, "workload", "make", self.work / "bench.yaml", "--data", folder]
        subprocess.run([str(word) for word in words], check=True, capture_output=True)
        return time.monotonic() - start


def watch(job: subprocess.Popen[str]) -> int:
    """The most memory that a process and its descendants held together: shared pages counted once."""
    peak = 0
    while job.poll() is None:
        try:
            process = psutil.Process(job.pid)
            total = sum(memory_of(one) for one in [process, *process.children(recursive=True)])
            peak = max(peak, total)
        except psutil.Error:
            pass
        time.sleep(0.25)
    return peak


def memory_of(process: psutil.Process) -> int:
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024
