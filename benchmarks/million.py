"""The exact objective on a block-model graph of a million nodes and ten million links, against the sampled one.

A VGAE without features is trained for 200 exact iterations, then by the sampled objective for as long, and for as many.
Reported are test AUC and AP, the time and memory of an iteration, and how well k-means on the embeddings finds the
blocks (normalised mutual information on 20,000 nodes).

    python benchmarks/million.py [--nodes 1000000] [--iterations 200] [--blocks 16] [--learning-rate 0.01]
    python benchmarks/million.py --sampled-only    # without the exact objective: minutes on a CPU
"""

import argparse
import resource
import time
from dataclasses import replace

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

import vgae
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.synthetic import stochastic_block_model
from vgae.machine import describe_machine
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import Trained, train


def report(name: str, trained: Trained, split: vgae.LinkSplit, config: Config) -> None:
    scores = auc_and_ap(trained.logits(split.test.links), trained.logits(split.test.non_links))
    size = split.train.num_nodes
    chosen = np.random.default_rng(0).choice(size, size=min(20_000, size), replace=False)
    labels, points = np.asarray(split.train.labels)[chosen], trained.posterior.mean.cpu().numpy()[chosen]
    found = KMeans(len(set(labels.tolist())), n_init=3, random_state=0).fit_predict(points)
    each = 1000 * trained.seconds / config.iterations
    text = f"{config.iterations} iterations in {trained.seconds:.1f} s ({each:.0f} ms each)"
    text += f", AUC {100 * scores['auc']:.1f}, AP {100 * scores['ap']:.1f}"
    text += f", blocks found {normalized_mutual_info_score(labels, found):.2f}"
    if torch.cuda.is_available():
        text += f", peak {torch.cuda.max_memory_allocated() / 1e9:.1f} GB"
        torch.cuda.reset_peak_memory_stats()
    else:
        text += f", peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB of the process"
    print(f"{name}: {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact and sampled objective at a million nodes.")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=Config().learning_rate)
    parser.add_argument("--sampled-only", action="store_true", help="without the exact objective: minutes on a CPU")
    options = parser.parse_args()
    print(describe_machine())
    started = time.perf_counter()
    graph = stochastic_block_model(options.nodes, options.blocks, degree_within=16, degree_between=4)
    split = vgae.split_links(graph)
    print(f"{graph}, made and split in {time.perf_counter() - started:.1f} s", flush=True)
    config = Config(
        objective="exact",
        iterations=options.iterations,
        eval_every=options.iterations,
        learning_rate=options.learning_rate,
    )
    sampled = replace(config, objective="sampled")
    if not options.sampled_only:
        exact = train(Job.of(split.train, config))
        report("exact", exact, split, config)
        few, more = (train(Job.of(split.train, replace(sampled, iterations=n, eval_every=n))).seconds for n in (20, 70))
        wanted = max(1, round(50 * (exact.seconds - few) / (more - few)) + 20)
        config = replace(sampled, iterations=wanted, eval_every=wanted)
        report("sampled, as long", train(Job.of(split.train, config)), split, config)
    report("sampled, as many", train(Job.of(split.train, sampled)), split, sampled)


if __name__ == "__main__":
    main()
