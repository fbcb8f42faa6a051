"""The recipes of the guide: Lightning, Hugging Face Trainer, Accelerate."""

from pathlib import Path
from typing import Any

import accelerate
import lightning
import numpy as np
import torch
import transformers

import forebay


class Data(lightning.LightningDataModule):
    def __init__(self, photos: Path) -> None:
        super().__init__()
        self.photos = photos

    def train_dataloader(self) -> forebay.ImageLoader:
        return forebay.ImageLoader(
            self.photos, batch_size=16, image_size=32, train=True, normalize="imagenet",
            rank=self.trainer.global_rank, world_size=self.trainer.world_size,
        )  # fmt: skip


class Network(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 4))
        self.losses: list[float] = []
        self.epochs: list[int] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.layers(images), labels)
        self.losses.append(loss.item())
        self.epochs.append(self.current_epoch)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.001)


def test_lightning_trains_from_a_loader(photos: Path, tmp_path: Path) -> None:
    lightning.seed_everything(1)
    network = Network()
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        use_distributed_sampler=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(network, datamodule=Data(photos))
    assert network.epochs == [0] * 12 + [1] * 12 + [2] * 12
    assert len(set(network.losses)) == 36


class MyTrainer(transformers.Trainer):
    tokens: Path

    def get_train_dataloader(self) -> forebay.TokenLoader:
        return forebay.TokenLoader(
            self.tokens, length=16, batch_size=self.args.per_device_train_batch_size, shuffle=True,
            rank=self.args.process_index, world_size=self.args.world_size,
            map=lambda batch: {"input_ids": batch[0], "labels": batch[0]},
        )  # fmt: skip


def test_hugging_face_trainer_learns_from_a_token_loader(tmp_path: Path) -> None:
    # Each token is the one before plus one: half a minute is more than enough to learn it.
    (np.arange(20_000) % 23).astype(np.uint16).tofile(tmp_path / "tokens.bin")
    config = transformers.GPT2Config(vocab_size=23, n_positions=16, n_embd=32, n_layer=1, n_head=2)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=32, num_train_epochs=3, learning_rate=1e-2,
        report_to=[], save_strategy="no", logging_strategy="no", use_cpu=True, disable_tqdm=True, seed=1,
    )  # fmt: skip
    trainer = MyTrainer(transformers.GPT2LMHeadModel(config), arguments)
    trainer.tokens = tmp_path / "tokens.bin"
    done = trainer.train()
    batches_per_epoch = 20_000 // 16 // 32
    assert done.global_step in (3 * batches_per_epoch, 3 * (batches_per_epoch - 1), 3 * (batches_per_epoch + 1))
    inputs = torch.arange(16)[None]
    assert (trainer.model(inputs).logits.argmax(-1)[0, 2:] == torch.arange(3, 17)).all()


def test_accelerate_trains_from_a_loader_that_is_not_prepared(photos: Path) -> None:
    accelerator = accelerate.Accelerator(cpu=True)
    loader = forebay.ImageLoader(
        photos, batch_size=16, image_size=32, train=True, normalize="imagenet", device=accelerator.device,
        rank=accelerator.process_index, world_size=accelerator.num_processes,
    )  # fmt: skip
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 4))
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.001))
    steps = 0
    for images, labels in loader:
        assert images.device == labels.device == accelerator.device
        accelerator.backward(torch.nn.functional.cross_entropy(model(images), labels))
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    assert steps == len(loader) == 12
