"""Pairs of nodes as samples, and how they are dealt out to training and test."""

# ruff: noqa: N806 - X is what scikit-learn calls it

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils import _safe_indexing

import vgae
from helpers import message_of, small_graphs

Samples = tuple[vgae.LinkSamples, Any]


@pytest.fixture(scope="module")
def samples() -> Samples:
    return vgae.link_samples(vgae.stochastic_block_model(80, 4, feature_dim=12, seed=9), seed=0)


@pytest.fixture(scope="module")
def directed() -> vgae.Graph:
    """With everything that a graph can have: features, labels, ids, weights and directions."""
    generator = np.random.default_rng(1)
    ids = [f"n{node}" for node in range(30)]
    return vgae.Graph.from_edges(
        [(ids[i], ids[j]) for i, j in generator.integers(30, size=(90, 2))],
        node_ids=ids,
        features=generator.normal(size=(30, 3)),
        labels=generator.integers(3, size=30),
        weights=generator.random(90) + 0.5,
        directed=True,
    )


def as_set(pairs: Any) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in np.asarray(pairs).tolist()}


@given(small_graphs(3), st.integers(0, 5))
def test_samples_are_all_links_and_as_many_non_links(graph: vgae.Graph, seed: int) -> None:
    available = graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges
    if available == 0:
        assert "no non-links" in message_of(lambda: vgae.link_samples(graph, seed=seed))
        return
    X, y = vgae.link_samples(graph, seed=seed)
    links = as_set(graph.edges)
    assert X.shape == (len(y), 2) == (graph.num_edges + min(graph.num_edges, available), 2)
    assert len(as_set(X)) == len(X)
    assert [pair in links for pair in map(tuple, np.asarray(X).tolist())] == (y == 1).tolist()
    np.testing.assert_array_equal(X.pairs, vgae.link_samples(graph, seed=seed)[0].pairs)


def test_samples_come_in_random_order(samples: Samples) -> None:
    X, y = samples
    first = y[: len(y) // 2].mean()
    assert 0.4 < first < 0.6
    assert not np.array_equal(X.pairs, vgae.link_samples(X.graph(y), seed=1)[0].pairs)


@pytest.mark.parametrize(
    "key", [np.array([5, 2, 2]), [7, 1], slice(3, 9), slice(None), "mask", (np.array([4, 0]), ...)], ids=str
)
def test_rows_are_taken_as_from_an_array(directed: vgae.Graph, key: Any) -> None:
    X, _ = vgae.link_samples(directed)
    key = np.arange(len(X)) % 3 == 0 if isinstance(key, str) else key
    taken = X[key]
    assert isinstance(taken, vgae.LinkSamples)
    np.testing.assert_array_equal(taken, np.asarray(X)[key])
    for name, values in taken.edge_values.items():
        np.testing.assert_array_equal(values, X.edge_values[name][key[0] if isinstance(key, tuple) else key])
    if not isinstance(key, tuple):
        np.testing.assert_array_equal(_safe_indexing(X, key), _safe_indexing(np.asarray(X), key))


def test_single_rows_and_columns_are_plain(samples: Samples) -> None:
    X, _ = samples
    array = np.asarray(X)
    np.testing.assert_array_equal(X[3], array[3])
    np.testing.assert_array_equal(X[:, 1], array[:, 1])
    np.testing.assert_array_equal(X[[0, 2], 1], array[[0, 2], 1])
    np.testing.assert_array_equal([tuple(pair) for pair in X], array)
    assert np.asarray(X, dtype=np.float64).dtype == np.float64


def test_samples_make_the_same_graph_again(directed: vgae.Graph) -> None:
    X, y = vgae.link_samples(directed)
    again = X.graph(y)
    assert again.content_hash == directed.content_hash
    assert again.weights is not None
    assert again.directed
    for name in ("labels", "node_ids", "features"):
        np.testing.assert_array_equal(getattr(again, name), getattr(directed, name))
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), 2))  # every row twice, in any order
    assert X[rows].graph(y[rows]).content_hash == directed.content_hash
    half = np.flatnonzero(y)[::2]
    expected = directed.with_edges(np.array(sorted(as_set(X.pairs[half]))))
    assert X[half].graph(y[half]).content_hash == expected.content_hash


def test_a_selection_knows_nothing_of_other_rows(directed: vgae.Graph) -> None:
    X, y = vgae.link_samples(directed)
    rows = np.flatnonzero(np.arange(len(X)) % 5)
    kept = pickle.dumps(X[rows])
    other = vgae.LinkSamples(X.pairs[rows], X.nodes, {name: of[rows] for name, of in X.edge_values.items()})
    assert kept == pickle.dumps(other)
    assert as_set(X[rows].graph(y[rows]).edges) == as_set(X.pairs[rows][y[rows] == 1])


def test_labels_may_be_booleans_or_floats(samples: Samples) -> None:
    X, y = samples
    expected = X.graph(y).content_hash
    assert X.graph(y.astype(bool)).content_hash == expected
    assert X.graph(y.astype(float).tolist()).content_hash == expected


