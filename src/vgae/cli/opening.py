"""What a command works on: a graph by name or from a file, its split, and a run, on its own graph or another one."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vgae.cli.loading import loading
from vgae.cli.options import OtherGraphOptions, TableOptions, given_options
from vgae.errors import InputError
from vgae.graph.given import GivenSplit, split_given, split_timed
from vgae.graph.graph import Graph
from vgae.graph.split import DIRECTION_TASKS, TEST_FRACTION, VAL_FRACTION, LinkSplit, split_links
from vgae.io.catalog import DATASETS
from vgae.io.datasets import load_dataset, stored_name
from vgae.io.options import LinkOptions, NodeOptions
from vgae.options import Options, option
from vgae.screen import note

if TYPE_CHECKING:
    from vgae.estimators.baseline import Baseline
    from vgae.estimators.predict import FittedModel
    from vgae.estimators.stacked import FittedStackRun
    from vgae.io.recipe import FeatureRecipe
    from vgae.parallel.group import Group

OF_LINK_TABLES = ("source", "target", "delimiter", "header")  # options that hold for every table of links
OF_LINKS_IN_PARTS = (*OF_LINK_TABLES, "weight", "directed")  # options of a folder that is read in parts
OF_NODE_FILES = ("features", "labels")
OF_NODES_IN_PARTS = ("id", "label", "standardise", "impute", "feature_format", "normalize")


def _links_help(of: str) -> str:
    return f"Table of the {of} links, taken out of GRAPH where they are in it.  [default: drawn by the seed]"


@dataclass(frozen=True)
class SplitOptions(Options):
    """Which links are held out."""

    split_seed: int = option(0, help="Seed of the split into training, validation and test links.")
    val: float = option(VAL_FRACTION, help="Fraction of the links for validation.")
    test: float = option(TEST_FRACTION, help="Fraction of the links for testing.")
    train_links: Path | None = option(
        None, convert=Path, help="Table of the links of GRAPH to train on.  [default: all that are not held out]"
    )
    val_links: Path | None = option(None, convert=Path, help=_links_help("validation"))
    test_links: Path | None = option(None, convert=Path, help=_links_help("test"))
    val_negatives: Path | None = option(
        None, convert=Path, help="Table of non-links for validation.  [default: as many as links, drawn by the seed]"
    )
    test_negatives: Path | None = option(None, convert=Path, help="Table of non-links for testing.")
    direction_task: str = option(
        "any",
        choices=DIRECTION_TASKS,
        help="Which links of a directed graph are held out, and against what: any, against all pairs that are no "
        "links; reversed, links that go one way against their other way; mutual, one way of links that go both ways "
        "against the other way of links that go one way.",
    )
    time: str | None = option(
        None,
        convert=str,
        help="Column of GRAPH with the time of a link: the newest links are for testing, the next newest for "
        "validation; a number or an ISO date.",
    )

    @property
    def files(self) -> dict[str, Path]:
        """The files that are given, by the names of their options."""
        names = ("train_links", "val_links", "test_links", "val_negatives", "test_negatives")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def apply(self, opened: OpenedGraph) -> LinkSplit:
        """The split of a graph; what was assumed or dropped is printed."""
        files, graph = self.files, opened.graph
        if self.time is not None:
            own = [name for name in files if name.endswith("links")]
            if own:
                raise InputError(f"time and {own[0]}: give one of the two, times or links of your own.")
        elif not files:
            fractions = {"val": self.val, "test": self.test}
            return split_links(graph, **fractions, seed=self.split_seed, direction_task=self.direction_task)
        if self.direction_task != "any":
            raise InputError(
                f"direction_task: {self.direction_task} chooses the links to hold out itself; leave out "
                f"{'time' if self.time is not None else next(iter(files))}."
            )
        given = self._given(opened)
        if opened.times is not None:
            made = split_timed(graph, opened.times, given, seed=self.split_seed)
        else:
            made = split_given(graph, given, seed=self.split_seed)
        for line in made.notes:
            note(line)
        return made.split

    def _given(self, opened: OpenedGraph) -> GivenSplit:
        """What the files hold; with links to train on, nothing is drawn from these."""
        read = {
            name: _load("vgae.io.pair_files").read_pair_file(
                path, opened.graph, opened.links, negatives=name.endswith("negatives")
            )
            for name, path in self.files.items()
        }
        fractions = {"val": self.val, "test": self.test} if self.train_links is None else {"val": 0.0, "test": 0.0}
        return GivenSplit(
            train=read.get("train_links"),
            val=read.get("val_links", fractions["val"]),
            test=read.get("test_links", fractions["test"]),
            non_links={name: read[f"{name}_negatives"] for name in ("val", "test") if f"{name}_negatives" in read},
        )

    @property
    def in_parts(self) -> bool:
        """Whether a graph of which each process has a part can be split so: by a draw of the seed."""
        return not self.files and self.time is None and self.direction_task == "any"

    def apply_in_parts(self, opened: OpenedGraph) -> LinkSplit:
        """The same draw of a graph of which each process has a part."""
        made: LinkSplit = _load("vgae.parallel.splitting").split_in_parts(
            opened.graph, val=self.val, test=self.test, seed=self.split_seed
        )
        return made


@dataclass(frozen=True, eq=False)
class OpenedGraph:
    """A graph, the name it goes by, and how it was read.

    `recipe` is what its features were made by if they come from a table of nodes, `times` when each link was first seen
    if that was asked for, and `links` how its table of links was read, which holds for tables of held-out links too.
    """

    name: str
    graph: Graph
    recipe: FeatureRecipe | None = None
    times: Any = None
    links: LinkOptions | None = None


def open_graph(given: str, tables: TableOptions, time: str | None = None) -> OpenedGraph:
    """A dataset by name or a graph from a file, with the times of its links if a column of them is asked for.

    What was assumed in reading it is printed.
    """
    options = given_options(tables)
    how = LinkOptions(**{name: options[name] for name in OF_LINK_TABLES if name in options})
    return replace(_open_graph(given, options if time is None else options | {"time": time}), links=how)


def can_open_in_parts(given: str, tables: TableOptions) -> bool:
    """Whether each process of a group can read a part of a graph: a folder of links, and perhaps files of nodes."""
    folder = os.path.isdir(given)  # noqa: PTH112 - which is no error for any name
    asked = given_options(tables)
    files = {name: Path(asked[name]) for name in OF_NODE_FILES if name in asked}
    known = {*OF_LINKS_IN_PARTS, *OF_NODE_FILES, *(OF_NODES_IN_PARTS if files else ())}
    if given.lower() in DATASETS or not folder or not set(asked) <= known:
        return False
    return all(_load("vgae.io.nodes").can_be_shared(path, arrays=name == "features") for name, path in files.items())


def open_in_parts(given: str, tables: TableOptions, group: Group) -> OpenedGraph | None:
    """A graph of which each process of a group reads a part, and has one; None where it has to be read as a whole."""
    reading, options = _load("vgae.parallel.reading"), given_options(tables)
    how = LinkOptions(**{name: options[name] for name in OF_LINKS_IN_PARTS if name in options})
    name, of_nodes = str(Path(given)), {name: options[name] for name in OF_NODES_IN_PARTS if name in options}
    features, labels = (Path(options[each]) if each in options else None for each in OF_NODE_FILES)
    of_labels = NodeOptions() if labels is None else NodeOptions(label=of_nodes.pop("label", None))
    if features is None:
        NodeOptions(**of_nodes).require_none(*OF_NODES_IN_PARTS)
    files = reading.NodeFiles(features, NodeOptions(**of_nodes), labels, of_labels)
    read = reading.read_graph_in_parts(group, Path(given), how, files)
    if read is None:
        return None
    for table, notes in ((name, read.notes), (features, read.node_notes), (labels, read.label_notes)):
        if notes:
            note(f"{table}: {'; '.join(notes)}")
    return OpenedGraph(name, read.graph, read.recipe, links=how)


def open_run(folder: Path, other: OtherGraphOptions) -> FittedModel | Baseline | FittedStackRun:
    """The model of a run, on its own graph, on that with more nodes and links, or on another one."""
    run = _load("vgae.runs.files").read_any_run(folder)
    fitted = _load("vgae.estimators.baseline").fitted_of(run)
    options = given_options(other)
    if not options:
        return cast("FittedModel | Baseline | FittedStackRun", fitted)
    if not hasattr(run, "recipe"):
        raise InputError(
            f"{folder}: this run is of the baseline {run.config.method}, which knows its own graph only; "
            "run vgae baseline on the other graph."
        )
    if other.graph is not None and other.new_links is not None:
        raise InputError("graph and new_links: give one of the two, another graph or more links for the run's own.")
    if run.facts.num_features == 0 and _needs_features(run):
        raise InputError(
            f"{folder}: this run was trained without features, so it cannot be used for nodes other than its own; "
            "train one with features (--features)."
        )
    if options.pop("graph", None) is not None:
        return cast("FittedModel | FittedStackRun", fitted.on(_open_graph(str(other.graph), options, run.recipe).graph))
    links, nodes = options.pop("new_links", None), options.pop("features", None)
    if options.pop("bipartite", False):
        raise InputError("bipartite: this is about another graph (graph); new links are as the run's own are.")
    reading = _load("vgae.io.extend").read_more(run.split.train, run.recipe, links=links, nodes=nodes, **options)
    for line in reading.report(str(links or folder)):
        note(line)
    return cast("FittedModel | FittedStackRun", fitted.on(reading.graph))


def _needs_features(run: Any) -> bool:
    """Whether new nodes cannot be had without features: of a stack of similarities alone they can."""
    stack = getattr(run, "stack", None)
    return stack is None or bool(stack.bases.models)


def _open_graph(given: str, options: dict[str, Any], recipe: FeatureRecipe | None = None) -> OpenedGraph:
    """Features are made by the recipe, if there is one; those of a dataset are only brought to scale."""
    if given.lower() in DATASETS:
        normalize, directed = options.pop("normalize", None), options.pop("directed", False)
        if options:
            only = f"{', '.join(options)} {'is' if len(options) == 1 else 'are'} only for files of your own"
            raise InputError(f"{given}: this is a dataset, which is read without options; {only}.")
        graph, name = load_dataset(given, directed=directed), stored_name(given.lower(), directed)
        if normalize is None and recipe is None:
            return OpenedGraph(name, graph)
        graph, made = _load("vgae.io.features").scale_graph(graph, normalize, recipe)
        for line in made.notes:
            note(f"{name}: {line}")
        return OpenedGraph(name, graph, made.recipe)
    path = Path(given)
    if not path.suffix and not os.path.exists(path):  # noqa: PTH110 - which is no error for any name
        raise InputError(
            f"{given!r} is neither a known dataset ({', '.join(DATASETS)}) nor a file; vgae datasets lists the first."
        )
    reading = _load("vgae.io.tables").read_any(path, recipe=recipe, **options)
    for line in reading.report(str(path)):
        note(line)
    return OpenedGraph(str(path), reading.graph, reading.recipe, reading.times)


def _load(module: str) -> Any:
    """A module that takes its time to load, and that not every command which opens a graph needs."""
    with loading():
        return import_module(module)
