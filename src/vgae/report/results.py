"""The files of a reproduction: its results and the paper's tables and Figure 1 made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vgae.experiments.reproduce import embed_cora, summarise
from vgae.experiments.results import Cell, Result
from vgae.experiments.store import Store
from vgae.io.exports import write_text
from vgae.io.json_files import write_json
from vgae.report.figures import PROJECTIONS, latent_space, project, save_figure
from vgae.report.tables import to_latex, to_markdown

FIGURES = (*PROJECTIONS, "2d", "none")  # what Figure 1 can be: a view of 16 dimensions, or a latent space of two


def cells_of(table: Mapping[str, Mapping[str, Cell]]) -> dict[str, dict[str, Any]]:
    """Table 1 for JSON."""
    return {name: {method: asdict(cell) for method, cell in row.items()} for name, row in table.items()}


def write_results(store: Store, results: Sequence[Result]) -> list[str]:
    """Write all results and the tables made of them to the folder of the store; the names of the files."""
    folder, table = store.folder, summarise(results)
    write_json(folder / "table.json", cells_of(table))
    store.archive(results).write(folder / "results.json")
    write_text(folder / "table.md", to_markdown(table))
    write_text(folder / "table.tex", to_latex(table))
    return ["table.json", "table.md", "table.tex", "results.json"]


def draw_figure_1(folder: Path, view: str) -> list[str]:
    """Draw the latent space of a VGAE on Cora, by one of `FIGURES`; the names of the files."""
    embedding, cora = embed_cora(latent_dim=2) if view == "2d" else embed_cora()
    picture = latent_space(project(embedding, "tsne" if view == "2d" else view), cora.edges, cora.labels)
    names = ["figure-1.png", "figure-1.svg"]
    for name in names:
        save_figure(picture, folder / name)
    return names
