"""The options of commands, and the sets of them that several commands share.

Where a parameter of a command's function is a class of options (vgae.options), the command has an option for each field
of it, and the function is given one object of the class. Names, types, defaults, checks and help come from the fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from vgae.io.options import LinkOptions, NodeOptions
from vgae.options import Option, Options, option, options_of

PICTURES = ("latent", "training", "ranking", "reliability")  # the kinds that `vgae plot` draws

GraphName = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A dataset of vgae datasets, or a file: csv, tsv, txt, parquet, graphml, gml, gexf, net, mtx, npz; "
        "or a folder of csv or parquet files.",
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
CONTEXT = "context"  # of a call, which knows what was given
JSON_HELP = "Print one JSON object on standard output, and nothing else there."
Json = Annotated[bool, typer.Option("--json", help=JSON_HELP)]


# ------------------------------------------------------------------------------------------------------ sets of options


def same_option(cls: Any, name: str) -> Any:
    """A field with the default, the check and the help that it has in another class."""
    of = {each.name: each for each in fields(cls)}[name]
    return field(default=of.default, metadata=of.metadata)


@dataclass(frozen=True)
class NodeTableOptions(Options):
    """A table with a row for each node."""

    features: Path | None = option(
        None,
        convert=Path,
        help="Table of nodes, whose columns become features, or a list of their ids: csv, tsv, txt, parquet; or "
        "features alone: json, npz, mtx.",
    )
    labels: Path | None = option(
        None, convert=Path, help="Table with the class of each node, where that is not in the features' table."
    )


@dataclass(frozen=True)
class TableOptions(NodeOptions, NodeTableOptions, LinkOptions):
    """How a graph is read from a file."""


@dataclass(frozen=True)
class OtherGraphOptions(Options):
    """A graph in place of the run's own, or nodes and links to add to that."""

    graph: str | None = option(None, help="Another graph in place of the run's, with the same features: a file.")
    new_links: Path | None = option(
        None, convert=Path, help="Table of links to add to the run's graph, also to new nodes."
    )
    source: str | None = same_option(LinkOptions, "source")
    target: str | None = same_option(LinkOptions, "target")
    weight: str | None = same_option(LinkOptions, "weight")
    delimiter: str | None = same_option(LinkOptions, "delimiter")
    header: bool | None = same_option(LinkOptions, "header")
    bipartite: bool = same_option(LinkOptions, "bipartite")
    features: Path | None = option(
        None, convert=Path, help="Table of the nodes of that graph, or of new nodes to add to the run's."
    )
    id: str | None = same_option(NodeOptions, "id")


@dataclass(frozen=True)
class DrawOptions(Options):
    """Embeddings drawn from the posterior, in place of its mean."""

    samples: int | None = option(
        None,
        least=2,
        help="Number of embeddings to draw: gives the mean probability and its standard deviation.  [default: none]",
    )
    seed: int | None = option(None, help="Seed of these draws.  [default: the run's]")


@dataclass(frozen=True)
class CsvOptions(Options):
    """How ids are written to a csv file."""

    spreadsheet_safe: bool = option(
        False, help="Begin ids in a csv file with ' where a spreadsheet would run them as formulas."
    )


@dataclass(frozen=True)
class LinkOutputOptions(CsvOptions):
    """Where a list of links goes, and how."""

    out: Path | None = option(None, convert=Path, help="A csv file.  [default: print]")
    json: bool = option(False, help=JSON_HELP)


class GivenNames(dict[type[Options], frozenset[str]]):
    """The names of the options on the command line, by their class; those given at their defaults are among them."""


@dataclass(frozen=True)
class AwareOptions(Options):
    """Base of options whose meaning depends on what else was given to the command."""

    given: GivenNames = field(default_factory=GivenNames)  # no option itself: filled in when a command is called


def given_options(options: Options) -> dict[str, Any]:
    """The options that are not at their defaults."""
    return {
        each.name: getattr(options, each.name)
        for each in options_of(type(options))
        if getattr(options, each.name) != each.default
    }


# ----------------------------------------------------------------------------------------------- from options to typer


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """A command's function with a parameter for every single option, as typer reads it."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Options]] = {}
    parameters: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and issubclass(kind, Options):
            groups[parameter.name] = kind
            parameters += [_parameter(parameter.name, each) for each in options_of(kind)]
        else:
            parameters.append(parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY))

    if any(issubclass(kind, AwareOptions) for kind in groups.values()):
        parameters.append(Parameter(CONTEXT, Parameter.KEYWORD_ONLY, annotation=typer.Context))

    @wraps(function)
    def collecting(**given: Any) -> None:
        context = given.pop(CONTEXT, None)
        objects = {name: _collect(name, kind, given) for name, kind in groups.items()}
        for name, options in objects.items():
            if isinstance(options, AwareOptions):
                objects[name] = replace(options, given=_given_names(context, groups))
        function(**objects, **given)

    collecting.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    collecting.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return collecting


def _given_names(context: typer.Context, groups: dict[str, type[Options]]) -> GivenNames:
    """What is on the command line, at its default or not."""
    found = GivenNames()
    for group, kind in groups.items():
        sources = {each.name: context.get_parameter_source(_name(group, each)) for each in options_of(kind)}
        found[kind] = frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")
    return found


def _collect(group: str, kind: type[Options], given: dict[str, Any]) -> Options:
    """An object of the class, made of what was given for its fields, which is taken out of the dictionary."""
    values = {}
    for each in options_of(kind):
        value = given.pop(_name(group, each))
        if _is_switch(each):
            value = not each.default if value else each.default
        values[each.name] = value
    return kind(**values)


def _parameter(group: str, of: Option) -> Parameter:
    """One option as a parameter; what is neither a number nor a truth value is given as text, which the class reads."""
    kind: Any = of.kind if of.kind in (bool, int, float, Path) else str
    default = of.default
    if _is_switch(of):
        default = False
    elif kind is str and default is not None:
        default = str(default)
    annotation = kind | None if default is None else kind
    described = typer.Option(default, of.flag, help=of.help)
    return Parameter(_name(group, of), Parameter.KEYWORD_ONLY, default=described, annotation=annotation)


def _is_switch(of: Option) -> bool:
    """Whether naming the option turns its default into the opposite, as --no-features does."""
    return of.kind is bool and "/" not in of.flag


def _name(group: str, of: Option) -> str:
    """Two sets of options may have fields of the same name."""
    return f"{group}_{of.name}"
