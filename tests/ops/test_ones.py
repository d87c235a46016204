"""Sums at the entries of a sparse matrix: each implementation against the dense one in float64, and against gathers."""

from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import softplus

from vgae.errors import InputError
from vgae.ops import Counted, Factors, Ones, ones, sum_at_ones, sum_at_pairs, zeros

BIASES = ("none", "row", "column", "both", "same")
IMPLEMENTATIONS = ("torch", "numba")


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> str:
    """The name of one that is installed."""
    name: str = request.param
    pytest.importorskip(name)
    return name


def pattern(num_nodes: int, *, symmetric: bool, soft: bool = False, hub: bool = False, seed: int = 0) -> Ones:
    """Entries of a matrix like A + I, a few rows of which have nothing but the diagonal."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((num_nodes, num_nodes)) < 4 / num_nodes) * rng.uniform(0.05, 1, (num_nodes, num_nodes))
    dense[: num_nodes // 5] = 0
    if hub:
        dense[num_nodes // 2] = rng.uniform(0.05, 1, num_nodes)
    if symmetric:
        dense[:, : num_nodes // 5] = 0
        dense = np.maximum(dense, dense.T)
    np.fill_diagonal(dense, 1)
    return Ones.of(sp.csr_array(dense), "cpu", symmetric=symmetric, labelled=soft)


def factors(num_nodes: int, dim: int, *, two: bool, biases: str, scale: float = 1.0, **kind: Any) -> Factors:
    """Leaves with gradients; logits are of this scale."""
    source = torch.Generator().manual_seed(dim)

    def drawn(*shape: int, by: float) -> Tensor:
        return (by * torch.randn(*shape, generator=source)).to(**kind).requires_grad_()

    size = (scale / dim**0.5) ** 0.5
    row, column = (drawn(num_nodes, by=scale / 2) for _ in range(2))
    given = {"none": (None, None), "row": (row, None), "column": (None, column), "both": (row, column)}
    k = drawn(num_nodes, dim, by=size) if two else None
    return Factors(drawn(num_nodes, dim, by=size), k, *(given | {"same": (row, row)})[biases])


def leaves(given: Factors) -> list[Tensor]:
    tensors = (given.q, given.k, given.row_bias, given.column_bias)
    return list(dict.fromkeys(each for each in tensors if each is not None))


def found(given: Factors, entries: Ones, counted: Counted, implementation: str, **asked: Any) -> list[Tensor]:
    """The value and the gradients in all that is given."""
    parabola = asked.pop("parabola", (torch.tensor(0.4), torch.tensor(-0.1)))
    value = sum_at_ones(given, entries, counted, parabola, implementation=implementation, **asked)
    return [value.detach(), *torch.autograd.grad(value, leaves(given))]


def assert_near(ours: list[Tensor], truth: list[Tensor], most: float) -> None:
    for mine, exact in zip(ours, truth, strict=True):
        error = (mine.double() - exact.double()).abs().max() / exact.double().abs().max().clamp(min=1e-30)
        assert float(error) < most


@pytest.mark.parametrize(("symmetric", "two"), list(product([True, False], repeat=2)))
@pytest.mark.parametrize("biases", BIASES)
@pytest.mark.parametrize(("soft", "as_zeros"), [(False, False), (True, False), (True, True)])
def test_value_and_gradients_are_those_of_the_dense_matrix(
    implementation: str, symmetric: bool, two: bool, biases: str, soft: bool, as_zeros: bool
) -> None:
    given, entries = factors(60, 3, two=two, biases=biases), pattern(60, symmetric=symmetric, soft=soft)
    for diagonal in (None, 0.0, -1.0):
        counted = Counted(3.0, diagonal, as_zeros=as_zeros)
        assert_near(
            found(given, entries, counted, implementation), found(given, entries, counted, "reference"), most=1e-5
        )


@pytest.mark.parametrize("dim", [1, 3, 16, 17, 64])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 100.0])
def test_any_width_and_any_size_of_logits(implementation: str, dim: int, scale: float) -> None:
    given, entries = factors(80, dim, two=False, biases="same", scale=scale), pattern(80, symmetric=True)
    for parabola in ((torch.zeros(()), torch.zeros(())), (torch.tensor(0.5), torch.tensor(0.1))):
        ours, truth = (
            found(given, entries, Counted(50.0), name, parabola=parabola) for name in (implementation, "reference")
        )
        assert_near(ours, truth, most=2e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("symmetric", [True, False])
def test_gradients_are_those_of_autograd_over_gathered_logits(symmetric: bool, dtype: torch.dtype) -> None:
    given, entries = factors(50, 5, two=True, biases="both", dtype=dtype), pattern(50, symmetric=symmetric, soft=True)
    s = given.logits(torch.stack([entries.rows, entries.columns]).T)
    label, a, b = torch.as_tensor(entries.labels).to(dtype), torch.tensor(0.4), torch.tensor(-0.1)
    expected = (label * 3 * softplus(-s) + (1 - label) * softplus(s) - a * s - b * s**2).sum()
    gradients = torch.autograd.grad(expected, leaves(given))
    ours = found(given, entries, Counted(3.0, as_zeros=True), "torch")
    assert_near(ours, [expected.detach(), *gradients], most=1e-5 if dtype == torch.float32 else 1e-7)


def test_logits_of_one_size_and_sign_keep_their_digits(implementation: str) -> None:
    """softplus(-s) of large logits is tiny, and nothing else is there to hide behind."""
    entries = pattern(40, symmetric=True)
    for size in (5.0, 20.0, 40.0):
        given = Factors(torch.full((40, 16), (size / 16) ** 0.5, requires_grad=True))
        counted, nothing = Counted(1.0), (torch.zeros(()), torch.zeros(()))
        ours, truth = (found(given, entries, counted, name, parabola=nothing) for name in (implementation, "reference"))
        assert_near(ours, truth, most=3e-5)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_hub_that_is_linked_to_all_is_shared_by_parts(implementation: str, symmetric: bool) -> None:
    """Its row alone goes through several parts of the entries."""
    size = 6000
    hub = sp.lil_array((size, size), dtype=np.float32)
    hub[7, :] = 1
    matrix = sp.csr_array(hub)
    matrix = sp.csr_array(
        ((matrix + matrix.T + sp.eye_array(size)) > 0) if symmetric else ((matrix + sp.eye_array(size)) > 0)
    )
    matrix.sort_indices()
    entries = Ones.of(matrix.astype(np.float32), "cpu", symmetric=symmetric)
    given = factors(size, 4, two=False, biases="same")
    ours = found(given, entries, Counted(2.0), implementation)
    s = given.logits(torch.stack([entries.rows, entries.columns]).T).double()
    expected = (2 * softplus(-s) - 0.4 * s + 0.1 * s**2).sum()
    assert_near(ours, [expected.detach(), *torch.autograd.grad(expected, leaves(given))], most=1e-5)


def test_one_node(implementation: str) -> None:
    given, entries = factors(1, 2, two=False, biases="none"), Ones.of(sp.csr_array([[1.0]]), "cpu", symmetric=True)
    assert_near(
        found(given, entries, Counted(2.0), implementation), found(given, entries, Counted(2.0), "reference"), most=1e-6
    )


def test_indices_of_either_width_give_the_same(implementation: str) -> None:
    given, small = factors(50, 4, two=True, biases="both"), pattern(50, symmetric=False)
    assert small.starts.dtype == small.columns.dtype == torch.int32
    other: Any = small.transposed
    wide = Ones(small.starts.long(), small.columns.long(), transposed=Ones(other.starts.long(), other.columns.long()))
    for mine, theirs in zip(*(found(given, each, Counted(2.0), implementation) for each in (small, wide)), strict=True):
        assert torch.equal(mine, theirs)


def test_as_many_threads_as_there_are_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = pytest.importorskip("vgae.ops.entry_kernels")
    monkeypatch.setattr(kernels, "ALONE", 1)  # so that threads share even this
    given, entries = factors(3000, 16, two=False, biases="same"), pattern(3000, symmetric=True, hub=True)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 5, 1):
            torch.set_num_threads(threads)
            results.append(found(given, entries, Counted(2.0), "numba"))
    finally:
        torch.set_num_threads(before)
    assert len(entries.columns) > 3 * kernels.PART
    for result in results[1:]:
        for mine, first in zip(result, results[0], strict=True):
            assert torch.equal(mine, first)


def test_gradients_without_the_value_are_the_same_bits(implementation: str) -> None:
    given, entries = factors(300, 16, two=False, biases="none"), pattern(300, symmetric=True)
    bare, full = (found(given, entries, Counted(2.0), implementation, value=value) for value in (False, True))
    assert torch.isnan(bare[0])
    assert torch.equal(bare[1], full[1])


def test_bfloat16_is_summed_in_float32(implementation: str) -> None:
    rough, entries = factors(60, 4, two=False, biases="none", dtype=torch.bfloat16), pattern(60, symmetric=True)
    ours = found(rough, entries, Counted(2.0), implementation)
    assert {each.dtype for each in ours} == {torch.bfloat16}
    assert_near(ours, found(rough, entries, Counted(2.0), "reference"), most=0.01)


def test_numbers_that_are_none_are_not_hidden(implementation: str) -> None:
    given, entries = factors(60, 4, two=False, biases="none"), pattern(60, symmetric=True)
    with torch.no_grad():
        given.q[30] = torch.nan
    value, gradient = found(given, entries, Counted(2.0), implementation)
    assert torch.isnan(value)
    assert bool(torch.isnan(gradient[30]).all())


@pytest.mark.parametrize(("two", "biases"), [(False, "none"), (False, "same"), (True, "both")])
@pytest.mark.parametrize("in_order", [True, False])
def test_drawn_pairs_are_summed_up_like_gathered_ones(
    monkeypatch: pytest.MonkeyPatch, two: bool, biases: str, in_order: bool
) -> None:
    pytest.importorskip("numba")
    given, parabola = factors(400, 16, two=two, biases=biases), (torch.tensor(0.4), torch.tensor(0.1))
    pairs = torch.randint(400, (3000, 2), generator=torch.Generator().manual_seed(0))
    if in_order:
        pairs = pairs[pairs[:, 0].argsort(stable=True)]
    results = []
    for least in (10**9, 1):  # by gathers, and by kernels
        monkeypatch.setattr(ones, "SHORTEST_FOR_NUMBA", least)
        total, logits = sum_at_pairs(given, pairs, parabola)
        assert not logits.requires_grad
        results.append([total.detach(), logits, *torch.autograd.grad(total, leaves(given))])
    assert_near(results[1], results[0], most=1e-5)


@pytest.mark.parametrize("least", [1, 10**9])
def test_zeros_are_found_by_their_numbers(monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    if least == 1:
        pytest.importorskip("numba")
    monkeypatch.setattr(zeros, "SHORTEST_FOR_NUMBA", least)
    entries = pattern(40, symmetric=False, hub=True)
    dense = np.ones((40, 40), dtype=bool)
    dense[entries.rows.numpy(), entries.columns.numpy()] = False
    expected = np.argwhere(dense)
    assert entries.num_zeros == len(expected)
    np.testing.assert_array_equal(zeros.zeros_among(entries, torch.arange(len(expected))).numpy(), expected)
    if least == 1:
        for part in (1, 7, 64):
            monkeypatch.setattr("vgae.ops.draw_kernels.PART", part)
            found = zeros.zeros_among(entries, torch.arange(len(expected)))
            np.testing.assert_array_equal(found.numpy(), expected)
    some = zeros.zeros_among(entries, torch.tensor([3, 3, 500, len(expected) - 1]))
    np.testing.assert_array_equal(some.numpy(), expected[[3, 3, 500, -1]])


def test_the_registered_op_does_the_same() -> None:
    given, entries = factors(30, 4, two=False, biases="none"), pattern(30, symmetric=True)
    result = torch.ops.vgae.sum_at_entries(
        given.q, None, None, None, *entries.pattern("torch"), None, None, None, None, None, torch.tensor([0.4, -0.1]),
        [3.0, 3.0, 1.0], [False, True, True, False, True], "torch",
    )  # fmt: skip
    (gradient,) = torch.autograd.grad(result[0], given.q)
    ours = found(given, entries, Counted(3.0), "torch")
    assert torch.equal(result[0], ours[0])
    assert torch.equal(gradient, ours[1])


@pytest.mark.parametrize("of_columns", [True, False])
def test_some_rows_of_a_matrix_have_more_columns_than_rows(implementation: str, of_columns: bool) -> None:
    entries, height = pattern(90, symmetric=False), 40
    matrix = sp.csr_array((np.ones(len(entries.columns)), entries.columns, entries.starts), shape=(90, 90))[:height]
    rows = replace(Ones.of(matrix, "cpu", symmetric=False), num_columns=90)
    given = factors(90, 5, two=True, biases="both")
    results = []
    for kind in (implementation, "reference"):
        parts = [each[: height if place % 2 == 0 else 90].detach() for place, each in enumerate(leaves(given))]
        for place, part in enumerate(parts):
            part.requires_grad_(of_columns or place % 2 == 0)
        total = sum_at_ones(Factors(*parts), rows, Counted(3.0, 0.5), implementation=kind)
        asked = [part for part in parts if part.requires_grad]
        results.append([total.detach(), *torch.autograd.grad(total, asked)])
    assert_near(results[0], results[1], most=1e-5)
    dense = matrix.toarray() == 0
    assert rows.num_zeros == dense.sum()
    np.testing.assert_array_equal(zeros.zeros_among(rows, torch.arange(rows.num_zeros)).numpy(), np.argwhere(dense))


def test_what_does_not_fit_is_refused() -> None:
    given, entries = factors(30, 4, two=False, biases="none"), pattern(31, symmetric=True)
    with pytest.raises(InputError, match="expected those of 31 nodes, got 30"):
        sum_at_ones(given, entries, Counted(1.0))
    with pytest.raises(InputError, match="auto, reference, torch, numba"):
        sum_at_ones(given, pattern(30, symmetric=True), Counted(1.0), implementation="magic")
    double = factors(30, 4, two=False, biases="none", dtype=torch.float64)
    if find_spec("numba") is not None:
        with pytest.raises(InputError, match="numba takes float32 or bfloat16"):
            sum_at_ones(double, pattern(30, symmetric=True), Counted(1.0), implementation="numba")
