"""Embeddings brought to two dimensions, for pictures and pages.

t-SNE takes minutes for some ten thousand nodes. The map of a larger graph has t-SNE of a random sample, and every other
node near those of the sample whose embeddings are most like its own:

    x_i = Σ_m w_m x_m / Σ_m w_m,   w_m = exp(-d_im² / d_i1²)

over the three nearest m, d_i1 being the distance from the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np
import numpy.typing as npt
import torch

from vgae.errors import InputError
from vgae.words import count

Points = npt.NDArray[np.floating]

PROJECTIONS = ("tsne", "pca")
SAMPLE = 8_000  # nodes of which t-SNE takes a minute or two
NEAREST = 3
BLOCK = 2_048  # nodes that are placed at a time


@dataclass(frozen=True, eq=False)
class Layout:
    """Where nodes are on a map (N×2), and in words how that was found."""

    points: Points
    words: str


def project(embedding: Points, method: str = "tsne", seed: int = 0) -> Points:
    """A two-dimensional view of an embedding; one that is two-dimensional already is shown as it is."""
    if method not in PROJECTIONS:
        raise InputError(f"projection: {method!r} is not one of {', '.join(PROJECTIONS)}.")
    if embedding.shape[1] <= 2:
        return np.pad(embedding, ((0, 0), (0, 2 - embedding.shape[1])))
    if method == "tsne":
        perplexity = min(30.0, (len(embedding) - 1) / 3)
        reducer = import_module("sklearn.manifold").TSNE(2, perplexity=perplexity, init="pca", random_state=seed)
    else:
        reducer = import_module("sklearn.decomposition").PCA(2, random_state=seed)
    points: Points = reducer.fit_transform(embedding)
    return points


def lay_out(embedding: Points, method: str = "tsne", seed: int = 0, *, sample: int = SAMPLE) -> Layout:
    """The map of an embedding: that of `project` or, of more nodes than t-SNE can take, one by a sample of them."""
    if embedding.shape[1] <= 2:
        return Layout(project(embedding, method, seed), "The embeddings, which have no more than two dimensions.")
    if len(embedding) < 4:  # too few for either: on a line, as far apart as they are in the first dimension
        return Layout(np.pad(embedding[:, :1], ((0, 0), (0, 1))), "The first dimension of the embeddings.")
    if method != "tsne":
        return Layout(project(embedding, method, seed), "The first two principal components of the embeddings.")
    if len(embedding) <= sample:
        return Layout(project(embedding, method, seed), "t-SNE of the embeddings.")
    chosen = np.sort(np.random.default_rng(seed).choice(len(embedding), size=sample, replace=False))
    points = placed_by(embedding, chosen, project(embedding[chosen], method, seed))
    words = f"t-SNE of a random sample of {count(sample, 'node')}; every other node is placed near those of the sample "
    return Layout(points, words + "whose embeddings are most like its own.")


@torch.no_grad()
def placed_by(embedding: Points, chosen: npt.NDArray[np.int64], points: Points) -> Points:
    """All nodes, where some are at given points and the others near those of them that are most like them."""
    everything = torch.from_numpy(np.ascontiguousarray(embedding, dtype=np.float32))
    anchors, at = everything[torch.from_numpy(chosen)], torch.from_numpy(np.ascontiguousarray(points)).double()
    places = torch.empty(len(everything), 2, dtype=torch.float64)
    nearest = min(NEAREST, len(chosen))
    for start in range(0, len(everything), BLOCK):
        distances, found = torch.cdist(everything[start : start + BLOCK], anchors).topk(nearest, largest=False)
        scale = distances[:, :1].clamp(min=1e-12)
        weights = torch.exp(-((distances / scale).square()).double())
        places[start : start + BLOCK] = (weights[..., None] * at[found]).sum(dim=1) / weights.sum(dim=1, keepdim=True)
    places[torch.from_numpy(chosen)] = at
    return places.numpy()
