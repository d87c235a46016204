"""The noise of the sampled objective: plain sampling over the control variate, at the same number of pairs.

The squared error of the gradient of the zeros' part of the loss, Σ_{L_ij = 0} softplus(s_ij), relative to the exact
gradient of that part, averaged over draws, at one draw of the embeddings: in the embeddings, and in all weights of the
encoder. Both draw M zeros; the control variate knows what its step before has drawn. M is N unless it is
given.

The models are the paper's, trained by the exact objective for 20 and for 200 iterations.

    python benchmarks/variance.py [cora] [pubmed] [--model vgae] [--pairs M] [--draws 50]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import statistics
from dataclasses import dataclass

import torch
from torch import Tensor

import vgae
from vgae.likelihood.bernoulli import loss_at_zeros
from vgae.likelihood.positive_pairs import PositivePairs
from vgae.machine import describe_machine
from vgae.model.inputs import EncoderInputs
from vgae.objective.sampled import SampledObjective
from vgae.objective.variate import AllPairs
from vgae.ops import all_pairs_softplus
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import Trained, train

TARGET = 20.0  # least ratio


@dataclass(frozen=True)
class Errors:
    """The relative squared error of the gradient, in the embeddings and in the weights."""

    embeddings: float
    weights: float

    @classmethod
    def mean(cls, errors: list["Errors"]) -> "Errors":
        """The mean over draws."""
        return cls(*(statistics.fmean(getattr(each, name) for each in errors) for name in ("embeddings", "weights")))


class Zeros:
    """Gradients of the zeros' part of a trained model's loss: exact, plain, and with the control variate."""

    def __init__(self, trained: Trained, num_pairs: int) -> None:
        job, self.model = trained.job, trained.model
        given = job.labels, self.model, job.config.weighting_for(job.labels), "cpu"
        self.ones = PositivePairs.of(job.labels, symmetric=self.model.decoder.symmetric, device="cpu")
        self.plain = SampledObjective(*given, num_negatives=num_pairs, control_variate=False)
        variate = SampledObjective(*given, num_negatives=num_pairs).variate
        if variate is None:
            raise TypeError(f"{job.config.value_of('decoder')} has no factors.")
        self.variate = variate
        self.weights = list(self.model.parameters())
        posterior = self.model.encode(EncoderInputs.from_graph(job.graph))
        self.z = posterior.sample(torch.Generator().manual_seed(0))

    def gradients(self, loss: Tensor) -> tuple[Tensor, Tensor]:
        """Of a loss of these embeddings: in them, and in all weights, as one vector."""
        in_weights = torch.autograd.grad(loss, self.weights, retain_graph=True, allow_unused=True)
        (in_embeddings,) = torch.autograd.grad(loss, self.z, retain_graph=True)
        return in_embeddings.double(), torch.cat([each.flatten() for each in in_weights if each is not None]).double()

    def without_ones(self, everywhere: Tensor) -> Tensor:
        """A sum over all pairs without that at the ones."""
        logits = self.model.decoder.logits(self.z, self.ones.pairs)
        return everywhere - self.ones.sum(loss_at_zeros(logits))

    def exact(self) -> tuple[Tensor, Tensor]:
        """The gradients over all zeros."""
        factors = self.model.decoder.require_factors(self.z)
        everywhere = all_pairs_softplus(factors.q, factors.k, factors.row_bias, factors.column_bias)
        return self.gradients(self.without_ones(everywhere))

    def errors(self, num_draws: int) -> tuple[Errors, Errors]:
        """Of plain sampling and with the control variate."""
        exact, generator = self.exact(), torch.Generator().manual_seed(1)
        factors = self.model.decoder.require_factors(self.z)
        known = AllPairs.of(factors)
        ones = self.model.decoder.logits(self.z, self.ones.pairs)
        at_ones = self.ones.sum(ones), self.ones.sum(ones.square())
        self.variate.learn(known, self.plain.sample_zeros(generator))
        plain, variate = list[Errors](), list[Errors]()
        for _ in range(num_draws):
            at_zeros = loss_at_zeros(self.model.decoder.logits(self.z, self.plain.sample_zeros(generator)))
            drawn = self.plain.num_zeros / self.plain.num_negatives * at_zeros.sum()
            estimate = self.variate.estimate(known, at_ones, self.plain.sample_zeros(generator))
            for found, loss in ((plain, drawn), (variate, estimate)):
                found.append(Errors(*map(relative_error, self.gradients(loss), exact)))
        return Errors.mean(plain), Errors.mean(variate)


def relative_error(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).square().sum() / exact.square().sum())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="*", default=["cora", "pubmed"])
    parser.add_argument("--model", default="vgae", choices=["gae", "vgae"])
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--draws", type=int, default=50)
    options = parser.parse_args()
    print(describe_machine())
    least = float("inf")
    for name in options.datasets or ["cora", "pubmed"]:
        split = vgae.split_links(vgae.load_dataset(name), seed=0)
        num_pairs = options.pairs or split.train.num_nodes
        for features in (True, False):
            for iterations in (20, 200):
                config = Config(
                    model=options.model,
                    features=features,
                    iterations=iterations,
                    objective="exact",
                    eval_every=iterations,
                    device="cpu",
                )
                plain, variate = Zeros(train(Job.of(split.train, config)), num_pairs).errors(options.draws)
                words = f"{name} {options.model}, {'' if features else 'no '}features, {iterations} iterations"
                print(f"{words:42} M = {num_pairs:5}", end="")
                for where in ("embeddings", "weights"):
                    of_plain, of_variate = getattr(plain, where), getattr(variate, where)
                    ratio = of_plain / of_variate
                    least = min(least, ratio)
                    print(f" · {where} {of_plain:7.3g} / {of_variate:8.3g} = {ratio:5.1f}", end="", flush=True)
                print(flush=True)
    print(f"least ratio {least:.1f}, at least {TARGET:g} wanted: {'ok' if least >= TARGET else 'NOT REACHED'}")


if __name__ == "__main__":
    main()
