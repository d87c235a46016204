"""Nodes by index and by id: one rule, whatever the ids are, and sentences that help whoever breaks it."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import message_of
from vgae.graph.graph import Graph
from vgae.graph.lookup import find_node, find_nodes, find_pairs

LES_MISERABLES = Graph.from_networkx(nx.les_miserables_graph())


def named(ids: list[Any]) -> Graph:
    """A ring of nodes with these ids."""
    return Graph.from_edges(list(zip(ids, [*ids[1:], ids[0]], strict=True)), node_ids=ids)


@given(
    ids=st.lists(
        st.one_of(st.text(), st.integers(-(2**70), 2**70), st.tuples(st.integers(0, 9), st.text(max_size=3))),
        min_size=3,
        max_size=12,
        unique=True,
    ),
    data=st.data(),
)
def test_ids_of_any_kind_are_found_again(ids: list[Any], data: st.DataObject) -> None:
    graph = named(ids)
    places = st.integers(0, len(ids) - 1)
    pairs = data.draw(st.lists(st.tuples(places, places), max_size=5))
    by_id = [(ids[i], ids[j]) for i, j in pairs]
    assert [tuple(pair) for pair in find_pairs(graph, by_id, ids=True).tolist()] == pairs
    assert [tuple(pair) for pair in find_pairs(graph, pairs).tolist()] == pairs  # whole numbers are indices
    for place, name in enumerate(ids):
        assert find_node(graph, name, ids=True) == place
        if not isinstance(name, int):
            assert find_node(graph, name) == place
            assert find_nodes(graph, [name]) == [place]
        elif str(name) not in ids:
            assert find_node(graph, str(name)) == place


def test_the_same_pairs_in_every_container() -> None:
    names = [("Valjean", "Javert"), ("Cosette", "Marius")]
    expected = [LES_MISERABLES.index_of(pair).tolist() for pair in names]
    given = (
        names,
        tuple(names),
        [list(pair) for pair in names],
        np.array(names),
        np.array(names, dtype=object),
        pd.DataFrame(names),
        expected,
        np.array(expected, dtype=np.int32),
        torch.tensor(expected),
        [("Valjean", expected[0][1]), (expected[1][0], "Marius")],  # one by its id, the other by its index
    )
    for pairs in given:
        assert find_pairs(LES_MISERABLES, pairs).tolist() == expected
    assert find_nodes(LES_MISERABLES, pd.Series(["Valjean", "Javert"])) == expected[0]
    assert find_pairs(LES_MISERABLES, []).shape == find_pairs(LES_MISERABLES, [], ids=True).shape == (0, 2)


def test_whole_numbers_are_indices_and_text_of_them_ids() -> None:
    graph = named([3, 0, 12, 1])
    assert find_pairs(graph, [(3, 0)]).tolist() == [[3, 0]]
    assert find_pairs(graph, [("3", "0")]).tolist() == find_pairs(graph, [(3, 0)], ids=True).tolist() == [[0, 1]]
    assert find_nodes(graph, np.array([12, 3]), ids=True) == [2, 0]
    hint = "but node indices run from 0 to 3; whole numbers are indices, so give ids as text or with ids=True."
    assert message_of(lambda: find_pairs(graph, [(1, 2), (12, 1)])) == f"pairs: row 1 is (12, 1), {hint}"
    assert message_of(lambda: find_nodes(graph, [12])) == f"nodes: 12 was given, {hint}"
    assert message_of(lambda: find_node(graph, 12)) == f"node: 12 was given, {hint}"
    padded = named(["01", "1", "001"])
    assert find_nodes(padded, ["001", "1"]) == [2, 1]
    assert "'0001'" in message_of(lambda: find_node(padded, "0001"))
    mixed = named([5, "5", "x"])
    assert (find_node(mixed, "5"), find_node(mixed, 5, ids=True), find_node(mixed, 2)) == (1, 0, 2)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("Valjan", "Javert")], "row 0 names 'Valjan', which is not the id of a node; did you mean 'Valjean'?"),
        ([("Javert", 3), ("JAVERT", 3)], "row 1 names 'JAVERT', which is not the id of a node; did you mean 'Javert'?"),
        ([("Zzz", "Javert")], "ids look like 'Napoleon', 'Myriel', 'MlleBaptistine'."),
        ([("Javert", 77)], "row 0 names 77, but node indices run from 0 to 76; whole numbers are indices"),
        ([("Javert", 1.5)], "row 0 names 1.5; a node is named by its index, a whole number, or by its id, a text."),
        ([("Javert", True)], "row 0 names True; a node is named"),
        ([("Javert", None)], "row 0 names None; a node is named"),
        (("Valjean", "Javert"), "row 0 is 'Valjean', which is no pair of nodes; give a list of pairs."),
        ([("Valjean", "Javert", "Cosette")], "row 0 is ('Valjean', 'Javert', 'Cosette'), which is no pair"),
        (np.array(["Valjean", "Javert"]), "expected two columns of nodes, got an array of shape (2,)"),
    ],
    ids=repr,
)
def test_pairs_that_cannot_be_found_are_named(pairs: Any, words: str) -> None:
    message = message_of(lambda: find_pairs(LES_MISERABLES, pairs))
    assert message.startswith("pairs: ")
    assert words in message


def test_with_ids_true_nothing_is_an_index() -> None:
    assert "0, which is not the id of a node" in message_of(lambda: find_node(LES_MISERABLES, 0, ids=True))
    assert "which can be no id" in message_of(lambda: find_nodes(LES_MISERABLES, [[1]], ids=True))
    assert message_of(lambda: find_node(LES_MISERABLES, 0, ids="yes")).startswith("ids: ")  # type: ignore[arg-type]


def test_near_ids_are_found_among_very_many_and_long_ones_are_cut() -> None:
    graph = named([f"user-{number}" for number in range(30_000)] + ["Valjean", "x" * 500])
    assert message_of(lambda: find_node(graph, "valjan")).endswith("did you mean 'Valjean'?")
    assert len(message_of(lambda: find_node(graph, "x" * 499))) < 250
