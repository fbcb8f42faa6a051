"""Trains a linear classifier with JAX on arrays: npz shards of pixels and labels, resumable."""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import forebay


def make(folder: Path) -> None:
    """Writes shards of points around ten centres."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 1, (10, 64))
    for shard in range(4):
        labels = rng.integers(0, 10, 500)
        points = centres[labels] + rng.normal(0, 0.8, (500, 64))
        np.savez(folder / f"{shard}.npz", x=points.astype(np.float32), y=labels.astype(np.int32))


@jax.jit
def step(weights: jax.Array, x: jax.Array, y: jax.Array, rate: float) -> tuple[jax.Array, jax.Array]:
    def loss(weights: jax.Array) -> jax.Array:
        scores = jax.nn.log_softmax(x @ weights)
        return -jnp.take_along_axis(scores, y[:, None], 1).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - rate * gradient, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a folder of npz shards with arrays x and y")
    parser.add_argument("--make", action="store_true", help="write small shards there first")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    if given.make:
        make(given.data)

    loader = forebay.ArrayLoader(given.data, batch_size=given.batch_size, shuffle=True, output="jax")
    weights = jnp.zeros((loader.fields["x"][1][0], 10))
    for _ in range(given.epochs):
        for batch in loader:
            weights, loss = step(weights, batch["x"], batch["y"], 0.1)
        print(f"epoch {loader.epoch}: loss {loss:.4f}", flush=True)
    right = sum(int(((batch["x"] @ weights).argmax(1) == batch["y"]).sum()) for batch in loader)
    print(f"accuracy {right / loader.n_samples:.3f}")


if __name__ == "__main__":
    main()
