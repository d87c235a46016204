"""The objectives of directed graphs against the loss written out over the dense matrix of labels."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from vgae.graph.graph import Graph
from vgae.likelihood.positive_pairs import Observed
from vgae.model.autoencoder import AutoEncoder
from vgae.model.spec import find
from vgae.objective.base import LossOptions, Objective
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import WEIGHTINGS, Weighting
from vgae.train.config import Config
from vgae.train.job import Job

SIZE = 30
KINDS = [Observed(diagonal, soft) for diagonal, soft in product([True, False], repeat=2)]
DECODERS = ["inner_product", "source_target", "gravity"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    generator = np.random.default_rng(4)
    rows = np.unique(generator.integers(SIZE, size=(120, 2)), axis=0)
    rows = rows[rows[:, 0] != rows[:, 1]]
    made = Graph.from_edges(rows, num_nodes=SIZE, directed=True, weights=generator.uniform(0.05, 0.5, len(rows)))
    assert made.directions is not None
    assert set(made.directions.tolist()) == {-1, 0, 1}
    return made


def config_of(decoder: str, observed: Observed | None = None, weighting: str = "paper") -> Config:
    observed = observed or Observed()
    return Config(
        model="gae",
        hidden_dim=4,
        latent_dim=4,
        decoder=find("decoder", decoder),  # type: ignore[arg-type]
        weighting=weighting,
        diagonal=observed.diagonal,
        soft_labels=observed.soft,
    )


def model_of(decoder: str) -> AutoEncoder:
    return config_of(decoder).composition.build(SIZE, torch.Generator().manual_seed(0)).double()


def embeddings() -> Tensor:
    return torch.randn(SIZE, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()


def dense_labels(graph: Graph, observed: Observed, symmetric: bool) -> Tensor:
    """A, with weights where labels are soft: what was read for each ordered pair, or for both directions together."""
    labels = np.zeros((SIZE, SIZE))
    assert graph.weights is not None
    for arc, (i, j) in enumerate(graph.arcs.tolist()):
        labels[i, j] = graph.arc_weights[arc] if observed.soft else 1.0  # type: ignore[index]
    if symmetric:
        labels = labels + labels.T if observed.soft else np.maximum(labels, labels.T)
    return torch.tensor(labels)


def dense_loss(graph: Graph, model: AutoEncoder, z: Tensor, observed: Observed, weighting: str) -> Tensor:
    """The cross entropy of every ordered pair, ones counted w times; by the paper's formulas with S = the sum of A."""
    labels = dense_labels(graph, observed, model.decoder.symmetric)
    num_ones = float(labels.sum())
    with_loops = labels + torch.eye(SIZE, dtype=torch.float64)
    rows = torch.arange(SIZE)
    logits = model.decoder.logits(z, torch.cartesian_prod(rows, rows)).view(SIZE, SIZE)
    w, scale = (SIZE**2 - num_ones) / num_ones, 0.5 / (SIZE**2 - num_ones)
    if weighting == "elbo":
        w, scale = 1.0, 1.0
    loss = binary_cross_entropy_with_logits(
        logits, with_loops, pos_weight=torch.tensor(w, dtype=torch.float64), reduction="none"
    )
    seen = loss.sum() if observed.diagonal else loss.sum() - loss.diagonal().sum()
    return scale * seen


def scaled(objective: Objective, model: AutoEncoder, z: Tensor, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    value = objective.reconstruction(model.decoder, z, generator, value=True)
    return objective.weighting.reconstruction_scale * value


@pytest.mark.parametrize("observed", KINDS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("decoder", DECODERS[:2])
def test_exact_objective_is_the_dense_one(graph: Graph, decoder: str, weighting: str, observed: Observed) -> None:
    model, z, job = model_of(decoder), embeddings(), Job(graph, config_of(decoder, observed, weighting))
    objective = ExactObjective(
        job.graph,
        model,
        job.config.weighting_for(job.labels),
        "cpu",
        options=LossOptions(observed),
        precision="highest",
    )
    found, expected = scaled(objective, model, z), dense_loss(graph, model, z, observed, weighting)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(loss, z)[0] for loss in (found, expected)))


@pytest.mark.parametrize("observed", [Observed(), Observed(diagonal=True, soft=True)])
@pytest.mark.parametrize("decoder", DECODERS)
def test_sampled_objective_is_unbiased_for_the_dense_one(graph: Graph, decoder: str, observed: Observed) -> None:
    model, z, job = model_of(decoder), embeddings(), Job(graph, config_of(decoder, observed))
    weighting = job.config.weighting_for(job.labels)
    objective = SampledObjective(graph, model, weighting, "cpu", options=LossOptions(observed), num_negatives=400)
    with torch.no_grad():
        draws = torch.stack([scaled(objective, model, z, seed) for seed in range(400)])
        expected = dense_loss(graph, model, z, observed, "paper")
    assert abs(draws.mean() - expected) < 4 * draws.std() / 20


@pytest.mark.parametrize(("num", "draws"), [(1, 60_000), (7, 9000), (100, 1000), (200_000, 1)])
def test_zeros_are_all_pairs_that_are_no_arc_and_each_as_likely(graph: Graph, num: int, draws: int) -> None:
    objective = SampledObjective(graph, model_of("source_target"), Weighting(1, 1, 1), "cpu", num_negatives=num)
    generator = torch.Generator().manual_seed(0)
    counts = np.zeros((SIZE, SIZE))
    for _ in range(draws):
        zeros = objective.sample_zeros(generator)
        np.add.at(counts, tuple(zeros.numpy().T), 1)
    is_zero = (graph.directed_adjacency.toarray() == 0) & ~np.eye(SIZE, dtype=bool)
    np.testing.assert_array_equal(counts > 0, is_zero)
    expected = num * draws / is_zero.sum()
    chi_square = ((counts[is_zero] - expected) ** 2 / expected).sum()
    freedom = is_zero.sum() - 1
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom)  # less where one of each part of the zeros is drawn
    rows, shares = np.bincount(zeros[:, 0].numpy(), minlength=SIZE), num * is_zero.sum(axis=1) / is_zero.sum()
    assert (np.abs(rows - shares) < 2).all()  # no row has more than its share


def test_a_symmetric_decoder_has_the_labels_of_the_undirected_graph(graph: Graph) -> None:
    blind, told = (Job(graph, config_of(decoder)) for decoder in ("inner_product", "source_target"))
    assert blind.labels.directions is None
    assert blind.cannot_tell is not None
    assert "the decoder inner_product is symmetric: it cannot tell which way a link goes" in blind.cannot_tell
    assert told.labels is graph
    assert told.cannot_tell is None
    assert Job(graph.without_directions(), config_of("inner_product")).cannot_tell is None
    ones = {job.config.loss_options.observed.num_ones(job.labels) for job in (blind, told)}
    assert ones == {2 * graph.num_edges, graph.num_arcs}
