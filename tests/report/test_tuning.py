"""Pictures and the table of a search show what its trials were."""

from typing import Any

import pytest

from vgae.report.tuning import MOST_BARS, best_rows, history_figure, importance_figure
from vgae.search.finals import Finals
from vgae.search.result import SearchResult
from vgae.search.space import Space
from vgae.search.study import TrialResult
from vgae.search.trial import COMPLETE, FAILED, PRUNED, Outcome
from vgae.train.config import Config

STATES = {0: COMPLETE, 1: COMPLETE, 2: PRUNED, 3: FAILED, 4: COMPLETE, 5: COMPLETE}
SCORES = {0: 0.70, 1: 0.80, 2: 0.60, 3: None, 4: 0.75, 5: 0.90}
RESULTS = {1: Outcome(COMPLETE, {"auc": 0.85}), 5: Outcome(COMPLETE, {"auc": 0.75})}


def trial(number: int, **changed: Any) -> TrialResult:
    score = SCORES[number]
    outcome = Outcome(STATES[number], {} if score is None else {"auc": score, "ap": score / 2}, seconds=2.0)
    config = Config(latent_dim=8 + number)
    preset = {0: "paper", 1: "accurate"}.get(number)
    return TrialResult(number, config, outcome, score, {}, preset, **changed)


@pytest.fixture
def result() -> SearchResult:
    return SearchResult("auc", [trial(number) for number in STATES], Space({}, {}), Finals("auc"))


def test_the_course_of_a_search(result: SearchResult) -> None:
    (axes,) = history_figure(result).axes
    drawn = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()}
    assert drawn["complete"] == ([0, 1, 4, 5], [70.0, 80.0, 75.0, 90.0])
    assert drawn["stopped early"] == ([2], [60.0])
    assert drawn["best so far"] == ([0, 1, 4, 5, 5], [70.0, 80.0, 80.0, 90.0, 90.0])
    assert drawn["failed"][0] == [3]
    assert drawn["preset paper"][1] == [70.0, 70.0]
    assert drawn["preset accurate"][1] == [80.0, 80.0]
    assert drawn["chosen"] == ([5], [90.0])
    assert axes.get_ylabel() == "validation AUC, percent"


def test_trials_far_below_are_marked_at_the_bottom() -> None:
    trials = [
        TrialResult(number, Config(), Outcome(COMPLETE, {"auc": score}), score, {})
        for number, score in enumerate([0.9 + 0.002 * step for step in range(14)] + [0.5])
    ]
    (axes,) = history_figure(SearchResult("auc", trials, Space({}, {}), Finals("auc"))).axes
    drawn = {line.get_label(): list(line.get_xdata()) for line in axes.get_lines()}
    assert drawn["lower than this"] == [0, 14]
    assert 90.0 < axes.get_ylim()[0] < 90.2
    assert axes.get_ylim()[1] > 92.6


def test_what_mattered_has_a_bar_each_the_largest_on_top() -> None:
    shares = {f"option_{number}": 0.5**number for number in range(1, MOST_BARS + 4)}
    (axes,) = importance_figure(shares).axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == sorted(widths)
    assert len(widths) == MOST_BARS
    assert widths[-1] == 50.0
    assert [label.get_text() for label in axes.get_yticklabels()][-1] == "option_1"


def test_the_table_has_the_best_and_the_presets_once(result: SearchResult) -> None:
    titles, rows = best_rows(result)
    assert titles == ["trial", "AUC", "AP", "seconds", "what differs from the paper"]
    assert [row[:2] for row in rows] == [["5", "90.0"], ["1 (accurate)", "80.0"], ["4", "75.0"], ["0 (paper)", "70.0"]]
    assert rows[0][4] == "latent_dim 13"
    finals = Finals("auc", found={(number, each): RESULTS[number] for number in (1, 5) for each in (1, 2)})
    compared = SearchResult("auc", result.trials, Space({}, {}), finals, num_finalists=2)
    titles, rows = best_rows(compared)
    assert titles[:3] == ["trial", "mean of 3", "AUC"]
    assert [row[:3] for row in rows[:3]] == [
        ["1 (accurate)", "83.3", "80.0"],
        ["5", "80.0", "90.0"],
        ["4", "–", "75.0"],
    ]
    assert compared.best.number == 1
    asked = SearchResult("auc", [trial(0, wanted=False), trial(4), trial(2)], Space({}, {}), Finals("auc"))
    assert [row[0] for row in best_rows(asked)[1]] == ["4", "0 (paper)"]
    assert asked.best.number == 4
