"""Clusters of nodes against the classes of the citation graphs: ACC, NMI and ARI, means and standard errors over seeds.

    vgae       k-means on the embeddings of the paper's VGAE, with the paper's options
    encoder    k-means on the embeddings of the encoder and the training options below, with the paper's prior
    mixture    the components of a mixture prior, with the same encoder and options
    own        the same with a scale of its own for each component

Models see the whole graph and no labels; within these options, no seed and no iteration is chosen by them. The options
themselves were chosen by some thirty trials on Cora and Citeseer, with their labels; docs/clusters.md says more.

    python benchmarks/clusters.py [--datasets cora citeseer pubmed] [--seeds 10] [--objective sampled]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import sys
from typing import Any

import numpy as np

import vgae
from vgae.graph.graph import Graph
from vgae.machine import describe_machine

OPTIONS: dict[str, Any] = {
    "encoder": "linear:hops=4,unit_rows=true",
    "latent_dim": 64,
    "mask_links": 0.5,
    "beta": 30.0,
    "warm_up": 60,
    "iterations": 100,
}
METHODS = ("vgae", "encoder", "mixture", "own")
SCORES = ("accuracy", "nmi", "ari")


def main() -> None:
    parser = argparse.ArgumentParser(description="Clusters against classes.")
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--objective", default="auto")
    options = parser.parse_args()
    print(describe_machine())
    print(", ".join(f"{name}={value}" for name, value in OPTIONS.items()))
    for name in options.datasets:
        graph = vgae.load_dataset(name)
        print(f"\n{name}: {graph}\n{'':10}" + "".join(f"{title:>14}" for title in ("ACC", "NMI", "ARI")))
        for method in options.methods:
            found = np.array([scores(graph, method, seed, options.objective) for seed in range(options.seeds)])
            means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
            cells = [f"{mean:.1f} ± {error:.1f}" for mean, error in zip(means, errors, strict=True)]
            print(f"{method:10}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def scores(graph: Graph, method: str, seed: int, objective: str) -> list[float]:
    """ACC, NMI and ARI in percent of one training."""
    num_classes = len(set(np.asarray(graph.labels).tolist()))
    mixture = f"mixture:components={num_classes},scales={'own' if method == 'own' else 'shared'}"
    prior = mixture if method in ("mixture", "own") else None
    options = {} if method == "vgae" else OPTIONS
    model = vgae.VGAE(seed=seed, prior=prior, objective=objective, **options).fit(graph)
    clusters = model.clusters() if prior else model.clusters(k=num_classes, seed=seed)
    found = clusters.scores()
    percent = [100 * getattr(found, each) for each in SCORES]
    print(method, seed, " ".join(f"{value:.1f}" for value in percent), file=sys.stderr, flush=True)
    return percent


if __name__ == "__main__":
    main()
