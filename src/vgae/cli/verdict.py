"""The verdict that `vgae train` prints, with lines for the shell that say what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vgae.cli.asked import AskedGraph
from vgae.cli.exits import same_command
from vgae.errors import InputError, TrainingError
from vgae.evaluation.evaluate import RowScorer
from vgae.graph.features import normalize, row_lengths
from vgae.io.catalog import DATASETS
from vgae.options import as_arguments
from vgae.parallel.environment import in_group
from vgae.report.collapse import collapse_sentence
from vgae.report.console import print_table
from vgae.report.verdict import Hints, Verdict, judge
from vgae.runs.run import Run
from vgae.screen import note, print_line
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.words import count

WITHOUT, SCALED = "without features", "with features of unit length"
CHANGES = {WITHOUT: ["--no-features"], SCALED: ["--normalize", "rows"]}


@dataclass(frozen=True, eq=False, kw_only=True)
class Asked(AskedGraph):
    """What the training of an auto-encoder was asked for."""

    config: Config

    def require_features(self) -> None:
        """Refuse to compare a model without features with itself."""
        if not self.config.features or not self.has_features:
            raise InputError("--compare: this training uses no features that it could be compared without.")

    def _paper(self) -> list[str]:
        return [] if self.graph.lower() in DATASETS else ["--preset", "paper"]

    def hints(self) -> Hints:
        """What to run next."""
        # Every value is given, so that the preset makes no difference but to those that are the paper's.
        train_line = ["train", self.graph, *self._paper(), *as_arguments(self.config)]
        return replace(
            self.hints_for(uses_features=self.config.features),
            compare=None if in_group() else same_command("--compare", "--resume"),
            variants={
                name: self.line(
                    *train_line, *change, out=f"runs/{self.stem}-{self.config.model}-{change[-1].strip('-')}"
                )
                for name, change in CHANGES.items()
            },
        )


def judge_run(run: Run, asked: Asked, *, with_variants: bool = False) -> Verdict:
    """The verdict on a run of `vgae train`; with variants, the same model is trained without features and scaled."""
    variants = _variants(asked, run.config) if with_variants else {}
    hints = replace(asked.hints(), collapse=collapse_sentence(run))
    return judge(run.config.model.upper(), run, asked.split, variants, hints)


def print_verdict(found: Verdict) -> None:
    """The table, below it what it is about, and the sentences."""
    titles, rows = found.rows()
    pairs = found.comparison.pairs
    if rows:
        print_line("")
        print_table(titles, rows, numbers=titles[1:])
        links, non_links = found.comparison.num_links, found.comparison.num_non_links
        about = f"On {count(links, f'{pairs} link')} and {count(non_links, 'non-link')}"
        if any(column.startswith("precision") for column in found.comparison.columns):
            about += f"; P@K: how many of the K best new pairs are {pairs} links, in percent"
        print_line(f"{about}.")
    for line in (*found.notes, *found.sentences):
        print_line(line)


def _variants(asked: Asked, config: Config) -> dict[str, RowScorer]:
    """The same training without features, and with rows of features brought to unit length; nothing is saved."""
    graph = asked.split.train
    trainings = {WITHOUT: (graph, replace(config, features=False))}
    lengths = row_lengths(graph.features)
    if not np.allclose(lengths[lengths > 0], 1, atol=1e-3):  # else they have unit length already
        trainings[SCALED] = (graph.with_parts(features=normalize(graph.features, "rows")), config)
    found: dict[str, RowScorer] = {}
    for name, (seen, changed) in trainings.items():
        note(f"comparing: training the model {name}")
        try:
            found[name] = train(Job.of(seen, changed, asked.split.val or None))
        except TrainingError as error:  # the run that was asked for is saved, and stands without it
            note(f"the model {name} is left out: {error}")
    return found
