"""GAE and VGAE as scikit-learn sees them: classifiers of pairs of nodes into links (1) and non-links (0)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

from vgae.errors import InputError
from vgae.estimators.links import FloatArray, LinkPredictor
from vgae.estimators.predict import Predictor
from vgae.evaluation.evaluate import score_held_out
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.folds import LinkShuffleSplit
from vgae.graph.lookup import find_pairs
from vgae.graph.pairs import IntArray, distinct
from vgae.graph.samples import LinkSamples, check_labels, codes_of, held_out_of
from vgae.graph.split import VAL_FRACTION, HeldOut
from vgae.train.config import Config


class PairClassifier(Predictor):
    """What scikit-learn's searches, scorers and pipelines ask for beside what every fitted model offers."""

    def __sklearn_tags__(self) -> Tags:
        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False, one_d_labels=True),  # a graph needs no y, LinkSamples do
            transformer_tags=TransformerTags(preserves_dtype=[]),  # embeddings are of float32, whatever goes in
            classifier_tags=ClassifierTags(multi_class=False),
            # Rows of two node indices or ids, or an adjacency matrix: neither has anything below 0.
            input_tags=InputTags(two_d_array=True, sparse=True, string=True, positive_only=True),
        )

    @property
    def classes_(self) -> IntArray:
        """0 for a non-link, 1 for a link."""
        self._fitted()
        return np.array([0, 1])

    def decision_function(self, pairs: npt.ArrayLike) -> FloatArray:
        """Logits of links between pairs of node indices or ids (M×2): `logits` by scikit-learn's name."""
        return self.logits(pairs)

    def predict(self, pairs: npt.ArrayLike) -> IntArray:
        """1 for each pair of node indices or ids (M×2) whose logit is above 0, else 0.

        Where the loss weights links up, as it does by default, that is the more likely answer if as many of the pairs
        are links as not; of all pairs far fewer are, which `predict_proba` knows.
        """
        return (self.logits(pairs) > 0).astype(np.int64)

    def score(self, held_out: Any, y: npt.ArrayLike | None = None) -> float:
        """AUC as a fraction of 1: one number, which scikit-learn's tools compare models by.

        On held-out pairs, or on pairs of node indices or ids (M×2) with labels `y`, 1 for a link and 0 for a non-link.
        `metrics` has AP beside it, and `vgae.evaluate` more.
        """
        return score_of(self, held_out, y)

    def transform(self, graph: Any = None) -> FloatArray:
        """Embeddings (N×latent_dim) over the training graph or another, as `Predictor` has it; samples are refused."""
        require_graph(graph, "transform")
        return super().transform(graph)

    def on(self, graph: Any, *, known: npt.ArrayLike | None = None) -> Self:
        """The trained model on another graph, as `Predictor` has it; samples are refused."""
        require_graph(graph, "on")
        return super().on(graph, known=known)


def score_of(model: LinkPredictor, held_out: Any, y: npt.ArrayLike | None) -> float:
    """AUC of any model on held-out pairs, or on pairs with labels."""
    if isinstance(held_out, HeldOut) or (y is None and not isinstance(held_out, LinkSamples)):
        return model.metrics(held_out)["auc"]
    # Without the warning that `metrics` gives about links seen in training: tools ask for the score on these too.
    pairs = find_pairs(model.graph_, held_out)
    return auc_and_ap(*score_held_out(model, held_out_of(pairs, y)))["auc"]


def training_of(
    data: Any, y: npt.ArrayLike | None, config: Config, validation: HeldOut | None
) -> tuple[Any, HeldOut | None]:
    """What to train on and to validate by; of samples, the graph of their links.

    Early stopping needs validation pairs. Where none are given with samples, a share of their rows is held back.
    """
    if not isinstance(data, LinkSamples):
        return data, validation
    if "directions" in data.edge_values and not config.composition.outline(1).decoder.symmetric:
        raise InputError(
            f"decoder: {config.value_of('decoder').name} tells directions apart, but a row of samples is a pair of "
            "nodes without one; fit the training graph of vgae.split_links, or take a symmetric decoder."
        )
    labels = check_labels(y, len(data))
    if config.early_stopping is None or validation is not None:
        return data.graph(labels), validation
    stream = np.random.SeedSequence([config.seed, 3])  # 0 and 1 are training's, 2 the draws'
    try:
        shares = LinkShuffleSplit(1, VAL_FRACTION, int(stream.generate_state(1)[0])).split(data, labels)
        train, held_back = next(shares)
    except InputError as error:
        problem = str(error).rstrip(".")
        raise InputError(
            f"early_stopping: no pairs can be held back to stop by ({problem}); give validation, or set it to None."
        ) from None
    links, non_links = (data.pairs[held_back[labels[held_back] == label]] for label in (True, False))
    num_links = len(distinct(codes_of(data.pairs[labels])))
    return data[train].graph(labels[train]), HeldOut(links, non_links, num_links)


def require_graph(data: Any, what: str) -> None:
    """Refuse samples where a graph is needed: which of them are links is not known, and rows are not nodes."""
    if isinstance(data, LinkSamples):
        raise InputError(
            f"{what}: a graph is needed, and these are samples of links; fit them with their labels, then transform() "
            "gives the embeddings of the nodes."
        )
