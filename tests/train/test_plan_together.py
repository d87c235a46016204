"""The plan of a training in several processes: what is counted in the graph, and one process as the limit."""

from itertools import pairwise

import numpy as np
import pytest

import vgae
from vgae.errors import InputError
from vgae.objective.cost import Rates, estimate
from vgae.parallel.shards import Shards
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.plan_together import estimate_together, halo_sizes, shared_weights

RATES = Rates(1e9, 1e9, 1e-3)


def job_of(*, features: bool = False, **options: object) -> Job:
    graph = vgae.stochastic_block_model(300, 4, feature_dim=12 if features else 0, seed=1)
    return Job.of(graph, Config(device="cpu", **options))  # type: ignore[arg-type]  # options of any type


@pytest.mark.parametrize("bounds", [(0, 300), (0, 150, 300), (0, 1, 299, 300), (0, 50, 51, 200, 300)])
def test_a_halo_is_what_own_nodes_are_linked_to(bounds: tuple[int, ...]) -> None:
    graph = job_of().graph
    linked = np.zeros((300, 300), dtype=bool)
    linked[tuple(graph.edges.T)] = True
    linked |= linked.T
    expected = []
    for first, last in pairwise(bounds):
        outside = [node for node in range(300) if not first <= node < last]
        expected.append(sum(bool(linked[first:last, node].any()) for node in outside))
    assert halo_sizes(graph, Shards(bounds, 0)) == expected


@pytest.mark.parametrize("objective", ["exact", "sampled"])
@pytest.mark.parametrize("features", [False, True])
def test_one_process_costs_what_one_process_costs(objective: str, features: bool) -> None:
    job = job_of(features=features)
    work = workload(job, checkpoints=True)
    alone, one = (
        estimate(work, RATES, objective, job.device),
        estimate_together(job, work, RATES, objective, 1),
    )
    assert one.sent == 0
    assert one.halo == 0
    assert one.seconds == alone.seconds
    assert one.memory.host == pytest.approx(alone.memory.host)


@pytest.mark.parametrize("objective", ["exact", "sampled"])
def test_more_processes_take_less_each_and_more_together(objective: str) -> None:
    nodes = np.arange(50_000)
    path = vgae.Graph.from_edges(np.stack([nodes[:-1], nodes[1:]], axis=1))
    job = Job.of(path, Config(device="cpu"))
    work = workload(job, checkpoints=True)
    found = [estimate_together(job, work, RATES, objective, processes) for processes in (1, 2, 4, 8)]
    assert [each.halo for each in found] == [0, 1, 2, 2]  # the ends of the ranges
    for few, many in pairwise(found):
        assert many.seconds < few.seconds < 2 * many.seconds
        assert many.memory.host < few.memory.host < 2 * many.memory.host


def test_what_is_sent_is_the_sum_of_its_terms() -> None:
    job = job_of(model="gae", hidden_dim=8, latent_dim=4)
    work = workload(job)
    exact, sampled = (estimate_together(job, work, RATES, objective, 2) for objective in ("exact", "sampled"))
    shared = 8 * 4  # W₁; W₀ has a row for each node
    assert shared_weights(job) == shared
    halo = 2 * exact.halo * (8 + 4) + exact.halo * 4
    assert exact.sent == 4 * (halo + shared + 300 * 4 / 2)
    halo = 2 * sampled.halo * (8 + 4) + sampled.halo * 4
    assert sampled.sent == 4 * (halo + shared + 2 * 4 * work.num_negatives / 4 + 2 * 4**2)
    with_features = job_of(features=True, model="gae", hidden_dim=8, latent_dim=4)
    assert shared_weights(with_features) == 12 * 8 + shared


def test_what_cannot_be_trained_so_is_not_planned() -> None:
    job = job_of()
    with pytest.raises(InputError, match="nodes"):
        estimate_together(job, workload(job), RATES, "exact", 301)
