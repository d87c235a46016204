"""The bases of a stack, fitted on one graph: what they say about pairs of its nodes, a column or a few for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from vgae.baselines import BASELINES
from vgae.baselines.embedding import EmbeddingScorer
from vgae.baselines.similarities import SIMILARITIES
from vgae.baselines.similarity import Similarity
from vgae.errors import InputError, TrainingError
from vgae.evaluation.evaluate import RowScorer, Scorer
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, canonical
from vgae.machine import working_on
from vgae.model.inputs import EncoderInputs
from vgae.model.scorer import ModelScorer
from vgae.stack.config import Base
from vgae.train.config import choose_device
from vgae.train.job import Job
from vgae.train.loop import train

CHUNK = 100_000  # pairs that an auto-encoder scores at a time

FloatArray = npt.NDArray[np.float32]
Told = Callable[[str], None]  # is given the name of a base before it is fitted


@dataclass(frozen=True, eq=False)
class FittedBases:
    """All bases on one graph. Auto-encoders and embeddings were fitted; everything else is computed from the graph."""

    graph: Graph
    bases: tuple[Base, ...]
    models: dict[str, tuple[ModelScorer, ...]] = field(default_factory=dict)  # one for each seed
    embeddings: dict[str, EmbeddingScorer] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The name of each column of evidence."""
        return tuple(column for base in self.bases for column in columns_of(base))

    @cached_property
    def owners(self) -> IntArray:
        """The place of the base that each column comes from."""
        return np.repeat(np.arange(len(self.bases)), [len(columns_of(base)) for base in self.bases])

    @cached_property
    def similarities(self) -> dict[str, Similarity]:
        """Those among the bases."""
        names = [base.text for base in self.bases if base.text in SIMILARITIES]
        return {name: SIMILARITIES[name].of(self.graph) for name in names}

    @cached_property
    def heuristics(self) -> dict[str, Scorer]:
        """Baselines that are formulas."""
        names = [base.text for base in self.bases if base.config is None and base.text not in SIMILARITIES]
        return {name: BASELINES[name](self.graph, 0) for name in names if name not in self.embeddings}

    def describe(self, pairs: Pairs) -> FloatArray:
        """Evidence about M pairs, M×C; the order of a pair's ends plays no part."""
        ordered = canonical(np.asarray(pairs, dtype=np.int64).reshape(-1, 2))
        if not len(ordered):
            return np.empty((0, len(self.columns)), dtype=np.float32)
        return np.concatenate([self._described(base, ordered) for base in self.bases], axis=1)

    def _described(self, base: Base, pairs: Pairs) -> FloatArray:
        if base.text in SIMILARITIES:
            return self.similarities[base.text].describe(pairs)
        if base.config is None:
            scorer = self.embeddings.get(base.text) or self.heuristics[base.text]
            return scorer.logits(pairs)[:, None]
        scorers = self.models[base.text]
        total = np.zeros(len(pairs), dtype=np.float32)
        for scorer in scorers:
            total += _symmetric_logits(scorer, pairs)
        return (total / np.float32(len(scorers)))[:, None]

    def row_scorers(self) -> Iterator[RowScorer]:
        """What ranks all pairs at the cost of a product of matrices: auto-encoders with factors, embeddings, cosines."""
        for scorers in self.models.values():
            if scorers[0].model.decoder.factorised:
                yield scorers[0]
        yield from self.embeddings.values()
        if "cosines" in self.similarities:
            yield EmbeddingScorer(self.similarities["cosines"].propagated[0])  # type: ignore[attr-defined]

    def on(self, graph: Graph) -> FittedBases:
        """The same bases on another graph with the same features, or with more nodes and links."""
        if self.embeddings:
            raise InputError(
                f"The base {next(iter(self.embeddings))} knows the nodes that it was fitted on and no others; "
                "fit a stack without it to ask about new nodes."
            )
        num_features = self.graph.num_features
        if self.models and num_features == 0:
            raise InputError(
                "This stack was fitted without features, so its auto-encoders know nothing of other nodes; fit it with "
                "features, or of similarities alone."
            )
        if graph.num_features != num_features:
            raise InputError(
                f"features: the stack was fitted on {num_features} columns, but this graph has {graph.num_features}."
            )
        models = {name: tuple(_on(scorer, graph) for scorer in scorers) for name, scorers in self.models.items()}
        return replace(self, graph=graph, models=models)


def columns_of(base: Base) -> tuple[str, ...]:
    """The names of a base's columns."""
    if base.text in SIMILARITIES:
        return SIMILARITIES[base.text].columns
    return (base.text,)


def fit_bases(graph: Graph, bases: Sequence[Base], seeds: int, told: Told | None = None) -> FittedBases:
    """Fit the bases on a graph; `told` hears of each before it is fitted."""
    models: dict[str, tuple[ModelScorer, ...]] = {}
    embeddings: dict[str, EmbeddingScorer] = {}
    for base in bases:
        if told is not None:
            told(base.text)
        if base.config is not None:
            models[base.text] = tuple(_trained(graph, base, number) for number in range(seeds))
        elif base.text in BASELINES and base.text not in SIMILARITIES:
            scorer = BASELINES[base.text](graph, 0)
            if isinstance(scorer, EmbeddingScorer):
                embeddings[base.text] = scorer
    return FittedBases(graph, tuple(bases), models, embeddings)


def _trained(graph: Graph, base: Base, number: int) -> ModelScorer:
    assert base.config is not None  # noqa: S101 - which the caller has asked
    config = replace(base.config, seed=(base.config.seed + number) % 2**32)
    try:
        trained = train(Job.of(graph, config))
    except TrainingError as error:
        raise TrainingError(f"The base {base.text}: {error} Or leave it out of bases.") from None
    return ModelScorer(trained.model, trained.embeddings)


def _symmetric_logits(scorer: ModelScorer, pairs: Pairs) -> FloatArray:
    """Logits in chunks; of a decoder that tells directions apart, the mean of both ways."""
    found = np.empty(len(pairs), dtype=np.float32)
    for start in range(0, len(pairs), CHUNK):
        part = pairs[start : start + CHUNK]
        logits = scorer.logits(part)
        found[start : start + CHUNK] = logits if scorer.symmetric else (logits + scorer.logits(part[:, ::-1])) / 2
    return found


@torch.no_grad()
def _on(scorer: ModelScorer, graph: Graph) -> ModelScorer:
    device = choose_device("auto")
    try:
        with working_on(device):
            posterior = scorer.model.to(device).encode(EncoderInputs.from_graph(graph, device))
    finally:
        scorer.model.cpu()
    return ModelScorer(scorer.model, posterior.mean.cpu())


def by_base(bases: FittedBases, values: npt.NDArray[np.float64]) -> Mapping[str, float]:
    """One number for each column, added up base by base."""
    sums = np.bincount(bases.owners, values, minlength=len(bases.bases))
    return dict(zip((base.text for base in bases.bases), sums.tolist(), strict=True))
