"""The cost of training: arithmetic against counts of a real graph, the choice of objective, refusals."""

import gc
import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import vgae
from helpers import graph_with, message_of
from vgae.cli.app import app
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.io.graphs import write_graph
from vgae.machine import working_on
from vgae.model.spec import find, registered
from vgae.objective import cost
from vgae.objective import workload as workload_module
from vgae.objective.cost import Rates, choose_objective, duration, estimate, memory_on, require_memory
from vgae.objective.partition import BatchOptions
from vgae.objective.workload import Memory, Workload
from vgae.train import plan
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.loop import train

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
RATES = Rates(pairs_per_second=1e9, numbers_per_second=1e9, seconds_per_step=1e-3)


def work(num_nodes: int, num_edges: int = 0) -> Workload:
    graph = Graph.from_edges([(0, 1)], num_nodes=num_nodes)
    usual = Workload.of(graph, Config().composition)
    return replace(usual, num_edges=num_edges or 5 * num_nodes, num_negatives=10 * num_nodes)


def test_workload_counts_what_the_graph_and_the_model_have() -> None:
    graph = stochastic_block_model(300, 3, feature_dim=30, seed=1)
    found = workload(Job.of(graph, Config(model="gae", hidden_dim=8, latent_dim=4, num_negatives=77)))
    assert (found.num_nodes, found.num_edges, found.num_features) == (300, graph.num_edges, 30)
    assert found.feature_entries == np.count_nonzero(graph.features.toarray())  # type: ignore[union-attr]
    assert (found.num_negatives, found.all_pairs) == (77, 300**2 / 2)
    assert found.num_weights == 30 * 8 + 8 * 4
    assert found.single_pairs("exact") == graph.num_edges + 300
    assert found.single_pairs("sampled") == graph.num_edges + 300 + 77
    bare = workload(Job.of(graph, Config(features=False)))
    assert (bare.feature_entries, bare.input_dim) == (0, 300)


@pytest.mark.parametrize(("num_nodes", "sampled_takes_more"), [(3_000, False), (10_000, False), (100_000, True)])
def test_estimate_is_the_sum_of_its_parts(num_nodes: int, sampled_takes_more: bool) -> None:
    """Of a small graph a draw is not held: its pairs are summed up as they are drawn (vgae.ops.one_pass)."""
    load = work(num_nodes)
    exact, sampled = (estimate(load, RATES, objective, CPU) for objective in ("exact", "sampled"))
    assert exact.seconds == pytest.approx(1e-3 + load.numbers_moved("exact") / 1e9 + num_nodes**2 / 2 / 1e9)
    assert sampled.seconds == pytest.approx(1e-3 + load.numbers_moved("sampled") / 1e9)
    assert (sampled.memory.host > exact.memory.host) == sampled_takes_more
    assert exact.memory.device == 0


@cache
def load_kernels() -> None:
    """Whatever compiles them for the first time holds on to their arguments for a while."""
    for objective in ("exact", "sampled"):
        train(Job.of(graph_with(2100, 2, "none"), Config(objective=objective, iterations=1, device="cpu")))
    gc.collect()


def peak_of_tensors(job: Job) -> float:
    load_kernels()
    with torch.profiler.profile(profile_memory=True, acc_events=True) as profile:
        train(job)
    level = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            level += event.nbytes()
            peak = max(peak, level)
    return float(peak)


