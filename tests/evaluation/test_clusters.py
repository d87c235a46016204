"""ACC, NMI and ARI against scikit-learn and against all matches, on any labelling."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from helpers import message_of
from vgae.evaluation.clusters import evaluate_clusters


def best_match(groups: Any, labels: Any) -> float:
    """The best accuracy over all one-to-one matches, tried one by one."""
    names, classes = (np.unique(each).tolist() for each in (groups, labels))
    size = max(len(names), len(classes))
    names += [None] * (size - len(names))
    return max(
        float(np.mean([match[names.index(group)] == label for group, label in zip(groups, labels, strict=True)]))
        for match in permutations(classes + [None] * (size - len(classes)))
    )


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_scores_are_those_of_scikit_learn_and_of_the_best_match(pairs: list[tuple[int, int]]) -> None:
    groups, labels = np.array(pairs).T
    found = evaluate_clusters(groups, labels)
    assert found.nmi == pytest.approx(normalized_mutual_info_score(labels, groups), abs=1e-12)
    assert found.ari == pytest.approx(adjusted_rand_score(labels, groups), abs=1e-12)
    assert found.accuracy == pytest.approx(best_match(groups.tolist(), labels.tolist()))
    assert (found.num_nodes, found.num_classes) == (len(pairs), len(set(labels.tolist())))


def test_on_thousands_of_nodes() -> None:
    draws = np.random.default_rng(0)
    labels = draws.integers(0, 30, 20_000)
    groups = np.where(draws.random(20_000) < 0.4, labels, draws.integers(0, 50, 20_000))
    found = evaluate_clusters(groups, labels)
    assert found.nmi == pytest.approx(normalized_mutual_info_score(labels, groups), rel=1e-10)
    assert found.ari == pytest.approx(adjusted_rand_score(labels, groups), rel=1e-10)


@pytest.mark.parametrize(
    ("groups", "labels", "expected"),
    [
        ([0, 0, 0, 0], [0, 0, 1, 1], (0.5, 0.0, 0.0)),  # one cluster says nothing
        ([0, 1, 2, 3], [0, 0, 1, 1], (0.5, 2 / 3, 0.0)),  # nor do single nodes, but NMI is not corrected for chance
        ([5, 5, 5], [2, 2, 2], (1.0, 1.0, 1.0)),
        ([0, 1, 2], [7, 8, 9], (1.0, 1.0, 1.0)),
        ([3], [0], (1.0, 1.0, 1.0)),
        ([1, 1, 0, 0], ["a", "a", "b", "b"], (1.0, 1.0, 1.0)),  # whatever they are called
    ],
)
def test_partitions_that_say_nothing_or_everything(groups: Any, labels: Any, expected: tuple[float, ...]) -> None:
    found = evaluate_clusters(groups, labels)
    assert (found.accuracy, found.nmi, found.ari) == pytest.approx(expected)


@pytest.mark.parametrize("none", [-1, None, "", float("nan")])
def test_nodes_without_a_label_do_not_count(none: Any) -> None:
    labels = np.array(["a", "b", none, "a", "b", none], dtype=object)
    groups = np.array([0, 1, 1, 0, 0, 2])
    known = [0, 1, 3, 4]
    found, expected = evaluate_clusters(groups, labels), evaluate_clusters(groups[known], labels[known])
    assert found.notes == ("2 nodes without a label left out",)
    assert (found.accuracy, found.nmi, found.ari) == (expected.accuracy, expected.nmi, expected.ari)
    assert found.num_nodes == 4


def test_what_cannot_be_compared_is_refused() -> None:
    assert message_of(lambda: evaluate_clusters([0, 1], [-1, -1])) == "labels: no node has one."
    assert "3 labels given for 2 nodes" in message_of(lambda: evaluate_clusters([0, 1], [1, 2, 3]))
