"""The all-pairs op against the dense float64 reference: values, gradients, every shape and option."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.ops import all_pairs_softplus, blocked

SIDE = blocked.TILE_SIDE["cpu"]


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of seven, so that small inputs have many and most borders are ragged."""
    monkeypatch.setitem(blocked.TILE_SIDE, "cpu", 7)


def inputs(num_rows: int, num_columns: int | None, dim: int = 5, *, biases: str = "", seed: int = 0) -> dict[str, Any]:
    """Random factors; `biases` is any of "", "r", "c", "rc" and "same"."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    given = {"q": draw(num_rows, dim)}
    if num_columns is not None:
        given["k"] = draw(num_columns, dim)
    if biases == "same":
        given["row_bias"] = given["column_bias"] = draw(num_rows)
        return given
    if "r" in biases:
        given["row_bias"] = draw(num_rows)
    if "c" in biases:
        given["column_bias"] = draw(num_rows if num_columns is None else num_columns)
    return given


def value_and_gradients(
    given: dict[str, Any], implementation: str, rows: range | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The op's result times a factor that is not one, and its gradient in each distinct input."""
    result = 1.7 * all_pairs_softplus(**given, rows=rows, implementation=implementation)
    names = list(given)
    gradients = torch.autograd.grad(result, [given[name] for name in names])
    return result.detach(), dict(zip(names, gradients, strict=True))


def assert_matches_reference(given: dict[str, Any], rows: range | None = None) -> None:
    value, gradients = value_and_gradients(given, "blocked", rows)
    expected, expected_gradients = value_and_gradients(given, "reference", rows)
    torch.testing.assert_close(value, expected, rtol=1e-11, atol=1e-11)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-10, atol=1e-10)


def test_reference_is_the_sum_written_out() -> None:
    q = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    k = torch.tensor([[2.0, 1.0], [0.0, -1.0], [4.0, 0.25]])
    r, c = torch.tensor([0.1, -0.2]), torch.tensor([0.3, 0.0, -1.0])
    logits = [float(q[i] @ k[j] + r[i] + c[j]) for i in range(2) for j in range(3)]
    expected = sum(torch.log1p(torch.exp(torch.tensor(logit, dtype=torch.float64))).item() for logit in logits)
    assert all_pairs_softplus(q, k, r, c, implementation="reference").item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("num_nodes", range(1, 32))
@pytest.mark.parametrize("biases", ["", "same", "rc"])
@pytest.mark.usefixtures("small_tiles")
def test_square_case_matches_the_reference_at_every_size(num_nodes: int, biases: str) -> None:
    assert_matches_reference(inputs(num_nodes, None, biases=biases))


@pytest.mark.parametrize(("num_rows", "num_columns"), [(1, 1), (1, 20), (20, 1), (7, 14), (13, 29), (29, 13)])
@pytest.mark.parametrize("biases", ["", "r", "c", "rc"])
@pytest.mark.usefixtures("small_tiles")
def test_rectangular_case_matches_the_reference(num_rows: int, num_columns: int, biases: str) -> None:
    assert_matches_reference(inputs(num_rows, num_columns, biases=biases))


@pytest.mark.parametrize("num_nodes", [127, SIDE - 1, SIDE, SIDE + 1, 1000, 2 * SIDE + 1])
def test_real_tile_borders_match_the_reference(num_nodes: int) -> None:
    assert_matches_reference(inputs(num_nodes, None, dim=3, biases="same"))


@pytest.mark.parametrize("dim", [1, 2, 16, 33])
def test_any_number_of_factors_matches_the_reference(dim: int) -> None:
    assert_matches_reference(inputs(50, None, dim=dim))


@pytest.mark.parametrize("rows", [range(1), range(3, 17), range(19, 20), range(20)])
@pytest.mark.parametrize("biases", ["", "same", "rc"])
@pytest.mark.usefixtures("small_tiles")
def test_row_ranges_match_the_reference(rows: range, biases: str) -> None:
    assert_matches_reference(inputs(20, None, biases=biases), rows)


def test_row_ranges_add_up_to_the_whole() -> None:
    given = inputs(40, None, biases="same")
    parts = [value_and_gradients(given, "blocked", rows) for rows in (range(13), range(13, 40))]
    whole, gradients = value_and_gradients(given, "blocked")
    torch.testing.assert_close(parts[0][0] + parts[1][0], whole)
    for name, gradient in gradients.items():
        torch.testing.assert_close(parts[0][1][name] + parts[1][1][name], gradient)


@pytest.mark.usefixtures("small_tiles")
def test_gradcheck_in_all_four_inputs() -> None:
    given = inputs(9, 11, dim=3, biases="rc")
    assert torch.autograd.gradcheck(all_pairs_softplus, tuple(given.values()))
    assert torch.autograd.gradcheck(all_pairs_softplus, (inputs(9, None, dim=3)["q"],))


