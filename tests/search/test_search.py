"""A search counts each trial once however it is interrupted, sees no test link, and outlives trials that fail."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
import pytest
from dying import Dying

import vgae
from helpers import message_of
from vgae.graph.split import HeldOut, LinkSplit
from vgae.model import spec
from vgae.model.decoders import DecoderSpec
from vgae.search import study as study_module
from vgae.search.finals import Finals
from vgae.search.folder import BEST, FINALS, JOURNAL, LOCK, TRIALS
from vgae.search.result import SearchResult
from vgae.search.space import Wishes, space_for
from vgae.search.study import Rules, Study
from vgae.search.trial import COMPLETE, FAILED, PRUNED, Material, Outcome
from vgae.search.tune import presets_for
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.workers import WorkerKilledError

OPTIONS: dict[str, Any] = {"iterations": 4, "eval_every": 1, "latent_dim": 4}  # of every trial
SHORT: dict[str, Any] = OPTIONS | {"finalists": 1}


class Unreadable:
    """What raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name} of the test pairs was asked for")

    def __len__(self) -> NoReturn:
        raise AssertionError("the number of test pairs was asked for")

    def __bool__(self) -> NoReturn:
        raise AssertionError("whether there are test pairs was asked")

    def __iter__(self) -> NoReturn:
        raise AssertionError("the test pairs were asked for")


@pytest.fixture(scope="module")
def split() -> LinkSplit:
    """A split of which nobody can read the test pairs."""
    graph = vgae.stochastic_block_model(80, 2, degree_within=10, degree_between=2, feature_dim=12, seed=0)
    made = vgae.split_links(graph, val=0.15, seed=0)
    return replace(made, test=cast(HeldOut, Unreadable()))


@pytest.fixture(scope="module")
def whole(split: LinkSplit, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    """A search that was not interrupted."""
    folder = tmp_path_factory.mktemp("searches") / "whole"
    return folder, vgae.tune(split, trials=9, out=folder, **SHORT)


def told(result: SearchResult) -> list[tuple[Any, ...]]:
    """All that is to be the same."""
    return [(each.number, each.state, each.config, each.score, each.preset) for each in result.trials]


def test_the_test_pairs_are_unreadable(split: LinkSplit) -> None:
    for ask in (lambda: len(split.test), lambda: split.test.links, lambda: split.content_hash):
        with pytest.raises(AssertionError):
            cast(Callable[[], object], ask)()


def test_scores_are_those_of_the_configuration_on_the_validation_pairs(
    split: LinkSplit, whole: tuple[Path, SearchResult]
) -> None:
    _, result = whole
    best = result.best
    trained = train(Job.of(split.train, best.config, split.val))
    assert best.score == vgae.evaluate(trained, split.val)["auc"] == max(each.score or 0 for each in result.trials)
    model = result.best_estimator().fit(split.train, validation=split.val)
    assert model.metrics(split.val)["auc"] == best.score
    assert result.best_config == best.config


def test_presets_come_first_and_the_search_never_ends_below_them(whole: tuple[Path, SearchResult]) -> None:
    folder, result = whole
    assert [each.preset for each in result.trials] == ["paper", "accurate", *[None] * 7]
    assert result.trials[0].config == Config(**OPTIONS)
    assert result.trials[1].config.value_of("encoder").name == "normalized"
    assert result.best.score is not None
    for name in ("paper", "accurate"):
        found = result.preset(name)
        assert found is not None
        assert found.score is not None
        assert found.score <= result.best.score
    assert all(each.config.latent_dim == 4 for each in result.trials)  # as it was given
    assert not (folder / LOCK).exists()


def test_the_same_seed_gives_the_same_trials_and_another_gives_others(
    split: LinkSplit, whole: tuple[Path, SearchResult]
) -> None:
    again = vgae.tune(split, trials=9, **SHORT)
    assert told(again) == told(whole[1])
    assert repr(again).startswith("SearchResult(9 trials, best auc 0.")
    other = vgae.tune(split, trials=4, seed=1, **SHORT)
    assert [each.config for each in other.trials[2:]] != [each.config for each in again.trials[2:4]]


@pytest.mark.parametrize("share", [0.0, 0.12, 0.37, 0.61, 0.83, 1.0])
def test_a_search_that_is_cut_off_at_any_byte_ends_with_the_same_trials(
    split: LinkSplit, whole: tuple[Path, SearchResult], tmp_path: Path, share: float
) -> None:
    folder, result = whole
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "search.json").write_bytes((folder / "search.json").read_bytes())
    journal = (folder / JOURNAL).read_bytes()
    (cut / JOURNAL).write_bytes(journal[: int(share * len(journal))])
    resumed = vgae.tune(split, trials=9, out=cut, resume=True, **SHORT)
    assert told(resumed) == told(result)
    rows = (cut / TRIALS).read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["trial", *map(str, range(9))]
    assert (cut / BEST).read_bytes() == (folder / BEST).read_bytes()


