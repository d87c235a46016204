"""Several processes train as one does: loss, gradients, weights, scores, stopping; and to the same bits every time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from cases import NAMES, WITH_KERNELS, Course, course, courses, courses_by_asking, job_of, joined
from grouping import Processes
from torch import Tensor

from vgae.errors import InputError
from vgae.train.together import require_shardable

SIZES = (2, 3, 4)
# With any number of processes; the rest by three: an odd number has the whole way, an even one shares the last step.
EVERYWHERE = [
    "plain, gae, exact",
    "plain, vgae, sampled",
    "sparse, vgae, exact",
    "sparse, gae, sampled",
    "hub, vgae, exact",
    "apart, vgae, sampled",
    "decoder source_target",
    "longer",
]
AFTER_ONE_STEP, LATER = 1e-5, 1e-4  # relative; later, because Adam divides gradients by their size, small ones too


@pytest.fixture(params=SIZES, scope="module")
def processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(request.param, tmp_path_factory.mktemp("group"))
    yield started
    started.close()


@cache
def alone(name: str) -> Course:
    return course(None, name, {})


def error(found: Tensor, expected: Tensor, norm: float = 2.0) -> float:
    """The size of the difference, relative to that of what is expected."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if torch.equal(found, expected):
        return 0.0
    wrong, size = (torch.linalg.vector_norm(each.double(), norm) for each in (found - expected, expected))
    return float(wrong / size)


def compare(name: str, found: list[Course]) -> None:
    """The courses of all processes with that of one."""
    expected, sharding = alone(name), found[0].sharding
    assert sharding is not None
    assert len({tuple((entry.loss, entry.val_auc) for entry in each.history) for each in found}) == 1, name
    assert [entry.iteration for entry in found[0].history] == [entry.iteration for entry in expected.history], name
    for entry, other in zip(found[0].history, expected.history, strict=True):
        assert entry.loss == pytest.approx(other.loss, rel=AFTER_ONE_STEP if entry.iteration == 1 else LATER), name
        assert entry.kl == pytest.approx(other.kl, rel=LATER, abs=1e-12), name
        assert entry.active == other.active, name
        assert entry.val_auc == (other.val_auc and pytest.approx(other.val_auc, abs=1e-3)), name
    for step, states in enumerate(zip(*(each.states for each in found), strict=True)):
        tensors, others = joined(list(states), sharding), expected.states[step].tensors
        assert set(tensors) == set(others), name
        for key, tensor in tensors.items():
            if key == "generator":
                assert torch.equal(tensor, others[key]), name
            elif step == 0 and key.endswith("exp_avg"):  # a tenth of the first gradient
                assert error(tensor, others[key], norm=torch.inf) <= AFTER_ONE_STEP, f"{name}: gradient of {key}"
            elif not key.startswith("adam"):
                assert error(tensor, others[key]) <= LATER, f"{name}: {key} after step {step + 1}"
    first, *rest = found
    assert first.nodes is None, name
    for key, values in expected.latent.items():
        assert error(first.latent[key], values) <= LATER, name
    for key, values in expected.weights.items():
        assert error(first.weights[key], values) <= LATER, name
    for each, (begin, end) in zip(rest, pairwise(sharding.shards.bounds[1:]), strict=True):
        assert each.nodes == range(begin, end), name
        assert all(torch.equal(each.latent[key], values[begin:end]) for key, values in first.latent.items()), name


def test_several_processes_train_as_one_does_and_to_the_same_bits(processes: Processes) -> None:
    names = NAMES if processes.size == 3 else EVERYWHERE
    first = processes.run(courses, names)
    for name in names:
        compare(name, [each[name] for each in first])
    some = EVERYWHERE[1:4]
    again = processes.run(courses, some)
    for name in some:
        for before, after in zip(first, again, strict=True):
            states = zip(before[name].states, after[name].states, strict=True)
            assert all(torch.equal(a.tensors[key], b.tensors[key]) for a, b in states for key in a.tensors), name


def test_rows_of_large_graphs_are_asked_for(processes: Processes) -> None:
    names = ["plain, vgae, sampled", "hub, vgae, sampled", "decoder source_target, sampled"]
    found = processes.run(courses_by_asking, names)
    for name in names:
        compare(name, [each[name] for each in found])


def test_a_training_that_is_continued_ends_with_the_same_bits(processes: Processes) -> None:
    for name in ("plain, vgae, sampled", "stopping"):
        whole = processes.run(course, name, {})
        parts = processes.run_each(course, [(name, {}, each.states[0]) for each in whole])
        for one, two in zip(whole, parts, strict=True):
            last, other = one.states[-1].tensors, two.states[-1].tensors
            assert all(torch.equal(last[key], other[key]) for key in last), name
            assert [entry.loss for entry in one.history] == [entry.loss for entry in two.history], name


def test_kernels_for_the_cpu_do_the_same(tmp_path: Path) -> None:
    started = Processes(2, tmp_path)
    try:
        found = started.run(courses_by_asking, WITH_KERNELS)
    finally:
        started.close()
    for name in WITH_KERNELS:
        compare(name, [each[name] for each in found])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"encoder": "directed"}, "encoder: .* directed; use gcn, linear, normalized or mlp"),
        ({"posterior": "power_spherical"}, "posterior: .* power_spherical"),
        ({"prior": "mixture"}, "prior: .* mixture"),
        ({"decoder": "mlp", "objective": "sampled"}, "decoder: .* mlp"),
        ({"batch_size": 20, "objective": "sampled"}, "batch_size: "),
        ({"control_variate": "off", "objective": "sampled"}, "control_variate: "),
    ],
)
def test_what_processes_cannot_train_is_refused_by_name(changes: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        require_shardable(job_of("plain, vgae, exact", **changes), 2)


def test_more_processes_than_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="processes: 204 are more than the graph has nodes, 203"):
        require_shardable(job_of("plain, vgae, exact"), 204)
