"""What processes tell each other, and its gradients, against one dense computation in double precision."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from asked import (
    BOUNDS,
    NUM_NODES,
    WIDTH,
    add_up,
    factors_of,
    fetch,
    given_factors,
    matrix,
    multiply,
    numbers,
    sweep,
    talk,
)
from grouping import Processes
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from vgae.errors import InputError
from vgae.ops.reference import all_pairs_softplus
from vgae.parallel import draws
from vgae.parallel.draws import RowGenerator
from vgae.parallel.group import Group
from vgae.parallel.shards import Shards


@pytest.fixture(params=BOUNDS, scope="module")
def processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(request.param, tmp_path_factory.mktemp("group"))
    yield started
    started.close()


# --------------------------------------------------------------------------------------------------------------- group


def test_messages_arrive_where_they_should(processes: Processes) -> None:
    size, found = processes.size, processes.run(talk)
    whole = torch.cat([torch.full((2 * other, 3), float(other)) for other in range(size)])
    in_order = found[0]["parts"].clone()
    for each in found[1:]:
        in_order += each["parts"]
    for rank, each in enumerate(found):
        assert each["sum"].tolist() == [[sum(range(size)), size]]
        assert torch.equal(each["large"], in_order)
        assert torch.equal(each["gather"], whole)
        assert torch.equal(
            each["exchange"],
            torch.tensor([10.0 * r + rank for r in range(size)]).repeat_interleave(rank + 1)[:, None].expand(-1, 2),
        )
        assert torch.equal(each["shift"], whole[whole[:, 0] == (rank - 1) % size])
        assert torch.equal(each["back"], whole[whole[:, 0] == (rank + 1) % size])
        assert json.dumps(each["share"]) == '{"a": [0.1, null]}'
        assert each["any"] == (True, False)
        assert (each["collect"] is None) == (rank > 0)
    assert torch.equal(found[0]["collect"], whole)


def test_without_processes_there_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for make in (Group, Group.started):
        with pytest.raises(InputError, match=r"There is no group of processes.* start them with torchrun"):
            make("cpu")


# --------------------------------------------------------------------------------------------------------- rows, sums


@pytest.mark.parametrize("kind", ["some", "none", "all"])
def test_rows_of_others_and_their_gradients(processes: Processes, kind: str) -> None:
    bounds, generator = BOUNDS[processes.size], np.random.default_rng(1)
    others = [
        [node for node in range(NUM_NODES) if not bounds[rank] <= node < bounds[rank + 1]]
        for rank in range(processes.size)
    ]
    share = {"some": 0.4, "none": 0.0, "all": 1.0}[kind]
    needed = [[node for node in each if generator.random() < share] for each in others]
    if kind == "some":
        needed[0] = []  # a process without a halo
    whole = numbers(NUM_NODES, WIDTH).requires_grad_()
    loss = whole.new_zeros(())
    for rank, each in enumerate(needed):
        nodes = [*range(bounds[rank], bounds[rank + 1]), *each]
        loss = loss + (whole[nodes] * numbers(len(nodes), WIDTH, seed=rank)).sum()
    (gradient,) = torch.autograd.grad(loss, whole)
    for rank, (rows, found, places) in enumerate(processes.run(fetch, needed)):
        assert torch.equal(rows, whole.detach()[needed[rank]])
        assert_close(found, gradient[bounds[rank] : bounds[rank + 1]])
        assert torch.equal(places, torch.arange(len(places)))


def test_products_with_a_matrix_and_their_gradients(processes: Processes) -> None:
    dense, whole = torch.from_numpy(matrix().toarray()).double(), numbers(NUM_NODES, WIDTH).requires_grad_()
    product = dense @ torch.tanh(dense @ whole)
    (gradient,) = torch.autograd.grad((product * numbers(NUM_NODES, WIDTH, seed=1)).sum(), whole)
    found = processes.run(multiply)
    assert_close(torch.cat([each[0] for each in found]), product.detach())
    assert_close(torch.cat([each[1] for each in found]), gradient)


def test_totals_and_their_gradients(processes: Processes) -> None:
    whole = numbers(NUM_NODES, WIDTH).requires_grad_()
    loss = whole.sum(dim=0).square().sum() + whole.square().sum()
    (gradient,) = torch.autograd.grad(whole.sum(dim=0).square().sum() + 2 * whole.square().sum(), whole)
    found = processes.run(add_up)
    assert_close(torch.cat([each[1] for each in found]), gradient)
    for value, _ in found:
        assert_close(value, loss.detach())


# ---------------------------------------------------------------------------------------------------------------- ring

KINDS = ("inner product", "one bias", "two biases", "row bias", "q and k", "all", "column bias")


@pytest.mark.parametrize("kind", KINDS)
def test_the_sum_over_all_pairs_goes_round_the_ring(processes: Processes, kind: str) -> None:
    whole = [each.requires_grad_() for each in given_factors()]
    made = factors_of(kind, whole)
    loss = all_pairs_softplus(made.q, made.columns, made.row_bias, made.column_bias)
    expected: tuple[Tensor | None, ...] = torch.autograd.grad(3 * loss, whole, allow_unused=True)
    found = processes.run(sweep, kind)
    for value, without, _, _ in found:
        assert_close(value, loss.detach())
        assert without.isnan()
    for which in (2, 3):
        for place, gradient in enumerate(expected):
            parts = [each[which][place] for each in found]
            if gradient is None:
                assert parts == [None] * processes.size
            else:
                assert_close(torch.cat(parts), gradient)


# -------------------------------------------------------------------------------------------------- alone: nodes, draws


@given(costs=st.lists(st.floats(0.01, 100), min_size=1, max_size=60), size=st.integers(1, 8))
def test_ranges_of_nodes_cover_all_and_cost_about_the_same(costs: list[float], size: int) -> None:
    if size > len(costs):
        with pytest.raises(InputError, match="more than the graph has nodes"):
            Shards.balanced(np.array(costs), size, 0)
        return
    shards = [Shards.balanced(np.array(costs), size, rank) for rank in range(size)]
    assert [node for each in shards for node in each.own] == list(range(len(costs)))
    assert all(len(each.own) >= 1 for each in shards)
    if len(costs) >= 4 * size and max(costs) * 4 * size <= sum(costs):
        mean = sum(costs) / size
        assert all(sum(costs[each.own.start : each.own.stop]) <= mean + max(costs) * 1.001 for each in shards)
    nodes = np.arange(len(costs))
    assert all((shards[0].owners(nodes)[each.own.start : each.own.stop] == each.rank).all() for each in shards)
    assert shards[0].split(nodes) == shards[0].counts


@pytest.mark.parametrize("many", [0, 2**40])  # numbers are passed over by a kernel, or drawn
@pytest.mark.parametrize("piece", [64, 2**20])
@pytest.mark.parametrize(
    ("num_rows", "width"), [(1, 1), (3, 5), (2, 16), (100, 16), (333, 7), (70, 1), (16, 17), (19, 7), (69, 1)]
)
def test_rows_of_a_draw_are_those_of_the_whole_draw(
    num_rows: int, width: int, piece: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "PIECE", piece)
    monkeypatch.setattr(draws, "MANY", many)
    for dtype in (torch.float32, torch.float64):
        for rows in (range(1), range(num_rows), range(num_rows // 3, num_rows // 2 + 1), range(num_rows - 1, num_rows)):
            whole, some = torch.Generator().manual_seed(5), RowGenerator.of(5, "cpu", num_rows, rows)
            kept = slice(rows.start, rows.stop)
            for _ in range(2):
                drawn = torch.randn(num_rows, width, dtype=dtype, generator=whole)
                assert torch.equal(some.normal((len(rows), width), dtype), drawn[kept])
                drawn = torch.rand(num_rows, width, dtype=dtype, generator=whole)
                assert torch.equal(some.uniform((len(rows), width), dtype), drawn[kept])
                drawn = torch.rand(50, dtype=dtype, generator=whole)
                assert torch.equal(some.some(range(7, 20), 50, dtype), drawn[7:20])
            assert torch.equal(whole.get_state(), some.get_state())
