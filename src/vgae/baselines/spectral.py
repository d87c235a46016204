"""Spectral clustering's embedding (SC): eigenvectors of the normalised Laplacian, scored by σ(ZZᵀ).

scikit-learn's spectral embedding, dimension 128. It expects a connected graph: every further component of a training
graph costs one of the 128 dimensions for nothing but its own outline, and training graphs fall apart into hundreds of
components. So one node is added that is weakly linked to all others, which makes the graph connected and is left out of
the result. This is the well-known regularisation of spectral clustering, by a small uniform link between all nodes.
"""

from importlib import import_module

import numpy as np
import scipy.sparse as sp

from vgae.baselines.embedding import EmbeddingScorer
from vgae.errors import InputError
from vgae.graph.graph import Graph

DIM = 128
LINK_TO_HUB = 0.1  # weight of the added links, where a real one has weight 1


def spectral_embedding(graph: Graph, *, dim: int = DIM, seed: int = 0) -> EmbeddingScorer:
    """Embed the nodes of a training graph by its Laplacian's lowest eigenvectors."""
    if dim >= graph.num_nodes - 1:
        raise InputError(
            f"Spectral embedding in {dim} dimensions needs more than {dim + 1} nodes, not {graph.num_nodes}."
        )
    to_hub = np.full((graph.num_nodes, 1), LINK_TO_HUB)
    connected = sp.block_array([[graph.adjacency.astype(np.float64), to_hub], [to_hub.T, None]], format="csr")
    connected.indices = connected.indices.astype(np.int32)
    connected.indptr = connected.indptr.astype(np.int32)
    manifold = import_module("sklearn.manifold")  # takes its time to import
    embedding = manifold.spectral_embedding(connected, n_components=dim, random_state=seed, drop_first=True)
    return EmbeddingScorer(embedding[:-1].astype(np.float32))