def test_samples_that_contradict_themselves_are_refused(samples: Samples, directed: vgae.Graph) -> None:
    X, _ = samples
    assert "nothing to train on" in message_of(lambda: X.graph(np.zeros(len(X))))
    twice, labels = X[[0, 1, 0]], np.array([1, 1, 0])
    i, j = X.pairs[0].tolist()
    assert (
        message_of(lambda: twice.graph(labels))
        == f"y: the pair ({i}, {j}) is given as a link (1) and as a non-link (0)."
    )
    weighted, of = vgae.link_samples(directed)
    assert "weights are not known" in message_of(lambda: weighted.graph(1 - of))


def test_samples_load_neither_torch_nor_scikit_learn() -> None:
    code = (
        "import sys, vgae; X, y = vgae.link_samples([(0, 1), (1, 2), (2, 3), (4, 5)]); "
        "list(vgae.LinkKFold(2).split(X, y)); print([name for name in ('torch', 'sklearn') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


# ---------------------------------------------------------------------------------------------------------------- folds


@st.composite
def labelled_rows(draw: st.DrawFn) -> tuple[Any, Any]:
    """Rows of pairs with labels, some of them twice or the other way round."""
    graph = draw(small_graphs(6))
    pairs = np.array([(i, j) for i in range(graph.num_nodes) for j in range(i + 1, graph.num_nodes)])
    is_link = np.array([tuple(pair) in as_set(graph.edges) for pair in pairs.tolist()])
    rows = np.array(draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=60)))
    turned = np.array(draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    return np.where(turned[:, None], pairs[rows][:, ::-1], pairs[rows]), is_link[rows].astype(int)


def counts(pairs: Any, y: Any) -> dict[int, int]:
    return {label: len(as_set(pairs[y == label])) for label in (0, 1)}


@given(labelled_rows(), st.integers(2, 4), st.integers(0, 3))
def test_folds_part_the_pairs(data: tuple[Any, Any], num: int, seed: int) -> None:
    pairs, y = data
    folds = vgae.LinkKFold(num, seed=seed)
    if min(counts(pairs, y).values()) < num:
        assert f"{num} folds need at least {num}" in message_of(lambda: list(folds.split(pairs, y)))
        return
    tests = []
    for train, test in folds.split(pairs, y):
        assert sorted([*train, *test]) == list(range(len(pairs)))
        assert not as_set(pairs[train]) & as_set(pairs[test])
        tests.append((test, counts(pairs[test], y[test])))
    assert len(tests) == folds.get_n_splits(pairs, y) == num
    assert sorted(np.concatenate([test for test, _ in tests])) == list(range(len(pairs)))
    for label in (0, 1):
        sizes = [of[label] for _, of in tests]
        assert max(sizes) - min(sizes) <= 1


@given(labelled_rows(), st.sampled_from([0.1, 0.29, 0.5, 0.9]), st.integers(0, 3))
def test_shuffled_shares_are_drawn_from_both_kinds(data: tuple[Any, Any], share: float, seed: int) -> None:
    pairs, y = data
    shares = vgae.LinkShuffleSplit(3, test=share, seed=seed)
    of_all = counts(pairs, y)
    if min(of_all.values()) < 2:
        assert "at least 2" in message_of(lambda: list(shares.split(pairs, y)))
        return
    found = list(shares.split(pairs, y))
    assert len(found) == shares.get_n_splits() == 3
    for train, test in found:
        assert sorted([*train, *test]) == list(range(len(pairs)))
        assert not as_set(pairs[train]) & as_set(pairs[test])
        for label, num in counts(pairs[test], y[test]).items():
            assert num == max(1, round(share * 100) * of_all[label] // 100)


def test_folds_follow_from_the_seed(samples: Samples) -> None:
    for make in (vgae.LinkKFold, vgae.LinkShuffleSplit):
        first, again, other = ([test.tolist() for _, test in make(3, seed=seed).split(*samples)] for seed in (0, 0, 1))
        assert first == again != other
        assert first[0] != first[1]
    assert repr(vgae.LinkKFold(3)) == "LinkKFold(n_splits=3, seed=0)"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: vgae.LinkKFold(1), "n_splits: a whole number of at least 2 is needed, got 1."),
        (lambda: vgae.LinkShuffleSplit(0), "n_splits: a whole number of at least 1 is needed, got 0."),
        (lambda: vgae.LinkShuffleSplit(test=1.0), "test: a fraction above 0 and below 1 is needed, got 1.0."),
        (lambda: vgae.LinkShuffleSplit(test=30), "test: a fraction above 0 and below 1 is needed, got 30."),
        (lambda: vgae.LinkKFold(seed=-1), "seed: a whole number from 0 to 18446744073709551615 is needed, got -1."),
    ],
)
def test_wrong_folds_get_one_sentence(make: Callable[[], object], sentence: str) -> None:
    assert message_of(make) == sentence
