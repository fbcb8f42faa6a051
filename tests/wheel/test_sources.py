"""Every kind of data gives the same samples; the command of the wheel packs it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import N_IMAGES

import forebay

COMMAND = Path(sys.executable).parent / "forebay"


@pytest.fixture(scope="module")
def packed(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("packed")
    for kind in ("tfrecord", "tar", "tensor"):
        size = ["--size", "48x40"] if kind == "tensor" else []
        command = [COMMAND, "data", "pack", photos, folder / kind, "--to", kind, "--keep-order", *size]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return lambda kind: folder / kind


def all_of(data: object, **settings: object) -> tuple[np.ndarray, np.ndarray]:
    made = forebay.ImageLoader(data, batch_size=5, output="numpy", threads=2, **settings)
    batches = list(made)
    return np.concatenate([images for images, _ in batches]), np.concatenate([labels for _, labels in batches])


@pytest.mark.parametrize("kind", ["tfrecord", "tar"])
def test_shards_give_the_samples_of_their_files(photos: Path, packed: Callable, kind: str) -> None:
    images, labels = all_of(photos, image_size=32, seed=4, crop="random", flip=0.5)
    for data in (packed(kind), sorted(packed(kind).glob(f"*.{kind}"))):
        found, found_labels = all_of(data, image_size=32, seed=4, crop="random", flip=0.5)
        assert np.array_equal(found, images) and np.array_equal(found_labels, labels)


def test_tensor_shards_keep_their_size_unless_another_is_asked_for(photos: Path, packed: Callable) -> None:
    images, labels = all_of(packed("tensor"), dtype="uint8", layout="NHWC")
    assert images.shape == (N_IMAGES, 40, 48, 3)
    wanted, wanted_labels = all_of(photos, image_size=(48, 40), crop="none", antialias=False, dtype="uint8", layout="NHWC")
    assert np.array_equal(images, wanted) and np.array_equal(labels, wanted_labels)
    assert all_of(packed("tensor"), image_size=(20, 16), crop="none")[0].shape == (N_IMAGES, 3, 16, 20)


def test_lists_give_their_files_and_labels(photos: Path, tmp_path: Path) -> None:
    paths = sorted(photos.rglob("*.png"))
    (tmp_path / "list.txt").write_text("".join(f"{path} {number * 7}\n" for number, path in enumerate(paths[:9])))
    _, labels = all_of(tmp_path / "list.txt", image_size=8)
    assert labels.tolist() == [number * 7 for number in range(9)]
    made = forebay.ImageLoader(paths[::-1], batch_size=2, image_size=8, output="numpy")
    assert made.n_samples == N_IMAGES and [Path(made.name_of(i)) for i in range(3)] == paths[::-1][:3]


def test_a_damaged_shard_is_noted_and_used_up_to_the_damage(packed: Callable, tmp_path: Path) -> None:
    (shard,) = packed("tfrecord").glob("*.tfrecord")
    (tmp_path / "cut.tfrecord").write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])
    made = forebay.ImageLoader(tmp_path / "cut.tfrecord", batch_size=1, image_size=8, output="numpy")
    assert 0 < made.n_samples < N_IMAGES and f"is damaged after {made.n_samples} samples" in made.notes[0]
    assert len(list(made)) == made.n_samples
