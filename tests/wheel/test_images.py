"""Batches: their values against Pillow's, their order, their memory."""

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import N_IMAGES
from PIL import Image

import forebay

Make = Callable[..., forebay.ImageLoader]


def images_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.png"))


def by_pillow(path: Path, what: dict, size: int) -> np.ndarray:
    """The same view, by Pillow: crop, resize, cut, mirror."""
    left, top, width, height = what["crop"]
    image = Image.open(path).convert("RGB").crop((left, top, left + width, top + height))
    image = image.resize(what["resized"], Image.Resampling.BILINEAR)
    x, y = what["offset"]
    image = image.crop((x, y, x + size, y + size))
    return np.asarray(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if what["flipped"] else image)


@pytest.mark.parametrize("settings", [{"train": True}, {"crop": "center"}, {"crop": "none"}, {"crop": "center", "resize": 80}])
def test_pixels_are_pillows_to_one_grey_level(loader: Make, photos: Path, settings: dict) -> None:
    made = loader(**settings, dtype="uint8", layout="NHWC", return_index=True, drop_last=False, seed=3)
    paths, seen = images_of(photos), set()
    for epoch in range(2 if "train" in settings else 1):
        for images, labels, indices in made:
            for image, label, index in zip(images, labels, indices, strict=True):
                path = Path(made.name_of(index))
                assert path == paths[index] and made.classes[label] == path.parent.name
                with Image.open(path) as opened:
                    what = made.augmentation(index, epoch, *opened.size)
                apart = np.abs(image.astype(int) - by_pillow(path, what, 32)).max()
                assert apart <= 1, f"{path.name} in epoch {epoch}: {apart} grey levels, {what}"
                seen.add((epoch, int(index)))
    assert len(seen) == N_IMAGES * (2 if "train" in settings else 1)


def test_types_layouts_and_normalisation_agree(loader: Make) -> None:
    def all_of(**settings: object) -> np.ndarray:
        return np.concatenate([images for images, _ in loader(**settings)])

    plain = all_of()
    assert (plain.shape, plain.dtype, plain.max() > 200) == ((N_IMAGES, 3, 32, 32), np.float32, True)
    assert np.array_equal(all_of(layout="NHWC").transpose(0, 3, 1, 2), plain)
    assert np.array_equal(all_of(dtype="uint8"), np.rint(plain).astype(np.uint8))
    assert np.array_equal(all_of(dtype="float16"), plain.astype(np.float16))
    assert np.allclose(all_of(normalize="unit"), plain / 255, atol=1e-6)
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    wanted = (plain / 255 - mean[:, None, None]) / std[:, None, None]
    assert np.allclose(all_of(normalize="imagenet"), wanted, atol=1e-5)
    assert np.allclose(all_of(normalize=(mean, std)), wanted, atol=1e-5)
    with pytest.raises(TypeError, match="no bfloat16"):
        all_of(dtype="bfloat16")


def test_without_antialiasing_or_crop_pixels_are_those_of_ingest(loader: Make) -> None:
    plain = np.concatenate([images for images, _ in loader(crop="none", antialias=False)])
    normal = np.concatenate([images for images, _ in loader(crop="none", antialias=False, normalize="unit")])
    assert np.abs(normal * 255 - plain).max() < 1e-3


def test_the_order_depends_on_seed_and_epoch_only(loader: Make) -> None:
    def order(made: forebay.ImageLoader) -> list[int]:
        return [int(i) for _, _, indices in made for i in indices]

    def make(**settings: object) -> forebay.ImageLoader:
        return loader(shuffle=True, return_index=True, **settings)

    first, other = make(), make(threads=5, prefetch=0, batch_size=7)
    epochs = [order(first), order(first)]
    assert [order(other), order(other)] == epochs
    assert epochs[0] != epochs[1] and sorted(epochs[0]) == list(range(N_IMAGES))
    assert order(make(seed=1)) != epochs[0]
    assert order(loader(return_index=True)) == list(range(N_IMAGES))


def test_ranks_are_disjoint_and_cover_the_data(loader: Make) -> None:
    def parts(**settings: object) -> list[list[int]]:
        ranks = [loader(return_index=True, shuffle=True, rank=rank, world_size=3, **settings) for rank in range(3)]
        assert all(len(rank) == sum(1 for _ in rank.numpy()) for rank in ranks)
        again = [loader(return_index=True, shuffle=True, rank=rank, world_size=3, **settings) for rank in range(3)]
        return [[int(i) for _, _, indices in rank for i in indices] for rank in again]

    assert sorted(sum(parts(drop_last=False), [])) == list(range(N_IMAGES))
    equal = parts(drop_last=True)
    assert [len(part) for part in equal] == [4, 4, 4] and len(set(sum(equal, []))) == 12


