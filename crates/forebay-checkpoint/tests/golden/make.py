#!/usr/bin/env python3
"""Makes the checkpoints in this folder with TensorFlow 2.21 and safetensors 0.8, and expected.tsv with what they hold.

    python3 make.py            # rewrites everything in this folder
"""

import pathlib

import ml_dtypes
import numpy as np
import safetensors.numpy
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
DTYPES = [
    *["bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "uint32", "int32", "float32"],
    *["uint64", "int64", "float64", "complex64", "float8_e5m2", "float8_e4m3fn"],
]


def array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Bytes 1, 4, 7, 10, …; of truth values the lowest bit."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = (1 + 3 * np.arange(np.prod(shape, dtype=int) * kind.itemsize)).astype(np.uint8)
    return np.frombuffer((bits & 1 if dtype == "bool" else bits).tobytes(), kind).reshape(shape)


def save(stem: str, arrays: dict[str, np.ndarray], slices: list[str] | None = None, names: list[str] | None = None) -> None:
    tf.raw_ops.SaveV2(
        prefix=str(HERE / stem),
        tensor_names=names or list(arrays),
        shape_and_slices=slices or [""] * len(arrays),
        tensors=[tf.constant(value) for value in arrays.values()],
    )


KERAS = {
    "model/bias/.ATTRIBUTES/VARIABLE_VALUE": np.array([1.5, -2.25], ml_dtypes.bfloat16),
    "model/count/.ATTRIBUTES/VARIABLE_VALUE": np.array(-7, np.int64),
    "model/kernel/.ATTRIBUTES/VARIABLE_VALUE": np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
    "model/mask/.ATTRIBUTES/VARIABLE_VALUE": np.array([True, False]),
    "optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE": np.array(3, np.int64),
    "optimizer/_learning_rate/.ATTRIBUTES/VARIABLE_VALUE": np.array(0.5, np.float32),
    "optimizer/_variables/2/.ATTRIBUTES/VARIABLE_VALUE": np.full((2, 3), 0.125, np.float32),
    "optimizer/_variables/3/.ATTRIBUTES/VARIABLE_VALUE": np.full((2, 3), 0.25, np.float32),
    "save_counter/.ATTRIBUTES/VARIABLE_VALUE": np.array(1, np.int64),
}


def keras() -> None:
    """A model and Adam with its slots, as a training script of TensorFlow 2 saves them."""
    value = {name.split("/.ATTRIBUTES")[0]: array for name, array in KERAS.items()}
    model = tf.Module()
    for name in ["bias", "count", "kernel", "mask"]:
        setattr(model, name, tf.Variable(value[f"model/{name}"]))
    adam = tf.keras.optimizers.Adam(0.5)
    adam.build([model.kernel])
    adam.iterations.assign(3)
    for at in [2, 3]:
        adam.variables[at].assign(value[f"optimizer/_variables/{at}"])
    path = pathlib.Path(tf.train.Checkpoint(model=model, optimizer=adam).save(str(HERE / "ckpt")))
    for file in HERE.glob(f"{path.name}.*"):
        file.rename(HERE / file.name.replace(path.name, "keras"))
    (HERE / "checkpoint").unlink()


def main() -> None:
    for old in HERE.iterdir():
        if old.suffix != ".py":
            old.unlink()
    expected = []

    def expect(stem: str, arrays: dict[str, np.ndarray]) -> None:
        for name, value in arrays.items():
            shape = ",".join(map(str, value.shape))
            expected.append(f"{stem}\t{name}\t{value.dtype}\t{shape}\t{value.tobytes().hex()}\n")

    every = {f"layer/{dtype}": array(dtype, (2, 3)) for dtype in DTYPES}
    every |= {"größe": array("float32", ()), "none": array("int64", (3, 0))}
    every = dict(sorted(every.items(), key=lambda item: item[0].encode()))
    safetensors.numpy.save_file(every, HERE / "every.safetensors", metadata={"step": "20", "größe": "ä\n"})
    expect("every.safetensors", every)
    save("every", every)
    expect("every.index", every)

    save("strings", {"text": np.array([["a", ""], ["größe", "x" * 130]], object), "w": array("float32", (2,))})
    expect("strings.index", {"w": array("float32", (2,))})

    parts = [{"a": array("int32", (2,)), "d": array("uint8", (3,))}, {"b": array("float64", ())}]
    for n, part in enumerate(parts):
        save(f"part{n}", part)
        expect("shards.index", part)
    prefixes = [str(HERE / f"part{n}") for n in range(2)]
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=str(HERE / "shards"))

    model = tf.train.Checkpoint(w=tf.Variable([1.5, 2.5]), step=tf.Variable(7, dtype=tf.int64))
    model.write(str(HERE / "objects"))
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    expect("objects.index", {f"step{suffix}": np.array(7), f"w{suffix}": np.array([1.5, 2.5], np.float32)})

    keras()
    expect("keras.index", KERAS)

    save("sliced", {"low": array("uint8", (4,)), "high": array("uint8", (4,))}, ["8 0,4", "8 4,4"], ["w", "w"])
    (HERE / "expected.tsv").write_text("".join(expected))


if __name__ == "__main__":
    main()
