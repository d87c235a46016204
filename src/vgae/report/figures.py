"""Pictures: the latent space (the paper's Figure 1), training curves, ROC, precision-recall and reliability curves.

matplotlib is an extra; it and the projections take their time to import, so they are loaded when they are first used.
"""

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.evaluation.metrics import Scores, auc_and_ap
from vgae.evaluation.reliability import Reliability
from vgae.explore.projection import PROJECTIONS as PROJECTIONS
from vgae.explore.projection import Points
from vgae.explore.projection import project as project
from vgae.graph.pairs import AnyArray, Pairs
from vgae.io.atomic import atomic_write
from vgae.screen import visible
from vgae.train.state import LogEntry

PICTURES = (".png", ".svg", ".pdf")  # the endings that a picture can have
# Ten hues that stay apart in print and for most colour-blind readers; more classes take up hues again.
COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#EE8866", "#44BB99", "#882255", "#777777")
WIDEST_NAME = 40
INK, LINK = "#222222", "#999999"
MAX_LINKS = 50_000  # beyond, a random choice of links is drawn: more would be a grey sheet


def latent_space(points: Points, links: Pairs, labels: AnyArray | None = None, *, seed: int = 0) -> Any:
    """Nodes at their two-dimensional points, coloured by class, grey links behind them."""
    figure, axes = canvas(width=5.2, height=5.2)
    if len(links) > MAX_LINKS:
        links = np.random.default_rng(seed).choice(links, size=MAX_LINKS, replace=False)
    width = float(np.clip(30 / np.sqrt(len(links)), 0.15, 0.8))
    lines = import_module("matplotlib.collections").LineCollection(
        points[links], colors=LINK, linewidths=width, alpha=0.25, zorder=1, rasterized=True
    )
    axes.add_collection(lines)
    size = float(np.clip(16_000 / len(points), 2.0, 40.0))
    classes = _classes(labels, len(points))
    for _, colour, members in classes:
        axes.scatter(*points[members].T, s=size, c=colour, label="class", linewidths=0.25, edgecolors="white", zorder=2)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.autoscale_view()
    names = [name for name, _, _ in classes if name is not None]
    if names:
        columns = 2 if max(map(len, names)) > 12 else 4
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.02), "ncols": columns}
        legend = axes.legend(**place, markerscale=1.5, fontsize=8, handletextpad=0.1, columnspacing=1.0, frameon=False)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_parse_math(False)  # a name is a name, whatever signs are in it
            text.set_text(name)
    return figure


def training_curves(history: Sequence[LogEntry]) -> Any:
    """The loss and, where there was a validation set, its AUC and AP, by iteration."""
    validated = [entry for entry in history if entry.val_auc is not None]
    figure, axes = canvas(width=5.2, height=3.2)
    iterations = [entry.iteration for entry in history]
    axes.plot(iterations, [entry.loss for entry in history], color=INK, label="loss")
    axes.set_xlabel("iteration")
    axes.set_ylabel("loss")
    if validated:
        right = axes.twinx()
        right.spines[["top"]].set_visible(False)
        steps = [entry.iteration for entry in validated]
        right.plot(steps, [100 * (entry.val_auc or 0) for entry in validated], color=COLOURS[0], label="validation AUC")
        right.plot(steps, [100 * (entry.val_ap or 0) for entry in validated], color=COLOURS[1], label="validation AP")
        right.set_ylabel("percent")
        figure.legend(loc="upper center", ncols=3, frameon=False, bbox_to_anchor=(0.5, 1.08))
    return figure


