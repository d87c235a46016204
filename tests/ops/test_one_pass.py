"""The sampled objective in one pass over its draw, against its sums one by one in float64."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import softplus

from vgae.ops import Counted, Factors, Ones, one_pass, reference
from vgae.ops import ones as ones_module
from vgae.ops.one_pass import Draw, sum_by_draw
from vgae.ops.powers import Described, PowerSums
from vgae.ops.zeros import zeros_among

pytest.importorskip("numba")

SCALES = [1e-3, 0.3, 1.0, 5.0]  # of the factors: logits from 10⁻⁵ to some hundreds
WAYS = {"plain": {}, "no diagonal": {"diagonal_weight": 0.0}, "soft": {"as_zeros": True}}


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """For graphs of any size."""
    monkeypatch.setattr(ones_module, "SHORTEST_FOR_NUMBA", 1)


def ones_of(num_nodes: int, seed: int, *, labelled: bool) -> Ones:
    """A symmetric pattern with its diagonal; some rows have next to nothing else, one is full but for one zero."""
    rng = np.random.default_rng(seed)
    dense = rng.random((num_nodes, num_nodes)) < 0.1
    dense[0, : num_nodes - 1] = True
    dense = dense | dense.T | np.eye(num_nodes, dtype=bool)
    values = np.where(dense, rng.uniform(0.1, 1, dense.shape), 0)
    values = np.triu(values) + np.triu(values, 1).T
    matrix = sp.csr_array(values.astype(np.float32))
    matrix.sort_indices()
    return Ones.of(matrix, "cpu", symmetric=True, labelled=labelled)


def one_by_one(
    q: Tensor, ones: Ones, counted: Counted, parabola: tuple[float, float], uniform: Tensor
) -> tuple[Tensor, Tensor]:
    """R and the moments of the draw, by the definition."""
    a, b = parabola
    logits = q @ q.T
    line = q.new_tensor(parabola)
    entries = ones.rows, ones.columns
    total = reference.sum_at_entries(Factors(q), entries, ones.labels, counted.numbers, counted.as_zeros, line)
    total = total + (a * logits + b * logits**2).sum()
    num_pairs, places = len(uniform), torch.arange(len(uniform))
    chosen = ((uniform + places) * (ones.num_zeros / num_pairs)).long().clamp(max=ones.num_zeros - 1)
    i, j = zeros_among(ones, chosen).long().unbind(dim=1)
    s = logits[i, j]
    total = total + ones.num_zeros / num_pairs * (softplus(s) - a * s - b * s**2).sum()
    s, squares = s.detach(), q.detach().square().sum(dim=1)
    w, p = squares[i] + squares[j], s.sigmoid()
    basis = torch.stack([w, w * s, w * s**2, w * p, w * p * s, w * p**2])
    return total, torch.stack([basis[:, half::2].sum(dim=1) for half in range(2)])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("num_nodes", "width", "num_pairs"),
    [(3, 1, 1), (7, 5, 2), (40, 16, 255), (70, 17, 256), (33, 33, 1001), (70, 17, 2048), (600, 16, 5001)],
)
def test_value_gradient_and_moments(num_nodes: int, width: int, num_pairs: int, scale: float, way: str) -> None:
    ones, counted = ones_of(num_nodes, num_pairs, labelled=way == "soft"), Counted(12.5, **WAYS[way])  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(num_nodes)
    q = (scale * torch.randn(num_nodes, width, generator=generator)).requires_grad_()
    uniform = torch.rand(num_pairs, dtype=torch.float64, generator=generator)
    parabola = 0.4, 0.01 / scale**2
    exact = q.detach().double().requires_grad_()
    expected, moments = one_by_one(exact, ones, counted, parabola, uniform)
    (gradient,) = torch.autograd.grad(3 * expected, exact)
    described = Described.of(q)
    side = described.side(q)
    draw = Draw(uniform, ones.num_zeros)
    for value in (True, False):
        found, found_moments = sum_by_draw(side, described.squares, ones, counted, parabola, draw, value=value)
        if value:
            torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=1e-5 * num_nodes**2)
        else:
            assert found.isnan()
        (ours,) = torch.autograd.grad(3 * found, q, retain_graph=True)
        torch.testing.assert_close(ours.double(), gradient, rtol=1e-4, atol=2e-5 * float(gradient.abs().max()))
        torch.testing.assert_close(found_moments, moments, rtol=2e-5, atol=2e-5 * float(moments.abs().max()))


@pytest.mark.parametrize(("num_nodes", "width"), [(1, 1), (5, 3), (300, 16), (1000, 20), (40_000, 16)])
def test_what_rows_have_is_described_in_one_pass(num_nodes: int, width: int) -> None:
    q = torch.randn(num_nodes, width, generator=torch.Generator().manual_seed(width))
    described = Described.of(q)
    side = described.side(q)
    exact = q.double()
    squares = exact.square().sum(dim=1)
    sums = PowerSums.of(Factors(exact))
    close: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5 * num_nodes}
    torch.testing.assert_close(side.total.double(), sums.left.total, **close)
    torch.testing.assert_close(side.gram.double(), sums.left.gram, **close)
    torch.testing.assert_close(described.squares.double(), squares, rtol=1e-5, atol=0)
    everywhere = sums.weighted(sums.left.weighted(squares), None)
    largest = torch.stack([everywhere[0], (everywhere[0] * everywhere[2]).sqrt(), everywhere[2]])  # Σ w·|s|ⁿ, at most
    assert ((torch.from_numpy(described.over_all()) - everywhere).abs() <= 1e-5 * largest).all()
    of_nodes = torch.stack([(2 * squares * squares**power).sum() for power in range(3)])
    torch.testing.assert_close(torch.from_numpy(described.of_nodes()), of_nodes, rtol=1e-5, atol=0)


def test_it_is_for_plain_products_that_a_cache_holds() -> None:
    q = torch.randn(50, 16)
    assert one_pass.suits(Factors(q))
    bias = torch.zeros(50)
    for other in (Factors(q, q.clone()), Factors(q, None, bias, bias), Factors(q, None, bias), Factors(q.double())):
        assert not one_pass.suits(other)
    assert not one_pass.suits(Factors(torch.empty(one_pass.LARGEST // 16 + 1, 16)))
