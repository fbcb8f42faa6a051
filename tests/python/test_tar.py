"""Tar shards in WebDataset's convention: webdataset and tarfile read what forebay writes, and the reverse."""

import json
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import webdataset as wds
from conftest import Forebay, flat
from pixels import image_paths


@pytest.fixture
def packed(forebay: Forebay, photos: Path, tmp_path: Path) -> list[Path]:
    forebay("data", "pack", photos, tmp_path / "packed", "--to", "tar", "--shard-size", "256KiB")
    shards = sorted((tmp_path / "packed").glob("*.tar"))
    assert len(shards) > 1
    return shards


@pytest.fixture
def written(photos: Path, tmp_path: Path) -> Path:
    """Shards of webdataset's own writer."""
    folder = tmp_path / "written"
    folder.mkdir()
    pattern = str(folder / "train-%06d.tar")
    with wds.ShardWriter(pattern, maxcount=25, verbose=0) as writer:
        for key, (encoded, label) in _samples(photos).items():
            writer.write({"__key__": key, "jpg": encoded, "cls": label})
    return folder


def test_webdataset_reads_packed_shards(packed: list[Path], photos: Path) -> None:
    shards = [str(shard) for shard in packed]
    read = {
        s["__key__"]: (s["jpg"], int(s["cls"])) for s in wds.WebDataset(shards, shardshuffle=False, empty_check=False)
    }
    assert read == _samples(photos)


def test_tarfile_reads_packed_shards(packed: list[Path], photos: Path) -> None:
    members: dict[str, bytes] = {}
    for shard in packed:
        with tarfile.open(shard) as tar:
            members |= {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}
    samples = _samples(photos)
    assert {name: data for name, data in members.items() if name.endswith(".jpg")} == {
        f"{key}.jpg": encoded for key, (encoded, _) in samples.items()
    }
    assert {name: int(data) for name, data in members.items() if name.endswith(".cls")} == {
        f"{key}.cls": label for key, (_, label) in samples.items()
    }


def test_forebay_reads_webdatasets_shards(
    forebay: Forebay, forebay_json: Callable[..., dict[str, Any]], written: Path, photos: Path
) -> None:
    forebay("data", "verify", written)
    inspection = forebay_json("data", "inspect", written)
    assert (inspection["n_files"], inspection["n_bad"], inspection["sample_formats"]) == (3, 0, {"jpeg": 60})
    assert {c["label"]: c["n_samples"] for c in inspection["classes"]} == Counter(
        label for _, label in _samples(photos).values()
    )
    for flags in ([], ["--read-only"]):
        (cell,) = forebay_json("ingest", written, "--threads", 2, "--repeats", 1, "--warm", *flags)["cells"]
        assert [s["images"] for s in cell["samples"]] == [60]
        assert cell["failed_samples"] == 0


def test_unpacking_webdatasets_shards_returns_the_files(
    forebay: Forebay, written: Path, photos: Path, tmp_path: Path
) -> None:
    forebay("data", "pack", written, tmp_path / "back", "--to", "files")
    returned = sorted(path.read_bytes() for path in image_paths(tmp_path / "back"))
    assert returned == sorted(path.read_bytes() for path in image_paths(photos))


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_an_archive_of_a_whole_folder_returns_its_files(
    forebay: Forebay, photos: Path, tmp_path: Path, mode: str, form: int
) -> None:
    """As `tar cf x.tar .` packs it: names begin with `./`, folders have entries, and a path may be long."""
    long = "d" * 90 + "/" + "n" * 150
    archive = tmp_path / ("x.tar.gz" if mode == "w:gz" else "x.tar")
    with tarfile.open(archive, mode, format=form) as tar:
        tar.add(photos, "./", filter=lambda member: member if member.isdir() or member.name.endswith(".jpg") else None)
        tar.add(image_paths(photos)[0], f"./{long}.jpg")
    forebay("data", "pack", archive, tmp_path / "back", "--to", "files")
    back = {str(p.relative_to(tmp_path / "back")): p.read_bytes() for p in image_paths(tmp_path / "back")}
    expected = {str(p.relative_to(photos)): p.read_bytes() for p in image_paths(photos)}
    assert back == expected | {f"{long}.jpg": image_paths(photos)[0].read_bytes()}
    record = forebay("ingest", archive, "--threads", 2, "--repeats", 1, "--json", "-").stdout
    assert json.loads(record)["cells"][0]["failed_samples"] == 0


def test_links_in_an_archive_are_left_out_and_named(forebay: Forebay, photos: Path, tmp_path: Path) -> None:
    image = image_paths(photos)[0]
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(image, "a.jpg")
        for name, kind in [("hard.jpg", tarfile.LNKTYPE), ("soft.jpg", tarfile.SYMTYPE)]:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "a.jpg"
            tar.addfile(member)
    said = flat(forebay("data", "pack", tmp_path / "x.tar", tmp_path / "back", "--to", "files", status=1).stderr)
    assert "hard.jpg is a hard link, which is not supported" in said
    assert "soft.jpg is a symbolic link, which is not supported" in said
    assert (tmp_path / "back" / "a.jpg").read_bytes() == image.read_bytes()


def _samples(photos: Path) -> dict[str, tuple[bytes, int]]:
    """Key, bytes and label of each image, as WebDataset names them: the key is the path without its extension."""
    classes = sorted(p.name for p in photos.iterdir() if p.is_dir())
    return {
        str(p.relative_to(photos).with_suffix("")): (p.read_bytes(), classes.index(p.parent.name))
        for p in image_paths(photos)
    }
