"""`vgae baseline`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vgae.baselines import BASELINES
from vgae.baselines.compare import score_baselines
from vgae.cli.opening import OpenedGraph, SplitOptions, open_graph
from vgae.cli.options import GraphName, Json, TableOptions
from vgae.cli.summary import run_summary
from vgae.errors import InputError
from vgae.estimators.baseline import Baseline
from vgae.experiments.paper import paper_result
from vgae.graph.split import LinkSplit
from vgae.options import Options, option
from vgae.report.console import print_json, print_scores, print_table
from vgae.report.verdict import NAMES, percent
from vgae.screen import note, print_line, visible

ALL = "all"
LABELS = NAMES | {
    "sc": "spectral embedding",
    "dw": "DeepWalk",
    "l3": "paths of length three",
    "ppr": "personalised PageRank",
}


@dataclass(frozen=True)
class BaselineOptions(Options):
    """Where the run of a baseline is saved."""

    out: Path | None = option(None, convert=Path, help="Run folder, for vgae recommend and others.  [default: none]")
    overwrite: bool = option(False, help="Replace the run in that folder.")


def baseline(
    method: Annotated[str, typer.Argument(metavar="METHOD", help=f"{', '.join(BASELINES)}, or all to compare them.")],
    graph: GraphName,
    *,
    seed: Annotated[int, typer.Option(help="Seed of walks and eigenvectors.")] = 0,
    split: SplitOptions,
    output: BaselineOptions,
    tables: TableOptions,
    as_json: Json = False,
) -> None:
    """Score a baseline on the split that `train` uses, and save it as a run if that is asked for."""
    if method not in (*BASELINES, ALL):
        known = f"the known ones are {', '.join(BASELINES)}, and all compares them"
        raise InputError(f"There is no baseline called {method!r}; {known}.")
    if method == ALL and output.out is not None:
        raise InputError("--out: a run is of one baseline; name it in place of all.")
    opened = open_graph(graph, tables, split.time)
    links = split.apply(opened)
    if opened.graph.directed and not as_json:
        note(
            "the links are directed, but baselines have one score for both ways: they cannot tell which way a link goes"
        )
    if method == ALL:
        _compare_all(opened, links, seed, as_json)
        return
    fitted = Baseline(method, seed=seed).fit_split(links, dataset=visible(opened.name))
    if output.out is not None:
        fitted.save(output.out, overwrite=output.overwrite)
    metrics = fitted.run_.metrics
    if as_json:
        found = {"method": method, "dataset": opened.name, "split": links.content_hash, "protocol": "paper", **metrics}
        print_json(found if output.out is None else run_summary(output.out, fitted.run_) | found)
        return
    if output.out is not None:
        note(f"saved {LABELS[method]} in {output.out}")
    print_scores(metrics, paper_result(opened.name, method, features=True))


def _compare_all(opened: OpenedGraph, split: LinkSplit, seed: int, as_json: bool) -> None:
    """One table of all baselines that can be had here."""
    scorers, notes = {}, []
    for name, make in BASELINES.items():
        try:
            scorers[name] = make(split.train, seed)
        except InputError as error:  # too few nodes for it, or an extra that is not installed
            notes.append(f"{name} is left out: {error}")
    found = score_baselines(scorers, split)
    notes += found.notes
    if as_json:
        described = {"dataset": opened.name, "split": split.content_hash, "protocol": "paper", "pairs": found.pairs}
        print_json(described | {"baselines": found.scores, "random": found.random, "notes": notes})
        return
    columns = tuple(found.random)
    titles = ["protocol paper", *(column.upper().replace("PRECISION", "P") for column in columns), ""]
    rows = [
        [name, *(percent(scores.get(column)) for column in columns), LABELS.get(name, "")]
        for name, scores in (found.scores | {"random": found.random}).items()
    ]
    print_table(titles, rows, numbers=titles[1:-1])
    for line in notes:
        print_line(line)
