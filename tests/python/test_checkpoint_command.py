"""`forebay checkpoint convert` and `restore`: other libraries read what the command writes, and it reads what they write."""

from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import tensorflow as tf
from conftest import Forebay, flat
from plain_checkpoint import assert_same, random_array

DTYPES = ["bool", "uint8", "int8", "float16", "bfloat16", "int32", "float32", "int64", "float64"]
NOTES = {"step": "20", "pipeline": '{"epoch": 1}'}


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(9)
    arrays = {f"layer/{dtype}/w": random_array(random, dtype, (3, 1, 7)) for dtype in DTYPES}
    return arrays | {"none": np.zeros((0,), np.float32), "large": random_array(random, "float32", (1700, 1001))}


def test_a_safetensors_file_becomes_a_checkpoint_that_tensorflow_reads(
    forebay: Forebay, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    safetensors.numpy.save_file(arrays, tmp_path / "theirs.safetensors", metadata=NOTES)
    forebay("checkpoint", "convert", tmp_path / "theirs.safetensors", tmp_path / "model-20", "--to", "tensorflow")
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-20")
    reader = tf.train.load_checkpoint(str(tmp_path))
    read = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    assert {name: read.pop(f"_forebay/notes/{name}").decode() for name in NOTES} == NOTES
    assert_same({name: np.asarray(array) for name, array in read.items()}, arrays)


def test_tensorflows_checkpoint_becomes_a_file_that_safetensors_reads(
    forebay: Forebay, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "theirs"), tensor_names=[*arrays, "text"], shape_and_slices=[""] * (len(arrays) + 1),
        tensors=[*(tf.constant(array) for array in arrays.values()), tf.constant("words")],
    )
    out = tmp_path / "ours.safetensors"
    convert = ["checkpoint", "convert", tmp_path / "theirs", out, "--to", "safetensors"]
    assert '1 tensor of strings ("text") cannot be written' in flat(forebay(*convert, status=1).stderr)
    assert not out.exists()
    done = forebay(*convert, "--drop-strings")
    assert done.stderr == 'forebay: left out 1 tensor of strings ("text"), which cannot be written\n'
    with safetensors.safe_open(out, "numpy") as opened:
        assert_same({name: opened.get_tensor(name) for name in opened.keys()}, arrays)


def test_a_model_and_its_optimizer_saved_by_keras_become_safetensors_and_come_back(forebay: Forebay, tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(2, dtype="bfloat16")])
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    extra = tf.Variable(2**40, dtype=tf.int64)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.cast(model(tf.ones((5, 3))), tf.float32) ** 2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    prefix = tf.train.Checkpoint(model=model, optimizer=optimizer, extra=extra).save(str(tmp_path / "ckpt"))
    reader = tf.train.load_checkpoint(prefix)
    names = [name for name in reader.get_variable_to_shape_map() if name != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    wanted = {name: np.asarray(reader.get_tensor(name)) for name in names}
    assert len(wanted) > 10 and wanted["save_counter/.ATTRIBUTES/VARIABLE_VALUE"] == 1
    out = tmp_path / "ours.safetensors"
    done = forebay("checkpoint", "convert", prefix, out, "--to", "safetensors")
    assert done.stderr.startswith("forebay: left out the object graph of tf.train.Checkpoint") and done.stderr.count("forebay: ") == 1
    assert_same(safetensors.numpy.load_file(out), wanted)
    forebay("checkpoint", "convert", out, tmp_path / "back", "--to", "tensorflow")
    back = tf.train.load_checkpoint(str(tmp_path / "back"))
    assert_same({name: np.asarray(back.get_tensor(name)) for name in names}, wanted)


def test_a_type_that_safetensors_has_not_is_named(forebay: Forebay, tmp_path: Path) -> None:
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "theirs"), tensor_names=["z"], shape_and_slices=[""],
        tensors=[tf.constant(np.ones(3, np.complex128))],
    )
    out = tmp_path / "ours.safetensors"
    done = forebay("checkpoint", "convert", tmp_path / "theirs", out, "--to", "safetensors", status=2)
    assert '"z"' in done.stderr and not out.exists()


def test_there_and_back_through_both_libraries_is_bit_for_bit(
    forebay: Forebay, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors", metadata=NOTES)
    forebay("checkpoint", "convert", tmp_path / "a.safetensors", tmp_path / "b", "--to", "tensorflow")
    forebay("checkpoint", "convert", tmp_path / "b", tmp_path / "c.safetensors", "--to", "safetensors")
    with safetensors.safe_open(tmp_path / "c.safetensors", "numpy") as opened:
        assert opened.metadata() == NOTES
        assert_same({name: opened.get_tensor(name) for name in opened.keys()}, arrays)


@pytest.mark.parametrize("kind", ["safetensors", "tensorflow"])
def test_what_a_training_run_saved_is_restored_for_both_libraries(
    forebay: Forebay, photos: Path, tmp_path: Path, kind: str
) -> None:
    saved = tmp_path / "saved"
    forebay(
        "train", photos, "--accelerator", "emulated:1ms", "--batch", 4, "--steps", 4, "--checkpoint-every", 2,
        "--checkpoint-dir", saved, "--checkpoint-size", "1MB", "--checkpoint-format", kind,
    )
    forebay("checkpoint", "restore", saved, "--to", tmp_path / "model.safetensors")
    forebay("checkpoint", "restore", saved, "--to", tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as opened:
        notes, arrays = opened.metadata(), {name: opened.get_tensor(name) for name in opened.keys()}
    assert sum(array.nbytes for array in arrays.values()) >= 1_000_000
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model")
    reader = tf.train.load_checkpoint(str(tmp_path / "model"))
    read = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    assert {name: read.pop(f"_forebay/notes/{name}").decode() for name in notes} == notes
    assert_same({name: np.asarray(array) for name, array in read.items()}, arrays)
    newest = max(saved.glob("step-*"))
    if kind == "safetensors":
        assert_same(safetensors.numpy.load_file(next(newest.glob("*.safetensors"))), arrays)
    else:
        theirs = tf.train.load_checkpoint(str(next(newest.glob("*.index")).with_suffix("")))
        assert_same({name: np.asarray(theirs.get_tensor(name)) for name in arrays}, arrays)
