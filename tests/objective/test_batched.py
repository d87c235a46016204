"""Steps over a part of the graph: their expectation is the exact objective, and with one part they are it."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs, Layout
from vgae.model.neighbourhoods import Neighbourhoods
from vgae.objective.base import Objective
from vgae.objective.batched import BatchedObjective
from vgae.objective.exact import ExactObjective
from vgae.objective.partition import BatchOptions, Partition
from vgae.objective.weighting import LossTerms
from vgae.ops.zeros import sample_zeros
from vgae.train.config import Config

CASES: dict[str, dict[str, Any]] = {
    "gae": {"model": "gae"},
    "vgae, no features": {"features": False},
    "biases": {"decoder": "scaled:bias=-1,node_bias=true", "encoder": "linear"},
    "directions": {"decoder": "source_target", "encoder": "directed"},
    "no diagonal": {"diagonal": False, "encoder": "normalized"},
    "soft labels": {"soft_labels": True, "encoder": "mlp"},
    "true bound": {"weighting": "elbo", "encoder": "gcn:layers=3,residual=true"},
    "sphere": {"posterior": "power_spherical", "decoder": "scaled:scale=5"},
    "mixture": {"prior": "vamp:components=3"},
}


@pytest.fixture
def graph() -> Graph:
    draws = np.random.default_rng(0)
    edges = np.unique(np.sort(draws.integers(8, size=(14, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    features = draws.standard_normal((8, 5), dtype=np.float32)
    weights = draws.uniform(0.1, 1, len(edges))
    return Graph.from_edges(edges, num_nodes=8, features=features, weights=weights, directed=True)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Made:
    """Both objectives of a configuration on a graph, for one model."""

    def __init__(self, graph: Graph, size: int, options: dict[str, Any], **batch: Any) -> None:
        self.config = Config(hidden_dim=4, latent_dim=4, **options)
        decoder = self.config.value_of("decoder").build(4, generator())
        labels, seen = graph.as_scored(symmetric=decoder.symmetric), self.config.view(graph)
        self.inputs = EncoderInputs.from_graph(seen)
        self.model: AutoEncoder = self.config.composition.build(self.inputs.input_dim, generator(3))
        given = labels, self.model, self.config.weighting_for(labels)
        self.exact = ExactObjective(*given, "cpu", options=self.config.loss_options)
        around = Neighbourhoods(Layout(seen, "cpu"), self.config.value_of("encoder"))
        self.batched = BatchedObjective(*given, around, BatchOptions(size, **batch), self.config.loss_options)

    def gradients(self, terms: LossTerms) -> dict[str, Tensor]:
        """Of the loss in all weights, and its two terms."""
        self.model.zero_grad()
        terms.total.backward()  # type: ignore[no-untyped-call]
        of_weights = {name: each.grad for name, each in self.model.named_parameters() if each.grad is not None}
        return {"R": terms.reconstruction.detach(), "KL": terms.kl.detach()} | {
            name: gradient.clone() for name, gradient in of_weights.items()
        }

    def of(self, objective: Objective, seed: int = 0) -> dict[str, Tensor]:
        return self.gradients(objective(self.model, self.inputs, generator(seed)))

    def by(self, nodes: Any, seed: int = 0) -> dict[str, Tensor]:
        draws = generator(seed)
        part = self.batched.part(np.array(nodes), draws)
        return self.gradients(self.batched.by(part, self.model, self.inputs, draws))


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], **tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        scale = float(values.abs().max()) or 1.0
        torch.testing.assert_close(found[name] / scale, values / scale, rtol=0, atol=tolerance.get("atol", 3e-5))


def mean_of(found: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([each[name].double() for each in found]).mean(dim=0).float() for name in found[0]}


@pytest.mark.parametrize("case", CASES)
def test_a_part_of_all_nodes_is_the_exact_objective(graph: Graph, case: str) -> None:
    """The same draws of the posterior included: nothing else is drawn."""
    made = Made(graph, 8, CASES[case])
    assert_same(made.of(made.batched), made.of(made.exact))


@pytest.mark.parametrize("case", ["gae", "biases", "directions", "no diagonal", "soft labels", "true bound"])
def test_the_mean_over_all_parts_is_the_exact_objective(graph: Graph, case: str) -> None:
    """Over all 70 choices of four nodes, each as likely as the others to be a part of a random partition."""
    posterior = {} if CASES[case].get("model") == "gae" else {"posterior": "delta"}
    made = Made(graph, 4, CASES[case] | posterior, ones=100)  # all ones of a part's rows
    assert made.batched.partition.num_parts == 2
    assert_same(mean_of([made.by(nodes) for nodes in combinations(range(8), 4)]), made.of(made.exact))


def test_the_mean_over_a_partition_is_the_whole_of_what_is_a_sum_over_nodes(graph: Graph) -> None:
    """The KL, by parts of three sizes of which no two need be the same."""
    made = Made(graph, 3, {"beta": 2.0})
    assert [end - start for start, end in pairwise(made.batched.partition.ends)] == [2, 3, 3]
    draws = generator()
    parts = [made.gradients(made.batched(made.model, made.inputs, draws)) for _ in range(3)]
    torch.testing.assert_close(mean_of(parts)["KL"], made.of(made.exact)["KL"])


def test_drawn_ones_stand_for_all_ones_of_a_part(graph: Graph) -> None:
    """Each is as likely as the others, and what they count for adds up to all of them."""
    made = Made(graph, 4, {"model": "gae"})
    nodes, draws = np.array([0, 2, 3, 5]), generator()
    linked = graph.adjacency[nodes].tocoo()
    counts = dict.fromkeys(zip(linked.row.tolist(), linked.col.tolist(), strict=True), 0)
    for _ in range(1000):
        part = made.batched.part(nodes, draws)
        assert len(part.ones) == 4 < linked.nnz
        assert float(part.weights.sum()) == pytest.approx(2 * linked.nnz)  # in one of two parts
        for source, target in part.ones.tolist():
            counts[source, int(part.targets[target])] += 1
    expected = 4000 / linked.nnz
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
    assert sum(counts.values()) == 4000


@pytest.mark.parametrize("control_variate", [True, False])
def test_drawn_zeros_stand_for_all_zeros_of_a_part(graph: Graph, control_variate: bool) -> None:
    options: dict[str, Any] = {"model": "gae", "decoder": "scaled:bias=0.5"}
    made = Made(graph, 6, options, num_negatives=40, control_variate=control_variate)
    everything = Made(graph, 6, options)
    assert everything.batched.swept
    assert made.batched.swept is False
    assert (made.batched.variate is not None) == control_variate
    nodes = [0, 1, 3, 4, 6, 7]
    z = made.model.encode(made.inputs).mean.detach()[nodes]
    part, draws, decoder = made.batched.part(np.array(nodes), generator()), generator(), made.model.decoder
    expected = everything.batched._zeros(everything.model.decoder, z, part, draws, value=True).detach()
    values = torch.stack([made.batched._zeros(decoder, z, part, draws, value=True).detach() for _ in range(400)])
    assert float(values.std()) > 0
    assert abs(float(values.mean() - expected)) < 5 * float(values.std()) / 20


def test_every_zero_of_a_part_is_as_likely(graph: Graph) -> None:
    made = Made(graph, 6, {"model": "gae"})
    part = made.batched.part(np.array([0, 1, 2, 3, 5, 7]), generator())
    nodes, inside = [0, 1, 2, 3, 5, 7], part.inside
    dense = np.zeros((6, 6), dtype=bool)
    dense[inside.rows.numpy(), inside.columns.numpy()] = True
    assert (dense == (graph.adjacency.toarray()[np.ix_(nodes, nodes)] + np.eye(6) > 0)).all()
    draws, counts = generator(), np.zeros((6, 6))
    for _ in range(3000):
        np.add.at(counts, tuple(sample_zeros(inside, 5, draws).numpy().T), 1)
    num_zeros = inside.num_zeros
    assert num_zeros == (~dense).sum()
    assert counts[dense].sum() == 0
    expected = 15_000 / num_zeros
    assert (np.abs(counts[~dense] - expected) < 5 * expected**0.5).all()


def test_a_part_without_zeros_adds_none() -> None:
    complete = Graph.from_edges([[i, j] for i in range(4) for j in range(i)], num_nodes=4)
    for batch in ({"num_negatives": 3, "control_variate": False}, {"num_negatives": 3}, {}):
        made = Made(complete, 2, {"model": "gae", "weighting": "elbo"}, **batch)
        nodes = np.array([0, 1])
        part = made.batched.part(nodes, generator())
        logits = made.model.encode(made.inputs).mean
        ones = torch.nn.functional.softplus(-(logits @ logits.T))[:2]
        if len(part.ones) == 6:
            torch.testing.assert_close(made.by(nodes)["R"], 2 * ones.sum().detach())
        assert torch.isfinite(made.by(nodes)["R"])


def test_a_partition_has_every_node_once_and_is_another_one_in_each_epoch() -> None:
    for num_nodes, size in ((10, 3), (10, 10), (7, 2), (2, 2), (1000, 301)):
        partition, draws = Partition(num_nodes, size), generator()
        epochs = [[partition.following(draws) for _ in range(partition.num_parts)] for _ in range(3)]
        for parts in epochs:
            assert sorted(np.concatenate(parts).tolist()) == list(range(num_nodes))
            assert {len(part) for part in parts} <= {num_nodes // len(parts), -(-num_nodes // len(parts))}
            assert max(len(part) for part in parts) <= size
            assert all((np.diff(part) > 0).all() for part in parts)
        if num_nodes == 1000:
            assert len({parts[0].tobytes() for parts in epochs}) == 3
        together = sum(len(part) * (len(part) - 1) for part in epochs[0])
        assert partition.times_pair * together == pytest.approx(partition.times * num_nodes * (num_nodes - 1))


def test_a_partition_is_continued_from_its_state() -> None:
    first, draws = Partition(50, 8), generator()
    for _ in range(10):
        first.following(draws)
    other, again = Partition(50, 8), generator()
    again.set_state(draws.get_state())
    other.state.copy_(first.state)
    for _ in range(20):
        assert first.following(draws).tolist() == other.following(again).tolist()


def test_free_bits_and_warmth_count_as_in_a_whole_step(graph: Graph) -> None:
    made = Made(graph, 8, {"free_bits": 0.5})
    warmth = torch.tensor(0.25)
    found, expected = (
        made.gradients(each(made.model, made.inputs, generator(), warmth=warmth)) for each in (made.batched, made.exact)
    )
    assert_same(found, expected)
