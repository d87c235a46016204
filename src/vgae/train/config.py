"""What a training is made of. The only home of defaults: the command and the estimators take theirs from here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Self

import torch

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.likelihood.positive_pairs import Observed
from vgae.model.autoencoder import Composition
from vgae.model.decoders import DecoderSpec
from vgae.model.encoders import EncoderSpec
from vgae.model.posteriors import SPHERE, PosteriorSpec
from vgae.model.priors import PriorSpec
from vgae.model.spec import FAMILIES, find, part
from vgae.objective.base import LossOptions
from vgae.objective.weighting import WEIGHTINGS, Weighting
from vgae.ops import PRECISIONS
from vgae.options import Options, option
from vgae.train.presets import PRESETS, SPHERICAL_PRIOR

OBJECTIVES = ("exact", "sampled", "auto")
CONTROL_VARIATE = ("auto", "on", "off")
STOP_BY = ("scores", "top")
DEVICE = re.compile(r"cpu|cuda(:[0-9]{1,2})?", re.ASCII)


@dataclass(frozen=True)
class Config(Options):
    """One model and how it is trained; the defaults are the paper's, and the last iteration is what training returns.

    A part that is None is the one that the model of that name has.
    """

    model: str = option("vgae", choices=lambda: tuple(PRESETS), help="gae or vgae.")
    encoder: EncoderSpec | None = part("encoder", help="Another encoder than the model's.")
    posterior: PosteriorSpec | None = part("posterior", help="Another posterior than the model's.")
    prior: PriorSpec | None = part("prior", help="Another prior than the model's.")
    decoder: DecoderSpec | None = part("decoder", help="Another decoder than the model's.")
    features: bool = option(
        True,
        flag="--no-features",
        help="Whether to use features; --no-features gives the paper's GAE* and VGAE*.",
    )
    hidden_dim: int = option(32, least=1, most=2**16, help="Width of the hidden layer.", search=(8, 256))
    latent_dim: int = option(16, least=1, most=2**16, help="Dimensions of the embedding.", search=(8, 128))
    iterations: int = option(200, least=1, most=10**9, help="Training steps.", search=(50, 1000))
    learning_rate: float = option(0.01, above=0, help="Adam's learning rate.", search=(1e-3, 1e-1))
    objective: str = option("auto", choices=OBJECTIVES, help="exact, sampled or auto.")
    weighting: str = option("paper", choices=tuple(WEIGHTINGS), help="paper or elbo.")
    beta: float = option(1.0, least=0, most=1e6, help="What the KL is multiplied by.", search=(0.01, 10.0))
    warm_up: int = option(0, most=10**9, help="Iterations over which the KL comes in, from nothing to its full weight.")
    free_bits: float = option(
        0.0, least=0, most=1e3, help="Nats of KL per dimension that cost nothing.", search=(0.0, 1.0)
    )
    mask_links: float = option(
        0.0,
        least=0,
        most=0.95,
        help="Share of the links that is hidden from the encoder, afresh in each step, and predicted all the same.",
        search=(0.0, 0.7),
    )
    diagonal: bool = option(
        True, flag="--no-diagonal", help="Whether each node counts as linked to itself, as in the paper."
    )
    soft_labels: bool = option(
        False, help="Take the links' weights, which must then be at most 1, as labels: how surely each is a link."
    )
    num_negatives: int | None = option(
        None,
        least=1,
        most=10**10,
        help="Pairs per step of the sampled objective.  [default: as many as nodes, at least 1000; without the control "
        "variate twice as many as links]",
    )
    control_variate: str = option(
        "auto",
        choices=CONTROL_VARIATE,
        help="Whether the sampled objective has a parabola summed over all pairs take the noise out of its gradient: "
        "auto, for every decoder with factors; on; off.",
    )
    batch_size: int | None = option(
        None,
        least=2,
        most=2**31 - 1,
        help="Nodes per step, for graphs that do not fit into memory: a step sees them and what they depend on.  "
        "[default: all nodes]",
    )
    eval_every: int = option(10, least=1, most=10**9, help="Iterations between two validation scores.")
    early_stopping: int | None = option(
        None, least=1, most=10**10, help="Stop after so many iterations without a better score.  [default: never]"
    )
    stop_by: str = option(
        "scores",
        choices=STOP_BY,
        help="What early stopping goes by: scores, which is AUC + AP on validation; top, which adds AP among up to a "
        "hundred times as many non-links, because that is about the top of the list.",
    )
    seed: int = option(0, least=0, most=2**32 - 1, help="Initialisation, noise and sampled zeros.")
    device: str = option("auto", identifies=False, help="auto, cpu or cuda.")
    precision: str = option("high", choices=PRECISIONS, help="Of the exact objective on a GPU: high or highest.")

    def __post_init__(self) -> None:
        super().__post_init__()
        posterior = self.value_of("posterior")
        for family in FAMILIES:
            if getattr(self, family) == own_part(self.model, family, posterior):
                object.__setattr__(self, family, None)  # given or not, it is the same model

        self.composition.check()
        decoder = self.value_of("decoder")
        if self.control_variate == "on" and not decoder.factorised:
            raise InputError(
                f"control_variate: the decoder {decoder.name} has no factors, which the control variate needs; "
                "use auto or off."
            )
        if self.batch_size is not None:
            self._check_batches()

    def _check_batches(self) -> None:
        """Refuse what steps over a part of the graph cannot have, by name, with what they can."""
        encoder, prior = self.value_of("encoder"), self.value_of("prior")
        if self.objective == "exact":
            raise InputError(
                "batch_size: the exact objective sums over all pairs of nodes in every step; use the objective sampled "
                "or auto, or leave batch_size out."
            )
        if self.mask_links:
            raise InputError(
                "batch_size: links are hidden (mask_links) from all nodes at once; leave out one of the two."
            )
        if encoder.reach is None:
            raise InputError(
                f"batch_size: the encoder {encoder.name} does not say how far it looks (reach), and sees all nodes in "
                "every step; leave batch_size out."
            )
        if prior.couples_nodes:
            raise InputError(
                f"batch_size: under the prior {prior.name} nodes depend on each other, so that it needs all of them in "
                "every step; use another prior, or leave batch_size out."
            )

    def check_nodes(self, num_nodes: int) -> None:
        """Refuse a graph that has fewer nodes than a step takes."""
        if self.batch_size is not None and self.batch_size > num_nodes:
            raise InputError(
                f"batch_size: {self.batch_size} is more than the number of nodes, {num_nodes}; leave it out for steps "
                "over all of them."
            )

    @classmethod
    def from_json(cls, values: dict[str, Any], *, trained_with: str | None = None) -> Self:
        """The inverse of `to_json`; `trained_with` is the objective that was chosen, where that is known.

        Versions before the control variate have sampled without one.
        """
        sampled = (trained_with or values.get("objective")) != "exact"
        return super().from_json({"control_variate": "off"} | values if sampled else values)

    def value_of(self, name: str) -> Any:
        """The value of an option; of a part that is None, the model's own."""
        value = getattr(self, name)
        if value is not None or name not in FAMILIES:
            return value
        return own_part(self.model, name, self.value_of("posterior") if name == "prior" else None)

    @property
    def composition(self) -> Composition:
        """The parts of the model and its widths."""
        parts = {family: self.value_of(family) for family in FAMILIES}
        return Composition(**parts, hidden_dim=self.hidden_dim, latent_dim=self.latent_dim)

    @property
    def loss_options(self) -> LossOptions:
        """What the loss is made of beside its weighting."""
        return LossOptions(Observed(self.diagonal, self.soft_labels), self.mask_links, self.free_bits)

    def weighting_for(self, graph: Graph) -> Weighting:
        """The scale factors of the loss on a training graph."""
        return Weighting.named(
            self.weighting, graph, num_ones=self.loss_options.observed.num_ones(graph), beta=self.beta
        )

    def log_odds(self, graph: Graph) -> float:
        """Of a link among all pairs, as the loss counts ones and zeros: 0 with the paper's weighting."""
        num_ones = self.loss_options.observed.num_ones(graph)
        odds = max(num_ones, 1.0) / max(graph.num_nodes**2 - num_ones, 1.0)
        return math.log(self.weighting_for(graph).positive_weight * odds)

    def view(self, graph: Graph) -> Graph:
        """What the model sees of a graph: all of it, or all but the features."""
        return graph if self.features or graph.features is None else graph.without_features()


def own_part(model: str, family: str, posterior: PosteriorSpec | None = None) -> Any:
    """The part that a model has unless another is given; the prior is one that goes with the posterior."""
    if family == "prior" and posterior is not None and posterior.space == SPHERE:
        return find("prior", SPHERICAL_PRIOR)
    return find(family, PRESETS[model][family])


def choose_device(name: str) -> torch.device:
    """The device of that name; auto means a CUDA GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not DEVICE.fullmatch(name):  # torch takes cuda:256 for cuda:0
        raise InputError(f"device: {name!r} is not a device that is supported; use auto, cpu, cuda or cuda:1.")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device: {name!r} is not there ({torch.cuda.device_count()} GPUs found); use cpu or auto.")
    return device
