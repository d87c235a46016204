"""What can be asked of a fitted model: against brute force, dense matrices, and the graph of all links at once."""

import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from typer.testing import CliRunner

import vgae
from vgae.cli.app import app
from vgae.errors import InputError
from vgae.evaluation.all_pairs import Candidates, census
from vgae.evaluation.calibration import Calibration, Evidence
from vgae.evaluation.reliability import BORDERS, reliability
from vgae.graph.pairs import num_pairs

BINS = np.concatenate([[0.0], BORDERS, [1.0]])


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(200, 4, feature_dim=40, seed=9), seed=0)


def test_probabilities_take_the_weight_of_the_loss_back(split: vgae.LinkSplit) -> None:
    pairs = split.test.pairs
    for weighting in ("paper", "elbo"):
        model = vgae.VGAE(iterations=10, weighting=weighting).fit(split.train)
        z = model.transform().astype(np.float64)
        num_nodes, num_ones = split.train.num_nodes, 2 * split.train.num_edges
        weight = (num_nodes**2 - num_ones) / num_ones if weighting == "paper" else 1.0
        logits = (z[pairs[:, 0]] * z[pairs[:, 1]]).sum(axis=1) - np.log(weight)
        np.testing.assert_allclose(model.predict_proba(pairs), 1 / (1 + np.exp(-logits)), rtol=1e-4)


def test_probabilities_on_cora_mean_what_they_say() -> None:
    split = vgae.split_links(vgae.load_dataset("cora"), seed=0)
    model = vgae.VGAE(seed=0).fit(split.train, validation=split.val)
    raw, calibrated = model.reliability(split.test)
    outside = num_pairs(2708) - split.train.num_edges - len(split.val.links)
    assert calibrated.pairs.sum() == raw.pairs.sum() == outside
    assert calibrated.found.sum() == len(split.test.links)
    assert (np.abs(calibrated.found - calibrated.expected) < 3 * np.sqrt(calibrated.expected) + 3).all()
    assert raw.error > 0.5 > 10 * calibrated.error
    best = model.recommend(100).probabilities
    assert 0.2 < best.mean() < 0.6  # one in ten of these is a test link, where 10% of the links are


def test_transform_of_the_training_graph_is_the_embedding(split: vgae.LinkSplit) -> None:
    model = vgae.VGAE(iterations=10).fit(split.train)
    np.testing.assert_allclose(model.transform(split.train), model.transform(), rtol=1e-5, atol=1e-6)


def test_transform_of_a_renumbered_graph_is_the_renumbered_embedding(split: vgae.LinkSplit) -> None:
    graph = split.train
    model = vgae.VGAE(iterations=10).fit(graph)
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    place = np.argsort(order)
    shuffled = vgae.Graph.from_edges(
        place[graph.edges], num_nodes=graph.num_nodes, features=sp.csr_array(graph.features)[order]
    )
    np.testing.assert_allclose(model.transform(shuffled), model.transform()[order], rtol=1e-4, atol=1e-5)


def test_transform_refuses_what_the_model_cannot_know(split: vgae.LinkSplit) -> None:
    blind = vgae.GAE(iterations=2, features=False).fit(split.train)
    other = split.train.with_edges(split.train.edges[1:])
    with pytest.raises(InputError, match="without features"):
        blind.transform(other)
    seeing = vgae.GAE(iterations=2).fit(split.train)
    with pytest.raises(InputError, match="trained on 40 columns, but this graph has 0"):
        seeing.transform(split.train.without_features())


