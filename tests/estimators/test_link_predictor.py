"""Whatever scores pairs can be asked for links: a matrix of scores, against brute force over the matrix."""

import pickle
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

import vgae
from vgae.estimators.embeddings import EmbeddingPredictor
from vgae.estimators.links import LinkPredictor, Scored
from vgae.evaluation.calibration import Calibration
from vgae.graph.pairs import Pairs
from vgae.ops import LogitRows


@dataclass(frozen=True, eq=False)
class MatrixScorer:
    """N×N scores, and nothing else."""

    matrix: Tensor
    symmetric: bool

    @property
    def num_nodes(self) -> int:
        return len(self.matrix)

    @property
    def device(self) -> torch.device:
        return self.matrix.device

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = self.matrix.numpy()[pairs[:, 0], pairs[:, 1]]
        return found

    def rows(self) -> LogitRows:
        return self

    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        return self.matrix[rows, first:].clone()


class Asked(LinkPredictor):
    def __init__(self, scored: Scored) -> None:
        self.scored_ = scored


class AskedForEmbeddings(EmbeddingPredictor):
    def __init__(self, scored: Scored, embeddings: Tensor) -> None:
        self.scored_, self.embeddings = scored, embeddings

    def _embeddings(self) -> Tensor:
        return self.embeddings


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(40, 2, seed=2), val=0.1, test=0.2, seed=0)


def scored_by(matrix: Tensor, split: vgae.LinkSplit, *, symmetric: bool) -> Scored:
    graph = split.train.with_parts(node_ids=np.array([f"n{node}" for node in range(40)]))
    held_out = np.concatenate([split.val.links, split.test.links])
    calibrate = partial(Calibration, 0.5)
    return Scored(MatrixScorer(matrix, symmetric), graph, held_out, calibrate, split.num_graph_links, split.val.links)


@pytest.mark.parametrize("symmetric", [True, False])
def test_links_of_a_matrix_are_brute_force_over_the_matrix(split: vgae.LinkSplit, symmetric: bool) -> None:
    matrix = torch.randn(40, 40, generator=torch.Generator().manual_seed(0)).round(decimals=1)  # with ties
    matrix = matrix + matrix.T if symmetric else matrix
    asked = Asked(scored_by(matrix, split, symmetric=symmetric))
    known = {tuple(sorted(pair)) for part in (asked.graph_.edges, asked.excluded_pairs_) for pair in part.tolist()}
    candidates = [
        (i, j)
        for i in range(40)
        for j in range(40)
        if i != j and (i < j or not symmetric) and tuple(sorted((i, j))) not in known
    ]
    best = sorted(candidates, key=lambda pair: (-float(matrix[pair]), pair))
    found = asked.recommend(25)
    assert [tuple(pair) for pair in found.pairs.tolist()] == best[:25]
    np.testing.assert_allclose(found.probabilities, 1 / (1 + np.exp(0.5 - found.logits.astype(float))), rtol=1e-6)
    row = sorted((j for j in range(40) if j != 9 and tuple(sorted((9, j))) not in known), key=lambda j: -matrix[9, j])
    assert asked.recommend(4, nodes=["n9"]).pairs[:, 1].tolist() == row[:4]
    np.testing.assert_array_equal(asked.predict_proba([("n9", "n1")]), asked.predict_links([(9, 1)]).probabilities)
    metrics = asked.metrics(split.test)
    again = pickle.loads(pickle.dumps(asked))  # noqa: S301 - what was just written
    assert again.metrics(split.test) == metrics
    assert 0 <= metrics["auc"] <= 1


def test_calibration_is_fitted_when_it_is_first_asked_for_and_once(split: vgae.LinkSplit) -> None:
    calls = []

    def calibrate() -> Calibration:
        calls.append(1)
        return Calibration(0.0)

    asked = Asked(replace(scored_by(torch.ones(40, 40), split, symmetric=True), calibrate=calibrate))
    asked.logits([(1, 2)])
    assert calls == []
    asked.predict_proba([(1, 2)])
    asked.recommend(1)
    assert calls == [1]


def test_what_has_embeddings_has_similar_nodes_and_frames(split: vgae.LinkSplit) -> None:
    z = torch.randn(40, 5, generator=torch.Generator().manual_seed(1))
    asked = AskedForEmbeddings(scored_by(z @ z.T, split, symmetric=True), z)
    cosines = torch.nn.functional.cosine_similarity(z, z[7:8]).numpy()
    order = [node for node in np.argsort(-cosines).tolist() if node != 7][:3]
    assert [name for name, _ in asked.similar("n7", 3)] == [f"n{node}" for node in order]
    np.testing.assert_allclose([cosine for _, cosine in asked.similar(7, 3)], cosines[order], rtol=1e-5)
    np.testing.assert_array_equal(asked.to_frame().loc["n7"], z[7])
    np.testing.assert_array_equal(asked.transform(), z)


def test_a_fitted_estimator_that_was_asked_can_be_pickled(split: vgae.LinkSplit) -> None:
    model = vgae.GAE(iterations=3).fit(split.train, validation=split.val)
    best = model.recommend(5)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - what was just written
    np.testing.assert_array_equal(again.recommend(5).probabilities, best.probabilities)
