"""The command reference: a page for each command, from the command itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

from vgae.cli.app import BY_MODEL, COMMANDS, load_command
from vgae.options import Option, Options, options_of
from vgae.spelling import other_spelling
from vgae_site.markdown import directive, escaped, fenced, split_default, table

FOLDER = "reference/commands"
JOBS = {  # the order in which a person meets them; what is not named here comes last
    "From a file to predictions": (
        "train",
        "evaluate",
        "recommend",
        "predict",
        "explain",
        "similar",
        "cluster",
        "embed",
    ),
    "To look at": ("explore", "plot"),
    "Before and beside a training": ("plan", "tune", "baseline", "parts", "datasets"),
    "The paper and the tables of this site": ("reproduce", "models", "accuracy", "report"),
}
OTHERS = "Others"
WORDS = {int: "NUMBER", float: "NUMBER", Path: "PATH"}  # for a value, by its type


@dataclass(frozen=True)
class Entry:
    """A parameter of a command, with the option of the library that it comes from, if it comes from one."""

    parameter: Any  # as typer knows it
    annotation: Any
    option: Option | None = None

    @property
    def flags(self) -> str:
        """What is written on the command line, with a word for its value."""
        flags = ", ".join((*self.parameter.opts, *self.parameter.secondary_opts))
        return flags if self.parameter.is_flag else f"{flags} {self.metavar}"

    @property
    def metavar(self) -> str:
        """The word for the value."""
        if self.parameter.metavar:
            return str(self.parameter.metavar)
        if self.option is not None and self.option.rule.choices is not None:
            return "|".join(self.option.rule.choices())
        return next((word for kind, word in WORDS.items() if kind in _kinds_in(self.annotation)), "TEXT")

    def markdown(self) -> str:
        """The option with its help, what it may be, its default and its other spelling."""
        text, default = split_default(self.parameter.help or "", self._default)
        facts = []
        if self.option is not None and self.option.kind in (int, float):
            facts.append(f"May be {self.option.allowed.removesuffix(', or none')}.")
        if default:
            facts.append(f"Default: {default}.")
        if self.parameter.multiple:
            facts.append("May be given several times.")
        others = [f"`{other}`" for flag in self.parameter.opts if (other := other_spelling(flag)) is not None]
        if others:
            facts.append(f"Also understood as {', '.join(others)}.")
        return directive("option", self.flags, "\n\n".join(filter(None, (escaped(text), " ".join(facts)))))

    @property
    def _default(self) -> Any:
        value = self.parameter.default
        return None if self.parameter.is_flag or callable(value) else value


def command_pages() -> dict[str, str | bytes]:
    """A page for each command, one for each model that has options of its own, and the list of them."""
    pages: dict[str, str | bytes] = {f"{FOLDER}/index.md": _index()}
    for name in COMMANDS:
        pages[f"{FOLDER}/{name}.md"] = _page(name, None)
        for model in BY_MODEL.get(name, {}):
            pages[f"{FOLDER}/{name}-{model}.md"] = _page(name, model)
    return pages


def _title(name: str, model: str | None) -> str:
    return f"vgae {name}" if model is None else f"vgae {name} --model {model}"


def _index() -> str:
    placed = {name for names in JOBS.values() for name in names}
    jobs = {**JOBS, OTHERS: tuple(name for name in COMMANDS if name not in placed)}
    parts = [
        "# The command",
        "`vgae` is one command with many below it. `vgae --help` lists them, and `vgae COMMAND --help` prints what is "
        "on these pages, which are made from the command itself.",
        "- Results go to standard output, everything else to standard error. With `--json`, one JSON object is all "
        "that is on standard output.\n"
        "- The exit code is 0 if all went well, 2 for input that cannot be used, 1 for a failure, 130 after Ctrl-C. An "
        "error is one sentence; `--debug`, anywhere on the line, shows where it comes from.\n"
        "- Names are understood in British and American spelling: `--standardise` and `--standardize`, "
        "`--encoder normalised` and `--encoder normalized`.\n"
        "- `vgae --version` prints the version.",
    ]
    for job, names in jobs.items():
        if names:
            rows = [(f"[`vgae {name}`]({name}.md)", escaped(COMMANDS[name].help)) for name in names]
            parts += [f"## {job}", table(("command", "what it does"), rows)]
    order = [name for names in jobs.values() for name in names]
    listed = [page for name in order for page in (name, *(f"{name}-{model}" for model in BY_MODEL.get(name, {})))]
    parts.append(fenced("\n".join((":hidden:", "", *listed)), "{toctree}"))
    return "\n\n".join(parts) + "\n"


def _page(name: str, model: str | None) -> str:
    command = load_command(name, model)
    title = _title(name, model)
    parts = [f"# {title}", escaped(command.help or ""), fenced(_usage(title, command), "text")]
    if model is None:
        others = BY_MODEL.get(name, {})
        parts += [f"`--model {other}` has [options of its own]({name}-{other}.md)." for other in others]
    parts.append(directive("program", title))
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    if arguments:
        rows = [
            (f"`{each.metavar or each.name.upper()}`", escaped(split_default(each.help or "", None)[0]))
            for each in arguments
        ]
        parts += ["## Arguments", table(("argument", "what it is"), rows)]
    for heading, entries in _groups(command):
        parts.append(f"## {heading}")
        parts += [entry.markdown() for entry in entries]
    return "\n\n".join(parts) + "\n"


def _usage(title: str, command: Any) -> str:
    names = [each.metavar or each.name.upper() for each in command.params if each.param_type_name == "argument"]
    return " ".join((title, *names, "[OPTIONS]"))


def _groups(command: Any) -> Iterator[tuple[str, list[Entry]]]:
    """The options as the command's function takes them: single ones, and classes, whose docstrings are headings."""
    function = inspect.unwrap(command.callback)
    hints = get_type_hints(function)
    annotations = {name: each.annotation for name, each in inspect.signature(command.callback).parameters.items()}
    options = {each.name: each for each in command.params if each.param_type_name == "option"}
    names = inspect.signature(function).parameters
    single = [Entry(options[name], annotations[name]) for name in names if name in options]
    if single:
        yield "Options", single
    for name in names:
        kind = hints[name]
        if isinstance(kind, type) and issubclass(kind, Options):
            long = {f"{name}_{each.name}": each for each in options_of(kind)}
            if long:
                yield _heading(kind), [Entry(options[key], annotations[key], each) for key, each in long.items()]


def _kinds_in(annotation: Any) -> set[Any]:
    """All types that an annotation is made of."""
    return {annotation}.union(*(_kinds_in(each) for each in get_args(annotation) if isinstance(each, type | UnionType)))


def _heading(kind: type[Options]) -> str:
    """The first sentence of a class's docstring, as far as it needs no comma or semicolon."""
    first = (kind.__doc__ or kind.__name__).strip().split("\n")[0]
    return first.split(";")[0].split(". ")[0].rstrip(".")
