"""Encoders: every registered one against its equation in dense float64 matrices, and what all of them have to offer."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from encoder_equations import (
    HEADS,
    REFERENCES,
    SPECS,
    dense_features,
    dense_propagation,
    generator,
    spec_of,
    with_dropout,
)
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.encoders import GCN, Encoder, GCNEncoder
from vgae.model.encoders.base import project
from vgae.model.inputs import EncoderInputs
from vgae.model.spec import find, registered
from vgae.train.config import Config
from vgae.train.presets import PRESETS

ENCODERS = registered("encoder")
KINDS = ("sparse", "dense", "none")


def make_graph(num_nodes: int = 30) -> Graph:
    """With weights, a node without links and one without features."""
    graph = stochastic_block_model(num_nodes, 3, feature_dim=12, seed=1)
    edges = graph.edges[graph.edges[:, 1] < num_nodes - 1]
    features = sp.csr_array(graph.features).toarray()
    features[2] = 0
    weights = np.random.default_rng(0).uniform(0.2, 3, len(edges))
    return Graph.from_edges(edges, num_nodes=num_nodes, weights=weights, features=sp.csr_array(features))


@pytest.fixture(scope="module")
def graph() -> Graph:
    return make_graph()


def seen_as(graph: Graph, kind: str) -> EncoderInputs:
    """The graph with sparse, dense or no features; dense ones in float64, as the weights are in these tests."""
    if kind == "none":
        return EncoderInputs.from_graph(graph.without_features())
    inputs = EncoderInputs.from_graph(graph)
    dense = torch.tensor(sp.csr_array(graph.features).toarray(), dtype=torch.float64)
    return inputs if kind == "sparse" else replace(inputs, features=dense)


def make(text: str, inputs: EncoderInputs, heads: Mapping[str, int] = HEADS) -> Encoder:
    return spec_of(text).build(inputs.input_dim, 5, heads, generator()).double()


def test_every_encoder_has_an_equation_here() -> None:
    own = {name for name, spec in ENCODERS.items() if spec.__module__.startswith("vgae.")}
    assert own == set(REFERENCES) == {text.partition(":")[0] for text in SPECS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", SPECS)
def test_every_encoder_is_its_equation(graph: Graph, text: str, kind: str) -> None:
    inputs, spec = seen_as(graph, kind), spec_of(text)
    module = make(text, inputs)
    weights = {name: weight.numpy() for name, weight in module.state_dict().items()}
    features = dense_features(graph, kind, unit_rows=getattr(spec, "unit_rows", False))
    expected = REFERENCES[spec.name](spec, dense_propagation(graph), features, weights)
    found = module(inputs)
    assert set(found) == set(HEADS)
    for head, values in found.items():
        assert values.dtype == torch.float64
        np.testing.assert_allclose(values.detach().numpy(), expected[head], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("masked", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", SPECS)
def test_every_encoder_has_the_gradient_of_its_output(text: str, kind: str, masked: float) -> None:
    """With dropout, and with links hidden: the draws are the same each time."""
    inputs = seen_as(make_graph(9), kind)
    module = make(with_dropout(text, 0.3), inputs, {"mean": 2, "log_std": 1})
    names = list(dict(module.named_parameters()))

    def outputs(*weights: Tensor) -> tuple[Tensor, ...]:
        step = inputs.in_step(generator(4), masked)
        found = torch.func.functional_call(module, dict(zip(names, weights, strict=True)), (step,))
        return tuple(found.values())

    assert torch.autograd.gradcheck(outputs, tuple(module.parameters()))


@pytest.mark.parametrize("text", SPECS)
def test_every_encoder_follows_the_nodes_when_they_are_renumbered(graph: Graph, text: str) -> None:
    order = np.random.default_rng(3).permutation(graph.num_nodes)
    place = np.argsort(order)  # of each node in the new order
    moved = Graph.from_edges(
        place[graph.edges],
        num_nodes=graph.num_nodes,
        weights=graph.weights,
        features=sp.csr_array(graph.features)[order],
    )
    inputs = EncoderInputs.from_graph(graph)
    module = make(text, inputs)
    there = module(EncoderInputs.from_graph(moved))
    for head, values in module(inputs).items():
        torch.testing.assert_close(there[head], values[torch.tensor(order)], rtol=1e-5, atol=1e-6)


def test_an_encoder_takes_the_heads_of_any_posterior(graph: Graph) -> None:
    inputs = EncoderInputs.from_graph(graph)
    for name, posterior in registered("posterior").items():
        heads: dict[str, int] = posterior().heads(3)  # type: ignore[attr-defined]
        for text in SPECS:
            found = make(text, inputs, heads)(inputs)
            assert {head: values.shape[1] for head, values in found.items()} == heads, name


# ------------------------------------------------------------------------------------------------------------ weights


def test_weights_start_glorot_uniform() -> None:
    module = GCNEncoder(GCN(), (1000, 200), {"mean": 50, "log_std": 50}, generator())
    for parameter in (module.input_weight, *module.head_weights.values()):
        weight = parameter.detach()
        bound = (6 / sum(weight.shape)) ** 0.5
        assert float(weight.abs().max()) <= bound
        assert float(weight.abs().max()) > 0.99 * bound
        assert float(weight.var()) == pytest.approx(bound**2 / 3, rel=0.05)
        assert float(weight.mean()) == pytest.approx(0, abs=4 * bound / (3 * weight.numel()) ** 0.5)


@pytest.mark.parametrize("text", SPECS)
def test_every_weight_of_every_encoder_starts_glorot_uniform(text: str) -> None:
    for weight in spec_of(text).build(300, 100, {"mean": 80, "other": 60}, generator()).state_dict().values():
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.99 * bound < float(weight.abs().max()) <= bound
        assert float(weight.var()) == pytest.approx(bound**2 / 3, rel=0.1)


def test_names_of_the_papers_weights_are_those_of_earlier_runs() -> None:
    module = GCN().build(7, 3, HEADS, generator())
    assert sorted(module.state_dict()) == ["head_weights.log_std", "head_weights.mean", "input_weight"]


def test_encoder_has_no_other_parameters() -> None:
    models = {name: Config(model=name).composition.build(1433, generator()) for name in ("gae", "vgae")}
    counts = {name: sum(weight.numel() for weight in model.parameters()) for name, model in models.items()}
    assert counts == {"gae": 1433 * 32 + 32 * 16, "vgae": 1433 * 32 + 2 * 32 * 16}
    assert set(counts) <= set(PRESETS)


@pytest.mark.parametrize("text", [text for text in SPECS if not text.startswith("directed")])
def test_gae_and_vgae_differ_only_by_the_posterior(graph: Graph, text: str) -> None:
    inputs = EncoderInputs.from_graph(graph)
    gae, vgae_ = (
        Config(model=name, encoder=spec_of(text)).composition.build(graph.num_features, generator())
        for name in ("gae", "vgae")
    )
    torch.testing.assert_close(gae.encode(inputs).mean, vgae_.encode(inputs).mean, rtol=1e-6, atol=1e-6)


def test_outlines_have_the_shapes_and_load_no_compiler() -> None:
    """As a process of its own, in which nothing else has loaded it."""
    code = f"""
