"""Calibration against worlds in which the right probabilities are known."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from vgae.evaluation.calibration import Calibration, Evidence
from vgae.evaluation.histogram import Counter, Histogram

LADDER = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9])


def histogram_of(logits: np.ndarray) -> Histogram:
    counter = Counter(torch.device("cpu"))
    counter.add(torch.tensor(logits, dtype=torch.float32))
    return counter.histogram()


@dataclass(frozen=True)
class World:
    """Pairs with log odds of a link, and logits that are some increasing function of them; links are held out."""

    log_odds: np.ndarray
    logits: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, scale: float, shift: float, bend: float = 0.0, size: int = 1_000_000, seed: int = 0) -> "World":
        generator = np.random.default_rng(seed)
        log_odds = np.concatenate([generator.normal(-9, 2, size), generator.uniform(-6, 4, size // 50)])
        labels = generator.random(len(log_odds)) < expit(log_odds)
        return cls(log_odds, scale * log_odds + bend * np.exp(log_odds / 4) + shift, labels)

    def evidence(self, *, val: float, test: float, seed: int = 1) -> Evidence:
        """What remains to be seen when the other links are the training graph's."""
        generator = np.random.default_rng(seed)
        links = generator.permutation(np.flatnonzero(self.labels))
        num_val, num_unseen = int(val * len(links)), int((val + test) * len(links))
        training = links[num_unseen:]
        outside = np.delete(self.logits, training)
        return Evidence(histogram_of(outside), self.logits[links[:num_val]].astype(np.float32), num_unseen, len(links))

    def logits_at(self, probabilities: np.ndarray) -> np.ndarray:
        """The logits at which pairs have these probabilities."""
        order = np.argsort(self.log_odds)
        return np.asarray(
            np.interp(np.log(probabilities / (1 - probabilities)), self.log_odds[order], self.logits[order])
        )


@pytest.mark.parametrize(
    ("scale", "shift", "bend"),
    [(1.0, 0.0, 0.0), (0.05, 3.0, 0.0), (1e5, -7.0, 0.0), (0.3, 0.0, 5.0), (1.0, 200.0, -0.5)],
)
def test_the_probabilities_of_a_world_are_found_from_end_to_end(scale: float, shift: float, bend: float) -> None:
    world = World.of(scale, shift, bend)
    found = Calibration.fit(world.evidence(val=0.2, test=0.1))
    p = found.probabilities(world.logits_at(LADDER))
    np.testing.assert_allclose(np.log(p / (1 - p)), np.log(LADDER / (1 - LADDER)), atol=0.35)


@pytest.mark.parametrize(("val", "test"), [(0.05, 0.1), (0.05, 0.0), (0.3, 0.3), (0.1, 0.8)])
def test_probabilities_do_not_depend_on_the_share_of_links_that_is_held_out(val: float, test: float) -> None:
    world = World.of(1.0, 0.0)
    p = Calibration.fit(world.evidence(val=val, test=test)).probabilities(world.logits_at(LADDER))
    np.testing.assert_allclose(np.log(p / (1 - p)), np.log(LADDER / (1 - LADDER)), atol=0.6)


@given(
    st.lists(st.integers(-5, 5), min_size=2, max_size=40),
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.integers(0, 50),
)
def test_probabilities_never_fall_and_stay_below_one(others: list[int], links: list[int], more: int) -> None:
    logits = np.array([*others, *links], dtype=np.float32)
    evidence = Evidence(
        histogram_of(logits), np.array(links, np.float32), min(len(links) + more, len(logits)), 10 * len(logits)
    )
    p = Calibration.fit(evidence).probabilities(np.linspace(-8, 8, 200))
    assert (np.diff(p) >= 0).all()
    assert ((p > 0) & (p < 1)).all()


def test_nothing_is_promised_beyond_the_evidence() -> None:
    world = World.of(1.0, 0.0)
    evidence = world.evidence(val=0.2, test=0.1)
    found = Calibration.fit(evidence)
    highest = float(evidence.links.max())
    assert found.logits[-1] <= highest
    beyond = found.probabilities(np.array([highest, highest + 10, 1e9]))
    assert beyond.tolist() == [beyond[0]] * 3 == [found.probabilities(np.array(found.logits[-1:]))[0]] * 3


def test_logits_without_spread_give_the_density() -> None:
    num_pairs, num_links = 10_000, 300
    evidence = Evidence(histogram_of(np.zeros(num_pairs)), np.zeros(20, np.float32), 60, num_links)
    p = Calibration.fit(evidence).probabilities(np.array([-1.0, 0.0, 5.0]))
    np.testing.assert_allclose(p, num_links / (num_links + num_pairs - 60))


def test_counts_with_many_ties_get_the_share_of_each_count() -> None:
    generator = np.random.default_rng(0)
    counts = np.repeat([0, 1, 2, 3], [200_000, 20_000, 2_000, 400])
    shares = np.array([1e-4, 5e-3, 0.05, 0.4])
    unseen = generator.random(len(counts)) < shares[counts]
    links = counts[unseen].astype(np.float32)
    found = Calibration.fit(Evidence(histogram_of(counts), links, len(links), len(links)))
    np.testing.assert_allclose(found.probabilities(np.arange(4.0)), shares, rtol=0.3)


@pytest.mark.parametrize("num_links", [1, 2, 3, 7, 49, 50])
def test_few_links_still_rank_and_are_called_rough(num_links: int) -> None:
    generator = np.random.default_rng(num_links)
    logits = generator.normal(0, 1, 5000)
    links = np.sort(logits)[-20 * num_links :: 20].astype(np.float32)
    found = Calibration.fit(Evidence(histogram_of(logits), links, 3 * num_links, 20 * num_links))
    assert found.is_fitted
    assert found.is_rough == (num_links < 50)
    p = found.probabilities(np.array([-3.0, 3.0]))
    assert p[1] > 2 * p[0]


def test_without_links_the_weight_of_the_loss_is_taken_back_and_nothing_more() -> None:
    p = np.array([0.001, 0.2, 0.5, 0.9])
    none = np.empty(0, np.float32)
    for weight in (1.0, 816.0):
        found = Calibration.fit(Evidence(histogram_of(np.zeros(5)), none, 0, 10), shift=np.log(weight))
        assert not found.is_fitted
        np.testing.assert_allclose(found.probabilities(np.log(weight * p / (1 - p))), p, rtol=1e-12)
    assert np.isnan(Calibration().probabilities(p)).all()  # of scores that mean nothing by themselves


def test_what_is_saved_is_read_again_and_nonsense_is_refused() -> None:
    found = Calibration.fit(World.of(1.0, 0.0, size=20_000).evidence(val=0.2, test=0.1))
    saved = json.loads(json.dumps(found.to_json()))
    assert Calibration.from_json(saved) == found
    nan, reverse = {"log_odds": [float("nan")] * len(found.logits)}, {"log_odds": saved["log_odds"][::-1]}
    for damage in (nan, reverse, {"logits": [1.0]}, {"num_links": -1}, {"num_links": True}, {"logits": "x"}):
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy's words or ours: the reader of runs has its own sentence
            Calibration.from_json(saved | damage)
