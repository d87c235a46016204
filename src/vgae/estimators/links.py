"""Whatever can be asked of anything that scores pairs: logits, probabilities, new links, scores on held-out pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from vgae.errors import InputError
from vgae.evaluation.calibration import Calibration
from vgae.evaluation.evaluate import RowScorer, score_held_out
from vgae.evaluation.held_out import check_held_out, num_links_among
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs, check_nodes, check_pairs
from vgae.graph.split import HeldOut
from vgae.ops import Excluded, LogitRows, top_of_all, top_of_each_row
from vgae.options import whole_number

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of node indices (M×2), their logits at the posterior mean, and the probabilities of a link.

    Where draws from the posterior were asked for, probabilities are means over them and `std` is their spread.
    """

    pairs: Pairs
    logits: FloatArray
    probabilities: FloatArray
    std: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Scored:
    """A scorer, the graph that it is asked about, and what is known beside the graph's links.

    `calibrate` gives the way from its logits to probabilities, and is called when that is first asked for.
    """

    scorer: RowScorer
    graph: Graph
    excluded_pairs: Pairs  # links that are known beside those of the graph, and never recommended
    calibrate: Callable[[], Calibration]

    @cached_property
    def calibration(self) -> Calibration:
        """How logits become probabilities."""
        return self.calibrate()


class LinkPredictor:
    """What can be asked of a scorer of pairs. It knows one record, `scored_`, and is a `RowScorer` itself."""

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
        """The logits of all pairs, a block of rows at a time."""
        return self._scored().scorer.rows()

    def calibration(self) -> Calibration:
        """How logits become probabilities."""
        return self._scored().calibration

    def logits(self, pairs: npt.ArrayLike) -> FloatArray:
        """Logits of links between pairs of node indices (M×2), at the posterior mean."""
        scored = self._scored()
        return scored.scorer.logits(check_pairs(pairs, scored.graph.num_nodes))

    def predict_proba(self, pairs: npt.ArrayLike) -> FloatArray:
        """Probability of a link between each pair of node indices (M×2), calibrated to the graph's density."""
        return self.calibration().probabilities(self.logits(pairs)).astype(np.float32)

    def predict_links(self, pairs: npt.ArrayLike) -> Links:
        """Logit and probability of a link between each pair of node indices (M×2)."""
        checked = check_pairs(pairs, self.graph_.num_nodes)
        return self._links(checked, self.logits(checked))

    def recommend(self, k: int = 10, nodes: npt.ArrayLike | None = None) -> Links:
        """The best new links, best first: `k` of the whole graph, or `k` for each of these node indices.

        Links of the training graph, of its validation set, and all held-out links of a saved run are known and left
        out. Exact, by blocks of rows; of equal logits the smaller indices come first.
        """
        return self._links(*self._best(k, nodes))

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

    # ----------------------------------------------------------------------------------------------------------- inside

    def _links(self, pairs: Pairs, logits: FloatArray) -> Links:
        """Pairs with their probabilities."""
        return Links(pairs, logits, self.calibration().probabilities(logits).astype(np.float32))

    @torch.no_grad()
    def _best(self, k: int, nodes: npt.ArrayLike | None) -> tuple[Pairs, FloatArray]:
        """The pairs that are recommended, and their logits."""
        k = whole_number(k, "k", 1)
        chosen = None if nodes is None else self._rows(nodes)
        rows, graph = self.rows(), self.graph_
        known = Excluded.of(np.concatenate([graph.edges, self.excluded_pairs_]), graph.num_nodes, rows.device)
        if chosen is None:
            found = top_of_all(rows, top=k, symmetric=self.symmetric, excluded=known)
        else:
            found = top_of_each_row(rows, top=k, rows=chosen, excluded=known)
        return found.pairs.cpu().numpy(), found.logits.cpu().numpy()

    def _rows(self, nodes: npt.ArrayLike) -> list[int]:
        """Different node indices, at least one."""
        try:
            rows = check_nodes(nodes, self.graph_.num_nodes)
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("nodes: a list of node indices is needed.") from None
        if not rows:
            raise InputError("nodes: none is given; name at least one, or leave nodes out for the best of all links.")
        if len(set(rows)) < len(rows):
            twice = next(node for place, node in enumerate(rows) if node in rows[:place])
            raise InputError(f"nodes: {twice} is given twice; name each node once.")
        return rows
