"""Whatever is given where a graph is made: a graph comes out, or one sentence."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from helpers import message_of
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import check_nodes, check_pairs
from vgae.graph.split import split_links
from vgae.graph.synthetic import rmat, stochastic_block_model
from vgae.words import shown

PATH = [(0, 1), (1, 2), (2, 3)]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 8),
    st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, -(10**400)]),
    st.builds(pow, st.just(10), st.just(5000)),
    st.sampled_from([0]),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from([datetime.date(2020, 1, 2), Decimal("1.5"), Ellipsis, object(), int, print, frozenset({1}), 1j]),
    st.sampled_from([np.int8(3), np.float32(1.5), np.datetime64("2020-01-01"), np.str_("a\0"), np.bool_(True)]),
    st.sampled_from(
        [torch.tensor(3), torch.tensor([0, 1]), torch.ones(2, 2).to_sparse(), torch.ones(2, dtype=torch.bfloat16)]
    ),
)
ARRAYS = st.one_of(
    hnp.arrays(
        st.sampled_from(["i1", "u8", "f4", "f8", "c8", "?", "U2", "S2", "O", "M8[D]", "m8[s]", "i4,f4", ">i8"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=None,
        fill=st.nothing(),
    ).filter(lambda array: array.dtype != object),
    st.lists(SCALARS, min_size=1, max_size=6).map(lambda items: np.fromiter(items, dtype=object, count=len(items))),
    st.lists(st.tuples(SCALARS, SCALARS), min_size=1, max_size=3).map(lambda rows: objects_in_rows(rows)),
    st.sampled_from(
        [np.ma.masked_equal([[0, 1], [1, 2]], 2), np.matrix([[0, 1], [1, 2]]), np.array(5), np.empty((0, 2))]
    ),
    st.sampled_from(
        [sp.csr_array(np.eye(4)), sp.coo_array(np.ones((4, 4))), sp.csr_array(np.eye(4) * 1j), sp.coo_array([1, 0])]
    ),
)
JUNK = st.recursive(
    st.one_of(SCALARS, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(st.tuples(inner, inner), max_size=4),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
        st.lists(inner, max_size=3).map(lambda items: (item for item in items)),
        st.sets(st.integers(0, 5), max_size=3),
    ),
    max_leaves=8,
)


def objects_in_rows(rows: list[tuple[Any, Any]]) -> Any:
    flat = [item for row in rows for item in row]
    return np.fromiter(flat, dtype=object, count=len(flat)).reshape(-1, 2)


def one_of_two(make: Callable[[], object]) -> None:
    """A result, or an InputError of one short line."""
    said = ""
    try:
        made = make()
    except InputError as error:
        said, made = str(error), None
    assert "\n" not in said
    assert len(said) < 500
    if isinstance(made, Graph):
        assert_sound(made)


def assert_sound(graph: Graph) -> None:
    """A graph that can be printed, hashed, split into nothing, and made again of its own parts."""
    assert repr(graph).startswith("Graph(")
    again = Graph(graph.num_nodes, graph.edges, graph.features, graph.labels, graph.node_ids, weights=graph.weights)
    assert again.content_hash == graph.without_features().content_hash or graph.directed or graph.features is not None
    assert (
        graph.index_of(graph.ids_of(np.arange(graph.num_nodes)[:3]).tolist()).tolist()
        == list(range(graph.num_nodes))[:3]
    )


@settings(max_examples=400)
@given(JUNK)
def test_anything_for_edges(junk: Any) -> None:
    one_of_two(lambda: Graph.of(junk))


@settings(max_examples=200)
@given(JUNK)
def test_anything_for_the_bare_constructor(junk: Any) -> None:
    one_of_two(lambda: Graph(4, junk))


@settings(max_examples=500)
@given(st.sampled_from(["num_nodes", "node_ids", "features", "labels", "weights", "directed"]), JUNK, st.booleans())
def test_anything_for_an_attribute(name: str, junk: Any, bare: bool) -> None:
    options: dict[str, Any] = {"num_nodes": 4, name: junk}
    if not bare:
        one_of_two(lambda: Graph.from_edges(PATH, **options))
        one_of_two(
            lambda: Graph.from_scipy(sp.csr_array(np.eye(4, k=1)), **{name: junk} if name != "num_nodes" else {})
        )
        return
    options["directions" if name == "directed" else name] = options.pop(name)
    one_of_two(lambda: Graph(**{"edges": np.array(PATH)} | options))


@settings(max_examples=150)
@given(JUNK, JUNK)
def test_anything_for_other_constructors(junk: Any, other: Any) -> None:
    ring = nx.cycle_graph(4)
    for node in ring:
        ring.nodes[node]["x"] = junk
    for one, two in ring.edges:
        ring.edges[one, two]["w"] = other
    one_of_two(lambda: Graph.from_networkx(ring, features="x"))
    one_of_two(lambda: Graph.from_networkx(ring, label="x"))
    one_of_two(lambda: Graph.from_networkx(ring, weight="w"))
    for make in (Graph.from_scipy, Graph.from_networkx, Graph.from_pyg):
        one_of_two(lambda make=make: make(junk))  # type: ignore[misc]


@settings(max_examples=200)
@given(JUNK)
def test_anything_for_pairs_nodes_and_ids(junk: Any) -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "c")])
    for take in (
        lambda: check_pairs(junk, 4),
        lambda: check_nodes(junk, 4),
        lambda: graph.index_of(junk),
        lambda: graph.ids_of(junk),
        lambda: Graph.from_edges(PATH).index_of(junk),
        lambda: graph.with_edges(junk),
        lambda: split_links(junk),
    ):
        one_of_two(take)


@settings(max_examples=200)
@given(st.sampled_from(["num_nodes", "num_blocks", "degree_within", "degree_between", "feature_dim", "seed"]), SCALARS)
def test_anything_for_graphs_made_up(name: str, junk: Any) -> None:
    small = isinstance(junk, int) and junk > 100
    if not (small and name in ("num_nodes", "feature_dim")):
        one_of_two(lambda: stochastic_block_model(**{"num_nodes": 12, "num_blocks": 2, name: junk}))
    if name in ("num_nodes", "seed") and not small:
        one_of_two(lambda: rmat(**{"num_nodes": 12, "num_edges": 5, name: junk}))
    one_of_two(lambda: rmat(12, 5, probabilities=(junk, 0.25, 0.25, 0.25)))


@pytest.mark.parametrize(
    "number",
    [np.inf, -np.inf, np.nan, 2.5, 4.0, True, "4", b"4", None, -1, 10**30, -(10**30), 1j, [4], np.array([4]), ...],
    ids=shown,
)
def test_a_number_of_nodes_that_is_none_is_named(number: Any) -> None:
    message = message_of(lambda: Graph(number, np.array(PATH)))
    too_many = "The graph would have more than 2**64 nodes, more than the 100,000,000 that are supported"
    words = "num_nodes: a whole number of at least 0 is needed"
    assert message.startswith(too_many if shown(number) == shown(10**30) else words)
    if number is not None:
        assert message_of(lambda: Graph.from_edges(PATH, num_nodes=number)) == message


@pytest.mark.parametrize("number", [4, np.int8(4), np.uint64(4), np.array(4), torch.tensor(4)], ids=str)
def test_a_number_of_nodes_may_be_any_integer(number: Any) -> None:
    graph = Graph.from_edges(PATH, num_nodes=number)
    assert (graph.num_nodes, type(graph.num_nodes)) == (4, int)


@pytest.mark.parametrize(
    "edges",
    [
        np.array(PATH, dtype=complex),
        np.array(PATH, dtype=bool),
        np.array(PATH).astype("datetime64[D]"),
        [(True, False)],
        [(1 + 2j, 3)],
        [(datetime.date(2020, 1, 1), datetime.date(2020, 1, 2))],
        ["ab", "cd"],
        [b"ab"],
        np.array([[2**63 + 5, 0]], dtype=np.uint64),
        [(-1, -2)],
        [(0, None)],
        [("a", float("nan"))],
    ],
    ids=shown,
)
def test_endpoints_of_another_kind_are_refused(edges: Any) -> None:
    assert message_of(lambda: Graph.from_edges(edges)).startswith(("edges: ", "node_ids: "))


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2020, 1, 1),
        datetime.datetime(2020, 1, 1),
        np.datetime64("2020-01-01"),
        np.timedelta64(5, "s"),
        Decimal(1),
        frozenset("a"),
        ...,
        1j,
        b"a\0",
        (1, (2, datetime.date(2020, 1, 1))),
        10**5000,
    ],
    ids=shown,
)
@pytest.mark.parametrize("what", ["node_ids", "labels"])
def test_ids_and_labels_that_cannot_be_stored_are_refused_at_once(value: Any, what: str) -> None:
    values = [value, "a", "b", "c"]
    for given_values in (values, np.fromiter(values, dtype=object, count=4)):
        options: dict[str, Any] = {what: given_values}
        message = message_of(lambda options=options: Graph(4, np.array(PATH), **options))  # type: ignore[misc]
        assert message.startswith(f"{what}: entry 0 is ")
        assert "cannot be stored; make it text" in message
    edges = [(value, "b"), ("b", "c")]
    assert "cannot be stored" in message_of(lambda: Graph.from_edges(edges))
    assert "cannot be stored" in message_of(lambda: Graph.from_networkx(nx.Graph(edges)))


@pytest.mark.parametrize("kind", ["datetime64[D]", "timedelta64[s]", "complex128", [("a", "i4"), ("b", "i4")]])
@pytest.mark.parametrize("what", ["node_ids", "labels"])
def test_arrays_of_dates_and_the_like_are_refused_at_once(kind: Any, what: str) -> None:
    options: dict[str, Any] = {what: np.arange(4).astype(kind)}
    message = message_of(lambda: Graph.from_scipy(sp.csr_array(np.eye(4, k=1)), **options))
    assert message.startswith(f"{what}: values of type ")
    assert "make them text" in message


def test_tuples_are_taken_to_a_depth_that_json_can_hold() -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = (deep,)
    Graph.from_edges([(deep, "a")])
    assert "cannot be stored" in message_of(lambda: Graph.from_edges([((deep,), "a")]))
