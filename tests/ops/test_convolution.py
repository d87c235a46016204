"""Two graph convolutions as one operation, against their equations in double precision and operation by operation."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import vgae
from vgae.model.encoders import GCN
from vgae.model.inputs import EncoderInputs
from vgae.ops import SparseMatrix, convolution, team
from vgae.ops.convolution import Convolutions

pytest.importorskip("numba")

FEATURES = ["none", "sparse", "empty rows and columns"]


def propagation_of(num_nodes: int, *, hub: bool) -> SparseMatrix:
    """Ã of a random graph; one node may be linked to all others, and some have no link."""
    draws = np.random.default_rng(num_nodes)
    rows, columns = draws.integers(0, num_nodes, (2, 3 * num_nodes))
    linked = (rows != columns) & (rows % 5 > 0) & (columns % 5 > 0)
    rows, columns = rows[linked], columns[linked]
    if hub:
        others = np.arange(1, num_nodes)
        rows, columns = np.append(rows, np.zeros_like(others)), np.append(columns, others)
    half = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(num_nodes, num_nodes))
    matrix = sp.csr_array(half + half.T + sp.eye_array(num_nodes))
    matrix.data[:] = 1
    scale = sp.diags_array(1 / np.sqrt(matrix.sum(axis=1)))
    return SparseMatrix(sp.csr_array(scale @ matrix @ scale), symmetric=True)


def features_of(kind: str, num_nodes: int) -> SparseMatrix | None:
    if kind == "none":
        return None
    draws = np.random.default_rng(1)
    matrix = sp.random_array((num_nodes, 70), density=0.1, rng=draws, dtype=np.float32, format="lil")
    if kind != "sparse":
        matrix[:: max(1, num_nodes // 3)] = 0
        matrix[:, ::7] = 0
    return SparseMatrix(sp.csr_array(matrix))


def weights_of(input_dim: int, hidden: int, heads: list[int]) -> list[Tensor]:
    draws = torch.Generator().manual_seed(hidden)
    shapes = [(input_dim, hidden), *((hidden, width) for width in heads)]
    return [torch.randn(shape, generator=draws).requires_grad_() for shape in shapes]


def dense(matrix: SparseMatrix) -> Tensor:
    starts, columns, values = matrix.rows.arrays
    return torch.from_numpy(sp.csr_array((values, columns, starts), shape=matrix.shape).toarray()).double()


def by_definition(constant: Convolutions, weights: list[Tensor]) -> Tensor:
    """Y in double precision, with dense matrices."""
    weight, *heads = weights
    over = dense(constant.propagation)
    projected = weight if constant.features is None else dense(constant.features) @ weight
    hidden = torch.relu(over @ projected if constant.first_hop else projected)
    return over @ (hidden @ torch.cat(heads, dim=1))


def one_by_one(constant: Convolutions, weights: list[Tensor]) -> Tensor:
    """Y by PyTorch's operations."""
    weight, *heads = weights
    projected = weight if constant.features is None else constant.features @ weight
    hidden = torch.relu(constant.propagation @ projected if constant.first_hop else projected)
    return constant.propagation @ (hidden @ torch.cat(heads, dim=1))


@pytest.mark.parametrize("first_hop", [True, False])
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize(
    ("num_nodes", "hidden", "heads"),
    [(1, 16, [16]), (2, 32, [16, 16]), (7, 16, [5, 11]), (128, 48, [16]), (131, 64, [32, 32]), (1000, 32, [16, 16])],
)
def test_values_and_gradients(num_nodes: int, hidden: int, heads: list[int], features: str, first_hop: bool) -> None:
    """No further from the equations than PyTorch's operations, twice over."""
    constant = Convolutions(
        propagation_of(num_nodes, hub=num_nodes % 2 == 1), features_of(features, num_nodes), first_hop
    )
    weights = weights_of(num_nodes if features == "none" else 70, hidden, heads)
    upstream = torch.randn(num_nodes, sum(heads), generator=torch.Generator().manual_seed(2))
    results = []
    for way, dtype in ((by_definition, torch.float64), (one_by_one, torch.float32), (None, torch.float32)):
        given = [weight.detach().to(dtype).requires_grad_() for weight in weights]
        out = constant(given[0], given[1:]) if way is None else way(constant, given)
        results.append([out.detach(), *torch.autograd.grad(out, given, upstream.to(dtype))])
    for exact, plain, found in zip(*results, strict=True):
        error, of_plain = (float((each - exact).abs().max()) for each in (found, plain))
        assert found.shape == exact.shape
        assert error <= 2 * of_plain + 1e-6 * float(exact.abs().max())


