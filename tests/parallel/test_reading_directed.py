"""A folder of links that have directions, read by several processes, is the graph that one reads, and trains alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reading_cases as cases
import scipy.sparse as sp
from folders import random_links, write_parts
from grouping import Processes

from vgae.graph.split import split_links
from vgae.io.tables import read_any, read_graph
from vgae.model.inputs import normalized_adjacency
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.non_links import more_non_links

SIZES = (1, 2, 3, 4)
TINY: dict[str, Any] = {
    "iterations": 4,
    "eval_every": 1,
    "hidden_dim": 8,
    "latent_dim": 4,
    "early_stopping": 3,
    "stop_by": "top",
}


@pytest.fixture(params=SIZES, scope="module")
def processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(request.param, tmp_path_factory.mktemp("group"))
    yield started
    started.close()


@pytest.mark.parametrize(
    ("links", "written"),
    [
        ({"names": lambda i: 31 * i - 700}, {"parts": 6}),
        ({"names": lambda i: f"n{i}", "weights": True}, {"parts": 5, "parquet": True}),
        ({"names": lambda i: f"{i:02}", "weights": True, "twice": True}, {"parts": 3}),
    ],
    ids=["numbers", "weights", "all both ways"],
)
def test_parts_are_those_of_the_whole(
    processes: Processes, tmp_path: Path, links: dict[str, Any], written: dict[str, Any]
) -> None:
    folder = write_parts(tmp_path / "links", random_links(**links), **written)
    options: dict[str, Any] = {"directed": True} | ({"weight": "w"} if "weights" in links else {})
    expected = read_any(folder, **options)
    graph, split = expected.graph, split_links(expected.graph, val=0.1, test=0.2, seed=3)
    found: list[cases.Found] = processes.run(cases.read, folder, options, {"val": 0.1, "test": 0.2, "seed": 3})
    first = found[0]
    assert first.whole is not None
    assert first.split is not None
    assert first.whole.content_hash == first.content_hash == graph.content_hash
    assert first.whole.ids == graph.ids
    assert first.split.content_hash == split.content_hash
    first.split.audit()
    assert sum(each.num_own for each in found) == graph.num_edges
    for each in found:
        assert each.cleaning == graph.cleaning
        assert each.notes == expected.notes
        assert each.split_hash == split.content_hash
        assert each.train_hash == split.train.content_hash
        assert each.num_arcs == split.train.num_arcs
        assert each.undirected_hash == split.train.without_directions().content_hash
        assert np.array_equal(each.validation.pairs, split.val.pairs)
        assert np.array_equal(each.more, more_non_links(split.train, split.val, 0))
        symmetric = more_non_links(split.train.without_directions(), split.val, 0)
        assert np.array_equal(each.more_undirected, symmetric)
        assert np.allclose(each.degrees, graph.degrees(weighted=True), rtol=1e-12)
    assert abs(sp.vstack([each.rows for each in found]) - normalized_adjacency(split.train)).max() < 1e-6
    ones = sp.vstack([each.ones for each in found])
    plain = split.train.with_parts(weights=None).directed_adjacency
    assert (ones != plain + sp.eye_array(graph.num_nodes)).nnz == 0


@pytest.mark.parametrize(
    ("decoder", "objective"), [("source_target", "exact"), ("source_target", "sampled"), ("inner_product", "sampled")]
)
def test_training_on_parts_is_training_on_the_whole(
    processes: Processes, tmp_path: Path, decoder: str, objective: str
) -> None:
    if processes.size not in (2, 3):
        pytest.skip("two sizes tell, and one process has the whole graph")
    weighted = decoder == "source_target"
    columns = random_links(lambda i: f"n{i}", weights=weighted)
    folder = write_parts(tmp_path / "links", columns, parts=6)
    options: dict[str, Any] = {"directed": True} | ({"weight": "w"} if weighted else {})
    values = TINY | {"objective": objective, "decoder": decoder}
    split = split_links(read_graph(folder, **options), val=0.1, test=0.1, seed=0)
    expected = train(Job.of(split.train, Config(**values), split.val))
    history = np.array([(entry.iteration, entry.loss, entry.val_auc) for entry in expected.history])
    found = processes.run(cases.trained_twice, folder, options, values)
    for (own, embeddings, num_links), (again, the_same, _) in found:
        assert own[0][1] == pytest.approx(history[0, 1], rel=1e-5)
        assert np.allclose(np.array(own), history, rtol=1e-4)
        assert again == own
        assert np.array_equal(embeddings, the_same)
        assert num_links < 0.8 * split.train.num_edges
    assert np.allclose(found[0][0][1], expected.embeddings.numpy(), rtol=1e-3, atol=1e-4)
