"""tf.data, from files and from TFRecord shards, with a private pool of as many threads as parallel calls.

In `tar` mode it reads the TFRecord shards of the same images: that rate is the bar for tar shards.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

from data import SIDE_PX, image_files, packed_path, shard_files
from task import BATCH, PREFETCH_BATCHES, Epoch, Task


def epochs(task: Task) -> Epoch:
    """The pipeline of `task`, ready to be iterated."""
    make = {"full": _full, "read": _read}.get(task.mode, _records)
    dataset = make(task).prefetch(PREFETCH_BATCHES).with_options(_options(task))
    return lambda: (int(batch.shape[0]) for batch in dataset)


def _full(task: Task) -> tf.data.Dataset:
    method = "INTEGER_ACCURATE" if task.variant == "accurate" else ""

    def load(path: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method=method)
        return tf.image.resize(image, (SIDE_PX, SIDE_PX), antialias=False)

    return _files(task).map(load, num_parallel_calls=task.threads).batch(BATCH)


def _read(task: Task) -> tf.data.Dataset:
    def length(path: tf.Tensor) -> tf.Tensor:
        return tf.strings.length(tf.io.read_file(path))

    return _files(task).map(length, num_parallel_calls=task.threads).batch(BATCH)


def _records(task: Task) -> tf.data.Dataset:
    shards = shard_files(packed_path(task.data, task.dataset, "tfrecord"), ".tfrecord")
    records = tf.data.TFRecordDataset(shards, buffer_size=8 << 20, num_parallel_reads=task.threads)
    feature = {"image/encoded": tf.io.FixedLenFeature((), tf.string)}

    def payload(record: tf.Tensor) -> tf.Tensor:
        return tf.strings.length(tf.io.parse_single_example(record, feature)["image/encoded"])

    def payloads(batch: tf.Tensor) -> tf.Tensor:
        return tf.strings.length(tf.io.parse_example(batch, feature)["image/encoded"])

    if task.variant == "parsed":
        return records.map(payload, num_parallel_calls=task.threads).batch(BATCH)
    if task.variant == "parsed_by_batch":
        return records.batch(BATCH).map(payloads, num_parallel_calls=task.threads)
    return records.batch(BATCH)


def _files(task: Task) -> tf.data.Dataset:
    files = image_files(task.data / task.dataset)
    return tf.data.Dataset.from_tensor_slices(files).shuffle(len(files), seed=1)


def _options(task: Task) -> tf.data.Options:
    options = tf.data.Options()
    # Every number of parallel calls is given, so there is nothing to tune. Left on, the tuning thread sleeps 10, 20,
    # 40… ms, and the end of an epoch may wait for it: epochs then last 1.27, 2.55 or 5.11 s whatever they read.
    options.autotune.enabled = False
    options.deterministic = task.variant == "deterministic"
    options.threading.private_threadpool_size = task.threads
    options.threading.max_intra_op_parallelism = 1
    return options
