"""A mixture of normals with learned components, independent over nodes:

    p(z) = Σ_k π_k N(z; m_k, diag(s_k²)),   responsibilities   p(k | z) = π_k N(z; m_k, diag(s_k²)) / p(z).

π, m and s are learned with the rest; s_k is the same for all components, or each has its own (`scales`). One s makes
borders between components that are planes. With scales of their own, in many dimensions, one component is drawn tight
around some nodes and another is spread over all that is left, which fits the density and says less about groups.

There is no closed form of the KL to a mixture; `model/kl.py` takes its unbiased estimate by the step's own draw,
-H(q) - log p(z), not the bound by way of a posterior over components (VaDE: Jiang et al., 2017; GMM-VGAE: Hui et al.,
2020), which is larger by KL(q(k) ‖ p(k | z)).

Before it begins the mixture is N(0, I), whose components are all one, and nothing of it is learned. It begins when the
KL first counts in full: components are then fitted to the posteriors q_i = N(μ_i, diag(σ_i²)) of all nodes, by EM from
k-means on the means. Each of its rounds lowers the bound

    1/N Σ_i Σ_k r_ik [log r_ik - log π_k - E_{q_i} log N(z; m_k, diag(s_k²))]

    r_ik ∝ π_k exp(E_{q_i} log N(z; m_k, diag(s_k²))),   E_q log N = log N(μ_i; m_k, diag(s_k²)) - ½ Σ_d σ²_id / s²_kd
    π_k = 1/N Σ_i r_ik,   m_k = Σ_i r_ik μ_i / Nπ_k,     s²_k = Σ_i r_ik ((μ_i - m_k)² + σ_i²) / Nπ_k,

with Σ_k π_k s²_k in place of s²_k where they share it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from vgae.model.kmeans import kmeans, one_of_each
from vgae.model.posteriors import Posterior
from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.spec import register
from vgae.options import option

SHARED = "shared"
LOG_2PI = math.log(2 * math.pi)
MOST_ROUNDS = 200  # of EM
ENOUGH = 1e-7  # a gain in nats per node that ends it
SMALLEST_SHARE = 1e-4  # of the overall variance, that a component has at least; it would close in on one node


@dataclass(frozen=True, eq=False)
class Components:
    """π, m and s of a mixture, the first and the last as logarithms."""

    log_weights: Tensor  # K
    means: Tensor  # K×d
    log_std: Tensor  # K×d, or 1×d where they share it

    def joint(self, z: Tensor) -> Tensor:
        """log π_k N(z_i; m_k, diag(s_k²)) (N×K), by products of matrices: there is no array of N×K×d."""
        precision = (-2 * self.log_std).exp()
        centre = self.means.mean(dim=0).detach()  # what is squared below is then small
        z, means = z - centre, self.means - centre
        scaled = precision * means
        quadratic = z.square() @ precision.T - 2 * z @ scaled.T + (scaled * means).sum(dim=1)
        constant = self.log_std.sum(dim=1) + 0.5 * z.shape[1] * LOG_2PI
        return self.log_weights - constant - 0.5 * quadratic


class MixturePrior(Prior):
    """Σ_k π_k N(m_k, diag(s_k²)), after it has begun; N(0, I) before."""

    begun: Tensor  # 1, or 0 before; a number of the state, by which a training that is resumed knows it

    def __init__(self, num_components: int, latent_dim: int, *, shared: bool = False) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(num_components))
        self.means = nn.Parameter(torch.zeros(num_components, latent_dim))
        self.log_std = nn.Parameter(torch.zeros(1 if shared else num_components, latent_dim))
        self.register_buffer("begun", torch.zeros(()))

    @property
    def components(self) -> Components:
        """π, m and s; before it has begun no gradient reaches them, so that Adam starts with the mixture too."""
        log_weights = torch.log_softmax(self.begun * self.logits, dim=0)
        return Components(log_weights, self.begun * self.means, self.begun * self.log_std)

    def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:  # noqa: ARG002 - it looks at nothing
        """log Σ_k π_k N(z; m_k, diag(s_k²)) for each row."""
        return torch.logsumexp(self.components.joint(z), dim=1)

    def responsibilities(self, z: Tensor) -> Tensor:
        """p(k | z) for each row (N×K)."""
        return torch.softmax(self.components.joint(z), dim=1)

    @torch.no_grad()
    def begin(self, posterior: Posterior, seen: PriorInputs, generator: torch.Generator) -> None:
        """Fit the components to the posteriors of all nodes."""
        del seen
        shared = len(self.log_std) < len(self.logits)
        found = fit_components(posterior.mean, posterior.variance, len(self.logits), generator, shared=shared)
        self.logits.copy_(found.log_weights)
        self.means.copy_(found.means)
        self.log_std.copy_(found.log_std)
        self.begun.fill_(1.0)


@register("prior", "mixture")
@dataclass(frozen=True)
class Mixture(PriorSpec):
    """Σ_k π_k N(m_k, diag(s_k²)), with π, m and s learned."""

    components: int = option(
        10, least=1, most=1000, help="Number of normal distributions: how many clusters there may be.", search=(2, 50)
    )
    scales: str = option(SHARED, choices=(SHARED, "own"), help="Whether all have one scale, or each its own.")

    def build(self, latent_dim: int, generator: torch.Generator, input_dim: int) -> MixturePrior:  # noqa: ARG002
        """The mixture before it begins."""
        return MixturePrior(self.components, latent_dim, shared=self.scales == SHARED)


@torch.no_grad()
def fit_components(
    means: Tensor, variances: Tensor, num_components: int, generator: torch.Generator, *, shared: bool = False
) -> Components:
    """The components of a mixture of N×d normal distributions, in double precision, by EM from k-means."""
    middle = means.double().mean(dim=0)  # squares of what is left are small
    given = _Given(means.double() - middle, variances.double(), shared)
    found = given.fitting(one_of_each(kmeans(means, num_components, generator).assignment, num_components))
    before = -math.inf
    for _ in range(MOST_ROUNDS):
        joint = found.joint(given.means) - 0.5 * given.variances @ (-2 * found.log_std).exp().T
        bound = float(torch.logsumexp(joint, dim=1).mean())
        if bound - before < ENOUGH:
            break
        before = bound
        found = given.fitting(torch.softmax(joint, dim=1))
    return replace(found, means=found.means + middle)


@dataclass(frozen=True, eq=False)
class _Given:
    """What components are fitted to: normal distributions around zero."""

    means: Tensor
    variances: Tensor
    shared: bool

    def fitting(self, responsibilities: Tensor) -> Components:
        """π, m and s that fit best to these responsibilities."""
        sizes = responsibilities.sum(dim=0).clamp(min=1e-10)  # a component that nothing is left of has no say
        shares, weights = (responsibilities / sizes).T, sizes / sizes.sum()
        centres = shares @ self.means
        spread = shares @ (self.means.square() + self.variances) - centres.square()
        if self.shared:
            spread = (weights[:, None] * spread).sum(dim=0, keepdim=True)
        overall = self.means.var(dim=0, correction=0) + self.variances.mean(dim=0)
        smallest = (SMALLEST_SHARE * overall).clamp(min=1e-12)
        return Components(weights.log(), centres, 0.5 * spread.clamp(min=smallest).log())
