"""Triton's sums over entries and sparse products against the float64 reference; on a GPU, else by its interpreter."""

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.ops import Counted, Factors, Ones, SparseMatrix, chunks, sum_at_ones, sum_at_pairs
from vgae.ops.chunks import Chunks, by_ends

pytest.importorskip("triton")

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
on_gpu = pytest.mark.skipif(not ON_GPU, reason="records a step on a GPU")
KINDS = {  # k, row bias, column bias; r for both is one tensor
    "k = q": "",
    "k = q, one bias": "rr",
    "k = q, a row bias": "r",
    "q and k": "k",
    "q and k, a column bias": "kc",
    "q and k, biases": "krc",
}


@pytest.fixture(autouse=True, params=[8], ids=lambda longest: f"longest{longest}")
def _short_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "LONGEST", request.param)


def matrix_with_hub(num_nodes: int, *, symmetric: bool = False, seed: int = 0) -> sp.csr_array:
    """A tenth filled with labels in (0, 1], some of them on the diagonal; node 3 has all columns, node 5 and 6 none."""
    generator = np.random.default_rng(seed)
    dense = np.where(generator.random((num_nodes, num_nodes)) < 0.1, 1 - generator.random((num_nodes, num_nodes)), 0)
    dense[3] = 1 - generator.random(num_nodes)
    dense[[5, 6]] = 0
    if symmetric:
        dense = np.maximum(dense, dense.T)
    return sp.csr_array(dense.astype(np.float32))


def factors_of(
    kind: str, num_nodes: int, dim: int, *, scale: float = 1.0, dtype: torch.dtype = torch.float32
) -> Factors:
    generator = torch.Generator().manual_seed(num_nodes + dim)
    shapes = ((num_nodes, dim), (num_nodes, dim), (num_nodes,), (num_nodes,))
    q, k, r, c = (
        (scale * torch.randn(shape, generator=generator)).to(DEVICE, dtype).requires_grad_() for shape in shapes
    )
    has = KINDS[kind]
    return Factors(
        q, k if "k" in has else None, r if "r" in has else None, {"rr": r}.get(has, c if "c" in has else None)
    )


def leaves_of(factors: Factors) -> list[Tensor]:
    given = [factors.q, factors.k, factors.row_bias, factors.column_bias]
    return list({id(tensor): tensor for tensor in given if tensor is not None}.values())


def value_and_gradients(factors: Factors, *arguments: Any, **options: Any) -> list[Tensor]:
    """The sum times a factor that is not one, and its gradients."""
    result = 1.7 * sum_at_ones(factors, *arguments, **options)
    return [result.detach(), *torch.autograd.grad(result, leaves_of(factors))]


