"""The tables of docs/accuracy.md, from the stored results of `vgae accuracy`, beside what others have published.

The page itself is written by hand. What this file writes stands between two comments in it; nothing else is touched.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vgae.baselines import BASELINES
from vgae.errors import InputError
from vgae.experiments.accuracy import EXPERIMENT
from vgae.experiments.measures import TOP, by_column
from vgae.experiments.methods import STACK, all_methods
from vgae.experiments.published import HARD_NON_LINKS, WITH_FEATURES, WITHOUT_FEATURES, Published
from vgae.experiments.results import Archive, Result, standard_error
from vgae.io.catalog import DATASETS
from vgae.report.models import BEGIN, END
from vgae.report.models import markdown_table as table
from vgae.words import count

NEW_PAGE = f"# How accurate the models are\n\n{BEGIN}\n{END}\n"
NAMES = {
    "cora": "Cora",
    "citeseer": "Citeseer",
    "pubmed": "Pubmed",
    "blogcatalog": "BlogCatalog",
    "ca-astroph": "ca-AstroPh",
}
PRECISION = tuple(f"precision@{k}" for k in TOP)
HEART = ("heart_mrr", "heart_hits@10", "heart_hits@20")
ABOUT = """Figures are in percent, means over splits, ± the standard error of the first of them. Run i has seed i and
split i (85/5/10), the same for all methods. A star marks methods without features. Rows in italics are published
figures of others, whose protocols differ, as the last tables say. Where a figure is of fewer splits than the graph has,
their number is in brackets; a dash stands for what was not run.
"""
LINKED = """The same test pairs without those, links or non-links, that have a node without links in the training graph.
"""
TOP_OF_THE_LIST = """Precision@100 / precision@1000 over all pairs of nodes, links for training and validation left out.
Where there are fewer test links than places, no method can reach 100: the last row has what is possible.
"""
BASES = """The stack / the best of its columns of evidence, each alone, at the top among the pairs of the first stage /
the best of the baselines that were run on the same splits.
"""
HARD = """MRR / Hits@10 / Hits@20 of each test link among 500 hard non-links, the same for all methods of a split.
"""
TIME = """Seconds to fit a method on one split and to score the test pairs, the median. Runs that share a machine take
longer than runs alone, so that these say how methods compare on one machine and little more.
"""


def accuracy_page(archive: Archive, page: str | None = None) -> str:
    """A page with its tables written anew, or a new page."""
    before, begin, rest = (page or NEW_PAGE).partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"out: the page has no place for the tables; it needs the lines {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n\n{accuracy_tables(archive)}\n{END}{after}"


def accuracy_tables(archive: Archive) -> str:
    """All tables, in Markdown."""
    if archive.experiment != EXPERIMENT:
        raise InputError("results: these are not of vgae accuracy.")
    scores = _Scores.of(archive)
    featured = [name for name in scores.graphs if archive.graphs[name].num_features]
    using = [name for name in scores.methods if _uses_features(name)]
    others = [name for name in scores.methods if name not in using]
    hard = [
        name for name in scores.graphs if any((name, each, "heart_mrr") in scores.values for each in scores.methods)
    ]
    linked = ("auc_linked", "ap_linked")
    sections = [
        ABOUT,
        f"## The graphs\n\n{_graphs(archive, scores)}",
        _section("With features: AUC / AP", scores.rows(using, featured, ("auc", "ap")), featured, WITH_FEATURES),
        _section(
            "Without features: AUC / AP",
            scores.rows(others, scores.graphs, ("auc", "ap")),
            scores.graphs,
            WITHOUT_FEATURES,
        ),
        _section(
            "Nodes without training links left out: AUC / AP",
            scores.rows(scores.methods, scores.graphs, linked),
            scores.graphs,
            (),
            LINKED,
        ),
        _section(
            "The top of the list: precision@100 / precision@1000",
            [*scores.rows(scores.methods, scores.graphs, PRECISION), _most_possible(archive, scores)],
            scores.graphs,
            (),
            TOP_OF_THE_LIST,
        ),
        _bases_section(scores),
        _section(
            "Hard non-links: MRR / Hits@10 / Hits@20",
            scores.rows(scores.methods, hard, HEART),
            hard,
            HARD_NON_LINKS,
            HARD,
        ),
        _section("Time", scores.time_rows(), scores.graphs, (), TIME),
        f"## Published figures\n\n{_published()}",
        f"## Settings\n\n{_settings(archive)}",
        _made(archive),
    ]
    return "\n".join(section for section in sections if section)


def table_of_scores(results: Sequence[Result]) -> list[list[str]]:
    """AUC / AP of each method on each graph, with titles, for a terminal."""
    names = _in_order({result.task.dataset for result in results})
    scores = _Scores.of_results(results, names)
    return [["AUC / AP", *names], *scores.rows(scores.methods, names, ("auc", "ap"), errors=False)]


def scores_for_json(archive: Archive) -> dict[str, dict[str, dict[str, Any]]]:
    """All means by graph, method and metric, in percent, with standard errors and numbers of runs."""
    scores = _Scores.of(archive)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (graph, method, metric), values in scores.values.items():
        mean = {"mean": statistics.mean(values), "error": standard_error(values), "runs": len(values)}
        found.setdefault(graph, {}).setdefault(method, {})[metric] = mean
    return found


@dataclass(frozen=True)
class _Scores:
    """Values in percent by graph, method and metric, in the order of the runs; their seconds of fitting and seeds."""

    graphs: list[str]
    methods: list[str]
    values: Mapping[tuple[str, str, str], list[float]]
    seconds: Mapping[tuple[str, str], list[float]]
    seeds: Mapping[tuple[str, str], list[int]]

    @classmethod
    def of(cls, archive: Archive) -> _Scores:
        """The scores of an archive."""
        return cls.of_results(archive.results, _in_order({result.task.dataset for result in archive.results}))

    @classmethod
    def of_results(cls, results: Sequence[Result], graphs: list[str]) -> _Scores:
        """The scores of some results."""
        known = list(all_methods())
        found = dict.fromkeys(result.task.method for result in results)
        methods = [*(name for name in known if name in found), *(name for name in found if name not in known)]
        values: dict[tuple[str, str, str], list[float]] = {}
        seconds: dict[tuple[str, str], list[float]] = {}
        seeds: dict[tuple[str, str], list[int]] = {}
        for result in sorted(results, key=lambda each: each.task.seed):
            key = (result.task.dataset, result.task.method)
            seeds.setdefault(key, []).append(result.task.seed)
            for metric, value in result.metrics.items():
                values.setdefault((*key, metric), []).append(100 * value)
            if result.fit_seconds is not None:
                seconds.setdefault(key, []).append(result.fit_seconds)
        return cls(graphs, methods, values, seconds, seeds)

    def num_runs(self, graph: str) -> int:
        """The splits of a graph, by the method that has most."""
        return max(len(values) for (name, _, metric), values in self.values.items() if (name, metric) == (graph, "auc"))

    def rows(
        self, methods: Sequence[str], graphs: Sequence[str], metrics: Sequence[str], *, errors: bool = True
    ) -> list[list[str]]:
        """A row for each method that has any of these figures."""
        found = [[name, *(self._cell(graph, name, metrics, errors=errors) for graph in graphs)] for name in methods]
        return [row for row in found if any(cell != "–" for cell in row[1:])]

    def _cell(self, graph: str, method: str, metrics: Sequence[str], *, errors: bool) -> str:
        columns = [self.values.get((graph, method, metric), []) for metric in metrics]
        if not any(columns):
            return "–"
        text = " / ".join(f"{statistics.mean(values):.1f}" if values else "–" for values in columns)
        error, number = standard_error(columns[0]) if columns[0] else None, max(map(len, columns))
        if errors and error is not None:
            text += f" ± {error:.1f}"
        return text if not errors or number == self.num_runs(graph) else f"{text} ({number})"

    def beside_bases(self, graph: str, stack: str, metric: str) -> str | None:
        """A stack's figure, the best of its columns by name, and the best of the baselines over the same splits."""
        own = self.values.get((graph, stack, metric))
        columns = {
            name.removeprefix(by_column(metric, "")): values
            for (where, method, name), values in self.values.items()
            if (where, method) == (graph, stack) and name.startswith(by_column(metric, ""))
        }
        if not own or not columns:
            return None
        baselines = {
            name: values[: len(own)]
            for name in BASELINES
            if (_uses_features(stack) or not _uses_features(name))
            and self.seeds.get((graph, name), [])[: len(own)] == self.seeds[graph, stack]
            and len(values := self.values.get((graph, name, metric), [])) >= len(own)
        }
        best = [max(each.items(), key=lambda item: statistics.mean(item[1])) for each in (columns, baselines) if each]
        return " / ".join(
            [f"{statistics.mean(own):.1f}", *(f"{statistics.mean(values):.1f} ({name})" for name, values in best)]
        )

    def time_rows(self) -> list[list[str]]:
        """The median seconds of fitting."""
        found = []
        for name in self.methods:
            times = [self.seconds.get((graph, name)) for graph in self.graphs]
            found.append([name, *("–" if each is None else _seconds(statistics.median(each)) for each in times)])
        return [row for row in found if any(cell != "–" for cell in row[1:])]


