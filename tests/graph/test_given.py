"""Splits of one's own: links, non-links and times, and what leaks."""

import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import vgae
from helpers import message_of, small_graphs
from vgae.graph.given import GivenSplit, NamedPairs, first_times, split_given, split_timed
from vgae.graph.graph import Graph
from vgae.graph.split import LeakError, LinkSplit, split_links
from vgae.graph.synthetic import stochastic_block_model

GRAPH = stochastic_block_model(60, 3, feature_dim=12, seed=5)
NAMED = GRAPH.with_parts(node_ids=np.array([f"n{k}" for k in range(60)]))


def as_set(pairs: Any) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in np.asarray(pairs).tolist()}


def non_links_of(graph: Graph) -> list[tuple[int, int]]:
    links = as_set(graph.edges)
    return [pair for pair in combinations(range(graph.num_nodes), 2) if frozenset(pair) not in links]


# --------------------------------------------------------------------------------------------------------------- links


@given(st.data())
def test_links_that_are_held_out_are_taken_out_of_any_graph(data: st.DataObject) -> None:
    graph = data.draw(small_graphs(4))
    edges = graph.edges.tolist()
    num = data.draw(st.integers(0, min(len(edges) - 1, len(non_links_of(graph)))))
    chosen = data.draw(st.permutations(edges))[:num]
    border = data.draw(st.integers(0, num))
    turned = [pair[::-1] if data.draw(st.booleans()) else pair for pair in chosen]  # a link is one in either direction
    split = LinkSplit.from_links(graph, val=turned[:border], test=turned[border:], seed=3)
    split.audit()
    assert as_set(split.val.links) == as_set(turned[:border])
    assert as_set(split.test.links) == as_set(turned[border:])
    assert as_set(split.train.edges) == as_set(graph.edges) - as_set(turned)
    assert (len(split.val.non_links), len(split.test.non_links)) == (border, num - border)
    assert not (as_set(split.val.non_links) | as_set(split.test.non_links)) & as_set(graph.edges)
    assert split.num_graph_links == graph.num_edges


@given(st.data())
def test_links_that_are_not_in_the_graph_leave_it_as_it_is(data: st.DataObject) -> None:
    graph = data.draw(small_graphs(5))
    others = non_links_of(graph)
    num = data.draw(st.integers(1, 3))
    assume(len(others) >= 2 * num)
    test = data.draw(st.permutations(others))[:num]
    split = LinkSplit.from_links(graph, test=test)
    assert_array_equal(split.train.edges, graph.edges)
    assert as_set(split.test.links) == as_set(np.array(test))
    assert not as_set(split.test.non_links) & (as_set(graph.edges) | as_set(np.array(test)))
    assert split.num_graph_links == graph.num_edges + num


def test_the_same_links_in_other_ways_are_the_same_split() -> None:
    """The whole graph, the training graph, or the whole graph with the links to train on."""
    drawn = split_links(GRAPH, val=0.1, test=0.2, seed=4)
    sets: dict[str, Any] = {"val": drawn.val.links, "test": drawn.test.links}
    others = {"val": drawn.val.non_links, "test": drawn.test.non_links}
    made = [
        LinkSplit.from_links(GRAPH, **sets, non_links=others),
        LinkSplit.from_links(drawn.train, **sets, non_links=others),
        LinkSplit.from_links(GRAPH, **sets, train=drawn.train.edges, non_links=others),
    ]
    assert {split.content_hash for split in made} == {drawn.content_hash}
    assert {split.num_graph_links for split in made} == {GRAPH.num_edges}
    assert made[0].train.content_hash == drawn.train.content_hash  # features and all


def test_a_fraction_is_drawn_from_what_is_left() -> None:
    test = GRAPH.edges[:20]
    splits = [LinkSplit.from_links(GRAPH, val=0.1, test=test, seed=seed) for seed in (0, 0, 1)]
    assert splits[0].content_hash == splits[1].content_hash != splits[2].content_hash
    for split in splits:
        split.audit()
        assert len(split.val.links) == (GRAPH.num_edges - 20) // 10
        assert as_set(split.test.links) == as_set(test)


def test_links_in_no_set_are_neither_trained_on_nor_taken_for_non_links() -> None:
    train, test = GRAPH.edges[:50], GRAPH.edges[50:60]
    made = split_given(GRAPH, GivenSplit(train=NamedPairs("a.csv", train), test=NamedPairs("b.csv", test)))
    assert_array_equal(made.split.train.edges, train)
    assert not as_set(made.split.test.non_links) & as_set(GRAPH.edges)
    assert made.notes == (f"{GRAPH.num_edges - 60} links of the graph are in none of the sets",)


def test_weights_and_directions_stay_with_their_links() -> None:
    edges = [(0, 1), (2, 1), (2, 3), (3, 4), (4, 0), (5, 0)]
    graph = Graph.from_edges(edges, weights=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], directed=True)
    split = LinkSplit.from_links(graph, test=[(2, 1)])
    weights = dict(zip(map(tuple, split.train.edges.tolist()), np.asarray(split.train.weights).tolist(), strict=True))
    assert weights == {(0, 1): 1.0, (2, 3): 3.0, (3, 4): 4.0, (0, 4): 5.0, (0, 5): 6.0}
    assert split.train.directed


