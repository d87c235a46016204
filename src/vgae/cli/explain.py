"""`vgae explain`: what speaks for a link between two nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from vgae.cli.opening import open_run
from vgae.cli.options import Json, OtherGraphOptions, RunFolder
from vgae.graph.lookup import find_node
from vgae.io.exports import json_id
from vgae.report.console import print_json
from vgae.report.explain import print_explanation


def explain(
    run_folder: RunFolder,
    first: Annotated[str, typer.Argument(metavar="A", help="A node, by its id.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another node, by its id.")],
    *,
    top: Annotated[int, typer.Option(help="How many neighbours, paths and features are listed.")] = 10,
    as_json: Json = False,
    other: OtherGraphOptions,
) -> None:
    """Say what speaks for a link between two nodes."""
    fitted = open_run(run_folder, other)
    graph = fitted.graph_
    ends = [find_node(graph, node) for node in (first, second)]
    found = fitted.explain(*ends, top=top)
    if not as_json:
        print_explanation(found)
        return
    content = found.to_json()
    content["nodes"] = [json_id(node) for node in content["nodes"]]
    for each in content["neighbours"]:
        each["node"] = json_id(each["node"])
    for each in content["paths"]:
        each["nodes"] = [json_id(node) for node in each["nodes"]]
    print_json({"run": str(run_folder)} | content)
