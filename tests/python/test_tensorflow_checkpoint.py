"""TensorFlow's checkpoints: TensorFlow reads what forebay writes, and forebay reads what TensorFlow writes."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from plain_checkpoint import Checkpoint, assert_same, random_array, read_ours, refusal, write_ours

v1 = tf.compat.v1
DTYPES = [
    *["bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "uint32", "int32", "float32"],
    *["uint64", "int64", "float64", "complex64", "complex128", "float8_e5m2", "float8_e4m3fn"],
]
NOTES = {"step": "20", "pipeline": '{"epoch": 1, "at": "größe"}', "long": "x" * 70000}


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(6)
    arrays = {f"layer/{dtype}/w": random_array(random, dtype, (3, 1, 7)) for dtype in DTYPES}
    arrays |= {f"{dtype}_scalar": random_array(random, dtype, ()) for dtype in DTYPES}
    arrays |= {"none": np.zeros((0,), np.float32), "none_of_many": np.zeros((4, 0, 9), np.int16)}
    arrays |= {"deep": np.ones((1,) * 30, np.float32), "größe": np.arange(5, dtype=np.int64)}
    return arrays | {"large": random_array(random, "float32", (700, 301))}


def test_load_checkpoint_reads_ours(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    write_ours("tensorflow", tmp_path, "model-20", Checkpoint(arrays, NOTES))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-20")
    reader = tf.train.load_checkpoint(str(tmp_path))
    read = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    notes = {name: read.pop(f"_forebay/notes/{name}").decode() for name in NOTES}
    assert notes == NOTES
    assert_same({name: np.asarray(array) for name, array in read.items()}, arrays)


def test_an_index_of_many_blocks_is_read(tmp_path: Path) -> None:
    names = [f"a/long/way/to/{'x' * (n % 60)}/layer_{n:05d}" for n in range(30000)]
    arrays = {name: np.full((n % 3,), n, np.int32) for n, name in enumerate(names)}
    write_ours("tensorflow", tmp_path, "many", Checkpoint(arrays))
    assert (tmp_path / "many.index").stat().st_size > 2 * 256 * 1024
    reader = tf.train.load_checkpoint(str(tmp_path / "many"))
    assert len(reader.get_variable_to_shape_map()) == len(names)
    for name in names[::97]:
        assert np.array_equal(reader.get_tensor(name), arrays[name])


def test_a_meta_graph_restores_without_the_program(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    kept = {name: array for name, array in arrays.items() if not name.startswith(("layer/float8", "float8"))}
    write_ours("tensorflow", tmp_path, "model", Checkpoint(kept, NOTES))
    with tf.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph(str(tmp_path / "model.meta"))
        saver.restore(session, str(tmp_path / "model"))
        variables = {name: name if name.isascii() else f"tensor_{list(kept).index(name)}" for name in kept}
        read = {name: np.asarray(session.run(f"{variable}:0")) for name, variable in variables.items()}
        assert_same(read, kept)
        saver.save(session, str(tmp_path / "again"), write_meta_graph=False)
    assert_same(read_ours("tensorflow", tmp_path, "again").arrays, kept)


def test_a_meta_graph_without_tensors_is_imported(tmp_path: Path) -> None:
    write_ours("tensorflow", tmp_path, "none", Checkpoint({}))
    with tf.Graph().as_default():
        v1.train.import_meta_graph(str(tmp_path / "none.meta"))
    assert tf.train.load_checkpoint(str(tmp_path / "none")).get_variable_to_shape_map() == {}


@pytest.mark.parametrize("n_arrays", [1, 40, 9000])
def test_index_and_data_have_the_bytes_of_tensorflows_saver(n_arrays: int, tmp_path: Path) -> None:
    random = np.random.default_rng(n_arrays)
    names = sorted(f"scope_{n % 7}/{'y' * (n % 40)}/w{n:04d}" for n in range(n_arrays))
    arrays = {name: random_array(random, "float32", (n % 3, 2)) for n, name in enumerate(names)}
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "theirs"), tensor_names=names, shape_and_slices=[""] * n_arrays,
        tensors=[tf.constant(arrays[name]) for name in names],
    )
    write_ours("tensorflow", tmp_path, "ours", Checkpoint(arrays))
    for extension in ["index", "data-00000-of-00001"]:
        assert (tmp_path / f"ours.{extension}").read_bytes() == (tmp_path / f"theirs.{extension}").read_bytes()


def test_we_read_what_savev2_writes(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    text = np.array([["a", ""], ["größe", "x" * 300]], object)
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "theirs"), tensor_names=[*arrays, "text"], shape_and_slices=[""] * (len(arrays) + 1),
        tensors=[*(tf.constant(array) for array in arrays.values()), tf.constant(text)],
    )
    read = read_ours("tensorflow", tmp_path, "theirs")
    assert_same(read.arrays, arrays)
    assert read.strings == {"text": ["a", "", "größe", "x" * 300]}


def test_we_read_an_object_checkpoint(tmp_path: Path) -> None:
    model = tf.train.Checkpoint(w=tf.Variable([1.5, 2.5]), step=tf.Variable(7, dtype=tf.int64))
    path = Path(model.save(str(tmp_path / "model")))
    read = read_ours("tensorflow", tmp_path, path.name)
    values = {name: array.tolist() for name, array in read.arrays.items()}
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    assert values == {f"w{suffix}": [1.5, 2.5], f"step{suffix}": 7, f"save_counter{suffix}": 1}
    assert list(read.strings) == ["_CHECKPOINTABLE_OBJECT_GRAPH"]


def test_we_read_a_bundle_of_several_shards(tmp_path: Path) -> None:
    first = {"a": np.arange(6, dtype=np.float32), "z": np.zeros((2, 0))}
    parts = [first, {"b": np.arange(9, dtype=np.int64)}, {"c": np.float64(3)}]
    for n, part in enumerate(parts):
        tf.raw_ops.SaveV2(
            prefix=str(tmp_path / f"part{n}"), tensor_names=list(part), shape_and_slices=[""] * len(part),
            tensors=[tf.constant(array) for array in part.values()],
        )
    prefixes = [str(tmp_path / f"part{n}") for n in range(3)]
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=str(tmp_path / "whole"))
    assert (tmp_path / "whole.data-00002-of-00003").is_file()
    expected = {name: np.asarray(array) for part in parts for name, array in part.items()}
    assert_same(read_ours("tensorflow", tmp_path, "whole").arrays, expected)


def test_slices_and_odd_types_are_refused_by_name(tmp_path: Path) -> None:
    whole = tf.constant(np.arange(8, dtype=np.float32))
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "sliced"), tensor_names=["w", "w"], shape_and_slices=["8 0,4", "8 4,4"],
        tensors=[whole[:4], whole[4:]],
    )
    assert refusal("tensorflow", tmp_path, "sliced") == 'sliced.index: not supported: variable "w" in 2 slices\n'
    quantized = tf.quantization.quantize(whole, 0.0, 8.0, tf.qint8).output
    tf.raw_ops.SaveV2(prefix=str(tmp_path / "odd"), tensor_names=["q"], shape_and_slices=[""], tensors=[quantized])
    assert refusal("tensorflow", tmp_path, "odd") == 'odd.index: not supported: tensor "q" of TensorFlow\'s type 11\n'


def test_damage_is_noticed_on_both_sides(tmp_path: Path) -> None:
    write_ours("tensorflow", tmp_path, "model", Checkpoint({"w": np.arange(1000, dtype=np.float32)}))
    data = tmp_path / "model.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[1234] ^= 0x20
    data.write_bytes(content)
    with pytest.raises(tf.errors.OpError, match="Checksum does not match"):
        tf.train.load_checkpoint(str(tmp_path / "model")).get_tensor("w")
    assert 'data-00000-of-00001: tensor "w" at offset 0: checksum' in refusal("tensorflow", tmp_path, "model")


def test_the_state_of_a_folder_is_tensorflows(tmp_path: Path) -> None:
    write_ours("tensorflow", tmp_path, 'größe "7"\\', Checkpoint({"w": np.zeros(3)}))
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == [state.model_checkpoint_path]
    assert state.model_checkpoint_path == str(tmp_path / 'größe "7"\\')
