"""The API reference: a page for each public name of `vgae`, and for what its functions return."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import vgae
from vgae.io.options import LinkOptions, NodeOptions
from vgae.options import Options, options_of
from vgae.search.tune import SearchOptions
from vgae.stack.config import StackConfig
from vgae.train.config import Config
from vgae_site.markdown import code, directive, escaped, from_docstring, option_table, table

FOLDER = "reference/api"
TOPICS = {  # what is not named here comes last
    "Graphs": ("Graph", "read_graph", "read_more", "write_graph", "load_dataset", "stochastic_block_model", "rmat"),
    "Models": ("VGAE", "GAE", "Stack", "Baseline", "load"),
    "Splits": ("split_links", "split_by_time", "LinkSplit", "HeldOut"),
    "Evaluation": ("verdict", "evaluate", "evaluate_protocol", "heart_negatives", "evaluate_labels"),
    "Search": ("tune",),
    "With scikit-learn": ("link_samples", "LinkSamples", "LinkKFold", "LinkShuffleSplit"),
    "Errors": ("VgaeError", "InputError", "LeakError", "TrainingError"),
}
OTHERS = "Others"
RETURNED = {  # what methods and functions give back; not to be made by hand
    "Links": "vgae.estimators.links",
    "Explanation": "vgae.estimators.explanation",
    "Clusters": "vgae.estimators.clusters",
    "ClusterScores": "vgae.evaluation.clusters",
    "LabelScores": "vgae.evaluation.labels",
    "ProtocolScores": "vgae.evaluation.protocols",
    "Verdict": "vgae.report.verdict",
    "SearchResult": "vgae.search.result",
    "LoadedGraph": "vgae.io.assemble",
    "FeatureRecipe": "vgae.io.recipe",
    "Cleaning": "vgae.graph.cleaning",
}
OPTIONS: dict[str, tuple[tuple[str, type[Options], tuple[str, ...]], ...]] = {  # of names whose parameters are options
    "GAE": (("Parameters", Config, ("model",)),),
    "VGAE": (("Parameters", Config, ("model",)),),
    "Stack": (("Parameters", StackConfig, ()),),
    "read_graph": (("Options about links", LinkOptions, ()), ("Options about nodes", NodeOptions, ())),
    "tune": (("Options of a search", SearchOptions, ()),),
}
GENERATED_TAIL = "\nParameters:\n"  # what estimators append to their docstrings, which the page has as a table


@dataclass(frozen=True)
class Documented:
    """A name and what is behind it."""

    name: str
    module: str  # where it is imported from

    @property
    def path(self) -> str:
        """Its full name."""
        return f"{self.module}.{self.name}"

    @cached_property
    def thing(self) -> Any:
        """What it is the name of."""
        return getattr(import_module(self.module), self.name)

    @property
    def page(self) -> str:
        """The page that it has; file systems that know no case must not confuse two of them."""
        clash = [each for each in vgae.__all__ if each != self.name and each.lower() == self.name.lower()]
        return self.name if not clash or isinstance(self.thing, type) else f"{self.name}-function"

    @property
    def summary(self) -> str:
        """The first sentence about it."""
        if not callable(self.thing):
            return "The version of the library."
        return _first_line(self.thing)


@cache
def documented() -> dict[str, Documented]:
    """All names that have a page."""
    public = {name: Documented(name, "vgae") for name in vgae.__all__ if name != "__version__"}
    return public | {name: Documented(name, module) for name, module in RETURNED.items() if name not in public}


def api_pages() -> dict[str, str | bytes]:
    """A page for each name, and the list of them."""
    pages: dict[str, str | bytes] = {f"{FOLDER}/index.md": _index()}
    for each in documented().values():
        pages[f"{FOLDER}/{each.page}.md"] = _page(each)
    return pages


def _index() -> str:
    names = documented()
    placed = {name for topic in TOPICS.values() for name in topic}
    public = [name for name in names if name not in placed and names[name].module == "vgae"]
    topics = {**TOPICS, OTHERS: tuple(public), "What comes back": tuple(name for name in RETURNED)}
    parts = [
        "# The library",
        "`import vgae` gives the names below, and loads each when it is first used. These pages are made from the "
        "code. Every example on them runs in the test suite. `vgae.__version__` is the version.",
    ]
    for topic, listed in topics.items():
        if listed:
            found = [names[name] for name in listed if name in names]
            rows = [(f"[`{each.name}`]({each.page}.md)", escaped(each.summary)) for each in found]
            parts += [f"## {topic}", table(("name", "what it is"), rows)]
    pages = dict.fromkeys(names[name].page for topic in topics.values() for name in topic if name in names)
    parts.append("```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```")
    return "\n\n".join(parts) + "\n"


def _page(of: Documented) -> str:
    thing = of.thing
    parts = [f"# {of.name}"]
    if isinstance(thing, type):
        parts.append(_class(of, thing))
    else:
        parts.append(_function("function", of.path, thing, _linker(None)))
        parts += _option_tables(of.name)
    return "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------------------------------------------- classes


def _class(of: Documented, cls: type) -> str:
    link = _linker(of)
    kind = "exception" if issubclass(cls, BaseException) else "class"
    is_record = of.module != "vgae"
    signature = "" if is_record or kind == "exception" else _signature(cls, skip_first=False)
    text = (inspect.getdoc(cls) or "").split(GENERATED_TAIL)[0]
    bases = [base for base in cls.__mro__[1:] if base.__name__ in documented() or kind == "exception"]
    shown = [base.__name__ for base in bases if base.__module__ != "builtins" or base.__name__.endswith("Error")]
    head = [from_docstring(text, link)]
    wrapped = ("single-line-parameter-list",) if of.name in OPTIONS else ()  # the table has a line for each
    if shown:
        head.insert(0, f"Bases: {', '.join(link(name) or code(name) for name in dict.fromkeys(shown))}")
    parts = [directive(f"py:{kind}", f"{of.path}{signature}", "\n\n".join(head), options=wrapped, depth=4)]
    parts += _option_tables(of.name)
    members = list(_members(cls))
    if members:
        rows = [
            (f"{{py:obj}}`~{of.path}.{name}`", escaped(_first_line(_function_of(found)))) for name, found in members
        ]
        parts += ["## Methods and attributes", table(("name", "what it is"), rows)]
        parts += [_member(f"{of.path}.{name}", found, link) for name, found in members]
    return "\n\n".join(parts)


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that this library defines, in the order of their definition; fields first."""
    seen: set[str] = set()
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            if not field.name.startswith("_"):
                seen.add(field.name)
                yield field.name, field
    for base in cls.__mro__:
        if not base.__module__.startswith("vgae."):
            continue
        for name, found in vars(base).items():
            if name.startswith("_") or name in seen or not callable(_function_of(found)):
                continue
            if isinstance(found, type):
                continue
            seen.add(name)
            yield name, found


