"""`model.clusters()`: the components of a mixture prior, or k-means, on a model's own graph and on another one."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans as ReferenceKMeans
from sklearn.metrics import adjusted_rand_score

import vgae
from helpers import message_of
from vgae.graph.graph import Graph

MIXED: dict[str, Any] = {
    "prior": "mixture:components=4",
    "latent_dim": 16,
    "warm_up": 60,
    "iterations": 80,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Four groups that everything tells: links and words."""
    return vgae.stochastic_block_model(400, 4, degree_within=10, degree_between=1, feature_dim=80, seed=3)


@pytest.fixture(scope="module")
def model(graph: Graph) -> vgae.VGAE:
    return vgae.VGAE(**MIXED).fit(graph)


def test_a_mixture_prior_finds_the_blocks_of_a_block_model(model: vgae.VGAE, graph: Graph) -> None:
    found = model.clusters()
    assert found.method == "mixture"
    assert adjusted_rand_score(graph.labels, found.assignment) > 0.95
    scores = found.scores()
    assert scores.ari == pytest.approx(adjusted_rand_score(graph.labels, found.assignment))
    assert (scores.num_nodes, scores.num_classes) == (400, 4)


def test_clusters_are_the_largest_responsibilities(model: vgae.VGAE) -> None:
    found = model.clusters()
    prior: Any = model.model_.prior
    expected = prior.responsibilities(torch.from_numpy(model.transform())).detach().numpy()
    np.testing.assert_array_equal(found.responsibilities, expected)
    np.testing.assert_array_equal(found.assignment, expected.argmax(axis=1))
    np.testing.assert_array_equal(found.probabilities, expected.max(axis=1))
    np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1, rtol=1e-5)
    assert found.sizes.sum() == len(found) == 400
    assert sorted(np.concatenate([found.members(k) for k in range(4)]).tolist()) == list(range(400))
    assert repr(found) == "Clusters(4 clusters of 400 nodes, by mixture)"


def test_k_clusters_of_any_model_are_those_of_k_means(graph: Graph) -> None:
    model = vgae.GAE(iterations=60, device="cpu").fit(graph)
    found = model.clusters(k=4)
    assert found.method == "kmeans"
    theirs = ReferenceKMeans(4, n_init=10, random_state=0).fit_predict(model.transform().astype(np.float64))
    assert adjusted_rand_score(theirs, found.assignment) > 0.98
    assert set(np.unique(found.responsibilities).tolist()) == {0.0, 1.0}
    np.testing.assert_array_equal(found.assignment, model.clusters(k=4).assignment)
    baseline = vgae.Baseline("sc").fit(graph)
    points, groups = baseline.transform().astype(np.float64), baseline.clusters(k=4).assignment
    inertia = sum(float(((points[groups == k] - points[groups == k].mean(axis=0)) ** 2).sum()) for k in range(4))
    assert inertia < 1.05 * ReferenceKMeans(4, n_init=10, random_state=0).fit(points).inertia_


def test_new_nodes_are_in_the_clusters_that_were_learned(model: vgae.VGAE, graph: Graph) -> None:
    other = vgae.stochastic_block_model(200, 4, degree_within=10, degree_between=1, feature_dim=80, seed=9)
    found = model.on(other).clusters()
    assert len(found) == 200
    assert found.scores().ari > 0.9
    own, its = model.clusters(), found
    for block in range(4):  # block b of the one graph has the words of block b of the other
        groups = [
            np.bincount(each.assignment[np.asarray(labels) == block]).argmax()
            for each, labels in ((own, graph.labels), (its, other.labels))
        ]
        assert groups[0] == groups[1]


def test_tables_have_a_row_for_each_node(graph: Graph) -> None:
    links = [(f"n{i}", f"n{j}") for i, j in graph.edges.tolist()]
    named = Graph.from_edges(links, node_ids=[f"n{k}" for k in range(400)])
    model = vgae.VGAE(**MIXED | {"iterations": 62}).fit(named)
    found = model.clusters()
    frame, table = found.to_frame(), found.to_arrow()
    assert frame.columns.tolist() == ["cluster", "probability", "p0", "p1", "p2", "p3"]
    assert frame.loc["n7", "cluster"] == found.assignment[7]
    assert table.column_names == ["id", *frame.columns.tolist()]
    np.testing.assert_array_equal(table["p2"].to_numpy(), found.responsibilities[:, 2])
    assert table["id"].to_pylist()[:2] == ["n0", "n1"]
    assert model.clusters(k=2).to_frame().columns.tolist() == ["cluster"]
    assert "the graph has none" in message_of(found.scores)
    assert found.scores(graph.labels).num_classes == 4


def test_what_has_no_clusters_says_what_to_do(graph: Graph) -> None:
    plain = vgae.VGAE(iterations=1, device="cpu").fit(graph)
    for words in ("standard_normal", "--prior mixture:components=K", "(k)"):
        assert words in message_of(plain.clusters)
    early = vgae.VGAE(**MIXED | {"iterations": 60}).fit(graph)
    assert "train for more iterations" in message_of(early.clusters)
    assert "k: a whole number from 1 to 400" in message_of(lambda: plain.clusters(k=401))
    assert "seed: a whole number" in message_of(lambda: plain.clusters(k=3, seed=-1))
    assert "sc and dw have" in message_of(lambda: vgae.Baseline("cn").fit(graph).clusters(k=3))
    assert "--prior mixture" in message_of(vgae.Baseline("cn").fit(graph).clusters)