def test_recommend_is_brute_force_over_all_pairs_that_are_not_known(split: vgae.LinkSplit) -> None:
    model = vgae.GAE(seed=0, iterations=20).fit(split.train, validation=split.val)
    z = model.transform().astype(np.float64)
    logits = z @ z.T
    known = np.concatenate([split.train.edges, split.val.links])
    logits[known[:, 0], known[:, 1]] = logits[known[:, 1], known[:, 0]] = -np.inf
    np.fill_diagonal(logits, -np.inf)
    best = np.sort(np.triu(logits, 1)[np.triu_indices(len(z), 1)])[::-1][:50]
    found = model.recommend(50)
    np.testing.assert_allclose(found.logits, best, rtol=1e-4)
    np.testing.assert_allclose(found.logits, logits[tuple(found.pairs.T)], rtol=1e-4)
    each = model.recommend(3, nodes=[7, 2])
    assert each.pairs[:, 0].tolist() == [7, 7, 7, 2, 2, 2]
    np.testing.assert_allclose(each.logits[:3], np.sort(logits[7])[::-1][:3], rtol=1e-4)
    with pytest.raises(InputError, match="nodes: 99999"):
        model.recommend(3, nodes=[99999])


@pytest.fixture(scope="module")
def variational(split: vgae.LinkSplit) -> vgae.VGAE:
    return vgae.VGAE(seed=4, iterations=20).fit(split.train, validation=split.val)