def ranking_curves(links: Scores, non_links: Scores) -> Any:
    """ROC and precision-recall curves on held-out pairs, side by side."""
    labels = np.arange(len(links) + len(non_links)) < len(links)
    scores = np.concatenate([links, non_links])
    metrics = auc_and_ap(links, non_links)
    curves = import_module("sklearn.metrics")
    figure, (left, right) = canvas(width=6.4, height=3.2, panels=2)
    false_positive, true_positive, _ = curves.roc_curve(labels, scores)
    left.plot(false_positive, true_positive, color=COLOURS[0])
    left.plot([0, 1], [0, 1], color=LINK, linestyle=":", linewidth=1)
    left.set(xlabel="false positive rate", ylabel="true positive rate", title=f"ROC, AUC {100 * metrics['auc']:.1f}")
    precision, recall, _ = curves.precision_recall_curve(labels, scores)
    right.plot(recall, precision, color=COLOURS[1])
    right.set(xlabel="recall", ylabel="precision", title=f"Precision-recall, AP {100 * metrics['ap']:.1f}")
    for axes in (left, right):
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    return figure


def reliability_curves(curves: Mapping[str, Reliability]) -> Any:
    """Predicted probabilities against observed ones over all pairs, on logarithmic axes, for each calibration.

    Bars are 95% intervals. A bin in which no link was found gives only an upper bound: a triangle at that end.
    """
    figure, axes = canvas(width=4.6, height=4.6)
    axes.set(xscale="log", yscale="log", xlabel="predicted probability", ylabel="observed share of links")
    for (name, curve), colour in zip(curves.items(), (COLOURS[1], COLOURS[0]), strict=True):
        low, high = curve.interval()
        some, none = (curve.found > 0) & (curve.pairs > 0), (curve.found == 0) & (curve.pairs > 0)
        axes.vlines(curve.promised[some], low[some], high[some], color=colour, linewidth=1, alpha=0.6)
        axes.plot(curve.promised[some], curve.observed[some], "o-", color=colour, markersize=4, linewidth=1, label=name)
        axes.plot(curve.promised[none], high[none], "v", color=colour, markerfacecolor="white")
    least = min(axes.get_xlim()[0], axes.get_ylim()[0])
    axes.plot([least, 1], [least, 1], color=LINK, linestyle=":", linewidth=1, zorder=0, label="perfect calibration")
    axes.set(xlim=(least, 1.5), ylim=(least, 1.5), aspect="equal")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8, columnspacing=1.2)
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture in the format its name ends in, in one step."""
    if path.suffix not in PICTURES:
        raise InputError(
            f"{path}: pictures are written as {', '.join(PICTURES)}; choose a name with one of these endings."
        )
    try:
        with atomic_write(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of signs that the font lacks, which are drawn as boxes
            figure.savefig(file, format=path.suffix[1:], dpi=300, bbox_inches="tight")
    except OSError as error:
        raise InputError(f"{path}: the picture cannot be written there ({error.strerror}).") from None


def canvas(*, width: float, height: float, panels: int = 1) -> tuple[Any, Any]:
    """A figure and its axes (one, or a row of several), in the house style; no global state is touched."""
    try:
        matplotlib = import_module("matplotlib")
        figure_type = import_module("matplotlib.figure").Figure
    except ImportError:
        raise InputError("Pictures need matplotlib; install it with pip install 'vgae[plot]'.") from None
    style = {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "none",
    }
    with matplotlib.rc_context(style):
        figure = figure_type(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, panels)
    return figure, axes


def _legible(label: object) -> str:
    """A class's name for a picture: no control characters, which would break an svg file, and not wider than it."""
    name = visible(str(label))
    return name if len(name) <= WIDEST_NAME else f"{name[: WIDEST_NAME - 1]}…"


def _classes(labels: AnyArray | None, num_nodes: int) -> list[tuple[str | None, str, npt.NDArray[np.bool_]]]:
    """Name, colour and members of each class; the nodes without a label (-1) come first, in grey."""
    if labels is None:
        return [(None, COLOURS[0], np.ones(num_nodes, dtype=bool))]
    named = sorted({label for label in labels.tolist() if label != -1}, key=str)
    classes = [
        (_legible(label), COLOURS[place % len(COLOURS)], np.array([other == label for other in labels.tolist()]))
        for place, label in enumerate(named)
    ]
    unlabelled = np.array([label == -1 for label in labels.tolist()])
    return [("no label", LINK, unlabelled), *classes] if unlabelled.any() else list(classes)