def test_an_interrupted_trial_is_run_again_and_one_that_ends_every_search_has_failed(
    split: LinkSplit, whole: tuple[Path, SearchResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    begin = vgae.tune(split, trials=3, out=tmp_path / "a", **SHORT)
    for _ in range(3):
        with monkeypatch.context() as patched:
            patched.setattr(Study, "finished", interrupted)
            with pytest.raises(KeyboardInterrupt):
                vgae.tune(split, trials=5, out=tmp_path / "a", resume=True, **SHORT)
    assert len((tmp_path / "a" / TRIALS).read_text().splitlines()) == 4
    resumed = vgae.tune(split, trials=5, out=tmp_path / "a", resume=True, **SHORT)
    assert told(resumed)[:3] == told(begin) == told(whole[1])[:3]
    assert [each.number for each in resumed.trials] == [0, 1, 2, 3, 4]
    assert resumed.trials[3].config == whole[1].trials[3].config
    assert (resumed.trials[3].state, resumed.trials[4].state) == (FAILED, COMPLETE)
    assert resumed.trials[3].reason == "the search ended 3 times while this trial was running"


def test_trials_that_ran_side_by_side_when_a_search_ended_keep_their_numbers(split: LinkSplit, tmp_path: Path) -> None:
    wishes = Wishes(OPTIONS)
    space = space_for(split.train, len(split.val.links), wishes)
    rules = Rules("auc", 0, presets_for(wishes, len(split.val.links)))
    first = Study(space, rules, tmp_path / JOURNAL)
    tasks = [first.next_task(6) for _ in range(5)]
    for number in (0, 3):
        first.finished(number, Outcome(COMPLETE, {"auc": 0.5}))
    second = Study(space, rules, tmp_path / JOURNAL)  # as after a kill
    assert [each.number for each in second.trials()] == [0, 3]
    again = [second.next_task(6) for _ in range(4)]
    assert second.next_task(6) is None
    assert again[:3] == [tasks[1], tasks[2], tasks[4]]
    assert again[3] is not None
    for number in (4, 5, 1, 2):
        second.finished(number, Outcome(COMPLETE, {"auc": 0.1 * number}))
    assert [each.number for each in Study(space, rules, tmp_path / JOURNAL).trials()] == list(range(6))


def test_the_number_of_trials_is_that_of_all_sessions(split: LinkSplit, tmp_path: Path) -> None:
    first = vgae.tune(split, trials=2, out=tmp_path / "a", **SHORT)
    assert told(vgae.tune(split, trials=2, out=tmp_path / "a", resume=True, **SHORT)) == told(first)
    assert len(vgae.tune(split, trials=4, out=tmp_path / "a", resume=True, **SHORT).trials) == 4
    assert "a search is there already" in message_of(lambda: vgae.tune(split, out=tmp_path / "a", **SHORT))
    words = message_of(lambda: vgae.tune(split, out=tmp_path / "a", resume=True, beta=2.0, **SHORT))
    assert "the search there is another one (different: space)" in words
    words = message_of(lambda: vgae.tune(split, out=tmp_path / "a", resume=True, by="ap", **SHORT))
    assert "(different: by)" in words


def test_processes_side_by_side_and_one_that_dies(split: LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spec._REGISTERED["decoder"], "dying", Dying)
    narrowed = {"decoder": ["dying", "inner_product"], "prior": ["standard_normal"], "posterior": ["delta", "normal"]}
    found = vgae.tune(split, trials=4, workers=2, search=narrowed, seed=8, **SHORT)
    assert [each.number for each in found.trials] == list(range(4))
    dying = [each for each in found.trials if each.config.value_of("decoder").name == "dying"]
    assert len(dying) == 1
    for each in found.trials:
        assert each.state == (FAILED if each in dying else COMPLETE)
    assert {each.reason for each in dying} == {
        f"A worker ended with exit code 7 while it ran trial {each.number}" for each in dying
    }


def test_a_script_without_its_guard_is_told_so(split: LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgae.search.pool._serve", os._exit)  # which takes no pipe, as a worker that cannot start
    with pytest.raises(WorkerKilledError, match=r"before it began; a script .* needs the guard if __name__"):
        vgae.tune(split, trials=4, workers=2, **SHORT)


def test_directed_and_bipartite_graphs_are_searched_too() -> None:
    arcs = vgae.stochastic_block_model(40, 2, feature_dim=5, seed=0).edges
    made = vgae.split_links(vgae.Graph.from_edges(arcs, num_nodes=40, directed=True), val=0.2, seed=0)
    found = vgae.tune(made, trials=5, by="precision@5", search={"decoder": ["source_target", "gravity"]}, **SHORT)
    assert [each.state for each in found.trials] == [COMPLETE] * 5
    sides = np.arange(40) % 2
    across = arcs[sides[arcs[:, 0]] != sides[arcs[:, 1]]]
    graph = vgae.Graph.from_edges(across, num_nodes=40).with_parts(sides=sides.astype(np.int8))
    found = vgae.tune(vgae.split_links(graph, val=0.2, seed=0), trials=3, by="precision@5", **SHORT)
    assert [each.state for each in found.trials] == [COMPLETE] * 3
    many = vgae.split_links(graph, val=0.2, seed=0)
    left = 20 * 20 - many.train.num_links  # pairs across that are no links
    assert f"and there are {left}." in message_of(lambda: vgae.tune(many, by=f"precision@{left + 1}", **SHORT))


def test_a_trial_that_diverges_has_failed_and_the_search_goes_on(split: LinkSplit) -> None:
    found = vgae.tune(split, trials=8, search={"learning_rate": [0.01, 1e38], "encoder": ["gcn", "linear"]}, **SHORT)
    failed = [each for each in found.trials if each.config.learning_rate > 1]
    assert failed
    for each in found.trials:
        assert (each.state == FAILED) == (each in failed)
    assert all("Training has diverged" in (each.reason or "") for each in failed)
    assert found.best.config.learning_rate == 0.01
    assert found.counts() == {COMPLETE: 8 - len(failed), PRUNED: 0, FAILED: len(failed)}


def test_a_trial_without_memory_has_failed(split: LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr("vgae.search.trial.train", refuse)
    found = vgae.tune(split, trials=3, **SHORT)
    assert [(each.state, each.reason) for each in found.trials] == [(FAILED, "memory ran out")] * 3
    with pytest.raises(vgae.TrainingError, match="None of 3 trials ran to its end; of the first that failed: memory"):
        _ = found.best


def test_trials_that_are_behind_are_stopped(split: LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_module, "COMPLETE_TO_PRUNE", 2)
    options: dict[str, Any] = SHORT | {
        "iterations": 40,
        "encoder": "gcn",
        "posterior": "delta",
        "decoder": "inner_product",
    }
    narrowed = {"learning_rate": [0.05, 1e-9], "hidden_dim": (16, 32)}  # nothing is learned with the second
    found = vgae.tune(split, trials=10, search=narrowed, mask_links=0.0, **options)
    for each in found.trials:
        slow = each.config.learning_rate < 1e-3
        assert each.state == (PRUNED if slow else COMPLETE) or (each.state == PRUNED and each.preset is None)
    stopped = [each for each in found.trials if each.state == PRUNED]
    assert any(each.config.learning_rate < 1e-3 for each in stopped)
    assert all((each.outcome.iterations or 41) < 40 and (each.outcome.iterations or 1) % 5 == 0 for each in stopped)
    assert found.trials[0].state == COMPLETE
    assert found.best.config.learning_rate == 0.05


def test_presets_outside_of_what_is_asked_for_are_scored_but_not_chosen(split: LinkSplit) -> None:
    found = vgae.tune(split, trials=4, search={"encoder": ["linear", "mlp"]}, **SHORT)
    assert [each.wanted for each in found.trials] == [False, False, True, True]
    assert found.best.config.value_of("encoder").name in ("linear", "mlp")
    assert found.preset("paper") is not None


def test_compositions_that_a_part_refuses_cost_no_trial(split: LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Picky(DecoderSpec):
        def check(self, latent_dim: int) -> None:
            raise vgae.InputError(f"latent_dim: never {latent_dim}.")

    Picky.family, Picky.name = "decoder", "picky"
    monkeypatch.setitem(spec._REGISTERED["decoder"], "picky", Picky)
    found = vgae.tune(split, trials=6, search={"decoder": ["picky", "inner_product"]}, **SHORT)
    assert [each.state for each in found.trials] == [COMPLETE] * 6
    assert {each.config.value_of("decoder").name for each in found.trials} == {"inner_product"}
    words = message_of(lambda: vgae.tune(split, trials=6, search={"decoder": ["picky"]}, **SHORT))
    assert "cannot go together were drawn 100 times in a row: latent_dim: never 4" in words


@pytest.mark.parametrize("by", ["ap", "precision@10"])
def test_trials_can_be_compared_by_other_scores(split: LinkSplit, by: str) -> None:
    found = vgae.tune(split, trials=3, by=by, **SHORT)
    assert found.best.score == max(each.score or 0 for each in found.trials if each.state == COMPLETE)
    for each in found.trials:
        assert each.score == each.metrics[by]
    if by == "precision@10":
        model = found.best_estimator().fit(split.train, validation=split.val)
        links = {tuple(sorted(pair)) for pair in split.val.links.tolist()}
        top = {tuple(sorted((link.source, link.target))) for link in _best_links(model, 10)}
        assert found.best.score == len(links & top) / 10


@dataclass(frozen=True)
class _Link:
    source: int
    target: int


def _best_links(model: Any, number: int) -> list[_Link]:
    """The pairs with the highest logits that are no links, by looking at all of them."""
    graph = model.fitted_.graph
    known = {tuple(sorted(pair)) for pair in graph.edges.tolist()}
    pairs = [(i, j) for i in range(graph.num_nodes) for j in range(i) if (j, i) not in known]
    logits = model.decision_function(pairs)
    order = sorted(range(len(pairs)), key=lambda place: -logits[place])
    return [_Link(*pairs[place]) for place in order[:number]]


def test_the_best_are_compared_on_other_links_of_the_training_graph(split: LinkSplit, tmp_path: Path) -> None:
    found = vgae.tune(split, trials=6, finalists=3, out=tmp_path / "a", **OPTIONS)
    by_score = sorted(found.trials, key=lambda each: -(each.score or 0))
    assert {each.number for each in found.ranked()[:3]} == {each.number for each in by_score[:3]}
    means = [found.mean(each) for each in found.ranked()]
    assert means[3:] == [None] * 3
    assert means[0] == max(each for each in means if each is not None) == found.mean(found.best)
    material = Material.of(split, "auc")
    scores = [found.best.score]
    for number in (1, 2):
        other = material.of_round(number)
        assert len(other.val.links) == pytest.approx(len(split.val.links), abs=1)
        seen, held_out = ({tuple(pair) for pair in pairs.tolist()} for pairs in (split.train.links, other.val.links))
        assert held_out <= seen  # no other links than those of the training graph, and none that is trained on
        assert not held_out & {tuple(pair) for pair in other.train.links.tolist()}
        scores.append(vgae.evaluate(train(Job.of(other.train, found.best.config, other.val)), other.val)["auc"])
    assert means[0] == pytest.approx(np.mean([score or 0 for score in scores]), abs=1e-12)
    stored = (tmp_path / "a" / FINALS).read_bytes()
    again = vgae.tune(split, trials=6, finalists=3, out=tmp_path / "a", resume=True, **OPTIONS)
    assert again.best == found.best
    assert (tmp_path / "a" / FINALS).read_bytes() == stored
    (tmp_path / "a" / FINALS).write_text('{"format": 1, "results": [{"trial": "x"}]}')
    words = message_of(lambda: vgae.tune(split, trials=6, out=tmp_path / "a", resume=True, **OPTIONS))
    assert f"{FINALS}: not what vgae tune writes there" in words


def test_a_comparison_that_was_interrupted_continues(
    split: LinkSplit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = vgae.tune(split, trials=4, finalists=2, **OPTIONS)
    plain = Finals.put

    def interrupted(self: Finals, task: Any, outcome: Any) -> None:
        if self.found:
            raise KeyboardInterrupt
        plain(self, task, outcome)

    with monkeypatch.context() as patched:
        patched.setattr(Finals, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vgae.tune(split, trials=4, finalists=2, out=tmp_path / "a", **OPTIONS)
    resumed = vgae.tune(split, trials=4, finalists=2, out=tmp_path / "a", resume=True, **OPTIONS)
    assert [(each.number, resumed.mean(each)) for each in resumed.ranked()] == [
        (each.number, whole.mean(each)) for each in whole.ranked()
    ]


def test_importance_finds_what_decides(split: LinkSplit) -> None:
    options: dict[str, Any] = SHORT | {"iterations": 20, "posterior": "delta", "decoder": "inner_product"}
    fixed: dict[str, Any] = {"mask_links": 0.0, "encoder": "gcn"}
    found = vgae.tune(
        split, trials=14, search={"learning_rate": [0.03, 1e-9], "hidden_dim": (30, 33)}, **options, **fixed
    )
    assert set(found.importances) == {"learning_rate", "hidden_dim"}
    assert next(iter(found.importances)) == "learning_rate"
    assert sum(found.importances.values()) == pytest.approx(1)
    assert vgae.tune(split, trials=3, **SHORT).importances == {}  # too few


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "f1"}, "by: 'f1' is not one of auc, ap and precision@K"),
        ({"by": "precision@0"}, "by: 'precision@0' is not one of"),
        ({"by": "precision@99999"}, "by: precision@99999 needs as many pairs that are no links, and there are"),
        ({"trials": 0}, "trials: a whole number"),
        ({"search": ["encoder"]}, "search: a dictionary is needed"),
        ({"timeout": -1}, "timeout: a number above 0"),
        ({"latent_dim": 0}, "latent_dim: a whole number"),
    ],
)
def test_bad_input_is_one_sentence(split: LinkSplit, options: dict[str, Any], words: str) -> None:
    assert words in message_of(lambda: vgae.tune(split, **options))


def test_what_there_is_to_search_by_is_required(split: LinkSplit) -> None:
    none = replace(split, val=HeldOut.none())
    assert "there are no validation links to search by" in message_of(lambda: vgae.tune(none))
    with pytest.raises(TypeError, match="tune has no parameter width"):
        vgae.tune(split, width=3)
    with pytest.raises(vgae.TrainingError, match="No trial has ended yet"):
        _ = vgae.tune(split, timeout=1e-9, **SHORT).best


def test_a_journal_that_is_none_is_named(split: LinkSplit, whole: tuple[Path, SearchResult], tmp_path: Path) -> None:
    folder, _ = whole
    for content in (b"nothing\n" * 3, b"{}\n" * 2, json.dumps({"op_code": 4}).encode() + b"\n"):
        (tmp_path / "search.json").write_bytes((folder / "search.json").read_bytes())
        (tmp_path / JOURNAL).write_bytes(content)
        words = message_of(lambda: vgae.tune(split, trials=9, out=tmp_path, resume=True, **SHORT))
        assert f"{JOURNAL}: not a journal of trials" in words
