"""Features that are propagated once, before training: the same outputs, gradients and trainings by another order."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from encoder_equations import HEADS, generator, spec_of

from vgae.graph.graph import Graph
from vgae.model.inputs import EncoderInputs, Layout
from vgae.model.prepared import PreparedInputs, inputs_for
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.loop import train
from vgae.train.start import Generators, first_step

SPECS = ["gcn", "gcn:layers=4,residual=true", "gcn:unit_rows=true", "linear", "linear:hops=3,unit_rows=true"]


def graph_of(kind: str) -> Graph:
    """A graph of 60 nodes, one of them without links and one without features."""
    draws = np.random.default_rng(3)
    edges = draws.integers(59, size=(150, 2))
    features: Any = draws.standard_normal((60, 7)).astype(np.float32)
    features[4] = 0
    if kind == "words":
        features = sp.csr_array(np.where(draws.random((60, 40)) < 0.2, 1, 0).astype(np.float32))
    elif kind == "categories":
        features = sp.csr_array(np.eye(9, dtype=np.float32)[draws.integers(9, size=60)])
    return Graph.from_edges(edges, num_nodes=60, features=None if kind == "none" else features)


@pytest.mark.parametrize("kind", ["dense", "words", "categories"])
@pytest.mark.parametrize("text", SPECS)
def test_features_that_are_propagated_once_have_the_outputs_and_gradients_of_those_that_are_not(
    text: str, kind: str
) -> None:
    graph, spec = graph_of(kind), spec_of(text)
    inputs = EncoderInputs.from_graph(graph)
    encoder = spec.build(inputs.input_dim, 5, HEADS, generator())
    found: list[list[torch.Tensor]] = []
    for seen in (inputs, *(inputs_for(spec, Layout(graph, "cpu"), hops) for hops in range(spec.fixed_hops + 1))):
        encoder.zero_grad()
        outputs = list(encoder(seen).values())
        torch.cat([values.square() for values in outputs], dim=1).sum().backward()  # type: ignore[no-untyped-call]
        found.append([*outputs, *(torch.clone(w.grad) for w in encoder.parameters() if w.grad is not None)])
    assert len(found) == spec.fixed_hops + 2
    for others in found[1:]:
        for other, values in zip(others, found[0], strict=True):
            torch.testing.assert_close(other, values, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("kind", "options", "hops"),
    [
        ("dense", {}, 1),
        ("dense", {"encoder": "linear:hops=3"}, 3),
        ("dense", {"mask_links": 0.3}, 0),
        ("dense", {"encoder": "gcn:dropout=0.2"}, 0),
        ("dense", {"encoder": "normalized"}, 0),
        ("categories", {}, 1),  # one entry in a row, and after a hop as many as there are neighbours
        ("words", {}, 0),  # which a hop would fill
        ("none", {}, 0),
    ],
)
def test_they_are_propagated_once_where_steps_move_fewer_numbers(kind: str, options: dict[str, Any], hops: int) -> None:
    job = Job.of(graph_of(kind), Config(latent_dim=4, hidden_dim=8, device="cpu", objective="exact", **options))
    assert workload(job).hops_done == hops
    inputs = first_step(job, "exact", Generators.of(0, job.device)).inputs
    assert inputs.hops_done == hops
    assert isinstance(inputs, PreparedInputs) == (hops > 0)


@pytest.mark.parametrize("objective", ["exact", "sampled"])
def test_a_training_is_the_same_with_either_order(objective: str) -> None:
    """Against steps by hand with the plain inputs; and the graph is embedded alike as one that is new to the model."""
    graph = graph_of("dense")
    config = Config(latent_dim=4, hidden_dim=8, iterations=30, eval_every=30, device="cpu", objective=objective)
    job = Job.of(graph, config)
    trained = train(job)
    step = first_step(job, objective, Generators.of(config.seed, job.device))
    step.inputs = EncoderInputs.from_graph(graph)
    for iteration in range(1, config.iterations + 1):
        step(iteration, value=False)
    with torch.no_grad():
        by_hand = step.model.encode(step.inputs).mean
        again = trained.model.encode(EncoderInputs.from_graph(graph)).mean
    torch.testing.assert_close(trained.embeddings, by_hand, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(trained.embeddings, again, rtol=1e-5, atol=1e-6)


def test_a_plan_counts_the_products_that_are_left() -> None:
    """Of two hops one, so that half of what Ã moves is gone; a sparse X has the entries of ÃX."""
    for kind in ("dense", "categories"):
        work = workload(Job.of(graph_of(kind), Config(latent_dim=4, hidden_dim=8, device="cpu")))
        every_step = replace(work, mask_links=True)  # whose features are propagated in every step
        saved = 2 * work.entries * 8 - 2 * 8 * (
            work.feature_entries * (work.entries / 60 - 1) if kind != "dense" else 0
        )
        assert every_step.numbers_moved("exact") - work.numbers_moved("exact") == pytest.approx(saved)
