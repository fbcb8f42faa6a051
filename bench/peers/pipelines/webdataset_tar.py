"""webdataset, reading the members of tar shards without decoding them."""

import webdataset as wds

from data import packed_path, shard_files
from task import BATCH, PREFETCH_BATCHES, Epoch, Task


def epochs(task: Task) -> Epoch:
    """The pipeline of `task`, ready to be iterated."""
    shards = shard_files(packed_path(task.data, task.dataset, "tar"), ".tar")
    samples = wds.WebDataset(shards, shardshuffle=len(shards), empty_check=False)
    batches = samples.map(_length).batched(BATCH)
    workers = min(task.threads, len(shards)) if task.variant == "workers" else 0
    options = {"prefetch_factor": PREFETCH_BATCHES, "persistent_workers": True} if workers else {}
    loader = wds.WebLoader(batches, batch_size=None, num_workers=workers, **options)
    return lambda: (len(lengths) for (lengths,) in loader)


def _length(sample: dict[str, bytes]) -> tuple[int]:
    return (len(sample["jpg"]),)