@pytest.mark.parametrize(
    ("links", "features", "model", "objective", "latent_dim"),
    [
        (4, "none", "vgae", "exact", 64),
        (2, "none", "gae", "sampled", 64),
        (2, "dense", "vgae", "sampled", 16),
        (10, "sparse", "vgae", "exact", 64),
        (10, "sparse", "gae", "sampled", 16),
        (20, "dense", "gae", "exact", 32),
        (20, "none", "vgae", "sampled", 16),
    ],
)
def test_tensors_are_predicted_to_within_a_fifth(
    links: int, features: str, model: str, objective: str, latent_dim: int
) -> None:
    graph = graph_with(6_000, links, features)
    config = Config(model=model, objective=objective, latent_dim=latent_dim, iterations=2, eval_every=1, device="cpu")
    job = Job.of(graph, config)
    assert workload(job).held(objective) / peak_of_tensors(job) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(
    ("encoder", "features", "objective", "latent_dim", "mask_links"),
    [
        ("gcn:layers=4,dropout=0.3", "sparse", "exact", 16, 0.3),
        ("gcn:layers=3,residual=true,unit_rows=true", "dense", "exact", 32, 0.0),
        ("linear", "none", "exact", 64, 0.0),
        ("linear:dropout=0.3", "sparse", "sampled", 16, 0.0),
        ("normalized:unit_rows=true,start=-1", "sparse", "exact", 64, 0.3),
        ("normalized:dropout=0.3", "none", "sampled", 16, 0.3),
        ("mlp", "dense", "exact", 16, 0.3),
        ("mlp:layers=4,dropout=0.5", "sparse", "sampled", 16, 0.0),
        ("directed", "sparse", "exact", 16, 0.0),
        ("directed:dropout=0.3,unit_rows=true", "dense", "sampled", 16, 0.3),
    ],
)
def test_tensors_of_every_encoder_are_predicted_to_within_a_fifth(
    encoder: str, features: str, objective: str, latent_dim: int, mask_links: float
) -> None:
    part: Any = find("encoder", encoder)
    config = Config(
        encoder=part,
        objective=objective,
        latent_dim=latent_dim,
        hidden_dim=64,
        mask_links=mask_links,
        iterations=2,
        eval_every=1,
        device="cpu",
    )
    job = Job.of(graph_with(6_000, 5, features), config)
    assert workload(job).held(objective) / peak_of_tensors(job) == pytest.approx(1, abs=0.2)


def test_costs_cover_every_encoder() -> None:
    tested = test_tensors_of_every_encoder_are_predicted_to_within_a_fifth
    texts = [case[0].partition(":")[0] for case in tested.pytestmark[0].args[1]]  # type: ignore[attr-defined]
    own = {name for name, spec in registered("encoder").items() if spec.__module__.startswith("vgae.")}
    assert own == set(texts)


@pytest.mark.parametrize("family", ["encoder", "posterior", "prior", "decoder"])
def test_weights_of_all_parts_count(family: str) -> None:
    """What Adam keeps three times: of every part that can be combined with the paper's others."""
    graph, paper = stochastic_block_model(40, 2, feature_dim=7, seed=1), Config(latent_dim=4)
    for name in registered(family):
        given: Any = {family: find(family, name)}
        try:
            config = replace(paper, **given)
        except InputError:
            continue  # needs another part beside it
        model = config.composition.build(7, torch.Generator())
        found = Workload.of(graph, config.composition).num_weights
        assert found == sum(weight.numel() for weight in model.parameters()), name


def test_widths_that_the_parts_do_not_allow_are_not_proposed() -> None:
    """A decoder that needs an even number of dimensions, or two."""
    for name in registered("decoder"):
        given: Any = find("decoder", name)
        composition = Config(decoder=given, latent_dim=64).composition
        load = replace(work(100_000), composition=composition)
        words = message_of(lambda load=load: require_memory(load, ("sampled",), CPU, Memory(1e6)))  # type: ignore[misc]
        assert "only graphs of up to about" in words, name


def peaks(*job: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(Path(__file__).with_name("peaks.py")), *job]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_the_process_is_predicted_from_seven_tenths_to_one_and_a_half() -> None:
    cases: list[Any] = [
        (8_000, 5, "sparse", "exact", {}),
        (10_000, 20, "none", "sampled", {}),
        (20_000, 10, "sparse", "exact", {"encoder": "normalized:unit_rows=true", "mask_links": 0.3, "latent_dim": 64}),
        (60_000, 10, "dense", "sampled", {}),
        (80_000, 5, "dense", "sampled", {"encoder": "mlp:layers=3,dropout=0.5", "hidden_dim": 64, "mask_links": 0.5}),
    ]
    ratios = [float(line) for line in peaks(json.dumps(cases)).stdout.split()]
    assert len(ratios) == len(cases)
    assert all(0.7 < ratio < 1.5 for ratio in ratios), ratios


def test_what_is_kept_beside_training_counts() -> None:
    load = work(50_000).with_widths(256, 16)
    weights = 4 * load.num_weights
    best = replace(load, early_stopping=True)
    assert best.held("exact") - load.held("exact") == weights
    kept = replace(load, checkpoints=True)
    # Three copies of the weights train, as many are taken down, and as many are the bytes of the file.
    assert kept.memory_needed("exact").host > max(9 * weights, load.memory_needed("exact").host)
    on_gpu, eager = (load.memory_needed("exact", on_cpu=False, recorded=recorded) for recorded in (True, False))
    assert on_gpu.device - eager.device == pytest.approx(68e6, rel=0.05)  # as measured from 1,000 to 2,000,000 nodes
    assert on_gpu.host < load.memory_needed("exact").host