def _section(
    title: str,
    rows: Sequence[Sequence[str]],
    graphs: Sequence[str],
    published: Sequence[Published],
    words: str = "",
) -> str:
    """A title, a sentence, and a table of methods by graphs, published figures after our own; nothing without rows."""
    if not rows or not graphs:
        return ""
    others = [
        [f"_{_plain(each.name)}, published_", *(_figures(each.figures.get(name)) for name in graphs)]
        for each in published
    ]
    body = [[f"`{row[0]}`" if row[0] in all_methods() else row[0], *row[1:]] for row in rows]
    others = [row for row in others if any(cell != "–" for cell in row[1:])]
    return f"## {title}\n\n" + (f"{words}\n" if words else "") + table(["", *map(_title, graphs)], [*body, *others])


def _bases_section(scores: _Scores) -> str:
    """A stack beside the best of the columns that it is made of, and the best of the baselines."""
    rows = []
    for graph in scores.graphs:
        for stack in (name for name in scores.methods if name.rstrip("*") == STACK):
            cells = [scores.beside_bases(graph, stack, metric) for metric in ("auc", *PRECISION)]
            if any(cells):
                rows.append([f"{_title(graph)}, `{stack}`", *(cell or "–" for cell in cells)])
    titles = ["", "AUC", *PRECISION]
    return f"## The stack and what it is made of\n\n{BASES}\n" + table(titles, rows) if rows else ""