@pytest.mark.parametrize("biases", ["", "same", "rc"])
def test_without_value_the_gradients_are_the_same_bits_and_the_value_is_not_a_number(biases: str) -> None:
    given = inputs(800, None, biases=biases)
    full = all_pairs_softplus(**given)
    bare = all_pairs_softplus(**given, value=False)
    assert torch.isnan(bare)
    for expected, found in zip(
        torch.autograd.grad(full, list(given.values())), torch.autograd.grad(bare, list(given.values())), strict=True
    ):
        assert torch.equal(expected, found)


@pytest.mark.parametrize("num_nodes", [300, 1500])
def test_float32_error_is_at_most_twice_that_of_dense_torch(num_nodes: int) -> None:
    truth = inputs(num_nodes, None, dim=16, seed=3)
    expected, expected_gradients = value_and_gradients(truth, "reference")
    single = {name: tensor.detach().float().requires_grad_() for name, tensor in truth.items()}
    found, gradients = value_and_gradients(single, "blocked")
    dense = 1.7 * torch.nn.functional.softplus(single["q"] @ single["q"].T).sum()
    (dense_gradient,) = torch.autograd.grad(dense, single["q"])

    def error(value: Tensor, target: Tensor) -> float:
        return float((value.detach().double() - target).norm() / target.norm())

    assert error(found, expected) <= max(2 * error(dense, expected), 1e-7)
    assert error(gradients["q"], expected_gradients["q"]) <= 2 * error(dense_gradient, expected_gradients["q"])


@pytest.mark.parametrize("logit", [-100.0, 100.0])
def test_extreme_logits_stay_finite_and_right(logit: float) -> None:
    q = torch.full((30, 1), abs(logit) ** 0.5, requires_grad=True)
    k = torch.full((30, 1), logit / abs(logit) ** 0.5)
    result = all_pairs_softplus(q, k)
    (gradient,) = torch.autograd.grad(result, q)
    expected = 900 * max(logit, 0.0)
    assert result.item() == pytest.approx(expected, rel=1e-6, abs=1e-30)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 30 * k[0].item() * (logit > 0)))


def peaks(implementation: str, *sizes: int) -> list[int]:
    """Bytes that the op takes at most for so many nodes, forward and backward."""
    command = [sys.executable, str(Path(__file__).with_name("sweeping.py")), implementation, *map(str, sizes)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("implementation", ["blocked", "numba", "auto"])
def test_memory_grows_with_n_not_with_its_square(implementation: str) -> None:
    """A matrix of all pairs would take 0.14 GB of the smaller and 1 GB of the larger graph."""
    pytest.importorskip("numba" if implementation == "numba" else "torch")
    small, large = peaks(implementation, 6_000, 16_000)
    assert large - small < 16_000 * 500  # bytes for each node


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_the_dense_reference_is_seen_to_grow_with_the_square() -> None:
    """What the test above is made of would notice it."""
    (taken,) = peaks("reference", 4_000)
    assert taken > 8 * 4_000**2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"q": torch.zeros(3)}, "q and k"),
        ({"q": torch.zeros(3, 2), "k": torch.zeros(3, 4)}, "q and k"),
        ({"q": torch.zeros(3, 2), "row_bias": torch.zeros(4)}, "row_bias"),
        ({"q": torch.zeros(3, 2), "k": torch.zeros(5, 2), "column_bias": torch.zeros(3)}, "column_bias"),
        ({"q": torch.zeros(3, 2), "rows": range(2, 9)}, "rows"),
        ({"q": torch.zeros(3, 2), "rows": range(0, 3, 2)}, "rows"),
        ({"q": torch.zeros(3, 2), "k": torch.zeros(3, 2, dtype=torch.float64)}, "float32"),
        ({"q": torch.zeros(3, 2), "implementation": "magic"}, "implementation"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        all_pairs_softplus(**arguments)


def test_the_op_is_registered_soundly() -> None:
    op = torch.ops.vgae.all_pairs_softplus.default
    for given in (inputs(12, None, biases="same"), inputs(9, 11, biases="rc"), inputs(5, 4)):
        symmetric = "k" not in given
        arguments = [given.get("q"), given.get("k"), given.get("row_bias")]
        arguments.append(None if symmetric else given.get("column_bias"))
        torch.library.opcheck(op, (*arguments, True, True, "blocked", "highest"))


def test_compiled_code_passes_through_the_op_with_the_same_bits() -> None:
    q = inputs(30, None)["q"]

    def loss(z: Tensor) -> Tensor:
        return all_pairs_softplus(torch.tanh(z), value=True) / 900

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    expected, found = loss(q), compiled(q)
    assert torch.equal(expected, found)
    assert torch.equal(torch.autograd.grad(expected, q)[0], torch.autograd.grad(found, q)[0])


def test_a_second_derivative_is_refused_not_wrong() -> None:
    q = inputs(6, None)["q"]
    (gradient,) = torch.autograd.grad(all_pairs_softplus(q), q, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradient.sum().backward()
