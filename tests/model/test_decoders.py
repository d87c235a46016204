"""Decoders: every registered one is held against its equation, written out once more here over all pairs in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from helpers import message_of
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder, DecoderSpec, Distance, InnerProduct
from vgae.model.spec import find, registered
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import Weighting
from vgae.ops import Factors
from vgae.train.config import Config

Matrix = npt.NDArray[np.float64]
DECODERS = (  # with all kinds of options; the last test of this section sees that none is left out
    "inner_product",
    "scaled",
    "scaled:scale=0.3,bias=-2",
    "scaled:node_bias=true,bias=1",
    "bilinear",
    "bilinear:form=full,bias=-1",
    "distance",
    "distance:scale=2,bias=3",
    "source_target",
    "source_target:bias=-2",
    "gravity",
    "gravity:scale=3,epsilon=0.5,bias=1",
    "mlp",
    "mlp:layers=0",
    "mlp:width=5,layers=3,bias=-1",
)
FACTORISED = [text for text in DECODERS if not text.startswith(("gravity", "mlp"))]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def spec_of(text: str) -> DecoderSpec:
    spec = find("decoder", text)
    assert isinstance(spec, DecoderSpec)
    return spec


def make(text: str, dim: int = 4, noise: float = 0.3) -> Decoder:
    """A decoder somewhere in training, in double precision."""
    decoder = spec_of(text).build(dim, generator()).double()
    with torch.no_grad():
        for number, weight in enumerate(decoder.parameters()):
            weight.add_(noise * torch.randn(weight.shape, generator=generator(number), dtype=torch.float64))
    return decoder


def embeddings(num_nodes: int = 9, dim: int = 4) -> Tensor:
    return torch.randn(num_nodes, dim, generator=generator(2), dtype=torch.float64)


def all_pairs(num_nodes: int) -> Tensor:
    return torch.cartesian_prod(torch.arange(num_nodes), torch.arange(num_nodes))


# ------------------------------------------------------------------------------------------------------------ equations


def _squared_distances(z: Matrix) -> Matrix:
    squares: Matrix = ((z[:, None] - z[None, :]) ** 2).sum(axis=2)
    return squares


def _scaled(z: Matrix, weights: dict[str, Matrix], spec: Any) -> Matrix:
    scale, bias = np.exp(weights["log_scale"]), weights["bias"]
    if not spec.node_bias:
        return scale * z @ z.T + bias
    return scale * z[:, :-1] @ z[:, :-1].T + bias + z[:, -1:] + z[:, -1]


def _bilinear(z: Matrix, weights: dict[str, Matrix], spec: Any) -> Matrix:
    matrix = np.diag(weights["weight"]) if spec.form == "diagonal" else weights["weight"]
    return z @ matrix @ z.T + weights["bias"]


def _distance(z: Matrix, weights: dict[str, Matrix], spec: Any) -> Matrix:
    del spec
    return weights["bias"] - np.exp(weights["log_scale"]) * _squared_distances(z)


def _source_target(z: Matrix, weights: dict[str, Matrix], spec: Any) -> Matrix:
    del spec
    sources, targets = np.split(z, 2, axis=1)
    return sources @ targets.T + weights["bias"]


def _gravity(z: Matrix, weights: dict[str, Matrix], spec: Any) -> Matrix:
    fall = np.log(_squared_distances(z[:, :-1]) + spec.epsilon)
    logits: Matrix = z[None, :, -1] - np.exp(weights["log_scale"]) * fall + weights["bias"]
    return logits


def _mlp(z: Matrix, weights: dict[str, Matrix], spec: Any) -> Matrix:
    values = z[:, None] * z[None, :]
    for layer in range(spec.layers):
        values = np.maximum(values @ weights[f"weights.{layer}"] + weights[f"biases.{layer}"], 0)
    return (values @ weights[f"weights.{spec.layers}"])[..., 0] + weights["bias"]


EQUATIONS: dict[str, Callable[..., Matrix]] = {
    "inner_product": lambda z, weights, spec: z @ z.T,  # noqa: ARG005
    "scaled": _scaled,
    "bilinear": _bilinear,
    "distance": _distance,
    "source_target": _source_target,
    "gravity": _gravity,
    "mlp": _mlp,
}


def dense(text: str, decoder: Decoder, z: Tensor) -> Tensor:
    weights = {name: weight.detach().double().numpy() for name, weight in decoder.named_parameters()}
    spec = spec_of(text)
    return torch.from_numpy(EQUATIONS[spec.name](z.detach().double().numpy(), weights, spec))


def test_every_registered_decoder_has_its_equation_here() -> None:
    own = {name for name, spec in registered("decoder").items() if spec.__module__.startswith("vgae.")}
    assert own == set(EQUATIONS) == {spec_of(text).name for text in DECODERS}


@pytest.mark.parametrize("num_nodes", [1, 2, 9])
@pytest.mark.parametrize("text", DECODERS)
def test_every_decoder_is_its_equation_by_pairs_by_rows_and_by_factors(text: str, num_nodes: int) -> None:
    for dim in (1, 2, 4):
        if dim == 1 and text.startswith(("gravity", "source_target", "scaled:node_bias")):
            continue
        decoder, z = make(text, dim), embeddings(num_nodes, dim)
        expected = dense(text, decoder, z)
        pairs = all_pairs(num_nodes)
        torch.testing.assert_close(decoder.logits(z, pairs).view(num_nodes, -1), expected)
        with torch.no_grad():
            torch.testing.assert_close(decoder.logits(z, pairs).view(num_nodes, -1), expected)
        rows = decoder.rows(z)
        assert (rows.num_nodes, rows.device) == (num_nodes, z.device)
        torch.testing.assert_close(rows.block(torch.arange(num_nodes)), expected)
        last = torch.tensor([num_nodes - 1, 0])
        torch.testing.assert_close(rows.block(last, num_nodes - 1), expected[last, num_nodes - 1 :])
        factors = decoder.factors(z)
        assert decoder.factorised == (factors is not None)
        assert len(decoder.logits(z, pairs[:0])) == 0
        if factors is None:
            continue
        matrix = factors.q @ factors.columns.T
        for bias, axis in ((factors.row_bias, 1), (factors.column_bias, 0)):
            matrix = matrix if bias is None else matrix + bias.unsqueeze(axis)
        torch.testing.assert_close(matrix, expected)


@pytest.mark.parametrize("text", DECODERS)
def test_every_decoder_says_whether_directions_matter_and_half_a_sweep_is_enough(text: str) -> None:
    decoder, z = make(text), embeddings()
    expected = dense(text, decoder, z)
    assert decoder.symmetric == torch.allclose(expected, expected.T)
    factors = decoder.factors(z)
    if factors is not None:
        assert decoder.mirrored == (factors.k is None and factors.row_bias is factors.column_bias)


def test_blocks_of_a_network_are_the_same_whatever_is_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, z = make("mlp:width=5,layers=2"), embeddings(11)
    whole = decoder.rows(z).block(torch.arange(11), 2)
    for held in (1, 12, 40, 130):
        monkeypatch.setattr("vgae.model.decoders.mlp.HELD", held)
        torch.testing.assert_close(decoder.rows(z).block(torch.arange(11), 2), whole)
        with torch.no_grad():
            torch.testing.assert_close(decoder.logits(z, all_pairs(11)).view(11, 11)[:, 2:], whole)


@pytest.mark.parametrize("text", DECODERS)
def test_rows_need_no_gradients(text: str) -> None:
    decoder = spec_of(text).build(4, generator())
    with torch.no_grad():
        rows = decoder.rows(embeddings(5).float())
    block = rows.block(torch.arange(3), 1)
    assert not block.requires_grad
    assert block.dtype == torch.float32
    block.fill_(0)  # it is the caller's
    assert bool(rows.block(torch.arange(3), 1).any())


# ------------------------------------------------------------------------------------------------------------ gradients


def _function(decoder: Decoder, give: Callable[[Tensor], Tensor]) -> tuple[Callable[..., Tensor], list[Tensor]]:
    """What a decoder gives, as a function of z and of its weights."""
    names = [name for name, _ in decoder.named_parameters()]
    decoder.forward = lambda z: give(z)

    def call(z: Tensor, *weights: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(decoder, dict(zip(names, weights, strict=True)), (z,))
        return found

    return call, [weight.detach().clone().requires_grad_() for weight in decoder.parameters()]


@pytest.mark.parametrize("text", DECODERS)
def test_every_decoder_passes_gradients_to_embeddings_and_weights(text: str) -> None:
    decoder, pairs = make(text), all_pairs(5)
    z = embeddings(5).requires_grad_()
    call, weights = _function(decoder, lambda z: decoder.logits(z, pairs))
    assert torch.autograd.gradcheck(call, (z, *weights))
    if decoder.factorised:
        call, weights = _function(decoder, lambda z: decoder.require_factors(z).logits(pairs))
        assert torch.autograd.gradcheck(call, (z, *weights))


# ----------------------------------------------------------------------------------------------------------- objectives


@pytest.fixture(scope="module")
def graph() -> Graph:
    return stochastic_block_model(24, 2, feature_dim=6, seed=3)


def model_with(decoder: Decoder) -> AutoEncoder:
    model = Config(latent_dim=4).composition.build(6, generator())
    model.decoder = decoder
    return model


def dense_loss(text: str, decoder: Decoder, z: Tensor, graph: Graph, weighting: Weighting) -> Tensor:
    """The loss over all N² pairs with the labels A + I, by PyTorch's own function."""
    labels = torch.tensor(graph.adjacency.toarray() + np.eye(graph.num_nodes), dtype=z.dtype)
    logits = decoder.logits(z, all_pairs(graph.num_nodes)).view_as(labels)
    torch.testing.assert_close(logits, dense(text, decoder, z))
    weight = torch.tensor(weighting.positive_weight, dtype=z.dtype)
    return binary_cross_entropy_with_logits(logits, labels, pos_weight=weight, reduction="sum")


