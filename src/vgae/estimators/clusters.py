"""Groups of nodes: the components of a mixture prior, or k-means on the embeddings of any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.evaluation.clusters import ClusterScores, evaluate_clusters
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.frames import links_table, pandas_frame, pandas_index
from vgae.model.kmeans import kmeans
from vgae.model.priors import MixturePrior, Prior
from vgae.options import whole_number
from vgae.words import count

MIXTURE, KMEANS = "mixture", "kmeans"
TRAIN_ONE = "train one with --prior mixture:components=K"


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    """A cluster for each node of a graph, and how sure that is.

    By the `method` "mixture", clusters are the components of the model's prior, and `responsibilities` are p(k | z) at
    the embeddings (N×K); by "kmeans", they are those of k-means, and responsibilities are 1 or 0.
    """

    graph: Graph
    method: str
    assignment: IntArray
    responsibilities: npt.NDArray[np.float32]

    @property
    def num_clusters(self) -> int:
        """K, clusters without nodes included."""
        return len(self.responsibilities.T)

    @property
    def sizes(self) -> IntArray:
        """How many nodes each cluster has."""
        return np.bincount(self.assignment, minlength=self.num_clusters)

    @property
    def probabilities(self) -> npt.NDArray[np.float32]:
        """The responsibility of each node's own cluster."""
        return self.responsibilities[np.arange(len(self)), self.assignment]

    @property
    def ids(self) -> AnyArray:
        """The nodes' ids."""
        return self.graph.ids_of(np.arange(len(self)))

    def members(self, cluster: int) -> AnyArray:
        """The ids of the nodes of a cluster."""
        cluster = whole_number(cluster, "cluster", 0, self.num_clusters - 1)
        return self.graph.ids_of(np.flatnonzero(self.assignment == cluster))

    def scores(self, labels: Any = None) -> ClusterScores:
        """ACC, NMI and ARI against labels, the graph's own unless others are given; -1 or None means none."""
        labels = self.graph.labels if labels is None else labels
        if labels is None:
            raise InputError("labels: the graph has none to compare clusters with; give some.")
        return evaluate_clusters(self.assignment, labels)

    def to_frame(self) -> Any:
        """A pandas data frame, the nodes' ids as index: cluster and, of a mixture, probability, p0, p1, …."""
        return pandas_frame(self.columns(), index=pandas_index(self.graph.ids, "id"))

    def to_arrow(self) -> Any:
        """The same as an Arrow table with the column `id`; `polars.from_arrow` takes it as it is."""
        return links_table({"id": self.graph.ids}, self.columns())

    def columns(self) -> dict[str, AnyArray]:
        """What there is for each node, by name."""
        found: dict[str, AnyArray] = {"cluster": self.assignment}
        if self.method == MIXTURE:
            found["probability"] = self.probabilities
            found |= {f"p{k}": self.responsibilities[:, k].copy() for k in range(self.num_clusters)}
        return found

    def __len__(self) -> int:
        return len(self.assignment)

    def __repr__(self) -> str:
        return f"Clusters({count(self.num_clusters, 'cluster')} of {count(len(self), 'node')}, by {self.method})"


@torch.no_grad()
def clusters_of_mixture(graph: Graph, embeddings: Tensor, prior: Prior, what: str) -> Clusters:
    """The components of a mixture prior at the embeddings of a graph; `what` names the prior."""
    if not isinstance(prior, MixturePrior):
        raise InputError(
            f"clusters: the prior of this model is {what}, which has no clusters; {TRAIN_ONE}, or say how many "
            "clusters k-means is to find in the embeddings (k)."
        )
    if not bool(prior.begun):
        raise InputError(
            "clusters: the mixture of this model had not begun yet, because the weights are from within the warm-up "
            "(warm_up); train for more iterations than that."
        )
    found = prior.responsibilities(embeddings)
    return Clusters(graph, MIXTURE, found.argmax(dim=1).numpy(), found.numpy())


def clusters_by_kmeans(graph: Graph, embeddings: Tensor, k: int, seed: int) -> Clusters:
    """As many clusters as asked for, by k-means on embeddings."""
    k = whole_number(k, "k", 1, graph.num_nodes)
    generator = torch.Generator().manual_seed(whole_number(seed, "seed", 0, 2**32 - 1))
    found = kmeans(embeddings, k, generator).assignment.numpy()
    responsibilities = (found[:, None] == np.arange(k)).astype(np.float32)
    return Clusters(graph, KMEANS, found, responsibilities)
