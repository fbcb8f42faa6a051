"""What the measurements read: the folders of images under `--data`, and the shards made from them once.

Layout: `DATA/<set>/` is a folder of class folders, `DATA/<set>.tfrecord/`, `.tar/` and `.tensor/` are packed by forebay
itself, `DATA/<set>.beton` is written by FFCV from the same images at the same size.
"""

import subprocess
from pathlib import Path

SIDE_PX = 224

SHARD_SIZE = "8MiB"
"""Small, so that even a small set has more shards than workers: most peers go no further in parallel than that."""


def image_files(folder: Path) -> list[str]:
    """All JPEG files below `folder`, in path order."""
    return sorted(str(p) for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))


def shard_files(folder: Path, suffix: str) -> list[str]:
    """All shards in `folder`, in name order."""
    return sorted(str(p) for p in folder.glob(f"*{suffix}"))


def packed_path(data: Path, dataset: str, kind: str) -> Path:
    """Where the shards of a set lie."""
    return data / f"{dataset}.{kind}"


def ensure_packed(forebay: Path, data: Path, dataset: str, kind: str) -> None:
    """Packs a set with forebay, unless that was done before."""
    out = packed_path(data, dataset, kind)
    if (out / "manifest.json").exists():
        return
    size = ["--size", str(SIDE_PX)] if kind == "tensor" else []
    command = [forebay, "data", "pack", data / dataset, out, "--to", kind, "--shard-size", SHARD_SIZE, *size]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def warm(path: Path) -> None:
    """Reads every file once, so that all that follows comes from the page cache."""
    buffer = bytearray(1 << 20)
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        with open(file, "rb", buffering=0) as f:
            while f.readinto(buffer):
                pass