@pytest.mark.parametrize(
    ("num_nodes", "objective", "measured"),
    [
        (100_000, "exact", 0.13e9),
        (100_000, "sampled", 0.16e9),
        (300_000, "exact", 0.40e9),
        (300_000, "sampled", 0.49e9),
        (1_000_000, "exact", 1.32e9),
        (1_000_000, "sampled", 1.64e9),
        (10_000_000, "sampled", 16.4e9),
    ],
)
def test_memory_on_a_gpu_is_near_what_was_measured_there(
    num_nodes: int, objective: str, measured: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By benchmarks/scaling.py on an H200: ten links per node, 32 dense features, steps that are not recorded."""
    monkeypatch.setattr(workload_module, "HAS_TRITON", True)
    load = replace(
        work(1000), num_nodes=num_nodes, num_edges=10 * num_nodes, num_features=32, feature_entries=32 * num_nodes
    )
    load = replace(load, num_negatives=num_nodes)
    assert 0.9 < load.memory_needed(objective, on_cpu=False).device / measured < 1.5


@pytest.mark.parametrize(
    ("num_nodes", "expected"), [(100, "exact"), (5_000, "exact"), (50_000, "exact"), (10**6, "sampled")]
)
def test_auto_is_exact_while_affordable_and_says_what_it_would_cost(num_nodes: int, expected: str) -> None:
    choice = choose_objective(work(num_nodes), 200, CPU, lambda: RATES)
    assert choice.objective == expected
    assert "GB" in choice.reason
    if num_nodes >= 50_000:
        seconds = 200 * estimate(work(num_nodes), RATES, "exact", CPU).seconds
        assert f"about {duration(seconds)}" in choice.reason
        assert (seconds <= 900) == (expected == "exact")


def test_small_graphs_are_not_measured() -> None:
    def fail() -> Rates:
        raise AssertionError

    assert choose_objective(work(2_708), 200, CPU, fail).objective == "exact"


@pytest.mark.parametrize("precision", ["high", "highest"])
@pytest.mark.parametrize("pairs_per_second", [1e5, 1e6, 3e6, 1e9])
def test_plan_and_auto_ask_the_same_and_decide_the_same(
    precision: str, pairs_per_second: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By rates that are given: which objective is affordable then depends on the rate and on the iterations."""
    asked = []

    def given_rates(job: Job, load: Workload, objective: str) -> Rates:
        if objective == "exact":
            asked.append((job.device, job.config.precision, job.config.latent_dim, load.num_nodes, load.num_edges))
        return replace(RATES, pairs_per_second=pairs_per_second)

    monkeypatch.setattr(plan, "measure", given_rates)
    monkeypatch.setattr(cost, "SLOWEST", 1.0)  # so that graphs of this size are measured
    monkeypatch.setattr(cost, "AFFORDABLE_SECONDS", 0.5)
    graph = stochastic_block_model(400, 4, seed=1)
    write_graph(tmp_path / "graph.npz", graph)
    for iterations in (1, 3, 10):
        asked.clear()
        options = ["--iterations", str(iterations), "--precision", precision, "--latent-dim", "5"]
        done = CliRunner().invoke(app, ["plan", str(tmp_path / "graph.npz"), "--device", "cpu", "--json", *options])
        planned = json.loads(done.stdout)["auto"]
        config = Config(iterations=iterations, precision=precision, latent_dim=5, device="cpu")
        trained = train(Job.of(graph, config))
        assert asked[0] == asked[1]
        assert asked[0] == (CPU, precision, 5, 400, graph.num_edges)
        assert (
            trained.choice.objective
            == planned
            == ("exact" if iterations * 8e4 / pairs_per_second < 0.49 else "sampled")
        )


def test_what_cannot_fit_is_refused_with_what_would() -> None:
    load = work(100_000)
    exact, sampled = (memory_on(load, objective, CPU).host for objective in ("exact", "sampled"))
    between = Memory((exact + sampled) / 2)
    require_memory(load, ("exact",), CPU, between)
    require_memory(load, ("exact", "sampled"), CPU, between)
    with pytest.raises(InputError, match=r"sampled objective .* needs about .* the exact objective would fit"):
        require_memory(load, ("sampled",), CPU, between)
    with pytest.raises(InputError, match=r"sampled objective .* num_negatives [\d,]+ would fit"):
        require_memory(replace(load, factorised=False), ("sampled",), CPU, between)
    with pytest.raises(InputError, match="hidden_dim 16 and latent_dim 8 would fit"):
        require_memory(load, ("exact",), CPU, Memory(0.7 * exact))
    with pytest.raises(InputError, match="only graphs of up to about 1,000 nodes would fit"):
        require_memory(load, ("exact", "sampled"), CPU, Memory(1e6))


@pytest.mark.parametrize("num_negatives", [10, 10**5, 10**7])
@pytest.mark.parametrize("num_nodes", [10**5, 10**7])
@pytest.mark.parametrize("objective", ["exact", "sampled"])
@pytest.mark.parametrize("device", [CPU, GPU])
@pytest.mark.parametrize("gigabytes", [0.01, 0.1, 1.0, 10.0])
def test_what_is_said_to_fit_does(
    num_negatives: int, num_nodes: int, objective: str, device: torch.device, gigabytes: float
) -> None:
    load = replace(work(num_nodes), num_negatives=num_negatives)
    room = Memory(1e9 * gigabytes, 1e9 * gigabytes)
    if memory_on(load, objective, device).fits(room):
        require_memory(load, (objective,), device, room)
        return
    words = message_of(lambda: require_memory(load, (objective,), device, room))
    said = words.split("; ")[1]
    if said.startswith("the exact"):
        changed, objective = load, "exact"
    elif said.startswith("num_negatives"):
        changed = replace(load, num_negatives=int(said.split()[1].replace(",", "")))
    elif said.startswith("batch_size"):
        changed = replace(load, batch=BatchOptions(int(said.split()[1].replace(",", ""))))
    elif said.startswith("hidden_dim"):
        _, hidden_dim, _, _, latent_dim, *_ = said.split()
        changed = load.with_widths(int(hidden_dim), int(latent_dim))
    else:
        assert said.startswith("even with hidden_dim 1 and latent_dim 1 only graphs of up to about")
        return
    assert memory_on(changed, objective, device).fits(room), words


def test_the_memory_of_a_gpu_and_that_of_its_host_both_count() -> None:
    load, needed = work(100_000), memory_on(work(100_000), "exact", GPU)
    require_memory(load, ("exact",), GPU, needed)
    with pytest.raises(InputError, match="that are free on cuda:0; "):
        require_memory(load, ("exact",), GPU, replace(needed, device=needed.device / 2))
    with pytest.raises(InputError, match="that are free to this process; "):
        require_memory(load, ("exact",), GPU, replace(needed, host=needed.host / 2))


def without_nodes_features(objective: str) -> Callable[[], object]:
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], num_nodes=30_000_000)
    model = vgae.VGAE(objective=objective, iterations=1, device="cpu")  # which loads what it needs
    return lambda: model.fit(graph)


