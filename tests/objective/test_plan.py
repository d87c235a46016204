"""The cost of training: arithmetic against counts of a real graph, the choice of objective, refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.objective import plan
from vgae.objective.plan import Rates, Workload, calibrate, choose_objective, duration, estimate, require_memory
from vgae.train.config import Config
from vgae.train.trainer import train, workload

CPU = torch.device("cpu")
RATES = Rates(pairs_per_second=1e9, numbers_per_second=1e9, seconds_per_step=1e-3)


def work(num_nodes: int, num_edges: int = 0) -> Workload:
    graph = Graph.from_edges([(0, 1)], num_nodes=num_nodes)
    usual = Workload.of(graph, hidden_dim=32, latent_dim=16)
    return replace(usual, num_edges=num_edges or 5 * num_nodes, num_negatives=10 * num_nodes)


def test_workload_counts_what_the_graph_and_the_model_have() -> None:
    graph = stochastic_block_model(300, 3, feature_dim=30, seed=1)
    found = workload(graph, Config(model="gae", hidden_dim=8, latent_dim=4, num_negatives=77))
    assert (found.num_nodes, found.num_edges, found.num_features) == (300, graph.num_edges, 30)
    assert found.feature_entries == np.count_nonzero(graph.features.toarray())  # type: ignore[union-attr]
    assert (found.num_heads, found.num_negatives, found.all_pairs) == (1, 77, 300**2 / 2)
    assert found.single_pairs("exact") == graph.num_edges + 300
    assert found.single_pairs("sampled") == graph.num_edges + 300 + 77
    assert workload(graph, Config(features=False)).feature_entries == 0


def test_estimate_is_the_sum_of_its_parts() -> None:
    load = work(10_000)
    exact, sampled = (estimate(load, RATES, objective) for objective in ("exact", "sampled"))
    assert exact.seconds == pytest.approx(1e-3 + load.numbers_moved("exact") / 1e9 + 10_000**2 / 2 / 1e9)
    assert sampled.seconds == pytest.approx(1e-3 + load.numbers_moved("sampled") / 1e9)
    assert sampled.bytes > exact.bytes


def test_predicted_memory_is_near_what_training_allocates() -> None:
    graph = stochastic_block_model(20_000, 4, degree_within=16, degree_between=4, seed=0)
    for objective in ("exact", "sampled"):
        config = Config(objective=objective, iterations=1, eval_every=1)
        with torch.profiler.profile(profile_memory=True, acc_events=True) as profile:
            train(graph, config)
        level = peak = 0
        for event in profile.profiler.kineto_results.events():
            if event.name() == "[memory]":
                level += event.nbytes()
                peak = max(peak, level)
        predicted = workload(graph, config).bytes_needed(objective)
        assert 0.5 < predicted / peak < 2


@pytest.mark.parametrize(
    ("num_nodes", "expected"), [(100, "exact"), (5_000, "exact"), (50_000, "exact"), (10**6, "sampled")]
)
def test_auto_is_exact_while_affordable_and_says_what_it_would_cost(num_nodes: int, expected: str) -> None:
    choice = choose_objective(work(num_nodes), 200, CPU, lambda: RATES)
    assert choice.objective == expected
    assert "GB" in choice.reason
    if num_nodes >= 50_000:
        seconds = 200 * estimate(work(num_nodes), RATES, "exact").seconds
        assert f"about {duration(seconds)}" in choice.reason
        assert (seconds <= 900) == (expected == "exact")


def test_small_graphs_are_not_measured() -> None:
    def fail() -> Rates:
        raise AssertionError

    assert choose_objective(work(2_708), 200, CPU, fail).objective == "exact"


def test_what_cannot_fit_is_refused_with_what_would() -> None:
    load = work(100_000)
    between = (load.bytes_needed("exact") + load.bytes_needed("sampled")) / 2
    require_memory(load, "exact", between)
    with pytest.raises(InputError, match="exact objective would fit"):
        require_memory(load, "sampled", between)
    with pytest.raises(InputError, match="lower hidden_dim"):
        require_memory(load, "exact", load.bytes_needed("exact") / 2)


def test_calibration_divides_work_by_the_time_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that gives a tiny sweep 1 ms, a sparse product 20 ms, and 3,000 × 3,000 pairs 10 ms."""
    times = iter([0.001, 0.020, 0.010])
    monkeypatch.setattr(plan, "_seconds", lambda work, _device: (work(), next(times))[1])
    rates = calibrate(CPU, latent_dim=4, symmetric=False)
    entries = len({(a, b) for a, b in np.random.default_rng(0).integers(3000, size=(2, 30_000)).T.tolist()})
    assert rates.pairs_per_second == pytest.approx(3000**2 / 0.009)
    assert rates.numbers_per_second == pytest.approx(32 * entries / 0.020, rel=0.01)
    assert rates.seconds_per_step == pytest.approx(plan.STEP_OVERHEADS * 0.001)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0123, "12.3 ms"), (45.2, "45 s"), (600, "10 minutes"), (7200, "2.0 hours")]
)
def test_durations_are_told_in_the_unit_that_suits_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words
