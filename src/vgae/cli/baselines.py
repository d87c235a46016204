"""`vgae baseline`."""

from typing import Annotated

import typer

from vgae.baselines import BASELINES
from vgae.cli.opening import SplitOptions, open_graph
from vgae.cli.options import GraphName, Json, TableOptions
from vgae.errors import InputError
from vgae.evaluation.evaluate import evaluate_split
from vgae.experiments.paper import paper_result
from vgae.report.console import print_json, print_scores


def baseline(
    method: Annotated[str, typer.Argument(metavar="METHOD", help=f"{', '.join(BASELINES)}.")],
    graph: GraphName,
    *,
    seed: Annotated[int, typer.Option(help="Seed of walks and eigenvectors.")] = 0,
    split: SplitOptions,
    tables: TableOptions,
    as_json: Json = False,
) -> None:
    """Score a baseline on the split that `train` uses."""
    if method not in BASELINES:
        raise InputError(f"There is no baseline called {method!r}; the known ones are {', '.join(BASELINES)}.")
    opened = open_graph(graph, tables, split.time)
    links = split.apply(opened)
    metrics = evaluate_split(BASELINES[method](links.train, seed), links)
    if as_json:
        print_json(
            {"method": method, "dataset": opened.name, "split": links.content_hash, "protocol": "paper", **metrics}
        )
    else:
        print_scores(metrics, paper_result(opened.name, method, features=True))
