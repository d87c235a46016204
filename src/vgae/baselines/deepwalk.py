"""DeepWalk (DW): skip-gram on random walks, scored by σ(ZZᵀ).

Ten walks of length 80 from every node of the training graph, as sentences for word2vec with a context of 10,
dimension 128, five negatives, one epoch. All walks take their steps together, as array operations.

A node without links stays where it is for a whole walk, so that it gets an embedding apart from all others like every
other node. That matters: in Citeseer three test links in ten have an end without training links, and if such nodes
were left at their random start the AUC would be 15 points lower. Hierarchical softmax in place of negatives gives an
AP three points higher on Cora and an AUC two points lower on Citeseer; the paper's figures are those of negatives.
"""

from importlib import import_module

import numpy as np
import numpy.typing as npt

from vgae.baselines.embedding import EmbeddingScorer
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray

DIM, NUM_WALKS, WALK_LENGTH, CONTEXT, NUM_NEGATIVES = 128, 10, 80, 10, 5


def deepwalk(
    graph: Graph,
    *,
    dim: int = DIM,
    num_walks: int = NUM_WALKS,
    walk_length: int = WALK_LENGTH,
    context: int = CONTEXT,
    seed: int = 0,
    workers: int = 1,
) -> EmbeddingScorer:
    """Embed the nodes of a training graph by skip-gram on random walks; one worker gives the same bits every time."""
    try:
        word2vec = import_module("gensim.models")  # an extra that takes its time to import
    except ImportError:
        raise InputError("DeepWalk needs gensim; install it with pip install 'vgae[baselines]'.") from None
    walks = random_walks(graph, num_walks=num_walks, walk_length=walk_length, seed=seed)
    names = np.arange(graph.num_nodes).astype(str)
    model = word2vec.Word2Vec(
        [names[walk].tolist() for walk in walks],
        vector_size=dim,
        window=context,
        sg=1,
        hs=0,
        negative=NUM_NEGATIVES,
        min_count=0,
        epochs=1,
        seed=seed,
        workers=workers,
    )
    order = [model.wv.key_to_index[name] for name in names.tolist()]
    embedding: npt.NDArray[np.float32] = model.wv.vectors[order]
    return EmbeddingScorer(embedding)


def random_walks(graph: Graph, *, num_walks: int, walk_length: int, seed: int) -> IntArray:
    """`num_walks` walks from every node, in random order, as rows of node indices."""
    generator = np.random.default_rng(seed)
    starts, neighbours = graph.adjacency.indptr.astype(np.int64), graph.adjacency.indices
    degrees = np.diff(starts)
    walks = np.empty((num_walks * graph.num_nodes, walk_length), dtype=np.int64)
    walks[:, 0] = np.concatenate([generator.permutation(graph.num_nodes) for _ in range(num_walks)])
    for step in range(1, walk_length):
        here = walks[:, step - 1]
        chosen = starts[here] + (generator.random(len(here)) * degrees[here]).astype(np.int64)
        chosen = np.minimum(chosen, len(neighbours) - 1)  # for a last node without links, whose choice is not used
        walks[:, step] = np.where(degrees[here] > 0, neighbours[chosen], here)
    return walks
