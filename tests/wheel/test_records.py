"""Records of TFRecord, tar and indexed binary: whole, by field, in order, resumed, damaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shards import example, write_indexed, write_tar, write_tfrecord

import forebay

N = 61
RECORDS = [bytes([number]) * (number * 7 % 50) for number in range(N)]
FLOATS = np.random.default_rng(0).standard_normal((N, 2, 3)).astype(np.float32)
PIXELS = np.random.default_rng(1).integers(0, 256, (N, 4, 4, 3), dtype=np.uint8)
FIELDS = {"x": ("float32", (2, 3)), "label": "int64", "pixels": ("uint8", (4, 4, 3)), "name": bytes}


def examples() -> list[bytes]:
    return [example(x=FLOATS[i].ravel(), label=i - 3, pixels=PIXELS[i].tobytes(), name=b"n" * i) for i in range(N)]


def make(data: Any, **settings: Any) -> forebay.RecordLoader:
    return forebay.RecordLoader(data, **{"batch_size": 8, "output": "numpy", "threads": 2, **settings})


@pytest.mark.parametrize("write", [write_tfrecord, write_indexed])
def test_whole_records_are_bytes_in_order(tmp_path: Path, write: Any) -> None:
    for shard in range(3):
        write(tmp_path / f"{shard}.tfrecord", RECORDS[shard::3])
    wanted = RECORDS[0::3] + RECORDS[1::3] + RECORDS[2::3]
    batches = list(make(tmp_path))
    assert [len(batch) for batch in batches] == [8] * 7 + [5]
    assert sum(batches, []) == wanted
    assert sum(make([tmp_path / "1.tfrecord"], errors="skip"), []) == RECORDS[1::3]
    shuffled = make(tmp_path, shuffle=True)
    epochs = [sum(shuffled, []), sum(shuffled, [])]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(RECORDS) and epochs[0] != epochs[1]
    stopped = make(tmp_path, shuffle=True)
    taken = next(iter(stopped))
    resumed = make(tmp_path, shuffle=True, threads=5, batch_size=3)
    resumed.load_state_dict(stopped.state_dict())
    assert taken + sum(resumed, []) == epochs[0]


def test_fields_of_examples_are_arrays_and_bytes(tmp_path: Path) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", examples())
    loader, at = make(tmp_path, fields=FIELDS), 0
    for batch in loader:
        n = len(batch["label"])
        assert list(batch) == list(FIELDS) and batch["x"].dtype == np.float32
        assert np.array_equal(batch["x"], FLOATS[at : at + n]) and np.array_equal(batch["pixels"], PIXELS[at : at + n])
        assert batch["label"].tolist() == list(range(at - 3, at - 3 + n))
        assert batch["name"] == [b"n" * i for i in range(at, at + n)]
        at += n
    assert at == N and loader.stats()["samples"] == N
    only = next(iter(make(tmp_path, fields={"label": "int64"})))
    assert list(only) == ["label"] and only["label"].flags.c_contiguous


def test_tar_samples_are_dicts_of_files(tmp_path: Path) -> None:
    samples = [{"npy": FLOATS[i].tobytes(), "cls": str(i).encode(), "json": b"{}" * i} for i in range(N)]
    write_tar(tmp_path / "a.tar", samples)
    assert sum(make(tmp_path), []) == samples
    batches = list(make(tmp_path / "a.tar", fields={"npy": ("float32", (2, 3)), "json": bytes}))
    assert np.array_equal(np.concatenate([batch["npy"].copy() for batch in batches]), FLOATS)
    assert sum((batch["json"] for batch in batches), []) == [b"{}" * i for i in range(N)]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"y": "int64"}, "no feature y, only label, name, pixels, x"),
        ({"x": ("float32", (7,))}, r"x is wanted as float32 \[7\], 28 bytes, and has 24"),
        ({"x": "int64"}, "x is wanted as int64 and has float32 values"),
        ({"label": "int32"}, "label is wanted as int32 and has int64 values"),
        ({"pixels": ("float32", (4, 4))}, "64 bytes, and has 48"),
        ({"x": bytes}, "x has no bytes; give its type and shape"),
    ],
)
def test_a_field_that_is_not_as_wanted_is_named(tmp_path: Path, fields: dict, said: str) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", examples())
    with pytest.raises(forebay.SampleError, match=r"a\.tfrecord at offset 0: .*" + said):
        list(make(tmp_path, fields=fields))


def test_what_cannot_be_read_is_refused_or_skipped(tmp_path: Path) -> None:
    write_indexed(tmp_path / "a.bin", RECORDS)
    with pytest.raises(ValueError, match="indexed data has records without names; omit the fields"):
        make(tmp_path / "a.bin", fields={"x": bytes})
    with pytest.raises(ValueError, match='"float33" is not one of'):
        make(tmp_path / "a.bin", fields={"x": "float33"})
    with pytest.raises(TypeError, match="x is bytes, a type"):
        make(tmp_path / "a.bin", fields={"x": 3})
    (tmp_path / "a.bin").write_bytes((tmp_path / "a.bin").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"a\.bin.*truncated"):
        make(tmp_path / "a.bin")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        make(tmp_path / "nowhere")
    shard = tmp_path / "b.tfrecord"
    write_tfrecord(shard, [b"first" * 9, b"second" * 9, b"third" * 9])
    damaged = bytearray(shard.read_bytes())
    damaged[12 + 45 + 4 + 12 + 5] ^= 1
    shard.write_bytes(damaged)
    with pytest.raises(forebay.SampleError, match=r"b\.tfrecord at offset 61"):
        list(make(shard))
    loader = make(shard, errors="skip")
    assert sum(loader, []) == [b"first" * 9, b"third" * 9] and loader.stats()["failed"] == 1
