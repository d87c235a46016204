"""The VampPrior (Tomczak & Welling, 2018): a mixture of what the encoder infers for K pseudo-nodes.

    p(z) = 1/K Σ_k q(z | u_k)

A pseudo-node has features u_k, which are learned, and no links: it goes through the encoder with the identity in place
of Ã. Pseudo-nodes start as random nodes of the training graph, with the features that propagation gives these, a row of
ÃX: what the encoder's first layer sees of the node. Without features X = I, and u_k is a row of Ã.

The mixture lies where the embeddings lie, on the plane or on the sphere, and moves with them, so that the KL does not
pull them to one point. It is estimated by the step's own draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.model.encoders.base import glorot
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import PLANE, SPHERE, Posterior
from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.spec import register
from vgae.ops import SparseMatrix
from vgae.options import option


class VampPrior(Prior):
    """A mixture of the posteriors of pseudo-nodes."""

    def __init__(self, num_components: int, input_dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.pseudo_features = glorot(num_components, input_dim, generator)
        self.identity: SparseMatrix | None = (
            None  # laid out once: a step that is recorded on a GPU can copy nothing there
        )

    def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:
        """log 1/K Σ_k q(z | u_k) for each row."""
        by_component = self.components(seen).log_prob(z[:, None])  # N×K
        return torch.logsumexp(by_component, dim=1) - math.log(len(self.pseudo_features))

    def components(self, seen: PriorInputs | None) -> Posterior:
        """q(z | u_k), a row for each pseudo-node."""
        if seen is None:
            raise TypeError("A VampPrior needs the encoder.")
        device = self.pseudo_features.device
        if self.identity is None or self.identity.rows.values.device != device:
            no_links = sp.eye_array(len(self.pseudo_features), format="csr")
            self.identity = SparseMatrix(no_links, device=device, symmetric=True)
        return seen.infer(EncoderInputs(self.identity, self.pseudo_features))

    @torch.no_grad()
    def begin(self, posterior: Posterior, seen: PriorInputs, generator: torch.Generator) -> None:  # noqa: ARG002
        """Take random nodes of the graph, without any twice while there are enough."""
        inputs, size = seen.inputs, len(self.pseudo_features)
        order = torch.randperm(inputs.num_nodes, generator=generator, device=self.pseudo_features.device)
        nodes = order.repeat(-(-size // len(order)))[:size]
        chosen = torch.zeros(inputs.num_nodes, size, device=nodes.device, dtype=self.pseudo_features.dtype)
        chosen[nodes, torch.arange(size, device=nodes.device)] = 1
        # Ã's columns, which are its rows; features that were propagated before are taken as they are
        seen_by = chosen if inputs.hops_done else inputs.propagation @ chosen
        if isinstance(inputs.features, SparseMatrix):
            seen_by = inputs.features.rows_of_transpose.times(seen_by)
        elif inputs.features is not None:
            seen_by = inputs.features.T.to(seen_by.dtype) @ seen_by
        self.pseudo_features.copy_(seen_by.T)


@register("prior", "vamp")
@dataclass(frozen=True)
class Vamp(PriorSpec):
    """A mixture of what the encoder infers for pseudo-nodes."""

    spaces: ClassVar[tuple[str, ...]] = (PLANE, SPHERE)

    components: int = option(50, least=1, most=10_000, help="Number of pseudo-nodes.", search=(5, 100))

    def build(self, latent_dim: int, generator: torch.Generator, input_dim: int) -> VampPrior:  # noqa: ARG002
        """The mixture with pseudo-nodes of random features, until `begin` takes those of real ones."""
        return VampPrior(self.components, input_dim, generator)
