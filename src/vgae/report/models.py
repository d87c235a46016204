"""The tables of docs/models.md: every part in words, and what it scores, from the stored results of `vgae models`.

The page itself is written by hand. What this file writes stands between two comments in it; nothing else is touched.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from vgae.errors import InputError
from vgae.experiments.models import BASE, BASES, EXPERIMENT, MORE, model_with
from vgae.experiments.results import DATASETS, Archive, Cell, Result, summarise
from vgae.model.spec import FAMILIES, is_own
from vgae.report.parts import describe_parts
from vgae.words import count

BEGIN = "<!-- tables by `vgae report`: what is between these two comments is written anew each time -->"
END = "<!-- end of the tables -->"
NEW_PAGE = f"# Models: parts, and what they score\n\n{BEGIN}\n{END}\n"
TITLES = {BASE: "in the paper's VGAE", "accurate": "in `accurate`"}
ABOUT = """Scores are test AUC / AP in percent, means of {runs}, ± the standard error of the AUC. Run i has seed i and
split i (85/5/10), the same for all. Each part is tried in the place of the paper's in the paper's VGAE (hidden 32,
latent 16, 200 iterations, raw features), and in the place of the preset's in `accurate`, at the defaults of its
options; the settings are at the end. `vgae parts` says what goes together.
"""
TIMES = """Time is that of one training iteration, as a multiple of that of the paper's VGAE on the same machine and the
same dataset, in the order of the columns.
"""


def models_page(archive: Archive, page: str | None = None) -> str:
    """A page with its tables written anew, or a new page."""
    before, begin, rest = (page or NEW_PAGE).partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"out: the page has no place for the tables; it needs the lines {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n\n{models_tables(archive)}\n{END}{after}"


def models_tables(archive: Archive) -> str:
    """All tables, in Markdown."""
    if archive.experiment != EXPERIMENT:
        raise InputError("results: these are not of vgae models.")
    scores = _Scores(archive.results)
    runs = max(result.task.seed for result in archive.results) + 1
    sections = [
        ABOUT.format(runs=count(runs, "run")),
        *([TIMES] if scores.times else []),
        *(f"## {family.capitalize()}s\n\n{_words(family)}\n{_figures(family, scores)}" for family in FAMILIES),
        f"## Presets and training options\n\n{_more(scores)}",
        f"## Settings\n\n{_settings(archive)}",
        _made(archive),
    ]
    return "\n".join(sections)


class _Scores:
    """The cells of the tables, and the times of iterations."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.datasets = [name for name in DATASETS if any(result.task.dataset == name for result in results)]
        self.methods = tuple(dict.fromkeys(result.task.method for result in results))
        self.cells = summarise(results, self.methods)
        self.times = {
            (dataset, method): statistics.median(times)
            for dataset in self.datasets
            for method in self.methods
            if (times := list(_times(results, dataset, method)))
        }

    def row(self, method: str | None) -> list[str]:
        """AUC / AP on each dataset, then the times if there are any; dashes for what is not known."""
        known = method or ""
        cells = [_cell(self.cells[dataset].get(known)) for dataset in self.datasets]
        times = " / ".join(self._time(dataset, known) for dataset in self.datasets)
        return [*cells, times] if self.times else cells

    def _time(self, dataset: str, method: str) -> str:
        own, base = self.times.get((dataset, method)), self.times.get((dataset, BASE))
        return "–" if own is None or not base else f"{own / base:.1f}×"

    @property
    def titles(self) -> list[str]:
        return [*(name.title() for name in self.datasets), *(["time"] if self.times else [])]


def _times(results: Sequence[Result], dataset: str, method: str) -> Iterator[float]:
    for result in results:
        if (result.task.dataset, result.task.method) == (dataset, method) and result.iteration_seconds is not None:
            yield result.iteration_seconds


def _words(family: str) -> str:
    """What each part of a family is."""
    parts = [part for part in describe_parts(family) if is_own(part.spec)]
    rows = [
        [f"`{part.name}`", part.equation, *((note.source, note.use, note.cost) if (note := part.note) else ("–",) * 3)]
        for part in parts
    ]
    return markdown_table([family, "equation", "source", "when to use it", "what it costs"], rows)


def _figures(family: str, scores: _Scores) -> str:
    """What each part of a family scores: a table for each of the two models that it is tried in."""
    names = [part.name for part in describe_parts(family) if is_own(part.spec)]
    tables = []
    for base, title in TITLES.items():
        shown = {name: model_with(base, family, name) for name in names}
        rows = [[f"`{name}`", *scores.row(method)] for name, method in shown.items() if method is not None]
        tables.append(markdown_table([title, *scores.titles], rows))
    return "\n".join(tables)


def _more(scores: _Scores) -> str:
    names = [*BASES, *MORE]
    return markdown_table(["model", *scores.titles], [[f"`{name}`", *scores.row(name)] for name in names])


def _settings(archive: Archive) -> str:
    """What each model is, as options of `vgae train`."""
    found = {result.task.method: result.task.settings for result in archive.results}
    rows = [[f"`{name}`", f"`{text}`" if text else "the paper's defaults"] for name, text in found.items()]
    return markdown_table(["model", "options of `vgae train`"], rows)


def _made(archive: Archive) -> str:
    results = archive.results
    hours = sum(result.seconds for result in results) / 3600
    lines = [
        f"Made by `vgae models --runs {archive.splits}` and `vgae report`: {count(len(results), 'run')}, which took "
        f"{hours:.1f} hours one after the other.",
        "",
        *(
            f"- {count(each.num_runs, 'run')} in {each.seconds / 60:.1f} minutes on {each.machine}"
            for each in archive.sessions
        ),
    ]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    error = "" if cell.auc_error is None else f" ± {cell.auc_error:.1f}"
    return f"{cell.auc:.1f} / {cell.ap:.1f}{error}"


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join("| " + " | ".join(value.replace("|", "\\|") for value in line) + " |\n" for line in lines)
