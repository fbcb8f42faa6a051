"""torch tensors without a copy, torchvision's pixels, and training that learns and resumes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F

import forebay

SIDE = 48


def make(photos: Path, **settings: Any) -> forebay.ImageLoader:
    return forebay.ImageLoader(photos, **{"batch_size": 16, "image_size": SIDE, "threads": 2, **settings})


def test_batches_are_tensors_in_place(photos: Path) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.uint8):
        loader = make(photos, dtype=str(dtype).removeprefix("torch."))
        addresses = set()
        for images, labels in loader:
            assert (images.dtype, images.shape, labels.dtype) == (dtype, (16, 3, SIDE, SIDE), torch.int64)
            assert images.is_contiguous()
            images.mul_(2)
            addresses.add(images.data_ptr())
        assert len(addresses) <= 6 and loader.stats()["copied_batches"] == 0, "the ring's memory, again and again"


@pytest.mark.parametrize("train", [True, False])
def test_pixels_are_torchvisions_for_the_same_parameters(photos: Path, train: bool) -> None:
    loader = make(photos, train=train, dtype="uint8", return_index=True)
    center = v2.Compose([v2.Resize(round(SIDE * 256 / 224)), v2.CenterCrop(SIDE)])
    worst = 0
    for images, _, indices in loader:
        for ours, index in zip(images, indices.tolist(), strict=True):
            theirs = F.pil_to_tensor(Image.open(loader.name_of(index)).convert("RGB"))
            if train:
                what = loader.augmentation(index, 0, theirs.shape[2], theirs.shape[1])
                left, top, width, height = what["crop"]
                theirs = F.resized_crop(theirs, top, left, height, width, [SIDE, SIDE], InterpolationMode.BILINEAR, True)
                theirs = F.horizontal_flip(theirs) if what["flipped"] else theirs
            else:
                theirs = center(theirs)
            worst = max(worst, (ours.int() - theirs.int()).abs().max().item())
    assert worst <= 1, f"{worst} grey levels"


def test_colours_are_torchvisions_for_the_same_factors(photos: Path) -> None:
    adjust = {name: getattr(F, f"adjust_{name}") for name in ("brightness", "contrast", "saturation", "hue")}
    settings = {"train": True, "dtype": "uint8", "return_index": True}
    plain, made = make(photos, **settings), make(photos, **settings, jitter=(0.4, 0.4, 0.4, 0.1))
    worst = 0
    for (before, _, indices), (after, _, _) in zip(plain, made, strict=True):
        for image, ours, index in zip(before, after, indices.tolist(), strict=True):
            for kind, factor in made.augmentation(index, 0, 100, 100)["colors"]:
                image = adjust[kind](image, factor)
            worst = max(worst, (ours.int() - image.int()).abs().max().item())
    assert worst <= 1, f"{worst} grey levels"


def test_mixup_and_cutmix_are_a_function_of_the_batch(photos: Path) -> None:
    mix = v2.RandomChoice([v2.CutMix(num_classes=4), v2.MixUp(num_classes=4)])
    batches = list(make(photos, train=True, normalize="imagenet", map=lambda batch: mix(*batch)))
    assert len(batches) == 12
    for images, labels in batches:
        assert images.shape == (16, 3, SIDE, SIDE) and labels.shape == (16, 4)
        assert torch.allclose(labels.sum(1), torch.ones(16))
    assert any(((labels > 0).sum(1) == 2).any() for _, labels in batches)


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, 2, 2), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 5, 2, 2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(512, 4),
    )  # fmt: skip


def accuracy(model: torch.nn.Module, photos: Path) -> float:
    right = n = 0
    with torch.no_grad():
        for images, labels in make(photos, normalize="imagenet"):
            right, n = right + (model(images).argmax(1) == labels).sum().item(), n + len(labels)
    return right / n


def train(batches: Any, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    losses = []
    for images, labels in batches:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_network_learns_as_from_dataloader(photos: Path) -> None:
    transform = v2.Compose([
        v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])  # fmt: skip
    reached = {}
    for name, loader in {
        "forebay": make(photos, train=True, normalize="imagenet"),
        "DataLoader": DataLoader(ImageFolder(photos, transform), batch_size=16, shuffle=True, drop_last=True),
    }.items():
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        for _ in range(15):
            train(loader, model, optimizer)
        reached[name] = accuracy(model, photos)
    assert reached["forebay"] >= 0.85 and reached["forebay"] >= reached["DataLoader"] - 0.1, reached


def test_a_run_that_is_stopped_anywhere_goes_on_with_the_same_losses(photos: Path, tmp_path: Path) -> None:
    def start() -> tuple[forebay.ImageLoader, torch.nn.Module, torch.optim.Optimizer]:
        model = network()
        return make(photos, train=True, normalize="imagenet"), model, torch.optim.Adam(model.parameters(), 1e-3)

    loader, model, optimizer = start()
    whole, step = [], 0
    with forebay.Checkpointer(tmp_path, keep=100) as saver:
        for _ in range(2):
            for batch in loader:
                whole += train([batch], model, optimizer)
                step += 1
                saver.save(step, model=model, optimizer=optimizer, loader=loader)
    for stopped in (1, 7, 12, 19):
        loader, model, optimizer = start()
        restored = forebay.Checkpointer(tmp_path).restore(stopped, model=model, optimizer=optimizer, loader=loader)
        assert restored.step == stopped
        losses: list[float] = []
        while len(losses) < len(whole) - stopped:
            losses += train(loader, model, optimizer)
        assert losses == whole[stopped:], f"after step {stopped}"
