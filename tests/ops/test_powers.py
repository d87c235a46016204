"""The closed forms of sums over all pairs against the dense matrix in float64."""

import pytest
import torch
from torch import Tensor

from vgae.ops import Factors
from vgae.ops.powers import PowerSums

KINDS = {  # k, row bias, column bias; r for both is one tensor
    "k = q": "",
    "k = q, one bias": "rr",
    "k = q, a row bias": "r",
    "q and k": "k",
    "q and k, a column bias": "kc",
    "q and k, biases": "krc",
}


def factors_of(kind: str, q: Tensor, k: Tensor, r: Tensor, c: Tensor) -> Factors:
    has = KINDS[kind]
    column_bias = r if has == "rr" else c if "c" in has else None
    return Factors(q, k if "k" in has else None, r if "r" in has else None, column_bias)


def given(num_nodes: int = 23, width: int = 5) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(num_nodes)
    shapes = ((num_nodes, width), (num_nodes, width), (num_nodes,), (num_nodes,))
    q, k, r, c = (torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes)
    return q, k, r, c


def dense(factors: Factors) -> Tensor:
    logits = factors.q @ factors.columns.T
    for bias, shape in ((factors.row_bias, (-1, 1)), (factors.column_bias, (1, -1))):
        logits = logits if bias is None else logits + bias.view(shape)
    return logits


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_nodes", [1, 2, 23])
def test_sums_and_their_gradients_are_those_of_the_dense_matrix(kind: str, num_nodes: int) -> None:
    inputs = given(num_nodes)
    factors = factors_of(kind, *inputs)
    sums, logits = PowerSums.of(factors), dense(factors)
    for ours, theirs in ((sums.total, logits.sum()), (sums.squares, logits.square().sum())):
        torch.testing.assert_close(ours, theirs)
        found, expected = (
            torch.autograd.grad(each, inputs, retain_graph=True, allow_unused=True) for each in (ours, theirs)
        )
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    def polynomial(*inputs: Tensor) -> Tensor:
        sums = PowerSums.of(factors_of(kind, *inputs))
        return 0.3 * sums.total + 0.7 * sums.squares

    assert torch.autograd.gradcheck(polynomial, given(6, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_weighted_sums_are_those_of_the_dense_matrix(kind: str) -> None:
    factors = factors_of(kind, *given())
    logits, generator = dense(factors), torch.Generator().manual_seed(1)
    u, v = torch.rand(2, 23, generator=generator, dtype=torch.float64)
    for rows, columns in ((u, v), (u, u)):
        weights = rows[:, None] + columns
        expected = torch.stack([(weights * logits**power).sum() for power in range(3)])
        sums = PowerSums.of(factors)
        found = sums.weighted(sums.left.weighted(rows), sums.right.weighted(columns))
        torch.testing.assert_close(found, expected.detach())
        if kind == "k = q" and columns is rows:
            torch.testing.assert_close(sums.weighted(sums.left.weighted(rows), None), expected.detach())


@pytest.mark.parametrize("kind", KINDS)
def test_the_diagonal_is_that_of_the_dense_matrix(kind: str) -> None:
    factors = factors_of(kind, *given())
    torch.testing.assert_close(factors.diagonal(), dense(factors).diagonal())


@pytest.mark.parametrize("kind", ["k = q", "q and k, biases"])
def test_bfloat16_is_summed_in_float32(kind: str) -> None:
    rough = [tensor.detach().bfloat16() for tensor in given(500)]
    exact = dense(factors_of(kind, *(tensor.double() for tensor in rough)))
    sums = PowerSums.of(factors_of(kind, *rough))
    assert sums.squares.dtype == torch.float32
    torch.testing.assert_close(sums.squares.double(), exact.square().sum(), rtol=1e-5, atol=0)
    torch.testing.assert_close(sums.total.double(), exact.sum(), rtol=1e-4, atol=0)