def test_a_state_continues_exactly_with_other_threads_batches_and_ranks(loader: Make) -> None:
    def make(**settings: object) -> forebay.ImageLoader:
        return loader(train=True, drop_last=False, return_index=True, seed=5, **settings)

    def rest(made: forebay.ImageLoader) -> list[tuple[int, bytes]]:
        return [(int(i), image.tobytes()) for images, _, indices in made for i, image in zip(indices, images, strict=True)]

    whole = make()
    epochs = [rest(whole), rest(whole)]
    for n_batches in range(6):
        made = make()
        rest(made)
        for number, _ in enumerate(made, 1):
            if number == n_batches:
                break
        state = made.state_dict()
        if n_batches == 0:
            continue
        resumed = make(threads=4, batch_size=3, prefetch=0)
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        left = epochs[1][4 * n_batches :]
        if left:
            assert rest(resumed) == left, f"after {n_batches} batches of the second epoch"
        else:
            assert state["epoch"] == 2 and state["samples_taken"] == 0
    # Three ranks that took a batch each go on as two.
    ranks = [make(rank=rank, world_size=3) for rank in range(3)]
    taken = [int(i) for rank in ranks for i in next(iter(rank))[2]]
    states = [rank.state_dict() for rank in ranks]
    assert states[0] == states[1] == states[2]
    pair = [make(rank=rank, world_size=2) for rank in range(2)]
    for rank in pair:
        rank.load_state_dict(states[0])
    left = [index for rank in pair for index, _ in rest(rank)]
    assert sorted(taken + left) == list(range(N_IMAGES))


def test_a_break_begins_the_next_epoch_and_a_loaded_state_the_same(loader: Make) -> None:
    made = loader(shuffle=True, return_index=True)
    whole = loader(shuffle=True, return_index=True)
    epochs = [[i.tolist() for *_, i in whole] for _ in range(3)]
    for *_, indices in made:
        assert indices.tolist() == epochs[0][0]
        break
    state = made.state_dict()
    assert [i.tolist() for *_, i in made] == epochs[1]
    made.load_state_dict(state)
    assert [i.tolist() for *_, i in made] == epochs[0][1:]
    assert [i.tolist() for *_, i in made] == epochs[1]


def test_states_of_other_data_and_seeds_are_refused(loader: Make, photos: Path) -> None:
    state = loader(shuffle=True).state_dict()
    with pytest.raises(ValueError, match="seed 0; this loader has seed 1"):
        loader(shuffle=True, seed=1).load_state_dict(state)
    with pytest.raises(ValueError, match="shuffle=True"):
        loader().load_state_dict(state)
    with pytest.raises(ValueError, match="other data"):
        loader(data=photos / "a", shuffle=True).load_state_dict(state)
    with pytest.raises(ValueError, match="it has no version, epoch"):
        loader().load_state_dict({})
    with pytest.raises(ValueError, match="version 9"):
        loader(shuffle=True).load_state_dict({**state, "version": 9})
    with pytest.raises(ValueError, match="sample 99"):
        loader(shuffle=True).load_state_dict({**state, "samples_taken": 99})


def test_kept_batches_stay_what_they_were(loader: Make) -> None:
    wanted = [images.copy() for images, _ in loader(batch_size=2, train=True, drop_last=False)]
    made = loader(batch_size=2, train=True, drop_last=False)
    kept = list(made)
    stats = made.stats()
    assert stats["copied_batches"] > 0 and stats["batches"] == len(made) == len(wanted)
    assert stats["samples"] == N_IMAGES
    again = list(made)
    del made
    gc.collect()
    for (images, _), expected in zip(kept, wanted, strict=True):
        assert np.array_equal(images, expected)
    assert not np.array_equal(again[0][0], wanted[0]), "the second epoch is another"


def test_a_loop_that_keeps_nothing_copies_nothing_and_may_write(loader: Make) -> None:
    made, previous = loader(batch_size=2), None
    for images, labels in made:
        images += 1
        labels[0] = -5
        previous = images
    assert made.stats()["copied_batches"] == 0
    assert previous is not None and previous.flags.writeable


def test_a_batch_outlives_its_loader(loader: Make) -> None:
    made = loader()
    images, labels = next(iter(made))
    expected = images.copy(), labels.copy()
    del made
    gc.collect()
    others = [list(loader()) for _ in range(3)]
    assert np.array_equal(images, expected[0]) and np.array_equal(labels, expected[1])
    assert len(others) == 3


def test_several_loaders_run_at_once(loader: Make) -> None:
    loaders = [loader(train=True, seed=seed, return_index=True) for seed in range(4)]
    together = [[b[2].tolist() for b in batches] for batches in zip(*loaders, strict=True)]
    apart = [[b[2].tolist() for b in loader(train=True, seed=seed, return_index=True)] for seed in range(4)]
    assert [list(column) for column in zip(*together, strict=True)] == apart


def test_a_newer_iteration_ends_an_older_one(loader: Make) -> None:
    made = loader()
    older = iter(made)
    next(older)
    newer = iter(made)
    next(newer)
    with pytest.raises(RuntimeError, match="this iteration is over"):
        next(older)
    assert len(list(newer)) == len(made) - 1


def test_stats_say_what_was_done_and_waited_for(loader: Make, photos: Path) -> None:
    made = loader(prefetch=0)
    assert made.stats()["batches"] == 0
    for _ in made:
        pass
    stats = made.stats()
    stored = sum(path.stat().st_size for path in images_of(photos))
    assert (stats["batches"], stats["samples"], stats["bytes_read"], stats["threads"]) == (6, N_IMAGES, stored, 2)
    assert 0 < stats["first_batch_s"] <= stats["wait_s"] <= stats["wall_s"]
    assert sum(stats["wait_by_cause_s"].values()) == pytest.approx(stats["wait_s"], rel=0.05, abs=2e-3)
    tuned = loader(threads="auto")
    assert sum(len(labels) for _, labels in tuned) == N_IMAGES and tuned.stats()["threads"] >= 1
