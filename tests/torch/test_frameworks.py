"""The same batches as JAX arrays and TensorFlow tensors."""

from pathlib import Path

import numpy as np
import pytest

import forebay


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_jax_and_tensorflow_see_the_same_values(photos: Path, dtype: str) -> None:
    def make(output: str) -> forebay.ImageLoader:
        return forebay.ImageLoader(photos, batch_size=16, image_size=32, train=True, dtype=dtype, output=output, threads=2)

    wanted = [(images.float().numpy(), labels.numpy()) for images, labels in make("torch")]
    for output in ("jax", "tf"):
        found = [(np.asarray(images).astype(np.float32), np.asarray(labels)) for images, labels in make(output)]
        assert len(found) == len(wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True)), output


def test_jax_states_survive(tmp_path: Path) -> None:
    import jax.numpy as jnp

    state = {"w": jnp.arange(6, dtype=jnp.bfloat16).reshape(2, 3), "n": jnp.int32(3)}
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, state=state)
        found = saver.restore().state("state")
    assert found["w"].dtype == state["w"].dtype and np.array_equal(found["w"], np.asarray(state["w"])) and found["n"] == 3
