"""Default options on graphs that nobody has tuned for: the tuned defaults, the paper's, and the best cheap heuristic.

    tuned      what `vgae train FILE` does: rows of unit length, two short trainings to try the features, early stopping
    paper      what `vgae train FILE --preset paper` does: the paper's VGAE, features as they are
    heuristic  of cn, aa, ra, pa and sc the best by test AUC, and beside it the best precision of any of them

AUC and AP are on the test links and as many non-links. P@100 is what the top of `vgae recommend` is worth: of the 100
best pairs outside the training graph, how many are held-out links, of validation or test. Seconds are those of
training, the trial of features included. Every split holds out 5 % for validation and 10 % for testing.

    python benchmarks/strangers.py FILE… [--splits 0 1 2] [--seeds 0] [--json results.jsonl] [--only-table]

With --json, one line per measurement is added to that file, and the table is of all that is in it: several processes
can share the work.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import vgae
from vgae.baselines import BASELINES
from vgae.errors import InputError, TrainingError
from vgae.evaluation.all_pairs import Candidates, sweep, top_metrics
from vgae.evaluation.evaluate import RowScorer
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit, split_links
from vgae.io.catalog import DATASETS
from vgae.machine import describe_machine
from vgae.report.console import print_table
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.presets import TUNED_NORMALIZATION
from vgae.train.tuned import can_try_features, try_features, tuned

HEURISTICS = ("cn", "aa", "ra", "pa", "sc")
TOP = 100


def read(given: str) -> Graph:
    """A dataset by name, or a file."""
    return vgae.load_dataset(given) if given in DATASETS else vgae.read_graph(given)


def score(scorer: RowScorer, split: LinkSplit) -> dict[str, float]:
    """Test AUC and AP, and the share of held-out links among the best pairs outside the training graph."""
    pairs = (scorer.logits(part) for part in (split.test.links, split.test.non_links))
    held_out = np.concatenate([split.val.links, split.test.links])
    candidates = Candidates(split.train.num_nodes, split.train.edges, split.train.sides)
    found = sweep(scorer, candidates, held_out, TOP)
    return auc_and_ap(*pairs) | {"p": top_metrics(found.best, found.marked, (TOP,)).get(f"precision@{TOP}", math.nan)}


def paper_model(split: LinkSplit, seed: int) -> dict[str, Any]:
    """The paper's defaults."""
    started = time.perf_counter()
    trained = train(Job.of(split.train, Config(seed=seed), split.val))
    return {"seconds": time.perf_counter() - started} | score(trained, split)


def tuned_model(split: LinkSplit, seed: int) -> dict[str, Any]:
    """The tuned defaults, as the command applies them to a file."""
    started = time.perf_counter()
    graph = split.train.normalized(TUNED_NORMALIZATION)
    config = tuned(Config(seed=seed), (), len(split.val.links))
    if can_try_features(graph, split.val):
        config = replace(config, features=try_features(graph, split.val, config).features_help)
    trained = train(Job.of(graph, config, split.val))
    seconds = time.perf_counter() - started
    features = graph.features is not None and config.features
    how = {"features": features, "iterations": trained.history[-1].iteration, "objective": trained.choice.objective}
    return {"seconds": seconds} | how | score(trained, split)


def heuristics(split: LinkSplit) -> Iterator[dict[str, Any]]:
    """Each heuristic that the graph is large enough for."""
    for name in HEURISTICS:
        started = time.perf_counter()
        try:
            scorer = BASELINES[name](split.train, 0)
        except InputError:  # too few nodes for a spectral embedding
            continue
        yield {"heuristic": name, "seconds": time.perf_counter() - started} | score(scorer, split)


def measure(given: str, split_seed: int, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """All rows of one graph and split."""
    split = split_links(read(given), seed=split_seed)
    about = {"graph": Path(given).stem, "split": split_seed}
    for seed in seeds:
        for what, make in (("tuned", tuned_model), ("paper", paper_model)):
            try:
                yield about | {"what": what, "seed": seed} | make(split, seed)
            except TrainingError as error:
                yield about | {"what": what, "seed": seed, "error": str(error)}
    for row in heuristics(split):
        yield about | {"what": row["heuristic"]} | row


def table(rows: list[dict[str, Any]]) -> None:
    """Means over splits and seeds, graph by graph."""
    titles = ("graph", "", "runs", "AUC", "AP", "P@100", "seconds", "features", "iterations")
    lines = []
    for graph in dict.fromkeys(row["graph"] for row in rows):
        here = [row for row in rows if row["graph"] == graph]
        by_what = {what: [row for row in here if row["what"] == what] for what in ("tuned", "paper", *HEURISTICS)}
        fair = {name: found for name in HEURISTICS if (found := by_what[name])}
        best = max(fair, key=lambda name: _mean(fair[name], "auc"), default=None)
        top = max(fair, key=lambda name: _mean(fair[name], "p"), default=None)
        for what in ("tuned", "paper", *dict.fromkeys(name for name in (best, top) if name)):
            found = [row for row in by_what[what] if "error" not in row]
            failed = len(by_what[what]) - len(found)
            if not found:
                continue
            values = [f"{100 * _mean(found, key):.1f}" for key in ("auc", "ap", "p")]
            used = sum(row.get("features", False) for row in found)
            more = [f"{used} of {len(found)}", f"{_mean(found, 'iterations'):.0f}"] if what == "tuned" else ["", ""]
            runs = f"{len(found)}" if not failed else f"{len(found)}, {failed} diverged"
            lines.append((graph, what, runs, *values, f"{_mean(found, 'seconds'):.1f}", *more))
    print_table(titles, lines, numbers=titles[3:])


def _mean(rows: list[dict[str, Any]], key: str) -> float:
    return statistics.fmean(row[key] for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Default options on graphs that nobody has tuned for.")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only-table", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for given in () if arguments.only_table else arguments.files:
        for split_seed in arguments.splits:
            for row in measure(given, split_seed, arguments.seeds):
                rows.append(row)
                if arguments.json is not None:
                    with arguments.json.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    if arguments.json is not None:
        rows = [json.loads(line) for line in arguments.json.read_text().splitlines()]
    print(describe_machine())
    table(rows)


if __name__ == "__main__":
    main()
