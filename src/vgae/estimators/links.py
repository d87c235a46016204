"""Whatever can be asked of anything that scores pairs: logits, probabilities, new links, scores on held-out pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vgae.errors import InputError
from vgae.estimators.explanation import Explanation
from vgae.evaluation.all_pairs import Candidates, ListScorer, Ranker, census, rank_all_pairs, sweep_list
from vgae.evaluation.calibration import Calibration, Evidence
from vgae.evaluation.evaluate import score_held_out
from vgae.evaluation.held_out import check_held_out, num_links_among
from vgae.evaluation.histogram import Histogram
from vgae.evaluation.metrics import auc_and_ap, link_metrics
from vgae.evaluation.promising import best_of_all
from vgae.evaluation.reliability import Reliability, joined, reliability
from vgae.graph.graph import Graph
from vgae.graph.lookup import find_nodes, find_pairs
from vgae.graph.pairs import AnyArray, Pairs, contains, distinct
from vgae.graph.split import HeldOut, LinkSplit
from vgae.io.frames import links_table, pandas_frame
from vgae.ops import LogitRows, top_of_each_row
from vgae.options import whole_number
from vgae.words import count

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Links:
    """Pairs of nodes of a graph, by their indices (M×2), with their logits and the probabilities of a link.

    `known` says for each pair what was known of it: "train" for a link of the graph that the model sees, "held_out" for
    one that is known beside those, "self" for a node with itself, and "no" for all others. Where draws from the
    posterior were asked for, probabilities are means over them and `std` is their spread; logits are those of its mean.
    """

    graph: Graph
    pairs: Pairs
    logits: FloatArray
    probabilities: FloatArray
    known: npt.NDArray[np.str_]
    std: FloatArray | None = None

    @property
    def ids(self) -> AnyArray:
        """The nodes' ids, in the shape of the pairs."""
        return self.graph.ids_of(self.pairs)

    def to_frame(self) -> Any:
        """A pandas data frame with a row per pair: source and target by their ids, probability, logit, std, known.

        std is there where draws were asked for.
        """
        return pandas_frame(self._ends() | self._columns())

    def to_arrow(self) -> Any:
        """The same as an Arrow table; `polars.from_arrow` takes it as it is."""
        return links_table(self._ends(), self._columns())

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Links({count(len(self), 'pair')} of {count(self.graph.num_nodes, 'node')})"

    def _ends(self) -> dict[str, AnyArray]:
        return {name: self.graph.ids_of(self.pairs[:, end]) for end, name in enumerate(("source", "target"))}

    def _columns(self) -> dict[str, AnyArray]:
        spread = {} if self.std is None else {"std": self.std}
        return {"probability": self.probabilities, "logit": self.logits, **spread, "known": self.known}


@dataclass(frozen=True, eq=False)
class Scored:
    """A scorer, the graph that it is asked about, and what is known beside the graph's links.

    `calibrate` gives the way from its logits to probabilities, and is called when that is first asked for.
    """

    scorer: Ranker
    graph: Graph
    excluded_pairs: Pairs  # links that are known beside those of the graph, and never recommended
    calibrate: Callable[[], Calibration]
    num_graph_links: int | None = None  # where it is known how many links the whole graph has
    validation: Pairs = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))  # what it is calibrated by
    by_direction: bool = True  # whether directions count, where links have one and the scorer is not symmetric

    @cached_property
    def links_graph(self) -> Graph:
        """The graph whose links the scorer knows: to one that is symmetric, links have no directions."""
        return self.graph.as_scored(symmetric=self.scorer.symmetric or not self.by_direction)

    @cached_property
    def calibration(self) -> Calibration:
        """How logits become probabilities."""
        return self.calibrate()

    @property
    def num_links(self) -> int:
        """Links of the whole graph, as far as they are known."""
        if self.num_graph_links is not None:
            return self.num_graph_links
        return self.links_graph.num_links + len(self.new_links(self.excluded_pairs))

    def new_links(self, links: Pairs) -> Pairs:
        """Held-out links as the scorer tells them apart; where it does not, each pair once, and none of the graph's."""
        graph = self.links_graph
        if graph.directed == self.graph.directed:
            return links
        ranks = graph.all_pairs.ranks(links[links[:, 0] != links[:, 1]])
        ranks = ranks[np.sort(np.unique(ranks, return_index=True)[1])]
        return graph.all_pairs.pairs(ranks[~contains(graph.all_pairs.ranks(graph.links), ranks)])

    def evidence(self, links: Pairs, histogram: Histogram) -> Evidence:
        """What some of the unseen links, and all pairs outside the graph, tell about probabilities."""
        unseen = self.num_links - self.links_graph.num_links
        return Evidence(histogram, self.scorer.logits(links), unseen, self.num_links)


