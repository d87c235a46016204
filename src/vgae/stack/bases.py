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
from vgae.graph.pairs import IntArray, Pairs, canonical, check_pairs
from vgae.machine import working_on
from vgae.model.inputs import EncoderInputs
from vgae.model.scorer import ModelScorer
from vgae.ops import Factors
from vgae.stack.config import Base
from vgae.train.config import Config, choose_device
from vgae.train.job import Job
from vgae.train.loop import train

CHUNK = 100_000  # pairs that an auto-encoder or an embedding scores at a time

FloatArray = npt.NDArray[np.float32]
OnBase = Callable[[str], None]  # is given the name of a base before it is fitted


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
        return tuple(column for base in self.bases for column in base.columns)

    @cached_property
    def owners(self) -> IntArray:
        """The place of the base that each column comes from."""
        return np.repeat(np.arange(len(self.bases)), [len(base.columns) for base in self.bases])

    @cached_property
    def similarities(self) -> dict[str, Similarity]:
        """Those among the bases."""
        names = [base.text for base in self.bases if base.text in SIMILARITIES]
        return {name: SIMILARITIES[name].of(self.graph) for name in names}

    @cached_property
    def heuristics(self) -> dict[str, Scorer]:
        """Baselines that are formulas."""
        formulas = [base for base in self.bases if _is_baseline(base) and base.text not in self.embeddings]
        return {base.text: BASELINES[base.text](self.graph, base.seed) for base in formulas}

    def describe(self, pairs: Pairs) -> FloatArray:
        """Evidence about M pairs, M×C; the order of the pairs and of their ends plays no part, to the bit.

        Other pairs that are asked about at the same time can change the last bits, as products of matrices do.
        """
        different, places = self.sorted_pairs(pairs)
        if not len(different):
            return np.empty((0, len(self.columns)), dtype=np.float32)
        described = np.empty((len(different), len(self.columns)), dtype=np.float32)
        for number, base in enumerate(self.bases):
            described[:, self.owners == number] = self._described(base, different)
        return described[places]

    def sorted_pairs(self, pairs: Pairs) -> tuple[Pairs, IntArray]:
        """The different ones among some pairs, canonical and sorted, and which of them each pair is."""
        asked = canonical(check_pairs(pairs, self.graph.num_nodes))
        codes, places = np.unique(asked[:, 0] * self.graph.num_nodes + asked[:, 1], return_inverse=True)
        return np.stack(np.divmod(codes, self.graph.num_nodes), axis=1), places

    def _described(self, base: Base, pairs: Pairs) -> FloatArray:
        if base.text in SIMILARITIES:
            return self.similarities[base.text].describe(pairs)
        if base.text in self.heuristics:
            return self.heuristics[base.text].logits(pairs)[:, None]
        scorers = self.models[base.text] if base.config is not None else (self.embeddings[base.text],)
        found = np.empty((len(pairs), 1), dtype=np.float32)
        for start in range(0, len(pairs), CHUNK):
            part = pairs[start : start + CHUNK]
            found[start : start + CHUNK, 0] = sum(_symmetric_logits(scorer, part) for scorer in scorers)
        return found / np.float32(len(scorers))

    def row_scorers(self) -> Iterator[RowScorer]:
        """What ranks all pairs at the cost of a product of matrices: auto-encoders with factors, embeddings, cosines.

        Of an auto-encoder it is the first of its trainings.
        """
        for scorers in self.models.values():
            if scorers[0].model.decoder.factorised:
                yield scorers[0] if scorers[0].symmetric else _BothWays(scorers[0])
        yield from self.embeddings.values()
        for similarity in self.similarities.values():
            scorer = similarity.row_scorer()
            if scorer is not None:
                yield scorer

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
        models = {
            base.text: tuple(_on(scorer, graph, base.config.device) for scorer in self.models[base.text])
            for base in self.bases
            if base.config is not None
        }
        return replace(self, graph=graph, models=models)


def fit_bases(graph: Graph, bases: Sequence[Base], seeds: int, on_base: OnBase | None = None) -> FittedBases:
    """Fit the bases on a graph; `on_base` is called before each."""
    models: dict[str, tuple[ModelScorer, ...]] = {}
    embeddings: dict[str, EmbeddingScorer] = {}
    for base in bases:
        if on_base is not None:
            on_base(base.text)
        try:
            if base.config is not None:
                models[base.text] = tuple(_trained(graph, base.config, number) for number in range(seeds))
            elif _is_baseline(base):
                scorer = BASELINES[base.text](graph, base.seed)
                if isinstance(scorer, EmbeddingScorer):
                    embeddings[base.text] = scorer
        except InputError as error:
            raise InputError(f"The base {base.text}: {error}") from None
        except TrainingError as error:
            raise TrainingError(f"The base {base.text}: {error} Or leave it out of bases.") from None
    return FittedBases(graph, tuple(bases), models, embeddings)


def _is_baseline(base: Base) -> bool:
    return base.config is None and base.text not in SIMILARITIES


def _trained(graph: Graph, config: Config, number: int) -> ModelScorer:
    """The model of one of several trainings, which differ in their seeds."""
    trained = train(Job.of(graph, replace(config, seed=(config.seed + number) % 2**32)))
    return ModelScorer(trained.model, trained.embeddings)


def _symmetric_logits(scorer: ModelScorer | EmbeddingScorer, pairs: Pairs) -> FloatArray:
    """Logits; of a decoder that tells directions apart, the mean of both ways."""
    logits = scorer.logits(pairs)
    return logits if scorer.symmetric else (logits + scorer.logits(pairs[:, ::-1])) / np.float32(2)


@dataclass(frozen=True, eq=False)
class _BothWays:
    """A model whose factors tell directions apart, by the mean of both ways: factors too, of twice the width."""

    scorer: ModelScorer
    symmetric: bool = True

    def logits(self, pairs: Pairs) -> FloatArray:
        """The mean of the logits of both ways."""
        return _symmetric_logits(self.scorer, pairs)

    @torch.no_grad()
    def rows(self) -> Factors:
        """[q, k]·[k, q] / 2, and half of both biases for either end."""
        one_way = self.scorer.model.decoder.require_factors(self.scorer.z)
        q, k = one_way.q, one_way.columns
        biases = [bias for bias in (one_way.row_bias, one_way.column_bias) if bias is not None]
        bias = torch.stack(biases).sum(dim=0) / 2 if biases else None
        return Factors(torch.cat([q, k], dim=1) / 2, torch.cat([k, q], dim=1), bias, bias)


@torch.no_grad()
def _on(scorer: ModelScorer, graph: Graph, wanted: str) -> ModelScorer:
    """The model at the embeddings of another graph's nodes; on the device of the training if it is there."""
    try:
        device = choose_device(wanted)
    except InputError:
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
