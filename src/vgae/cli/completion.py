"""What a shell offers when Tab is pressed: commands, options and their values.

The shell's script (`shells.py`) calls the command with _VGAE_COMPLETE=complete_SHELL and tells what has been typed:
bash in COMP_WORDS and COMP_CWORD, the others in _TYPER_COMPLETE_ARGS, the line up to the cursor. These are the
variables of typer's own scripts. The answer has one line for each word on offer; without any, the shell offers files.

A command's options are known only when its module is loaded, which takes seconds. So they are read from a table that
`make completion` writes (`completion_table.py`), and nothing is loaded.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgae.cli.shells import SHELLS, script
from vgae.io.catalog import DATASETS

VARIABLE = "_VGAE_COMPLETE"
TABLE = Path(__file__).with_name("completion.json")
GRAPH = "GRAPH"  # the argument that may be the name of a dataset
Described = Iterator[tuple[str, str]]  # words, and what each means


@dataclass(frozen=True)
class Typed:
    """The words before the one at the cursor, the command's own name aside, and what there is of that one."""

    words: list[str]
    incomplete: str

    @classmethod
    def of(cls, shell: str, environment: Mapping[str, str]) -> Typed:
        """What the shell tells."""
        if shell == "bash":
            words = split(environment.get("COMP_WORDS", ""))
            position = int(environment.get("COMP_CWORD", "0"))
            at_cursor = words[position] if position < len(words) else ""
            # To bash, --option=value is three words, of which it replaces the last.
            return cls(words[1:position], "" if at_cursor == "=" else at_cursor)
        line = environment.get("_TYPER_COMPLETE_ARGS", "")
        words = split(line)[1:]
        return cls(words, "") if line.endswith(" ") or not words else cls(words[:-1], words[-1])

    @property
    def option(self) -> str:
        """The word before the cursor, past an equals sign: perhaps an option that waits for its value."""
        before = [word for word in self.words[-2:] if word != "="]
        return before[-1] if before else ""


def split(line: str) -> list[str]:
    """The words of a line as a shell has them; where a quote is still open, simply between blanks."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def offers(typed: Typed, table: Mapping[str, Any] | None = None) -> Described:
    """The words that may stand at the cursor, each with what it means."""
    table = json.loads(TABLE.read_text(encoding="utf-8")) if table is None else table
    for word, meaning in _possible(typed, table):
        if word.startswith(typed.incomplete):
            yield word, meaning


def _possible(typed: Typed, table: Mapping[str, Any]) -> Described:
    if not typed.words:
        yield from table["options"].items() if typed.incomplete.startswith("-") else _helps(table["commands"])
        return
    name, *rest = typed.words
    if name not in table["commands"]:
        return
    command = _for_model(table["commands"][name], rest)
    options = command["options"]
    flag, equals, _ = typed.incomplete.partition("=")
    if equals and flag in options:
        yield from ((f"{flag}={value}", "") for value in options[flag]["values"])
    elif typed.option in options and options[typed.option]["takes_value"]:
        yield from ((value, "") for value in options[typed.option]["values"])
    elif typed.incomplete.startswith("-"):
        yield from _helps(options)
    else:
        yield from _arguments(command, _num_arguments(rest, options), typed.incomplete)


def _for_model(command: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """The command, or what it is for a model with options of its own."""
    for model, own in command["models"].items():
        if model in words and words[words.index(model) - 1] in ("--model", "="):
            return dict(own)
        if f"--model={model}" in words:
            return dict(own)
    return command


def _arguments(command: dict[str, Any], position: int, incomplete: str) -> Described:
    """Values of an argument; datasets only where no file begins alike, because the shell offers one or the other."""
    if position >= len(command["arguments"]):
        return
    argument = command["arguments"][position]
    yield from ((value, "") for value in argument["values"])
    if argument["name"] == GRAPH and incomplete and not _begins_a_file(incomplete):
        yield from ((name, info.description) for name, info in DATASETS.items())


def _begins_a_file(text: str) -> bool:
    return any(each.name.startswith(text) for each in Path().iterdir())


def _num_arguments(words: list[str], options: dict[str, Any]) -> int:
    """How many of the words are arguments, not options or their values."""
    found, of_option = 0, False
    for word in words:
        if word == "=":
            of_option = True
        elif of_option:
            of_option = False
        elif word.startswith("-"):
            of_option = options.get(word, {}).get("takes_value", False)
        else:
            found += 1
    return found


def _helps(entries: dict[str, Any]) -> Described:
    return ((name, entry["help"]) for name, entry in entries.items())


def lines(shell: str, offered: Described) -> Iterator[str]:
    """The offers as the shell's script reads them."""
    for word, meaning in offered:
        if shell == "fish":
            yield f"{word}\t{meaning}"
        elif shell == "zsh":
            yield word.replace(":", "\\:") + (f":{meaning}" if meaning else "")
        else:
            yield word


def main() -> None:
    """Answer the shell."""
    task, _, shell = os.environ[VARIABLE].partition("_")
    if shell not in SHELLS or task not in ("complete", "source"):
        sys.stderr.write(f"vgae: {VARIABLE}: complete_SHELL or source_SHELL is needed, of {', '.join(SHELLS)}.\n")
        sys.exit(2)
    found = [script(shell)] if task == "source" else lines(shell, offers(Typed.of(shell, os.environ)))
    sys.stdout.writelines(f"{line}\n" for line in found)
