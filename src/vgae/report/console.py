"""What the command prints: results on standard output, everything else on standard error."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from vgae.experiments.paper import TABLE_1
from vgae.experiments.reproduce import METHODS, Cell

out = Console(markup=False)
notes = Console(stderr=True, markup=False)


def tell(text: str) -> None:
    """A sentence that is a result."""
    out.print(text, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """A sentence beside the results."""
    notes.print(text, highlight=False, soft_wrap=True)


def print_json(content: Mapping[str, Any]) -> None:
    """One object on standard output."""
    print(json.dumps(content, indent=2))


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str] = ()) -> None:
    """Rows of text below their titles; columns of numbers are set to the right."""
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="right" if title in numbers else "left")
    for row in rows:
        table.add_row(*row)
    out.print(table)


def print_scores(
    metrics: Mapping[str, Mapping[str, float]], paper: tuple[float, float] | None, columns: tuple[str, ...] = ()
) -> None:
    """Scores in percent, all of them or some columns, with the paper's beside them where it has any."""
    if not metrics:
        return
    columns = columns or tuple(next(iter(metrics.values())))
    titles = [column.title() if column.startswith("hits") else column.upper() for column in columns]
    rows = [[name, *(f"{100 * values[column]:.1f}" for column in columns)] for name, values in metrics.items()]
    if paper:
        rows.append(["paper, test", *(f"{value:.1f}" for value in paper)])
    print_table(["", *titles], rows, numbers=titles)
    if paper:
        out.print("The paper's is a mean of ten runs on a split that was never published.", style="dim")


def table_1(table: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Our AUC / AP in percent, and the paper's below."""
    view = Table(box=None, pad_edge=False)
    view.add_column("AUC / AP", no_wrap=True)
    for name in table:
        view.add_column(name, justify="right", no_wrap=True)
    for method in METHODS:
        if not any(method in cells for cells in table.values()):
            continue
        found = [cells.get(method) for cells in table.values()]
        view.add_row(method, *("–" if cell is None else f"{cell.auc:.1f} / {cell.ap:.1f}" for cell in found))
        paper = [TABLE_1[name][method] for name in table]
        view.add_row("  the paper", *(f"{auc:.1f} / {ap:.1f}" for auc, ap in paper), style="dim")
    return view
