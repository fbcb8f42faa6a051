"""Trains a network with PyTorch: augmentation, validation, checkpoints, resume, several ranks.

On one process: `python train_pytorch.py photos/train photos/val`. On several: `torchrun --nproc-per-node 4 train_pytorch.py …`;
each rank then reads its own part of the data, and rank 0 saves. Killed at any moment and started again with the same
arguments, it goes on after the last checkpoint with the same samples.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torchvision
from torch.nn.functional import cross_entropy

import forebay


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="images that are trained on")
    parser.add_argument("val", help="images that are evaluated")
    parser.add_argument("--model", default="resnet50", help="a network of torchvision")
    parser.add_argument("--batch-size", type=int, default=128, help="samples per rank and step")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--checkpoints", default="checkpoints", help="folder of checkpoints")
    parser.add_argument("--save-every", type=int, default=500, metavar="STEPS")
    parser.add_argument("--stop-after", type=int, metavar="STEPS", help="end as if killed, to try the resume")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")
    if world_size > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

    shared = {"batch_size": given.batch_size, "image_size": given.image_size, "normalize": "imagenet", "output": "torch"}
    shared |= {"rank": rank, "world_size": world_size}
    loader = forebay.ImageLoader(given.train, train=True, seed=0, errors="skip", **shared)
    validation = forebay.ImageLoader(given.val, **shared)

    torch.manual_seed(0)
    model = torchvision.models.get_model(given.model, num_classes=len(loader.classes)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), given.lr, momentum=0.9, weight_decay=1e-4)
    saver = forebay.Checkpointer(given.checkpoints)
    step = 0
    if os.path.isdir(given.checkpoints) and saver.steps():
        restored = saver.restore(model=model, optimizer=optimizer, loader=loader)
        step = restored.step
        print(f"rank {rank} goes on after step {step}, in epoch {loader.epoch}", flush=True)
    network = torch.nn.parallel.DistributedDataParallel(model) if world_size > 1 else model

    while loader.epoch < given.epochs:
        epoch = loader.epoch
        network.train()
        for images, labels in loader:
            loss = cross_entropy(network(images.to(device, non_blocking=True)), labels.to(device, non_blocking=True))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if step % given.save_every == 0 and rank == 0:
                saver.save(step, model=model, optimizer=optimizer, loader=loader)
            if step == given.stop_after:
                saver.close()
                print(f"stopped after step {step}, loss {loss.item():.6f}", flush=True)
                return
        waited = loader.stats()
        right, n = evaluate(model, validation, device)
        if world_size > 1:
            counts = torch.tensor([right, n], device=device)
            dist.all_reduce(counts)
            right, n = counts.tolist()
        if rank == 0:
            share = waited["wait_s"] / waited["wall_s"]
            print(f"epoch {epoch}: loss {loss.item():.6f}, accuracy {right / n:.1%}, waited {share:.0%}", flush=True)
    saver.close()
    if world_size > 1:
        dist.destroy_process_group()


def evaluate(model: torch.nn.Module, loader: forebay.ImageLoader, device: torch.device) -> tuple[int, int]:
    model.eval()
    right = n = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images.to(device)).argmax(1).cpu() == labels).sum().item()
            n += len(labels)
    return right, n


if __name__ == "__main__":
    main()