def _function_of(found: Any) -> Any:
    """The function behind a method or a property; a field is itself."""
    if isinstance(found, property):
        return found.fget
    if isinstance(found, cached_property):
        return found.func
    return getattr(found, "__func__", found) if not isinstance(found, dataclasses.Field) else found


def _member(path: str, found: Any, link: Callable[[str], str | None]) -> str:
    if isinstance(found, dataclasses.Field):
        kind = str(found.type).replace("`", "")
        return directive("py:attribute", path, options=(f"type: {_linked_types(kind)}",))
    function = _function_of(found)
    text = from_docstring(inspect.getdoc(function) or "", link)
    if isinstance(found, property | cached_property):
        returns = inspect.signature(function).return_annotation
        return directive("py:property", path, text, options=(f"type: {_linked_types(str(returns))}",))
    options = [
        name for name, kind in (("classmethod", classmethod), ("staticmethod", staticmethod)) if isinstance(found, kind)
    ]
    signature = _signature(function, skip_first=not isinstance(found, staticmethod))
    return directive("py:method", f"{path}{signature}", text, options=options)


# ----------------------------------------------------------------------------------------------------- functions


def _function(kind: str, path: str, function: Any, link: Callable[[str], str | None]) -> str:
    text = from_docstring(inspect.getdoc(function) or "", link)
    return directive(f"py:{kind}", f"{path}{_signature(function, skip_first=False)}", text)


def _signature(thing: Any, *, skip_first: bool) -> str:
    """The parameters with their types and defaults; types that have a page become links."""
    signature = inspect.signature(thing)
    parameters = list(signature.parameters.values())[1 if skip_first else 0 :]
    parts: list[str] = []
    star = False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        prefix = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        written = f"{prefix}{each.name}"
        annotated = each.annotation is not each.empty
        if annotated:
            written += f": {_linked_types(_text_of(each.annotation))}"
        if each.default is not each.empty:
            default = (
                "..." if repr(each.default).startswith("<") else repr(each.default)
            )  # what is made when it is missing
            written += f" = {default}" if annotated else f"={default}"
        parts.append(written)
    returns = "" if signature.return_annotation is signature.empty else _text_of(signature.return_annotation)
    arrow = f" -> {_linked_types(returns)}" if returns and not isinstance(thing, type) else ""
    return f"({', '.join(parts)}){arrow}"


def _text_of(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _linked_types(text: str) -> str:
    """A type with the full names of what has a page, of which the last part is shown."""
    names = documented()
    return re.sub(
        r"(?<![\w.])[A-Z]\w+", lambda found: f"~{names[found[0]].path}" if found[0] in names else found[0], text
    )


def _option_tables(name: str) -> list[str]:
    parts = []
    for heading, options, without in OPTIONS.get(name, ()):
        found = [each for each in options_of(options) if each.name not in without]
        parts += [f"## {heading}", option_table(found)]
    return parts


# --------------------------------------------------------------------------------------------------------- links


def _linker(of: Documented | None) -> Callable[[str], str | None]:
    """What turns a name in a docstring into a link, where it has a page or is a member of this class."""
    names = documented()
    own = {name for name, _ in _members(of.thing)} if of is not None else set()

    def link(text: str) -> str | None:
        plain = text.removeprefix("vgae.").removesuffix("()")
        first, _, rest = plain.partition(".")
        if of is not None and plain in own:
            return f"{{py:obj}}`{text} <{of.path}.{plain}>`"
        if first in names and first != (of.name if of else None):
            target = names[first]
            known = not rest or (
                isinstance(target.thing, type) and rest in {name for name, _ in _members(target.thing)}
            )
            return f"{{py:obj}}`{text} <{target.path}{'.' + rest if rest else ''}>`" if known else None
        return None

    return link


def _first_line(thing: Any) -> str:
    """The first sentence of a docstring, on one line; of a field, its type."""
    if isinstance(thing, dataclasses.Field):
        return f"A field: {thing.type}."
    paragraph = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).replace("`", "")
