"""Ranks meet, or end together with the reason."""

import re

import pytest
from conftest import repeated

# Far longer than a test may take: who is only given up when patience ends makes it fail.
PATIENCE_S = 600


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_all_meet_gather_and_broadcast(run_ranks, ranks, count):
    done = run_ranks(count, ranks, "together")
    assert done.returncode == 0, done.stderr
    assert sorted(line.split(":")[0] for line in done.stdout.splitlines()) == [
        f"rank {rank} of {count}" for rank in range(count)
    ]


@pytest.mark.parametrize(
    ("what", "reason"), [("fails", "its disk broke"), ("leaves", "it ended before the others")]
)
def test_every_rank_hears_why_one_failed(run_ranks, ranks, what, reason):
    done = run_ranks(4, ranks, what, 2)
    assert done.returncode == 2
    heard = [line for line in done.stderr.splitlines() if "heard: rank 2 on" in line and reason in line]
    assert len(heard) == (4 if what == "fails" else 3), done.stderr


def test_ranks_that_stop_can_meet_again(run_ranks, ranks):
    done = run_ranks(4, ranks, "stops", 2)
    assert done.returncode == 0, done.stderr
    assert sum(line.endswith(": stopped together") for line in done.stdout.splitlines()) == 4, done.stdout


@pytest.mark.parametrize("what", ["panics", "dies"])
def test_a_rank_that_is_gone_ends_the_job_at_once(run_ranks, ranks, what):
    done = run_ranks(4, ranks, what, 2, PATIENCE_S)
    assert done.returncode != 0
    assert "did not come" not in done.stderr, done.stderr


def test_patience_ends_and_names_who_did_not_come(run_ranks, ranks):
    done = run_ranks(4, ranks, "sleeps", 2, 9)
    assert done.returncode != 0
    assert "rank 2 on" in done.stderr and "did not come to a meeting within 9 s" in done.stderr, done.stderr


@pytest.mark.parametrize(("frozen", "speaker"), [(2, 0), (0, 1)])
def test_the_first_that_waits_says_who_is_stopped_before_patience_ends(run_ranks, ranks, frozen, speaker):
    done = run_ranks(4, ranks, "freezes", frozen, 18)
    assert done.returncode != 0
    said = remarks(done.stderr, speaker, frozen)
    assert said and said[0].endswith(" is stopped (SIGSTOP)"), done.stderr
    assert f"rank {frozen} on" in done.stderr and "did not come to a meeting within 18 s" in done.stderr, done.stderr


def remarks(stderr: str, speaker: int, missing: int) -> list[str]:
    """What a rank said of another while it waited for it."""
    said = re.findall(rf"^rank {speaker} has waited \d+ s: (.*)$", stderr, re.MULTILINE)
    parts = [part for line in said for part in line.split("; ")]
    return [part for part in parts if re.match(rf"rank {missing} \(pid \d+ on \S+\) ", part)]


def srun(cluster, ranks, *words, kill=1, mpi="pmix"):
    options = [f"--mpi={mpi}", f"--kill-on-bad-exit={kill}", "--nodes=4", "--ntasks-per-node=2"]
    return repeated(lambda: cluster.run("srun", *options, ranks, *words))


def test_nodes_of_slurm_meet(cluster, ranks):
    done = srun(cluster, ranks, "together")
    assert done.returncode == 0, done.stderr
    assert sum(" of 8: " in line for line in done.stdout.splitlines()) == 8


def test_ranks_of_slurm_hear_why_one_failed(cluster, ranks):
    # Where Slurm ends a job as soon as one task fails, some are gone before they can say what they heard.
    done = srun(cluster, ranks, "fails", 5, kill=0)
    assert done.returncode == 2, done.stderr
    assert sum("heard: rank 5 on" in line for line in done.stderr.splitlines()) == 8, done.stderr
    done = srun(cluster, ranks, "fails", 5)
    assert done.returncode != 0
    assert "rank 5 on" in done.stderr and "its disk broke" in done.stderr


def test_a_rank_of_slurm_that_is_killed_ends_the_job_at_once(cluster, ranks):
    done = srun(cluster, ranks, "dies", 5, PATIENCE_S)
    assert done.returncode != 0
    assert "did not come" not in done.stderr, done.stderr


def test_a_rank_of_slurm_that_is_killed_ends_the_job_at_once_also_where_slurm_is_told_not_to(cluster, ranks):
    done = srun(cluster, ranks, "dies", 5, PATIENCE_S, kill=0)
    assert done.returncode != 0
    assert "did not come" not in done.stderr, done.stderr


def test_ranks_of_slurm_say_who_is_stopped(cluster, ranks):
    done = srun(cluster, ranks, "freezes", 5, 18)
    assert done.returncode != 0
    said = remarks(done.stderr, 0, 5)
    assert said and said[0].endswith(" is stopped (SIGSTOP)"), done.stderr


def test_processes_that_do_not_find_one_another_are_not_taken_for_a_run(cluster, ranks):
    assert srun(cluster, ranks, "together", mpi="none").returncode != 0
