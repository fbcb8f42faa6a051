"""Real ranks: Open MPI's mpirun and a Slurm of four nodes on this machine, with the binaries named by FOREBAY and FOREBAY_RANKS.

FOREBAY is a forebay with the feature mpi, FOREBAY_RANKS the example `ranks` of forebay-emulation.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import Cluster

Done = subprocess.CompletedProcess[str]

# What hangs is told from what is slow by this: a busy machine takes seconds, ranks that wait for one another half an hour.
LATENESS_S = 150

# What a busy machine makes of MPI itself, before or after anything of ours: a connection that it loses while it makes it, and a
# process whose number it has forgotten when the process ends.
NOT_OURS = ["Open MPI failed to TCP connect", "with PID 0 on"]
ATTEMPTS = 3

WORKLOAD = """\
model:
  name: small
framework: pytorch
workflow:
  train: True
dataset:
  data_folder: data/small
  format: npz
  num_files_train: 32
  num_samples_per_file: 1
  record_length_bytes: 65536
reader:
  data_loader: pytorch
  batch_size: 1
  read_threads: 1
  file_shuffle: seed
  sample_shuffle: seed
train:
  epochs: 2
  computation_time: 0.002
metric:
  au: 0.0001
"""


def named(variable: str) -> Path:
    path = Path(os.environ.get(variable, "")).resolve()
    if not path.is_file():
        pytest.fail(f"{variable} names {path}, which is not a file", pytrace=False)
    return path


@pytest.fixture(scope="session")
def forebay() -> Path:
    """The binary under test."""
    return named("FOREBAY")


@pytest.fixture(scope="session")
def ranks() -> Path:
    """The example that lets ranks meet and misbehave."""
    return named("FOREBAY_RANKS")


def mpirun(count: int) -> list[str]:
    """The words that start so many ranks here, however few the cores."""
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(count)]


def repeated(attempt: Callable[[], Done], makes: Path | None = None) -> Done:
    """What a program did; once more, without the folder that it made, where MPI itself failed."""
    for _ in range(ATTEMPTS - 1):
        done = attempt()
        if not any(said in done.stderr for said in NOT_OURS):
            return done
        if makes:
            shutil.rmtree(makes, ignore_errors=True)
    return attempt()


@pytest.fixture(scope="session")
def run_ranks() -> Callable[..., Done]:
    """Runs a program on so many ranks of mpirun; `makes` is the folder of its results."""

    def run(count: int, *program: object, makes: Path | None = None) -> Done:
        command = [*mpirun(count), *(str(word) for word in program)]
        return repeated(lambda: subprocess.run(command, capture_output=True, text=True, timeout=LATENESS_S), makes)

    return run


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four nodes of Slurm; gone when the tests end."""
    cluster = started(tmp_path_factory, attempts=3)
    try:
        yield cluster
    finally:
        cluster.stop()


def started(folders: pytest.TempPathFactory, attempts: int) -> Cluster:
    """A cluster that runs. A port that was free when it was chosen may be taken when a daemon wants it: then others are chosen."""
    cluster = Cluster(folders.mktemp("slurm"))
    try:
        cluster.start()
    except BaseException as error:
        cluster.stop()
        if attempts == 1 or not isinstance(error, RuntimeError):
            raise
        return started(folders, attempts - 1)
    return cluster


@pytest.fixture(scope="session")
def workload(forebay: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small workload and its data."""
    folder = tmp_path_factory.mktemp("workload")
    (folder / "small.yaml").write_text(WORKLOAD)
    make = [forebay, "workload", "make", folder / "small.yaml", "--data", folder / "data"]
    subprocess.run([str(word) for word in make], check=True, capture_output=True, timeout=LATENESS_S)
    return folder / "small.yaml", folder / "data"