class LinkPredictor:
    """What can be asked of a scorer of pairs. It knows one record, `scored_`, and is a scorer like the one in it."""

    scored_: Scored

    def _scored(self) -> Scored:
        """The scorer and its graph; an estimator refuses where nothing has been fitted."""
        return self.scored_

    @property
    def graph_(self) -> Graph:
        """The graph that is asked about: the training graph, or the one given to `on`."""
        return self._scored().graph

    @property
    def excluded_pairs_(self) -> Pairs:
        """Links that are known beside those of the graph, and never recommended."""
        return self._scored().excluded_pairs

    @property
    def symmetric(self) -> bool:
        """Whether the logit of (i, j) is that of (j, i)."""
        return self._scored().scorer.symmetric

    def rows(self) -> LogitRows:
        """The logits of all pairs, a block of rows at a time; what ranks a list of pairs has none."""
        scorer = self._scored().scorer
        if isinstance(scorer, ListScorer):
            raise InputError("This model scores pairs one by one and has no rows; ask for the logits of pairs.")
        return scorer.rows()

    def calibration(self) -> Calibration:
        """How logits become probabilities: by the validation links or, without any, by the loss's weight taken back."""
        return self._scored().calibration

    def logits(self, pairs: npt.ArrayLike, *, ids: bool = False) -> FloatArray:
        """Logits of links between pairs of nodes (M×2), at the posterior mean.

        Here and wherever nodes are named: whole numbers are node indices, and everything else is an id, as in
        [("Valjean", "Javert")]. Ids that are whole numbers are given as text ("31336") or with `ids=True`, by which
        whatever is given is an id.
        """
        scored = self._scored()
        return scored.scorer.logits(find_pairs(scored.graph, pairs, ids=ids))

    def predict_proba(self, pairs: npt.ArrayLike, *, ids: bool = False) -> FloatArray:
        """Probability of a link between each pair of nodes (M×2), calibrated to the graph's density."""
        return self.calibration().probabilities(self.logits(pairs, ids=ids)).astype(np.float32)

    def predict_links(self, pairs: npt.ArrayLike, *, ids: bool = False) -> Links:
        """Logit and probability of a link between each pair of nodes (M×2), and what is known of it."""
        found = find_pairs(self.graph_, pairs, ids=ids)
        return self._links(found, self.logits(found))

    def recommend(self, k: int = 10, nodes: npt.ArrayLike | None = None, *, ids: bool = False) -> Links:
        """The best new links, best first: `k` of the whole graph, or `k` for each of these nodes.

        Links of the training graph, of its validation set, and all held-out links of a saved run are known and left
        out. In a bipartite graph, links go across; in a directed one they go from source to target, those of `nodes`
        from these, and where one way is known the other may be new, unless the model cannot tell. Exact, by blocks of
        rows; of equal logits the smaller indices come first. `logits` says how nodes are named.
        """
        return self._links(*self._best(k, nodes, ids))

    def explain(self, a: Any, b: Any, *, ids: bool = False, top: int = 10) -> Explanation:
        """What speaks for a link between two nodes: the strongest common neighbours, paths and shared features by name.

        `top` of each kind are listed, beside the model's logit and probability; `to_json` gives it as plain data.
        """
        graph, top = self.graph_, whole_number(top, "top", 1)
        pair = find_pairs(graph, [(a, b)], ids=ids)
        if graph.sides is not None and graph.sides[pair[0, 0]] == graph.sides[pair[0, 1]]:
            raise InputError("Both nodes are of the same kind, and links of a bipartite graph go across.")
        names = getattr(getattr(getattr(self, "run_", None), "recipe", None), "features", ())
        found = import_module("vgae.baselines.explain").explain_pair(  # which few ask for
            graph.as_scored(symmetric=True),
            tuple(pair[0].tolist()),
            feature_names=names if graph.num_features and len(names) == graph.num_features else None,
            top=top,
        )
        links = self.predict_links(pair)
        return Explanation(float(links.probabilities[0]), float(links.logits[0]), str(links.known[0]), found)

    def metrics(self, held_out: HeldOut) -> dict[str, float]:
        """AUC and AP on held-out pairs, as fractions of 1; `vgae.evaluate` knows more metrics.

        Links that the model was trained on score too well; a UserWarning says that there are some.
        """
        held_out = check_held_out(held_out, self.graph_.num_nodes, "held_out")
        seen = num_links_among(held_out.links, self.graph_)
        if seen:
            warnings.warn(
                f"{seen:,} of the {len(held_out.links):,} links to score are links of the model's own graph.",
                UserWarning,
                stacklevel=2,
            )
        return auc_and_ap(*score_held_out(self, held_out))

    def evaluate(self, held_out: HeldOut, *, protocol: str = "paper", negatives: Any = None) -> dict[str, float]:
        """All metrics by name, as fractions of 1.

        AUC, AP, MRR and Hits@K on the held-out pairs, as the paper has it; precision@K, recall@K, node_mrr and
        node_hits@K of the held-out links among all pairs that are not known (`vgae.evaluation.all_pairs`).
        By the protocols heart and ogb (`vgae.evaluate_protocol`), MRR or Hits@K among other non-links; `negatives` are
        those for ogb.
        """
        held_out = check_held_out(held_out, self.graph_.num_nodes, "held_out")
        if protocol != "paper" or negatives is not None:
            return self._evaluate_by(protocol, held_out, negatives)
        sampled = link_metrics(*score_held_out(self, held_out))
        return sampled | self.rank_all_pairs(held_out.links)

    def rank_all_pairs(self, links: Pairs) -> dict[str, float]:
        """How these links are ranked among all pairs that are not known, as far as the model tells directions apart."""
        scored = self._scored()
        return rank_all_pairs(scored.scorer, scored.new_links(links), self.candidates(links))

    def _evaluate_by(self, protocol: str, held_out: HeldOut, negatives: Any) -> dict[str, float]:
        protocols = import_module("vgae.evaluation.protocols")  # which nobody needs who trains or predicts
        known = self.candidates(held_out.links).known  # no negatives, like validation links when test links are scored
        split = LinkSplit(self._scored().links_graph, HeldOut(known, known[:0]), held_out, seed=0)
        given = None if negatives is None else {"test": negatives}
        scores = protocols.evaluate_protocol(self, split, protocol, negatives=given, sets=("test",))
        found: dict[str, float] = scores.metrics["test"]
        return found

    def density(self) -> float:
        """The share of pairs that are links, in the whole graph as far as it is known.

        A saved run knows its split, and validation pairs made by `split_links` know how many links the graph has. Else
        it is the links for training and validation that count, and on another graph that graph's links.
        """
        scored = self._scored()
        return scored.num_links / scored.links_graph.num_candidate_pairs

    def candidates(self, links: Pairs | None = None) -> Candidates:
        """All pairs that are not known; these links are taken as not known."""
        scored = self._scored()
        graph = scored.links_graph
        known = np.concatenate([graph.links, self.excluded_pairs_])
        if links is not None and len(links):
            links = scored.new_links(links)
            asked = distinct(graph.all_pairs.ranks(links[links[:, 0] != links[:, 1]]))
            known = known[~contains(asked, graph.all_pairs.ranks(known))]
        return Candidates.of(graph, known)

    def reliability(self, held_out: HeldOut) -> tuple[Reliability, Reliability]:
        """How far σ(logit), and how far calibrated probabilities, can be trusted: over all pairs that are not known.

        On the validation pairs that the calibration was fitted to, each half is judged by a fit to the other.
        """
        links = check_held_out(held_out, self.graph_.num_nodes, "held_out").links
        if not len(links):
            raise InputError("held_out: there are no links in it to judge probabilities by.")
        scored = self._scored()
        is_validation, links = np.array_equal(links, scored.validation), scored.new_links(links)
        candidates, logits = census(scored.scorer, self.candidates(links)), self.logits(links)
        num_links = max(scored.num_links, len(links))
        raw = reliability(Calibration(shift=0.0), candidates, logits, num_links)
        if is_validation:
            halves = [
                reliability(
                    Calibration.fit(scored.evidence(rest, candidates)), candidates, self.logits(half), num_links
                )
                for half, rest in ((links[::2], links[1::2]), (links[1::2], links[::2]))
                if len(half)
            ]
            return raw, joined(*halves) if len(halves) == 2 else halves[0]
        return raw, reliability(self.calibration(), candidates, logits, num_links)

    # ----------------------------------------------------------------------------------------------------------- inside

    def _links(self, pairs: Pairs, logits: FloatArray) -> Links:
        """Pairs with their probabilities, and what is known of them."""
        probabilities = self.calibration().probabilities(logits).astype(np.float32)
        known = _known(pairs, self._scored().links_graph, self.excluded_pairs_)
        return Links(self.graph_, pairs, logits, probabilities, known)

    @torch.no_grad()
    def _best(self, k: int, nodes: npt.ArrayLike | None, ids: bool) -> tuple[Pairs, FloatArray]:
        """The pairs that are recommended, and their logits."""
        k = whole_number(k, "k", 1)
        graph = self.graph_
        chosen = None if nodes is None else find_nodes(graph, nodes, ids=ids)
        scorer = self._scored().scorer
        if isinstance(scorer, ListScorer):
            return _best_listed(scorer, self.candidates(), k, chosen)
        rows = self.rows()
        excluded = self.candidates().excluded(rows.device)
        if chosen is None:
            found = best_of_all(rows, top=k, symmetric=self.symmetric, excluded=excluded)
        else:
            found = top_of_each_row(rows, top=k, rows=chosen, excluded=excluded)
        return found.pairs.cpu().numpy(), found.logits.cpu().numpy()


