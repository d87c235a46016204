"""k-means: centres m_k that make Σ_i min_k ‖x_i - m_k‖² small.

Each start takes its centres among the points, one after another, with probabilities proportional to the squared
distance from the nearest centre so far (k-means++: Arthur & Vassilvitskii, 2007). From there points go to the nearest
centre and centres to the mean of their points, in turn, until nothing changes (Lloyd). The best of several starts is
what is returned. Sums are matrix products, so that the same generator gives the same bits on a GPU too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

STARTS = 10
MOST_ROUNDS = 300


@dataclass(frozen=True, eq=False)
class KMeans:
    """What k-means has found, in double precision."""

    centres: Tensor  # K×d
    assignment: Tensor  # the nearest centre of each point
    inertia: float  # the sum of squared distances to it


@torch.no_grad()
def kmeans(points: Tensor, num_clusters: int, generator: torch.Generator, *, starts: int = STARTS) -> KMeans:
    """The best of several runs of k-means on N×d points."""
    points = points.double()
    middle = points.mean(dim=0)
    points = points - middle  # distances are differences of squares, which should be small
    found = [_one_run(points, _first_centres(points, num_clusters, generator)) for _ in range(starts)]
    best = min(found, key=lambda each: each.inertia)
    return replace(best, centres=best.centres + middle)


def squared_distances(points: Tensor, centres: Tensor) -> Tensor:
    """‖x_i - m_k‖² (N×K), without an array of N×K×d."""
    squares = points.square().sum(dim=1, keepdim=True) + centres.square().sum(dim=1)
    return (squares - 2 * points @ centres.T).clamp(min=0)


def one_of_each(assignment: Tensor, num_clusters: int) -> Tensor:
    """N×K zeros with a one in each row, in double precision."""
    return (assignment[:, None] == torch.arange(num_clusters, device=assignment.device)).double()


def _first_centres(points: Tensor, num_clusters: int, generator: torch.Generator) -> Tensor:
    nearest = torch.ones_like(points[:, 0])
    chosen: list[Tensor] = []
    for _ in range(num_clusters):
        weights = nearest if bool((nearest > 0).any()) else torch.ones_like(nearest)  # fewer points than centres
        place = torch.multinomial(weights, 1, generator=generator)
        distances = squared_distances(points, points[place])[:, 0]
        nearest = distances if not chosen else torch.minimum(nearest, distances)
        nearest[place] = 0  # not a rounding error
        chosen.append(place)
    return points[torch.cat(chosen)]


def _one_run(points: Tensor, centres: Tensor) -> KMeans:
    num_clusters = len(centres)
    before: Tensor | None = None
    for _ in range(MOST_ROUNDS):
        distances, assignment = squared_distances(points, centres).min(dim=1)
        if before is not None and bool((assignment == before).all()):
            break
        before = assignment
        members = one_of_each(assignment, num_clusters)
        sizes = members.sum(dim=0)
        centres = torch.where(sizes[:, None] > 0, members.T @ points / sizes.clamp(min=1)[:, None], centres)
        empty = torch.nonzero(sizes == 0)[:, 0]
        if len(empty):  # a centre without points takes one that is far from its own
            far = distances.argsort(descending=True, stable=True)[: len(empty)]
            centres[empty[: len(far)]] = points[far]
    distances, assignment = squared_distances(points, centres).min(dim=1)
    return KMeans(centres, assignment, float(distances.sum()))