def test_predicted_links_are_logits_and_probabilities_and_draws_add_their_spread(
    variational: vgae.VGAE, split: vgae.LinkSplit
) -> None:
    pairs = split.test.pairs
    plain = variational.predict_links(pairs)
    assert plain.std is None
    np.testing.assert_array_equal(plain.pairs, pairs)
    np.testing.assert_array_equal(plain.logits, variational.logits(pairs))
    np.testing.assert_array_equal(plain.probabilities, variational.predict_proba(pairs))
    drawn = variational.predict_links(pairs, samples=400)
    assert drawn.std is not None
    generator = np.random.default_rng(0)
    mean, std = (variational.latent_["mean"].numpy(), variational.latent_["log_std"].exp().numpy())
    z = mean + std * generator.standard_normal((400, *mean.shape))
    expected = variational.calibration().probabilities(np.einsum("kmd,kmd->km", z[:, pairs[:, 0]], z[:, pairs[:, 1]]))
    error = np.sqrt(2 / 400) * expected.std(axis=0)
    assert (np.abs(drawn.probabilities - expected.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(drawn.std.mean(), expected.std(axis=0).mean(), rtol=0.05)
    np.testing.assert_array_equal(drawn.logits, plain.logits)


def test_draws_repeat_themselves_for_their_seed(variational: vgae.VGAE, split: vgae.LinkSplit) -> None:
    pairs = split.test.pairs
    by_default, again, other = (variational.predict_links(pairs, samples=5, seed=seed) for seed in (None, 4, 5))
    np.testing.assert_array_equal(by_default.probabilities, again.probabilities)
    np.testing.assert_array_equal(by_default.std, again.std)
    assert not np.array_equal(by_default.probabilities, other.probabilities)


def test_recommended_links_with_draws_are_the_same_links(variational: vgae.VGAE) -> None:
    plain, drawn = variational.recommend(6), variational.recommend(6, samples=20)
    np.testing.assert_array_equal(drawn.pairs, plain.pairs)
    expected = variational.predict_links(plain.pairs, samples=20)
    np.testing.assert_array_equal(drawn.probabilities, expected.probabilities)
    np.testing.assert_array_equal(drawn.std, expected.std)
    each = variational.recommend(2, nodes=[7, 3], samples=20)
    np.testing.assert_array_equal(each.std, variational.predict_links(each.pairs, samples=20).std)


def test_without_spread_draws_are_predict_proba(split: vgae.LinkSplit) -> None:
    model = vgae.VGAE(iterations=5).fit(split.train)
    model.latent_["log_std"].fill_(-torch.inf)
    found = model.predict_links(split.test.pairs, samples=3)
    np.testing.assert_array_equal(found.probabilities, model.predict_proba(split.test.pairs))
    np.testing.assert_array_equal(found.std, 0)


def test_similar_nodes_are_those_of_the_largest_cosines(split: vgae.LinkSplit) -> None:
    model = vgae.GAE(seed=0, iterations=20).fit(split.train)
    z = model.transform().astype(np.float64)
    directions = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosines = directions @ directions[7]
    cosines[7] = -2
    found = model.similar(7, k=5)
    np.testing.assert_allclose([cosine for _, cosine in found], np.sort(cosines)[::-1][:5], rtol=1e-5)
    np.testing.assert_allclose([cosines[node] for node, _ in found], np.sort(cosines)[::-1][:5], rtol=1e-5)


def test_on_its_own_graph_a_model_says_what_it_said(variational: vgae.VGAE, split: vgae.LinkSplit) -> None:
    moved = variational.on(split.train)
    np.testing.assert_array_equal(moved.transform(), variational.transform())
    pairs = split.test.pairs
    np.testing.assert_array_equal(moved.predict_proba(pairs), variational.predict_proba(pairs))
    np.testing.assert_array_equal(
        moved.predict_links(pairs, samples=5).probabilities, variational.predict_links(pairs, samples=5).probabilities
    )
    np.testing.assert_array_equal(moved.recommend(50).pairs, variational.recommend(50).pairs)


def test_new_nodes_are_embedded_by_the_trained_encoder(variational: vgae.VGAE, split: vgae.LinkSplit) -> None:
    """Against the encoder written out with dense matrices, on the training graph with a node more."""
    train = split.train
    features = np.concatenate([train.features.toarray(), train.features.toarray()[:1]])  # type: ignore[union-attr]
    larger = vgae.Graph.from_edges(np.concatenate([train.edges, [[0, 200], [7, 200]]]), features=features)
    with_loops = larger.adjacency.toarray() + np.eye(201)
    scale = np.diag(with_loops.sum(axis=1) ** -0.5)
    propagation = scale @ with_loops @ scale
    weights = {name: tensor.numpy().astype(float) for name, tensor in variational.model_.state_dict().items()}
    hidden = np.maximum(propagation @ features @ weights["encoder.input_weight"], 0)
    expected = propagation @ hidden @ weights["encoder.head_weights.mean"]
    moved = variational.on(larger, known=[[1, 200]])
    np.testing.assert_allclose(moved.transform(), expected, atol=1e-5)
    np.testing.assert_allclose(moved.logits([[5, 200]]), [expected[5] @ expected[200]], atol=1e-5)
    held_out = {tuple(link) for link in split.val.links.tolist()}
    assert not held_out & {tuple(sorted(pair)) for pair in moved.recommend(5000).pairs.tolist()}
    found = moved.recommend(198, nodes=[200]).pairs[:, 1].tolist()
    assert sorted(found) == [node for node in range(200) if node not in (0, 1, 7)]
    np.testing.assert_allclose(
        moved.predict_proba([[5, 200]]),
        variational.calibration().probabilities(moved.logits([[5, 200]])),
        rtol=1e-6,
    )


def test_what_another_graph_cannot_have_is_refused(
    variational: vgae.VGAE, split: vgae.LinkSplit, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="trained on 40 columns, but this graph has 0"):
        variational.on(split.train.without_features())
    bare = vgae.GAE(iterations=2).fit(split.train.without_features())
    with pytest.raises(InputError, match="trained without features, so it knows nothing of other nodes"):
        bare.on(split.train.with_edges(split.train.edges[1:]))
    with pytest.raises(InputError, match="save the one that was trained"):
        variational.on(split.train.with_edges(split.train.edges[1:])).save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_larger_graph_of_its_own_keeps_what_is_known_and_another_one_does_not(
    variational: vgae.VGAE, split: vgae.LinkSplit, tmp_path: Path
) -> None:
    """Once fitted with validation pairs, once loaded from a run that knows the test pairs too, once moved twice."""
    train, num_all = split.train, 201 * 200 // 2
    features = sp.vstack([train.features, train.features[:1]]).tocsr()  # type: ignore[index]
    larger = vgae.Graph.from_edges(np.concatenate([train.edges, [[0, 200]]]), num_nodes=201, features=features)
    variational.save(tmp_path / "run", split=split)
    loaded = vgae.load(tmp_path / "run")
    val, test = (len(held_out.links) for held_out in (split.val, split.test))
    for model, known in ((variational, val), (loaded, val + test), (loaded.on(larger), val + test)):
        assert len(model.on(larger).recommend(num_all).pairs) == num_all - larger.num_edges - known
    order = np.random.default_rng(0).permutation(201)
    renumbered = vgae.Graph.from_edges(np.argsort(order)[larger.edges], num_nodes=201, features=features[order])
    named = replace(larger, node_ids=np.array([f"x{i}" for i in range(201)]))
    for other in (renumbered, named):
        assert len(loaded.on(other).recommend(num_all).pairs) == num_all - larger.num_edges


def test_more_read_from_files_keeps_directions_labels_and_what_is_known(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    rows = np.unique(generator.integers(60, size=(400, 2)), axis=0)
    features, labels = generator.random((60, 3)).round(3), [f"class {i % 3}" for i in range(60)]
    graph = vgae.Graph.from_edges(
        rows, directed=True, features=features, labels=labels, weights=np.arange(1, 1 + len(rows))
    )
    split = vgae.split_links(graph, seed=0)
    with pytest.warns(UserWarning, match="cannot tell which way a link goes"):
        model = vgae.VGAE(iterations=5).fit(split.train, validation=split.val)
    (tmp_path / "nodes.csv").write_text("id,a,b,c\n60,0.1,0.2,0.3\n61,0.4,0.5,0.6\n")
    (tmp_path / "links.csv").write_text("from,to,weight\n60,3,2\n4,61,1\n61,60,7\n")
    more = vgae.read_more(
        model.graph_, None, links=tmp_path / "links.csv", nodes=tmp_path / "nodes.csv", weight="weight"
    ).graph
    assert more.labels is not None
    assert more.labels.tolist() == [*labels, -1, -1]
    assert more.directions is not None
    assert more.weights is not None
    found = {
        tuple(edge): (way, weight)
        for edge, way, weight in zip(more.edges.tolist(), more.directions.tolist(), more.weights.tolist(), strict=True)
    }
    own = split.train
    assert own.directions is not None
    assert own.weights is not None
    kept = {
        tuple(edge): (way, weight)
        for edge, way, weight in zip(own.edges.tolist(), own.directions.tolist(), own.weights.tolist(), strict=True)
    }
    assert set(own.directions.tolist()) == {1, -1, 0}
    assert found == kept | {(3, 60): (-1, 2.0), (4, 61): (1, 1.0), (60, 61): (-1, 7.0)}
    moved = model.on(more)
    num_all = 62 * 61 // 2
    known = {tuple(sorted(pair)) for pair in [*more.edges.tolist(), *split.val.links.tolist()]}
    assert len(moved.recommend(num_all).pairs) == num_all - len(known)
    told = vgae.VGAE(iterations=5, decoder="source_target").fit(split.train, validation=split.val).on(more)
    assert len(told.recommend(2 * num_all).pairs) == 2 * num_all - more.num_arcs - len(split.val.links)


def test_transform_of_the_graph_it_was_trained_on_is_its_embedding_without_features_too(split: vgae.LinkSplit) -> None:
    karate = nx.karate_club_graph()
    model = vgae.GAE(iterations=3).fit(karate)
    np.testing.assert_array_equal(model.transform(karate), model.transform())
    blind = vgae.VGAE(iterations=3, features=False).fit(split.train)
    again = vgae.Graph.from_edges(split.train.edges, num_nodes=200)
    for same in (split.train, again):
        np.testing.assert_array_equal(blind.transform(same), blind.transform())
        np.testing.assert_array_equal(blind.on(same).recommend(5).pairs, blind.recommend(5).pairs)


def test_density_is_that_of_the_whole_graph_where_it_is_known(split: vgae.LinkSplit, tmp_path: Path) -> None:
    pairs = 200 * 199 // 2
    num_train, num_val, num_test = split.train.num_edges, len(split.val.links), len(split.test.links)
    whole = (num_train + num_val + num_test) / pairs
    model = vgae.GAE(iterations=2).fit(split.train, validation=split.val)
    assert model.density() == whole
    for name, kept in (("split", split), ("alone", None)):
        model.save(tmp_path / name, split=kept)
        loaded = vgae.load(tmp_path / name)
        assert loaded.density() == whole
        np.testing.assert_array_equal(loaded.predict_proba(split.test.pairs), model.predict_proba(split.test.pairs))
    by_hand = vgae.HeldOut(split.val.links, split.val.non_links)
    assert vgae.GAE(iterations=2).fit(split.train, validation=by_hand).density() == (num_train + num_val) / pairs
    assert vgae.GAE(iterations=2).fit(split.train).density() == num_train / pairs


def test_calibration_is_judged_by_links_that_it_was_not_fitted_to(
    variational: vgae.VGAE, split: vgae.LinkSplit
) -> None:
    _, on_test = variational.reliability(split.test)
    known = np.concatenate([split.train.edges, split.val.links])
    candidates = census(variational, Candidates(split.train.num_nodes, known))
    logits, num_links = variational.logits(split.test.links), split.num_graph_links
    expected = reliability(variational.calibration(), candidates, logits, num_links)
    np.testing.assert_array_equal(on_test.expected, expected.expected)
    _, on_validation = variational.reliability(split.val)
    outside = census(variational, Candidates(split.train.num_nodes, split.train.edges))
    links = variational.logits(split.val.links)
    num_unseen = num_links - split.train.num_edges
    fits = [Calibration.fit(Evidence(outside, links[half::2], num_unseen, num_links)) for half in (0, 1)]
    found = sum(np.histogram(fits[1 - half].probabilities(links[half::2]), BINS)[0] for half in (0, 1))
    np.testing.assert_array_equal(on_validation.found, found)
    with pytest.raises(InputError, match="no links"):
        variational.reliability(vgae.HeldOut.none())


def test_evaluate_ranks_among_all_pairs_that_are_not_known(variational: vgae.VGAE, split: vgae.LinkSplit) -> None:
    found = variational.evaluate(split.test)
    assert {name: found[name] for name in ("auc", "ap")} == variational.metrics(split.test)
    size = split.train.num_nodes
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    known = {tuple(pair) for pair in np.sort(np.concatenate([split.train.edges, split.val.links])).tolist()}
    outside = np.array([pair for pair in pairs.tolist() if tuple(pair) not in known])
    order = np.argsort(-variational.logits(outside), kind="stable")
    links = {tuple(sorted(pair)) for pair in split.test.links.tolist()}
    hits = np.array([tuple(pair) in links for pair in outside[order].tolist()])
    for k in (10, 100, len(links)):
        assert found[f"precision@{k}"] == pytest.approx(hits[:k].mean())
        assert found[f"recall@{k}"] == pytest.approx(hits[:k].sum() / len(links))


def test_splits_that_do_not_tell_the_links_of_the_graph_are_read(split: vgae.LinkSplit, tmp_path: Path) -> None:
    """As they were written before; then the links of the parts are all that there are."""
    split.save(tmp_path / "split.npz")
    with np.load(tmp_path / "split.npz") as content:
        parts = dict(content)
    assert int(parts.pop("num_graph_links")) == split.num_graph_links
    np.savez(tmp_path / "old.npz", **parts)
    old = vgae.LinkSplit.load(tmp_path / "old.npz")
    assert old.num_graph_links == split.num_graph_links
    np.savez(tmp_path / "wrong.npz", num_graph_links=10**9, **parts)
    with pytest.raises(InputError, match="links are not possible among 200 nodes"):
        vgae.LinkSplit.load(tmp_path / "wrong.npz")


def test_the_command_says_what_calibration_was_judged_by(split: vgae.LinkSplit, tmp_path: Path) -> None:
    model = vgae.VGAE(seed=0, iterations=20).fit(split.train, validation=split.val)
    model.save(tmp_path / "with", split=split)
    model.save(tmp_path / "without")
    for name, words in (
        ("with", "the test links"),
        ("without", "the validation links, each half by a fit to the other"),
    ):
        done = CliRunner().invoke(app, ["evaluate", str(tmp_path / name), "--json"])
        found = json.loads(done.stdout)["calibration"]
        assert found["judged_by"] == words
        held_out = split.test if name == "with" else split.val
        expected = model.reliability(held_out)[1]
        assert [each["found_links"] for each in found["bins"]] == expected.found.tolist()
        np.testing.assert_allclose([each["expected_links"] for each in found["bins"]], expected.expected)
