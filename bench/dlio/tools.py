"""The two tools, each started on the same workload and the same files, and what they say of it."""

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
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
  {resize}: {delivered}
reader:
  data_loader: pytorch
  batch_size: {batch}
  read_threads: 4
  prefetch_size: 2
train:
  epochs: 1
  computation_time: 0.1
"""

PARTS = ["wait_s", "compute_s", "barrier_s", "checkpoint_s", "other_s"]
PATIENCE_S = 180


class Failed(Exception):
    """A tool that did not do what it was asked for."""


@dataclass
class Shape:
    """unet3d, scaled: a record is a square of bytes, what is handed on as big as there."""

    files: int = 64
    record: int = 2896 * 2896
    delivered: int = 2_097_152
    batch: int = 4

    @property
    def step_bytes(self) -> int:
        return self.record * self.batch

    @property
    def bytes(self) -> int:
        return self.record * self.files

    def yaml(self, data: Path, length: str, resize: str) -> str:
        words = {"record": self.record, "delivered": self.delivered, "batch": self.batch, "files": self.files}
        return WORKLOAD.format(data=data, length=length, resize=resize, **words)


@dataclass
class Run:
    """How a workload is run: so many steps, of which each computes so long."""

    seconds: float
    steps: int
    accelerators: int = 1
    threads: int = 4
    core: str | None = None

    def words(self, shape: Shape) -> list[str]:
        files = self.steps * shape.batch * self.accelerators
        return [
            f"++workload.train.computation_time={self.seconds}",
            f"++workload.reader.read_threads={self.threads}",
            f"++workload.dataset.num_files_train={files}",
        ]


@dataclass
class Result:
    """One run. Both utilisations take the computation as configured; one is DLIO's, the other is over the whole epoch."""

    au_dlio: float
    au_whole: float
    # Whether an accelerator is held is judged by it.
    au: float
    first_step_s: float
    # Bytes of records a second, over the whole epoch.
    rate: float
    memory_bytes: int


def pinned(core: str | None) -> list[str]:
    return ["taskset", "-c", core] if core else []


def mpirun(ranks: int) -> list[str]:
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


def linked(data: Path, names: int) -> Path:
    """A folder with so many names of the files of `data`: an epoch can be long and the files stay in the page cache."""
    folder = data.with_name(f"{data.name}-{names}")
    train = folder / "train"
    if not train.exists():
        files = sorted((data / "train").iterdir())
        train.mkdir(parents=True)
        # DLIO asks for it, evaluation or not.
        (folder / "valid").mkdir()
        for index in range(names):
            os.link(files[index % len(files)], train / f"img_{index:06}_of_{names}.npz")
    return folder


