"""The page of a fitted model: what `explore` gathers, and for which models there is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vgae.errors import InputError
from vgae.explore.nodes import given_columns
from vgae.explore.noise import Noise, noise_of
from vgae.explore.options import ExploreOptions
from vgae.explore.page import write_page
from vgae.explore.projection import lay_out
from vgae.explore.subject import Ranking, Scoring, Subject
from vgae.graph.pairs import IntArray
from vgae.model.kmeans import kmeans, squared_distances
from vgae.model.priors import MixturePrior
from vgae.ops import Factors
from vgae.version import __version__
from vgae.words import count

if TYPE_CHECKING:
    from vgae.estimators.embeddings import EmbeddingPredictor

ENDINGS = (".html", ".htm")
FACTORS = "inner_product, scaled, bilinear, distance and source_target"
CLUSTERS = 8
CLUSTERED = 20_000  # nodes that k-means looks at; the others go to the nearest centre


def write_explorer(
    model: EmbeddingPredictor, path: Path, options: ExploreOptions, attributes: Mapping[str, Any] | None
) -> Path:
    """Write the page of a fitted model, and say where it is."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: the page is written as html; choose a name that ends in .html.")
    write_page(subject_of(model, options, attributes), path)
    return path


@torch.no_grad()
def subject_of(
    model: EmbeddingPredictor, options: ExploreOptions, attributes: Mapping[str, Any] | None = None
) -> Subject:
    """Everything that the page of a fitted model shows."""
    embeddings, graph = model._embeddings(), model.graph_
    factors = model.rows()
    if not isinstance(factors, Factors):
        decoder = model.config_.composition.decoder.name if hasattr(model, "config_") else "this one"
        raise InputError(
            f"The decoder {decoder} has no factors, from which the page computes links; models with the decoders "
            f"{FACTORS} can be explored, and the baselines sc and dw."
        )
    calibration = model.calibration()
    if calibration.shift is None and not calibration.is_fitted:
        raise InputError(
            "This baseline has scores and no probabilities, because no validation links were held out; hold some out "
            "(--val) to explore it."
        )
    given_columns(attributes, graph.num_nodes)  # which says what is wrong before anything takes its time
    scored, seed = model._scored(), _seed(model)
    clusters, cluster_words = _clusters(model, options.clusters, seed)
    best = model.recommend(options.top)
    run = getattr(model, "run_", None)
    return Subject(
        title=options.title or Path(getattr(getattr(run, "facts", None), "dataset", None) or "A graph").name,
        graph=graph,
        links_graph=scored.links_graph,
        held_out=scored.new_links(model.excluded_pairs_),
        scoring=Scoring(factors, calibration, model.symmetric, _noise(model)),
        layout=lay_out(embeddings.numpy(), options.projection, seed),
        best=Ranking(best.pairs, best.logits, best.probabilities),
        clusters=clusters,
        cluster_words=cluster_words,
        recipe=getattr(run, "recipe", None),
        attributes=attributes,
        about=_about(model),
    )


def _noise(model: Any) -> Noise | None:
    """The spread of the posterior, of a model that has one."""
    if not hasattr(model, "latent_"):
        return None
    return noise_of(model.model_.posterior.build(model.latent_), model.model_.decoder)


def _seed(model: Any) -> int:
    config = getattr(model, "config_", None) or getattr(getattr(model, "run_", None), "config", None)
    return int(getattr(config, "seed", 0))


def _clusters(model: EmbeddingPredictor, asked: int | None, seed: int) -> tuple[IntArray, str]:
    """A cluster for each node, and where clusters come from."""
    prior = getattr(getattr(model, "model_", None), "prior", None)
    if asked is None and isinstance(prior, MixturePrior) and bool(prior.begun):
        return model.clusters().assignment, "cluster (mixture prior)"
    embeddings, labels = model._embeddings(), model.graph_.labels
    known = 0 if labels is None else len(set(labels.tolist()) - {-1})
    k = asked or (known if 2 <= known <= 50 else CLUSTERS)
    num_nodes = len(embeddings)
    if k > num_nodes:
        if asked is not None:
            raise InputError(f"clusters: {k} is more than the {count(num_nodes, 'node')} that there are.")
        k = num_nodes
    words, generator = "cluster (k-means)", torch.Generator().manual_seed(seed)
    if num_nodes <= CLUSTERED:
        return kmeans(embeddings, k, generator, starts=3).assignment.numpy(), words
    chosen = torch.randperm(num_nodes, generator=generator)[:CLUSTERED]
    centres = kmeans(embeddings[chosen], k, generator, starts=1).centres
    nearest = squared_distances(embeddings.double(), centres).argmin(dim=1)
    return nearest.numpy(), words


def _about(model: Any) -> list[tuple[str, str]]:
    """What the page says about the model, line by line."""
    run, graph, lines = getattr(model, "run_", None), model.graph_, []
    if hasattr(model, "config_"):
        parts = model.config_.composition
        lines.append(("Model", model.config_.model.upper()))
        named = (("Encoder", parts.encoder), ("Posterior", parts.posterior), ("Prior", parts.prior))
        lines += [(word, part.name) for word, part in (*named, ("Decoder", parts.decoder))]
    elif hasattr(model, "method"):
        lines.append(("Baseline", model.method))
    lines += [("Nodes", f"{graph.num_nodes:,}"), ("Known links", f"{graph.num_links:,}")]
    lines += [("Held-out links", f"{len(model.excluded_pairs_):,}"), ("Features", f"{graph.num_features:,}")]
    dimensions = f"{model._embeddings().shape[1]}"
    lines.append(("Dimensions", dimensions))
    for name, scores in (getattr(run, "metrics", None) or {}).items():
        if "auc" in scores and np.isfinite(scores["auc"]):
            lines.append((f"AUC / AP ({name})", f"{100 * scores['auc']:.1f} / {100 * scores['ap']:.1f}"))
    return [*lines, ("Made by", f"vgae {__version__}")]
