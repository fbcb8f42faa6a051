"""npy, npz and csv: forebay reads what NumPy and pandas write."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

DTYPES = ["|u1", "|i1", "|b1", "<u2", ">i2", "<i4", "<u8", "<f2", "<f4", ">f8", "<c8", "|S5", "<U3"]


def read(kind: str, path: Path, *rest: str) -> tuple[str, bytes]:
    """What the example array_files says of a file: its first line, and the values."""
    named = os.environ.get("FOREBAY_ARRAY_FILES")
    if not named:
        pytest.fail("set FOREBAY_ARRAY_FILES to the path of the example array_files", pytrace=False)
    done = subprocess.run([named, kind, str(path), *rest], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    line, values = done.stdout.split(b"\n", 1)
    return line.decode(), values


def random(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(5).integers(0, 2, count, dtype=np.uint8)
    return np.frombuffer(raw.tobytes(), dtype=dtype).reshape(shape)


def said_of(array: np.ndarray) -> str:
    dtype = array.dtype
    order = "big" if dtype.byteorder == ">" else "little"
    layout = "fortran" if array.flags.f_contiguous and not array.flags.c_contiguous else "c"
    return " ".join([dtype.kind, str(dtype.itemsize), order, layout, *(str(side) for side in array.shape)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5, 2)])
def test_an_array_of_any_type_and_shape(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = random(dtype, shape)
    np.save(tmp_path / "a.npy", array)
    assert read("npy", tmp_path / "a.npy") == (said_of(array), array.tobytes())


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_and_fortrans_order(version: tuple[int, int], tmp_path: Path) -> None:
    array = np.asfortranarray(random("<f4", (30, 50)))
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    assert read("npy", tmp_path / "a.npy") == (said_of(array), array.tobytes(order="F"))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_members_of_an_archive(save, tmp_path: Path) -> None:
    """NumPy writes zip64's fields into every member's header, whatever its size."""
    arrays = {"x": random("|u1", (300, 400, 2)), "y": random("<i8", (2,)), "größe": random(">f4", (3,))}
    save(tmp_path / "a.npz", **arrays)
    for name, array in arrays.items():
        assert read("npz", tmp_path / "a.npz", f"{name}.npy") == (said_of(array), array.tobytes())


@pytest.mark.parametrize(("names", "numbers"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_tables(names: bool, numbers: bool, compression: str | None, tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 256, (5, 1000))
    frame = pd.DataFrame(values, columns=[f"column, {i}" for i in range(1000)])
    path = tmp_path / ("t.csv.gz" if compression else "t.csv")
    frame.to_csv(path, header=names, index=numbers, compression=compression)
    line, found = read("csv.gz" if compression else "csv", path)
    assert line == "5 1000"
    assert np.array_equal(np.frombuffer(found, "<f8").reshape(5, 1000), values)


def test_a_table_of_floats(tmp_path: Path) -> None:
    values = np.random.default_rng(3).standard_normal((20, 7)) * 10.0 ** np.arange(-3, 4)
    pd.DataFrame(values).to_csv(tmp_path / "t.csv")
    line, found = read("csv", tmp_path / "t.csv")
    assert line == "20 7"
    assert np.array_equal(np.frombuffer(found, "<f8").reshape(20, 7), values)
