"""The paper's models trained by the sampled objective, beside the exact one: the twelve cells of Table 1.

Each model is trained on split i with seed i by both objectives, for as many iterations, and scored on the test pairs.
The control variate is to make the sampled objective as good as the exact one: within half a point of it, or above.

    python benchmarks/sampled.py [cora] [citeseer] [pubmed] [--splits 10] [--negatives M] [--device auto]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse

import numpy as np

import vgae
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.split import LinkSplit
from vgae.machine import describe_machine

MODELS = ("gae", "vgae", "gae*", "vgae*")
WITHIN = 0.5  # points


def main() -> None:
    parser = argparse.ArgumentParser(description="The sampled objective beside the exact one.")
    parser.add_argument("graphs", nargs="*", default=["cora", "citeseer", "pubmed"], metavar="GRAPH")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--negatives", type=int, default=None, help="zeros that are drawn in each step")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    print(describe_machine())
    print(f"{'':20}{'exact, AUC / AP':>20}{'sampled':>20}{'difference':>20}{'standard error':>20}")
    for name in options.graphs:
        graph = vgae.load_dataset(name)
        splits = [vgae.split_links(graph, seed=seed) for seed in range(options.splits)]
        for model in MODELS:
            sampled = {"objective": "sampled", "num_negatives": options.negatives}
            found = [
                [scores(split, model, seed, device=options.device, **how) for seed, split in enumerate(splits)]
                for how in ({"objective": "exact"}, sampled)
            ]
            exact, estimated = (100 * np.array(each) for each in found)
            report(f"{name}, {model}", exact, estimated)


def scores(split: LinkSplit, model: str, seed: int, **options: object) -> tuple[float, float]:
    """AUC and AP on the test pairs."""
    kind = vgae.GAE if model.startswith("gae") else vgae.VGAE
    fitted = kind(features=not model.endswith("*"), seed=seed, **options).fit(split.train)
    logits = fitted.logits(split.test.pairs)
    found = auc_and_ap(logits[split.test.labels], logits[~split.test.labels])
    return found["auc"], found["ap"]


def report(title: str, exact: np.ndarray, sampled: np.ndarray) -> None:
    """Means, and the mean of the differences on each split with its standard error."""
    difference = sampled - exact
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else [np.nan, np.nan]
    cells = (exact.mean(axis=0), sampled.mean(axis=0), difference.mean(axis=0), error)
    verdict = "" if (difference.mean(axis=0) >= -WITHIN).all() else f"  more than {WITHIN} points below"
    print(f"{title:20}" + "".join(f"{f'{auc:.2f} / {ap:.2f}':>20}" for auc, ap in cells) + verdict, flush=True)


if __name__ == "__main__":
    main()
