"""`vgae parts`."""

from __future__ import annotations

from textwrap import wrap
from typing import Annotated, Any

import typer

from vgae.cli.options import Json
from vgae.model.spec import FAMILIES
from vgae.options import one_of
from vgae.report.console import print_json
from vgae.report.parts import PartInfo, describe_parts, own_parts
from vgae.screen import print_line

WIDTH = 110

Family = Annotated[
    str | None, typer.Argument(metavar="[FAMILY]", help=f"{', '.join(FAMILIES)}.  [default: all]", show_default=False)
]


def parts(family: Family = None, as_json: Json = False) -> None:
    """Print each part with its equation, its options, and what it can be combined with."""
    families = FAMILIES if family is None else (one_of(family, "family", FAMILIES),)
    found = {each: describe_parts(each) for each in families}
    if as_json:
        print_json({each: {part.name: part.to_json() for part in listed} for each, listed in found.items()})
        return
    for number, (each, listed) in enumerate(found.items()):
        if number:
            print_line("")
        own = own_parts("vgae")[each]
        print_line(f"{each}, given as --{each} NAME or --{each} NAME:option=value,option=value; a VGAE has {own}")
        for part in listed:
            print_line("")
            _print(part)


def _print(part: PartInfo) -> None:
    print_line(f"  {part.name:<16}{part.equation}")
    note = part.note
    texts = [note.use, f"Source: {note.source}.", f"Cost: {note.cost}"] if note else []
    for text in (*texts, part.goes_with):
        _indent(text, 6)
    for each in part.options:
        _indent(f"{each.name} = {_written(each.default)}: {each.rule.help.rstrip('.')}; {each.allowed}.", 8)


def _written(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _indent(text: str, by: int) -> None:
    for number, line in enumerate(wrap(text, WIDTH - by, break_long_words=False)):
        print_line(" " * (by if not number else by + 2) + line)
