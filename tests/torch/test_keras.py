"""Training with Keras: as good as from DataLoader, and the same losses after a stop anywhere."""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Before keras: torchvision aborts where TensorFlow is loaded already.
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import keras  # isort: skip
import numpy as np  # isort: skip

import forebay  # isort: skip

SIDE, EPOCHS = 48, 15


def loader_of(photos: Path, **settings: Any) -> forebay.ImageLoader:
    settings = {"batch_size": 16, "image_size": SIDE, "layout": "NHWC", "normalize": "imagenet", **settings}
    return forebay.ImageLoader(photos, output="numpy", **settings)


def network() -> keras.Model:
    # Layers are counted for their names, as in a new process.
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((SIDE, SIDE, 3)), layers.Conv2D(16, 5, 2, "same", activation="relu"),
        layers.Conv2D(32, 5, 2, "same", activation="relu"), layers.AveragePooling2D(3), layers.Flatten(), layers.Dense(4),
    ])  # fmt: skip
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss, metrics=["accuracy"])
    return model


def endless(batches: Any) -> Any:
    while True:
        for images, labels in batches:
            yield np.asarray(images), np.asarray(labels)


def test_a_network_learns_as_from_dataloader(photos: Path) -> None:
    transform = v2.Compose([
        v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]), v2.Lambda(lambda image: image.permute(1, 2, 0)),
    ])  # fmt: skip
    reached = {}
    for name, batches in {
        "forebay": loader_of(photos, train=True),
        "DataLoader": DataLoader(ImageFolder(photos, transform), batch_size=16, shuffle=True, drop_last=True),
    }.items():
        model = network()
        model.fit(endless(batches), steps_per_epoch=len(batches), epochs=EPOCHS, verbose=0)
        reached[name] = model.evaluate(endless(loader_of(photos)), steps=12, verbose=0)[1]
    assert reached["forebay"] >= 0.8 and reached["forebay"] >= reached["DataLoader"] - 0.1, reached


def test_a_run_that_is_stopped_anywhere_goes_on_with_the_same_losses(photos: Path, tmp_path: Path) -> None:
    def start() -> tuple[forebay.ImageLoader, keras.Model, dict[str, Any]]:
        loader, model = loader_of(photos, train=True), network()
        model.optimizer.build(model.trainable_variables)
        variables = {variable.path: variable for variable in [*model.variables, *model.optimizer.variables]}
        assert len(variables) > 12
        return loader, model, variables

    def step(model: keras.Model, batch: Any) -> float:
        model.reset_metrics()
        return float(model.train_on_batch(*batch)[0])

    loader, model, variables = start()
    whole: list[float] = []
    with forebay.Checkpointer(tmp_path, keep=100) as saver:
        for _ in range(2):
            for batch in loader:
                whole.append(step(model, batch))
                saver.save(len(whole), model=variables, loader=loader)
    assert len(whole) == 24
    for stopped in (5, 12, 19):
        loader, model, variables = start()
        forebay.Checkpointer(tmp_path).restore(stopped, model=variables, loader=loader)
        losses: list[float] = []
        while len(losses) < len(whole) - stopped:
            losses += [step(model, batch) for batch in loader]
        assert losses == whole[stopped:], f"after step {stopped}"