def test_ids_that_are_text_name_the_nodes() -> None:
    named = [[f"n{i}", f"n{j}"] for i, j in GRAPH.edges[:7].tolist()]
    assert as_set(LinkSplit.from_links(NAMED, test=named).test.links) == as_set(GRAPH.edges[:7])
    message = message_of(lambda: LinkSplit.from_links(NAMED, test=[*named, ["n1", "nobody"], ["somebody", "n2"]]))
    assert "test: 2 of its 9 rows name a node that is not among the 60 nodes" in message
    assert "'nobody'" in message


def test_repetitions_and_self_pairs_are_dropped_with_a_note() -> None:
    first, second = GRAPH.edges[:2].tolist()
    test = [first, second, first[::-1], second, [7, 7]]
    with pytest.warns(UserWarning, match="test: 1 pair of a node with itself and 2 repeated pairs dropped"):
        split = LinkSplit.from_links(GRAPH, test=test)
    assert split.test.links.tolist() == [first, second]  # in the order they were given in
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinkSplit.from_links(GRAPH, test=[first, second])


def test_pairs_within_a_side_of_a_bipartite_graph_are_refused() -> None:
    sides = np.array([0, 0, 0, 1, 1, 1], dtype=np.uint8)
    graph = Graph.from_edges([(0, 3), (0, 4), (1, 4), (2, 5)]).with_parts(sides=sides)
    split = LinkSplit.from_links(graph, test=[(0, 4)], non_links={"test": [(1, 5)]})
    assert split.test.non_links.tolist() == [[1, 5]]
    assert (sides[LinkSplit.from_links(graph, test=[(0, 4)]).test.non_links] == [[0, 1]]).all()
    for sets in ({"test": [(0, 1)]}, {"test": [(0, 4)], "non_links": {"test": [(1, 5), (3, 5)]}}):
        message = message_of(lambda sets=sets: LinkSplit.from_links(graph, **sets))  # type: ignore[misc]
        assert "is within one side of the bipartite graph, such as" in message


