"""`forebay trace` on jobs of TensorFlow with a planted cause, which the verdict must name."""

import os
import subprocess
from pathlib import Path

import pytest
from traced import Traced, traced  # noqa: F401

# Operations of TensorFlow stand for decoding: they run in as many threads as the map is given.
TRAIN = """
import os, sys, time
import tensorflow as tf
folder, compute_s = sys.argv[1], float(sys.argv[5])
calls, ahead, decode, epochs = (int(sys.argv[i]) for i in (2, 3, 4, 6))
def load(name):
    found = tf.io.read_file(name)
    wide = tf.random.uniform([200, 200])
    for _ in range(decode):
        wide = tf.linalg.matmul(wide, wide) / 100
    return tf.strings.length(found), tf.reduce_sum(wide)
batches = tf.data.Dataset.list_files(folder + "/*", shuffle=False).map(load, num_parallel_calls=calls or None).batch(4)
if ahead:
    batches = batches.prefetch(ahead)
else:
    # tf.data would add one, and make the map parallel.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    batches = batches.with_options(options)
for epoch in range(epochs):
    for batch in batches:
        time.sleep(compute_s)
"""


def named(found: Traced) -> tuple[str, str, str]:
    return found.cell["limit"]["name"], found.cell["lever"]["name"], found.cell["verdict"]


def test_tf_data_that_decodes_is_told_from_one_that_reads(traced) -> None:
    found = traced(TRAIN, "data", 4, 2, 400, 0.0, 3)
    assert found.totals["steps"] == 15
    limit, _, verdict = named(found)
    assert limit in ["decode", "threads"], (verdict, found.cell["rules"])


def test_tf_data_without_prefetch_is_told_to_prefetch(traced) -> None:
    found = traced(TRAIN, "data", 0, 0, 100, 0.1, 4)
    limit, lever, verdict = named(found)
    assert (limit, lever) == ("prefetch", "prefetch"), (verdict, found.cell["rules"])


def test_tf_data_with_prefetch_is_not(traced) -> None:
    found = traced(TRAIN, "data", 0, 2, 200, 0.1, 4)
    limit, _, verdict = named(found)
    assert limit != "prefetch", (verdict, found.cell["rules"])


def test_tf_data_with_many_metadata_calls_is_told_to_pack(traced) -> None:
    script = """
import os, time
import tensorflow as tf
def load(name):
    name = name.numpy()
    for _ in range(20000):
        os.stat(name)
    return len(open(name, "rb").read())
names = tf.data.Dataset.list_files("data/*", shuffle=False)
batches = names.map(lambda name: tf.py_function(load, [name], tf.int32), num_parallel_calls=2).batch(4).prefetch(1)
for epoch in range(2):
    for batch in batches:
        pass
"""
    found = traced(script)
    limit, lever, verdict = named(found)
    rule = next(rule for rule in found.cell["rules"] if rule["id"] == "R5")
    assert (limit, lever, rule["applies"]) == ("storage", "pack", True), (verdict, rule)


@pytest.fixture
def slow(binary: Path, tmp_path: Path):
    """A folder on a tier that the kernel throttles to an old hard disk."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("a throttled tier needs root and loop devices")
    environment = os.environ | {"FOREBAY_HOME": str(tmp_path / "home")}

    def tier(*words: str) -> str:
        done = subprocess.run([binary, "tier", *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    tier("up", "hdd", "--size", "600MiB")
    yield tmp_path / "home" / "tiers" / "hdd" / "data"
    tier("down")


def test_tf_data_on_a_slow_disk_waits_for_storage(traced, slow: Path) -> None:
    folder = slow / "set"
    folder.mkdir()
    for i in range(32):
        file = folder / f"{i:02}.bin"
        file.write_bytes(os.urandom(8_000_000))
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    found = traced(TRAIN, folder, 2, 1, 1, 0.0, 1)
    limit, lever, verdict = named(found)
    assert (limit, lever) == ("storage", "storage"), (verdict, found.cell["rules"])
    assert found.below(folder)["bytes_read"] == 32 * 8_000_000
