"""Encoders on a part of the graph: what they give for some nodes is what they give for them in all of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from encoder_equations import HEADS, SPECS, generator, spec_of, with_dropout

from vgae.graph.graph import Graph
from vgae.model import mapped
from vgae.model.inputs import EncoderInputs, Layout
from vgae.model.neighbourhoods import Hops, Neighbourhoods

NODES = np.array([7, 3, 30])


def graph_of(kind: str, folder: Path, *, directed: bool = False) -> Graph:
    """A sparse graph of 40 nodes in which nodes have few others two links away; 39 has no links."""
    draws = np.random.default_rng(3)
    edges = draws.integers(39, size=(45, 2))
    features: Any = np.where(draws.random((40, 6)) < 0.5, draws.standard_normal((40, 6)), 0).astype(np.float32)
    if kind == "sparse":
        features = sp.csr_array(features)
    elif kind == "mapped":
        np.save(folder / "features.npy", features)
        features = np.load(folder / "features.npy", mmap_mode="r")
    elif kind == "none":
        features = None
    return Graph.from_edges(edges, num_nodes=40, features=features, directed=directed)


@pytest.mark.parametrize("kind", ["none", "dense", "sparse", "mapped"])
@pytest.mark.parametrize("text", SPECS)
def test_a_part_has_the_outputs_and_gradients_of_the_whole_graph(tmp_path: Path, text: str, kind: str) -> None:
    graph, spec = graph_of(kind, tmp_path, directed="directed" in text), spec_of(text)
    inputs = EncoderInputs.from_graph(graph)
    encoder = spec.build(inputs.input_dim, 5, HEADS, generator())
    around = Neighbourhoods(Layout(graph, "cpu"), spec)
    found: list[dict[str, torch.Tensor]] = []
    for seen, rows in ((inputs, NODES), (around.whole(), NODES), (around.around(NODES), np.arange(3))):
        encoder.zero_grad()
        outputs = {name: values[rows] for name, values in encoder(seen).items()}
        torch.cat([values.square() for values in outputs.values()], dim=1).sum().backward()  # type: ignore[no-untyped-call]
        gradients = {
            name: torch.clone(weight.grad) for name, weight in encoder.named_parameters() if weight.grad is not None
        }
        found.append(outputs | gradients)
    for others in found[1:]:
        for name, values in found[0].items():
            torch.testing.assert_close(others[name], values, rtol=2e-5, atol=2e-6)


def test_a_part_is_no_larger_than_it_has_to_be(tmp_path: Path) -> None:
    """K - h hops around the nodes, where h of them are made once."""
    graph = graph_of("dense", tmp_path)
    linked = sp.csr_array(graph.adjacency + sp.eye_array(40))
    one, two = (np.flatnonzero((power[NODES] != 0).sum(axis=0)) for power in (linked, sp.csr_array(linked @ linked)))
    assert 3 < len(one) < len(two) < 40
    for text, hops, nodes in (("gcn", 1, one), ("gcn:dropout=0.5", 2, two), ("linear", 0, NODES), ("mlp", 2, two)):
        seen = Neighbourhoods(Layout(graph, "cpu"), spec_of(text)).around(NODES)
        assert isinstance(seen.features, torch.Tensor)
        assert isinstance(seen.propagation, Hops)
        assert len(seen.features) == len(nodes)
        assert len(seen.propagation.by_rows) == hops


def test_hops_stay_in_a_set_without_neighbours_outside() -> None:
    path = Graph.from_edges([[0, 1], [1, 2]], num_nodes=5)
    spec = spec_of("gcn:layers=5,residual=true")
    encoder = spec.build(5, 4, HEADS, generator())
    whole = encoder(EncoderInputs.from_graph(path))
    part = encoder(Neighbourhoods(Layout(path, "cpu"), spec).around(np.array([4, 2])))
    for name, values in whole.items():
        torch.testing.assert_close(part[name][:2], values[[4, 2]])


@pytest.mark.parametrize("text", ["gcn", "linear", "mlp"])
def test_dropout_in_a_part_drops_the_same_share(tmp_path: Path, text: str) -> None:
    """The mean over draws is what it is in the whole graph, within its standard errors."""
    graph, spec = graph_of("dense", tmp_path), spec_of(with_dropout(text, 0.3))
    around = Neighbourhoods(Layout(graph, "cpu"), spec)
    assert around.hops_done == 0
    encoder, draws = spec.build(6, 5, HEADS, generator()), generator(1)
    inputs = EncoderInputs.from_graph(graph)
    with torch.no_grad():
        samples = [
            torch.stack([encoder(seen.in_step(draws))["mean"][rows] for _ in range(400)])
            for seen, rows in ((inputs, NODES), (around.around(NODES), np.arange(3)))
        ]
    means, errors = [each.mean(dim=0) for each in samples], [each.std(dim=0) / 20 for each in samples]
    assert ((means[0] - means[1]).abs() <= 5 * (errors[0] + errors[1]) + 1e-6).all()


def test_features_in_a_file_are_not_copied_into_memory(tmp_path: Path) -> None:
    graph = graph_of("mapped", tmp_path)
    assert mapped.is_mapped(graph.features)
    taken = Neighbourhoods(Layout(graph, "cpu"), spec_of("mlp")).features
    assert isinstance(taken, torch.Tensor)
    assert isinstance(graph.features, np.ndarray)
    assert taken.data_ptr() == graph.features.ctypes.data
    for made in (mapped.product(sp.csr_array(graph.adjacency), graph.features), mapped.unit_rows(graph.features)):
        assert mapped.is_mapped(made)
    assert not mapped.is_mapped(np.array(graph.features))


def test_products_and_lengths_are_computed_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    graph = graph_of("mapped", tmp_path)
    features: Any = np.array(graph.features)
    features[5] = 0
    monkeypatch.setattr(mapped, "BLOCK", 20)  # three rows
    np.testing.assert_allclose(mapped.product(graph.adjacency, features), graph.adjacency @ features, rtol=1e-6)
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(mapped.unit_rows(features), features / np.where(lengths > 0, lengths, 1), rtol=1e-6)


def test_sparse_features_are_propagated_once_unless_that_fills_them(tmp_path: Path) -> None:
    graph = graph_of("sparse", tmp_path)
    without, spec = graph.without_features(), spec_of("gcn")
    pairs = [[i, j] for i in range(40) for j in range(i)]
    complete, wide = (
        Graph.from_edges(pairs, num_nodes=40, features=features)
        for features in (graph.features, sp.csr_array(sp.eye_array(40)))
    )
    for each, hops_done in ((graph, 1), (without, 1), (complete, 1), (wide, 0)):
        assert Neighbourhoods(Layout(each, "cpu"), spec).hops_done == hops_done