class Dlio:
    """DLIO by its own command. An accelerator is a process, several of them are ranks of mpirun."""

    def __init__(self, python: Path, shape: Shape, data: Path, work: Path) -> None:
        self.program, self.shape, self.work, self.data = python.parent / "dlio_benchmark", shape, work, data
        (work / "workload").mkdir(parents=True, exist_ok=True)
        (work / "workload" / "bench.yaml").write_text(shape.yaml(data, "record_length", "record_length_resize"))
        quiet = {"DFTRACER_ENABLE": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        self.environment = os.environ | quiet

    def start(self, out: Path, ranks: int, core: str | None, *overrides: str) -> subprocess.Popen[bytes]:
        words = [str(self.program), "--config-dir", str(self.work), "workload=bench"]
        words += [f"++workload.output.folder={out}", f"++hydra.run.dir={out}/hydra", *overrides]
        command = pinned(core) + (mpirun(ranks) if ranks > 1 else []) + words
        with (self.work / "dlio.log").open("w") as log:
            return subprocess.Popen(command, env=self.environment, cwd=self.work, stdout=log, stderr=log)

    def run(self, run: Run) -> Result:
        out = self.work / f"out-{time.monotonic_ns()}"
        data = linked(self.data, run.steps * self.shape.batch * run.accelerators)
        began = time.time()
        words = [*run.words(self.shape), f"++workload.dataset.data_folder={data}"]
        job = self.start(out, run.accelerators, run.core, *words)
        # Looking takes time from a core that is measured.
        memory = 0 if run.core else watch(job)
        self.check(job)
        metric = json.loads((out / "summary.json").read_text())["metric"]
        epoch = json.loads((out / "0_output.json").read_text())["1"]
        block = json.loads((out / "per_epoch_stats.json").read_text())["1"]["block1"]
        start, end = (datetime.fromisoformat(block[key]).timestamp() for key in ("start", "end"))
        compute = epoch["compute"]["block1"]
        if len(compute) != run.steps:
            raise Failed(f"DLIO made {len(compute)} steps of {run.steps}")
        au = metric["train_au_mean_percentage"]
        whole = 100 * sum(compute) / (end - start)
        first = start + epoch["load"]["block1"][0] - began
        rate = run.accelerators * run.steps * self.shape.step_bytes / (end - start)
        return Result(au, whole, au, first, rate, memory)

    def make(self, ranks: int, folder: Path, files: int) -> float:
        """Makes data; the seconds between the first and the last file, without imports."""
        words = ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"]
        words += [f"++workload.dataset.data_folder={folder}", f"++workload.dataset.num_files_train={files}"]
        job = self.start(self.work / "made", ranks, None, *words)
        self.check(job)
        said = (self.work / "dlio.log").read_text()
        times = [re.search(rf"(\S+) {what}", said)[1] for what in ("Starting data generation", "Generation done")]
        start, end = (datetime.fromisoformat(word) for word in times)
        return (end - start).total_seconds()

    def check(self, job: subprocess.Popen[bytes]) -> None:
        try:
            status = job.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            job.kill()
            raise Failed(f"DLIO does not end within {PATIENCE_S} s") from None
        if status != 0:
            raise Failed(f"DLIO failed:\n{(self.work / 'dlio.log').read_text()[-3000:]}")


class Forebay:
    """forebay. Accelerators are in one process, or in ranks of mpirun where that is asked for."""

    def __init__(self, program: Path, with_mpi: Path, shape: Shape, data: Path, work: Path) -> None:
        self.program, self.with_mpi, self.shape, self.work, self.data = program, with_mpi, shape, work, data
        work.mkdir(parents=True, exist_ok=True)
        text = shape.yaml(data, "record_length_bytes", "record_length_bytes_resize")
        (work / "bench.yaml").write_text(text)

    def cell(self, run: Run, ranks: int = 1) -> dict:
        """The record of a run; `run.accelerators` are over all ranks."""
        record = self.work / "record.json"
        record.unlink(missing_ok=True)
        data = linked(self.data, run.steps * self.shape.batch * run.accelerators)
        program = self.program if ranks == 1 else self.with_mpi
        words = [program, "workload", "run", self.work / "bench.yaml", "--data", data, "--json", record]
        words += ["--accelerators", run.accelerators // ranks, "--threshold", "0.0001", *run.words(self.shape)]
        command = pinned(run.core) + (mpirun(ranks) if ranks > 1 else []) + [str(word) for word in words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.work, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}\n{done.stderr}")
        (cell,) = json.loads(record.read_text())["cells"]
        return cell

    def run(self, run: Run) -> Result:
        cell = self.cell(run)
        if cell["steps"] != run.steps * run.accelerators:
            raise Failed(f"forebay made {cell['steps']} steps of {run.steps * run.accelerators}")
        # A step computes as long as was configured, however late its end is noticed.
        au = 100 * cell["au_epoch"]
        rate = run.accelerators * run.steps * self.shape.step_bytes / cell["wall_s"]
        return Result(100 * cell["au_dlio"], au, au, cell["first_step_s"], rate, cell["peak_rss_bytes"])

    def make(self, folder: Path, files: int) -> float:
        """Makes data; the whole command, with its process and until it is on the device."""
        start = time.monotonic()
        words = [self.program, "workload", "make", self.work / "bench.yaml", "--data", folder]
        words.append(f"++workload.dataset.num_files_train={files}")
        subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=PATIENCE_S)
        return time.monotonic() - start


def add_up(cell: dict) -> bool:
    """Whether the parts of every accelerator's time sum to its wall clock, in every epoch and over all."""
    pairs = [(cell, cell["accelerator_s"]), *((epoch, epoch["wall_s"]) for epoch in cell["epochs_of"])]
    return all(abs(sum(times[part] for part in PARTS) - wall) <= 1e-6 * max(wall, 1.0) for times, wall in pairs)


def watch(job: subprocess.Popen[bytes]) -> int:
    """The most memory that a process and its descendants held together: shared pages counted once."""
    peak, end = 0, time.monotonic() + PATIENCE_S
    while job.poll() is None:
        if time.monotonic() > end:
            job.kill()
            raise Failed(f"DLIO does not end within {PATIENCE_S} s")
        try:
            process = psutil.Process(job.pid)
            peak = max(peak, sum(memory_of(one) for one in [process, *process.children(recursive=True)]))
        except psutil.Error:
            pass
        time.sleep(1.0)
    return peak


def memory_of(process: psutil.Process) -> int:
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
