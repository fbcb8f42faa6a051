"""`forebay trace` on jobs of TensorFlow, Keras, NumPy, h5py and safetensors, each with a known number of bytes, calls and steps."""

from pathlib import Path

from traced import traced  # noqa: F401


def test_tf_data_on_files_has_every_byte_and_step(traced, tmp_path: Path) -> None:
    found = traced("""
import tensorflow as tf
files = tf.data.Dataset.list_files("data/*.bin", shuffle=False)
batches = files.map(tf.io.read_file, num_parallel_calls=4).batch(4).prefetch(1)
for epoch in range(3):
    assert sum(1 for batch in batches) == 5
""")
    data = found.below(tmp_path / "data")
    assert (data["files"], data["opens"], data["bytes_read"]) == (20, 60, 3 * 20 * 30_000)
    assert found.totals["steps"] == 15
    assert 0 < found.totals["wait_s"] <= found.totals["loop_s"]


def test_tfrecord_cache_and_checkpoint(traced, tmp_path: Path) -> None:
    found = traced("""
import os, tensorflow as tf
with tf.io.TFRecordWriter("data/all.tfrecord") as writer:
    for i in range(50):
        writer.write(os.urandom(10_000))
for batch in tf.data.TFRecordDataset("data/all.tfrecord").cache().batch(10).repeat(2):
    pass
tf.train.Checkpoint(w=tf.Variable(tf.zeros(250_000))).save("out/model")
""")
    record = found.named("/all.tfrecord")
    assert record["bytes_written"] == 50 * (10_000 + 16)
    assert record["bytes_read"] == 50 * (10_000 + 16), "the second epoch comes from the cache"
    assert found.totals["steps"] == 10
    assert found.saves() == [False]
    written = sum(file["bytes_written"] for file in found.cell["files"] if "/out/" in file["name"])
    assert written > 1_000_000


def test_keras_fit_counts_steps_and_says_that_its_wait_is_not_seen(traced) -> None:
    found = traced("""
import numpy as np, keras
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.zeros((60, 4)), np.zeros((60, 1)), batch_size=10, epochs=2, verbose=0)
""")
    assert found.totals["steps"] == 12
    assert found.totals["wait_s"] is None
    assert "not known" in found.cell["verdict"]


def test_numpy_h5py_and_safetensors_files(traced, tmp_path: Path) -> None:
    found = traced("""
import h5py, numpy as np, safetensors.numpy
array = np.arange(1_000_000, dtype="f8")
np.save("data/a.npy", array)
np.load("data/a.npy")
np.savez("data/b.npz", array=array)
np.load("data/b.npz")["array"]
with h5py.File("data/c.h5", "w") as file:
    file["x"] = array
with h5py.File("data/c.h5") as file:
    file["x"][:]
safetensors.numpy.save_file({"w": array}, "model.safetensors")
safetensors.numpy.load_file("model.safetensors")
np.memmap("data/a.npy", mode="r")[:10].sum()
""")
    def read(name: str) -> int:
        return found.named(name)["bytes_read"]

    size = 8_000_000
    assert read("/a.npy") >= size, "also through a C stream on a copied descriptor"
    assert read("/b.npz") >= size
    assert size <= read("/c.h5") < size + 100_000
    assert found.saves() == [False, True]
    assert found.totals["bytes_mapped"] >= size


def test_workers_that_are_killed_lose_nothing(traced, tmp_path: Path) -> None:
    found = traced("""
import multiprocessing, os, signal, time
def work(barrier):
    for i in range(20):
        with open(f"data/{i:02}.bin", "rb") as file:
            assert len(file.read()) == 30_000
    barrier.wait()
    time.sleep(100)
if __name__ == "__main__":
    for how in ["fork", "spawn"]:
        context = multiprocessing.get_context(how)
        barrier = context.Barrier(5)
        workers = [context.Process(target=work, args=(barrier,)) for _ in range(4)]
        for worker in workers:
            worker.start()
        barrier.wait()
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
""")
    data = found.below(tmp_path / "data")
    assert (data["opens"], data["bytes_read"]) == (8 * 20, 8 * 20 * 30_000)


def test_savers_of_tensorflow_and_keras_have_their_bytes(traced, tmp_path: Path) -> None:
    found = traced("""
import os
os.makedirs("out")
import keras, numpy as np, tensorflow as tf
w = tf.Variable(tf.random.uniform([500_000]))
model = keras.Sequential([keras.layers.Input((400,)), keras.layers.Dense(500)])
tf.train.Checkpoint(w=w).write("out/checkpoint/model")
module = tf.Module()
module.w = w
tf.saved_model.save(module, "out/saved")
model.save("out/model.keras")
keras.saving.load_model("out/model.keras")
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    old = tf.compat.v1.get_variable("w", shape=[500_000])
    saver = tf.compat.v1.train.Saver()
    session.run(tf.compat.v1.global_variables_initializer())
    saver.save(session, "out/old/model.ckpt")
    saver.restore(session, "out/old/model.ckpt")
""")
    assert found.saves() == [False, False, False, True, False, True]
    saved = [save["bytes"] for save in found.cell["saves"]]
    for bytes_moved, of in zip([saved[0], saved[1], saved[4], saved[5]], ["checkpoint", "saved", "old", "old"], strict=True):
        assert bytes_moved >= 500_000 * 4, (of, saved)
    assert saved[2] >= 400 * 500 * 4
