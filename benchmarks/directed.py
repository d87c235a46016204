"""Directed Cora over ten splits: which pairs are linked, which way they are, and which are linked both ways.

    python benchmarks/directed.py [--splits 10] [--models NAME …] [--tasks any reversed mutual] [--out FILE.json]

The three tasks are those of Salha et al. (2019), `vgae.split_links(graph, direction_task=…)`. `paper` is the paper's
VGAE as it is, and `normalized` the strongest symmetric model; the others have 64 dimensions in both layers. All but
`paper` see words as rows of unit length and stop early by the validation pairs of the task. `degrees` learns nothing:
it scores i → j by the degrees in the training graph,

    log (out_i + 1)(in_j + 1) / (in_i + 1)(out_j + 1)
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import vgae
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.split import DIRECTION_TASKS, HeldOut, LinkSplit

TRAINING: dict[str, Any] = {
    "hidden_dim": 64,
    "latent_dim": 64,
    "iterations": 200,
    "early_stopping": 40,
    "eval_every": 5,
}
DIRECTED = "directed:unit_rows=true,dropout=0.5"
MODELS: dict[str, dict[str, Any]] = {
    "paper": {},
    "normalized, inner_product": {
        "encoder": "normalized:hops=2,scale=3,unit_rows=true",
        "latent_dim": 256,
        "learning_rate": 0.005,
        "iterations": 300,
        "mask_links": 0.3,
        "early_stopping": 100,
        "eval_every": 5,
    },
    "gcn, inner_product": TRAINING | {"encoder": "gcn:unit_rows=true,dropout=0.5"},
    "directed, inner_product": TRAINING | {"encoder": DIRECTED},
    "directed, source_target": TRAINING | {"encoder": DIRECTED, "decoder": "source_target"},
    "directed, gravity": TRAINING | {"encoder": DIRECTED, "decoder": "gravity", "latent_dim": 65},
}
DEGREES = "degrees"


def degree_scores(train: Graph, held_out: HeldOut) -> dict[str, float]:
    """AUC and AP of degrees alone."""
    outgoing, incoming = (np.bincount(train.arcs[:, end], minlength=train.num_nodes) + 1.0 for end in (0, 1))
    ratio = np.log(outgoing / incoming)
    logits = ratio[held_out.pairs[:, 0]] - ratio[held_out.pairs[:, 1]]
    return auc_and_ap(logits[held_out.labels], logits[~held_out.labels])


def score(name: str, split: LinkSplit, seed: int) -> dict[str, float]:
    """AUC and AP on the test pairs."""
    if name == DEGREES:
        return degree_scores(split.train, split.test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about what a symmetric decoder cannot tell: it is in the table
        model = vgae.VGAE(seed=seed, **MODELS[name]).fit(split.train, validation=split.val)
    return model.metrics(split.test)


def main() -> None:
    """Print a row for each model and task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--models", nargs="+", default=[DEGREES, *MODELS], choices=[DEGREES, *MODELS])
    parser.add_argument("--tasks", nargs="+", default=DIRECTION_TASKS, choices=DIRECTION_TASKS)
    parser.add_argument("--out", type=Path, help="JSON with all scores")
    given = parser.parse_args()
    graph, found = vgae.load_dataset("cora", directed=True), []
    print("| model | task | AUC | AP | seconds |\n|---|---|---|---|---|", flush=True)
    for name in given.models:
        for task in given.tasks:
            started = time.perf_counter()
            scores = [
                score(name, vgae.split_links(graph, seed=seed, direction_task=task), seed)
                for seed in range(given.splits)
            ]
            seconds = time.perf_counter() - started
            values = {metric: np.array([100 * each[metric] for each in scores]) for metric in ("auc", "ap")}
            cells = [f"{each.mean():.1f} ± {each.std(ddof=1) / len(each) ** 0.5:.1f}" for each in values.values()]
            print(f"| {name} | {task} | {cells[0]} | {cells[1]} | {seconds:.0f} |", flush=True)
            found.append({"model": name, "task": task, **{metric: each.tolist() for metric, each in values.items()}})
    if given.out:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
