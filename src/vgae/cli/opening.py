"""What a command works on: a graph by name or from a file, its split, and a run, on its own graph or another one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgae.cli.loading import loading
from vgae.cli.options import OtherGraphOptions, TableOptions, given_options
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.split import TEST_FRACTION, VAL_FRACTION, LinkSplit, split_links
from vgae.io.catalog import DATASETS
from vgae.io.datasets import load_dataset
from vgae.options import Options, option
from vgae.screen import note

if TYPE_CHECKING:
    from vgae.estimators.predict import FittedModel
    from vgae.io.recipe import FeatureRecipe


@dataclass(frozen=True)
class SplitOptions(Options):
    """Which links are held out."""

    split_seed: int = option(0, help="Seed of the split into training, validation and test links.")
    val: float = option(VAL_FRACTION, help="Fraction of the links for validation.")
    test: float = option(TEST_FRACTION, help="Fraction of the links for testing.")

    def apply(self, graph: Graph) -> LinkSplit:
        """The split of a graph."""
        return split_links(graph, val=self.val, test=self.test, seed=self.split_seed)


@dataclass(frozen=True, eq=False)
class OpenedGraph:
    """A graph, the name it goes by, and what its features were made by if they come from a table of nodes."""

    name: str
    graph: Graph
    recipe: FeatureRecipe | None = None


def open_graph(given: str, tables: TableOptions) -> OpenedGraph:
    """A dataset by name or a graph from a file; what was assumed in reading it is printed."""
    return _open_graph(given, given_options(tables))


def open_run(folder: Path, other: OtherGraphOptions) -> FittedModel:
    """The model of a run, on its own graph, on that with more nodes and links, or on another one."""
    run = _load("vgae.runs.files").read_run(folder)
    fitted: FittedModel = _load("vgae.estimators.predict").FittedModel(run)
    options = given_options(other)
    if not options:
        return fitted
    if other.graph is not None and other.new_links is not None:
        raise InputError("graph and new_links: give one of the two, another graph or more links for the run's own.")
    if run.facts.num_features == 0:
        raise InputError(
            f"{folder}: this run was trained without features, so it cannot be used for nodes other than its own; "
            "train one with features (--features)."
        )
    if options.pop("graph", None) is not None:
        return fitted.on(_open_graph(str(other.graph), options, run.recipe).graph)
    links, nodes = options.pop("new_links", None), options.pop("features", None)
    if options.pop("bipartite", False):
        raise InputError("bipartite: this is about another graph (graph); new links are as the run's own are.")
    reading = _load("vgae.io.extend").read_more(run.split.train, run.recipe, links=links, nodes=nodes, **options)
    for line in reading.report(str(links or folder)):
        note(line)
    return fitted.on(reading.graph)


def _open_graph(given: str, options: dict[str, Any], recipe: FeatureRecipe | None = None) -> OpenedGraph:
    """Features are made by the recipe, if there is one; those of a dataset are only brought to scale."""
    if given.lower() in DATASETS:
        normalize = options.pop("normalize", None)
        if options:
            only = f"{', '.join(options)} {'is' if len(options) == 1 else 'are'} only for files of your own"
            raise InputError(f"{given}: this is a dataset, which is read without options; {only}.")
        graph = load_dataset(given)
        if normalize is None and recipe is None:
            return OpenedGraph(given.lower(), graph)
        graph, made = _load("vgae.io.features").scale_graph(graph, normalize, recipe)
        for line in made.notes:
            note(f"{given.lower()}: {line}")
        return OpenedGraph(given.lower(), graph, made.recipe)
    path = Path(given)
    if not path.suffix and not os.path.exists(path):  # noqa: PTH110 - which is no error for any name
        raise InputError(
            f"{given!r} is neither a known dataset ({', '.join(DATASETS)}) nor a file; vgae datasets lists the first."
        )
    reading = _load("vgae.io.tables").read_any(path, recipe=recipe, **options)
    for line in reading.report(str(path)):
        note(line)
    return OpenedGraph(str(path), reading.graph, reading.recipe)


def _load(module: str) -> Any:
    """A module that takes its time to load, and that not every command which opens a graph needs."""
    with loading():
        return import_module(module)
