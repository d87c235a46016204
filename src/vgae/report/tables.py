"""Table 1, ours beside the paper's: on the screen, as Markdown and as LaTeX."""

from collections.abc import Mapping

import rich.table

from vgae.experiments.paper import TABLE_1
from vgae.experiments.reproduce import METHODS
from vgae.experiments.results import Cell
from vgae.report.console import print_table, rich_table

Table = Mapping[str, Mapping[str, Cell]]


def print_table_1(table: Table) -> None:
    """Print our AUC / AP in percent, and the paper's below."""
    titles, rows = _rows_of_table_1(table)
    print_table(titles, rows, numbers=titles[1:])


def table_1(table: Table) -> rich.table.Table:
    """The same for a terminal, while it grows."""
    titles, rows = _rows_of_table_1(table)
    return rich_table([titles, *rows], [title != titles[0] for title in titles])


def to_markdown(table: Table) -> str:
    """One row per dataset and method: ours with its standard error, the paper's, and the difference."""
    lines = [
        "| dataset | method | AUC | paper | difference | AP | paper | difference | runs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for dataset, cells in table.items():
        for method, cell in cells.items():
            paper = TABLE_1[dataset][method]
            auc = (_with_error(cell.auc, cell.auc_error, "±"), f"{paper[0]:.1f}", f"{cell.auc - paper[0]:+.1f}")
            ap = (_with_error(cell.ap, cell.ap_error, "±"), f"{paper[1]:.1f}", f"{cell.ap - paper[1]:+.1f}")
            lines.append("| " + " | ".join([dataset, method, *auc, *ap, str(cell.num_runs)]) + " |")
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """The table in the paper's own layout: methods down, datasets across, AUC and AP; for the booktabs package."""
    datasets = list(table)
    methods = [method for method in TABLE_1["cora"] if any(method in cells for cells in table.values())]
    head = " & ".join(rf"\multicolumn{{2}}{{c}}{{{dataset.title()}}}" for dataset in datasets)
    lines = [
        rf"\begin{{tabular}}{{l{'cc' * len(datasets)}}}",
        r"\toprule",
        rf"Method & {head} \\",
        " & ".join(["", *["AUC & AP"] * len(datasets)]) + r" \\",
        r"\midrule",
    ]
    for method in methods:
        cells = [_latex_cell(table[dataset].get(method)) for dataset in datasets]
        lines.append(" & ".join([method.replace("*", r"$^*$"), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _rows_of_table_1(table: Table) -> tuple[list[str], list[list[str]]]:
    rows = []
    for method in METHODS:
        if not any(method in cells for cells in table.values()):
            continue
        found = [cells.get(method) for cells in table.values()]
        rows.append([method, *("–" if cell is None else f"{cell.auc:.1f} / {cell.ap:.1f}" for cell in found)])
        paper = [TABLE_1[name][method] for name in table]
        rows.append(["  the paper", *(f"{auc:.1f} / {ap:.1f}" for auc, ap in paper)])
    return ["AUC / AP", *table], rows


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return "-- & --"
    values = ((cell.auc, cell.auc_error), (cell.ap, cell.ap_error))
    return " & ".join(f"${_with_error(value, error, chr(92) + 'pm')}$" for value, error in values)


def _with_error(value: float, error: float | None, sign: str) -> str:
    return f"{value:.1f}" if error is None else f"{value:.1f} {sign} {error:.1f}"