def _graphs(archive: Archive, scores: _Scores) -> str:
    rows = []
    for name in scores.graphs:
        facts = archive.graphs[name]
        shares = [
            value
            for (graph, _, metric), values in scores.values.items()
            if (graph, metric) == (name, "left_out")
            for value in values
        ]
        counts = (facts.num_nodes, facts.num_links, facts.num_features, facts.num_test_links)
        left_out = f"{statistics.mean(shares):.1f}" if shares else "–"
        rows.append([_title(name), *(f"{number:,}" for number in counts), left_out, str(scores.num_runs(name))])
    titles = [
        "graph",
        "nodes",
        "links",
        "features",
        "test links",
        "% of them with a node without training links",
        "splits",
    ]
    return table(titles, rows)


def _most_possible(archive: Archive, scores: _Scores) -> list[str]:
    """Precision of a perfect list, which has all test links at its top."""
    most = [[min(1.0, archive.graphs[name].num_test_links / k) for k in TOP] for name in scores.graphs]
    return ["the most that is possible", *(" / ".join(f"{100 * value:.1f}" for value in values) for values in most)]


def _published() -> str:
    every = (
        *(("AUC / AP", each) for each in (*WITH_FEATURES, *WITHOUT_FEATURES)),
        *(("MRR", each) for each in HARD_NON_LINKS),
    )
    names: dict[tuple[str, str, str], list[str]] = {}
    for what, each in every:
        names.setdefault((what, each.source, each.differences), []).append(each.name)
    rows = [[", ".join(map(_plain, found)), *key] for key, found in names.items()]
    return table(["method", "figures", "source", "what differs there"], rows)


def _settings(archive: Archive) -> str:
    """What each model is, as options of `vgae train`; with its graphs where runs had several settings."""
    rows = []
    for name in all_methods():
        found = archive.settings_of(name)
        for settings, graphs in found.items():
            where = f" on {', '.join(map(_title, graphs))}" if len(found) > 1 else ""
            rows.append([f"`{name}`{where}", f"`{settings}`" if settings else "as it comes"])
    return table(["method", "settings"], rows)


def _made(archive: Archive) -> str:
    results = archive.results
    hours = sum(result.seconds for result in results) / 3600
    return (
        f"Made by `vgae accuracy` and `vgae report`: {count(len(results), 'run')}, which took {hours:.1f} hours one "
        "after the other, scoring included.\n\n"
        + "".join(
            f"- {count(each.num_runs, 'run')} in {each.seconds / 60:.1f} minutes on {each.machine}\n"
            for each in archive.sessions
        )
    )


def _uses_features(name: str) -> bool:
    method = all_methods().get(name)
    return method is not None and method.uses_features


def _in_order(names: Iterable[str]) -> list[str]:
    """Datasets as they are listed, then files by name."""
    known = list(DATASETS)
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def _title(name: str) -> str:
    return NAMES.get(name, name)


def _plain(name: str) -> str:
    """A name in which stars are stars."""
    return name.replace("*", "\\*")


def _figures(values: tuple[float | None, ...] | None) -> str:
    return "–" if values is None else " / ".join("–" if value is None else f"{value:.1f}" for value in values)


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
