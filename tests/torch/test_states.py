"""torch's states: nested, shared, not contiguous, of every type; read by safetensors too."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import forebay
from forebay import states


def test_tensors_of_every_type_survive(tmp_path: Path) -> None:
    names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 complex64"
    state = {name: torch.arange(6).reshape(2, 3).to(getattr(torch, name)) for name in names.split()}
    state |= {"scalar": torch.tensor(3.0), "empty": torch.empty(0, 4), "turned": torch.arange(6.0).reshape(2, 3).T}
    state |= {"conj": torch.complex(torch.ones(2), torch.ones(2)).conj(), "neg": -torch.ones(3)}
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, state=state)
        found = saver.restore().state("state")
    assert list(found) == list(state)
    for name, value in state.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape, name
        as_bytes = [t.resolve_conj().contiguous().reshape(-1).view(torch.uint8) for t in (found[name], value)]
        assert torch.equal(*as_bytes), name
    read = load_file(tmp_path / "step-000000000001" / "model.safetensors")
    assert torch.equal(read["state.bfloat16"], state["bfloat16"]) and torch.equal(read["state.turned"], state["turned"])


def test_tensors_of_a_gpu_are_fetched_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With host memory in place of a GPU's: copies that are on their way hold nothing before the device is waited for."""
    waiting: list[tuple[torch.Tensor, torch.Tensor]] = []

    class Locked:
        def __init__(self, like: torch.Tensor) -> None:
            self.memory = torch.full_like(like, 7)

        def copy_(self, values: torch.Tensor, non_blocking: bool) -> torch.Tensor:
            assert non_blocking and values.is_contiguous()
            waiting.append((self.memory, values))
            return self.memory

    def synchronize(device: torch.device) -> None:
        for memory, values in waiting:
            memory.copy_(values)

    monkeypatch.setattr(states, "_is_on_gpu", lambda tensor: True)
    monkeypatch.setattr(states, "_locked_like", Locked)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    state = {"a": torch.randn(40, 3).T, "b": torch.arange(5), "half": torch.randn(9).bfloat16(), "empty": torch.empty(0, 2)}
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, state=state, again=state["b"])
        assert len(waiting) == 4, "a tensor that occurs twice is fetched once"
        found = saver.restore().state("state")
    assert all(torch.equal(found[name], value) for name, value in state.items())


def test_tied_weights_are_saved_once_and_stay_tied(tmp_path: Path) -> None:
    def tied() -> torch.nn.Module:
        model = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.Linear(300, 300))
        model[1].weight = model[0].weight
        return model

    model, other = tied(), tied()
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, model=model)
        saver.restore(model=other)
    assert other[1].weight is other[0].weight and torch.equal(other[0].weight, model[0].weight)
    size = (tmp_path / "step-000000000001" / "model.safetensors").stat().st_size
    assert 300 * 300 * 4 < size < 1.5 * 300 * 300 * 4


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_an_optimiser_goes_on_exactly(tmp_path: Path, make: type[torch.optim.Optimizer]) -> None:
    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        optimizer.zero_grad()
        (model(torch.ones(2, 8)) ** 2).sum().backward()
        optimizer.step()
        return model.weight.detach().clone()

    model = torch.nn.Linear(8, 8)
    optimizer = make(model.parameters(), lr=0.01)
    step(model, optimizer)
    with forebay.Checkpointer(tmp_path) as saver:
        saver.save(1, model=model, optimizer=optimizer)
        wanted = [step(model, optimizer) for _ in range(3)]
    other = torch.nn.Linear(8, 8)
    resumed = make(other.parameters(), lr=0.5)
    forebay.Checkpointer(tmp_path).restore(model=other, optimizer=resumed)
    assert resumed.param_groups[0]["lr"] == 0.01
    assert all(torch.equal(step(other, resumed), weight) for weight in wanted)


def test_another_model_is_refused_by_name(tmp_path: Path) -> None:
    with forebay.Checkpointer(tmp_path, mode="direct") as saver:
        saver.save(1, model=torch.nn.Linear(8, 4))
        for other, said in (
            (torch.nn.Linear(8, 5), r"model\.weight has shape \[4, 8\] there and \[5, 8\] here"),
            (torch.nn.Linear(8, 4, bias=False), r"its tensor model\.bias is not here"),
        ):
            before = other.weight.detach().clone()
            with pytest.raises(ValueError, match=said):
                saver.restore(model=other)
            assert torch.equal(other.weight, before)
