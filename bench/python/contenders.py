"""One epoch of each contender: what `run.py` starts in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

BATCH, SIDE = 64, 224
# Side of the images that are decoded beforehand.
RAW_SIDE = 256
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def forebay_plain(data: str, threads: int) -> Callable[[], Iterator[int]]:
    """What `forebay ingest` makes: the whole image, resized without antialiasing, floats from 0 to 255."""
    return _forebay(data, threads, shuffle=True, crop="none", antialias=False, layout="NHWC")


def forebay_augmented(data: str, threads: int) -> Callable[[], Iterator[int]]:
    """Random crops, mirrored, antialiased, normalised."""
    return _forebay(data, threads, train=True, drop_last=False, normalize="imagenet")


def _forebay(data: str, threads: int, **settings: object) -> Callable[[], Iterator[int]]:
    import forebay

    loader = forebay.ImageLoader(data, batch_size=BATCH, image_size=SIDE, threads=threads, prefetch=1, output="numpy", **settings)
    return lambda: (len(labels) for _, labels in loader)


def dataloader_plain(data: str, threads: int) -> Callable[[], Iterator[int]]:
    from torchvision.transforms import v2

    return _dataloader(data, threads, [v2.Resize([SIDE, SIDE], antialias=False)], 1.0)


def dataloader_augmented(data: str, threads: int) -> Callable[[], Iterator[int]]:
    from torchvision.transforms import v2

    normal = v2.Normalize(MEAN, STD)
    return _dataloader(data, threads, [v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip()], normal)


def _dataloader(data: str, threads: int, transforms: list, last: object) -> Callable[[], Iterator[int]]:
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = [*transforms, v2.ToDtype(torch.float32, scale=last != 1.0), *([] if last == 1.0 else [last])]
    # The faster of torchvision's two decoders.
    dataset = ImageFolder(data, v2.Compose(steps), loader=lambda path: decode_image(path, ImageReadMode.RGB))
    loader = DataLoader(dataset, BATCH, shuffle=True, num_workers=threads)
    return lambda: (len(labels) for _, labels in loader)


def tfdata_plain(data: str, threads: int) -> Callable[[], Iterator[int]]:
    return _tfdata(data, threads, False)


def tfdata_augmented(data: str, threads: int) -> Callable[[], Iterator[int]]:
    return _tfdata(data, threads, True)


def _tfdata(data: str, threads: int, augmented: bool) -> Callable[[], Iterator[int]]:
    from pathlib import Path

    import tensorflow as tf

    paths = [str(path) for path in sorted(Path(data).rglob("*.jpg"))]

    def make(path: tf.Tensor) -> tf.Tensor:
        encoded = tf.io.read_file(path)
        if not augmented:
            return tf.image.resize(tf.io.decode_jpeg(encoded, 3), [SIDE, SIDE])
        box, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(encoded), tf.zeros([1, 0, 4]), 0, 0.0, (3 / 4, 4 / 3), (0.08, 1.0),
            use_image_if_no_bounding_boxes=True,
        )  # fmt: skip
        window = tf.concat([box[:2], size[:2]], 0)
        image = tf.image.resize(tf.image.decode_and_crop_jpeg(encoded, window, 3), [SIDE, SIDE], antialias=True)
        image = tf.image.random_flip_left_right(image)
        return (image / 255 - MEAN) / STD

    dataset = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
    dataset = dataset.map(make, threads).batch(BATCH).prefetch(1)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    return lambda: (len(batch) for batch in dataset.with_options(options))


def dali_plain(data: str, threads: int) -> Callable[[], Iterator[int]]:
    return _dali(data, threads, False)


def dali_augmented(data: str, threads: int) -> Callable[[], Iterator[int]]:
    return _dali(data, threads, True)


def _dali(data: str, threads: int, augmented: bool) -> Callable[[], Iterator[int]]:
    """Every operator on the CPU; the decoder reads only the crop."""
    from pathlib import Path

    from nvidia.dali import fn, pipeline_def, types

    paths = [str(path) for path in sorted(Path(data).rglob("*.jpg"))]

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, prefetch_queue_depth=1, seed=1)
    def graph() -> object:
        encoded, _ = fn.readers.file(files=paths, shuffle_after_epoch=True)
        if not augmented:
            image = fn.decoders.image(encoded, output_type=types.RGB)
            return fn.resize(image, size=(SIDE, SIDE), antialias=False, dtype=types.FLOAT)
        box = {"random_aspect_ratio": (3 / 4, 4 / 3), "random_area": (0.08, 1.0)}
        image = fn.decoders.image_random_crop(encoded, output_type=types.RGB, **box)
        image = fn.resize(image, size=(SIDE, SIDE), antialias=True)
        mean, std = ([255 * value for value in values] for values in (MEAN, STD))
        mirror = fn.random.coin_flip(probability=0.5)
        return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", mean=mean, std=std, mirror=mirror)

    pipeline = graph()
    pipeline.build()
    # Its reader runs on into the next epoch: a pass is as many full batches as hold all files.
    return lambda: (len(pipeline.run()[0]) for _ in range(-(-len(paths) // BATCH)))


def spdl_plain(data: str, threads: int) -> Callable[[], Iterator[int]]:
    return _spdl(data, threads, False)


def spdl_augmented(data: str, threads: int) -> Callable[[], Iterator[int]]:
    return _spdl(data, threads, True)


def _spdl(data: str, threads: int, augmented: bool) -> Callable[[], Iterator[int]]:
    """Threads that decode a batch each, with FFmpeg's filters: its fastest way to a batch."""
    import random
    from pathlib import Path

    import spdl.io
    import torch
    from spdl.pipeline import PipelineBuilder

    torch.set_num_threads(1)
    paths = [str(path) for path in sorted(Path(data).rglob("*.jpg"))]
    scale = torch.tensor([1 / (255 * std) for std in STD])[:, None, None]
    shift = torch.tensor([-mean / std for mean, std in zip(MEAN, STD, strict=True)])[:, None, None]

    def decode(path: str) -> object:
        packets = spdl.io.demux_image(path)
        resize = f"scale={SIDE}:{SIDE}:flags=bilinear,format=rgb24"
        if augmented:
            left, top, width, height = random_crop(packets.width, packets.height)
            resize = f"crop={width}:{height}:{left}:{top}:exact=1,{'hflip,' if random.random() < 0.5 else ''}{resize}"
        return spdl.io.decode_packets(packets, filter_desc=resize)

    def batch(some: list[str]) -> object:
        made = torch.from_numpy(spdl.io.to_numpy(spdl.io.convert_frames([decode(path) for path in some])))
        return made.permute(0, 3, 1, 2).to(torch.float32).mul_(scale).add_(shift) if augmented else made.to(torch.float32)

    def epoch() -> Iterator[int]:
        random.shuffle(paths)
        builder = PipelineBuilder().add_source(paths).aggregate(BATCH).pipe(batch, concurrency=threads).add_sink(1)
        with (pipeline := builder.build(num_threads=threads)).auto_stop():
            for made in pipeline:
                yield len(made)

    return epoch