def line(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return torch.tensor(0.31, dtype=dtype, device=DEVICE), torch.tensor(-0.07, dtype=dtype, device=DEVICE)


def assert_near(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for one, other in zip(found, expected, strict=True):
        error = (one.detach().double() - other.detach().double()).norm() / other.detach().double().norm()
        assert float(error) < tolerance


@pytest.mark.parametrize(("kind", "symmetric"), list(product(KINDS, [True, False])))
def test_value_and_gradients_are_those_of_the_reference(kind: str, symmetric: bool) -> None:
    ones = Ones.of(matrix_with_hub(21, symmetric=symmetric), DEVICE, symmetric=symmetric)
    given = factors_of(kind, 21, 5), ones, Counted(1.9, 0.4)
    expected = value_and_gradients(*given, implementation="reference")
    assert_near(value_and_gradients(*given, implementation="triton"), expected, 1e-6)


@pytest.mark.parametrize("dim", [1, 3, 16, 17, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_any_width_is_as_near_to_the_reference_as_plain_torch(dim: int, dtype: torch.dtype) -> None:
    ones = Ones.of(matrix_with_hub(19), DEVICE, symmetric=False, labelled=True)
    given = (
        factors_of("q and k, biases", 19, dim, scale=dim**-0.5, dtype=dtype),
        ones,
        Counted(0.7, as_zeros=True),
        line(),
    )
    expected = value_and_gradients(*given, implementation="reference")
    tolerance = 1e-6 if dtype == torch.float32 else 2**-7
    assert_near(value_and_gradients(*given, implementation="torch"), expected, tolerance)
    assert_near(value_and_gradients(*given, implementation="triton"), expected, tolerance)


@pytest.mark.parametrize(
    ("labelled", "counted", "with_line"),
    [
        (False, Counted(2.5), False),
        (False, Counted(2.5, 0.0, label=0.3), True),
        (True, Counted(2.5, 0.2), True),
        (True, Counted(2.5, 0.0, as_zeros=True), False),
        (False, Counted(0.0, as_zeros=True, label=0.0), True),
    ],
)
def test_entries_count_as_in_the_reference(labelled: bool, counted: Counted, with_line: bool) -> None:
    ones = Ones.of(matrix_with_hub(21, symmetric=True), DEVICE, symmetric=True, labelled=labelled)
    given = factors_of("k = q, one bias", 21, 4), ones, counted, line() if with_line else None
    expected = value_and_gradients(*given, implementation="reference")
    assert_near(value_and_gradients(*given, implementation="triton"), expected, 1e-6)


@pytest.mark.parametrize("_short_pieces", [1, 3, 8, 128], indirect=True)
def test_a_hub_is_the_same_in_any_number_of_pieces(_short_pieces: None) -> None:
    ones = Ones.of(matrix_with_hub(34), DEVICE, symmetric=False)
    given = factors_of("q and k, biases", 34, 3), ones, Counted(1.1)
    expected = value_and_gradients(*given, implementation="reference")
    assert_near(value_and_gradients(*given, implementation="triton"), expected, 1e-6)
    pieces = int((ones.chunks.pieces[0] == 3).sum())
    assert pieces == -(-34 // chunks.LONGEST)


@pytest.mark.parametrize("kind", ["k = q", "q and k, biases"])
def test_two_runs_have_the_same_bits_with_the_value_and_without(kind: str) -> None:
    ones = Ones.of(matrix_with_hub(25, symmetric=True), DEVICE, symmetric=True)
    given = factors_of(kind, 25, 16), ones, Counted(1.3), line()
    first, again = (value_and_gradients(*given, implementation="triton") for _ in range(2))
    without = value_and_gradients(*given, value=False, implementation="triton")
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(first[1:], without[1:], strict=True))
    assert without[0].isnan()


@pytest.mark.parametrize("logit", [-300.0, -30.0, -1e-3, 0.0, 30.0, 300.0])
def test_large_and_small_logits_keep_their_digits(logit: float) -> None:
    q = torch.tensor([[logit], [1.0]], device=DEVICE, requires_grad=True)
    ones = Ones.of(sp.csr_array(np.array([[0, 1], [0, 0]], np.float32)), DEVICE, symmetric=False)
    for label in (0.0, 1.0):  # softplus(s), and 1.5·softplus(-s)
        k = torch.ones(2, 1, device=DEVICE, requires_grad=True)
        given = Factors(q, k), ones, Counted(1.5, as_zeros=True, label=label)
        torch.testing.assert_close(
            [tensor.double() for tensor in value_and_gradients(*given, implementation="triton")],
            [tensor.double() for tensor in value_and_gradients(*given, implementation="reference")],
            rtol=3e-6,  # a float32 of 43, -30·log₂ e, has no more digits
            atol=1e-37,
        )


def test_without_entries_all_is_zero() -> None:
    ones = Ones.of(sp.csr_array((7, 7), dtype=np.float32), DEVICE, symmetric=True)
    for found in value_and_gradients(factors_of("k = q, one bias", 7, 3), ones, Counted(1.0), implementation="triton"):
        assert not found.any()


def test_wide_indices_give_the_same_bits() -> None:
    narrow = Ones.of(matrix_with_hub(20), DEVICE, symmetric=True, labelled=True)
    wide = Ones(narrow.starts.long(), narrow.columns.long(), narrow.labels)
    factors = factors_of("k = q, one bias", 20, 3)
    found, expected = (
        value_and_gradients(factors, ones, Counted(1.2), implementation="triton") for ones in (wide, narrow)
    )
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_in_any_order_are_summed_up_as_by_torch(kind: str) -> None:
    pairs = torch.randint(0, 70, (100, 2), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    pairs[7] = pairs[3]  # one of them twice
    factors = factors_of(kind, 70, 6)
    found = {}
    for implementation in ("torch", "triton"):
        total, logits = sum_at_pairs(factors, pairs, line(), implementation=implementation)
        assert not logits.requires_grad
        gradients = torch.autograd.grad(1.7 * total, leaves_of(factors))
        found[implementation] = [total.detach(), logits, *gradients]
    assert_near(found["triton"], found["torch"], 1e-6)


# -------------------------------------------------------------------------------------------------------------- pieces


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_pieces_have_every_entry_once_and_the_longest_come_first(kind: torch.dtype) -> None:
    sizes = torch.tensor([0, 3, 8, 9, 0, 40, 1, 16, 7])
    starts = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)]).to(kind)
    table = Chunks.of(starts)
    assert table.pieces.dtype == table.divided.dtype == kind
    rows, firsts, ends, places = (part.tolist() for part in table.pieces)
    found = sorted((first, end, row) for row, first, end in zip(rows, firsts, ends, strict=True))
    entries = [(entry, row) for first, end, row in found for entry in range(first, end)]
    assert entries == [(entry, row) for row in range(9) for entry in range(int(starts[row]), int(starts[row + 1]))]
    assert set(rows) == set(range(9))
    lengths = [end - first for first, end in zip(firsts, ends, strict=True)]
    assert max(lengths) == 8
    assert [-(-length // 8) for length in lengths] == sorted((-(-length // 8) for length in lengths), reverse=True)
    assert sorted(places) == sorted([row for row in range(9) if row not in (3, 5, 7)] + list(range(9, 9 + 2 + 5 + 2)))
    assert table.divided.tolist() == [[3, 5, 7], [9, 11, 16], [2, 5, 2]]
    of_hub = sorted((first, place) for row, first, place in zip(rows, firsts, places, strict=True) if row == 5)
    assert [place for _, place in of_hub] == [11, 12, 13, 14, 15]


def test_pairs_are_laid_out_by_either_end() -> None:
    sources, targets = torch.tensor([4, 0, 2, 4, 0]), torch.tensor([1, 3, 2, 0, 3])
    by_rows = [part.tolist() for part in by_ends(sources, targets, 6)]
    assert by_rows == [[0, 2, 2, 3, 3, 5, 5], [3, 3, 2, 1, 0], [1, 4, 2, 0, 3]]
    by_columns = [part.tolist() for part in by_ends(targets, sources, 6)]
    assert by_columns == [[0, 1, 2, 3, 5, 5, 5], [4, 4, 2, 0, 0], [3, 0, 2, 1, 4]]


# ------------------------------------------------------------------------------------------------------------ products


def by_triton(matrix: SparseMatrix) -> SparseMatrix:
    """The matrix with pieces, as it has them on a GPU."""
    for rows in (matrix.rows, matrix.rows_of_transpose):
        object.__setattr__(rows, "chunks", Chunks.of(rows.starts))
    return matrix


@pytest.mark.parametrize("width", [1, 7, 32, 130])
@pytest.mark.parametrize("symmetric", [True, False])
def test_products_and_their_gradients_are_the_dense_ones(width: int, symmetric: bool) -> None:
    size = 28 if width < 100 else 12
    matrix = matrix_with_hub(size, symmetric=symmetric)[:, : size if symmetric else size - 5]
    dense = torch.randn(matrix.shape[1], width, device=DEVICE, requires_grad=True)
    upstream = torch.randn(width, size, device=DEVICE).T
    sparse, twin = by_triton(SparseMatrix(matrix, device=DEVICE, symmetric=symmetric)), torch.tensor(matrix.toarray())
    found = sparse @ dense
    (gradient,) = torch.autograd.grad(found, dense, upstream)
    assert_near([found, gradient], [twin.to(DEVICE) @ dense, twin.T.to(DEVICE) @ upstream], 1e-6)
    assert torch.equal(found, sparse @ dense)


def test_the_memory_of_a_product_may_be_worked_in() -> None:
    matrix = matrix_with_hub(28)
    dense = torch.randn(28, 6, device=DEVICE, requires_grad=True)
    in_place = torch.relu_(by_triton(SparseMatrix(matrix, device=DEVICE)) @ dense)
    expected = torch.relu(torch.tensor(matrix.toarray(), device=DEVICE) @ dense)
    gradients = [torch.autograd.grad((each**2).sum(), dense)[0] for each in (in_place, expected)]
    assert_near([in_place, gradients[0]], [expected, gradients[1]], 1e-6)


def test_products_with_other_values_keep_their_pieces_and_narrow_ones_their_type() -> None:
    matrix = matrix_with_hub(30)
    matrix.sort_indices()
    sparse = by_triton(SparseMatrix(matrix, device=DEVICE))
    other = sparse.with_values(sparse.rows.values**2)
    assert other.rows.chunks is sparse.rows.chunks
    assert other.rows_of_transpose.chunks is sparse.rows_of_transpose.chunks
    dense = torch.randn(30, 6, device=DEVICE).bfloat16()
    found = other.transposed() @ dense
    assert found.dtype == torch.bfloat16
    assert_near([found], [torch.tensor(matrix.toarray() ** 2).T.to(DEVICE) @ dense.float()], 2**-8)
    exact = other @ torch.ones(30, 2, device=DEVICE, dtype=torch.float64)
    torch.testing.assert_close(exact[:, 0].cpu(), torch.tensor(matrix.toarray().astype(float) ** 2).sum(dim=1))


# ------------------------------------------------------------------------------------------------- choice and recording


@pytest.mark.parametrize(("dim", "dtype"), [(3, torch.float64), (257, torch.float32)])
def test_what_triton_cannot_is_refused(dim: int, dtype: torch.dtype) -> None:
    ones = Ones.of(matrix_with_hub(9), DEVICE, symmetric=False)
    with pytest.raises(InputError, match="triton takes float32 or bfloat16 on a GPU, up to 256 columns, not"):
        sum_at_ones(factors_of("k = q", 9, dim, dtype=dtype), ones, Counted(1.0), implementation="triton")


@on_gpu
def test_auto_is_triton_on_a_gpu() -> None:
    ones = Ones.of(matrix_with_hub(50), DEVICE, symmetric=False)
    given = factors_of("q and k, biases", 50, 16), ones, Counted(1.3), line()
    found, expected = (value_and_gradients(*given, implementation=name) for name in ("auto", "triton"))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert SparseMatrix(matrix_with_hub(50), device=DEVICE).rows.chunks is not None


@on_gpu
def test_a_recorded_step_has_the_bits_of_one_that_is_not() -> None:
    ones = Ones.of(matrix_with_hub(500), DEVICE, symmetric=False)
    sparse = SparseMatrix(matrix_with_hub(500, seed=1), device=DEVICE)
    pairs = torch.randint(0, 500, (900, 2), device=DEVICE)
    factors = factors_of("q and k, biases", 500, 16)

    def step() -> list[Tensor]:
        hidden = Factors(sparse @ factors.q, factors.k, factors.row_bias, factors.column_bias)
        zeros, logits = sum_at_pairs(hidden, pairs, line_of)
        result = sum_at_ones(hidden, ones, Counted(1.3), line_of) + zeros
        return [result.detach(), logits, *torch.autograd.grad(result, leaves_of(factors))]

    line_of = line()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        for _ in range(3):
            expected = [tensor.clone() for tensor in step()]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        found = step()
    for _ in range(3):
        graph.replay()
        torch.cuda.synchronize()
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@on_gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning")
@pytest.mark.parametrize("_short_pieces", [128], indirect=True)
def test_no_kernel_waits_or_copies(_short_pieces: None) -> None:
    ones = Ones.of(matrix_with_hub(500), DEVICE, symmetric=False)
    factors, line_of = factors_of("q and k, biases", 500, 16), line()
    value_and_gradients(factors, ones, Counted(1.3), line_of, implementation="triton")
    torch.cuda.set_sync_debug_mode("error")
    try:
        value_and_gradients(factors, ones, Counted(1.3), line_of, implementation="triton")
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_kernels_are_interpreted_where_there_is_no_gpu() -> None:
    assert import_module("vgae.ops.triton_entries").INTERPRETED != ON_GPU
