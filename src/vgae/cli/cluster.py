"""`vgae cluster`: the groups that a run puts its nodes in, and how far they agree with labels."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vgae.cli.opening import open_run
from vgae.cli.options import JSON_HELP, CsvOptions, OtherGraphOptions, RunFolder, given_options
from vgae.cli.protocols import OWN, LabelOptions, labels_for
from vgae.errors import InputError
from vgae.estimators.clusters import MIXTURE, Clusters
from vgae.evaluation.clusters import ClusterScores, evaluate_clusters
from vgae.evaluation.labels import known_labels
from vgae.graph.pairs import AnyArray
from vgae.io.cluster_files import check_cluster_file, write_clusters
from vgae.io.exports import json_id
from vgae.options import Options, option
from vgae.report.console import print_json, print_table
from vgae.screen import note, print_line
from vgae.words import count


@dataclass(frozen=True)
class ClusterOptions(Options):
    """Which clusters, and what they are compared with."""

    k: int | None = option(
        None, least=1, help="Find so many clusters by k-means.  [default: those of the run's mixture prior]"
    )
    seed: int = option(0, most=2**32 - 1, help="Seed of k-means.")
    labels: str | None = option(
        None,
        convert=str,
        help="Compare with classes of a table with an id and a label in each row.  [default: the graph's own, if any]",
    )
    label: str | None = option(None, convert=str, help="Column of that table with the label.  [default: the other one]")


@dataclass(frozen=True)
class ClusterOutputOptions(CsvOptions):
    """Where the cluster of each node goes, and how."""

    out: Path | None = option(None, convert=Path, help="A csv or parquet file with the cluster of every node.")
    json: bool = option(False, help=JSON_HELP)


def cluster(
    run_folder: RunFolder, options: ClusterOptions, output: ClusterOutputOptions, other: OtherGraphOptions
) -> None:
    """Put every node into a cluster, say how large clusters are and, where there are labels, how far they agree."""
    if output.out is not None:
        check_cluster_file(output.out, spreadsheet_safe=output.spreadsheet_safe)
    elif output.spreadsheet_safe:
        raise InputError("--spreadsheet-safe: this option is for csv files; name one with --out.")
    asked = LabelOptions(labels=options.labels, id=other.id, label=options.label)
    if set(given_options(other)) == {"id"} and options.labels is not None:
        other = replace(other, id=None)  # it is about the labels alone
    fitted = open_run(run_folder, other)
    found = fitted.clusters(options.k, seed=options.seed)
    labels = _labels(found, asked)
    scores = None if labels is None else evaluate_clusters(found.assignment, labels)
    ids = found.graph.ids
    if output.out is not None:
        write_clusters(output.out, ids, found.columns(), spreadsheet_safe=output.spreadsheet_safe)
    if output.json:
        print_json(_as_json(run_folder, found, scores))
        return
    _print_sizes(found, labels)
    if scores is not None:
        _print_scores(scores)
    if output.out is not None:
        note(f"wrote the clusters of {count(len(found), 'node')} to {output.out}")


def _labels(found: Clusters, asked: LabelOptions) -> AnyArray | None:
    """What clusters are compared with: what was asked for or, if nothing was, the graph's own labels, if it has any."""
    if asked.labels is not None:
        return labels_for(found.graph, asked)
    if asked.label is not None:
        raise InputError("label: this is the column of a table of labels; name its file (--labels FILE).")
    own = found.graph.labels
    if own is None or not _any_known(np.asarray(own)):
        return None
    return labels_for(found.graph, LabelOptions(labels=OWN))


def _any_known(labels: AnyArray) -> bool:
    try:
        known_labels(labels)
    except InputError:
        return False
    return True


def _print_sizes(found: Clusters, labels: AnyArray | None) -> None:
    """A row for each cluster: its nodes, how sure they are on average, and the class that most of them have."""
    by = "the components of the mixture prior" if found.method == MIXTURE else "k-means on the embeddings"
    print_line(f"{count(len(found), 'node')} in {count(found.num_clusters, 'cluster')}, {by}:")
    titles = ["cluster", "nodes", "share %"]
    rows = [[str(k), f"{size:,}", f"{100 * size / len(found):.1f}"] for k, size in enumerate(found.sizes.tolist())]
    if found.method == MIXTURE:
        titles.append("mean probability")
        sure = found.probabilities
        for k, row in enumerate(rows):
            own = sure[found.assignment == k]
            row.append(f"{float(own.mean()):.3f}" if len(own) else "")
    numbers = tuple(titles)
    if labels is not None:
        titles.append("mostly")
        kept, codes, _ = known_labels(labels)
        for k, row in enumerate(rows):
            own_codes = codes[found.assignment[kept] == k]
            row.append(_mostly(labels[kept], codes, own_codes))
    print_table(titles, rows, numbers=numbers)


def _mostly(labels: AnyArray, codes: AnyArray, own: AnyArray) -> str:
    """The most frequent class of a cluster, and its share there."""
    if not len(own):
        return ""
    sizes = np.bincount(own)
    best = int(sizes.argmax())
    name = labels.tolist()[int(np.flatnonzero(codes == best)[0])]
    return f"{name} ({100 * sizes[best] / len(own):.0f}%)"


def _print_scores(scores: ClusterScores) -> None:
    print_line(
        f"Against the labels: ACC {100 * scores.accuracy:.1f}, NMI {100 * scores.nmi:.1f}, ARI {100 * scores.ari:.1f} "
        f"({count(scores.num_nodes, 'node')} in {count(scores.num_classes, 'class', 'classes')}"
        + "".join(f"; {words}" for words in scores.notes)
        + ")."
    )


def _as_json(folder: Path, found: Clusters, scores: ClusterScores | None) -> dict[str, Any]:
    sure = found.probabilities.tolist() if found.method == MIXTURE else None
    nodes = []
    for place, (name, own) in enumerate(zip(found.graph.ids, found.assignment.tolist(), strict=True)):
        node = {"node": json_id(name), "cluster": own}
        nodes.append(node if sure is None else node | {"probability": sure[place]})
    return {
        "run": str(folder),
        "method": found.method,
        "sizes": found.sizes.tolist(),
        "labels": None if scores is None else scores.to_json(),
        "nodes": nodes,
    }