@pytest.mark.parametrize("num_nodes", [1000, 40_000])
def test_bits_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, num_nodes: int) -> None:
    constant = Convolutions(propagation_of(num_nodes, hub=True), features_of("sparse", num_nodes))
    weights = weights_of(70, 32, [16, 16])
    upstream = torch.randn(num_nodes, 32, generator=torch.Generator().manual_seed(2))
    found = []
    for threads in (1, 2, 3, 2, 2):
        monkeypatch.setattr(team, "num_threads", lambda threads=threads: threads)
        out = constant(weights[0], weights[1:])
        found.append([out, *torch.autograd.grad(out, weights, upstream)])
    for others in found[1:]:
        assert all(torch.equal(here, there) for here, there in zip(found[0], others, strict=True))


def test_what_is_no_number_stays_that_and_infinities_spread() -> None:
    """A training that diverges is to be seen, not to be cut off by the ReLU."""
    constant = Convolutions(propagation_of(50, hub=False))
    for bad in (np.nan, np.inf):
        weights = weights_of(50, 16, [16])
        with torch.no_grad():
            weights[0][7, 3] = bad
        out, expected = constant(weights[0], weights[1:]), one_by_one(constant, weights)
        assert torch.equal(out.isfinite(), expected.isfinite())
        assert not out.isfinite().all()
        gradients = (torch.autograd.grad(each.sum(), weights) for each in (out, expected))
        for ours, theirs in zip(*gradients, strict=True):
            assert torch.equal(ours.isnan(), theirs.isnan())


@pytest.mark.parametrize(
    ("num_nodes", "options", "suits"),
    [
        (2500, {}, True),
        (2500, {"hidden": 64, "heads": [32, 32]}, True),
        (2500, {"hidden": 40}, False),
        (2500, {"heads": [10, 10]}, False),
        (2500, {"hidden": 80}, False),
        (500, {}, False),  # over before the kernels are loaded
        (140_000, {}, False),  # no cache holds it
        (2500, {"dtype": torch.float64}, False),
        (2500, {"trained": False}, False),
    ],
)
def test_where_it_is_used(num_nodes: int, options: dict[str, Any], suits: bool) -> None:
    loops = sp.csr_array(sp.eye_array(num_nodes, dtype=np.float32))
    weights = weights_of(8, options.get("hidden", 32), options.get("heads", [16, 16]))
    weights = [each.detach().to(options.get("dtype", torch.float32)) for each in weights]
    weights[0].requires_grad_(options.get("trained", True))
    assert Convolutions(SparseMatrix(loops)).suit(weights[0], weights[1:]) == suits


@pytest.mark.parametrize("unit_rows", [True, False])
@pytest.mark.parametrize("kind", ["none", "sparse", "dense"])
def test_an_encoder_in_training_is_what_it_is_otherwise(
    monkeypatch: pytest.MonkeyPatch, kind: str, unit_rows: bool
) -> None:
    """With every kind of features, a step's outputs and gradients are those of the layers one by one."""
    graph = vgae.stochastic_block_model(2100, 3, seed=1)
    draws = np.random.default_rng(0)
    made = {"none": None, "dense": draws.standard_normal((2100, 9), dtype=np.float32)}
    made["sparse"] = sp.csr_array(sp.random_array((2100, 40), density=0.1, rng=draws, dtype=np.float32))
    inputs = EncoderInputs.from_graph(graph.with_parts(features=made[kind]))
    generator = torch.Generator().manual_seed(0)
    encoder = GCN(unit_rows=unit_rows).build(inputs.input_dim, 32, {"mean": 16, "log_std": 16}, generator)
    used, results = list[Convolutions](), list[list[Tensor]]()
    called = Convolutions.__call__

    def noted(self: Convolutions, *given: Any) -> Tensor:
        used.append(self)
        return called(self, *given)

    monkeypatch.setattr(Convolutions, "__call__", noted)
    for with_numba in (True, False):
        monkeypatch.setattr(convolution, "HAS_NUMBA", with_numba)
        heads = encoder(inputs)
        total = (heads["mean"].square() + heads["log_std"].sin()).sum()
        outputs = [head.detach() for head in heads.values()]
        results.append([*outputs, *torch.autograd.grad(total, list(encoder.parameters()))])
    assert len(used) == 1
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Counts products of dense matrices."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.number = 0

    def __torch_dispatch__(self, function: Any, types: Any, given: Any = (), options: Any = None) -> Any:
        self.number += function is torch.ops.aten.mm.default
        return function(*given, **(options or {}))


def test_where_it_is_not_used_nothing_is_computed_for_it() -> None:
    """In evaluation, XW₀ of dense features and the product with the heads, each once."""
    features = np.random.default_rng(0).standard_normal((2100, 9), dtype=np.float32)
    inputs = EncoderInputs.from_graph(vgae.stochastic_block_model(2100, 3, seed=1).with_parts(features=features))
    encoder = GCN().build(9, 32, {"mean": 16}, torch.Generator().manual_seed(0))
    with torch.no_grad(), Products() as products:
        encoder(inputs)
    assert products.number == 2
