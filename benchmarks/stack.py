"""A stack against each of its bases and the heuristics, on the same splits: AUC, AP and precision at the top.

    AUC, AP         on the test pairs of the split, by the stack, by each column of evidence alone and by the heuristics
    P@100, P@1000   over all pairs that are not known: test links among the best K. The stack and its columns rank the
                    pairs of the first stage, which holds the favourites of each base; the heuristics rank all pairs

The columns are those of the bases that were fitted on the whole training graph, so they are what each base would be
without the others. The last lines are ratios: the stack's score over the best column's and the best heuristic's.

    python benchmarks/stack.py GRAPH ... [--splits 3] [--folds 5] [--no-features] [--device auto]

GRAPH is a dataset or a file.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import vgae
from vgae.baselines.heuristics import (
    adamic_adar,
    common_neighbours,
    preferential_attachment,
    resource_allocation,
)
from vgae.evaluation.all_pairs import Candidates, sweep, top_metrics
from vgae.evaluation.evaluate import RowScorer
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit
from vgae.io.catalog import DATASETS
from vgae.machine import describe_machine

TOP = (100, 1000)
METRICS = ("auc", "ap", *(f"precision@{k}" for k in TOP))
HEURISTICS: dict[str, Callable[[Graph], RowScorer]] = {
    "common neighbours": common_neighbours,
    "Adamic-Adar": adamic_adar,
    "resource allocation": resource_allocation,
    "preferential attachment": preferential_attachment,
}

Scores = dict[str, dict[str, float]]  # by scorer, by metric


def main() -> None:
    parser = argparse.ArgumentParser(description="A stack against its bases and the heuristics.")
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--no-features", action="store_true")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    print(describe_machine())
    for name in options.graphs:
        graph = vgae.load_dataset(name) if name in DATASETS else vgae.read_graph(name)
        print(f"\n{Path(name).stem}: {graph}", flush=True)
        found = []
        for split in range(options.splits):
            model = vgae.Stack(features=not options.no_features, folds=options.folds, seed=split, device=options.device)
            found.append(scores(graph, model, split))
        report(found)


def scores(graph: Graph, model: vgae.Stack, seed: int) -> Scores:
    """All scores of one split."""
    split = vgae.split_links(graph, seed=seed)
    started = time.perf_counter()
    model.fit(split.train, validation=split.val)
    seconds = time.perf_counter() - started
    listed = model.listed(model.candidates(split.test.links))
    columns = {"stack": model.logits(split.test.pairs), **model.evidence_by_column(split.test.pairs)}
    on_list = {"stack": listed.logits, **model.evidence_by_column(listed.pairs)}
    numbering = split.train.all_pairs
    is_link = np.isin(numbering.ranks(listed.pairs), numbering.ranks(split.test.links))
    found = {
        name: auc_and_ap(values[split.test.labels], values[~split.test.labels]) | precision(on_list[name], is_link)
        for name, values in columns.items()
    }
    recall = is_link.sum() / len(split.test.links)
    print(f"split {seed}: {seconds:.0f} s, first stage {len(listed.pairs):,} pairs, recall {recall:.3f}", flush=True)
    return found | of_heuristics(split)


def precision(values: np.ndarray, is_link: np.ndarray) -> dict[str, float]:
    """Links among the best K; of equal scores the smaller indices first."""
    best = np.argsort(-values, kind="stable")
    return {f"precision@{k}": float(is_link[best[:k]].mean()) for k in TOP}


def of_heuristics(split: LinkSplit) -> Scores:
    """The heuristics, over all pairs at the top; equal scores in random order."""
    test = split.test
    candidates = Candidates.of(split.train, np.concatenate([split.train.links, split.val.links]))
    found = {}
    for name, make in HEURISTICS.items():
        scorer = make(split.train)
        values = scorer.logits(test.pairs)
        ranked = sweep(scorer, candidates, test.links, max(TOP))
        top = {key: value for key, value in top_metrics(ranked.best, ranked.marked, TOP).items() if key in METRICS}
        found[name] = auc_and_ap(values[test.labels], values[~test.labels]) | top
    return found


def report(found: list[Scores]) -> None:
    """Means over the splits, and ratios to the best column and the best heuristic."""
    names = list(found[0])
    means = {
        name: {metric: 100 * float(np.mean([each[name][metric] for each in found])) for metric in METRICS}
        for name in names
    }
    print(f"{'':24}" + "".join(f"{metric:>16}" for metric in METRICS))
    for name, values in means.items():
        print(f"{name:24}" + "".join(f"{values[metric]:16.2f}" for metric in METRICS))
    bases = [name for name in names if name != "stack" and name not in HEURISTICS]
    for title, rivals in (("stack / best base", bases), ("stack / best heuristic", list(HEURISTICS))):
        ratios = [means["stack"][metric] / max([means[rival][metric] for rival in rivals]) for metric in METRICS]
        print(f"{title:24}" + "".join(f"{ratio:16.3f}" for ratio in ratios))


if __name__ == "__main__":
    main()
