"""Points and weights to integrate over the plane and the unit sphere, and draws of one distribution."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from vgae.model.posteriors import SPHERE, Posterior, PosteriorSpec
from vgae.model.spec import registered

POSTERIORS = registered("posterior")
WITH_DENSITY = [name for name, spec in POSTERIORS.items() if not spec().deterministic]  # type: ignore[attr-defined]
DIMS = {"plane": (1, 2), "sphere": (2, 3)}  # in which a grid is affordable


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def spec_of(name: str) -> PosteriorSpec:
    spec = POSTERIORS[name]()
    assert isinstance(spec, PosteriorSpec)
    return spec


def outputs_of(name: str, num_nodes: int = 5, dim: int = 3, seed: int = 7) -> dict[str, Tensor]:
    """What an encoder may say."""
    source = generator(seed)
    heads = spec_of(name).heads(dim)
    return {
        head: torch.randn(num_nodes, width, generator=source, dtype=torch.float64) / 2 for head, width in heads.items()
    }


def make_posterior(name: str, num_nodes: int = 5, dim: int = 3, seed: int = 7) -> Posterior:
    return spec_of(name).build(outputs_of(name, num_nodes, dim, seed))


def repeated(name: str, outputs: Mapping[str, Tensor], times: int) -> tuple[Posterior, dict[str, Tensor]]:
    """The posterior of the first node so many times, each with parameters of its own to take gradients by."""
    leaves = {head: value[:1].repeat(times, 1).requires_grad_() for head, value in outputs.items()}
    return spec_of(name).build(leaves), leaves


def grid(space: str, dim: int, size: int = 401, reach: float = 25.0) -> tuple[Tensor, Tensor]:
    """Points (M×d) and weights (M) of a quadrature over a cube of the plane, or over the unit sphere."""
    if space == SPHERE:
        angles = 2 * np.pi * (np.arange(size) + 0.5) / size
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        if dim == 2:
            return torch.tensor(circle), torch.full((size,), 2 * np.pi / size, dtype=torch.float64)
        heights, weights = np.polynomial.legendre.leggauss(size)
        rings = np.sqrt(1 - heights**2)[:, None, None] * circle
        ball = np.concatenate([np.broadcast_to(heights[:, None, None], (size, size, 1)), rings], axis=2)
        areas = np.repeat(weights, size) * 2 * np.pi / size
        return torch.tensor(ball.reshape(-1, 3)), torch.tensor(areas)
    line = torch.linspace(-reach, reach, size, dtype=torch.float64)
    step = float(line[1] - line[0])
    points = torch.cartesian_prod(*[line] * dim).reshape(-1, dim)
    return points, torch.full((len(points),), step**dim, dtype=torch.float64)
