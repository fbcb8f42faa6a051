"""Trains a small language model with PyTorch on token files, with checkpoints and resume.

`python train_tokens.py tokens/`, where `tokens` holds `.bin` files of uint16 tokens, as nanoGPT's `prepare.py` writes them. Without
such files, `--make` writes some first. Killed and started again with the same arguments, it goes on with the next sequence.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn

import forebay

VOCABULARY = 256


class Model(nn.Module):
    """Predicts the next token from those before it."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        places = torch.arange(length, device=tokens.device)
        return self.head(self.layers(self.tokens(tokens) + self.places(places), mask=mask, is_causal=True))


def make(folder: Path) -> None:
    """Writes text that is easy to learn: a few sentences, over and over."""
    folder.mkdir(parents=True, exist_ok=True)
    sentences = [b"the disk is slow. ", b"the network waits for data. ", b"one step follows the other. "]
    picks = np.random.default_rng(0).integers(0, len(sentences), 4000)
    text = b"".join(sentences[pick] for pick in picks)
    np.frombuffer(text, np.uint8).astype(np.uint16).tofile(folder / "sentences.bin")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", type=Path, help="a token file, or a folder of them")
    parser.add_argument("--make", action="store_true", help="write small token files there first")
    parser.add_argument("--length", type=int, default=128, help="tokens per sequence")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--checkpoints", default="token-checkpoints")
    parser.add_argument("--save-every", type=int, default=200, metavar="STEPS")
    parser.add_argument("--stop-after", type=int, metavar="STEPS", help="end as if killed, to try the resume")
    given = parser.parse_args()
    if given.make:
        make(given.tokens)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = forebay.TokenLoader(
        given.tokens, length=given.length, batch_size=given.batch_size, shuffle=True, device=device, output="torch"
    )
    torch.manual_seed(0)
    model = Model(given.length, given.width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    saver = forebay.Checkpointer(given.checkpoints)
    step = 0
    if os.path.isdir(given.checkpoints) and saver.steps():
        step = saver.restore(model=model, optimizer=optimizer, loader=loader).step
        print(f"goes on after step {step}", flush=True)
    while step < given.steps:
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if step % given.save_every == 0:
                saver.save(step, model=model, optimizer=optimizer, loader=loader)
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
            if step in (given.steps, given.stop_after):
                saver.close()
                print(f"stopped after step {step}, loss {loss.item():.4f}", flush=True)
                return


if __name__ == "__main__":
    main()