@pytest.mark.parametrize("weighting", ["paper", "elbo"])
@pytest.mark.parametrize("text", FACTORISED)
def test_exact_objective_of_every_decoder_with_factors_is_the_dense_loss(
    text: str, weighting: str, graph: Graph
) -> None:
    decoder, weights = make(text), Weighting.named(weighting, graph)
    z = embeddings(graph.num_nodes).requires_grad_()
    wanted = (z, *decoder.parameters())
    expected = dense_loss(text, decoder, z, graph, weights)
    objective = ExactObjective(graph, model_with(decoder), weights, "cpu")
    found = objective.reconstruction(decoder, z, generator(), value=True)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad(expected, wanted)
    torch.testing.assert_close(torch.autograd.grad(found, wanted), gradients)
    blind = objective.reconstruction(decoder, z, generator(), value=False)
    torch.testing.assert_close(torch.autograd.grad(blind, wanted), gradients)


@pytest.mark.parametrize("text", DECODERS)
def test_sampled_objective_of_every_decoder_has_the_dense_loss_as_its_mean(text: str, graph: Graph) -> None:
    decoder, weights = make(text), Weighting.named("paper", graph)
    z = embeddings(graph.num_nodes)
    objective = SampledObjective(graph, model_with(decoder), weights, "cpu", num_negatives=50)
    source = generator(4)
    with torch.no_grad():
        draws = torch.stack([objective.reconstruction(decoder, z, source, value=True) for _ in range(600)])
        expected = dense_loss(text, decoder, z, graph, weights)
    error = float(draws.std()) / 600**0.5
    assert abs(float(draws.mean()) - float(expected)) < 4.5 * error
    assert error < 0.02 * float(expected)  # else anything would do


