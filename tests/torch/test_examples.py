"""The examples, at a small size."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(os.environ.get("FOREBAY_EXAMPLES", Path(__file__).parents[2] / "examples/python"))

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_pytorch_training_resumes_with_the_same_losses(photos: Path, tmp_path: Path) -> None:
    small = ["--model", "resnet18", "--batch-size", 32, "--image-size", 32, "--epochs", 2, "--save-every", 3, "--lr", 0.01]
    program = [sys.executable, EXAMPLES / "train_pytorch.py", photos, photos, *small, "--checkpoints"]
    whole = run(*program, tmp_path / "a")
    run(*program, tmp_path / "b", "--stop-after", 8)
    resumed = run(*program, tmp_path / "b")
    assert "goes on after step 6, in epoch 1" in resumed
    losses = re.findall(r"epoch 1: loss ([\d.]+)", whole)
    assert len(losses) == 1 and re.findall(r"epoch 1: loss ([\d.]+)", resumed) == losses


def test_pytorch_training_that_is_killed_again_and_again_ends_with_the_same_losses(photos: Path, tmp_path: Path) -> None:
    small = ["--model", "resnet18", "--batch-size", "16", "--image-size", "32", "--epochs", "3", "--save-every", "1", "--lr", "0.01"]
    program = [sys.executable, str(EXAMPLES / "train_pytorch.py"), str(photos), str(photos), *small, "--checkpoints"]
    whole = run(*program, tmp_path / "a")
    folder, draw = tmp_path / "b", random.Random(11)
    for stop in (draw.randrange(2, 12), draw.randrange(13, 24)):
        with subprocess.Popen([*program, str(folder)], stdout=subprocess.DEVNULL, env=ENVIRONMENT) as killed:
            # A moment that no step begins or ends at.
            while not list(folder.glob(f"step-{stop:012}")) and killed.poll() is None:
                time.sleep(draw.random() / 50)
            assert killed.poll() is None, "it ended before it was killed"
            killed.kill()
    rest = run(*program, folder)
    went_on = re.findall(r"goes on after step (\d+), in epoch (\d)", rest)
    assert len(went_on) == 1 and 13 <= int(went_on[0][0]) < 36, rest
    wanted = re.findall(r"epoch (\d): (loss [\d.]+)", whole)
    assert len(wanted) == 3 and re.findall(r"epoch (\d): (loss [\d.]+)", rest) == wanted[int(went_on[0][1]) :]


def test_pytorch_training_on_two_ranks(photos: Path, tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", 0, "--standalone"]
    small = ["--model", "resnet18", "--batch-size", 16, "--image-size", 32, "--epochs", 1, "--save-every", 3, "--lr", 0.01]
    program = [EXAMPLES / "train_pytorch.py", photos, photos, *small, "--checkpoints", tmp_path]
    said = run(*launch, *program)
    assert "epoch 0: loss" in said and sorted(os.listdir(tmp_path))[-1] == "step-000000000006"


def test_a_language_model_resumes_with_the_same_losses(tmp_path: Path) -> None:
    small = ["--length", 32, "--batch-size", 8, "--width", 32, "--steps", 30, "--save-every", 10]
    program = [sys.executable, EXAMPLES / "train_tokens.py", tmp_path / "tokens", *small, "--checkpoints"]
    whole = run(*program, tmp_path / "a", "--make")
    run(*program, tmp_path / "b", "--stop-after", 24)
    resumed = run(*program, tmp_path / "b")
    assert "goes on after step 20" in resumed
    last = r"stopped after step 30, loss ([\d.]+)"
    assert re.findall(last, resumed) == re.findall(last, whole) and float(re.findall(last, whole)[0]) < 3.5


def test_jax_learns(tmp_path: Path) -> None:
    said = run(sys.executable, EXAMPLES / "train_jax.py", tmp_path / "shards", "--make")
    assert float(re.findall(r"accuracy ([\d.]+)\n", said)[-1]) > 0.9, said


def test_keras_learns(photos: Path) -> None:
    said = run(sys.executable, EXAMPLES / "train_keras.py", photos, "--epochs", 12, "--image-size", 48)
    assert float(re.findall(r"accuracy ([\d.]+)\n", said)[-1]) > 0.4, said
