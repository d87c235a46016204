"""What to say about a model whose embeddings tell nothing about the nodes, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from vgae.runs.run import Run
from vgae.train.config import Config

UNTRAINED = 20  # iterations: before these a model has not collapsed, it has not begun
FEW_ITERATIONS = 100  # after which it may still be at the beginning


def active_words(run: Run) -> str:
    """How many dimensions are active, in words."""
    activity = run.activity
    return f"{activity.active} of {activity.latent_dim} dimensions {'is' if activity.active == 1 else 'are'} active"


def has_collapsed(run: Run) -> bool:
    """Whether training has left embeddings that tell nothing about the nodes, or hardly anything."""
    return run.activity.is_collapsed and run.history[-1].iteration >= UNTRAINED


def collapse_sentence(run: Run) -> str | None:
    """One sentence if the embeddings of a run have collapsed, with what to do; None if they have not."""
    if not has_collapsed(run):
        return None
    remedies = list(_remedies(run))
    advice = ", ".join(remedies[:-1]) + (" or " if len(remedies) > 1 else "") + remedies[-1]
    return (
        f"The embeddings have collapsed: {active_words(run)}, so that nodes differ by less than the noise in their "
        f"embeddings. To get a model, try {advice}."
    )


def _remedies(run: Run) -> Iterator[str]:
    """What helps, the most likely first; only what is not so already."""
    config = run.config
    if run.history[-1].iteration < FEW_ITERATIONS:
        yield "more --iterations"
    if config.weighting == "elbo":
        yield "--weighting paper"
    if config.learning_rate > Config.learning_rate or run.model.posterior.deterministic:
        yield "a lower --learning-rate"
    if run.model.posterior.deterministic:
        yield "another --seed"
        return
    without_bias = config.value_of("decoder").name == "inner_product"
    if without_bias:
        yield "a decoder with a bias (--decoder scaled)"
    if config.value_of("posterior").name == "normal":
        yield "a posterior on the sphere (--posterior power_spherical --decoder scaled:scale=5)"
    if not (without_bias and config.weighting == "elbo"):  # where the KL is not what embeddings collapse by
        yield f"--free-bits {max(0.1, 2 * config.free_bits):g}"
        yield f"--beta {0.1 * config.beta or 0.1:g}"
