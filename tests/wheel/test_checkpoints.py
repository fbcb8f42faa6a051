"""States survive a save, are what safetensors reads, and are refused where they do not fit."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import forebay


def state() -> dict[str, Any]:
    """Every kind of value, nested as optimisers do."""
    moments = np.arange(6, dtype=np.float64).reshape(2, 3)
    return {
        "state": {0: {"step": np.int64(7), "mean": moments, "same": moments, "turned": moments.T}, 1: {}},
        "groups": [{"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 1], "fused": None, "amsgrad": False}],
        "odd": [float("inf"), b"\x00\xff", "text", 1 << 70, np.zeros((0, 3), np.float32), np.array(2.5, np.float16)],
        "order": np.arange(3, dtype=">i4"),
        "a.b": np.uint8([1]),
        "a": {"b": np.uint8([2])},
    }


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, (np.ndarray, np.generic)):
        return a.shape == b.shape and a.dtype == b.dtype.newbyteorder("=") and np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("mode", ["async", "direct", "burst"])
@pytest.mark.parametrize("form", ["safetensors", "tensorflow"])
def test_a_state_survives(tmp_path: Path, mode: str, form: str) -> None:
    burst = tmp_path / "burst" if mode == "burst" else None
    with forebay.Checkpointer(tmp_path / "c", burst, mode=mode, format=form) as saver:
        saver.save(10, model={"w": np.float32([1, 2])}, extra=state())
        assert saver.wait()
        assert saver.steps() == [10]
    restored = forebay.Checkpointer(tmp_path / "c").restore()
    assert (restored.step, list(restored), restored.passed_over) == (10, ["model", "extra"], [])
    assert equal(restored.state("extra"), state())
    extra = restored.state("extra")["state"][0]
    assert extra["mean"] is extra["same"], "saved once"


def test_safetensors_reads_it(tmp_path: Path) -> None:
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(3, model={"layer": {"weight": np.float32([[1, 2]])}, "bias": np.int8([3])})
    tensors = load_file(tmp_path / "step-000000000003" / "model.safetensors")
    assert sorted(tensors) == ["model.bias", "model.layer.weight"]
    assert tensors["model.layer.weight"].tolist() == [[1, 2]] and tensors["model.bias"].dtype == np.int8


def test_values_are_those_at_the_time_of_the_save(tmp_path: Path) -> None:
    weights = np.zeros(1_000_000, np.float32)
    with forebay.Checkpointer(tmp_path, mode="async") as saver:
        for step in range(4):
            weights[:] = step
            saver.save(step, model=weights)
            weights[:] = -1
    saver = forebay.Checkpointer(tmp_path)
    assert saver.steps() == [0, 1, 2, 3]
    for step in range(4):
        assert (saver.restore(step).state("model") == step).all()


def test_tensors_are_restored_in_place(tmp_path: Path) -> None:
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, model={"w": np.float32([1, 2]), "deep": [np.int32([3])]}, extra={"epoch": 4})
        model = {"w": np.zeros(2, np.float32), "deep": [np.zeros(1, np.int32)]}
        kept = model["w"]
        extra: dict[str, Any] = {}
        saver.restore(model=model, extra=extra)
    assert model["w"] is kept and kept.tolist() == [1, 2] and model["deep"][0].tolist() == [3] and extra == {"epoch": 4}


def test_another_model_is_refused_by_its_first_tensor_and_left_alone(tmp_path: Path) -> None:
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, model={"a": np.ones(2), "b": np.ones((2, 3))})
        model = {"a": np.zeros(2), "b": np.zeros((3, 2))}
        with pytest.raises(ValueError, match=r"another model: model\.b has shape \[2, 3\] there and \[3, 2\] here"):
            saver.restore(model=model)
        with pytest.raises(ValueError, match=r"it has no tensor model\.c"):
            saver.restore(model={"a": np.zeros(2), "c": np.zeros(1)})
        with pytest.raises(ValueError, match=r"its tensor model\.b is not here"):
            saver.restore(model={"a": np.zeros(2)})
        with pytest.raises(ValueError, match="has no 'optimizer', only model"):
            saver.restore(optimizer={})
        with pytest.raises(TypeError, match="a int cannot be restored into"):
            saver.restore(model=5)
        assert not model["a"].any()


def test_the_newest_that_verifies_is_restored(tmp_path: Path) -> None:
    with forebay.Checkpointer(tmp_path, mode="direct", keep=2) as saver:
        for step in (1, 2, 3):
            saver.save(step, model=np.full(100, step))
    assert saver.steps() == [2, 3]
    path = tmp_path / "step-000000000003" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    restored = forebay.Checkpointer(tmp_path).restore()
    assert restored.step == 2 and "step-000000000003" in restored.passed_over[0]
    with pytest.raises(forebay.CheckpointError, match="no valid checkpoint of step 3"):
        forebay.Checkpointer(tmp_path).restore(3)


def test_errors_have_the_fitting_type(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no valid checkpoint"):
        forebay.Checkpointer(tmp_path / "none").restore()
    for settings, said in (
        ({"mode": "later"}, "mode \"later\""),
        ({"mode": "burst"}, "give burst_dir"),
        ({"mode": "direct", "burst_dir": tmp_path}, "omit burst_dir"),
        ({"keep": 0}, "at least 1"),
        ({"format": "pickle"}, "safetensors, tensorflow"),
    ):
        with pytest.raises(ValueError, match=said):
            forebay.Checkpointer(tmp_path, **settings)
    saver = forebay.Checkpointer(tmp_path / "file" / "c")
    (tmp_path / "file").write_text("a file")
    with pytest.raises(OSError, match="file"):
        saver.save(1, model=np.ones(1))
    with pytest.raises(TypeError, match=r"extra\.0\.x: a set cannot be saved"):
        saver.save(1, extra=[{"x": {1}}])
    with pytest.raises(TypeError, match="a key of type tuple"):
        saver.save(1, extra={(1, 2): 3})
    with pytest.raises(TypeError, match="Python objects"):
        saver.save(1, extra=np.array([object()]))
    with pytest.raises(ValueError, match="nothing to save"):
        saver.save(1)
    with pytest.raises(OverflowError):
        saver.save(-1, model=np.ones(1))


def test_one_process_at_a_time_saves(tmp_path: Path) -> None:
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, model=np.ones(1))
        other = forebay.Checkpointer(tmp_path, mode="direct")
        with pytest.raises(forebay.CheckpointError, match=f"in use by process {os.getpid()}"):
            other.save(2, model=np.ones(1))
        assert other.restore().step == 1, "reading needs no lock"
    other.save(2, model=np.ones(1))
    other.close()


def test_a_program_that_just_ends_has_saved(tmp_path: Path) -> None:
    program = (
        "import forebay, numpy, sys\n"
        "saver = forebay.Checkpointer(sys.argv[1])\n"
        "saver.save(5, model=numpy.ones(3_000_000))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    assert forebay.Checkpointer(tmp_path).restore().step == 5


def test_a_fork_is_refused(tmp_path: Path) -> None:
    saver = forebay.Checkpointer(tmp_path)
    saver.save(1, model=np.ones(1))
    child = os.fork()
    if child == 0:
        try:
            saver.save(2, model=np.ones(1))
        except RuntimeError as error:
            os._exit(0 if "is a fork of it" in str(error) else 3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert saver.wait()
    saver.close()


def test_a_loader_goes_on_where_it_was_saved(photos: Path, tmp_path: Path) -> None:
    def make() -> forebay.ImageLoader:
        return forebay.ImageLoader(photos, batch_size=4, image_size=8, train=True, output="numpy", return_index=True)

    loader, seen = make(), []
    with forebay.Checkpointer(tmp_path) as saver:
        for step, (*_, indices) in enumerate(loader):
            seen.append(indices.tolist())
            if step == 1:
                saver.save(step, loader=loader)
    resumed = make()
    forebay.Checkpointer(tmp_path).restore(loader=resumed)
    assert [indices.tolist() for *_, indices in resumed] == seen[2:]