@pytest.mark.parametrize("text", DECODERS)
def test_every_decoder_trains_where_logits_are_as_large_as_100(text: str, graph: Graph) -> None:
    decoder, weights = make(text), Weighting.named("elbo", graph)
    z = embeddings(graph.num_nodes)
    with torch.no_grad():  # what multiplies logits, by bisection
        low, high = 0.0, 1e30 if text.startswith("gravity") else 1e4
        for _ in range(200):
            middle = (low * high) ** 0.5 if low else high / 1e6
            reached = float(dense(text, decoder, middle * z).abs().max())
            low, high = (middle, high) if reached < 100 else (low, middle)
    large = (low * z).float().requires_grad_()
    decoder.float()
    exact, wanted = decoder.factorised, (large, *decoder.parameters())
    objective = (ExactObjective if exact else SampledObjective)(graph, model_with(decoder), weights, "cpu")
    loss = objective.reconstruction(decoder, large, generator(), value=True)
    gradients = torch.autograd.grad(loss, wanted)
    assert all(bool(torch.isfinite(each).all()) for each in (loss, *gradients))
    if exact:
        decoder.double()
        same = large.detach().double().requires_grad_()
        expected = dense_loss(text, decoder, same, graph, weights)
        assert float(dense(text, decoder, same).abs().max()) == pytest.approx(100, rel=1e-3)
        torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)
        for found, wished in zip(gradients, torch.autograd.grad(expected, (same, *decoder.parameters())), strict=True):
            torch.testing.assert_close(found.double(), wished, rtol=1e-3, atol=1e-4 * float(wished.abs().max()))


# ----------------------------------------------------------------------------------------------------- one by one


