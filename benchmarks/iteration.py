"""One VGAE training iteration (encoder, loss, gradients, Adam), as ratios against two rivals in the same run.

    dense    the same encoder, and the exact loss on the N×N matrix of logits, as every exact re-implementation has it
    pyg      PyTorch Geometric's VGAE as in its example: dense features, GCNConv, its 1:1 sampled loss

Each contender's iterations are timed in turn, round by round, so that a busy moment of the machine hits all of them.
An exact iteration of ours is timed as training runs it: one step in ten also computes the value of the loss. Threads
are those torch chooses; evaluation is left out for all.

    python benchmarks/iteration.py [cora] [citeseer] [pubmed]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import statistics
import time
from collections.abc import Callable

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric.nn import VGAE, GCNConv

import vgae
from vgae.machine import describe_machine
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import Weighting
from vgae.train.config import Config

CONFIG = Config()
STEPS = 10  # per timing of our own iterations, one of them with the value of the loss
TARGETS = {  # least speed-up of (our objective, rival), by dataset
    "cora": {("exact", "dense"): 6.0, ("exact", "pyg"): 1.0, ("sampled", "pyg"): 2.0},
    "citeseer": {("sampled", "pyg"): 2.0},
    "pubmed": {("exact", "dense"): 15.0, ("sampled", "pyg"): 2.0},
}


def our_model(graph: vgae.Graph) -> tuple[AutoEncoder, EncoderInputs, torch.optim.Optimizer, torch.Generator]:
    generator = torch.Generator().manual_seed(0)
    inputs = EncoderInputs.from_graph(graph)
    model = CONFIG.composition.build(inputs.input_dim, generator)
    return model, inputs, torch.optim.Adam(model.parameters(), lr=CONFIG.learning_rate, fused=True), generator


def ours(graph: vgae.Graph, name: str) -> Callable[[], float]:
    model, inputs, optimizer, generator = our_model(graph)
    weighting = Weighting.named("paper", graph)
    kind = ExactObjective if name == "exact" else SampledObjective
    objective = kind(graph, model, weighting, "cpu")

    def iterate() -> float:
        started = time.perf_counter()
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = objective(model, inputs, generator, value=step == 0).total
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return (time.perf_counter() - started) / STEPS

    return iterate


def dense(graph: vgae.Graph) -> Callable[[], float]:
    model, inputs, optimizer, generator = our_model(graph)
    weighting = Weighting.named("paper", graph)
    labels = torch.tensor(graph.adjacency.toarray()) + torch.eye(graph.num_nodes)
    positive_weight = torch.tensor(weighting.positive_weight)

    def loss() -> Tensor:
        posterior = model.encode(inputs)
        z = posterior.sample(generator)
        reconstruction = binary_cross_entropy_with_logits(z @ z.T, labels, pos_weight=positive_weight, reduction="sum")
        return weighting.terms(reconstruction, model.kl(posterior, z, inputs).sum()).total

    return timed_step(loss, optimizer)


def pyg(graph: vgae.Graph) -> Callable[[], float]:
    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = GCNConv(graph.num_features, CONFIG.hidden_dim, cached=True)
            self.mean = GCNConv(CONFIG.hidden_dim, CONFIG.latent_dim, cached=True)
            self.log_std = GCNConv(CONFIG.hidden_dim, CONFIG.latent_dim, cached=True)

        def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
            hidden = self.shared(x, edge_index).relu()
            return self.mean(hidden, edge_index), self.log_std(hidden, edge_index)

    features = torch.tensor(sp.csr_array(graph.features).toarray())
    edges = torch.tensor(graph.edges.T)
    edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    model = VGAE(Encoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG.learning_rate)

    def loss() -> Tensor:
        z = model.encode(features, edge_index)
        result: Tensor = model.recon_loss(z, edge_index) + model.kl_loss() / graph.num_nodes
        return result

    return timed_step(loss, optimizer)


def timed_step(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> Callable[[], float]:
    def step() -> float:
        started = time.perf_counter()
        optimizer.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return time.perf_counter() - started

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description="Training iterations against dense PyTorch and PyTorch Geometric.")
    parser.add_argument("datasets", nargs="*", default=list(TARGETS), metavar="DATASET")
    options = parser.parse_args()
    print(describe_machine())
    for name in options.datasets:
        graph = vgae.split_links(vgae.load_dataset(name)).train
        contenders = {"exact": ours(graph, "exact"), "sampled": ours(graph, "sampled"), "pyg": pyg(graph)}
        contenders["dense"] = dense(graph)
        rounds = 20 if graph.num_nodes < 10_000 else 4
        times: dict[str, list[float]] = {contender: [] for contender in contenders}
        for turn in range(rounds + 1):
            for contender, step in contenders.items():
                seconds = step()
                if turn:  # the first round warms up
                    times[contender].append(seconds)
        median = {contender: 1000 * statistics.median(values) for contender, values in times.items()}
        print(f"\n{name}: median ms per iteration: " + ", ".join(f"{key} {ms:.1f}" for key, ms in median.items()))
        for objective in ("exact", "sampled"):
            for rival in ("dense", "pyg"):
                target = TARGETS.get(name, {}).get((objective, rival))
                wanted = "" if target is None else f"   (target ≥ {target:g}×)"
                print(f"  {objective:8} is {median[rival] / median[objective]:6.1f}× as fast as {rival}{wanted}")


if __name__ == "__main__":
    main()
