"""Trials of steps: what they are made on, and that rates follow from what they take."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import vgae
from vgae.objective.batch_cost import BatchCost
from vgae.objective.cost import estimate
from vgae.train import trial
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.loop import train
from vgae.train.plan import plan_training
from vgae.train.trial import FEWEST_NODES, measure, smaller_graph, smaller_job, trial_sizes

CPU = torch.device("cpu")


def graph_of(num_nodes: int, degree: int = 6, *, features: str = "none", directed: bool = False) -> vgae.Graph:
    generator = np.random.default_rng(num_nodes)
    ends = generator.integers(num_nodes, size=(num_nodes * degree // 2, 2))
    matrix: Any = None
    if features == "dense":
        matrix = generator.standard_normal((num_nodes, 7), dtype=np.float32)
    if features == "sparse":
        matrix = sp.random_array((num_nodes, 40), density=0.1, format="csr", dtype=np.float32, rng=generator)
    return vgae.Graph.from_edges(ends, num_nodes=num_nodes, features=matrix, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("features", ["none", "dense", "sparse"])
@pytest.mark.parametrize("share", [0.1, 0.37, 0.99])
def test_a_smaller_graph_has_as_many_links_per_node(share: float, features: str, directed: bool) -> None:
    graph = graph_of(5000, features=features, directed=directed)
    smaller = smaller_graph(graph, round(share * 5000))
    assert smaller.num_nodes == round(share * 5000)
    assert smaller.num_edges / smaller.num_nodes == pytest.approx(graph.num_edges / graph.num_nodes, rel=0.02)
    assert smaller.directed == directed
    if graph.features is not None:
        assert smaller.features is not None
        assert abs(smaller.features - graph.features[: smaller.num_nodes]).max() == 0


def test_a_smaller_training_differs_in_its_size_alone() -> None:
    graph = graph_of(8000)
    config = Config(num_negatives=4000, hidden_dim=8, latent_dim=4, device="cpu")
    smaller = smaller_job(Job(graph, config), 2000)
    assert smaller.config == replace(config, num_negatives=1000)
    batched = replace(config, num_negatives=None, objective="sampled")
    sizes = [smaller_job(Job(graph, replace(batched, batch_size=size)), 2000).config.batch_size for size in (500, 6000)]
    assert sizes == [500, 1500]  # the same, unless a part would be most of the smaller graph
    job = Job(graph, config)
    assert smaller_job(job, 8000) is job


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_trials_grow_with_what_is_quickly_done_and_end_with_the_graph(device: str) -> None:
    def largest(num_nodes: int, objective: str, **options: Any) -> int:
        load = workload(Job(graph_of(1000), Config(device="cpu", **options)))
        load = replace(load, num_nodes=num_nodes, num_edges=3 * num_nodes, num_negatives=num_nodes)
        return trial_sizes(load, objective, torch.device(device))[-1]

    assert largest(200, "sampled") == 200
    assert largest(3000, "exact") == largest(3000, "sampled") == 3000
    limits = trial.LIMITS[device]
    assert largest(10**6, "exact") == int(math.sqrt(2 * limits.pairs))
    of_many = largest(10**6, "sampled")
    assert largest(10**7, "sampled") == pytest.approx(of_many, rel=0.01)
    assert largest(10**6, "sampled", hidden_dim=128, latent_dim=64) < of_many / 3


@pytest.mark.parametrize(("objective", "batch_size"), [("exact", None), ("sampled", None), ("sampled", 700)])
@pytest.mark.parametrize("num_nodes", [400, 1500, 20_000])
@pytest.mark.parametrize("slower", [1.0, 3.0])
def test_rates_give_back_what_a_machine_takes(
    objective: str, batch_size: int | None, num_nodes: int, slower: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine whose steps take 2 ms, 3 ns for each number that they move and 1 ns for each pair of a sweep.

    Rows of the whole graph take longer than those of a smaller one, and a part of a step's time goes with that.
    """
    if batch_size is not None and batch_size > num_nodes:
        return
    monkeypatch.setattr(trial, "LIMITS", {"cpu": replace(trial.LIMITS["cpu"], numbers=1e7, pairs=1e5)})
    config = Config(objective=objective, batch_size=batch_size, device="cpu")
    job = Job(graph_of(num_nodes), config)

    def takes(tried: Job, number: float = 3e-9) -> float:
        load = workload(tried)
        batched = BatchCost.of(load)
        if batched is not None:
            return 2e-3 + number * batched.numbers_moved() + 1e-9 * batched.all_pairs
        return 2e-3 + number * load.numbers_moved(objective) + (1e-9 * load.all_pairs if objective == "exact" else 0)

    load = workload(job)
    sizes = trial_sizes(load, objective, CPU)
    steps = [takes(smaller_job(job, size)) for size in sizes]
    half = trial.LIMITS["cpu"].nodes ** 2 / 2
    batched = BatchCost.of(load)
    swept = objective == "exact" or (batched is not None and batched.all_pairs > 0)
    sweeps = [1e-9 * half + 1e-5, 1e-5] if swept else []
    times = itertools.chain(steps, sweeps, [1e-3, 1e-3 * slower])
    monkeypatch.setattr(trial, "seconds", lambda work, _device: (work(), next(times))[1])
    found = estimate(load, measure(job, load, objective), objective, CPU).seconds
    number = 3e-9 * (1 + trial.WAITING * (slower - 1)) if sizes[-1] < num_nodes else 3e-9
    assert found == pytest.approx(takes(job, number), rel=0.02)


def test_a_plan_leaves_no_trace_in_a_training() -> None:
    graph, config = graph_of(2 * FEWEST_NODES), Config(iterations=3, objective="sampled", device="cpu", seed=5)
    before = train(Job.of(graph, config))
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    costs = plan_training(Job.of(graph, config)).costs
    assert {cost.objective for cost in costs} == {"exact", "sampled"}
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
    assert torch.equal(train(Job.of(graph, config)).embeddings, before.embeddings)
