"""TFRecord shards: TensorFlow reads what forebay writes, and forebay reads what TensorFlow writes."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from conftest import Forebay, flat
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


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_forebay_reads_records_as_tfds_writes_them(
    forebay: Forebay, forebay_json: Callable[..., dict[str, Any]], photos: Path, tmp_path: Path, compression: str
) -> None:
    _write_with_tensorflow(photos, tmp_path / "in", compression, _tfds_example)
    forebay("data", "verify", tmp_path / "in")
    inspection = forebay_json("data", "inspect", tmp_path / "in")
    assert (inspection["n_files"], inspection["n_bad"], inspection["sample_formats"]) == (3, 0, {"jpeg": 60})
    assert {c["label"]: c["n_samples"] for c in inspection["classes"]} == Counter(
        label for _, _, label in _labelled(photos)
    )
    assert all(c["name"] is None for c in inspection["classes"])
    (cell,) = forebay_json("ingest", tmp_path / "in", "--threads", 2, "--repeats", 1, "--warm")["cells"]
    assert ([s["images"] for s in cell["samples"]], cell["failed_samples"]) == ([60], 0)
    forebay("data", "pack", tmp_path / "in", tmp_path / "back", "--to", "files")
    returned = sorted(path.read_bytes() for path in image_paths(tmp_path / "back"))
    assert returned == sorted(path.read_bytes() for path in image_paths(photos))


def test_a_key_names_the_feature_that_is_read(
    forebay: Forebay, forebay_json: Callable[..., dict[str, Any]], photos: Path, tmp_path: Path
) -> None:
    _write_with_tensorflow(photos, tmp_path / "in", "none", _tfds_example)
    keys = ["--image-key", "image", "--label-key", "image/id"]
    inspection = forebay_json("data", "inspect", tmp_path / "in", *keys)
    assert [(c["label"], c["n_samples"]) for c in inspection["classes"]] == [(7, 60)]
    refused = flat(forebay("data", "inspect", tmp_path / "in", "--image-key", "photo", status=2).stderr)
    assert "no feature `photo`; features found: file_name (bytes" in refused


def test_forebay_reads_records_that_are_image_files(
    forebay: Forebay, forebay_json: Callable[..., dict[str, Any]], photos: Path, tmp_path: Path
) -> None:
    with tf.io.TFRecordWriter(str(tmp_path / "raw.tfrecord")) as writer:
        for path in image_paths(photos):
            writer.write(path.read_bytes())
    forebay("data", "verify", tmp_path / "raw.tfrecord")
    (cell,) = forebay_json("ingest", tmp_path / "raw.tfrecord", "--threads", 2, "--repeats", 1, "--warm")["cells"]
    assert ([s["images"] for s in cell["samples"]], cell["failed_samples"]) == ([60], 0)


def test_a_sequence_example_is_refused_with_its_sequences(forebay: Forebay, tmp_path: Path) -> None:
    frames = tf.train.FeatureList(feature=[_int64(1), _int64(2)])
    example = tf.train.SequenceExample(
        context=tf.train.Features(feature={"length": _int64(2)}),
        feature_lists=tf.train.FeatureLists(feature_list={"frames": frames}),
    )
    with tf.io.TFRecordWriter(str(tmp_path / "video.tfrecord")) as writer:
        writer.write(example.SerializeToString())
    found = flat(forebay("data", "verify", tmp_path / "video.tfrecord", status=1).stdout)
    assert "features found: length (int64), and the tf.SequenceExample sequences frames" in found


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


def _write_with_tensorflow(
    photos: Path, folder: Path, compression: str, example: Callable[[bytes, int], tf.train.Example] | None = None
) -> None:
    folder.mkdir()
    samples = _labelled(photos)
    for shard in range(3):
        path = folder / f"train-{shard:05d}-of-00003.tfrecord"
        with tf.io.TFRecordWriter(str(path), _tensorflow_name(compression)) as writer:
            for _, source, label in samples[shard::3]:
                writer.write((example or _example)(source.read_bytes(), label).SerializeToString())


def _example(encoded: bytes, label: int) -> tf.train.Example:
    feature = {"image/encoded": _bytes(encoded), "image/class/label": _int64(label)}
    return tf.train.Example(features=tf.train.Features(feature=feature))


def _tfds_example(encoded: bytes, label: int) -> tf.train.Example:
    """A record with the names that TFDS gives the features of an image dataset with boxes."""
    feature = {
        "image": _bytes(encoded),
        "label": _int64(label),
        "file_name": _bytes(b"photo.jpg"),
        "image/id": _int64(7),
        "objects/bbox": tf.train.Feature(float_list=tf.train.FloatList(value=[0.0, 0.25, 1.0, 0.75])),
        "objects/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature))


def _bytes(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _int64(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _tensorflow_name(compression: str) -> str:
    return "" if compression == "none" else compression.upper()
