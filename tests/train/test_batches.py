"""Trainings whose steps are over a part of the graph, as a user has them: they learn, and what cannot be is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vgae
from command import run_vgae
from helpers import message_of
from vgae.graph.graph import Graph
from vgae.model.encoders import GCN, EncoderSpec
from vgae.model.encoders.base import Encoder
from vgae.model.inputs import Layout
from vgae.model.neighbourhoods import Neighbourhoods
from vgae.model.priors import Laplacian
from vgae.objective.batch_cost import BatchCost
from vgae.objective.cost import Rates, estimate, memory_on
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.loop import Trained, train
from vgae.train.plan import plan_training

CONFIG = Config(iterations=100, eval_every=25, hidden_dim=16, latent_dim=8, device="cpu", batch_size=50)


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    graph = vgae.stochastic_block_model(300, 4, degree_within=14, degree_between=2, feature_dim=40, seed=1)
    return vgae.split_links(graph, seed=0)


def auc_of(trained: Trained, split: vgae.LinkSplit) -> float:
    links, non_links = trained.logits(split.test.links), trained.logits(split.test.non_links)
    return float((links[:, None] > non_links).mean())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "gae", "features": False, "iterations": 200},
        {"encoder": "normalized", "num_negatives": 200},
        {"decoder": "mlp:width=8", "learning_rate": 0.03, "num_negatives": 500},
        {"prior": "vamp:components=5", "warm_up": 10, "early_stopping": 100},
    ],
)
def test_steps_over_parts_learn_what_steps_over_all_nodes_do(split: vgae.LinkSplit, options: dict[str, Any]) -> None:
    config = replace(CONFIG, **options)
    found, whole = (
        train(Job.of(split.train, replace(config, batch_size=size), split.val)) for size in (config.batch_size, None)
    )
    assert found.choice.objective == "sampled"
    assert auc_of(found, split) > auc_of(whole, split) - 0.04
    assert auc_of(found, split) > 0.65
    assert found.history[-1].loss == pytest.approx(whole.history[-1].loss, rel=0.25)


def test_a_part_of_all_nodes_trains_the_same_model(split: vgae.LinkSplit) -> None:
    """Step by step the same numbers but for rounding, the draws of the posterior included."""
    short = replace(CONFIG, iterations=10, eval_every=1)
    found = train(Job.of(split.train, replace(short, batch_size=300), split.val))
    whole = train(Job.of(split.train, replace(short, batch_size=None, objective="exact"), split.val))
    for own, other in zip(found.history, whole.history, strict=True):
        assert own.loss == pytest.approx(other.loss, rel=1e-4)
    torch.testing.assert_close(found.embeddings, whole.embeddings, rtol=1e-2, atol=1e-3)


def test_features_in_a_file_train_the_same_model(split: vgae.LinkSplit, tmp_path: Path) -> None:
    features: Any = split.train.features
    dense = np.ascontiguousarray(features.toarray() if hasattr(features, "toarray") else features)
    np.save(tmp_path / "features.npy", dense)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    for encoder in ("gcn:unit_rows=true", "linear", "normalized"):
        changes: dict[str, Any] = {"iterations": 5, "encoder": encoder}
        config = replace(CONFIG, **changes)
        found = [
            train(Job.of(Graph.from_edges(split.train.edges, num_nodes=300, features=each), config)).embeddings
            for each in (dense, mapped)
        ]
        assert torch.equal(*found)


class _Far(GCN):
    """An encoder that does not say how far it looks."""

    name = "far"

    @property
    def reach(self) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size: a whole number from 2 to 2147483647 is needed, got 0."),
        ({"batch_size": -5}, "batch_size: a whole number from 2 to 2147483647 is needed, got -5."),
        ({"batch_size": 2.5}, "batch_size: a whole number from 2 to 2147483647 is needed, got 2.5."),
        ({"batch_size": 301}, "batch_size: 301 is more than the number of nodes, 300; leave it out for steps over all"),
        ({"objective": "exact"}, "batch_size: the exact objective sums over all pairs of nodes in every step; use"),
        ({"mask_links": 0.5}, "batch_size: links are hidden (mask_links) from all nodes at once; leave out one of the"),
        ({"prior": "laplacian"}, "batch_size: under the prior laplacian nodes depend on each other, so that it needs"),
        ({"encoder": _Far()}, "batch_size: the encoder far does not say how far it looks (reach), and sees all nodes"),
    ],
)
def test_what_parts_cannot_have_is_refused(split: vgae.LinkSplit, options: dict[str, Any], words: str) -> None:
    given = {"batch_size": 50, "iterations": 2, "device": "cpu"} | options
    assert message_of(lambda: vgae.VGAE(**given).fit(split.train)).startswith(words)


def test_an_encoder_of_somebody_else_does_not_say_how_far_it_looks() -> None:
    class Own(EncoderSpec):
        def build(self, *_: Any) -> Encoder:
            raise NotImplementedError

    assert Own().reach is None
    assert Own().fixed_hops == 0


@pytest.mark.parametrize("size", ["0", "-3", "3000", "many"])
@pytest.mark.parametrize("command", ["train", "plan"])
def test_the_command_refuses_a_wrong_size_in_one_sentence(command: str, size: str, tmp_path: Path) -> None:
    out = ["--out", "run"] if command == "train" else []
    done = run_vgae(command, "cora", "--batch-size", size, *out, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "batch" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_the_command_plans_and_trains_by_parts(tmp_path: Path) -> None:
    planned = json.loads(run_vgae("plan", "cora", "--batch-size", "200", "--json", cwd=tmp_path).stdout)
    assert planned["auto"] == "sampled"
    assert "exact" not in planned
    assert planned["sampled"]["batch_size"] == 200
    made = run_vgae("train", "cora", "--batch-size", "500", "--iterations", "5", "--out", "run", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "objective: sampled (by steps of 500 nodes)" in made.stderr
    assert vgae.load(tmp_path / "run").transform().shape == (2708, 16)


# ---------------------------------------------------------------------------------------------------------- the plan


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        (Config(), [None, None, 1500]),
        (Config(objective="sampled"), [None, None, 1500]),
        (Config(objective="exact"), [None, None]),
        (Config(mask_links=0.1), [None, None]),
        (Config(prior=Laplacian()), [None, None]),
        (CONFIG, [50]),
    ],
)
def test_a_plan_has_steps_over_parts_beside_whole_ones_where_there_are_such(
    config: Config, sizes: list[int | None]
) -> None:
    graph = vgae.stochastic_block_model(15_000, 3, degree_within=3, degree_between=1)
    costs = plan_training(Job(graph, replace(config, device="cpu"))).costs
    assert [cost.batch_size for cost in costs] == sizes


def test_smaller_parts_take_less_time_and_memory() -> None:
    """Of more nodes than whole steps take in one pass, whose draws are not held."""
    graph = vgae.stochastic_block_model(80_000, 10, degree_within=8, degree_between=2, feature_dim=20, seed=0)
    config = Config(objective="sampled", device="cpu")
    rates = Rates(pairs_per_second=1e9, numbers_per_second=1e9, seconds_per_step=1e-3)
    costs = [
        estimate(workload(Job(graph, replace(config, batch_size=size))), rates, "sampled", torch.device("cpu"))
        for size in (400, 4000, 32_000, None)
    ]
    for found in ([cost.memory.largest for cost in costs], [cost.seconds for cost in costs]):
        assert found[0] < found[1] < found[2]
        assert found[0] < found[3]  # that of all nodes; parts of which each reaches all are no cheaper
    assert len(plan_training(Job(graph, replace(config, batch_size=400))).costs) == 1


@pytest.mark.parametrize(
    "options", [{}, {"features": False}, {"encoder": "mlp:hops=1"}, {"encoder": "linear"}, {"encoder": "normalized"}]
)
def test_a_plan_knows_how_far_a_step_reaches(options: dict[str, Any]) -> None:
    """As many nodes as a step sees, within a fifth."""
    graph = vgae.stochastic_block_model(4000, 4, degree_within=5, degree_between=1, feature_dim=10, seed=0)
    job = Job.of(graph, replace(CONFIG, **options))
    work, around = workload(job), Neighbourhoods(Layout(job.graph, "cpu"), job.config.value_of("encoder"))
    cost = BatchCost.of(work)
    assert cost is not None
    assert memory_on(work, "sampled", job.device) == cost.memory()
    assert cost.hops_done == around.hops_done
    nodes = np.random.default_rng(0).choice(4000, 100, replace=False)
    seen = around.around(nodes).propagation
    assert cost.reached[0] == 100
    assert cost.reached[-1] == pytest.approx(seen.shape[0], rel=0.2)
    assert len(cost.reached) == 1 + around.hops
    assert BatchCost.of(replace(work, batch=None)) is None
