"""Markdown out of docstrings and out of options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from vgae.model.spec import FAMILIES
from vgae.options import Option
from vgae.spelling import other_spelling

PROMPT = ">>> "
_DEFAULT = re.compile(r"\s*\[default: (?P<default>.*)\]\s*$", re.DOTALL)
_CODE = re.compile(r"(?<!`)`(?P<code>[^`\n]+)`(?!`)")


def from_docstring(text: str, link: Callable[[str], str | None]) -> str:
    """A docstring as Markdown: examples become blocks of code, and names that are documented become links."""
    blocks: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith(PROMPT):
            blocks.append(fenced(paragraph, "pycon"))
        elif paragraph.startswith("    "):
            blocks.append(fenced(_dedented(paragraph), "text"))
        else:
            blocks.append(_CODE.sub(lambda found: link(found["code"]) or found[0], paragraph))
    return _joined(blocks)


def fenced(code: str, language: str) -> str:
    """A block of code."""
    fence = "```" if "```" not in code else "~~~~"
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell does not end it."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def directive(name: str, argument: str, body: str = "", options: Sequence[str] = (), depth: int = 3) -> str:
    """A directive with its content; one that holds others has a longer fence."""
    fence = ":" * depth
    head = "".join(f":{option}\n" if ": " in option else f":{option}:\n" for option in options)
    return f"{fence}{{{name}}} {argument}\n{head}{body.strip()}\n{fence}"


def code(value: object) -> str:
    """A value as inline code."""
    return f"`{value}`"


def split_default(text: str, default: Any) -> tuple[str, str]:
    """What an option is for, and its default in words, which the help may explain; empty where there is none."""
    found = _DEFAULT.search(text)
    if found:
        return text[: found.start()], " ".join(found["default"].split())
    if default is None or default is False or default == ():
        return text, ""
    return text, code(default.as_posix() if isinstance(default, Path) else default)


def option_table(options: Iterable[Option], first: str = "parameter") -> str:
    """Options as rows: name, default, what a value may be, what it is for."""
    rows = []
    for each in options:
        text, default = split_default(each.rule.help if each.name in FAMILIES else each.help, each.default)
        default = default or code(each.default)
        other = other_spelling(each.name)
        also = f" Also understood as {code(other)}." if other is not None else ""
        rows.append((code(each.name), default, allowed(each), escaped(text) + also))
    return table((first, "default", "may be", "what it is"), rows)


def allowed(option: Option) -> str:
    """What a value may be; of a part, where to read about it."""
    if option.rule.choices is not None:
        words = ", ".join(code(each) for each in option.rule.choices())
        return f"{words}, or `None`" if option.optional else words
    if option.name in FAMILIES:
        return f"a [part](../parts/{option.name}.md): its name, `name:option=value`, or an object; or `None`"
    if option.kind is bool:
        return "`True` or `False`" + (", or `None`" if option.optional else "")
    words = option.allowed.replace("or none", "or `None`")
    return re.sub(r"\d{5,}", lambda number: f"{int(number[0]):,}", words)


def escaped(text: str) -> str:
    """Plain text, in which nothing is taken for Markdown."""
    return re.sub(r"([*_<\\])", r"\\\1", text)


def _dedented(paragraph: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in paragraph.splitlines())


def _joined(blocks: list[str]) -> str:
    """Blocks one below the other; parts of one example that an empty line divides are one block."""
    text = "\n\n".join(blocks)
    return text.replace("\n```\n\n```pycon\n", "\n\n")
