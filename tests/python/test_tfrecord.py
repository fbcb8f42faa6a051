"""TFRecord shards: TensorFlow reads what forebay writes, and forebay reads what TensorFlow writes."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from conftest import Forebay
from pixels import image_paths

COMPRESSIONS = ["none", "gzip", "zlib"]
FEATURES = {
    "image/encoded": tf.io.FixedLenFeature((), tf.string),
    "image/class/label": tf.io.FixedLenFeature((), tf.int64),
    "image/filename": tf.io.FixedLenFeature((), tf.string),
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_packed_shards(forebay: Forebay, photos: Path, tmp_path: Path, compression: str) -> None:
    flags = [] if compression == "none" else ["--compression", compression]
    forebay("data", "pack", photos, tmp_path / "out", "--to", "tfrecord", "--shard-size", "256KiB", *flags)
    shards = sorted(str(p) for p in (tmp_path / "out").glob("*.tfrecord*"))
    assert len(shards) > 1
    records = tf.data.TFRecordDataset(shards, compression_type=_tensorflow_name(compression))
    read = {}
    for record in records:
        example = tf.io.parse_single_example(record, FEATURES)
        name = example["image/filename"].numpy().decode()
        read[name] = (example["image/encoded"].numpy(), int(example["image/class/label"]))
    assert read == {name: (path.read_bytes(), label) for name, path, label in _labelled(photos)}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_forebay_reads_tensorflows_shards(
    forebay: Forebay, forebay_json: Callable[..., dict[str, Any]], photos: Path, tmp_path: Path, compression: str
) -> None:
    _write_with_tensorflow(photos, tmp_path / "in", compression)
    forebay("data", "verify", tmp_path / "in")
    inspection = forebay_json("data", "inspect", tmp_path / "in")
    assert (inspection["n_files"], inspection["n_bad"], inspection["sample_formats"]) == (3, 0, {"jpeg": 60})
    assert {c["label"]: c["n_samples"] for c in inspection["classes"]} == Counter(
        label for _, _, label in _labelled(photos)
    )
    (cell,) = forebay_json("ingest", tmp_path / "in", "--threads", 2, "--repeats", 1, "--warm")["cells"]
    assert [s["images"] for s in cell["samples"]] == [60]
    assert cell["failed_samples"] == 0


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_unpacking_tensorflows_shards_returns_the_files(
    forebay: Forebay, photos: Path, tmp_path: Path, compression: str
) -> None:
    _write_with_tensorflow(photos, tmp_path / "in", compression)
    forebay("data", "pack", tmp_path / "in", tmp_path / "back", "--to", "files")
    returned = sorted(path.read_bytes() for path in image_paths(tmp_path / "back"))
    assert returned == sorted(path.read_bytes() for path in image_paths(photos))


def test_packing_and_unpacking_returns_names_and_bytes(forebay: Forebay, photos: Path, tmp_path: Path) -> None:
    forebay("data", "pack", photos, tmp_path / "out", "--to", "tfrecord")
    forebay("data", "pack", tmp_path / "out", tmp_path / "back", "--to", "files")

    def contents(folder: Path) -> dict[str, bytes]:
        return {str(p.relative_to(folder)): p.read_bytes() for p in image_paths(folder)}

    assert contents(tmp_path / "back") == contents(photos)


def _labelled(folder: Path) -> list[tuple[str, Path, int]]:
    """Name, path and label of each image: the label is the place of its class folder in name order."""
    classes = sorted(p.name for p in folder.iterdir() if p.is_dir())
    return [(str(p.relative_to(folder)), p, classes.index(p.parent.name)) for p in image_paths(folder)]


def _write_with_tensorflow(photos: Path, folder: Path, compression: str) -> None:
    folder.mkdir()
    samples = _labelled(photos)
    for shard in range(3):
        path = folder / f"train-{shard:05d}-of-00003.tfrecord"
        with tf.io.TFRecordWriter(str(path), _tensorflow_name(compression)) as writer:
            for _, source, label in samples[shard::3]:
                writer.write(_example(source.read_bytes(), label).SerializeToString())


def _example(encoded: bytes, label: int) -> tf.train.Example:
    feature = {
        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded])),
        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature))


def _tensorflow_name(compression: str) -> str:
    return "" if compression == "none" else compression.upper()
