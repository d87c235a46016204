"""What embeddings say about labels: by hand, against scikit-learn, and at the ends of what can be said."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import vgae
from helpers import message_of
from vgae.baselines import spectral_embedding
from vgae.evaluation.labels import LabelScores, _clusters, _some_of_each, evaluate_labels

SIX = ("accuracy", "macro_f1", "micro_f1", "nmi", "ari", "clustering_accuracy")


def blobs(num: int, num_classes: int, distance: float, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    codes = np.arange(num) % num_classes
    centres = distance * np.eye(num_classes)
    return centres[codes] + generator.normal(size=(num, num_classes)), codes


@pytest.mark.parametrize("num_classes", [2, 3, 7])
@pytest.mark.parametrize("kind", [lambda code: code, lambda code: f"class {code}", lambda code: ("c", int(code))])
def test_classes_that_lie_apart_are_told_apart(num_classes: int, kind: Any) -> None:
    points, codes = blobs(40 * num_classes, num_classes, 40.0)
    found = evaluate_labels(points, [kind(code) for code in codes.tolist()], repeats=3)
    for name in SIX:
        assert found.scores[name] == pytest.approx((1.0, 0.0), abs=1e-12)
    assert (found.num_nodes, found.num_classes, found.repeats) == (len(codes), num_classes, 3)
    assert found.most_frequent == pytest.approx(1 / num_classes)


def test_embeddings_that_know_nothing_are_no_better_than_chance() -> None:
    points, codes = blobs(600, 3, 0.0)
    found = evaluate_labels(points, codes)
    assert found.scores["accuracy"][0] == pytest.approx(1 / 3, abs=0.05)
    assert found.scores["ari"][0] == pytest.approx(0, abs=0.03)
    assert found.scores["nmi"][0] < 0.05


def test_means_and_errors_are_those_of_the_repetitions() -> None:
    points, codes = blobs(200, 4, 2.5)
    alone = [evaluate_labels(points, codes, repeats=k).scores for k in (1, 2, 3)]
    values = {name: [alone[0][name][0]] for name in SIX}
    for number in (2, 3):
        for name in SIX:
            values[name].append(number * alone[number - 1][name][0] - sum(values[name]))
    for name in SIX:
        error = np.std(values[name], ddof=1) / np.sqrt(3)
        assert alone[2][name] == pytest.approx((np.mean(values[name]), error), abs=1e-9)
        assert np.isnan(alone[0][name][1])
    assert evaluate_labels(points, codes, repeats=2, seed=1).scores != alone[1]
    assert evaluate_labels(points, codes, repeats=2).scores == alone[1]
    assert alone[2]["micro_f1"] == pytest.approx(alone[2]["accuracy"])


def test_clusters_are_matched_to_classes_in_the_best_way() -> None:
    points, codes = blobs(90, 3, 2.0)
    found = _clusters(points, codes, state=5)
    from_sklearn = KMeans(3, n_init=10, random_state=5).fit_predict(points)
    best = max(np.mean(np.array(order)[from_sklearn] == codes) for order in permutations(range(3)))
    assert found["clustering_accuracy"] == pytest.approx(best)
    assert found["nmi"] == pytest.approx(normalized_mutual_info_score(codes, from_sklearn))
    assert found["ari"] == pytest.approx(adjusted_rand_score(codes, from_sklearn))


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("sizes", [(2, 2), (2, 50, 7), (100, 3)])
def test_a_probe_is_fitted_to_some_of_every_class_and_not_to_all(fraction: float, sizes: tuple[int, ...]) -> None:
    codes = np.repeat(np.arange(len(sizes)), sizes)
    fitted = _some_of_each(codes, fraction, np.random.default_rng(0))
    for each, size in enumerate(sizes):
        number = int(fitted[codes == each].sum())
        assert 1 <= number <= size - 1
        assert number == pytest.approx(fraction * size, abs=1)


def test_nodes_without_a_label_and_classes_of_one_node_are_left_out() -> None:
    points, codes = blobs(60, 3, 40.0)
    labels: list[Any] = [f"c{code}" for code in codes.tolist()]
    labels[:5], labels[5] = [-1, None, "", float("nan"), "-1"], "alone"
    found = evaluate_labels(points, labels, repeats=2)
    assert (found.num_nodes, found.num_classes) == (54, 3)
    assert found.notes == ("5 nodes without a label left out", "1 class of a single node left out")
    assert found.scores["accuracy"][0] == 1.0


def test_embeddings_without_spread_are_judged_too() -> None:
    found = evaluate_labels(np.zeros((30, 4)), np.arange(30) % 3, repeats=2)
    assert found.scores["nmi"][0] == pytest.approx(0)
    assert found.scores["clustering_accuracy"][0] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("points", "labels", "words"),
    [
        (np.zeros((3, 2)), [1, 2], "2 labels given for embeddings of the shape (3, 2)"),
        (np.zeros((3, 2)), [-1, -1, -1], "no node has one"),
        (np.zeros((4, 2)), [1, 1, 1, 1], "two classes of at least two nodes"),
        (np.zeros((4, 2)), [1, 1, 2, 3], "two classes of at least two nodes"),
        (np.full((4, 2), np.nan), [1, 1, 2, 2], "infinite or undefined"),
    ],
)
def test_what_cannot_be_judged_is_refused(points: Any, labels: Any, words: str) -> None:
    assert words in message_of(lambda: evaluate_labels(points, labels))


def test_spectral_embeddings_of_cora_know_its_classes_and_json_is_plain() -> None:
    graph = vgae.load_dataset("cora")
    found = vgae.evaluate_labels(spectral_embedding(graph, dim=16).embedding, graph.labels, repeats=2)
    assert isinstance(found, LabelScores)
    assert found.scores["accuracy"][0] > found.most_frequent + 0.2
    plain = found.to_json()
    assert plain["accuracy"] == {"mean": found.scores["accuracy"][0], "error": found.scores["accuracy"][1]}
    assert plain["num_classes"] == 7