def leaking(name: str) -> dict[str, Any]:
    """What is given for a split that leaks, by the kind of leak."""
    links, others = GRAPH.edges.tolist(), [list(pair) for pair in non_links_of(GRAPH)]
    return {
        "test in train": {"train": links[:50], "test": [*links[60:70], links[3][::-1], links[4]]},
        "validation in train": {"train": links[:50], "val": [links[0][::-1]]},
        "both held-out sets": {"val": links[:10], "test": [links[9][::-1], *links[20:30]]},
        "partly in the graph": {"test": [*links[:3], *others[:5]]},
        "non-link of training": {"test": links[:10], "non_links": {"test": [*others[:4], links[30][::-1]]}},
        "non-link of test": {"test": links[:10], "non_links": {"test": [*others[:4], links[2], links[5]]}},
        "non-link of the other set": {
            "val": links[:5],
            "test": links[5:10],
            "non_links": {"val": others[:5], "test": [others[4][::-1], others[5]]},
        },
    }[name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test in train", "test: 2 of its 12 test links are also in train (training links), in one direction or"),
        ("validation in train", "val: 1 of its 1 validation link is also in train"),
        ("both held-out sets", "test: 1 of its 11 test links is also in val (validation links)"),
        ("partly in the graph", "test: 3 of its 8 links are in the graph, such as 'n0' and 'n"),
        ("non-link of training", "non_links, test: 1 of its 5 non-links is a link of the graph"),
        ("non-link of test", "non_links, test: 2 of its 6 non-links are links of the graph"),
        ("non-link of the other set", "non_links, test: 1 of its 2 non-links is also in non_links, val"),
    ],
)
def test_leaks_are_refused_with_a_number_and_an_example(name: str, words: str) -> None:
    with pytest.raises(LeakError) as caught:
        LinkSplit.from_links(NAMED, **leaking(name))
    assert words in str(caught.value)
    assert "such as 'n" in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"train": [[0, 59]], "test": [[0, 1]]}, "not in the graph"),
        ({"test": [[0, 60]]}, "node indices run from 0 to 59"),
        ({"test": [[0.5, 1.0]]}, "integer node indices"),
        ({"test": GRAPH.edges}, "No links are left to train on"),
        ({"val": 1.5}, "val: a fraction"),
        ({"val": True}, "val: a fraction"),
        ({"val": 0.001}, "val: 0.001 of"),
        ({"test": GRAPH.edges[:3], "non_links": {"val": [[0, 1]]}}, "there are no validation links"),
        ({"test": GRAPH.edges[:3], "non_links": {"train": [[0, 1]]}}, "not to 'train'"),
        ({"test": GRAPH.edges[:3], "non_links": {"test": [[4, 4]]}}, "no pairs of different nodes"),
        ({"seed": -1}, "seed"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_makes_no_split_is_refused(sets: dict[str, Any], words: str) -> None:
    graph = Graph(GRAPH.num_nodes, GRAPH.edges[~(GRAPH.edges == [0, 59]).all(axis=1)])
    assert words in message_of(lambda: LinkSplit.from_links(graph, **sets))


def test_a_split_of_ones_own_is_saved_and_loaded(tmp_path: Path) -> None:
    drawn = split_links(GRAPH, seed=1)
    for number, graph in enumerate((GRAPH, drawn.train)):
        split = LinkSplit.from_links(graph, val=drawn.val.links, test=drawn.test.links)
        path = tmp_path / f"{number}.npz"
        split.save(path)
        for given_graph in (None, graph):
            loaded = LinkSplit.load(path, given_graph)
            assert loaded.content_hash == split.content_hash
            assert loaded.num_graph_links == GRAPH.num_edges
    other = stochastic_block_model(60, 3, feature_dim=12, seed=6)
    assert "made from another graph" in message_of(lambda: LinkSplit.load(tmp_path / "0.npz", other))


# --------------------------------------------------------------------------------------------------------------- times


@given(st.data())
def test_by_time_every_training_link_is_older_than_validation_and_that_than_test(data: st.DataObject) -> None:
    graph = data.draw(small_graphs(4))
    num_rows = data.draw(st.integers(graph.num_edges, 3 * graph.num_edges))
    extra = data.draw(st.lists(st.sampled_from(graph.edges.tolist()), min_size=0, max_size=num_rows))
    rows = [pair[::-1] if data.draw(st.booleans()) else pair for pair in [*graph.edges.tolist(), *extra]]
    times = data.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
    first = {frozenset(pair): 99 for pair in rows}
    for pair, time in zip(rows, times, strict=True):
        first[frozenset(pair)] = min(first[frozenset(pair)], time)
    assume(graph.num_edges >= 4 and len(non_links_of(graph)) >= graph.num_edges // 2)
    split = vgae.split_by_time(graph, times, links=rows, val=0.25, test=0.25, seed=data.draw(st.integers(0, 5)))
    split.audit()
    num = graph.num_edges // 4
    assert (len(split.val.links), len(split.test.links)) == (num, num)
    assert as_set(split.train.edges) | as_set(split.val.links) | as_set(split.test.links) == as_set(graph.edges)
    ages = [[first[link] for link in as_set(part)] for part in (split.train.edges, split.val.links, split.test.links)]
    assert max(ages[0]) <= min(ages[1])
    assert max(ages[1]) <= min(ages[2])


def test_links_of_the_same_time_are_divided_by_the_seed_and_that_is_said() -> None:
    times = np.repeat([2000, 2001], [GRAPH.num_edges - 10, 10])
    made = [split_timed(GRAPH, times, GivenSplit(val=0.0, test=0.2), seed=seed) for seed in (0, 0, 1)]
    assert made[0].split.content_hash == made[1].split.content_hash != made[2].split.content_hash
    newest = as_set(GRAPH.edges[-10:])
    assert all(newest <= as_set(each.split.test.links) for each in made)
    assert made[0].notes == (
        f"{GRAPH.num_edges - 10} links of the same time lie across a border and are divided by the seed",
    )
    apart = split_timed(GRAPH, np.arange(GRAPH.num_edges), GivenSplit(val=0.1, test=0.2))
    assert apart.notes == ()


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.uint16, "datetime64[D]", "datetime64[ns]"])
def test_times_are_numbers_or_dates_of_any_kind(kind: Any) -> None:
    order = np.random.default_rng(0).permutation(GRAPH.num_edges)
    split = vgae.split_by_time(GRAPH, order.astype(kind), val=0.1, test=0.1)
    num = GRAPH.num_edges // 10
    assert as_set(split.test.links) == as_set(GRAPH.edges[np.argsort(order)[-num:]])


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([1, 2], "one is needed for each of the"),
        ([np.nan] * GRAPH.num_edges, "without a time"),
        (["2020"] * GRAPH.num_edges, "numbers or NumPy dates are needed"),
        (np.full(GRAPH.num_edges, np.datetime64("NaT", "s")), "without a time"),
    ],
)
def test_times_that_are_none_are_refused(times: Any, words: str) -> None:
    assert words in message_of(lambda: vgae.split_by_time(GRAPH, times))


def test_a_link_without_a_row_has_no_time() -> None:
    rows = GRAPH.edges[1:]
    assert "without a time" in message_of(lambda: vgae.split_by_time(GRAPH, np.arange(len(rows)), links=rows))
    assert first_times(GRAPH, GRAPH.edges[:, ::-1], np.arange(GRAPH.num_edges)).tolist() == list(range(GRAPH.num_edges))
    assert "leaves no links to train on" in message_of(
        lambda: vgae.split_by_time(GRAPH, np.arange(GRAPH.num_edges), val=0.5, test=0.5)
    )
