"""A prior that knows the graph: embeddings of linked nodes are near each other before anything is observed.

    p(Z) ∝ exp(-½ tr Zᵀ(L + εI)Z),   tr ZᵀLZ = Σ_{links ij} ‖z_i - z_j‖²,

with L = D - A of the training graph: each dimension is a Gaussian Markov random field over the nodes,
N(0, (L + εI)⁻¹). With `normalized`, L = I - D^-½ A D^-½, whose diagonal is 1 (0 without links) whatever the degree.
With `learned`, each dimension has a scale s_d and the precision (L + εI) / s_d².

Nodes are not independent under p. The KL of a normal posterior is a sum over dimensions all the same,

    KL_d = ½ μ_dᵀ(L + εI)μ_d + Σ_i [½ (L_ii + ε) σ_id² - log σ_id - ½] - ½ log det(L + εI),

and what belongs to node i of it is the i-th term of each sum, μ_id ((L + εI)μ_d)_i of the first, and an equal share of
the determinant. The determinant is constant, and computed once for each graph: by a sparse factorisation for graphs of
up to `MOST_FACTORISED` nodes, by stochastic Lanczos quadrature (Ubaru, Chen & Saad, 2017) for larger ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from vgae.graph.graph import Graph
from vgae.model.inputs import Layout
from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.spec import register
from vgae.ops import SparseMatrix
from vgae.options import option

LOG_2PI = math.log(2 * math.pi)
MOST_FACTORISED = 25_000  # nodes
NUM_PROBES, NUM_LANCZOS = 30, 60  # random vectors and steps of the quadrature


class Precision:
    """L + εI of a graph on a device, with its diagonal and determinant."""

    def __init__(self, graph: Graph, device: torch.device | str, epsilon: float, *, normalized: bool) -> None:
        self.on_host = precision_matrix(graph, epsilon, normalized=normalized)
        self.matrix = SparseMatrix(self.on_host, device=device, symmetric=True)
        self.diagonal = torch.tensor(self.on_host.diagonal(), dtype=torch.float32, device=device)[:, None]

    @cached_property
    def log_determinant(self) -> float:
        """Log det(L + εI)."""
        if self.on_host.shape[0] <= MOST_FACTORISED:
            return factorised_log_determinant(self.on_host)
        return estimated_log_determinant(self.on_host)


class LaplacianPrior(Prior):
    """N(0, s_d² (L + εI)⁻¹) over the nodes, for each dimension."""

    log_scale: Tensor | None

    def __init__(self, latent_dim: int, spec: Laplacian) -> None:
        super().__init__()
        self.spec = spec
        self.log_scale = nn.Parameter(torch.zeros(latent_dim)) if spec.learned else None

    def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:
        """What belongs to each node of log p(Z)."""
        precision = self.precision(seen)
        squares = self.scaled(z * (precision.matrix @ z))
        constant = 0.5 * (precision.log_determinant / len(z) - LOG_2PI)
        return (constant - self.log_scales(z) - 0.5 * squares).sum(dim=1)

    def precision(self, seen: PriorInputs | None) -> Precision:
        """L + εI of the training graph, made once for each graph and device."""
        if seen is None:
            raise TypeError("This prior needs the training graph.")
        layout = seen.inputs.of_graph
        made = _PRECISIONS.setdefault(layout, {})
        key = self.spec.epsilon, self.spec.normalized
        if key not in made:
            made[key] = Precision(layout.graph, layout.device, self.spec.epsilon, normalized=self.spec.normalized)
        return made[key]

    def scaled(self, squares: Tensor) -> Tensor:
        """Squares in each dimension (N×d) in units of s_d²."""
        return squares if self.log_scale is None else squares * (-2 * self.log_scale).exp()

    def log_scales(self, like: Tensor) -> Tensor:
        """Log s_d."""
        return like.new_zeros(like.shape[1]) if self.log_scale is None else self.log_scale


_PRECISIONS: WeakKeyDictionary[Layout, dict[tuple[float, bool], Precision]] = WeakKeyDictionary()


def precision_matrix(graph: Graph, epsilon: float, *, normalized: bool) -> sp.csr_array:
    """L + εI of a graph, in float64."""
    adjacency = graph.weighted_adjacency.astype(np.float64)
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    diagonal = degrees
    if normalized:
        linked = degrees > 0
        scale = np.where(linked, 1 / np.sqrt(np.where(linked, degrees, 1)), 0)
        adjacency = sp.diags_array(scale) @ adjacency @ sp.diags_array(scale)
        diagonal = linked.astype(np.float64)
    return sp.csr_array(sp.diags_array(diagonal + epsilon) - adjacency)


def factorised_log_determinant(matrix: Any) -> float:
    """log det of a positive definite matrix, by a sparse factorisation."""
    factors = import_module("scipy.sparse.linalg").splu(  # which takes its time to import, and few trainings need
        sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    return float(np.log(np.abs(factors.U.diagonal())).sum())


def estimated_log_determinant(matrix: Any, seed: int = 0) -> float:
    """log det of a positive definite matrix: Lanczos quadrature of tr log at random signs; the same for a seed."""
    generator = np.random.default_rng(seed)
    size = int(matrix.shape[0])
    found = [_quadrature(matrix, generator.choice([-1.0, 1.0], size)) for _ in range(NUM_PROBES)]
    return size * float(np.mean(found))


def _quadrature(matrix: Any, probe: npt.NDArray[np.float64]) -> float:
    """Give vᵀ log(M) v for the unit vector v along the probe."""
    num_steps = min(NUM_LANCZOS, len(probe))
    basis = np.empty((num_steps, len(probe)))
    basis[0] = probe / np.linalg.norm(probe)
    diagonal: list[float] = []
    beside: list[float] = []
    for step in range(num_steps):
        following = matrix @ basis[step]
        diagonal.append(float(basis[step] @ following))
        if step + 1 == num_steps:
            break
        before = basis[: step + 1]
        for _ in range(2):  # orthogonal to all before, to the last bit or so
            following -= before.T @ (before @ following)
        length = float(np.linalg.norm(following))
        if length < 1e-10 * abs(diagonal[0]):
            break
        beside.append(length)
        basis[step + 1] = following / length
    values, vectors = import_module("scipy.linalg").eigh_tridiagonal(np.array(diagonal), np.array(beside))
    return float(vectors[0] ** 2 @ np.log(values))


@register("prior", "laplacian")
@dataclass(frozen=True)
class Laplacian(PriorSpec):
    """Linked nodes near each other: a Gaussian Markov random field over the training graph."""

    couples_nodes: ClassVar[bool] = True

    epsilon: float = option(1.0, above=0, help="What holds embeddings to zero.", search=(0.01, 10.0))
    normalized: bool = option(False, help="Whether the Laplacian is divided by degrees, as the encoder's matrix is.")
    learned: bool = option(False, help="Whether each dimension has a scale that is learned.")

    def build(self, latent_dim: int, generator: torch.Generator, input_dim: int) -> LaplacianPrior:  # noqa: ARG002
        """The prior over the nodes of whatever graph the model is trained on."""
        return LaplacianPrior(latent_dim, self)
