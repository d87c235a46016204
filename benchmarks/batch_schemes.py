"""Three ways to give a GCN the neighbours of a step's nodes, at the same memory.

    halo      all neighbours: what the encoder gives is exact (vgae.model.neighbourhoods, what `batch_size` does)
    sampled   two random neighbours of each node, weighted by one over their probability, in place of all
    history   hidden values of the nodes themselves, and of neighbours those of the last step that has seen them

Each takes a part of the nodes so large that its steps have as many hidden rows as asked for; the N rows of the history,
which have no gradients, count a fifth each. A GAE with the paper's options is trained by each, and at its end the
gradient of 40 steps is compared with the exact objective's: error is their mean squared distance, bias that of their
mean less what 40 draws leave of the noise, both relative to the square of the exact gradient.

    python benchmarks/batch_schemes.py [--graph pubmed] [--rows 8000] [--splits 2]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

import vgae
from vgae.evaluation.metrics import auc_and_ap
from vgae.model.autoencoder import AutoEncoder
from vgae.model.encoders import GCN, GCNEncoder
from vgae.model.encoders.base import side_by_side
from vgae.model.inputs import EncoderInputs, Layout
from vgae.model.neighbourhoods import Hops, Neighbourhoods
from vgae.model.prepared import PreparedInputs
from vgae.objective.batched import BatchedObjective
from vgae.objective.exact import ExactObjective
from vgae.objective.partition import BatchOptions
from vgae.ops import SparseMatrix
from vgae.train.adam import Adam
from vgae.train.config import Config

NEIGHBOURS = 2
CONFIG = Config(model="gae")


class Sampled(Neighbourhoods):
    """Some neighbours of each node in place of all."""

    draws = np.random.default_rng(0)

    def around(self, nodes: Any) -> PreparedInputs:
        rows = self.propagation[nodes].tocoo()
        own = nodes[rows.row] == rows.col
        key = np.where(own, -1.0, self.draws.random(rows.nnz))
        order = np.lexsort([key, rows.row])
        counts = np.bincount(rows.row, minlength=len(nodes))
        rank = np.arange(rows.nnz) - np.repeat(np.cumsum(counts) - counts, counts)  # 0 is the node itself
        taken = order[rank <= NEIGHBOURS]
        weight = np.maximum((counts[rows.row[taken]] - 1) / NEIGHBOURS, 1.0)
        data = (rows.data[taken] * np.where(own[taken], 1.0, weight)).astype(np.float32)
        found = np.concatenate([nodes, np.setdiff1d(rows.col[taken], nodes)])
        self.places[found] = np.arange(len(found), dtype=np.int32)
        shape = (len(nodes), len(found))
        matrix = sp.csr_array(sp.coo_array((data, (rows.row[taken], self.places[rows.col[taken]])), shape=shape))
        self.places[found] = -1
        return PreparedInputs(
            Hops(matrix, [len(found), len(nodes)], self.device), self._rows(found), hops_done=self.hops_done
        )


class _Old(SparseMatrix):
    """Ã with fresh values for the step's nodes, and old hidden values for the others."""

    def __init__(self, rows: Any, nodes: Any, history: Tensor, encoder: GCNEncoder) -> None:
        inside = np.isin(np.arange(rows.shape[1]), nodes)
        self.shape = (len(nodes), len(nodes))
        self.fresh = SparseMatrix(sp.csr_array(rows[:, nodes]))
        self.stale = SparseMatrix(sp.csr_array(rows @ sp.diags_array((~inside).astype(np.float32))))
        self.history, self.encoder = history, encoder

    def __matmul__(self, dense: Tensor) -> Tensor:
        old = self.stale.rows.times(self.history)
        return self.fresh @ dense + old @ side_by_side(self.encoder.head_weights)


