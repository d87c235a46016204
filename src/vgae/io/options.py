"""What can be asked for in reading files: each option once, with its default, its check and its help.

The functions that read files take these options as keywords, and sort them out with `take`; None counts as not given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from vgae.errors import InputError
from vgae.graph.scales import NORMALIZATIONS
from vgae.options import Options, option, options_of

IMPUTATIONS = ("mean", "zero")
FEATURE_FORMATS = ("table", "coordinates")

Asked = TypeVar("Asked", bound=Options)


def _check_delimiter(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise InputError(f"delimiter: one character is needed, got {value!r}.")
    if not value.isascii() or value in '"\r\n\0':
        raise InputError(f"delimiter: {value!r} cannot split columns; use another character.")
    return value


@dataclass(frozen=True)
class LinkOptions(Options):
    """How the rows of a table become links; what is None is found out. Columns are given by name or number from 1."""

    source: str | None = option(
        None, convert=str, help="Column of a table with one end of each link, by name or number."
    )
    target: str | None = option(None, convert=str, help="Column with the other end.")
    delimiter: str | None = option(None, convert=_check_delimiter, help="Character between the columns of a table.")
    header: bool | None = option(None, flag="--header/--no-header", help="Whether a table's first row is a header.")
    weight: str | None = option(
        None, convert=str, help="Column with the weight of a link, or edge attribute of GraphML; of a matrix: value."
    )
    directed: bool = option(False, help="Links go from source to target.")
    bipartite: bool = option(
        False,
        help="The two columns hold two kinds of nodes, such as users and items: an id in both is two nodes, and "
        "non-links and recommendations go across only.",
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are asked for."""
        return tuple(given for given in (self.source, self.target, self.weight) if given is not None)


@dataclass(frozen=True)
class TimedLinkOptions(LinkOptions):
    """The same with a column of times."""

    time: str | None = option(None, convert=str, help="Column with the time of a link, a number or an ISO date.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are asked for."""
        return super().columns + (() if self.time is None else (self.time,))


@dataclass(frozen=True)
class NodeOptions(Options):
    """How the rows of a node table, or the nodes of GraphML, become ids, labels and features."""

    id: str | None = option(None, convert=str, help="Column of that table with the id.  [default: the first]")
    label: str | None = option(
        None, convert=str, help="Column of that table with the class, or node attribute of GraphML."
    )
    standardise: bool = option(False, help="Bring numeric columns to mean 0 and standard deviation 1.")
    impute: str | None = option(
        None, choices=IMPUTATIONS, help="How to fill in missing values in the table of nodes: mean or zero."
    )
    node_attributes: bool = option(False, help="Make features of the node attributes of GraphML.")
    feature_format: str | None = option(
        None,
        choices=FEATURE_FORMATS,
        help="What a row of that table is: table, a node; coordinates, an entry (node, feature, value) or (node, "
        "feature).  [default: as its header says]",
    )
    normalize: str | None = option(
        None,
        choices=NORMALIZATIONS,
        help="Bring features to scale: rows of unit length, columns between -1 and 1, or none.  [default: none]",
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are asked for."""
        return tuple(given for given in (self.id, self.label) if given is not None)

    def require_none(self, *names: str) -> None:
        """Where there is no node table: none of the options about its columns may be given."""
        for name in names:
            if name == "normalize" and self.normalize not in (None, "none"):
                raise InputError("normalize: there are no features to bring to scale; give some (features).")
            if name != "normalize" and getattr(self, name) not in (None, False):
                raise InputError(
                    f"{name}: this is about the columns of a node table; give one (features, node_attributes)."
                )


def names_of(*classes: type[Options]) -> tuple[str, ...]:
    """The names of all options of some classes."""
    return tuple(each.name for cls in classes for each in options_of(cls))


def take(cls: type[Asked], keywords: dict[str, Any], names: Sequence[str] | None = None) -> Asked:
    """The options of a class, or those of these names, out of keywords, which lose them; None counts as not given."""
    taken = {name: keywords.pop(name, None) for name in names or names_of(cls)}
    return cls(**{name: value for name, value in taken.items() if value is not None})


def require_none_left(function: str, keywords: dict[str, Any]) -> None:
    """A keyword that nobody took is one that the function does not know."""
    for name in keywords:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
