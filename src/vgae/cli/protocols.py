"""`vgae evaluate --protocol` and `--labels`: other protocols than the paper's, and what embeddings say about labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vgae.cli.loading import loading
from vgae.cli.options import same_option
from vgae.errors import InputError
from vgae.evaluation.labels import LabelScores, evaluate_labels
from vgae.evaluation.protocols import PROTOCOLS, evaluate_protocol
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, Pairs
from vgae.io.catalog import DATASETS
from vgae.io.datasets import load_dataset
from vgae.io.options import NodeOptions
from vgae.options import Options, option
from vgae.report.console import print_json, print_scores, print_table
from vgae.screen import note, print_line
from vgae.words import count

OWN = "own"  # what --labels without a value stands for
TITLES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "nmi": "NMI",
    "ari": "ARI",
    "clustering_accuracy": "ACC",
}


@dataclass(frozen=True)
class ProtocolOptions(Options):
    """What held-out links are compared with."""

    protocol: str = option(
        "paper",
        choices=PROTOCOLS,
        help="paper: with random non-links; heart: each link with 500 hard non-links of its own; "
        "ogb: with non-links that all links share, or with some for each link.",
    )
    val_negatives: Path | None = option(
        None, convert=Path, help="For ogb: file of non-links for the validation links, a table or npz."
    )
    test_negatives: Path | None = option(None, convert=Path, help="For ogb: file of non-links for the test links.")

    @property
    def is_other(self) -> bool:
        """Whether something else is asked for than the paper's protocol, whatever else is."""
        return self != ProtocolOptions()


@dataclass(frozen=True)
class LabelOptions(Options):
    """What embeddings are to be compared with."""

    labels: str | None = option(
        None,
        convert=str,
        help="Judge the embeddings by the classes of the nodes: the graph's own or, if a file is named, those of a "
        "table with an id and a label in each row.",
    )
    id: str | None = same_option(NodeOptions, "id")
    label: str | None = option(None, convert=str, help="Column of that table with the label.  [default: the other one]")


class Judged(Protocol):
    """A model or a baseline, with the run that it comes from."""

    @property
    def run_(self) -> Any:
        """The run, with its split."""

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """A score for each pair."""

    def transform(self) -> npt.NDArray[np.float32]:
        """Embeddings; an InputError where there are none."""


def judge_otherwise(
    model: Judged, summary: dict[str, Any], protocol: ProtocolOptions, labels: LabelOptions, *, as_json: bool
) -> None:
    """Print the scores by another protocol, and what the embeddings say about labels, as far as asked for."""
    split = model.run_.split
    described = {name: value for name, value in summary.items() if name not in ("validation", "test", "protocol")}
    if protocol.is_other:
        negatives = {
            name: path
            for name, path in (("val", protocol.val_negatives), ("test", protocol.test_negatives))
            if path is not None
        }
        if negatives and protocol.protocol != "ogb":
            raise InputError("val_negatives and test_negatives are for --protocol ogb.")
        if negatives:
            _load("vgae.io.pair_files")
        found = evaluate_protocol(model, split, protocol.protocol, negatives=negatives)
        described |= {"protocol": found.protocol, "compared_with": found.compared, **found.metrics}
        if not as_json:
            print_scores(found.metrics, None, protocol=found.protocol)
            _print_compared(found.compared)
    if labels.labels is not None:
        scores = evaluate_labels(model.transform(), labels_for(split.train, labels))
        described["labels"] = scores.to_json()
        if not as_json:
            print_labels({str(summary.get("model", summary.get("baseline"))).upper(): scores})
    if as_json:
        print_json(described)


def _print_compared(compared: Mapping[str, str]) -> None:
    """What the links of each set were compared with, in one sentence where it is the same."""
    if len(set(compared.values())) == 1:
        print_line(f"Links were compared with {next(iter(compared.values()))}.")
        return
    for name, words in compared.items():
        print_line(f"{name.capitalize()} links were compared with {words}.")


def labels_for(graph: Graph, options: LabelOptions) -> AnyArray:
    """The graph's own labels, those of a dataset, or those of a table."""
    given = str(options.labels)
    if given == OWN or given.lower() in DATASETS:
        if options.id is not None or options.label is not None:
            raise InputError("id and label are about the columns of a table; name its file (--labels FILE).")
        own = graph.labels if given == OWN else load_dataset(given).labels
        if own is None:
            raise InputError(
                "labels: the graph has none; name a table with an id and a label in each row (--labels FILE), or train "
                "with --features NODES --label COLUMN."
            )
        if len(own) != graph.num_nodes:
            raise InputError(f"labels: {given} has {count(len(own), 'node')}, but this graph {graph.num_nodes:,}.")
        return np.asarray(own)
    asked = NodeOptions(id=options.id, label=options.label)
    labels, notes = _load("vgae.io.label_files").read_labels(given, graph, asked)
    note(f"{given}: {'; '.join(notes)}")
    found: AnyArray = labels
    return found


def print_labels(rows: Mapping[str, LabelScores]) -> None:
    """Means and standard errors in percent, a row for each set of embeddings."""
    first = next(iter(rows.values()))
    body = [
        [name, *(f"{100 * mean:.1f} ± {100 * error:.1f}" for mean, error in (scores.scores[key] for key in TITLES))]
        for name, scores in rows.items()
    ]
    print_table(["labels", *TITLES.values()], body, numbers=tuple(TITLES.values()))
    print_line(
        f"{count(first.num_nodes, 'node')} in {count(first.num_classes, 'class', 'classes')}, the largest of them "
        f"{100 * first.most_frequent:.1f}%. Linear probe (accuracy, F1), fitted to a tenth of the nodes, and k-means "
        f"(NMI, ARI, ACC): means and standard errors of {count(first.repeats, 'repetition')}."
    )
    for words in first.notes:
        print_line(f"{words[0].upper()}{words[1:]}.")


def _load(module: str) -> Any:
    """A module that takes its time to load, and that is not always needed."""
    with loading():
        return import_module(module)
