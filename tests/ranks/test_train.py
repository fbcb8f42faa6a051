"""Data-parallel training: the steps of one process with the summed batch, whole accounts per rank, and clear refusals."""

import json
import os
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from conftest import LATENESS_S, Done, mpirun

PARTS = ["wait_s", "copy_s", "compute_s", "exchange_s", "checkpoint_s", "validate_s", "other_s"]
N_IMAGES, BATCH, STEPS = 96, 24, 8


@pytest.fixture(scope="session")
def photos(forebay, tmp_path_factory) -> Path:
    """Images in class folders, and more of them in some TFRecord shards."""
    folder = tmp_path_factory.mktemp("photos")
    for words in [
        ["data", "make", "caltech101", folder / "files", "--count", N_IMAGES],
        ["data", "make", "caltech101", folder / "more", "--count", 300],
        ["data", "pack", folder / "more", folder / "shards", "--to", "tfrecord", "--shard-size", "1MiB"],
    ]:
        subprocess.run([str(word) for word in [forebay, *words]], check=True, capture_output=True, timeout=LATENESS_S)
    return folder


def train(run_ranks, forebay: Path, data: Path, out: Path, count: int, *more: object) -> Done:
    words = ["--model", "alexnet-small", "--classes", 102, "--threads", 1, "--baseline", 0]
    if "--steps" not in more:
        words += ["--steps", STEPS]
    if "--batch" not in more:
        words += ["--batch", BATCH // count]
    return run_ranks(count, forebay, "train", data, *words, "--json", out, *more)


def cell_of(done: Done, out: Path, count: int) -> dict:
    """The only record, made by the first rank, whose times add up for every rank."""
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads(out.read_text())["cells"]
    ranks = cell.get("ranks", [])
    assert [rank["rank"] for rank in ranks] == (list(range(count)) if count > 1 else [])
    for totals in [cell, *ranks]:
        assert sum(totals.get(part, 0.0) for part in PARTS) == pytest.approx(totals["wall_s"], rel=1e-6)
    if ranks:
        assert cell["images"] == sum(rank["images"] for rank in ranks)
        assert cell["bytes"] == sum(rank["bytes"] for rank in ranks)
        assert all(rank["exchange_s"] > 0 for rank in ranks)
    return cell


def losses(cell: dict) -> list[float]:
    return [step["loss"] for step in cell["steps"]]


def tensors(file: Path) -> dict[str, tuple[float, ...]]:
    """The floats of a safetensors file."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    read = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            read[name] = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return read


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_ranks_make_the_steps_of_one_process_with_the_summed_batch(run_ranks, forebay, photos, tmp_path, optimizer):
    cells, weights = {}, {}
    for count in [1, 2, 4]:
        saves = tmp_path / f"saved-{count}"
        more = ["--optimizer", optimizer, "--checkpoint-every", STEPS, "--checkpoint-dir", saves]
        done = train(run_ranks, forebay, photos / "files", tmp_path / f"{count}.json", count, *more)
        cells[count] = cell_of(done, tmp_path / f"{count}.json", count)
        assert (cells[count]["images"], cells[count]["steps_per_epoch"]) == (BATCH * STEPS, N_IMAGES // BATCH)
        (file,) = saves.glob("**/*.safetensors")
        weights[count] = tensors(file)
    for count in [2, 4]:
        assert losses(cells[count]) == pytest.approx(losses(cells[1]), rel=1e-4)
        assert weights[count].keys() == weights[1].keys()
        for name, values in weights[1].items():
            largest = max(map(abs, values))
            assert weights[count][name] == pytest.approx(values, rel=1e-4, abs=1e-4 * largest), name


def test_ranks_that_resume_make_the_steps_of_the_run_that_went_on(run_ranks, forebay, photos, tmp_path):
    whole = cell_of(train(run_ranks, forebay, photos / "files", tmp_path / "whole.json", 2), tmp_path / "whole.json", 2)
    saves = ["--checkpoint-every", 5, "--checkpoint-dir", tmp_path / "saved"]
    begun = train(run_ranks, forebay, photos / "files", tmp_path / "begun.json", 2, "--steps", 5, *saves)
    assert begun.returncode == 0, begun.stderr
    resumed = train(run_ranks, forebay, photos / "files", tmp_path / "resumed.json", 2, *saves, "--resume")
    cell = cell_of(resumed, tmp_path / "resumed.json", 2)
    assert (cell["resumed_from"], losses(cell)) == (5, losses(whole)[5:])
    other = train(run_ranks, forebay, photos / "files", tmp_path / "other.json", 4, *saves, "--resume", "--batch", 12)
    assert other.returncode == 2
    assert "it was saved by 2 ranks, now 4" in " ".join(other.stderr.split()), other.stderr


def test_streamed_shards_are_divided_whole(run_ranks, forebay, photos, tmp_path):
    n_shards = len(list((photos / "shards").glob("*.tfrecord")))
    assert n_shards in range(4, 8), n_shards
    more = ["--shuffle", "window:16", "--steps", 6]
    one = cell_of(train(run_ranks, forebay, photos / "shards", tmp_path / "1.json", 1, *more), tmp_path / "1.json", 1)
    two = cell_of(train(run_ranks, forebay, photos / "shards", tmp_path / "2.json", 2, *more), tmp_path / "2.json", 2)
    # Blocks that every rank reads would double the bytes.
    assert two["bytes"] < 1.3 * one["bytes"], (one["bytes"], two["bytes"])
    more = ["--shuffle", "window:16", "--batch", 4]
    done = train(run_ranks, forebay, photos / "shards", tmp_path / "8.json", 8, *more)
    said = " ".join(done.stderr.split())
    assert done.returncode == 2 and f"8 ranks read whole shards, and there are only {n_shards}" in said, said
    assert said.count("hint:") == 1 and "--shuffle full" in said, "said once: " + said


def test_an_emulated_accelerator_of_every_rank_waits_for_the_others(run_ranks, forebay, photos, tmp_path):
    out = tmp_path / "emulated.json"
    words = [photos / "files", "--accelerator", "emulated:5ms", "--steps", 20, "--batch", 4, "--threads", 1]
    done = run_ranks(4, forebay, "train", *words, "--json", out)
    cell = cell_of(done, out, 4)
    assert (cell["n_steps"], cell["images"]) == (20, 320)
    said = " ".join(done.stdout.split())
    assert "20 steps of 4 images on each of 4 ranks took" in said and "barrier" in said, said


def test_ranks_that_are_to_stop_save_and_keep_what_they_measured(forebay, photos, tmp_path):
    out, saves = tmp_path / "stopped.json", tmp_path / "saved"
    words = ["--accelerator", "emulated:5ms", "--steps", 1_000_000, "--batch", 4, "--threads", 1, "--json", out]
    words += ["--checkpoint-every", 50, "--checkpoint-dir", saves, "--checkpoint-size", "1MB"]
    command = [str(word) for word in [*mpirun(2), forebay, "train", photos / "files", *words]]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + LATENESS_S
        while not list(saves.glob("step-*")):
            assert job.poll() is None and time.monotonic() < end, "the job does not start"
            time.sleep(0.05)
        os.kill(job.pid, signal.SIGINT)
        said = job.communicate(timeout=LATENESS_S)[1]
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()
    assert job.returncode != 0
    record = json.loads(out.read_text())
    (cell,) = record["cells"]
    assert len({rank["n_steps"] for rank in cell["ranks"]}) == 1, said
    reached = cell["n_steps"]
    assert any(f"the state after step {reached} is saved" in note for note in record["notes"]), record["notes"]


def test_what_ranks_cannot_do_is_refused_before_anything_is_read(run_ranks, forebay, photos, tmp_path):
    synthetic = ["--synthetic", "--model", "alexnet-small", "--batch", 4, "--steps", 5]
    failing = ["--fail-every", "1s", "--checkpoint-every", 2, "--checkpoint-dir", tmp_path / "saved"]
    for more, said in [(failing, "several ranks: `fail_every`"), (["--interval", "5%", "--repeats", 2], "several ranks: ")]:
        done = run_ranks(2, forebay, "train", *synthetic, *more)
        assert done.returncode == 2 and done.stderr.count(said) == 1, done.stderr
    large = run_ranks(2, forebay, "train", photos / "files", "--accelerator", "emulated:1ms", "--batch", 60)
    assert large.returncode == 2
    assert re.search(r"96 samples are less than one batch of 120", " ".join(large.stderr.split())), large.stderr
