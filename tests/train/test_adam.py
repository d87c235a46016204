"""Adam against PyTorch's own, bit for bit."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from vgae.train.adam import Adam

STEPS = 30
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "a number": [()],
    "a vector": [(7,)],
    "two layers": [(33, 16), (16, 4), (16, 4)],
    "odd": [(1, 1), (257, 3), (0, 5)],
}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def parameters(kind: str, device: str = "cpu") -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randn(shape, generator=generator).to(device) for shape in SHAPES[kind]]
    return {f"weight {place}": tensor.requires_grad_() for place, tensor in enumerate(drawn)}


def give_gradients(of: dict[str, Tensor], step: int) -> None:
    """Of very different sizes, some of them 0; the first parameter has none at all in the third step."""
    generator = torch.Generator().manual_seed(100 + step)
    for place, tensor in enumerate(of.values()):
        drawn = torch.randn(tensor.shape, generator=generator) * 10.0 ** (3 * torch.sin(torch.tensor(float(step))))
        drawn[torch.rand(tensor.shape, generator=generator) < 0.1] = 0
        tensor.grad = torch.zeros_like(tensor) if (place, step) == (0, 2) else drawn.to(tensor.device)


def take_steps(optimizer: Adam | torch.optim.Adam, of: dict[str, Tensor], steps: range) -> None:
    for step in steps:
        give_gradients(of, step)
        if isinstance(optimizer, Adam) and step == 2:
            next(iter(of.values())).grad = None  # which counts as 0
        optimizer.step()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("learning_rate", [0.01, 1e-4, 0.3])
@pytest.mark.parametrize("kind", SHAPES)
def test_steps_are_those_of_pytorchs_fused_adam(kind: str, learning_rate: float, device: str) -> None:
    ours, theirs = parameters(kind, device), parameters(kind, device)
    optimizer = Adam(ours.items(), learning_rate)
    reference = torch.optim.Adam(list(theirs.values()), lr=learning_rate, fused=True)
    for step in range(STEPS):
        take_steps(optimizer, ours, range(step, step + 1))
        take_steps(reference, theirs, range(step, step + 1))
        for name, tensor in ours.items():
            assert torch.equal(tensor, theirs[name]), f"{name} after step {step + 1}"
    kept = {
        f"{name}.{part}": value for name, tensor in theirs.items() for part, value in reference.state[tensor].items()
    }
    found = optimizer.state()
    assert found.keys() == kept.keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, kept[name]), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", [1, 13])
def test_state_that_is_copied_into_a_fresh_one_continues_to_the_same_bits(at: int, device: str) -> None:
    whole = parameters("two layers", device)
    optimizer = Adam(whole.items(), 0.01)
    take_steps(optimizer, whole, range(at))
    copied = {name: tensor.detach().clone().requires_grad_() for name, tensor in whole.items()}
    saved = {name: tensor.clone() for name, tensor in optimizer.state().items()}
    take_steps(optimizer, whole, range(at, STEPS))
    fresh = Adam(copied.items(), 0.01)
    for name, tensor in fresh.state().items():
        tensor.copy_(saved[name])
    take_steps(fresh, copied, range(at, STEPS))
    for name, tensor in copied.items():
        assert torch.equal(tensor, whole[name]), name


def test_gradients_are_forgotten_when_told() -> None:
    given = parameters("two layers")
    give_gradients(given, 0)
    Adam(given.items(), 0.01).zero_grad()
    assert [tensor.grad for tensor in given.values()] == [None] * 3


def test_training_loads_only_what_it_needs() -> None:
    """PyTorch's compiler takes a second to load, which PyTorch's own optimizers do."""
    code = """
import sys, vgae
graph = vgae.stochastic_block_model(30, 2, feature_dim=5, seed=1)
vgae.VGAE(iterations=2, device="cpu").fit(graph)
print([name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules], "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True"
