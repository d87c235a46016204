"""The evaluators of the Open Graph Benchmark against their definition, and the audit of what is given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vgae
from helpers import message_of
from vgae.evaluation import ogb
from vgae.evaluation.evaluate import evaluate_split
from vgae.evaluation.heart import evaluate_heart
from vgae.evaluation.ogb import evaluate_ogb
from vgae.evaluation.protocols import PROTOCOLS, evaluate_protocol
from vgae.graph.given import NamedPairs, NegativesOfLinks
from vgae.graph.negatives import take_non_links
from vgae.graph.pairs import Pairs
from vgae.graph.split import LeakError, LinkSplit, split_links
from vgae.graph.synthetic import stochastic_block_model

GRAPH = stochastic_block_model(60, 3, feature_dim=12, seed=5).with_parts(
    node_ids=np.array([f"n{k}" for k in range(60)])
)
SPLIT = split_links(GRAPH, val=0.1, test=0.2, seed=1)
FREE = take_non_links(GRAPH, np.arange(300, 700))


class Table:
    def __init__(self) -> None:
        self.scores = np.random.default_rng(3).integers(0, 50, size=(60, 60)).astype(np.float32)

    def logits(self, pairs: Pairs) -> NDArray[np.float32]:
        return np.asarray(self.scores[pairs[:, 0], pairs[:, 1]])


SCORER = Table()


def scores_of(pairs: Pairs) -> list[float]:
    return [float(SCORER.scores[i, j]) for i, j in pairs.tolist()]


@pytest.mark.parametrize("num", [5, 10, 49, 60, 400])
def test_shared_non_links_give_hits_as_far_as_there_are_enough(num: int) -> None:
    found = evaluate_ogb(SCORER, SPLIT, {"test": NamedPairs("file", FREE[:num])})
    negatives = sorted(scores_of(FREE[:num]), reverse=True)
    assert set(found.metrics["test"]) == {f"hits@{k}" for k in (10, 20, 50, 100) if k <= num}
    for name, value in found.metrics["test"].items():
        threshold = negatives[int(name.removeprefix("hits@")) - 1]
        assert value == pytest.approx(np.mean([score > threshold for score in scores_of(SPLIT.test.links)]))
    assert found.compared["test"] == f"{num} non-links that all links share (file)"


def test_without_a_file_the_non_links_of_the_split_are_shared() -> None:
    found = evaluate_ogb(SCORER, SPLIT)
    given = evaluate_ogb(SCORER, SPLIT, {"test": NamedPairs("x", SPLIT.test.non_links)})
    assert found.metrics == given.metrics
    assert list(found.metrics) == ["validation", "test"]


def negatives_of(links: Pairs, width: int) -> NegativesOfLinks:
    known = {frozenset(pair) for pair in GRAPH.edges.tolist()}
    free = [[k for k in range(60) if k != i and frozenset((i, k)) not in known] for i, _ in links.tolist()]
    return NegativesOfLinks("file", links, np.array([nodes[:width] for nodes in free]))


@pytest.mark.parametrize("width", [1, 4, 30])
@pytest.mark.parametrize("chunk", [1, 50, 10**6])
def test_links_with_non_links_of_their_own_are_ranked_among_them(
    width: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ogb, "CHUNK", chunk)
    given = negatives_of(SPLIT.test.links, width)
    found = evaluate_ogb(SCORER, SPLIT, {"test": given}).metrics["test"]
    ranks = []
    for (i, j), others in zip(given.links.tolist(), given.others.tolist(), strict=True):
        own, rest = SCORER.scores[i, j], [SCORER.scores[i, k] for k in others]
        optimistic, pessimistic = sum(other > own for other in rest), sum(other >= own for other in rest)
        ranks.append(0.5 * (optimistic + pessimistic) + 1)
    assert found["mrr"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert set(found) == {"mrr", *(f"hits@{k}" for k in (1, 3, 10, 50, 100) if k <= width)}
    for k in (1, 3, 10):
        if k <= width:
            assert found[f"hits@{k}"] == pytest.approx(np.mean([rank <= k for rank in ranks]))


def test_rows_of_different_length_are_padded() -> None:
    given = negatives_of(SPLIT.test.links, 6)
    others = given.others.copy()
    others[::2, 4:] = -1
    found = evaluate_ogb(SCORER, SPLIT, {"test": NegativesOfLinks("file", given.links, others)})
    assert "4 to 6 non-links for each of" in found.compared["test"]
    assert "hits@10" not in found.metrics["test"]


def wrong(name: str) -> Any:
    links = SPLIT.test.links
    own = negatives_of(links, 5)
    others = own.others.copy()
    others[3, 2] = SPLIT.train.adjacency.indices[SPLIT.train.adjacency.indptr[links[3, 0]]]
    return {
        "a link": NamedPairs("x.csv", np.concatenate([FREE[:5], SPLIT.train.edges[:2, ::-1]])),
        "a test link": NamedPairs("x.csv", np.concatenate([FREE[:5], links[:1]])),
        "only self pairs": NamedPairs("x.csv", np.array([[3, 3]])),
        "links of their own": NegativesOfLinks("x.csv", own.links, others),
        "links for training": NegativesOfLinks("x.csv", SPLIT.train.edges[:4], FREE[:4]),
        "links for validation": NegativesOfLinks("x.csv", SPLIT.val.links, np.full((len(SPLIT.val.links), 2), 1)),
        "nobody": NegativesOfLinks("x.csv", links[:2], np.array([[-1], [5]])),
    }[name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a link", "x.csv: 2 of its 7 non-links are links of the graph, such as 'n"),
        ("a test link", "x.csv: 1 of its 6 non-links is a link of the graph, such as 'n"),
        ("only self pairs", "x.csv: there are no pairs of different nodes"),
        ("links of their own", "non-links is a link of the graph, such as 'n"),
        ("links for training", "x.csv: 4 of its 4 links are not among the"),
        ("links for validation", "links are not among the"),
        ("nobody", "x.csv: 1 link has no non-links"),
    ],
)
def test_what_leaks_or_cannot_be_is_refused(name: str, words: str) -> None:
    assert words in message_of(lambda: evaluate_ogb(SCORER, SPLIT, {"test": wrong(name)}))
    if "graph" in words:
        with pytest.raises(LeakError):
            evaluate_ogb(SCORER, SPLIT, {"test": wrong(name)})


def test_repeated_non_links_count_once() -> None:
    doubled = NamedPairs("x", np.concatenate([FREE[:20], FREE[:20, ::-1], [[1, 1]]]))
    assert evaluate_ogb(SCORER, SPLIT, {"test": doubled}).compared["test"].startswith("20 non-links")


def test_a_set_that_is_not_there_has_no_negatives() -> None:
    only_test = LinkSplit(SPLIT.train, split_links(GRAPH, val=0, test=0).val, SPLIT.test, seed=0)
    assert list(evaluate_ogb(SCORER, only_test).metrics) == ["test"]
    shared = {"val": NamedPairs("x.csv", FREE[:5])}
    assert "no validation links" in message_of(lambda: evaluate_ogb(SCORER, only_test, shared))
    assert "not to 'train'" in message_of(lambda: evaluate_ogb(SCORER, SPLIT, {"train": NamedPairs("x", FREE)}))
    assert "no held-out links" in message_of(lambda: evaluate_ogb(SCORER, split_links(GRAPH, val=0, test=0)))


# ----------------------------------------------------------------------------------------------------------- protocols


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_says_its_name_and_what_links_were_compared_with(protocol: str) -> None:
    found = vgae.evaluate_protocol(SCORER, SPLIT, protocol)
    assert found.protocol == protocol
    assert set(found.metrics) == set(found.compared) == {"validation", "test"}
    expected = {
        "paper": evaluate_split(SCORER, SPLIT),
        "heart": evaluate_heart(SCORER, SPLIT),
        "ogb": evaluate_ogb(SCORER, SPLIT).metrics,
    }[protocol]
    assert found.metrics == expected


@pytest.mark.parametrize("protocol", ["heart", "ogb"])
def test_a_model_is_asked_by_a_protocol(protocol: str) -> None:
    for model in (vgae.VGAE(iterations=3).fit(SPLIT.train, validation=SPLIT.val), vgae.Baseline("ra")):
        if isinstance(model, vgae.Baseline):
            model.fit_split(SPLIT)
        expected = evaluate_protocol(model, SPLIT, protocol, sets=("test",)).metrics
        assert list(expected) == ["test"]
        assert model.evaluate(SPLIT.test, protocol=protocol) == pytest.approx(expected["test"])
    shared = model.evaluate(SPLIT.test, protocol="ogb", negatives=FREE[:30])
    given = evaluate_protocol(model, SPLIT, "ogb", negatives={"test": FREE[:30]})
    assert shared == pytest.approx(given.metrics["test"])
    assert "for ogb" in message_of(lambda: model.evaluate(SPLIT.test, negatives=FREE))


def test_negatives_come_as_arrays_or_files(tmp_path: Path) -> None:
    names = [[f"n{i}", f"n{j}"] for i, j in FREE[:30].tolist()]
    (tmp_path / "shared.csv").write_text("source,target\n" + "\n".join(map(",".join, names)))
    given = negatives_of(SPLIT.test.links, 5)
    shared = [FREE[:30], names, str(tmp_path / "shared.csv"), tmp_path / "shared.csv", NamedPairs("x", FREE[:30])]
    found = [evaluate_protocol(SCORER, SPLIT, "ogb", negatives={"test": each}).metrics["test"] for each in shared]
    assert all(each == found[0] for each in found)
    alone = evaluate_protocol(SCORER, SPLIT, "ogb", negatives={"test": (given.links, given.others)})
    assert alone.metrics["test"] == evaluate_ogb(SCORER, SPLIT, {"test": given}).metrics["test"]


@pytest.mark.parametrize(
    ("protocol", "negatives", "words"),
    [
        ("hart", None, "'hart' is not one of paper, heart, ogb"),
        ("heart", {"test": FREE}, "the protocol heart has its own"),
        ("ogb", {"test": (FREE,)}, "a tuple of links and other nodes"),
        ("ogb", {"test": (SPLIT.test.links, [[1], [2]])}, "a row of nodes is needed for each"),
        ("ogb", {"test": (SPLIT.test.links, np.full((len(SPLIT.test.links), 1), 60))}, "node indices run from 0 to 59"),
    ],
)
def test_wrong_protocols_and_negatives_are_refused(protocol: str, negatives: Any, words: str) -> None:
    assert words in message_of(lambda: evaluate_protocol(SCORER, SPLIT, protocol, negatives=negatives))
