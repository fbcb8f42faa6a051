"""Trains a small network with Keras from a loader: `fit` takes batches from a generator that never ends."""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras

import forebay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", help="images that are trained on")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=10)
    given = parser.parse_args()

    loader = forebay.ImageLoader(
        given.train, batch_size=given.batch_size, image_size=given.image_size, train=True, layout="NHWC", normalize="unit"
    )

    def batches():
        while True:
            yield from loader.numpy()

    model = keras.Sequential([
        keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        keras.layers.Conv2D(32, 5, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(loader.classes)),
    ])  # fmt: skip
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    history = model.fit(batches(), steps_per_epoch=len(loader), epochs=given.epochs, verbose=2)
    print(f"accuracy {history.history['accuracy'][-1]:.3f}")


if __name__ == "__main__":
    main()
