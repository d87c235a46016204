"""What the top of the list and the verdict cost, and whether probabilities hold, for runs that `vgae train` has made.

    vgae       one sweep over all pairs outside the training graph, and the ranks by node: `model.evaluate`
    dense      Z·Zᵀ as a whole, known links masked, the best of all pairs by torch.topk; precision@K alone
    verdict    `vgae.verdict`: the heuristics, their top and the bootstrap, as a share of the seconds of the training

with the ratio of the first two (medians of some rounds, one after the other). Below it, pairs by their calibrated
probability: how many, their mean, how many test links are among them and how many were expected, and the probability
that should have been promised. "links / attainable" is the share of test links among all pairs with p ≥ 0.9, divided by
the share that mean p makes attainable where only the test links can be found.

    python benchmarks/top.py RUN [RUN …] [--rounds 3]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch

import vgae
from vgae.evaluation.reliability import Reliability
from vgae.machine import describe_machine

DENSE = 30_000  # nodes; above, N² logits and their masks would take tens of gigabytes
TOP = (10, 100, 1000)
ENOUGH = 100  # pairs with p ≥ 0.9 that are needed to judge them


def main() -> None:
    parser = argparse.ArgumentParser(description="The top of the list: what it costs, whether its probabilities hold.")
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{describe_machine()} · {torch.get_num_threads()} threads")
    for run in options.runs:
        report(run, options.rounds)


def report(run: Path, rounds: int) -> None:
    """Time the two ways and print how far probabilities hold."""
    model = vgae.load(run)
    split = model.run_.split
    known, links = torch.tensor(np.concatenate([split.train.edges, split.val.links])), torch.tensor(split.test.links)
    print(f"\n{run}: {split.train}")
    ours, theirs = [], []
    found: dict[str, float] = {}
    for _ in range(rounds):
        started = time.perf_counter()
        found = model.evaluate(split.test)
        ours.append(time.perf_counter() - started)
        if split.train.num_nodes <= DENSE:
            started = time.perf_counter()
            precision = dense(torch.tensor(model.transform()), known, links)
            theirs.append(time.perf_counter() - started)
            np.testing.assert_allclose([found[f"precision@{k}"] for k in TOP], precision, atol=0.02)
    seconds = statistics.median(ours)
    rival = statistics.median(theirs) if theirs else None
    print(f"vgae {seconds:.2f} s" + (f", dense {rival:.2f} s: {rival / seconds:.1f} times" if rival else ""))
    started = time.perf_counter()
    vgae.verdict(model, split)
    verdict = time.perf_counter() - started
    print(f"verdict {verdict:.2f} s: {verdict / model.seconds_:.0%} of the {model.seconds_:.1f} s of the training")
    shown = ("auc", "ap", *(f"precision@{k}" for k in TOP), "node_mrr")
    print(", ".join(f"{name} {found[name]:.3f}" for name in shown))
    print_probabilities(model.reliability(split.test)[1])


def dense(z: torch.Tensor, known: torch.Tensor, links: torch.Tensor) -> list[float]:
    """Precision by the whole matrix."""
    logits = (z @ z.T).triu_(1)
    logits[known.min(dim=1).values, known.max(dim=1).values] = -torch.inf
    logits.masked_fill_(torch.ones_like(logits, dtype=torch.bool).tril(), -torch.inf)
    best = logits.view(-1).topk(max(TOP)).indices
    first, second = links.min(dim=1).values, links.max(dim=1).values
    is_link = torch.isin(best, first * len(z) + second)
    return [float(is_link[:k].float().mean()) for k in TOP]


def print_probabilities(judged: Reliability) -> None:
    """Bins from p = 0.01 on, and all pairs from 0.9 on."""
    print("probability         pairs    mean p  test links  expected  observed p")
    for place in reversed(range(len(judged.pairs))):
        if judged.low[place] < 0.01:
            continue
        words = "no pairs" if not judged.pairs[place] else "" if judged.is_judged[place] else "too few links"
        print(
            f"{judged.low[place]:4g} to {judged.high[place]:4g} {judged.pairs[place]:12,.0f}  "
            f"{judged.promised[place]:8.3f}  {judged.found[place]:10,}  {judged.expected[place]:8.1f}  "
            f"{words or f'{judged.observed[place]:.3f}'}"
        )
    high = judged.low >= 0.9
    pairs, links = judged.pairs[high].sum(), judged.found[high].sum()
    if pairs < ENOUGH:
        print(f"p ≥ 0.9: {pairs:,.0f} pairs, too few to judge")
        return
    mean = np.nansum((judged.pairs * judged.promised)[high]) / pairs
    attainable = judged.expected[high].sum() / pairs / mean
    print(f"p ≥ 0.9: {pairs:,.0f} pairs, mean p {mean:.3f}, links / attainable {links / pairs / attainable:.3f}")


if __name__ == "__main__":
    main()
