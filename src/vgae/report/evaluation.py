"""What `vgae evaluate` prints: how good the top of the list is, and how far its probabilities hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vgae.evaluation.all_pairs import FIRST_STAGE_RECALL, HITS
from vgae.evaluation.reliability import Reliability
from vgae.report.console import print_table
from vgae.screen import print_line


def print_top(metrics: Mapping[str, float], what: str, num_links: int) -> None:
    """Precision and recall at each K over all candidate pairs, and the ranks by node."""
    depths = [int(name.partition("@")[2]) for name in metrics if name.startswith("precision@")]
    if not depths:
        return
    print_line("")
    print_line(f"{what} among all pairs that are not known ({num_links:,} to be found):")
    rows = [
        [f"best {k:,}", f"{100 * metrics[f'precision@{k}']:.1f}", f"{100 * metrics[f'recall@{k}']:.1f}"] for k in depths
    ]
    print_table(["", "precision %", "recall %"], rows, numbers=["precision %", "recall %"])
    if FIRST_STAGE_RECALL in metrics:
        print_line(recall_words(metrics[FIRST_STAGE_RECALL]))
        return
    hits = [f"Hits@{k} {100 * metrics[f'node_hits@{k}']:.1f}" for k in HITS if f"node_hits@{k}" in metrics]
    print_line(f"Ranked for each node among all others: MRR {100 * metrics['node_mrr']:.1f}, {', '.join(hits)}.")


def recall_words(recall: float, which: str = "these") -> str:
    """How much a first stage finds of which links, in a sentence."""
    return (
        f"The first stage lists {100 * recall:.1f}% of {which} links; a pair that is not on its list is not ranked and "
        "not recommended."
    )


def print_reliability(found: Reliability, what: str) -> None:
    """Pairs by their probability: how many, what was promised, what came."""
    print_line("")
    share = f"{100 * found.share:.1f}% of the graph's links"
    print_line(f"Probabilities of all pairs that are not known, judged by {what} ({share}):")
    titles = ["probability", "pairs", "mean", "observed", "links expected", "found"]
    rows = []
    for place in reversed(range(len(found.pairs))):
        name = f"{found.low[place]:g} to {found.high[place]:g}"
        if not found.pairs[place]:
            rows.append([name, "none", "", "", "", ""])
            continue
        observed = f"{found.observed[place]:.3g}" if found.is_judged[place] else "too few links"
        numbers = f"{found.promised[place]:.3g}", observed, f"{found.expected[place]:,.1f}", f"{found.found[place]:,}"
        rows.append([name, f"{round(found.pairs[place]):,}", *numbers])
    print_table(titles, rows, numbers=titles[1:])


def reliability_json(found: Reliability) -> list[dict[str, Any]]:
    """The same as data: one object for each bin; of a bin without enough links, what was observed is null."""
    return [
        {
            "low": float(found.low[place]),
            "high": float(found.high[place]),
            "pairs": round(float(found.pairs[place])),
            "mean": float(found.promised[place]) if found.pairs[place] else None,
            "observed": float(found.observed[place]) if found.is_judged[place] and found.pairs[place] else None,
            "expected_links": float(found.expected[place]),
            "found_links": int(found.found[place]),
        }
        for place in np.arange(len(found.pairs))
    ]
