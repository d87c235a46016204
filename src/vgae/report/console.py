"""What the command prints as results: tables, scores and JSON.

A table is set in columns. On a terminal that is too narrow, long values are folded; in a pipe or a file every row is
one line with whole values, however wide, and always the same bytes.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from vgae.io.json_files import finite
from vgae.screen import print_line, visible, write

WIDEST = 40  # a longer value moves the rest of its own row to the right, and no other row


def progress_console(*, quiet: bool) -> Console:
    """Where a picture of the progress is drawn: standard error, if that is a terminal."""
    return Console(stderr=True, markup=False, emoji=False, highlight=False, quiet=quiet or not sys.stderr.isatty())


def print_json(content: Mapping[str, Any]) -> None:
    """One object on standard output, strictly JSON: what is not a finite number is null."""
    write(json.dumps(finite(content), indent=2, allow_nan=False) + "\n")


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str] = ()) -> None:
    """Rows of text below their titles; columns of numbers are set to the right."""
    shown = [[visible(value) for value in row] for row in (titles, *rows)]
    to_the_right = [title in numbers for title in titles]
    if sys.stdout.isatty():
        write(_folded(shown, to_the_right))
    else:
        write(_aligned(shown, to_the_right))


def print_scores(
    metrics: Mapping[str, Mapping[str, float]],
    paper: tuple[float, float] | None,
    columns: tuple[str, ...] = (),
    protocol: str = "paper",
) -> None:
    """Scores in percent, all of them or some columns, with the paper's beside them where it has any.

    The first title names the protocol that the scores were made by.
    """
    if not metrics:
        return
    columns = columns or tuple(dict.fromkeys(column for values in metrics.values() for column in values))
    titles = [column.title() if column.startswith("hits") else column.upper() for column in columns]
    rows = [[name, *(_percent(values.get(column)) for column in columns)] for name, values in metrics.items()]
    if paper:
        rows.append(["paper, test", *(f"{value:.1f}" for value in paper), *[""] * (len(columns) - len(paper))])
    print_table([f"protocol {protocol}", *titles], rows, numbers=titles)
    if paper:
        print_line("The paper's scores are means of ten runs on a split that was never published.")


def rich_table(rows: Sequence[Sequence[str]], to_the_right: Sequence[bool]) -> Table:
    """Rows, the first of them titles, for a terminal."""
    titles, *body = rows
    table = Table(box=None, pad_edge=False)
    for title, right in zip(titles, to_the_right, strict=True):
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for row in body:
        table.add_row(*row)
    return table


def _aligned(rows: Sequence[Sequence[str]], to_the_right: Sequence[bool]) -> str:
    widths = [max(min(cell_len(value), WIDEST) for value in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        gaps = [" " * (width - cell_len(value)) for width, value in zip(widths, row, strict=True)]
        cells = [
            gap + value if right else value + gap for value, gap, right in zip(row, gaps, to_the_right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip(" ") + "\n")
    return "".join(lines)


def _folded(rows: Sequence[Sequence[str]], to_the_right: Sequence[bool]) -> str:
    console = Console(markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        console.print(rich_table(rows, to_the_right))
    return captured.get()


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