import sys, torch
from vgae.train.config import Config
for text in {SPECS!r}:
    composition = Config(encoder=text).composition
    outline = composition.outline(50)
    built = composition.build(50, torch.Generator())
    shapes = [{{name: weight.shape for name, weight in model.state_dict().items()}} for model in (outline, built)]
    assert shapes[0] == shapes[1], text
    assert all(weight.is_meta for weight in outline.parameters())
    assert "torch._dynamo" not in sys.modules, text
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------------------------------ dropout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", SPECS)
def test_dropout_is_for_steps_of_training_alone(graph: Graph, text: str, kind: str) -> None:
    inputs = seen_as(graph, kind)
    plain, dropping = make(text, inputs), make(with_dropout(text, 0.4), inputs)
    for head, values in plain(inputs).items():
        assert torch.equal(dropping(inputs)[head], values)
    source = generator(1)
    before = source.get_state()
    in_step = plain(inputs.in_step(source))
    assert torch.equal(source.get_state(), before)  # without dropout, a step draws nothing
    first, second = (dropping(inputs.in_step(source)) for _ in range(2))
    again = dropping(inputs.in_step(generator(1)))
    for head in HEADS:
        assert torch.equal(in_step[head], plain(inputs)[head])
        assert torch.equal(first[head], again[head])
        assert not torch.equal(first[head], second[head])
        assert not torch.equal(first[head], in_step[head])