def random_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """torchvision's box, for a pipeline that has none."""
    import math
    import random

    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    return 0, 0, width, height


def forebay_raw_augmented(data: str, threads: int) -> Callable[[], Iterator[int]]:
    """The same from images decoded beforehand, as FFCV's raw mode has them."""
    return _forebay(f"{data}.tensor", threads, train=True, drop_last=False, normalize="imagenet")


def ffcv_raw_augmented(data: str, threads: int) -> Callable[[], Iterator[int]]:
    from pathlib import Path

    import numpy as np
    from ffcv.fields import RGBImageField
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor
    from ffcv.writer import DatasetWriter
    from PIL import Image

    beton = Path(f"{data}.beton")
    if not beton.exists():
        paths = sorted(Path(data).rglob("*.jpg"))

        class Resized:
            def __len__(self) -> int:
                return len(paths)

            def __getitem__(self, at: int) -> tuple[object]:
                image = Image.open(paths[at]).convert("RGB").resize((RAW_SIDE, RAW_SIDE), Image.Resampling.BILINEAR)
                return (np.asarray(image),)

        partial = beton.with_suffix(".partial")
        fields = {"image": RGBImageField(write_mode="raw", max_resolution=RAW_SIDE)}
        DatasetWriter(str(partial), fields, num_workers=1).from_indexed_dataset(Resized())
        partial.rename(beton)
    normal = NormalizeImage(np.array(MEAN) * 255, np.array(STD) * 255, np.float32)
    steps = [RandomResizedCropRGBImageDecoder((SIDE, SIDE)), RandomHorizontalFlip(), normal, ToTensor()]
    loader = Loader(
        str(beton), BATCH, num_workers=threads, order=OrderOption.RANDOM, os_cache=True, batches_ahead=1,
        drop_last=False, pipelines={"image": steps},
    )  # fmt: skip
    return lambda: (len(images) for (images,) in loader)


CONTENDERS = {
    name: make
    for name, make in globals().items()
    if name.endswith(("_plain", "_augmented")) and not name.startswith("_")
}


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measured(name: str, data: str, threads: int) -> dict[str, float]:
    """The second epoch of a contender."""
    epoch = CONTENDERS[name](data, threads)
    for _ in epoch():
        pass
    cpu, start = cpu_seconds(), time.perf_counter()
    n_images = sum(epoch())
    return {"images": n_images, "cpu_s": cpu_seconds() - cpu, "wall_s": time.perf_counter() - start}


def ingest(binary: str, data: str, threads: int) -> dict[str, float]:
    """The command line on the same files, at the same size."""
    flags = ["--threads", threads, "--prefetch", 1, "--batch", BATCH, "--size", SIDE, "--warmups", 1, "--repeats", 1]
    command = [binary, "ingest", data, *map(str, flags), "--extra-repeats", "0", "--json", "-"]
    said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    sample = said["cells"][0]["samples"][0]
    return {key: sample[key] for key in ("images", "cpu_s", "wall_s")}


def overhead(data: str) -> dict[str, float]:
    """Microseconds that Python's thread works per batch: tiny batches, already prepared when they are asked for."""
    import forebay

    loader = forebay.ImageLoader(data, batch_size=1, image_size=8, threads=2, prefetch=64, dtype="uint8", output="numpy")
    for _ in loader:
        pass
    start = time.thread_time()
    n_batches = sum(1 for _ in loader)
    return {"us_per_batch": (time.thread_time() - start) / n_batches * 1e6}


def first_batch(data: str) -> dict[str, float]:
    """Seconds from the import to the first batch."""
    start = time.perf_counter()
    import forebay

    loader = forebay.ImageLoader(data, batch_size=BATCH, image_size=SIDE, threads=2, output="numpy", train=True)
    next(iter(loader))
    return {"s": time.perf_counter() - start}


def main() -> None:
    what, data, *rest = sys.argv[1:]
    match what:
        case "ingest":
            result = ingest(rest[1], data, int(rest[0]))
        case "overhead":
            result = overhead(data)
        case "first_batch":
            result = first_batch(data)
        case _:
            result = measured(what, data, int(rest[0]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
