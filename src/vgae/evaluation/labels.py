"""What embeddings say about the classes of nodes: how well a linear model reads them, and whether they form clusters.

linear probe   logistic regression on standardised embeddings, fitted to a tenth of the labelled nodes (at least one of
               every class) and judged by the others: accuracy, and F1 of the classes, as a mean over classes (macro)
               and over nodes (micro, which is the accuracy where a node has one class)
k-means        as many clusters as classes, of all labelled nodes: normalised mutual information, adjusted Rand index,
               and the accuracy of the best assignment of clusters to classes (Hungarian method)

Each is repeated with other nodes and other starts; what is reported are means and their standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.convert import to_array
from vgae.graph.pairs import AnyArray, IntArray
from vgae.options import number, whole_number
from vgae.words import count

REPEATS = 10
TRAIN_FRACTION = 0.1
PROBE = ("accuracy", "macro_f1", "micro_f1")
CLUSTERS = ("nmi", "ari", "clustering_accuracy")


@dataclass(frozen=True)
class LabelScores:
    """Mean and standard error of each score, how many nodes and classes they are about, and what is left out."""

    scores: Mapping[str, tuple[float, float]]
    num_nodes: int
    num_classes: int
    repeats: int
    most_frequent: float  # the share of the largest class: what always saying it would get
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `vgae evaluate --json` prints it."""
        facts = {name: getattr(self, name) for name in ("num_nodes", "num_classes", "repeats", "most_frequent")}
        scores = {name: {"mean": mean, "error": error} for name, (mean, error) in self.scores.items()}
        return facts | scores | {"notes": list(self.notes)}


def evaluate_labels(
    embeddings: npt.ArrayLike,
    labels: Any,
    *,
    repeats: int = REPEATS,
    train: float = TRAIN_FRACTION,
    seed: int = 0,
) -> LabelScores:
    """How well embeddings (N×d) tell the labels of nodes; the label -1 or None means none.

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> model = vgae.GAE(iterations=20, seed=0).fit(graph)
    >>> found = vgae.evaluate_labels(model.transform(), graph.labels)
    >>> mean, standard_error = found.scores["accuracy"]
    >>> 0 <= mean <= 1
    True
    """
    points = np.asarray(embeddings, dtype=np.float64)
    given = to_array(labels, "labels")
    if points.ndim != 2 or len(points) != len(given):
        raise InputError(f"labels: {count(len(given), 'label')} given for embeddings of the shape {points.shape}.")
    if not np.isfinite(points).all():
        raise InputError("embeddings: some of them are infinite or undefined.")
    repeats = whole_number(repeats, "repeats", 1)
    train = number(train, "train", above=0, most=0.99)
    kept, codes, notes = _classes(given)
    points = points[kept]
    sizes = np.bincount(codes)
    found: dict[str, list[float]] = {name: [] for name in (*PROBE, *CLUSTERS)}
    for repeat in range(repeats):
        stream = np.random.SeedSequence([whole_number(seed, "seed", 0), repeat])
        fitted = _some_of_each(codes, train, np.random.default_rng(stream))
        state = int(stream.generate_state(1)[0])
        for name, score in (*_probe(points, codes, fitted).items(), *_clusters(points, codes, state).items()):
            found[name].append(score)
    scores = {name: _mean_and_error(values) for name, values in found.items()}
    return LabelScores(scores, len(codes), len(sizes), repeats, float(sizes.max() / sizes.sum()), notes)


def known_labels(labels: AnyArray) -> tuple[IntArray, IntArray, IntArray]:
    """The nodes that have a label, its number among the classes, and the sizes of these."""
    none = (None, -1, "-1", "")
    texts = [None if label in none or label != label else str(label) for label in labels.tolist()]  # nan is none too
    kept = np.array([place for place, text in enumerate(texts) if text is not None], dtype=np.int64)
    if not len(kept):
        raise InputError("labels: no node has one.")
    _, codes, sizes = np.unique([texts[place] for place in kept], return_inverse=True, return_counts=True)
    return kept, codes.astype(np.int64), sizes


def _classes(labels: AnyArray) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """The same without classes of a single node, and what was left out."""
    kept, codes, sizes = known_labels(labels)
    single = sizes[codes] < 2
    notes = []
    if len(kept) < len(labels):
        notes.append(f"{count(len(labels) - len(kept), 'node')} without a label left out")
    if single.any():
        notes.append(f"{count(int(single.sum()), 'class', 'classes')} of a single node left out")
    kept, codes = kept[~single], codes[~single]
    _, codes = np.unique(codes, return_inverse=True)
    if len(np.unique(codes)) < 2:
        raise InputError("labels: two classes of at least two nodes each are needed.")
    return kept, codes.astype(np.int64), tuple(notes)


def _some_of_each(codes: IntArray, fraction: float, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """A fraction of the nodes of every class, at least one of them and not all."""
    fitted = np.zeros(len(codes), dtype=bool)
    for each in range(int(codes.max()) + 1):
        members = generator.permutation(np.flatnonzero(codes == each))
        fitted[members[: min(max(1, round(fraction * len(members))), len(members) - 1)]] = True
    return fitted


def _probe(points: npt.NDArray[np.float64], codes: IntArray, fitted: npt.NDArray[np.bool_]) -> dict[str, float]:
    linear, metrics = (import_module(f"sklearn.{name}") for name in ("linear_model", "metrics"))  # seconds to load
    mean, spread = points[fitted].mean(axis=0), points[fitted].std(axis=0)
    scaled = (points - mean) / np.where(spread > 0, spread, 1)
    model = linear.LogisticRegression(max_iter=1000).fit(scaled[fitted], codes[fitted])
    true, guessed = codes[~fitted], model.predict(scaled[~fitted])
    return {
        "accuracy": float(np.mean(true == guessed)),
        "macro_f1": float(metrics.f1_score(true, guessed, average="macro", zero_division=0)),
        "micro_f1": float(metrics.f1_score(true, guessed, average="micro")),
    }


def _clusters(points: npt.NDArray[np.float64], codes: IntArray, state: int) -> dict[str, float]:
    cluster, metrics = (import_module(f"sklearn.{name}") for name in ("cluster", "metrics"))
    optimize = import_module("scipy.optimize")
    num_classes = int(codes.max()) + 1
    distinct = len(np.unique(points, axis=0))
    groups = cluster.KMeans(min(num_classes, distinct), n_init=10, random_state=state).fit_predict(points)
    table = np.zeros((num_classes, num_classes))
    np.add.at(table, (groups, codes), 1)
    rows, columns = optimize.linear_sum_assignment(-table)
    return {
        "nmi": float(metrics.normalized_mutual_info_score(codes, groups)),
        "ari": float(metrics.adjusted_rand_score(codes, groups)),
        "clustering_accuracy": float(table[rows, columns].sum() / len(codes)),
    }


def _mean_and_error(values: list[float]) -> tuple[float, float]:
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return float(np.mean(values)), error
