"""PyTorch's AlexNet and ResNet-50 fed by `forebay.ImageLoader` and by DataLoader, and checkpoints of a state on a GPU.

Needs torch and torchvision, and the wheel installed. With `--device cpu`, everything runs at a small size, to try the program.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

import forebay

SIDE = 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Step:
    """A training step in bf16, channels last, compiled by nothing."""

    def __init__(self, model: str, device: torch.device, n_classes: int) -> None:
        self.device = device
        self.network = torchvision.models.get_model(model, num_classes=n_classes).to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.network.parameters(), 0.01, momentum=0.9)

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        with torch.autocast(self.device.type, torch.bfloat16):
            loss = cross_entropy(self.network(images.contiguous(memory_format=torch.channels_last)), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def finish(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def from_forebay(data: Path, batch: int, threads: int, device: torch.device) -> Iterator[Any]:
    loader = forebay.ImageLoader(
        data, batch_size=batch, image_size=SIDE, train=True, threads=threads, prefetch=3, normalize="imagenet", dtype="bfloat16",
        device=str(device), output="torch",
    )  # fmt: skip
    while True:
        yield from loader


def from_dataloader(data: Path, batch: int, threads: int, device: torch.device) -> Iterator[Any]:
    transform = v2.Compose([
        v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD),
    ])  # fmt: skip
    dataset = ImageFolder(data, transform, loader=lambda path: decode_image(path, ImageReadMode.RGB))
    loader = DataLoader(
        dataset, batch, shuffle=True, drop_last=True, num_workers=threads, pin_memory=device.type == "cuda", persistent_workers=True
    )
    while True:
        for images, labels in loader:
            yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def fed(step: Step, batches: Iterator[Any], seconds: float) -> dict[str, float]:
    """Images per second, and the share of the time that the loop waited for batches."""
    for _ in range(4):
        step(*next(batches))
    step.finish()
    n, waited, start = 0, 0.0, time.perf_counter()
    while (now := time.perf_counter()) - start < seconds:
        images, labels = next(batches)
        waited += time.perf_counter() - now
        step(images, labels)
        n += len(labels)
        # The loop may not run ahead of the device, or waits would seem to be hidden that are not.
        step.finish()
    wall = time.perf_counter() - start
    return {"images_per_s": n / wall, "wait_share": waited / wall}


def feeds(given: argparse.Namespace, device: torch.device, say: Callable[..., None]) -> None:
    for data in given.data:
        n_classes = len(os.listdir(data))
        for model in given.models:
            step = Step(model, device, n_classes)
            images = torch.randn(given.batch, 3, SIDE, SIDE, device=device)
            labels = torch.zeros(given.batch, dtype=torch.int64, device=device)
            say("feed", data.name, model, "no input", **fed(step, iter(lambda i=images, t=labels: (i, t), None), given.seconds))
            for _ in range(given.rounds):
                for name, source in {"forebay": from_forebay, "DataLoader": from_dataloader}.items():
                    batches = source(data, given.batch, given.threads, device)
                    say("feed", data.name, model, name, **fed(step, batches, given.seconds))
                    batches.close()


def state_of(n_bytes: int, device: torch.device) -> dict[str, torch.Tensor]:
    n = max(n_bytes // (16 << 20), 1)
    return {f"w{at}": torch.randn(n_bytes // n // 4, device=device) for at in range(n)}


def synchronized(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def saves(state: dict[str, torch.Tensor], folder: Path, device: torch.device) -> dict[str, Callable[[int], tuple[float, float]]]:
    """Per saver: seconds that a save stops training, and seconds until it is durable."""
    import torch.distributed.checkpoint as dcp

    saver = forebay.Checkpointer(folder / "forebay", keep=2)
    pinned = {name: torch.empty_like(value, device="cpu", pin_memory=device.type == "cuda") for name, value in state.items()}

    def timed(stops: Callable[[], Any], durable: Callable[[Any], Any]) -> tuple[float, float]:
        start = time.perf_counter()
        result = stops()
        stall = time.perf_counter() - start
        durable(result)
        return stall, time.perf_counter() - start

    def copy() -> None:
        for name, value in state.items():
            pinned[name].copy_(value, non_blocking=True)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def save_torch(number: int) -> None:
        (folder / "torch").mkdir(exist_ok=True)
        torch.save(state, folder / "torch" / f"{number}.pt")
        synchronized(folder / "torch")

    def durable_dcp(number: int, future: Any) -> None:
        future.result()
        synchronized(folder / f"dcp-{number}")
        shutil.rmtree(folder / f"dcp-{number}", ignore_errors=True)

    return {
        "pinned copy": lambda _: timed(copy, lambda _: None),
        "forebay async": lambda number: timed(lambda: saver.save(number, model=state), lambda _: saver.wait()),
        "torch.save": lambda number: timed(lambda: save_torch(number), lambda _: None),
        "DCP async": lambda number: timed(
            lambda: dcp.async_save(dict(state), checkpoint_id=str(folder / f"dcp-{number}")), lambda future: durable_dcp(number, future)
        ),
    }


def checkpoints(given: argparse.Namespace, device: torch.device, say: Callable[..., None]) -> None:
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        state = state_of(given.state_mb << 20, device)
        savers = saves(state, Path(folder), device)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in savers}
        for number in range(given.rounds + 1):
            for name, save in savers.items():
                taken = save(number)
                # The first save takes the memory that the others reuse.
                if number > 0:
                    times[name].append(taken)
        for name, taken in times.items():
            stall, durable = (statistics.median(column) for column in zip(*taken, strict=True))
            say("checkpoint", f"{given.state_mb} MiB", name, stall_s=stall, durable_s=durable)
    torch.distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders of images")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--models", nargs="*", default=["alexnet", "resnet50"])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--state-mb", type=int, default=4096)
    parser.add_argument("--folder", help="where checkpoints are saved")
    given = parser.parse_args()
    device = torch.device(given.device)

    def say(*words: str, **numbers: float) -> None:
        print(json.dumps([*words, {name: round(value, 5) for name, value in numbers.items()}]), flush=True)

    feeds(given, device, say)
    checkpoints(given, device, say)


if __name__ == "__main__":
    sys.exit(main())
