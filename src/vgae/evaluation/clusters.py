"""How well a clustering agrees with the classes of nodes, whatever the clusters are called.

With n_kc nodes of the class c in the cluster k, n in all, and H the entropy of the shares,

    ACC   1/n max Σ n_k,m(k) over one-to-one matches m of clusters with classes (Hungarian method)
    NMI   I(clusters; classes) / ½ (H(clusters) + H(classes))
    ARI   (pairs together in both - what chance gives) / (½ (pairs in clusters + pairs in classes) - what chance gives)

NMI and ARI are 1 for the same partition and, on average, about 0 (ARI: exactly) for one that knows nothing. Two
partitions that are both a single group, or both single nodes, are the same. Nodes without a label do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.evaluation.labels import known_labels
from vgae.graph.convert import to_array
from vgae.graph.pairs import AnyArray, IntArray
from vgae.words import count

Table = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClusterScores:
    """ACC, NMI and ARI as fractions of 1, and how many nodes and classes they are about."""

    accuracy: float
    nmi: float
    ari: float
    num_nodes: int
    num_classes: int
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `vgae cluster --json` prints it."""
        scores = {"clustering_accuracy": self.accuracy, "nmi": self.nmi, "ari": self.ari}
        return {"num_nodes": self.num_nodes, "num_classes": self.num_classes, **scores, "notes": list(self.notes)}


def evaluate_clusters(assignment: Any, labels: Any) -> ClusterScores:
    """ACC, NMI and ARI of a cluster for each node against labels; the label -1 or None means none."""
    groups, given = to_array(assignment, "assignment"), to_array(labels, "labels")
    if len(groups) != len(given):
        raise InputError(f"labels: {count(len(given), 'label')} given for {count(len(groups), 'node')}.")
    kept, codes, _ = known_labels(given)
    left_out = len(given) - len(kept)
    table = contingency(groups[kept], codes)
    return ClusterScores(
        accuracy=matched_accuracy(table),
        nmi=normalized_mutual_information(table),
        ari=adjusted_rand_index(table),
        num_nodes=len(kept),
        num_classes=table.shape[1],
        notes=(f"{count(left_out, 'node')} without a label left out",) if left_out else (),
    )


def contingency(groups: AnyArray, codes: IntArray) -> Table:
    """Nodes by cluster (rows) and class (columns); clusters and classes without nodes have no row and no column."""
    rows, columns = (np.unique(each, return_inverse=True)[1] for each in (groups, codes))
    table = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1), dtype=np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def matched_accuracy(table: Table) -> float:
    """The share of nodes in the class that their cluster is matched with."""
    rows, columns = import_module("scipy.optimize").linear_sum_assignment(-table)  # half a second to load
    return float(table[rows, columns].sum() / table.sum())


def normalized_mutual_information(table: Table) -> float:
    """I(clusters; classes) over the mean of the two entropies."""
    shares = table / table.sum()
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    entropies = _entropy(rows) + _entropy(columns)
    if len(rows) == len(columns) == 1:
        return 1.0
    information = max(0.0, entropies - _entropy(shares.ravel()))
    return min(1.0, information / (0.5 * entropies))


def adjusted_rand_index(table: Table) -> float:
    """Pairs of nodes that are together in both, corrected for chance."""
    together, rows, columns = (_num_pairs(each) for each in (table, table.sum(axis=1), table.sum(axis=0)))
    pairs = _num_pairs(table.sum())
    by_chance = rows * columns / pairs if pairs else 0.0
    most = 0.5 * (rows + columns)
    return 1.0 if together == rows == columns else float((together - by_chance) / (most - by_chance))


def _entropy(shares: npt.NDArray[np.float64]) -> float:
    present = shares[shares > 0]
    return float(-(present * np.log(present)).sum())


def _num_pairs(sizes: Any) -> float:
    sizes = np.asarray(sizes, dtype=np.float64)
    return float((sizes * (sizes - 1) / 2).sum())
