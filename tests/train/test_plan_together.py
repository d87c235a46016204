"""The plan of a training in several processes: what is counted in the graph, and one process as the limit."""

from itertools import pairwise

import numpy as np
import pytest

import vgae
from vgae.errors import InputError
from vgae.objective.cost import Rates, estimate
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.plan_together import estimate_together

RATES = Rates(1e9, 1e9, 1e-3)


def job_of(*, features: bool = False, **options: object) -> Job:
    graph = vgae.stochastic_block_model(300, 4, feature_dim=12 if features else 0, seed=1)
    return Job.of(graph, Config(device="cpu", **options))  # type: ignore[arg-type]  # options of any type


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


def test_messages_take_time_where_it_is_known_how_fast_they_are() -> None:
    job = job_of()
    work = workload(job)
    free, paid = (estimate_together(job, work, RATES, "exact", 3, speed) for speed in (float("inf"), 1e6))
    assert free.sent == paid.sent
    assert paid.seconds == pytest.approx(free.seconds + paid.sent / 1e6, rel=0.2)  # of the process that takes longest


def test_what_cannot_be_trained_so_is_not_planned() -> None:
    job = job_of()
    with pytest.raises(InputError, match="nodes"):
        estimate_together(job, workload(job), RATES, "exact", 301)
