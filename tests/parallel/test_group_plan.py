"""The plan for several processes against what they count: bytes that they send, and memory that they take."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plan_cases as cases
import pytest
import torch
from grouping import Processes

from command import run_vgae, strict_json
from helpers import graph_with
from vgae.graph.synthetic import rmat
from vgae.objective import group_cost
from vgae.objective.group_cost import GroupWorkload, random_shares, shares_of
from vgae.train.config import Config
from vgae.train.job import Job, workload


@pytest.fixture(params=[1, 2, 4], scope="module")
def processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(request.param, tmp_path_factory.mktemp("group"))
    yield started
    started.close()


@pytest.mark.parametrize("objective", ["exact", "sampled"])
@pytest.mark.parametrize("decoder", ["inner_product", "source_target"])
@pytest.mark.parametrize("features", ["none", "sparse"])
@pytest.mark.parametrize("gathered", [0, 2**16])
def test_bytes_sent_are_those_of_the_plan(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, objective: str, decoder: str, features: str, gathered: int
) -> None:
    if objective == "exact" and gathered:
        pytest.skip("the exact objective gathers nothing")
    monkeypatch.setattr(group_cost, "GATHERED", gathered)
    graph = graph_with(1500, 4, features)
    values: dict[str, Any] = {"objective": objective, "decoder": decoder}
    found = processes.run(cases.count, graph, values, gathered)
    work = workload(Job.of(graph, Config(**values)))
    divided = GroupWorkload(work, shares_of(graph, found[0][1]))
    expected = [divided.sent(share, objective) for share in divided.shares]
    assert [sent for sent, _ in found] == pytest.approx(expected, rel=0.01), expected
    assert (max(expected) == 0) == (processes.size == 1)


def test_shares_are_those_of_the_graph() -> None:
    graph, bounds = graph_with(200, 3, "none"), (0, 50, 120, 200)
    matrix = graph.adjacency.toarray() + np.eye(200)
    parts = [range(first, last) for first, last in pairwise(bounds)]
    for share, own in zip(shares_of(graph, bounds), parts, strict=True):
        others = [node for node in range(200) if node not in own]
        assert share.num_nodes == len(own)
        assert share.entries == matrix[own.start : own.stop].sum()
        assert share.halo == matrix[own.start : own.stop, others].any(axis=0).sum()
        wanted = [matrix[np.ix_(own, other)].any(axis=1).sum() for other in parts if other != own]
        assert share.wanted == sum(wanted)


def test_shares_on_paper_are_those_of_a_graph_without_order() -> None:
    graph = graph_with(20_000, 5, "none")
    degree = 2 * graph.num_edges / graph.num_nodes
    for size in (2, 8):
        found = shares_of(graph, np.linspace(0, graph.num_nodes, size + 1).astype(int).tolist())
        expected = random_shares(graph.num_nodes, degree, size)[0]
        assert np.mean([share.halo for share in found]) == pytest.approx(expected.halo, rel=0.05)
        assert np.mean([share.entries for share in found]) == pytest.approx(expected.entries, rel=0.01)


@pytest.mark.parametrize("objective", ["exact", "sampled"])
def test_memory_is_about_that_of_the_plan(processes: Processes, objective: str) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell the peak of a process")
    small, graph = graph_with(2500, 4, "none"), rmat(12_000 if objective == "exact" else 70_000, 200_000, seed=0)
    values: dict[str, Any] = {"objective": objective, "hidden_dim": 64, "latent_dim": 32}
    found = processes.run(cases.growth, small, graph, values)
    divided = GroupWorkload(workload(Job.of(graph, Config(**values))), shares_of(graph, found[0][1]))
    planned = [
        divided.memory(share, objective, torch.device("cpu"), first=not rank).host
        for rank, share in enumerate(divided.shares)
    ]
    for (grown, _), bytes_planned in zip(found, planned, strict=True):
        assert 0.4 * bytes_planned < grown < 1.25 * bytes_planned, (found, planned)


def test_the_command_adds_the_time_of_messages(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("".join(f"{i},{(7 * i + 1) % 400}\n{i},{(i + 1) % 400}\n" for i in range(400)))
    words = ["plan", "links.csv", "--preset", "paper", "--processes", "4", "--bandwidth", "1e-6", "--json"]
    found = strict_json(run_vgae(*words, cwd=tmp_path).stdout)
    for objective in ("exact", "sampled"):
        assert found[objective]["seconds"] > found[objective]["sent_bytes"] / 1e3 > 1
        assert 0 < found[objective]["halo"] <= 300
