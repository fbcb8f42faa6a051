"""safetensors: the Python package reads what forebay writes, and forebay reads what the package writes."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from plain_checkpoint import Checkpoint, assert_same, random_array, read_ours, refusal, write_ours

DTYPES = [
    *["bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "uint32", "int32", "float32"],
    *["uint64", "int64", "float64", "float8_e4m3fn", "float8_e5m2", "complex64"],
]
NOTES = {"step": "20", "pipeline": '{"epoch": 1, "at": "größe\\n"}', "": "empty key"}


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    arrays = {f"layer/{dtype}/größe": random_array(random, dtype, (3, 1, 7)) for dtype in DTYPES}
    arrays |= {f"{dtype} scalar": random_array(random, dtype, ()) for dtype in DTYPES}
    arrays |= {"none": np.zeros((0,), np.float32), "none of many": np.zeros((4, 0, 9), np.int16)}
    arrays |= {"deep": np.ones((1,) * 30, np.float32), 'q"uo\\te\n': np.arange(5, dtype=np.int64)}
    return arrays | {"large": random_array(random, "float32", (700, 301))}


def test_the_package_reads_ours(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    write_ours("safetensors", tmp_path, "model", Checkpoint(arrays, NOTES))
    path = tmp_path / "model.safetensors"
    known = {name: array for name, array in arrays.items() if "float8" not in name}
    with safetensors.safe_open(path, "numpy") as opened:
        assert opened.metadata() == NOTES
        assert_same({name: opened.get_tensor(name) for name in known}, known)
        assert np.array_equal(opened.get_slice("large")[5:9, 3].view("u4"), arrays["large"][5:9, 3].view("u4"))


def test_the_package_reads_types_of_eight_bits(tmp_path: Path) -> None:
    names = ["F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"]
    dtypes = ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"]
    random = np.random.default_rng(8)
    arrays = {name: random_array(random, dtype, (5, 3)) for name, dtype in zip(names, dtypes, strict=True)}
    write_ours("safetensors", tmp_path, "small", Checkpoint(arrays))
    read = safetensors.deserialize((tmp_path / "small.safetensors").read_bytes())
    assert {name: (said["dtype"], bytes(said["data"])) for name, said in read} == {
        name: (name, array.tobytes()) for name, array in arrays.items()
    }
    assert_same(read_ours("safetensors", tmp_path, "small").arrays, arrays)


def test_values_begin_on_a_page_and_each_at_a_multiple_of_its_size(
    arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    write_ours("safetensors", tmp_path, "model", Checkpoint(arrays))
    content = (tmp_path / "model.safetensors").read_bytes()
    (header_len,) = struct.unpack("<Q", content[:8])
    assert (8 + header_len) % 4096 == 0
    header = json.loads(content[8 : 8 + header_len])
    assert all(header[name]["data_offsets"][0] % array.dtype.itemsize == 0 for name, array in arrays.items())


def test_we_read_the_packages_files(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    safetensors.numpy.save_file(arrays, tmp_path / "theirs.safetensors", metadata=NOTES)
    read = read_ours("safetensors", tmp_path, "theirs")
    assert_same(read.arrays, arrays)
    assert read.notes == NOTES


def test_an_empty_file_of_either_side_is_read_by_the_other(tmp_path: Path) -> None:
    write_ours("safetensors", tmp_path, "ours", Checkpoint({}))
    assert safetensors.numpy.load_file(tmp_path / "ours.safetensors") == {}
    safetensors.numpy.save_file({}, tmp_path / "theirs.safetensors")
    assert read_ours("safetensors", tmp_path, "theirs") == Checkpoint({})


BAD_HEADERS = {
    "hole": '{"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
    "tail": '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}',
    "wrong size": '{"a":{"dtype":"U16","shape":[2],"data_offsets":[0,3]}}',
    "overlap": '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
    '"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
    "unknown type": '{"a":{"dtype":"U9","shape":[3],"data_offsets":[0,3]}}',
    "negative": '{"a":{"dtype":"U8","shape":[-3],"data_offsets":[0,3]}}',
}


@pytest.mark.parametrize("header", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_both_sides_refuse_the_same_headers(header: str, tmp_path: Path) -> None:
    (tmp_path / "bad.safetensors").write_bytes(struct.pack("<Q", len(header)) + header.encode() + b"abc")
    with pytest.raises(safetensors.SafetensorError):
        safetensors.numpy.load_file(tmp_path / "bad.safetensors")
    assert refusal("safetensors", tmp_path, "bad").startswith("bad.safetensors: ")
