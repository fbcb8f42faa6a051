"""NVIDIA DALI with every operator on the CPU."""

from collections.abc import Iterator
from typing import Any

from nvidia.dali import fn, pipeline_def, types

from data import SIDE_PX, image_files
from task import BATCH, PREFETCH_BATCHES, Epoch, Task


def epochs(task: Task) -> Epoch:
    """The pipeline of `task`, ready to be iterated."""
    files = image_files(task.data / task.dataset)
    pipeline = _graph(
        task.mode,
        files,
        batch_size=BATCH,
        num_threads=task.threads,
        device_id=None,
        prefetch_queue_depth=PREFETCH_BATCHES,
        seed=1,
    )
    pipeline.build()
    return lambda: _one_pass(pipeline, len(files))


@pipeline_def
def _graph(mode: str, files: list[str]) -> Any:
    encoded, _ = fn.readers.file(files=files, shuffle_after_epoch=True, name="files")
    if mode == "read":
        return fn.shapes(encoded)
    image = fn.decoders.image(encoded, output_type=types.RGB)
    return fn.resize(image, size=(SIDE_PX, SIDE_PX), antialias=False, dtype=types.FLOAT)


def _one_pass(pipeline: Any, n_files: int) -> Iterator[int]:
    """DALI's readers run on into the next epoch, so a pass is as many full batches as hold all files."""
    for _ in range(-(-n_files // BATCH)):
        (batch,) = pipeline.run()
        yield len(batch)
