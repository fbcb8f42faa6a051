"""Data of workloads: NumPy, pandas, TensorFlow and Pillow read what `forebay workload make` makes, down to every byte.

The bytes are made a second time here, from their description: word k of a file is SplitMix64's mixing function of
key + (k + 1) * GOLDEN, where the key is drawn from the dataset's seed, the part and the file's number.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from conftest import Forebay
from PIL import Image

Make = Callable[..., Path]

GOLDEN = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1
SEED = 10
# Floats have the upper bit of their exponent cleared, so that none is infinite or no number.
MASKS = {"float16": 0x4000400040004000, "float32": 0x4000000040000000, "float64": 1 << 62}
DTYPES = ["uint8", "int8", "uint16", "int32", "uint64", "int64", "float16", "float32", "float64"]


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _mix_one(z: int) -> int:
    return int(_mix(np.array([z & WORD], dtype=np.uint64))[0])


def _values(number: int, n_bytes: int, dtype: str = "uint8", valid: bool = False) -> bytes:
    """The values of a file."""
    stream = number | (1 << 63 if valid else 0)
    state = _mix_one(_mix_one(SEED ^ 0x666F726562617921) + stream * 0xD1B54A32D192ED03)
    key = _mix_one(state + GOLDEN)
    k = np.arange(1, (n_bytes + 7) // 8 + 1, dtype=np.uint64)
    words = _mix(np.uint64(key) + k * np.uint64(GOLDEN)) & np.uint64(WORD ^ MASKS.get(dtype, 0))
    return words.astype("<u8").tobytes()[:n_bytes]


@pytest.fixture
def made(forebay: Forebay, tmp_path: Path) -> Make:
    """Makes the data of a workload with these keys of its dataset; returns its folder."""

    def make(**dataset: object) -> Path:
        lines = [f"  {key}: {value}" for key, value in {"num_files_train": 3, **dataset}.items()]
        path = tmp_path / "workload.yaml"
        path.write_text("\n".join(["framework: pytorch", "dataset:", *lines, "reader:", "  data_loader: pytorch", ""]))
        forebay("workload", "make", path, "--data", tmp_path / "data")
        return tmp_path / "data"

    return make


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("samples", [1, 3])
def test_numpy_loads_arrays(made: Make, dtype: str, samples: int) -> None:
    folder = made(format="npy", record_dims=[20, 30], record_element_type=dtype, num_samples_per_file=samples)
    for number in range(3):
        array = np.load(folder / "train" / f"img_{number}_of_3.npy")
        assert (array.shape, array.dtype) == ((20, 30, samples), np.dtype(dtype))
        assert array.tobytes() == _values(number, array.nbytes, dtype)
        assert np.isfinite(array).all()


@pytest.mark.parametrize("compression", ["none", "zip"])
@pytest.mark.parametrize("length", [1, 4096, 3_000_000])
def test_numpy_loads_archives_whose_checksums_are_right(made: Make, compression: str, length: int) -> None:
    side = int(length**0.5)
    folder = made(
        format="npz", record_length_bytes=length, compression=compression, num_samples_per_file=2, num_files_eval=1
    )
    for path, number in [(folder / "train" / "img_2_of_3.npz", 2), (folder / "valid" / "img_0_of_1.npz", 0)]:
        with zipfile.ZipFile(path) as archive:
            assert archive.namelist() == ["x.npy", "y.npy"]
            assert archive.testzip() is None
            method = zipfile.ZIP_STORED if compression == "none" else zipfile.ZIP_DEFLATED
            assert {entry.compress_type for entry in archive.infolist()} == {method}
        with np.load(path) as arrays:
            assert arrays["x"].shape == (side, side, 2)
            assert arrays["x"].tobytes() == _values(number, 2 * side * side, valid="valid" in str(path))
            assert arrays["y"].tolist() == [0, 0]


def test_noise_cannot_be_compressed(made: Make) -> None:
    folder = made(format="npz", record_length_bytes=1_000_000, compression="zip")
    assert (folder / "train" / "img_0_of_3.npz").stat().st_size > 999_000


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_pandas_reads_tables(made: Make, dtype: str, compression: str) -> None:
    folder = made(
        format="csv", record_dims=[9, 9], record_element_type=dtype, compression=compression, num_samples_per_file=4
    )
    (path,) = (folder / "train").glob("img_1_of_3.csv*")
    frame = pd.read_csv(path, compression=None if compression == "none" else compression)
    assert frame.iloc[:, 0].tolist() == [0, 1, 2, 3]
    assert frame.columns[1:].tolist() == [str(column) for column in range(81)]
    values = frame.iloc[:, 1:].to_numpy().astype(dtype)
    assert values.tobytes() == _values(1, values.nbytes, dtype)


@pytest.mark.parametrize("length", [100, 16_384, 2_500_000])
def test_tensorflow_parses_records(made: Make, length: int) -> None:
    side = int(length**0.5)
    folder = made(format="tfrecord", record_length_bytes=length, num_samples_per_file=3, num_subfolders_train=2)
    path = folder / "train" / "0" / "img_2_of_3.tfrecord"
    features = {"image": tf.io.FixedLenFeature((), tf.string), "size": tf.io.FixedLenFeature((), tf.int64)}
    examples = [tf.io.parse_single_example(record, features) for record in tf.data.TFRecordDataset([str(path)])]
    assert [int(example["size"]) for example in examples] == [side] * 3
    assert b"".join(example["image"].numpy() for example in examples) == _values(2, 3 * side * side)
    index = (folder / "index" / "train" / "img_2_of_3.tfrecord.idx").read_text().split()
    frame = path.stat().st_size // 3
    assert [int(number) for number in index] == [0, frame, frame, frame, 2 * frame, frame]


def test_pillow_opens_noise_as_png(made: Make) -> None:
    folder = made(format="png", record_length_bytes=1_100_000)
    for number in range(3):
        image = Image.open(folder / "train" / f"img_{number}_of_3.png")
        assert (image.size, image.mode) == ((1048, 1048), "L")
        assert image.tobytes() == _values(number, 1048 * 1048)


def test_pillow_decodes_jpegs_of_the_length_asked_for(made: Make) -> None:
    folder = made(format="jpeg", record_length_bytes=150_528)
    for path in sorted((folder / "train").iterdir()):
        assert path.stat().st_size == pytest.approx(150_528, rel=0.05)
        image = Image.open(path)
        image.load()
        assert image.size == (387, 387)


@pytest.mark.parametrize("format", ["indexed_binary", "mmap_indexed_binary"])
def test_indexed_files_hold_samples_at_their_offsets(made: Make, format: str) -> None:
    folder = made(format=format, record_length_bytes=10_000, num_samples_per_file=7)
    path = folder / "train" / f"img_1_of_3.{format}"
    offsets, sizes = (np.fromfile(f"{path}{ending}", "<u8") for ending in (".off.idx", ".sz.idx"))
    assert offsets.tolist() == [10_000 * sample for sample in range(7)]
    assert sizes.tolist() == [10_000] * 7
    assert path.read_bytes() == _values(1, 70_000)


def test_synthetic_files_hold_their_number(made: Make) -> None:
    folder = made(format="synthetic", num_files_eval=2)
    assert (folder / "train" / "img_2_of_3.synthetic").read_text() == "2"
    assert (folder / "valid" / "img_1_of_2.synthetic").read_text() == "4"
