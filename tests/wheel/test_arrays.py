"""Arrays against NumPy, pyarrow and h5py: values, order, resume, errors."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay

N = 101
X = np.random.default_rng(0).standard_normal((N, 3, 5)).astype(np.float32)
Y = np.arange(N, dtype=np.int64) * 7
Z = np.random.default_rng(1).integers(0, 256, (N, 3), dtype=np.uint8)


def make(data: Any, **settings: Any) -> forebay.ArrayLoader:
    return forebay.ArrayLoader(data, **{"batch_size": 8, "output": "numpy", "threads": 2, **settings})


def whole(loader: forebay.ArrayLoader) -> dict[str, np.ndarray]:
    batches = [{name: array.copy() for name, array in batch.items()} for batch in loader]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def save_npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", x=X, y=Y, z=Z)
    return folder / "a.npz"


def save_packed(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", x=X, y=Y, z=Z)
    return folder / "a.npz"


def save_parquet(folder: Path) -> Path:
    rows = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 15).cast(pa.list_(pa.float32()))
    table = pa.table({"x": rows, "y": Y, "z": pa.array([bytes(z) for z in Z], pa.binary(3))})
    pq.write_table(table, folder / "a.parquet", row_group_size=20, compression="snappy", write_page_checksum=True)
    return folder / "a.parquet"


def save_shards(folder: Path) -> Path:
    for number, rows in enumerate(np.array_split(np.arange(N), 4)):
        np.savez(folder / f"{number}.npz", x=X[rows], y=Y[rows], z=Z[rows])
    return folder


def save_apart(folder: Path) -> dict[str, Path]:
    for name, array in (("x", X), ("y", Y), ("z", Z)):
        np.save(folder / f"{name}.npy", array)
    return {name: folder / f"{name}.npy" for name in "xyz"}


SAVED = [save_npz, save_packed, save_parquet, save_shards, save_apart]


@pytest.mark.parametrize("save", SAVED)
def test_values_are_numpys(save: Callable[[Path], Any], tmp_path: Path) -> None:
    loader = make(save(tmp_path))
    assert (len(loader), loader.n_samples) == (13, N)
    x_shape = (15,) if save is save_parquet else (3, 5)
    assert loader.fields == {"x": ("float32", x_shape), "y": ("int64", ()), "z": ("uint8", (3,))}
    found = whole(loader)
    assert np.array_equal(found["x"].reshape(X.shape), X) and np.array_equal(found["y"], Y) and np.array_equal(found["z"], Z)
    assert loader.stats()["copied_batches"] == 0


@pytest.mark.parametrize("save", SAVED)
def test_a_shuffled_epoch_is_a_permutation_and_resumes_exactly(save: Callable[[Path], Any], tmp_path: Path) -> None:
    data = save(tmp_path)

    def order(loader: forebay.ArrayLoader) -> list[int]:
        found = []
        for batch in loader:
            assert np.array_equal(batch["x"].reshape(-1, 3, 5), X[batch["y"] // 7]), "fields of a row stay together"
            found += (batch["y"] // 7).tolist()
        return found

    loader = make(data, shuffle=True, seed=3)
    epochs = [order(loader), order(loader)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(N)) and epochs[0] != epochs[1] != list(range(N))
    assert order(make(data, shuffle=True, seed=4)) != epochs[0]
    stopped = make(data, shuffle=True, seed=3)
    for number, _ in enumerate(stopped, 1):
        if number == 5:
            break
    resumed = make(data, shuffle=True, seed=3, threads=4, batch_size=3, prefetch=0)
    resumed.load_state_dict(stopped.state_dict())
    assert order(resumed) == epochs[0][40:] and order(resumed) == epochs[1]
    ranks = [order(make(data, shuffle=True, seed=3, rank=rank, world_size=3)) for rank in range(3)]
    assert sorted(sum(ranks, [])) == list(range(N))


def test_fields_are_chosen_and_one_alone_has_no_gaps(tmp_path: Path) -> None:
    data = save_npz(tmp_path)
    loader = make(data, fields=["z"])
    assert list(loader.fields) == ["z"]
    for batch in loader:
        assert batch["z"].flags.c_contiguous
    several = next(iter(make(data, fields=["y", "x"])))
    assert list(several) == ["y", "x"] and not several["x"].flags.c_contiguous
    assert np.array_equal(np.ascontiguousarray(several["x"]), X[:8])
    assert np.array_equal(next(iter(make(tmp_path, fields=["x"])))["x"], X[:8])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "f2", "f4", "f8"])
def test_every_type_of_number(dtype: str, tmp_path: Path) -> None:
    wanted = np.arange(60).reshape(20, 3).astype(dtype)
    np.save(tmp_path / "a.npy", wanted)
    assert np.array_equal(whole(make(tmp_path / "a.npy"))["data"], wanted)
    assert whole(make([tmp_path / "a.npy"]))["data"].dtype == wanted.dtype


def test_a_file_larger_than_its_buffers_is_read_from_where_its_rows_are(tmp_path: Path) -> None:
    rows = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.uint8, (4000, 10_000))
    rows[3999] = 7
    rows.flush()
    loader = make(tmp_path / "a.npy", rank=3999, world_size=4000, batch_size=1)
    assert (whole(loader)["data"] == 7).all()
    assert loader.stats()["bytes_read"] == 10_000


def test_hdf5_where_it_is_built_in(tmp_path: Path) -> None:
    """Set FOREBAY_HDF5 to test a wheel of `cargo xtask wheel hdf5`; it needs h5py."""
    path = tmp_path / "a.h5"
    if not os.environ.get("FOREBAY_HDF5"):
        path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
        with pytest.raises(ValueError, match="this build cannot read HDF5: build it with `--features hdf5`"):
            make(path)
        return
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("train/x", data=X, chunks=(7, 2, 5), compression="gzip")
        file["train/y"], file["z"] = Y, Z
    found = whole(make(path, fields=["train/x", "train/y", "z"]))
    assert np.array_equal(found["train/x"], X) and np.array_equal(found["train/y"], Y) and np.array_equal(found["z"], Z)
    shuffled = whole(make(path, fields=["train/x", "train/y"], shuffle=True))
    assert np.array_equal(shuffled["train/x"], X[shuffled["train/y"] // 7])
    with pytest.raises(ValueError, match='a dataset "w"'):
        make(path, fields=["w"])


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def refused(data: Any, said: str, **settings: Any) -> None:
        with pytest.raises(ValueError, match=said):
            make(data, **settings)

    npz = save_npz(tmp_path)
    refused(npz, "no array w, only x, y, z", fields=["w"])
    np.savez(tmp_path / "odd.npz", x=X, y=Y[:50])
    refused(tmp_path / "odd.npz", "x has 101 rows and y has 50")
    refused([npz, tmp_path / "odd.npz"], "odd.npz")
    np.save(tmp_path / "y.npy", Y[:50])
    np.save(tmp_path / "x.npy", X)
    refused({"x": tmp_path / "x.npy", "y": tmp_path / "y.npy"}, "y has 50 rows and x has 101")
    refused({"x": npz}, "x is one array, found x, y, z")
    refused({"x": tmp_path / "x.npy"}, "one or the other", fields=["x"])
    refused([tmp_path / "x.npy", tmp_path / "y.npy"], "rows of data .* but .*x.npy has rows of")
    for name, array, said in (
        ("fortran", np.asfortranarray(X), "Fortran's order"),
        ("big", Y.astype(">i8"), "big-endian"),
        ("text", np.array(["a", "b"]), "integers and floats are read"),
        ("one", np.float32(3), "a single number"),
    ):
        np.save(tmp_path / f"{name}.npy", array)
        refused(tmp_path / f"{name}.npy", said)
    np.save(tmp_path / "none.npy", X[:0])
    refused(tmp_path / "none.npy", "no samples in")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    refused(tmp_path / "cut.npy", "truncated")
    (tmp_path / "noise.npy").write_bytes(b"\x81" * 99)
    refused(tmp_path / "noise.npy", "not an npy, npz, HDF5 or Parquet file")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no files with the ending npy")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        make(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="fields is a list"):
        make(npz, fields="x")


@pytest.mark.parametrize("save", [save_packed, save_parquet])
def test_damage_is_found_and_named(save: Callable[[Path], Path], tmp_path: Path) -> None:
    path = save(tmp_path)
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 3] ^= 0xFF
    path.write_bytes(stored)
    with pytest.raises((forebay.SampleError, ValueError), match=path.name):
        whole(make(path))


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((64, 100_000), np.uint8))
    loader = make(tmp_path / "a.npy", prefetch=0, threads=1, batch_size=2)
    with pytest.raises(OSError, match=r"a\.npy"):
        for _ in loader:
            os.truncate(tmp_path / "a.npy", 1000)
