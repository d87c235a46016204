"""What can be asked of a run, on its own graph or another one: `vgae embed`, `recommend`, `similar` and `predict`."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from vgae.cli.opening import open_run
from vgae.cli.options import CsvOptions, DrawOptions, Json, LinkOutputOptions, OtherGraphOptions, RunFolder
from vgae.errors import InputError
from vgae.estimators.links import Links
from vgae.estimators.stacked import StackPredictor
from vgae.graph.lookup import find_node
from vgae.io.embeddings import write_embeddings
from vgae.io.exports import json_id, without_formulas, write_csv
from vgae.io.tables import read_pairs
from vgae.report.console import print_json, print_table
from vgae.screen import note
from vgae.words import count

COLUMNS = ("source", "target", "delimiter", "header")  # of a table of links, and of a table of pairs


def embed(
    run_folder: RunFolder,
    out: Annotated[Path, typer.Option(help="csv, parquet, npz, or txt in the format of word2vec.")],
    csv: CsvOptions,
    other: OtherGraphOptions,
) -> None:
    """Write the embedding of every node, with its id."""
    fitted = open_run(run_folder, other)
    write_embeddings(out, fitted.graph_.ids, fitted.transform(), spreadsheet_safe=csv.spreadsheet_safe)
    note(f"wrote {count(fitted.graph_.num_nodes, 'embedding')} to {out}")


def recommend(
    run_folder: RunFolder,
    *,
    top: Annotated[int, typer.Option(help="How many links.")] = 10,
    node: Annotated[
        list[str] | None,
        typer.Option(help="List so many for this node, by its id; may be repeated.  [default: for the whole graph]"),
    ] = None,
    every_node: Annotated[bool, typer.Option("--every-node", help="List so many for every node.")] = False,
    draws: DrawOptions,
    output: LinkOutputOptions,
    other: OtherGraphOptions,
) -> None:
    """List the most likely links that are not known yet."""
    if node and every_node:
        raise InputError("--node and --every-node: give one of the two, some nodes or all of them.")
    _check(output)
    fitted = open_run(run_folder, other)
    ids = fitted.graph_.ids
    nodes = range(len(ids)) if every_node else node or None
    links = fitted.recommend(top, nodes, samples=draws.samples, seed=draws.seed)
    if isinstance(fitted, StackPredictor):
        _note_recall(fitted, by_node=nodes is not None)
    _give_links(links, ids, output)


def _note_recall(fitted: StackPredictor, *, by_node: bool) -> None:
    """How many of the held-out links the first stage finds, which is what it may miss of others."""
    held_out = fitted.run_.split.test or fitted.run_.split.val
    if len(held_out.links) and fitted.on_own_graph:
        recall = fitted.first_stage_recall(held_out, by_node=by_node)
        note(
            f"the first stage finds {100 * recall:.1f}% of the held-out links; a pair that it misses is not recommended"
        )


def similar(
    run_folder: RunFolder,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node, by its id.")],
    *,
    top: Annotated[int, typer.Option(help="How many nodes.")] = 10,
    as_json: Json = False,
    other: OtherGraphOptions,
) -> None:
    """List the nodes that are nearest to one."""
    fitted = open_run(run_folder, other)
    graph = fitted.graph_
    asked = find_node(graph, node)
    if isinstance(fitted, StackPredictor):
        fitted.similar()  # which says why it cannot
    near = [(graph.ids[index], how_much) for index, how_much in fitted.similar(asked, top)]
    if as_json:
        found = [{"node": json_id(name), fitted.likeness: how_much} for name, how_much in near]
        print_json({"node": json_id(graph.ids[asked]), "similar": found})
    else:
        print_table(("node", fitted.likeness), [(str(name), f"{how_much:.4f}") for name, how_much in near])


def predict(
    run_folder: RunFolder,
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="Table of pairs of ids: csv, tsv, txt, parquet.")],
    draws: DrawOptions,
    output: LinkOutputOptions,
    other: OtherGraphOptions,
) -> None:
    """Give the probability of a link for each pair, and whether it is known; its columns are named as in new links."""
    _check(output)
    columns = {name: getattr(other, name) for name in COLUMNS}
    if other.graph is None and other.new_links is None:
        none: dict[str, Any] = dict.fromkeys(COLUMNS)
        other = replace(other, **none)  # they are about the pairs alone
    fitted = open_run(run_folder, other)
    ids = fitted.graph_.ids
    index = read_pairs(pairs, [str(name) for name in ids], sides=fitted.graph_.sides, **columns)
    _give_links(fitted.predict_links(index, samples=draws.samples, seed=draws.seed), ids, output, known=True)


def _give_links(links: Links, ids: Sequence[Any], output: LinkOutputOptions, *, known: bool = False) -> None:
    """Pairs with probability, logit and, over draws, std: into a csv file, as JSON, or as a table.

    `known` adds a column that says which pairs are known already; of recommended links, none is.
    """
    numbers = {"probability": links.probabilities, "logit": links.logits}
    if links.std is not None:
        numbers["std"] = links.std
    columns = ("source", "target", *numbers) + ("known",) * known
    values = [[_written(value) for value in row] for row in zip(*map(np.ndarray.tolist, numbers.values()), strict=True)]
    if len(links) and np.isnan(links.probabilities).all():
        note("probabilities are left out: no validation links were held out to calibrate the baseline's scores by")
    words = [(word,) * known for word in links.known.tolist()]

    def rows(names: Sequence[Any], number: Callable[[str], Any] = str) -> Iterator[tuple[Any, ...]]:
        for (i, j), row, word in zip(links.pairs.tolist(), values, words, strict=True):
            yield (names[i], names[j], *map(number, row), *word)

    if output.out is not None:
        write_csv(output.out, columns, rows(without_formulas(ids) if output.spreadsheet_safe else ids))
    if output.json:
        found = rows([json_id(name) for name in ids], lambda text: float(text) if text else None)
        print_json({"links": [dict(zip(columns, row, strict=True)) for row in found]})
    elif output.out is not None:
        note(f"wrote {count(len(links), 'link')} to {output.out}")
    else:
        print_table(columns, rows([str(name) for name in ids]))


def _written(value: float) -> str:
    """A number for a table; one that is undefined is empty."""
    return "" if math.isnan(value) else f"{value:.6g}"


def _check(output: LinkOutputOptions) -> None:
    if output.spreadsheet_safe and output.out is None:
        raise InputError("--spreadsheet-safe: this option is for csv files; name one with --out.")
