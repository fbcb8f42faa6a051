"""Parquet against pyarrow and pandas, HDF5 against h5py: theirs read by us, ours by them."""

import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]


def ours(*words: object, fails: bool = False) -> str:
    """The example program that turns values into files and back; what it said if it is to fail."""
    program = os.environ.get("FOREBAY_COLUMNAR_FILES")
    if not program:
        pytest.fail("set FOREBAY_COLUMNAR_FILES to the path of the example columnar_files", pytrace=False)
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == fails and "panicked" not in done.stderr, f"{words}: {done.stderr}"
    return done.stderr


def noise(dtype: str, *shape: int) -> np.ndarray:
    """Values of a type, the same every time."""
    draw = np.random.default_rng(7)
    if dtype.startswith("float"):
        return draw.standard_normal(shape).astype(dtype)
    return draw.integers(0, 256, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype).reshape(shape)


def rows_of(columns: list[np.ndarray]) -> bytes:
    """Rows as we hand them out: the values of a row's columns one behind the other."""
    parts = [np.ascontiguousarray(c).reshape(len(c), -1).view(np.uint8).reshape(len(c), -1) for c in columns]
    return np.hstack(parts).tobytes()


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip"])
def test_pyarrow_and_pandas_read_our_columns(tmp_path: Path, codec: str) -> None:
    columns = {f"{t}_{w}": noise(t, 50, w) for t in TYPES for w in (1, 3, 700)}
    for name, values in columns.items():
        (tmp_path / name).write_bytes(values.tobytes())
    words = [f"{name}:{values.dtype}:{values.shape[1]}" for name, values in columns.items()]
    file = tmp_path / "ours.parquet"
    ours("parquet-write", file, tmp_path, 50, 20, codec, *words)
    table = pq.read_table(file, page_checksum_verification=True)
    assert pq.ParquetFile(file).num_row_groups == 3
    assert table.num_rows == 50 and table.column_names == list(columns)
    for name, values in columns.items():
        found = table[name].to_pylist()
        if values.shape[1] > 1 and values.itemsize == 1:
            found = [np.frombuffer(field, values.dtype) for field in found]
        found = np.array(found, dtype=values.dtype).reshape(values.shape)
        assert found.tobytes() == values.tobytes(), name
    frame = pd.read_parquet(file, columns=["float32_1", "int64_1"])
    assert (frame["float32_1"].to_numpy() == columns["float32_1"][:, 0]).all()
    out = tmp_path / "rows"
    ours("parquet-read", file, out)
    assert out.read_bytes() == rows_of(list(columns.values()))


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_we_read_pyarrows_columns(tmp_path: Path, codec: str, version: str, dictionary: bool) -> None:
    columns = {t: noise(t, 3000) for t in TYPES}
    columns["few"] = noise("int64", 5)[np.arange(3000) % 5]
    lists = {"short": noise("float32", 3000, 3), "long": noise("float64", 3000, 130), "bytes": noise("uint8", 3000, 64)}
    table = {name: pa.array(values) for name, values in columns.items()}
    for name, values in lists.items():
        table[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    file, out = tmp_path / "theirs.parquet", tmp_path / "rows"
    pq.write_table(
        pa.table(table), file, compression=codec, data_page_version=version, use_dictionary=dictionary, row_group_size=1100
    )
    ours("parquet-read", file, out)
    assert out.read_bytes() == rows_of([*columns.values(), *lists.values()])
    chosen = ["long", "int8", "few"]
    ours("parquet-read", file, out, *chosen)
    assert out.read_bytes() == rows_of([{**columns, **lists}[name] for name in chosen])


def test_columns_that_we_do_not_read_are_refused_by_name_and_only_when_chosen(tmp_path: Path) -> None:
    file, out = tmp_path / "theirs.parquet", tmp_path / "rows"
    good = np.arange(4.0)
    odd = {
        "null": pa.array([1.0, None, 3.0, 4.0]),
        "text": pa.array(["a", "b", "c", "d"]),
        "uneven": pa.array([[1], [2, 3], [4, 5, 6], [7, 8]]),
        "truth": pa.array([True, False, True, True]),
        "nested": pa.array([{"a": 1}] * 4),
        "lists": pa.array([[[1]]] * 4),
    }
    pq.write_table(pa.table({"good": pa.array(good), **odd}), file)
    ours("parquet-read", file, out, "good")
    assert out.read_bytes() == good.tobytes()
    for name in odd:
        assert f'"{name}"' in ours("parquet-read", file, out, name, fails=True)
    pq.write_table(pa.table({"x": pa.array(good)}), file, compression="zstd")
    assert "zstd" in ours("parquet-read", file, out, fails=True)
    encoding = {"x": "BYTE_STREAM_SPLIT"}
    pq.write_table(pa.table({"x": pa.array(good)}), file, use_dictionary=False, column_encoding=encoding)
    assert "split byte streams" in ours("parquet-read", file, out, fails=True)


def test_cut_and_damaged_parquet_files_are_errors(tmp_path: Path) -> None:
    file, out = tmp_path / "theirs.parquet", tmp_path / "rows"
    table = pa.table({"x": pa.array(noise("float32", 500))})
    pq.write_table(table, file, compression="snappy", write_page_checksum=True, use_dictionary=False)
    whole = file.read_bytes()
    for length in [0, 3, 11, len(whole) // 2, len(whole) - 1]:
        file.write_bytes(whole[:length])
        ours("parquet-read", file, out, fails=True)
    damaged = bytearray(whole)
    damaged[1000] ^= 1
    file.write_bytes(damaged)
    assert "checksum" in ours("parquet-read", file, out, fails=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_h5py_reads_our_contiguous_samples(tmp_path: Path, dtype: str) -> None:
    values = noise(dtype, 3, 40, 50)
    (tmp_path / "values").write_bytes(values.tobytes())
    file, out = tmp_path / "ours.hdf5", tmp_path / "samples"
    ours("hdf5-write", file, tmp_path / "values", "3,40,50", 1, dtype, "-", "-")
    with h5py.File(file) as opened:
        assert opened["records"].dtype == dtype and opened["records"].chunks is None
        assert opened["records"][:].tobytes() == values.tobytes()
        assert opened["records_0"][1].tobytes() == values[1].tobytes()
        assert opened["labels"][:].tolist() == [0, 0, 0]
    ours("hdf5-read", file, out, 3)
    assert out.read_bytes() == values.tobytes()


@pytest.mark.parametrize("gzip", ["-", "5"])
def test_h5py_reads_our_chunks_as_we_do(tmp_path: Path, gzip: str) -> None:
    values = noise("uint8", 4, 2, 3, 64, 64)
    (tmp_path / "values").write_bytes(values.tobytes())
    file, out = tmp_path / "ours.hdf5", tmp_path / "samples"
    ours("hdf5-write", file, tmp_path / "values", "4,100,150", 1, "uint8", "1,64,64", gzip)
    ours("hdf5-read", file, out, 4)
    with h5py.File(file) as opened:
        assert opened["records"].chunks == (1, 64, 64)
        assert opened["records"].compression == (None if gzip == "-" else "gzip")
        assert opened["records"][:].tobytes() == out.read_bytes()
        assert opened["records"][2, :64, :64].tobytes() in values.tobytes()


KINDS = [
    {},
    {"chunks": (1, 16, 16)},
    {"chunks": (2, 33, 7), "compression": "gzip", "shuffle": True},
    {"chunks": (1, 40, 50), "compression": "lzf"},
    {"chunks": (5, 11, 50), "compression": "lzf", "shuffle": True, "fletcher32": True},
    {"chunks": (1, 13, 50), "fletcher32": True},
    {"chunks": (1, 40, 50), "maxshape": (None, 80, 100)},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_we_read_h5pys_samples(tmp_path: Path, kind: dict, libver: str) -> None:
    values = noise("float32", 5, 40, 50)
    values[1] = 1.5
    file, out = tmp_path / "theirs.hdf5", tmp_path / "samples"
    with h5py.File(file, "w", libver=libver) as opened:
        opened.create_dataset("records", data=values, **kind)
        opened.create_dataset("labels", data=[0] * 5)
    ours("hdf5-read", file, out, 5)
    assert out.read_bytes() == values.tobytes()
    assert "4 samples" in ours("hdf5-read", file, out, 4, fails=True)


def test_a_file_of_one_sample_and_of_several_datasets_is_read(tmp_path: Path) -> None:
    file, out = tmp_path / "theirs.hdf5", tmp_path / "samples"
    parts = noise("int16", 3, 6, 8, 2)
    with h5py.File(file, "w") as opened:
        for i, part in enumerate(parts):
            opened.create_dataset(f"records_{i}", data=part, chunks=(4, 8, 2))
    ours("hdf5-read", file, out, 1)
    assert out.read_bytes() == parts.tobytes()


def test_odd_cut_and_damaged_hdf5_files_are_errors(tmp_path: Path) -> None:
    file, out = tmp_path / "theirs.hdf5", tmp_path / "samples"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("records", data=[b"text"])
    assert "little-endian numbers" in ours("hdf5-read", file, out, 1, fails=True)
    with h5py.File(file, "w") as opened:
        opened.create_dataset("records", data=np.zeros((1, 4), ">f4"))
    ours("hdf5-read", file, out, 1, fails=True)
    with h5py.File(file, "w") as opened:
        opened.create_dataset("records", data=noise("int32", 2, 90), chunks=(1, 90), scaleoffset=0)
    assert "ScaleOffset" in ours("hdf5-read", file, out, 2, fails=True)
    with h5py.File(file, "w") as opened:
        opened.create_dataset("records", data=noise("uint8", 2, 9000), chunks=(1, 9000), fletcher32=True)
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.rindex(noise("uint8", 2, 9000)[1].tobytes()) + 100] ^= 4
    file.write_bytes(damaged)
    assert "checksum" in ours("hdf5-read", file, out, 2, fails=True)
    for length in [0, 100, len(whole) // 2]:
        file.write_bytes(whole[:length])
        ours("hdf5-read", file, out, 2, fails=True)
    file.write_bytes(b"no such file" * 100)
    ours("hdf5-read", file, out, 2, fails=True)