@pytest.mark.parametrize("kind", KINDS)
def test_dropped_features_are_unbiased(graph: Graph, kind: str) -> None:
    inputs = seen_as(graph, kind)
    weight = torch.randn(inputs.input_dim, 3, generator=generator(2), dtype=torch.float64)
    source = generator(5)
    draws = torch.stack([project(inputs.in_step(source), weight, dropout=0.4) for _ in range(4000)])
    error = draws.std(dim=0) / 4000**0.5
    expected = project(inputs, weight)
    assert bool(((draws.mean(dim=0) - expected).abs() <= 4.5 * error + 1e-12).all())
    # Entries are dropped one by one, each with its own draw: the variance of Σ_k x_k w_k b_k / (1 - p) says so.
    entries = torch.tensor(dense_features(graph, kind, unit_rows=False))
    variance = entries.square() @ weight.square() * 0.4 / 0.6
    torch.testing.assert_close(draws.var(dim=0), variance, rtol=0.15, atol=1e-9)


def test_dropout_sets_its_share_to_zero_and_scales_the_rest() -> None:
    inputs = EncoderInputs.from_graph(Graph.from_edges([(0, 1)])).in_step(generator())
    found = inputs.dropout(torch.full((400, 500), 3.0), 0.2)
    assert sorted(set(found.flatten().tolist())) == pytest.approx([0.0, 3 / 0.8])
    share = float((found == 0).float().mean())
    assert share == pytest.approx(0.2, abs=4.5 * (0.2 * 0.8 / 200_000) ** 0.5)


def test_linear_encoder_with_dropout_is_unbiased(graph: Graph) -> None:
    inputs = EncoderInputs.from_graph(graph)
    module, source = make("linear:dropout=0.5", inputs), generator(6)
    with torch.no_grad():
        draws = torch.stack([module(inputs.in_step(source))["mean"] for _ in range(3000)])
        expected = module(inputs)["mean"]
    assert bool(((draws.mean(dim=0) - expected).abs() <= 4.5 * draws.std(dim=0) / 3000**0.5 + 1e-9).all())


# ---------------------------------------------------------------------------------------------------------- normalized


def test_normalized_puts_a_node_without_links_on_the_sphere(graph: Graph) -> None:
    """The paper's encoder would shrink it with its features, and puts one without features at zero."""
    inputs = EncoderInputs.from_graph(graph)
    lonely = graph.num_nodes - 1
    found = make("normalized:hops=3,scale=2.5", inputs)(inputs)["mean"].detach()
    assert float(found[lonely].norm()) == pytest.approx(2.5)
    assert bool((found.norm(dim=1) > 0).all())


def test_scale_of_the_features_moves_nothing_but_the_other_heads(graph: Graph) -> None:
    larger = graph.with_parts(features=sp.csr_array(graph.features) * 7)
    inputs, others = EncoderInputs.from_graph(graph), EncoderInputs.from_graph(larger)
    module = make("normalized", inputs)
    torch.testing.assert_close(module(inputs)["mean"], module(others)["mean"])
    torch.testing.assert_close(7 * module(inputs)["log_std"], module(others)["log_std"])
    by_row = make("normalized:unit_rows=true", inputs)
    torch.testing.assert_close(by_row(inputs)["log_std"], by_row(others)["log_std"])


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_rows_of_zeros_have_finite_gradients(graph: Graph, kind: str) -> None:
    inputs = seen_as(graph.with_parts(features=sp.csr_array(graph.features) * 0), kind)
    module = make("normalized", inputs)
    found = module(inputs)["mean"]
    assert torch.equal(found, torch.zeros_like(found))
    found.sum().backward()
    assert all(bool(torch.isfinite(weight.grad).all()) for weight in module.parameters() if weight.grad is not None)


def test_residual_connections_need_three_layers() -> None:
    with pytest.raises(InputError, match=r"encoder gcn, residual: .* use layers=3 or more"):
        find("encoder", "gcn:residual=true")
    assert spec_of("gcn:residual=true,layers=3") == GCN(layers=3, residual=True)
