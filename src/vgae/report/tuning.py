"""A search in pictures and in a table: its course, what mattered, and the best trials beside the presets."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from vgae.options import options_of
from vgae.report.figures import COLOURS, INK, LINK, canvas
from vgae.search.finals import ROUNDS
from vgae.search.result import SearchResult
from vgae.search.study import TrialResult
from vgae.search.trial import COMPLETE, FAILED, PRUNED
from vgae.train.config import Config

MOST_BARS = 15
SHOWN = 5  # of the best trials
MARKS = {COMPLETE: ("o", COLOURS[0]), PRUNED: ("x", LINK)}
LOWEST_SHARE = 0.2  # of the scores, from which on the scale may begin
ENOUGH_TO_CUT = 10  # scores


def title_of(by: str) -> str:
    """A score as it is written in a table."""
    return by.upper() if by in ("auc", "ap") else by


def differences(config: Config) -> str:
    """In what a configuration differs from the paper's."""
    paper = Config()
    own = [each.name for each in options_of(Config) if each.rule.identifies and each.name != "model"]
    changed = [name for name in own if config.value_of(name) != paper.value_of(name)]
    return ", ".join(f"{name} {config.value_of(name)}" for name in changed) or "as in the paper"


def best_rows(result: SearchResult) -> tuple[list[str], list[list[str]]]:
    """Titles and rows: the best trials, then the presets."""
    scores = list(dict.fromkeys((result.by, "auc", "ap")))
    ranked = result.ranked()
    again = any(result.mean(each) is not None for each in ranked)
    means = [f"mean of {ROUNDS + 1}"] if again else []
    titles = ["trial", *means, *(title_of(each) for each in scores), "seconds", "what differs from the paper"]
    presets = [each for each in result.trials if each.preset is not None and each.score is not None]
    rows = []
    for found in {each.number: each for each in (*ranked[:SHOWN], *presets)}.values():
        metrics = found.metrics
        name = f"{found.number}" + (f" ({found.preset})" if found.preset else "")
        values = [f"{100 * metrics[each]:.1f}" if each in metrics else "–" for each in scores]
        mean = result.mean(found)
        values = [*(["–" if mean is None else f"{100 * mean:.1f}"] if again else []), *values]
        rows.append([name, *values, f"{found.outcome.seconds:.1f}", differences(found.config)])
    return titles, rows


def history_figure(result: SearchResult) -> Any:
    """The score of each trial, the best so far, and the presets; what failed is at the bottom."""
    figure, axes = canvas(width=6.4, height=3.6)
    scored = [each for each in result.trials if each.score is not None]
    for state, (mark, colour) in MARKS.items():
        found = [each for each in scored if each.state == state]
        if found:
            label = "complete" if state == COMPLETE else "stopped early"
            axes.plot(*_points(found), mark, color=colour, markersize=5, label=label, zorder=3)
    complete = [each for each in scored if each.state == COMPLETE and each.wanted]
    if complete:
        best = list(accumulate((100 * (each.score or 0) for each in complete), max))
        places = [each.number for each in complete] + [result.trials[-1].number]
        axes.step(places, [*best, best[-1]], where="post", color=INK, linewidth=1.2, label="best so far", zorder=2)
        chosen = result.best
        ring = {"markersize": 10, "markerfacecolor": "none", "markeredgecolor": INK}
        axes.plot([chosen.number], [100 * (chosen.score or 0)], "o", label="chosen", zorder=4, **ring)
    for name, colour in (("paper", COLOURS[1]), ("accurate", COLOURS[2])):
        preset = result.preset(name)
        if preset is not None and preset.score is not None:
            axes.axhline(100 * preset.score, color=colour, linestyle=":", linewidth=1, label=f"preset {name}", zorder=1)
    below = _limit(axes, scored)
    failed = [each.number for each in result.trials if each.state == FAILED]
    if failed:
        axes.plot(
            failed, [0.02] * len(failed), "|", color=COLOURS[1], transform=axes.get_xaxis_transform(), label="failed"
        )
    if below:
        axes.plot(
            [each.number for each in below], [0.02] * len(below), "v", color=LINK, markersize=4,
            transform=axes.get_xaxis_transform(), label="lower than this",
        )  # fmt: skip
    axes.set(xlabel="trial", ylabel=f"validation {title_of(result.by)}, percent")
    axes.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8, columnspacing=1.2)
    return figure


def importance_figure(importances: dict[str, float]) -> Any:
    """Bars of what mattered, the largest on top."""
    largest = list(importances.items())[:MOST_BARS][::-1]
    figure, axes = canvas(width=6.4, height=0.6 + 0.24 * max(len(largest), 4))
    bars = axes.barh(
        [name.replace("__", " ") for name, _ in largest], [100 * share for _, share in largest], color=COLOURS[0]
    )
    axes.bar_label(bars, fmt="%.0f", padding=3, fontsize=8)
    axes.set(xlabel="share of what the options explain of the scores, percent")
    axes.margins(x=0.08)
    axes.tick_params(axis="y", length=0)
    return figure


def _points(trials: list[TrialResult]) -> tuple[list[int], list[float]]:
    return [each.number for each in trials], [100 * (each.score or 0) for each in trials]


def _limit(axes: Any, scored: list[TrialResult]) -> list[TrialResult]:
    """Let the scale go down to what most trials reach, so that the best can be told apart; those that lie below."""
    scores = sorted(each.score or 0.0 for each in scored)
    if len(scores) < ENOUGH_TO_CUT:
        return []
    least, most = scores[int(LOWEST_SHARE * len(scores))], scores[-1]
    floor = least - 0.15 * (most - least)
    if scores[0] >= floor or most == least:
        return []
    axes.set_ylim(100 * floor, 100 * (most + 0.08 * (most - floor)))
    return [each for each in scored if (each.score or 0.0) < floor]
