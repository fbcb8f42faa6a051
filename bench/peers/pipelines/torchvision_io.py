"""torch DataLoader with worker processes and torchvision's JPEG decoder; its batches are NCHW, as torch has them."""

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms.v2.functional import resize

from data import SIDE_PX, image_files
from task import BATCH, PREFETCH_BATCHES, Epoch, Task


class Images(Dataset):
    """Decoded and resized images."""

    def __init__(self, files: list[str]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        image = decode_jpeg(read_file(self.files[index]), mode=ImageReadMode.RGB)
        return resize(image, [SIDE_PX, SIDE_PX], antialias=False).float()


class Lengths(Images):
    """Files read in the worker; only their lengths cross to the consumer."""

    def __getitem__(self, index: int) -> int:
        with open(self.files[index], "rb") as f:
            return len(f.read())


def epochs(task: Task) -> Epoch:
    """The pipeline of `task`, ready to be iterated."""
    source = Images if task.mode == "full" else Lengths
    loader = DataLoader(
        source(image_files(task.data / task.dataset)),
        batch_size=BATCH,
        shuffle=True,
        num_workers=task.threads,
        prefetch_factor=PREFETCH_BATCHES,
        persistent_workers=True,
    )
    return lambda: (len(batch) for batch in loader)
