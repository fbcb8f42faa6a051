"""Who takes part in what. A new peer is one line here and one file in `pipelines/`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A peer, the Python package it needs, and the settings it is given per mode (its best one is its figure)."""

    package: str
    pipeline: str
    variants: dict[str, list[str]]


PEERS = {
    "tfdata": Peer(
        "tensorflow",
        "tfdata",
        {
            "full": ["fast", "deterministic", "accurate"],
            "read": ["files"],
            "tfrecord": ["records", "parsed", "parsed_by_batch"],
            "tar": ["records", "parsed", "parsed_by_batch"],
        },
    ),
    "torch": Peer("torchvision", "torchvision_io", {"full": ["resize"], "read": ["files"]}),
    "dali": Peer("nvidia.dali", "dali_cpu", {"full": ["resize"], "read": ["files"]}),
    "webdataset": Peer("webdataset", "webdataset_tar", {"tar": ["in_process", "workers"]}),
    "ffcv": Peer("ffcv", "ffcv_raw", {"tensor": ["convert", "normalize"]}),
}

MODES = {
    "full": "shuffle, read, decode, resize to 224x224x3 f32, batch 64, prefetch 2",
    "read": "shuffle, read the files and drop the bytes",
    "tfrecord": "TFRecord shards, records read and not decoded",
    "tar": "tar shards, records read and not decoded (tf.data reads the same images from TFRecord)",
    "tensor": "images decoded beforehand (u8, 224 px), to f32 batches",
}
