"""States on a GPU: saved, restored in place, and as they were at the time of the save."""

from pathlib import Path

import pytest
import torch

import forebay

DEVICE = torch.device("cuda:0")


@pytest.mark.parametrize("mode", ["async", "direct"])
def test_a_state_on_a_gpu_survives_as_it_was(tmp_path: Path, mode: str) -> None:
    weights = torch.randn(3_000, 1_000, device=DEVICE)
    state = {
        "weights": weights, "turned": weights.T, "part": weights[::2, 1:], "half": weights.bfloat16(), "host": torch.ones(3),
        "fp8": weights[0].to(torch.float8_e4m3fn), "conj": torch.complex(weights[0], weights[1]).conj(),
        "empty": torch.empty(0, 2, device=DEVICE), "scalar": torch.tensor(2.5, device=DEVICE),
    }  # fmt: skip
    wanted = {name: value.clone() for name, value in state.items()}
    with forebay.Checkpointer(tmp_path, mode=mode) as saver:
        saver.save(1, state=state)
        weights.zero_()
        assert saver.wait()
        found = saver.restore().state("state")
        for name, value in wanted.items():
            as_bytes = [part.cpu().resolve_conj().contiguous().reshape(-1).view(torch.uint8) for part in (found[name], value)]
            assert torch.equal(*as_bytes) and found[name].device.type == "cpu", name
        into = {"weights": torch.zeros_like(weights), "turned": torch.zeros_like(weights.T)}
        into |= {name: torch.zeros_like(value) for name, value in wanted.items() if name not in into}
        address = into["weights"].data_ptr()
        saver.restore(state=into)
    assert into["weights"].data_ptr() == address and into["weights"].device == DEVICE
    assert torch.equal(into["weights"], wanted["weights"]) and torch.equal(into["turned"], wanted["turned"])


def test_an_optimiser_on_a_gpu_goes_on_exactly(tmp_path: Path) -> None:
    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        optimizer.zero_grad()
        model(torch.ones(2, 64, device=DEVICE)).square().sum().backward()
        optimizer.step()
        return model.weight.detach().clone()

    model = torch.nn.Linear(64, 64).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step(model, optimizer)
    with forebay.Checkpointer(tmp_path) as saver:
        saver.save(1, model=model, optimizer=optimizer)
        wanted = [step(model, optimizer) for _ in range(3)]
    other = torch.nn.Linear(64, 64).to(DEVICE)
    resumed = torch.optim.AdamW(other.parameters(), lr=0.5)
    forebay.Checkpointer(tmp_path).restore(model=other, optimizer=resumed)
    assert all(torch.equal(step(other, resumed), weight) for weight in wanted)
