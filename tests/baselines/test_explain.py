"""What speaks for a pair: by hand, and as parts that add up to the similarities."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import vgae
from vgae.baselines.explain import PairEvidence, explain_pair
from vgae.baselines.similarities import SIMILARITIES
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.report.explain import print_pair_evidence


def small_graph() -> Graph:
    """a and d know b and c; b and c know each other; e is alone with a."""
    edges = [("a", "b"), ("a", "c"), ("d", "b"), ("d", "c"), ("b", "c"), ("a", "e"), ("c", "f")]
    features = np.array([[1, 0, 2], [0, 1, 0], [0, 1, 1], [2, 0, 1], [0, 0, 0], [0, 0, 1]], dtype=np.float32)
    return Graph.from_edges(edges, node_ids=list("abcdef"), features=features)


def test_a_pair_by_hand() -> None:
    found = explain_pair(small_graph(), (0, 3), feature_names=["x", "y", "z"])
    assert found.nodes == ("a", "d")
    assert found.degrees == (3, 2)
    assert not found.linked
    assert [(each.node, each.degree) for each in found.neighbours] == [("b", 3), ("c", 4)]
    assert [each.ra for each in found.neighbours] == pytest.approx([1 / 3, 1 / 4])
    assert [each.aa for each in found.neighbours] == pytest.approx([1 / np.log(3), 1 / np.log(4)])
    assert [each.nodes for each in found.paths] == [("b", "c"), ("c", "b")]
    assert [each.l3 for each in found.paths] == pytest.approx([1 / (np.sqrt(6) * 12)] * 2)
    assert [(each.name, each.values) for each in found.features] == [("x", (1.0, 2.0)), ("z", (2.0, 1.0))]
    assert json.loads(json.dumps(found.to_json()))["neighbours"][0]["node"] == "b"


@pytest.mark.parametrize("kind", ["sparse", "dense", "negative"])
def test_what_is_listed_adds_up_to_the_similarities(kind: str) -> None:
    drawn = vgae.stochastic_block_model(80, 4, degree_within=8, degree_between=2, feature_dim=20, seed=3)
    features = np.asarray(sp.csr_array(drawn.features).toarray(), dtype=np.float32)
    if kind == "negative":
        features = features * np.where(np.arange(20) % 3, 1, -1).astype(np.float32)
    graph = drawn.with_parts(features=sp.csr_array(features) if kind == "sparse" else features)
    linked = {tuple(edge) for edge in graph.edges.tolist()}
    pairs = [pair for pair in [(0, 1), (3, 40), (5, 6), (70, 2), (12, 9)] if tuple(sorted(pair)) not in linked]
    found = [explain_pair(graph, pair, top=10**6) for pair in pairs]
    expected = {name: kind.of(graph).describe(pairs) for name, kind in SIMILARITIES.items()}
    for row, each in enumerate(found):
        sums = [len(each.neighbours), sum(n.aa for n in each.neighbours), sum(n.ra for n in each.neighbours)]
        np.testing.assert_allclose(sums, expected["neighbours"][row], rtol=1e-6)
        np.testing.assert_allclose(sum(path.l3 for path in each.paths), expected["paths"][row, 0], rtol=1e-5)
        cosine = expected["cosines"][row, 0]
        assert each.cosine == pytest.approx(cosine, rel=1e-5, abs=1e-7)
        assert sum(f.cosine for f in each.features) == pytest.approx(cosine, rel=1e-5, abs=1e-7)
        assert (each.num_neighbours, each.num_paths) == (len(each.neighbours), len(each.paths))
    assert any(each.num_paths for each in found)


def test_the_strongest_are_listed_first_and_all_are_counted() -> None:
    hub = [(0, leaf) for leaf in range(2, 30)] + [(1, leaf) for leaf in range(2, 30)] + [(2, 3), (30, 4)]
    found = explain_pair(Graph.from_edges(hub), (0, 1), top=3)
    assert found.num_neighbours == 28
    assert [each.node for each in found.neighbours] == [5, 6, 7]  # with two links each, the others with three
    assert (found.num_paths, [each.nodes for each in found.paths]) == (2, [(2, 3), (3, 2)])
    assert (found.num_features, found.features, found.cosine) == (None, (), None)


def test_a_link_is_no_path_over_itself() -> None:
    found = explain_pair(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)]), (0, 1))
    assert found.linked
    assert [each.nodes for each in found.paths] == [(3, 2)]


def test_bad_input_is_one_sentence() -> None:
    with pytest.raises(InputError, match="two different nodes"):
        explain_pair(small_graph(), (1, 1))
    with pytest.raises(InputError, match="2 names given, but there are 3 features"):
        explain_pair(small_graph(), (0, 1), feature_names=["x", "y"])


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(found: PairEvidence) -> str:
        print_pair_evidence(found)
        return capsys.readouterr().out

    shown = printed(explain_pair(small_graph(), (0, 3), feature_names=["x", "y", "z"], top=1))
    assert "a and d are not linked in the training graph; a has 3 links, d has 2 links." in shown
    assert "2 common neighbours, the strongest:" in shown
    assert "a – b – c – d" in shown
    assert "2 shared features, the strongest (cosine" in shown
    apart = printed(explain_pair(small_graph(), (4, 5)))
    for sentence in ("no common neighbour", "share no feature", "e has 1 link, f has 1 link"):
        assert sentence in apart
    assert "e – a – c – f" in apart
    assert "path" not in printed(explain_pair(Graph.from_edges([(0, 1), (2, 3)]), (0, 2))).replace("No path", "")
