"""What a training was asked for on the command line, whatever the model, and what to run next on the same graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vgae.cli.opening import OpenedGraph, SplitOptions
from vgae.cli.options import TableOptions
from vgae.graph.split import LinkSplit
from vgae.options import as_arguments
from vgae.report.verdict import Hints
from vgae.screen import shell_line


@dataclass(frozen=True, eq=False)
class AskedGraph:
    """The graph, how it is read and split, and what is to be said when training begins."""

    graph: str
    split_options: SplitOptions
    tables: TableOptions
    opened: OpenedGraph
    split: LinkSplit
    remarks: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """What folders of this graph begin with."""
        return Path(self.opened.name).stem

    @property
    def has_features(self) -> bool:
        """Whether there are any to use."""
        return self.split.train.features is not None

    def line(self, *words: str, out: str) -> str:
        """Another command on the same graph and split, for the shell."""
        given = [*as_arguments(self.split_options), *as_arguments(self.tables)]
        return shell_line(["vgae", *words, *given, "--out", out])

    def hints_for(self, *, uses_features: bool) -> Hints:
        """What to run next, of what every model has."""
        return Hints(
            baseline=lambda name: self.line("baseline", name, self.graph, out=f"runs/{self.stem}-{name}"),
            compare=None,
            more_test_links="--test 0.2" if self.split_options.test_links is None else "more rows in --test-links",
            uses_features=uses_features and self.has_features,
            has_features=self.has_features,
        )
