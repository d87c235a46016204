"""The control variate: the same expectation as the exact objective, and never more noise than plain sampling."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

import vgae
from command import run_vgae
from helpers import message_of
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.likelihood.positive_pairs import Observed
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import MLP, Decoder
from vgae.model.inputs import EncoderInputs
from vgae.objective.base import LossOptions
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.variate import FEWEST_PAIRS, AllPairs, ControlVariate
from vgae.objective.weighting import Weighting
from vgae.ops import Factors
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

NUM_NODES, NUM_DRAWS = 40, 1000
OBSERVED = [Observed(diagonal, soft) for diagonal, soft in product([True, False], repeat=2)]


class Biased(Decoder):
    """logit_ij = z_i·(z_j, turned by one dimension) + z_i0 - 2 z_j1: q ≠ k, and two biases."""

    symmetric = False

    def factors(self, z: Tensor) -> Factors:
        return Factors(z, z.roll(1, dims=1), z[:, 0], -2 * z[:, 1])


class Apart(Decoder):
    """logit_ij = scale·z_i·z_j + bias."""

    def __init__(self, scale: float, bias: float) -> None:
        super().__init__()
        self.scale, self.bias = scale, bias

    def factors(self, z: Tensor) -> Factors:
        bias = torch.full_like(z[:, 0], self.bias / 2)
        return Factors(self.scale**0.5 * z, None, bias, bias)


class Shifted(Decoder):
    """logit_ij = z_i·z_j + z_i0 + z_j0 - 1: symmetric, with a bias for each node."""

    def factors(self, z: Tensor) -> Factors:
        bias = z[:, 0] - 0.5
        return Factors(z, None, bias, bias)


@pytest.fixture(scope="module")
def graph() -> Graph:
    plain = stochastic_block_model(NUM_NODES, 4, seed=3)
    weights = np.random.default_rng(0).uniform(0.05, 1, plain.num_edges)
    return Graph.from_edges(plain.edges, num_nodes=NUM_NODES, weights=weights)


def model_with(decoder: Decoder | None) -> AutoEncoder:
    composition = Config(model="gae", hidden_dim=4, latent_dim=3).composition
    model = composition.build(NUM_NODES, torch.Generator().manual_seed(0))
    model.decoder = decoder or model.decoder
    return model


def embeddings(scale: float = 1.0) -> Tensor:
    drawn = torch.randn(NUM_NODES, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return (scale * drawn).requires_grad_()


# ---------------------------------------------------------------------------------------------------------- unbiased


@pytest.mark.parametrize("observed", OBSERVED, ids=str)
@pytest.mark.parametrize("decoder", [None, Shifted(), Biased()], ids=["inner product", "symmetric, biases", "q ≠ k"])
def test_value_and_gradient_have_those_of_the_exact_objective_as_their_means(
    graph: Graph, observed: Observed, decoder: Decoder | None
) -> None:
    model, z, source = model_with(decoder), embeddings(), torch.Generator().manual_seed(5)
    given: Any = (graph, model, Weighting.named("paper", graph), "cpu")
    options = LossOptions(observed)
    exact = ExactObjective(*given, options=options).reconstruction(model.decoder, z, source, value=True)
    (gradient,) = torch.autograd.grad(exact, z)
    sampled = SampledObjective(*given, options=options, num_negatives=30)
    values, gradients = [], []
    for _ in range(NUM_DRAWS):
        value = sampled.reconstruction(model.decoder, z, source, value=True)
        values.append(value.detach())
        gradients.append(torch.autograd.grad(value, z)[0])
    for found, expected in ((torch.stack(values)[:, None], exact.detach()), (torch.stack(gradients), gradient)):
        deviation = (found.mean(dim=0) - expected) / (found.std(dim=0) / NUM_DRAWS**0.5)
        assert float(deviation.abs().max()) <= 4.5  # of 120 standard normal deviations
        assert float(deviation.square().mean()) <= 2 if deviation.numel() > 1 else True


def test_a_step_has_no_say_in_its_own_coefficients() -> None:
    """With those of the draw before, the estimate is what the formula says, by the dense matrix."""
    z = embeddings(0.5).detach()
    known, logits = AllPairs.of(Factors(z)), z @ z.T
    ones = torch.eye(NUM_NODES, dtype=torch.bool)
    at_ones = logits[ones].sum(), logits[ones].square().sum()
    num_zeros = NUM_NODES**2 - NUM_NODES
    for seed in (1, 2):
        variate = ControlVariate(num_zeros, 30, "cpu")
        variate.learn(known, zeros_of(30, torch.Generator().manual_seed(0)))
        a, b = variate.coefficients(known)
        assert float(b) > 0
        pairs = zeros_of(30, torch.Generator().manual_seed(seed))
        residual = softplus(logits) - a * logits - b * logits**2
        expected = (a * logits + b * logits**2)[~ones].sum() + num_zeros / 30 * residual[tuple(pairs.T)].sum()
        torch.testing.assert_close(variate.estimate(known, at_ones, pairs), expected)
        assert variate.coefficients(known) != (a, b)  # the next step's are those of this draw


def zeros_of(num_pairs: int, generator: torch.Generator, num_nodes: int = NUM_NODES) -> Tensor:
    """Pairs of two nodes, as if none were linked."""
    sources = torch.randint(num_nodes, (num_pairs,), generator=generator)
    further = torch.randint(1, num_nodes, (num_pairs,), generator=generator)
    return torch.stack([sources, (sources + further) % num_nodes]).T


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_precisions_come_near(dtype: torch.dtype) -> None:
    rough, source = embeddings(0.5).detach().to(dtype), torch.Generator().manual_seed(0)
    logits = rough.double() @ rough.double().T
    ones = torch.eye(NUM_NODES, dtype=torch.bool)
    at_ones = logits[ones].sum().float(), logits[ones].square().sum().float()
    variate = ControlVariate(NUM_NODES**2 - NUM_NODES, 200, "cpu")
    variate.learn(AllPairs.of(Factors(rough)), zeros_of(200, source))
    known = AllPairs.of(Factors(rough.requires_grad_()))
    found = variate.estimate(known, at_ones, zeros_of(200, source))
    assert found.dtype == dtype
    assert float(found.detach()) == pytest.approx(float(softplus(logits)[~ones].sum()), rel=0.03)
    (gradient,) = torch.autograd.grad(found, rough)
    assert gradient.dtype == dtype
    assert bool(torch.isfinite(gradient).all())


def test_one_zero_and_one_draw_are_enough() -> None:
    """Three nodes in a row have one pair that is no link: whatever is drawn, it is that one."""
    path = Graph.from_edges([(0, 1), (1, 2)])
    model = Config(model="gae", latent_dim=3).composition.build(3, torch.Generator().manual_seed(0))
    z, weights, source = embeddings().detach()[:3], Weighting.named("elbo", path), torch.Generator()
    objective = SampledObjective(path, model, weights, "cpu", num_negatives=1)
    found = [float(objective.reconstruction(model.decoder, z, source, value=True)) for _ in range(5)]
    exact = ExactObjective(path, model, weights, "cpu").reconstruction(model.decoder, z, source, value=True)
    assert found == pytest.approx([float(exact)] * 5, rel=1e-6)


# ------------------------------------------------------------------------------------------- never worse than plain


class Moments:
    """E w (σ - p')² over all pairs of two nodes, by the dense matrices."""

    def __init__(self, factors: Factors) -> None:
        bias = sum(each is not None for each in (factors.row_bias, factors.column_bias))
        s = factors.block(torch.arange(factors.num_nodes)).double()
        w = factors.q.square().sum(dim=1)[:, None] + factors.columns.square().sum(dim=1) + bias
        of_two = ~torch.eye(len(s), dtype=torch.bool)
        self.s, self.w = s[of_two], w[of_two].double()

    def __call__(self, a: float, b: float) -> float:
        return float((self.w * (self.s.sigmoid() - a - 2 * b * self.s) ** 2).mean())


def spread(factors: Factors, num_pairs: int, num_draws: int = 60) -> list[float]:
    """The second moment of the gradient's noise in that of plain sampling, after one draw each."""
    moments, source, found = Moments(factors), torch.Generator().manual_seed(0), []
    plain, known = moments(0, 0), AllPairs.of(factors)
    for _ in range(num_draws):
        variate = ControlVariate(factors.num_nodes * (factors.num_nodes - 1), num_pairs, "cpu")
        variate.learn(known, zeros_of(num_pairs, source, factors.num_nodes))
        a, b = variate.coefficients(known)
        found.append(moments(float(a), float(b)) / plain)
    return found


def normal() -> Tensor:
    """Factors of 300 nodes whose logits are of standard deviation 1."""
    return torch.randn(300, 16, generator=torch.Generator().manual_seed(2), dtype=torch.float64) / 2


@pytest.mark.parametrize(
    ("scale", "most"), [(0.01, 1e-3), (0.1, 1e-3), (1.0, 0.01), (3.0, 0.1), (10.0, 0.2), (100.0, 0.3)]
)
def test_the_noise_falls_whatever_the_scale_of_logits(scale: float, most: float) -> None:
    """Logits with this standard deviation; the noise of steps at their limit is that of a line through a step."""
    found = spread(Factors(normal() * scale**0.5), 300)
    assert np.mean(found) < most
    assert max(found) < 1.5 * most


@pytest.mark.parametrize("norm", [10, 1e2, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("num_pairs", [10, 300, 3000])
@pytest.mark.parametrize(("bias", "dtype"), [(None, torch.float64), (None, torch.float32), (-100.0, torch.float64)])
def test_a_hub_of_enormous_norm_does_not_make_it_worse(
    norm: float, num_pairs: int, bias: float | None, dtype: torch.dtype
) -> None:
    """Its pairs are one in 150: most draws of ten pairs, and their line, know nothing of them."""
    q = normal().to(dtype)
    q[7] *= norm
    biases = None if bias is None else torch.zeros(300, dtype=torch.float64).index_fill(0, torch.tensor([7]), bias)
    found = spread(Factors(q, None, biases, biases), num_pairs)
    assert np.mean(found) < 1.02
    assert max(found) < 1.2


@pytest.mark.parametrize("power", [1, 2, 4])
def test_heavy_tails_do_not_make_it_worse(power: int) -> None:
    """Norms with tails of the power -1, -½ and -¼: no mean, let alone a variance."""
    norms = torch.rand(300, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64) ** -power
    found = spread(Factors(norms * normal()), 300)
    assert np.mean(found) < 1.02
    assert max(found) < 1.2


@pytest.mark.parametrize("bias", [-2.0, -8.0, -20.0])
def test_links_that_are_all_unlikely_do_not_make_it_worse(bias: float) -> None:
    """σ is almost zero but for a few pairs, and a draw with one of them sees too many."""
    biases = torch.full((300,), bias / 2, dtype=torch.float64)
    for num_pairs in (30, 300):
        found = spread(Factors(normal(), None, biases, biases), num_pairs)
        assert np.mean(found) < 1.02
        assert max(found) < 1.2


def test_numbers_beyond_all_bounds_leave_plain_sampling() -> None:
    """Sums that overflow in float32, although no logit does; and before the first draw."""
    q = torch.full((10, 2), 1e-3)
    q[0] = 1e12
    known, variate = AllPairs.of(Factors(q)), ControlVariate(90, 20, "cpu")
    assert [float(each) for each in variate.coefficients(AllPairs.of(Factors(q.clamp(max=1))))] == [0, 0]
    variate.learn(known, zeros_of(20, torch.Generator().manual_seed(0), 10))
    assert not torch.isfinite(known.means()).all()
    assert [float(each) for each in variate.coefficients(known)] == [0, 0]


@pytest.mark.parametrize("weighting", ["paper", "elbo"])
@pytest.mark.parametrize("gap", [0.5, 4.0, 12.0])
def test_links_that_stand_out_add_no_noise(gap: float, weighting: str) -> None:
    """Zeros have logits near -gap and links near gap: the ones are never drawn, however little is left to sample."""
    blocks = np.repeat(np.arange(10), 4)
    edges = [(i, j) for i in range(40) for j in range(i) if blocks[i] == blocks[j]]
    graph, model = Graph.from_edges(edges, num_nodes=40), model_with(Apart(2 * gap, -gap))
    noise = 0.05 * torch.randn(40, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = (torch.eye(10, dtype=torch.float64)[torch.tensor(blocks)] + noise).requires_grad_()
    given: Any = (graph, model, Weighting.named(weighting, graph), "cpu")
    source = torch.Generator().manual_seed(0)
    exact = ExactObjective(*given).reconstruction(model.decoder, z, source, value=True)
    (expected,) = torch.autograd.grad(exact, z)

    def error(control_variate: bool) -> float:
        objective = SampledObjective(*given, num_negatives=100, control_variate=control_variate)
        drawn = (objective.reconstruction(model.decoder, z, source, value=True) for _ in range(60))
        return float(np.mean([(torch.autograd.grad(each, z)[0] - expected).square().sum() for each in drawn]))

    assert error(control_variate=True) < 1.1 * error(control_variate=False)


def test_squared_error_of_the_gradient_falls_twentyfold(graph: Graph) -> None:
    """Of the whole loss in the weights of a trained encoder, at the same number of pairs."""
    trained = train(Job.of(graph, Config(model="gae", iterations=30, hidden_dim=8, latent_dim=4, device="cpu")))
    model, inputs = trained.model, EncoderInputs.from_graph(trained.job.graph)
    given: Any = (graph, model, Weighting.named("paper", graph), "cpu")
    weights = list(model.parameters())

    def error(objective: SampledObjective) -> float:
        source = torch.Generator().manual_seed(3)
        with torch.no_grad():
            objective.begin(model, inputs, source)
        return float(np.mean([squared(objective(model, inputs, source).total) for _ in range(50)]))

    def squared(loss: Tensor) -> float:
        parts = zip(torch.autograd.grad(loss, weights), exact, strict=True)
        return sum(float((found - expected).square().sum()) for found, expected in parts)

    exact = torch.autograd.grad(ExactObjective(*given)(model, inputs, torch.Generator()).total, weights)
    plain = error(SampledObjective(*given, num_negatives=200, control_variate=False))
    assert plain / error(SampledObjective(*given, num_negatives=200)) > 20


# --------------------------------------------------------------------------------------------------------- as an option


def test_default_number_of_pairs(graph: Graph) -> None:
    weights = Weighting.named("paper", graph)
    assert SampledObjective(graph, model_with(None), weights, "cpu").num_negatives == FEWEST_PAIRS
    large = stochastic_block_model(12_000, 3, seed=0)
    model = Config(latent_dim=2, hidden_dim=2).composition.build(12_000, torch.Generator().manual_seed(0))
    assert SampledObjective(large, model, weights, "cpu").num_negatives == 12_000
    assert SampledObjective(large, model, weights, "cpu", control_variate=False).num_negatives == 2 * large.num_edges
    assert SampledObjective(large, model, weights, "cpu", num_negatives=7).num_negatives == 7


def test_auto_is_on_with_factors_and_off_without(graph: Graph) -> None:
    short = {"objective": "sampled", "iterations": 3, "seed": 1}
    embedded = {
        asked: vgae.GAE(control_variate=asked, **short).fit(graph).transform().tobytes()
        for asked in ("auto", "on", "off")
    }
    assert embedded["auto"] == embedded["on"] != embedded["off"]
    without = [vgae.GAE(decoder="mlp", control_variate=asked, **short).fit(graph) for asked in ("auto", "off")]
    assert without[0].transform().tobytes() == without[1].transform().tobytes()


def test_on_is_refused_without_factors(tmp_path: Path, graph: Graph) -> None:
    sentence = "control_variate: the decoder mlp has no factors, which the control variate needs; use auto or off."
    assert message_of(lambda: vgae.GAE(decoder="mlp", control_variate="on").fit(graph)) == sentence
    model = Config(decoder=MLP(), latent_dim=3).composition.build(40, torch.Generator().manual_seed(0))
    with pytest.raises(InputError, match="has no factors"):
        SampledObjective(graph, model, Weighting.named("elbo", graph), "cpu", control_variate=True)
    done = run_vgae("train", "cora", "--decoder", "mlp", "--control-variate", "on", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "run").exists()


def test_earlier_trainings_have_sampled_without() -> None:
    for asked, used, expected in (
        ("sampled", "sampled", "off"),
        ("auto", "sampled", "off"),
        ("auto", "exact", "auto"),
        ("exact", "exact", "auto"),
    ):
        values = Config(objective=asked).to_json()
        del values["control_variate"]
        assert Config.from_json(values, trained_with=used).control_variate == expected
    values = Config(objective="sampled", control_variate="on").to_json()
    assert Config.from_json(values, trained_with="sampled").control_variate == "on"


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_means_over_all_pairs_by_kernels_are_those_of_the_dense_matrix(
    monkeypatch: pytest.MonkeyPatch, two: bool, biases: bool, scale: float
) -> None:
    pytest.importorskip("numba")
    draws = torch.Generator().manual_seed(5)
    q, k = (scale * torch.randn(50, 7, generator=draws) for _ in range(2))
    r, c = (torch.randn(50, generator=draws) for _ in range(2))
    given = Factors(q, k if two else None, r if biases else None, c if biases else None)
    known = AllPairs.of(given)
    s = given.logits(torch.cartesian_prod(torch.arange(50), torch.arange(50))).double().view(50, 50)
    squares = (q.square().sum(dim=1), (k if two else q).square().sum(dim=1))
    weight = (squares[0][:, None] + squares[1] + (2 if biases else 0)).double()
    off = ~torch.eye(50, dtype=torch.bool)
    expected = torch.stack([weight[off].mean(), (weight * s)[off].mean(), (weight * s * s)[off].mean()])
    for suits in (False, True):
        monkeypatch.setattr("vgae.objective.variate.numba_suits", lambda _, suits=suits: suits)
        torch.testing.assert_close(known.means(), expected, rtol=1e-4, atol=1e-4)