class History(Neighbourhoods):
    """Hidden values as the last step has left them."""

    encoder: GCNEncoder
    history: Tensor

    def around(self, nodes: Any) -> PreparedInputs:
        features = self._rows(nodes)
        with torch.no_grad():
            self.history[torch.from_numpy(nodes)] = torch.relu(features @ self.encoder.input_weight)  # type: ignore
        propagation = _Old(self.propagation[nodes], nodes, self.history, self.encoder)
        return PreparedInputs(propagation, features, hops_done=1)


SCHEMES: dict[str, type[Neighbourhoods]] = {"halo": Neighbourhoods, "sampled": Sampled, "history": History}


def gradient(model: AutoEncoder, loss: Tensor) -> Tensor:
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return torch.cat([weight.grad.ravel() for weight in model.parameters() if weight.grad is not None])


def rows_of(objective: BatchedObjective, generator: torch.Generator) -> float:
    """Hidden rows of a step, over three of them."""
    counts = []
    for _ in range(3):
        part = objective.part(objective.partition.following(generator), generator)
        counts.append(objective.neighbourhoods.around(part.targets).propagation.shape[0])
    return float(np.mean(counts))


def run(split: vgae.LinkSplit, seed: int, name: str, rows: int) -> str:
    graph = split.train
    layout, init = Layout(graph, "cpu"), torch.Generator().manual_seed(seed)
    model = CONFIG.composition.build(graph.num_features, init)
    around = SCHEMES[name](layout, GCN())
    if isinstance(around, History) and isinstance(model.encoder, GCNEncoder):
        around.encoder, whole = model.encoder, around.whole()
        rows = max(100, rows - graph.num_nodes // 5)
        features: Any = whole.features
        with torch.no_grad():
            around.history = torch.relu(features @ model.encoder.input_weight)
    given = graph, model, CONFIG.weighting_for(graph)
    low, high = 10, graph.num_nodes // 2
    while high - low > 20:
        size = (low + high) // 2
        objective = BatchedObjective(*given, around, BatchOptions(size))
        low, high = (low, size) if rows_of(objective, torch.Generator().manual_seed(0)) > rows else (size, high)
    objective = BatchedObjective(*given, around, BatchOptions(low))
    inputs, generator = EncoderInputs.from_graph(graph), torch.Generator().manual_seed(seed)
    optimizer, started = Adam(model.named_parameters(), CONFIG.learning_rate), time.perf_counter()
    for _ in range(CONFIG.iterations):
        gradient(model, objective(model, inputs, generator, value=False).total)
        optimizer.step()
    seconds = (time.perf_counter() - started) / CONFIG.iterations
    exact_objective = ExactObjective(*given, "cpu")
    terms = exact_objective(model, inputs, generator)
    exact = gradient(model, terms.total)
    found = torch.stack([gradient(model, objective(model, inputs, generator, value=False).total) for _ in range(40)])
    scale = exact.square().sum()
    error = (found - exact).square().sum(dim=1).mean() / scale
    bias = ((found.mean(dim=0) - exact).square().sum() - found.var(dim=0).sum() / 40) / scale
    with torch.no_grad():
        z = model.encode(inputs).mean
    links, non_links = (model.score_pairs(z, pairs) for pairs in (split.test.links, split.test.non_links))
    scores = auc_and_ap(links, non_links)
    return (
        f"{name}: {low} nodes, exact loss {terms.total.item():.4f}, AUC {100 * scores['auc']:.2f}, "
        f"AP {100 * scores['ap']:.2f}, bias {bias:.3g}, error {error:.3g}, {1000 * seconds:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="pubmed")
    parser.add_argument("--rows", type=int, nargs="+", default=[8000])
    parser.add_argument("--splits", type=int, default=2)
    given = parser.parse_args()
    for seed in range(given.splits):
        split = vgae.split_links(vgae.load_dataset(given.graph), seed=seed)
        for rows in given.rows:
            for name in SCHEMES:
                print(f"{given.graph}, split {seed}, memory of {rows} rows, {run(split, seed, name, rows)}", flush=True)


if __name__ == "__main__":
    main()
