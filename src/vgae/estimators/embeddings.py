"""Whatever can be asked of anything that scores pairs and has a vector for each node."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.estimators.clusters import TRAIN_ONE, Clusters, clusters_by_kmeans
from vgae.estimators.links import FloatArray, LinkPredictor
from vgae.graph.lookup import find_node, is_name
from vgae.io.embeddings import arrow_table, data_frame
from vgae.io.plain import as_path
from vgae.ops import Excluded, Factors, LogitRows, top_of_each_row
from vgae.options import whole_number


class EmbeddingPredictor(LinkPredictor):
    """A `LinkPredictor` with embeddings, which `_embeddings` gives."""

    def _embeddings(self) -> Tensor:
        """A row for each node of the graph (N×d), on the CPU."""
        raise NotImplementedError

    @property
    def likeness(self) -> str:
        """What `similar` goes by: cosine, or nearness, 1 / (1 + distance)."""
        return "cosine"

    def _alike(self) -> LogitRows:
        """How much alike nodes are, by rows."""
        return Factors(torch.nn.functional.normalize(self._embeddings(), dim=1))

    def transform(self) -> FloatArray:
        """Embeddings (N×d) of the nodes."""
        embeddings: FloatArray = self._embeddings().numpy()
        return embeddings.copy()

    def similar(self, node: Any, k: int = 10, *, ids: bool = False) -> list[tuple[Any, float]]:
        """The `k` nodes whose embeddings are most like this one's, best first, with how much alike they are.

        `likeness` names the measure, which is that of the model's decoder: the cosine of two embeddings or, where links
        go by distance, the nearness 1 / (1 + distance). A dimension that holds a bias or a mass does not count.

        A node that is named by its id is answered in ids, one that is named by its index in indices; `logits` says
        which is which.
        """
        row = find_node(self.graph_, node, ids=ids)
        k = whole_number(k, "k", 1)
        alike = self._alike()
        nobody = Excluded.of(self.graph_.edges[:0], self.graph_.num_nodes, alike.device)
        found = top_of_each_row(alike, top=k, rows=[row], excluded=nobody)
        near = found.pairs[:, 1].numpy()
        names = self.graph_.ids_of(near) if is_name(node, ids) else near
        return list(zip(names.tolist(), found.logits.tolist(), strict=True))

    def clusters(self, k: int | None = None, *, seed: int = 0) -> Clusters:
        """The nodes in `k` clusters, by k-means on their embeddings."""
        if k is None:
            raise InputError(
                f"k: say how many clusters k-means is to find in the embeddings; to find them in training, {TRAIN_ONE}."
            )
        return clusters_by_kmeans(self.graph_, self._embeddings(), k, seed)

    def explore(
        self,
        path: str | Path,
        *,
        projection: str = "tsne",
        clusters: int | None = None,
        top: int = 200,
        title: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a page for a browser, one file that asks for nothing: a map of the nodes, their links and new ones.

        The page computes the probability of any pair from the embeddings. `projection` (tsne or pca) is how these are
        brought to two dimensions, `clusters` how many k-means finds, `top` how many of the best new links the page
        lists, `title` what the page is called, and `attributes` columns to show and colour by: names, and a value for
        each node.
        """
        exploring = import_module("vgae.estimators.exploring")  # which few ask for
        options = exploring.ExploreOptions(projection, clusters, top, title)
        written: Path = exploring.write_explorer(self, as_path(path, "path"), options, attributes)
        return written

    def to_frame(self) -> Any:
        """The embeddings as a pandas data frame: columns z1, z2, …, the nodes' ids as index."""
        return data_frame(self.graph_.ids, self.transform())

    def to_arrow(self) -> Any:
        """The embeddings as an Arrow table: `id`, z1, z2, …; `polars.from_arrow` takes it as it is."""
        return arrow_table(self.graph_.ids, self.transform())

    def to_pyg(self) -> Any:
        """The training graph for PyTorch Geometric: embeddings as `x`, links in the ways that they go, `node_ids`."""
        try:
            data = import_module("torch_geometric.data")
        except ImportError:
            raise InputError("to_pyg needs PyTorch Geometric; install it with pip install 'vgae[pyg]'.") from None
        graph = self.graph_
        both_ways = graph.arcs if graph.directed else np.concatenate([graph.edges, graph.edges[:, ::-1]])
        links = torch.tensor(both_ways.T.copy())
        return data.Data(x=torch.from_numpy(self.transform()), edge_index=links, node_ids=list(self.graph_.ids))
