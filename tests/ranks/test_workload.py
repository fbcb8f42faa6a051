"""Workloads on many ranks: one record, accounts that add up, every sample read once, and no hang when one rank fails."""

import csv
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

import pytest
from conftest import LATENESS_S, Done, mpirun, repeated

PARTS = ["wait_s", "compute_s", "barrier_s", "checkpoint_s", "other_s"]
N_FILES, EPOCHS = 32, 2


def run_words(forebay: Path, workload: tuple[Path, Path], out: Path, *more: str) -> list[object]:
    file, data = workload
    return [forebay, "workload", "run", file, "--data", data, "--out", out, "--access-log", *more]


def check(out: Path, count: int, accelerators: int = 1) -> None:
    """One record whose times add up, and logs that show every sample read once an epoch."""
    record = json.loads((out / "record.json").read_text())
    (cell,) = record["cells"]
    assert (cell["ranks"], cell["accelerators"]) == (count, count * accelerators)
    assert sum(cell[part] for part in PARTS) == pytest.approx(cell["accelerator_s"], rel=1e-6)
    for epoch in cell["epochs_of"]:
        assert sum(epoch[part] for part in PARTS) == pytest.approx(epoch["wall_s"], rel=1e-6, abs=1e-6)
    assert cell["samples"] == N_FILES * EPOCHS
    assert cell["bytes_moved"] >= N_FILES * EPOCHS * 65536
    logs = sorted(out.glob("access-*.csv"))
    assert len(logs) == count
    rows = [row for log in logs for row in csv.DictReader(log.open())]
    for epoch in range(1, EPOCHS + 1):
        read = [int(row["file"]) for row in rows if row["part"] == "train" and int(row["epoch"]) == epoch]
        assert sorted(read) == list(range(N_FILES)), f"epoch {epoch}"
    assert len(list(out.glob("*_output.json"))) == count * accelerators


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_ranks_share_the_samples_and_make_one_record(run_ranks, forebay, workload, tmp_path, count):
    done = run_ranks(count, *run_words(forebay, workload, tmp_path / "out"), makes=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    check(tmp_path / "out", count)


def test_ranks_with_several_accelerators_share_the_samples(run_ranks, forebay, workload, tmp_path):
    words = run_words(forebay, workload, tmp_path / "out", "--accelerators", "4")
    done = run_ranks(2, *words, makes=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    check(tmp_path / "out", 2, 4)


def test_a_file_that_only_one_rank_reads_and_cannot_ends_all_with_the_reason(run_ranks, forebay, workload, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(workload[1], data)
    damaged = sorted((data / "train").glob("*.npz"))[-1]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    done = run_ranks(4, *run_words(forebay, (workload[0], data), tmp_path / "out"), makes=tmp_path / "out")
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count(damaged.name) == 1, "said once, by one rank: " + done.stderr


@contextmanager
def started(forebay: Path, workload: tuple[Path, Path], out: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A run on four ranks that is under way, and would take longer than any test waits."""
    words = run_words(forebay, workload, out, "++workload.train.epochs=20000", *more)
    command = [*mpirun(4), *(str(word) for word in words)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + LATENESS_S
        while sum(log.stat().st_size > 0 for log in out.glob("access-*.csv")) < 4:
            assert job.poll() is None and time.monotonic() < end, "the job does not start"
            time.sleep(0.05)
        yield job
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()


def test_a_rank_that_is_killed_ends_the_job_long_before_patience_ends(forebay, workload, tmp_path):
    with started(forebay, workload, tmp_path / "out") as job:
        os.kill(children(job.pid)[2], signal.SIGKILL)
        said = job.communicate(timeout=LATENESS_S)[1]
        assert job.returncode != 0
        assert "did not come" not in said, said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("who", ["mpirun", "one rank"])
def test_ranks_that_are_to_stop_keep_what_they_measured(forebay, workload, tmp_path, who, how):
    with started(forebay, workload, tmp_path / "out") as job:
        os.kill(job.pid if who == "mpirun" else children(job.pid)[2], how)
        said = job.communicate(timeout=LATENESS_S)[1]
    assert job.returncode != 0
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert any("interrupted" in note for note in record["notes"]), record["notes"]
    (cell,) = record["cells"]
    assert (cell["ranks"], len({epoch["n_steps"] for epoch in cell["epochs_of"][-4:]})) == (4, 1), said
    assert sum(cell[part] for part in PARTS) == pytest.approx(cell["accelerator_s"], rel=1e-6)


def test_ranks_give_up_on_one_that_does_not_come_within_the_time_that_was_given(forebay, workload, tmp_path):
    with started(forebay, workload, tmp_path / "out", "--rank-timeout", "18s") as job:
        with frozen(children(job.pid)[2]) as lost:
            said = " ".join(job.communicate(timeout=LATENESS_S)[1].split())
    assert job.returncode == 2, said
    assert f"rank 2 (pid {lost} on " in said and "is stopped (SIGSTOP)" in said, said
    assert "rank 2 on" in said and "did not come to a meeting within 18 s" in said, said


def test_a_run_goes_on_when_a_rank_that_was_stopped_does(forebay, workload, tmp_path):
    with started(forebay, workload, tmp_path / "out") as job:
        watchdog = threading.Timer(LATENESS_S, job.kill)
        watchdog.start()
        with frozen(children(job.pid)[2]) as lost:
            said = list(takewhile(lambda line: f"rank 2 (pid {lost} on " not in line, job.stderr))
        assert job.poll() is None, "".join(said)
        os.kill(job.pid, signal.SIGINT)
        said.append(job.communicate(timeout=LATENESS_S)[1])
        watchdog.cancel()
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert record["cells"][0]["ranks"] == 4, "".join(said)
    assert max(step for epoch in record["cells"][0]["epochs_of"] for step in epoch["barrier"]) > 5, "it was waited for"


@contextmanager
def frozen(pid: int) -> Iterator[int]:
    """Stops a process, and lets it go on if it is still there."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]


def test_four_nodes_of_slurm_run_a_workload(cluster, forebay, workload, tmp_path):
    options = ["--mpi=pmix", "--kill-on-bad-exit=1", "--nodes=4", "--ntasks-per-node=2"]
    words = run_words(forebay, workload, tmp_path / "out")
    done = repeated(lambda: cluster.run("srun", *options, *words), makes=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    check(tmp_path / "out", 8)


def test_the_job_script_makes_the_data_and_runs(cluster, forebay, workload, tmp_path):
    words = [forebay, "workload", "slurm", workload[0], "--nodes", "4", "--ranks-per-node", "2"]
    script = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout
    (tmp_path / "job.sh").write_text(script)
    subprocess.run(["shellcheck", tmp_path / "job.sh"], check=True)
    places = {"FOREBAY": str(forebay), "DATA": str(tmp_path / "data"), "OUT": str(tmp_path / "out")}

    def submit() -> Done:
        state, status = cluster.batch(tmp_path / "job.sh", env=places, cwd=tmp_path)
        (log,) = tmp_path.glob("*.log")
        return subprocess.CompletedProcess(["sbatch"], 0, f"{state} {status}", log.rename(log.with_suffix(".txt")).read_text())

    done = repeated(submit, makes=tmp_path / "out")
    assert done.stdout == "COMPLETED 0:0", done.stderr
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert record["cells"][0]["ranks"] == 8
    assert record["cells"][0]["samples"] == N_FILES * EPOCHS
    assert len(list((tmp_path / "data" / "train").glob("*.npz"))) == N_FILES
