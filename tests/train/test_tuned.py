"""Defaults tuned on real graphs: which options they touch, when features are left out, what early stopping goes by."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import vgae
from vgae.evaluation.metrics import auc_and_ap, average_precision
from vgae.graph.graph import Graph
from vgae.graph.pairs import contains, to_ranks
from vgae.graph.split import HeldOut, LinkSplit, split_links
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.non_links import more_non_links
from vgae.train.presets import ENOUGH_TO_STOP, TUNED, TUNED_TO_STOP
from vgae.train.state import TrainingState
from vgae.train.tuned import Trial, can_try_features, try_features, tuned


@pytest.fixture(scope="module")
def split() -> LinkSplit:
    graph = vgae.stochastic_block_model(300, 3, degree_within=10, degree_between=2, feature_dim=60, seed=0)
    return split_links(graph, seed=0)


def changed(config: Config) -> set[str]:
    return {text.split()[0] for text in config.differences(Config())}


def test_tuned_defaults_replace_what_was_not_given() -> None:
    assert changed(tuned(Config(), (), ENOUGH_TO_STOP)) == set(TUNED) | set(TUNED_TO_STOP)
    assert changed(tuned(Config(), (), ENOUGH_TO_STOP - 1)) == set(TUNED)
    given = Config(latent_dim=16, iterations=30, seed=3)  # the first at the paper's default
    config = tuned(given, {"latent_dim", "iterations", "seed"}, ENOUGH_TO_STOP)
    assert (config.latent_dim, config.iterations, config.seed) == (16, 30, 3)
    assert (config.hidden_dim, config.early_stopping) == (TUNED["hidden_dim"], TUNED_TO_STOP["early_stopping"])


@pytest.mark.parametrize(
    ("with_features", "without", "help_"),
    [
        (0.90, 0.90, True),
        (0.90, 0.905, True),
        (0.90, 0.92, False),
        (0.95, 0.60, True),
        (math.nan, 0.60, False),
        (0.60, math.nan, True),
        (math.nan, math.nan, True),
    ],
)
def test_features_are_left_out_only_where_the_model_is_clearly_better_without(
    with_features: float, without: float, help_: bool
) -> None:
    assert Trial(with_features, without).features_help is help_


def test_noise_as_features_is_found_out_and_words_are_kept(split: LinkSplit) -> None:
    assert can_try_features(split.train, split.val)
    config = Config(hidden_dim=16, latent_dim=8, device="cpu")
    noise = np.random.default_rng(0).normal(size=(split.train.num_nodes, 2)).astype(np.float32)
    noisy = try_features(split.train.with_parts(features=noise), split.val, config)
    assert not noisy.features_help
    words = try_features(split.train.normalized("rows"), split.val, config)
    assert words.features_help
    assert noisy.without == words.without  # the same training


def test_a_training_that_diverges_counts_as_worst(split: LinkSplit) -> None:
    huge = split.train.with_parts(features=np.full((split.train.num_nodes, 2), 1e19, dtype=np.float32))
    found = try_features(huge, split.val, Config(hidden_dim=4, latent_dim=2))
    assert math.isnan(found.with_features)
    assert not found.features_help


def test_nothing_is_tried_without_features_or_with_few_validation_links(split: LinkSplit) -> None:
    few = HeldOut(split.val.links[: ENOUGH_TO_STOP - 1], split.val.non_links)
    assert not can_try_features(split.train.without_features(), split.val)
    assert not can_try_features(split.train, few)
    assert not can_try_features(split.train, None)


def test_more_non_links_are_distinct_pairs_without_a_known_link(split: LinkSplit) -> None:
    found = more_non_links(split.train, split.val, seed=0)
    assert len(found) == 100 * len(split.val.links)
    ranks = to_ranks(found, split.train.num_nodes)
    assert len(np.unique(ranks)) == len(found)
    known = np.sort(to_ranks(np.concatenate([split.train.edges, split.val.links]), split.train.num_nodes))
    assert not contains(known, ranks).any()
    assert (found[:, 0] < found[:, 1]).all()
    assert (found == more_non_links(split.train, split.val, seed=0)).all()
    assert not (found == more_non_links(split.train, split.val, seed=1)).all()


def test_more_non_links_are_no_more_than_there_are() -> None:
    graph = Graph.from_edges([(i, j) for i in range(12) for j in range(i) if (i + j) % 3])
    split = split_links(graph, val=0.2, test=0.1, seed=0)
    found = more_non_links(split.train, split.val, seed=0)
    assert len(found) == 12 * 11 // 2 - split.train.num_edges - len(split.val.links)


class Recorder(Checkpointer):
    """Keeps the last state."""

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        self.last = snapshot()


def test_stopping_by_the_top_keeps_the_weights_with_the_best_sum_of_three_scores(split: LinkSplit) -> None:
    config = Config(hidden_dim=8, latent_dim=4, iterations=60, early_stopping=60, eval_every=5, stop_by="top", seed=1)
    recorder = Recorder()
    trained = train(Job.of(split.train, config, split.val), checkpointer=recorder)
    links, non_links = trained.logits(split.val.links), trained.logits(split.val.non_links)
    top = average_precision(links, trained.logits(more_non_links(split.train, split.val, config.seed)))
    assert recorder.last.best_score == pytest.approx(sum(auc_and_ap(links, non_links).values()) + top, abs=1e-6)
    assert 0 < top < auc_and_ap(links, non_links)["ap"]
    logged = {entry.iteration: entry for entry in trained.history}[trained.best_iteration]
    assert logged.val_ap == pytest.approx(auc_and_ap(links, non_links)["ap"], abs=1e-6)  # the history is as before


def test_what_to_stop_by_changes_nothing_where_nothing_stops(split: LinkSplit) -> None:
    config = Config(hidden_dim=8, latent_dim=4, iterations=5)
    first, second = (
        train(Job.of(split.train, each, split.val)).latent["mean"] for each in (config, replace(config, stop_by="top"))
    )
    assert (first == second).all()


def test_an_estimator_for_a_graph_has_tuned_parameters_and_the_papers_stay_the_default(split: LinkSplit) -> None:
    assert vgae.VGAE().get_params()["hidden_dim"] == Config().hidden_dim
    graph = split.train.normalized("rows")
    model = vgae.VGAE.for_graph(graph, validation=split.val, latent_dim=4, iterations=3)
    assert (model.hidden_dim, model.latent_dim, model.iterations, model.stop_by) == (TUNED["hidden_dim"], 4, 3, "top")
    trial = try_features(graph, split.val, tuned(Config(latent_dim=4, iterations=3), {"latent_dim", "iterations"}, 100))
    assert model.features is trial.features_help
    model.fit(graph, validation=split.val)
    assert model.transform().shape == (300, 4)
    small = vgae.GAE.for_graph(split.train.without_features())
    assert (small.hidden_dim, small.early_stopping, small.iterations) == (TUNED["hidden_dim"], None, 200)
