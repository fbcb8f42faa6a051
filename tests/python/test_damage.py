"""A damaged dataset is found, and the message says which file and where."""

import struct
from pathlib import Path

import pytest
from conftest import Forebay, flat
from pixels import image_paths

TFRECORD_HEADER_LEN = 12
TFRECORD_FOOTER_LEN = 4


@pytest.fixture
def tfrecord(forebay: Forebay, photos: Path, tmp_path: Path) -> Path:
    forebay("data", "pack", photos, tmp_path / "shards", "--to", "tfrecord")
    (shard, *_) = sorted((tmp_path / "shards").glob("*.tfrecord"))
    return shard


@pytest.fixture
def tar(forebay: Forebay, photos: Path, tmp_path: Path) -> Path:
    forebay("data", "pack", photos, tmp_path / "shards", "--to", "tar")
    (shard, *_) = sorted((tmp_path / "shards").glob("*.tar"))
    return shard


def test_a_flipped_byte_in_a_record_is_named_with_its_offset(forebay: Forebay, tfrecord: Path) -> None:
    content = bytearray(tfrecord.read_bytes())
    second_record = _second_record(content)
    content[second_record + TFRECORD_HEADER_LEN + 100] ^= 0x10
    tfrecord.write_bytes(content)
    said = _verify(forebay, tfrecord.parent)
    assert tfrecord.name in said
    assert str(second_record) in said


def test_a_flipped_length_is_named_with_its_offset(forebay: Forebay, tfrecord: Path) -> None:
    content = bytearray(tfrecord.read_bytes())
    second_record = _second_record(content)
    content[second_record] ^= 0x01
    tfrecord.write_bytes(content)
    said = _verify(forebay, tfrecord.parent)
    assert tfrecord.name in said
    assert str(second_record) in said


def test_a_truncated_tfrecord_is_named(forebay: Forebay, tfrecord: Path) -> None:
    tfrecord.write_bytes(tfrecord.read_bytes()[:-1000])
    assert tfrecord.name in _verify(forebay, tfrecord.parent)


def test_a_truncated_compressed_shard_is_named(forebay: Forebay, photos: Path, tmp_path: Path) -> None:
    forebay("data", "pack", photos, tmp_path / "shards", "--to", "tfrecord", "--compression", "gzip")
    (shard,) = (tmp_path / "shards").glob("*.tfrecord.gz")
    shard.write_bytes(shard.read_bytes()[:-1000])
    assert shard.name in _verify(forebay, shard.parent)


def test_a_truncated_tar_is_named(forebay: Forebay, tar: Path) -> None:
    content = tar.read_bytes()
    tar.write_bytes(content[: len(content) // 2 + 100])
    assert tar.name in _verify(forebay, tar.parent)


def test_a_damaged_tar_header_is_named_with_its_offset(forebay: Forebay, tar: Path) -> None:
    content = bytearray(tar.read_bytes())
    content[3] ^= 0x01
    tar.write_bytes(content)
    said = _verify(forebay, tar.parent)
    assert tar.name in said
    assert "offset 0" in said


def test_every_bad_image_file_is_named_and_no_other(forebay: Forebay, photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files" / "class"
    folder.mkdir(parents=True)
    good = image_paths(photos)[0].read_bytes()
    bad = {"empty.jpg": b"", "cut.jpg": good[: len(good) // 2], "noise.jpg": bytes(range(256)) * 20}
    for name, content in (bad | {"good.jpg": good}).items():
        (folder / name).write_bytes(content)
    said = _verify(forebay, tmp_path / "files")
    assert all(name in said for name in bad)
    assert "good.jpg" not in said


def test_a_listed_file_that_is_not_there_is_named(forebay: Forebay, photos: Path, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text(f"{image_paths(photos)[0]} 0\n{tmp_path / 'vanished.jpg'} 1\n")
    assert "vanished.jpg" in _verify(forebay, listed)


def test_a_missing_folder_cannot_be_verified(forebay: Forebay, tmp_path: Path) -> None:
    assert "nowhere" in forebay("data", "verify", tmp_path / "nowhere", status=2).stderr


def _second_record(shard: bytearray) -> int:
    (first_len,) = struct.unpack("<Q", shard[:8])
    return TFRECORD_HEADER_LEN + first_len + TFRECORD_FOOTER_LEN


def _verify(forebay: Forebay, path: Path) -> str:
    done = forebay("data", "verify", path, status=1)
    return flat(done.stdout + done.stderr)