def refuse_draws(what: str, samples: int | None, seed: int | None) -> None:
    """Refuse to draw from the posterior of something that has none."""
    if samples is not None or seed is not None:
        raise InputError(f"samples: {what} has one score for each pair and no posterior to draw from.")


def _best_listed(
    scorer: ListScorer, candidates: Candidates, k: int, nodes: Sequence[int] | None
) -> tuple[Pairs, FloatArray]:
    """The best of a first stage, or of that of each of some nodes, in the order of these; with their logits."""
    if nodes is None:
        best = sweep_list(scorer.listed(candidates, k), candidates, candidates.known[:0], k).best
        return best.pairs.numpy(), best.logits.numpy()
    listed = scorer.listed_for(candidates, list(nodes), k)
    turns = np.empty(candidates.num_nodes, dtype=np.int64)
    turns[list(nodes)] = np.arange(len(nodes))
    turn = turns[listed.pairs[:, 0]]
    order = np.lexsort((listed.pairs[:, 1], -listed.logits, turn))
    first = np.searchsorted(turn[order], np.arange(len(nodes)))
    order = order[np.arange(len(order)) - first[turn[order]] < k]
    return listed.pairs[order], listed.logits[order]


def _known(pairs: Pairs, graph: Graph, excluded: Pairs) -> npt.NDArray[np.str_]:
    """What is known of each pair, in the words of `Links`."""
    numbering = graph.all_pairs
    excluded = excluded[excluded[:, 0] != excluded[:, 1]]
    ranks = numbering.ranks(pairs)
    words = np.full(len(pairs), "no", dtype="<U8")
    words[contains(distinct(numbering.ranks(excluded)), ranks)] = "held_out"
    words[contains(numbering.ranks(graph.links), ranks)] = "train"
    words[pairs[:, 0] == pairs[:, 1]] = "self"  # last: it has no rank of its own
    return words