def test_inner_product_is_the_inner_product() -> None:
    z = torch.tensor([[1.0, 2.0], [-3.0, 0.5]])
    pairs = torch.tensor([[0, 1], [1, 1]])
    torch.testing.assert_close(InnerProduct().build(2, generator()).logits(z, pairs), torch.tensor([-2.0, 9.25]))


def test_factors_add_their_biases() -> None:
    factors = Factors(
        q=torch.tensor([[1.0], [2.0]]),
        k=torch.tensor([[3.0], [5.0]]),
        row_bias=torch.tensor([10.0, 20.0]),
        column_bias=torch.tensor([100.0, 200.0]),
    )
    found = factors.logits(torch.tensor([[0, 1], [1, 0]]))
    torch.testing.assert_close(found, torch.tensor([1 * 5 + 10 + 200.0, 2 * 3 + 20 + 100.0]))


@pytest.mark.parametrize("norm", [0.1, 1.0, 10.0, 100.0])
def test_factors_of_distances_do_not_cancel_far_from_the_origin(norm: float) -> None:
    """Points 1 apart, all at this distance from the origin: errors are those of points around the origin."""
    decoder = Distance(scale=1, bias=0).build(16, generator())
    z = 0.2 * torch.randn(200, 16, generator=generator(1)) + norm / 4
    expected = dense("distance", decoder, z)
    with torch.no_grad():
        found = decoder.rows(z).block(torch.arange(200))
        by_pairs = decoder.logits(z, all_pairs(200)).view(200, 200)
    assert float((found - expected).abs().max()) < 3e-6
    assert float((by_pairs - expected).abs().max()) < 3e-6
    q = 2**0.5 * z
    naive = q @ q.T - q.square().sum(dim=1) / 2 - q.square().sum(dim=1, keepdim=True) / 2
    assert norm < 100 or float((naive - expected).abs().max()) > 1e-3  # what centring is for


@pytest.mark.parametrize("text", [text for text in DECODERS if not text.startswith(("inner_product", "distance"))])
def test_bias_starts_from_the_log_odds_of_a_link_unless_it_is_given(text: str, graph: Graph) -> None:
    spec: Any = spec_of(text)
    assert Config().log_odds(graph) == pytest.approx(0, abs=1e-12)
    log_odds = Config(weighting="elbo").log_odds(graph)
    share = 2 * graph.num_edges / graph.num_nodes**2
    assert log_odds == pytest.approx(np.log(share / (1 - share)))
    decoder = spec.build(4, generator())
    decoder.begin(log_odds)
    assert float(decoder.bias.detach()) == pytest.approx(log_odds if spec.bias is None else spec.bias)


def test_distances_start_where_draws_of_the_prior_are_linked_about_as_often_as_nodes_are() -> None:
    draws = torch.randn(400, 8, generator=generator(1))
    draws = (draws - draws.mean(dim=0)) / draws.std(dim=0, correction=0)  # so that their mean distance is exact
    for log_odds, bias in ((0.0, 0.0), (-6.5, 0.0), (-6.5, 2.0)):
        decoder = Distance(bias=bias).build(8, generator())
        decoder.begin(log_odds)
        with torch.no_grad():
            logits = decoder.logits(draws, all_pairs(400))
        assert float(logits.mean()) == pytest.approx(log_odds - 1, rel=1e-4)
        assert float(logits.max()) == bias
    given = Distance(scale=3).build(8, generator())
    given.begin(-6.5)
    assert float(given.log_scale.detach().exp()) == pytest.approx(3)


@pytest.mark.parametrize(
    ("text", "dim", "words"),
    [
        ("source_target", 5, "latent_dim: the decoder source_target needs an even number"),
        ("gravity", 1, "latent_dim: the decoder gravity needs at least 2, one of which is the mass of each node"),
        ("scaled:node_bias=true", 1, "latent_dim: the decoder scaled needs at least 2, one of which is the bias"),
        ("scaled:scale=0", 4, "decoder scaled, scale: a number above 0"),
        ("bilinear:form=odd", 4, "decoder bilinear, form: 'odd' is not one of diagonal, full"),
        ("gravity:epsilon=0", 4, "decoder gravity, epsilon: a number of at least 1e-12"),
        ("mlp:layers=-1", 4, "decoder mlp, layers: a whole number from 0 to 16"),
    ],
)
def test_what_a_decoder_cannot_do_with_is_refused_by_name(text: str, dim: int, words: str) -> None:
    assert words in message_of(lambda: Config(decoder=text, latent_dim=dim))  # type: ignore[arg-type]