@pytest.mark.parametrize("objective", ["auto", "exact", "sampled"])
def test_a_huge_training_is_refused_before_anything_is_allocated(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = without_nodes_features(objective)
    monkeypatch.setattr(cost, "bytes_free", lambda: 8e9)
    tracemalloc.start()
    try:
        words = message_of(fit)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "needs about" in words
    assert "more than the 8.0 GB that are free to this process; hidden_dim " in words
    assert taken < 1e6


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_limits_of_the_process_count() -> None:
    words = peaks("limit", "sampled").stderr
    said = (
        r"InputError: Training with the sampled objective on this graph needs about 0\.1 GB, more than the 0\.[01] GB"
    )
    assert re.search(rf"{said} that are free to this process; batch_size [\d,]+ would fit", words), words


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_auto_takes_parts_of_the_nodes_where_all_of_them_do_not_fit() -> None:
    size, reason = peaks("limit", "auto").stdout.strip().split("|")
    assert 1000 <= int(size) <= 32_500
    said = rf"by steps of {size} nodes: steps over all nodes need about 0\.\d+ GB, and 0\.\d+ GB are free"
    assert re.fullmatch(said, reason), reason


def test_work_for_a_gpu_goes_to_that_one() -> None:
    entered = working_on(torch.device("cuda", 1))
    assert isinstance(entered, torch.cuda.device)
    assert entered.idx == 1
    with working_on(CPU):
        pass


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0123, "12.3 ms"), (45.2, "45 s"), (600, "10 minutes"), (7200, "2.0 hours")]
)
def test_durations_are_told_in_the_unit_that_suits_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words
