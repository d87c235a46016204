"""Options of a command in British and American spelling; help shows the one that they are written in."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from typer.core import TyperCommand

from vgae.spelling import other_spelling


class BothSpellings(TyperCommand):
    """A command that understands each of its options in its other spelling too."""

    def make_parser(self, ctx: Any) -> Any:
        """A parser to which the other spelling of an option is the same option."""
        parser = super().make_parser(ctx)
        for each in self.params:
            twin = copy(each)
            twin.opts, twin.secondary_opts = _others(each.opts), _others(each.secondary_opts)
            if twin.opts and each.param_type_name == "option":
                twin.add_to_parser(parser, ctx)
        return parser


def in_both_spellings(flags: Iterable[str]) -> set[str]:
    """These flags, and those that have another spelling in that too."""
    flags = list(flags)
    return {*flags, *_others(flags)}


def _others(flags: Iterable[str]) -> list[str]:
    return [other for other in map(other_spelling, flags) if other is not None]
