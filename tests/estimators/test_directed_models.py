"""What is asked of models of directed graphs: new links, probabilities, rankings and scores by direction."""

from __future__ import annotations

import warnings
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import vgae
from vgae.evaluation.all_pairs import census
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit, split_links

SIZE = 40
TOLD = {"decoder": "source_target", "encoder": "directed"}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Links go up the numbers, within two groups, and a few go both ways."""
    generator = np.random.default_rng(7)
    pairs = np.array([(i, j) for i, j in permutations(range(SIZE), 2) if i < j and i % 2 == j % 2])
    rows = pairs[generator.permutation(len(pairs))[:180]]
    back = rows[:25, ::-1]
    features = np.stack([np.arange(SIZE) / SIZE, np.arange(SIZE) % 2, np.ones(SIZE)], axis=1)
    return Graph.from_edges(np.concatenate([rows, back]), num_nodes=SIZE, directed=True, features=features)


@pytest.fixture(scope="module")
def split(graph: Graph) -> LinkSplit:
    return split_links(graph, val=0.1, test=0.2, seed=3)


@pytest.fixture(scope="module")
def told(split: LinkSplit) -> vgae.VGAE:
    return vgae.VGAE(hidden_dim=16, latent_dim=8, iterations=80, **TOLD).fit(split.train, validation=split.val)


@pytest.fixture(scope="module")
def blind(split: LinkSplit) -> vgae.VGAE:
    with pytest.warns(UserWarning, match="The links are directed, but the decoder inner_product is symmetric"):
        return vgae.VGAE(hidden_dim=16, latent_dim=8, iterations=80).fit(split.train, validation=split.val)


def as_set(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in pairs.tolist()}


def both_ways(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return pairs | {(j, i) for i, j in pairs}


def table_of(model: vgae.VGAE) -> np.ndarray:
    rows = np.array(list(permutations(range(SIZE), 2)))
    table = np.full((SIZE, SIZE), -np.inf)
    table[rows[:, 0], rows[:, 1]] = model.logits(rows)
    return table


def test_only_the_symmetric_decoder_warns(split: LinkSplit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vgae.GAE(iterations=2, decoder="source_target").fit(split.train)
        vgae.GAE(iterations=2).fit(split.train.without_directions())


def test_known_links_are_never_recommended_but_their_reverse_may_be(told: vgae.VGAE, split: LinkSplit) -> None:
    known = as_set(split.train.arcs) | as_set(split.val.links)
    everything = told.recommend(SIZE**2)
    assert as_set(everything.pairs) == set(permutations(range(SIZE), 2)) - known
    assert len(everything) == SIZE * (SIZE - 1) - len(known)
    assert set(everything.known) == {"no"}
    one_way = next((j, i) for i, j in known if (j, i) not in known)
    assert one_way in as_set(everything.pairs)
    table = table_of(told)
    np.testing.assert_allclose(everything.logits, [table[i, j] for i, j in everything.pairs.tolist()], rtol=1e-5)
    assert (np.diff(everything.logits) <= 0).all()
    of_node = told.recommend(SIZE, nodes=[5]).pairs
    assert as_set(of_node) == {(5, j) for j in range(SIZE) if j != 5 and (5, j) not in known}


def test_a_symmetric_decoder_recommends_pairs_that_are_linked_neither_way(blind: vgae.VGAE, split: LinkSplit) -> None:
    known = both_ways(as_set(split.train.arcs) | as_set(split.val.links))
    found = blind.recommend(SIZE**2).pairs
    assert both_ways(as_set(found)) == set(permutations(range(SIZE), 2)) - known
    assert (found[:, 0] < found[:, 1]).all()


def test_what_is_known_of_a_pair_is_known_by_direction(told: vgae.VGAE, blind: vgae.VGAE, split: LinkSplit) -> None:
    arcs = as_set(split.train.arcs)
    i, j = next((i, j) for i, j in sorted(arcs) if (j, i) not in arcs | as_set(split.val.links))
    (k, m) = next((k, m) for k, m in as_set(split.val.links) if (m, k) not in arcs | as_set(split.val.links))
    asked = [(i, j), (j, i), (k, m), (m, k), (i, i)]
    assert told.predict_links(asked).known.tolist() == ["train", "no", "held_out", "no", "self"]
    assert blind.predict_links(asked).known.tolist() == ["train", "train", "held_out", "held_out", "self"]
    assert told.logits([(i, j)]) != told.logits([(j, i)])


def test_evidence_counts_ordered_pairs(told: vgae.VGAE, graph: Graph, split: LinkSplit) -> None:
    run = told.run_
    histogram = census(run, run.candidates)
    evidence = run.evidence(split.val.links, histogram)
    pairs = SIZE * (SIZE - 1)
    assert histogram.total == pairs - split.train.num_arcs
    assert evidence.num_links == graph.num_arcs
    assert evidence.num_unseen == graph.num_arcs - split.train.num_arcs
    assert told.density() == graph.num_arcs / pairs == graph.density


def test_evidence_of_a_symmetric_decoder_counts_pairs(blind: vgae.VGAE, split: LinkSplit) -> None:
    run = blind.run_
    train = split.train.without_directions()
    new = {tuple(sorted(pair)) for pair in as_set(split.val.links)} - as_set(train.edges)
    assert census(run, run.candidates).total == SIZE * (SIZE - 1) // 2 - train.num_edges
    assert as_set(run.links_split.val.links) == new
    assert run.calibration.num_links == len(new)
    assert run.links_split.num_graph_links >= train.num_edges + len(new)
    assert blind.density() == run.links_split.num_graph_links / (SIZE * (SIZE - 1) // 2)


def test_probabilities_add_up_to_the_links_that_there_are(told: vgae.VGAE, split: LinkSplit) -> None:
    raw, calibrated = told.reliability(split.test)
    del raw
    known = split.train.num_arcs + len(split.val.links)
    assert calibrated.pairs.sum() == SIZE * (SIZE - 1) - known
    assert calibrated.found.sum() == len(split.test.links)
    assert calibrated.expected.sum() == pytest.approx(len(split.test.links), rel=0.5)


def test_rankings_of_all_pairs_go_by_direction(told: vgae.VGAE, split: LinkSplit) -> None:
    table = table_of(told)
    known, links = as_set(split.train.arcs) | as_set(split.val.links), as_set(split.test.links)
    candidates = [pair for pair in permutations(range(SIZE), 2) if pair not in known]
    order = sorted(candidates, key=lambda pair: -table[pair])
    metrics = told.evaluate(split.test)
    assert metrics["precision@10"] == pytest.approx(sum(pair in links for pair in order[:10]) / 10)
    assert metrics["recall@100"] == pytest.approx(sum(pair in links for pair in order[:100]) / len(links))
    ranks = [
        1 + sum(table[i, k] > table[i, j] for k in range(SIZE) if k != i and (i, k) not in known | links)
        for i, j in split.test.links.tolist()
    ]
    assert metrics["node_mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))


def test_a_symmetric_score_is_50_against_reversed_links_by_construction(graph: Graph) -> None:
    split = split_links(graph, val=0.1, test=0.2, direction_task="reversed", seed=1)
    options = {"hidden_dim": 16, "latent_dim": 8, "iterations": 60}
    with pytest.warns(UserWarning, match="its AUC of links against reversed links is 50 by construction"):
        blind = vgae.GAE(**options).fit(split.train)
    assert blind.metrics(split.test)["auc"] == 0.5
    for baseline in ("cn", "aa", "pa"):
        assert vgae.Baseline(baseline).fit(split.train).metrics(split.test)["auc"] == 0.5
    told = vgae.GAE(**options, **TOLD).fit(split.train, validation=split.val)
    assert told.metrics(split.test)["auc"] > 0.9  # all links but the mutual ones go up the numbers


@pytest.mark.parametrize("task", ["any", "reversed", "mutual"])
@pytest.mark.parametrize("options", [TOLD, {}])
def test_runs_of_directed_graphs_come_back(graph: Graph, options: dict[str, str], task: str, tmp_path: Path) -> None:
    split = split_links(graph, val=0.1, test=0.2, direction_task=task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = vgae.VGAE(hidden_dim=8, latent_dim=4, iterations=10, **options).fit(split.train, validation=split.val)
    model.save(tmp_path / "run", split=split)
    again = vgae.load(tmp_path / "run")
    assert again.run_.split.ordered
    assert again.run_.split.content_hash == split.content_hash
    assert again.metrics(split.test) == model.metrics(split.test)
    # Without the test links nobody knows how many of them are the other way of known links, which are none to a
    # symmetric decoder.
    tolerance = 1e-6 if options else 0.1
    pairs = split.test.pairs
    np.testing.assert_allclose(again.predict_proba(pairs), model.predict_proba(pairs), rtol=tolerance)
    held_out = as_set(split.val.links) | as_set(split.test.links)
    found = as_set(again.recommend(SIZE**2).pairs)
    assert not found & (held_out | as_set(split.train.arcs))
    assert again.evaluate(split.test)["auc"] == model.metrics(split.test)["auc"]


def test_a_run_that_was_made_before_directions_counted_is_asked_as_it_was(graph: Graph, tmp_path: Path) -> None:
    plain = split_links(graph.without_directions(), val=0.1, test=0.2)
    earlier = LinkSplit(graph.with_edges(plain.train.edges), plain.val, plain.test, 0, ordered=False)
    with pytest.warns(UserWarning, match="cannot tell"):
        model = vgae.GAE(iterations=20).fit(earlier.train, validation=earlier.val)
    model.save(tmp_path / "run", split=earlier)
    again = vgae.load(tmp_path / "run")
    assert not again.run_.split.ordered
    same = vgae.GAE(iterations=20).fit(plain.train, validation=plain.val)
    same.save(tmp_path / "plain", split=plain)
    expected = vgae.load(tmp_path / "plain")
    assert again.density() == expected.density() == graph.without_directions().density
    np.testing.assert_array_equal(again.recommend(50).pairs, expected.recommend(50).pairs)
    np.testing.assert_array_equal(again.recommend(50).probabilities, expected.recommend(50).probabilities)
    assert again.evaluate(plain.test) == expected.evaluate(plain.test)


def test_training_is_the_same_whatever_the_directions_for_a_symmetric_decoder(graph: Graph) -> None:
    with pytest.warns(UserWarning, match="cannot tell"):
        directed = vgae.VGAE(iterations=10).fit(graph)
    np.testing.assert_array_equal(
        directed.transform(), vgae.VGAE(iterations=10).fit(graph.without_directions()).transform()
    )


@pytest.mark.parametrize("decoder", ["source_target", "gravity"])
def test_an_interrupted_training_of_a_directed_model_is_resumed_to_the_same_bits(
    split: LinkSplit, tmp_path: Path, decoder: str
) -> None:
    options = {"hidden_dim": 8, "latent_dim": 4, "encoder": "directed:dropout=0.2", "decoder": decoder}
    options |= {"mask_links": 0.3}
    whole = vgae.VGAE(iterations=12, **options).fit(split.train)
    saved = vgae.VGAE(iterations=12, **options)
    saved.fit(split.train, checkpoint=tmp_path / "state", checkpoint_every=0)
    again = vgae.VGAE(iterations=12, **options).fit(split.train, checkpoint=tmp_path / "state")
    np.testing.assert_array_equal(whole.transform(), saved.transform())
    np.testing.assert_array_equal(whole.transform(), again.transform())
