"""A table of nodes that several processes read: features, labels and words are those of one, and so is the training."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reading_cases as cases
import scipy.sparse as sp
from folders import NODES, random_links, random_nodes, write_parts
from grouping import Processes

from helpers import message_of
from vgae.graph.split import split_links
from vgae.io.tables import read_any, read_graph
from vgae.runs.files import read_any_run
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

SIZES = (1, 2, 3, 4)


@pytest.fixture(params=SIZES, scope="module")
def processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(request.param, tmp_path_factory.mktemp("group"))
    yield started
    started.close()


def text_name(i: int) -> str:
    return f"n{i}"


def dense(values: Any) -> Any:
    return values.toarray() if sp.issparse(values) else values


def with_gaps(place: Path) -> tuple[Path, dict[str, Any]]:
    """Missing values, nodes without rows, and nodes without links; texts in parts, one of them without rows."""
    columns = random_nodes(text_name, NODES + 7, gaps=True)
    columns = {name: values[:-9] for name, values in columns.items()}
    folder = write_parts(place / "nodes", columns, parts=5)
    (folder / "part-09.csv").write_text("town,node,size,active,class\n")  # in another order
    return folder, {"standardise": True, "impute": "mean", "label": "class"}


def one_file(place: Path) -> tuple[Path, dict[str, Any]]:
    """Numbers alone, in one Parquet file, whose classes are whole numbers."""
    generator, path = np.random.default_rng(3), place / "nodes.parquet"
    columns: dict[str, Any] = {"node": [text_name(i) for i in generator.permutation(NODES)]}
    columns |= {f"x{number}": generator.normal(size=NODES) * 10.0**number for number in range(3)}
    columns["class"] = generator.integers(5, size=NODES)
    pq.write_table(pa.table(columns), path, row_group_size=17)
    return path, {"normalize": "columns", "label": "class"}


def many(place: Path) -> tuple[Path, dict[str, Any]]:
    """So many texts that features are sparse, and a column of names, which is left out."""
    return write_parts(place / "nodes", random_nodes(text_name, 1100), parts=4), {"normalize": "rows"}


def matrix(place: Path) -> tuple[Path, dict[str, Any]]:
    """An npz with a row for each of more nodes than have links; ids are numbers."""
    path = place / "nodes.npz"
    np.savez_compressed(path, features=np.random.default_rng(2).normal(size=(NODES + 13, 3)), names=np.arange(3))
    return path, {"normalize": "columns"}


def sparse_matrix(place: Path) -> tuple[Path, dict[str, Any]]:
    """A sparse one by SciPy that has fewer rows than there are nodes."""
    path = place / "nodes.npz"
    values = sp.random_array((NODES - 9, 40), density=0.1, rng=np.random.default_rng(4), format="csr")
    sp.save_npz(path, values, compressed=False)
    return path, {"impute": "zero"}


@pytest.mark.parametrize("written", [with_gaps, one_file, many, matrix, sparse_matrix])
def test_nodes_are_those_of_the_whole(processes: Processes, tmp_path: Path, written: Any) -> None:
    names = int if written in (matrix, sparse_matrix) else text_name
    folder = write_parts(tmp_path / "links", random_links(names), parts=6)
    features, options = written(tmp_path)
    expected = read_any(folder, directed=True, features=features, **options)
    graph, split = expected.graph, split_links(expected.graph, val=0.1, test=0.1, seed=1)
    found: list[Any] = processes.run(cases.read_nodes, folder, {"directed": True}, features, options)
    assert sp.issparse(graph.features) == (written not in (one_file, matrix))
    assert all(sp.issparse(each.features) == sp.issparse(graph.features) for each in found)
    whole = dense(graph.features)
    for name in ("features", "own_features"):
        assert np.array_equal(np.concatenate([dense(getattr(each, name)) for each in found]), whole)
    assert max(len(dense(each.features)) for each in found) <= -(-graph.num_nodes // processes.size)
    for each in found:
        assert each.recipe == expected.recipe
        assert each.notes == (expected.notes, expected.node_notes, ())
        assert each.repr == repr(graph)
        assert each.content_hash == graph.content_hash
        assert each.plain_hash == graph.without_features().content_hash
        assert each.train_hash == split.train.content_hash
        assert each.num_entries == graph.features.size  # type: ignore[union-attr]
        assert each.tried == graph.num_features
    gathered, of_split = found[0].whole, found[0].split
    assert gathered.content_hash == graph.content_hash
    assert of_split.train.content_hash == split.train.content_hash
    for part in (gathered, of_split.train):
        assert part.ids == graph.ids
        assert (part.labels is None) == (graph.labels is None)
        assert part.labels is None or (part.labels.tolist(), part.labels.dtype) == (
            graph.labels.tolist(),  # type: ignore[union-attr]
            graph.labels.dtype,  # type: ignore[union-attr]
        )


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("names", [text_name, lambda i: 7 * i])
def test_labels_of_a_table_of_their_own(processes: Processes, tmp_path: Path, names: Any, whole: bool) -> None:
    """Some nodes have none, some rows are about others, and classes are whole numbers or text."""
    folder = write_parts(tmp_path / "links", random_links(names), parts=3)
    generator = np.random.default_rng(8)
    rows = generator.permutation(NODES + 20)[: NODES - 5]
    classes: list[Any] = [int(value) for value in generator.integers(4, size=len(rows))]
    if not whole:
        classes[3] = "other"
    columns = {"id": [names(int(i)) for i in rows], "class": classes}
    labels = write_parts(tmp_path / "labels", columns | {"note": rows.tolist()}, parts=3)
    expected: Any = read_any(folder, labels=labels)
    found: list[Any] = processes.run(cases.read_nodes, folder, {}, None, {}, labels)
    for each in found:
        assert each.notes == (expected.notes, (), expected.label_notes)
        assert each.repr == repr(expected.graph)
    graph = found[0].split.train
    assert (graph.labels.tolist(), graph.labels.dtype) == (expected.graph.labels.tolist(), expected.graph.labels.dtype)


@pytest.mark.parametrize("text", ["id,y\n1,a\n2,b\n1,a\n", "id,y\n7,a\n", "id,u,v\n1,2,3\n"])
def test_labels_are_refused_by_all(processes: Processes, tmp_path: Path, text: str) -> None:
    links = write_parts(tmp_path / "links", {"source": [1, 2, 3], "target": [2, 3, 1]}, parts=1)
    (tmp_path / "labels.csv").write_text(text)
    expected = message_of(lambda: read_graph(links, labels=tmp_path / "labels.csv"))
    found = processes.run(cases.read_nodes, links, {}, None, {}, tmp_path / "labels.csv")
    assert found == [expected] * processes.size


@pytest.mark.parametrize(("objective", "number"), [("exact", NODES), ("sampled", 1100)])
def test_training_on_parts_is_training_on_the_whole(
    processes: Processes, tmp_path: Path, objective: str, number: int
) -> None:
    if processes.size not in (2, 4):
        pytest.skip("two sizes tell, and one process has the whole graph")
    folder = write_parts(tmp_path / "links", random_links(text_name), parts=6)
    columns = {name: values for name, values in random_nodes(text_name, number).items() if name != "size"}
    features = write_parts(tmp_path / "nodes", columns, parts=4)
    values: dict[str, Any] = {"objective": objective, "iterations": 3, "eval_every": 1, "hidden_dim": 8}
    values |= {"latent_dim": 4, "encoder": "gcn:dropout=0.3"}
    split = split_links(read_graph(folder, features=features), val=0.1, test=0.1, seed=0)
    expected = train(Job.of(split.train, Config(**values), split.val))
    history = np.array([(entry.iteration, entry.loss, entry.val_auc) for entry in expected.history])
    found = processes.run(cases.trained_twice, folder, {}, values, features)
    for (own, embeddings, _), (again, the_same, _) in found:
        assert own[0][1] == pytest.approx(history[0, 1], rel=1e-5)
        assert np.allclose(np.array(own), history, rtol=1e-4)
        assert again == own
        assert np.array_equal(embeddings, the_same)
    assert np.allclose(found[0][0][1], expected.embeddings.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"a.csv": "id,x\n1,1\n2,2\n", "b.csv": "id,x\n3,3\n1,4\n"}, {}),  # a node twice
        ({"a.csv": "id,x,y,z\n1,1,1,1\n3,1,1,1\n", "b.csv": "id,x,y,z\n2,1,1,1\n3,2,2,2\n"}, {}),
        ({"a.csv": "id,x\n7,1\n", "b.csv": "id,x\n8,2\n"}, {}),  # other nodes
        ({"a.csv": "id,x\n1,1\n", "b.csv": "id,x\n8,2\n"}, {}),  # nodes without a row
        ({"a.csv": "id,x\n", "b.csv": "id,x\n"}, {}),
    ],
)
def test_what_is_wrong_with_all_rows_is_said_by_all(
    processes: Processes, tmp_path: Path, files: dict[str, str], options: dict[str, Any]
) -> None:
    links = write_parts(tmp_path / "links", {"source": [1, 2, 3], "target": [2, 3, 1]}, parts=1)
    folder = tmp_path / "nodes"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    expected = message_of(lambda: read_graph(links, features=folder, **options))
    assert processes.run(cases.read_nodes, links, {}, folder, options) == [expected] * processes.size


@pytest.mark.parametrize(
    "files",
    [
        {"a.csv": "id,x\n1,1\n2,2\n", "b.csv": "id,y\n3,3\n"},
        {"a.csv": "id,x\n1,1\n2,2\n3,\n"},
        {"a.csv": "id,x\n1,1\n2,2\n,3\n"},
        {"a.csv": "id,x\n" + "".join(f"{i},{i}\n" for i in range(20)) + "20,what\n"},
        {"a.csv": "id,x\n1,1\n2,2\n", "b.csv": "id,x\n3\n"},
        {"a.csv": 'id,x\n1,"1,5"\n2,"2,5"\n3,"3,5"\n'},
        {},
    ],
)
def test_bad_rows_are_refused_in_the_same_words(processes: Processes, tmp_path: Path, files: dict[str, str]) -> None:
    if processes.size > 1:
        pytest.skip("the others would wait for the one that refuses")
    links = write_parts(tmp_path / "links", {"source": [1, 2, 3], "target": [2, 3, 1]}, parts=1)
    folder = tmp_path / "nodes"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    expected = message_of(lambda: read_graph(links, features=folder))
    assert processes.run(cases.read_nodes, links, {}, folder, {}) == [expected]


@pytest.mark.parametrize("text", ["id\n1\n2\n", "node,word\n1,a\n1,b\n2,a\n3,a\n", ",x\n0,1\n1,2\n"])
def test_what_a_row_is_can_take_all_of_them_to_tell(processes: Processes, tmp_path: Path, text: str) -> None:
    links = write_parts(tmp_path / "links", {"source": [1, 2, 3], "target": [2, 3, 1]}, parts=1)
    (tmp_path / "nodes.csv").write_text(text)
    assert processes.run(cases.read_nodes, links, {}, tmp_path / "nodes.csv", {}) == [None] * processes.size


def test_matrices_that_have_no_rows_to_read_alone(processes: Processes, tmp_path: Path) -> None:
    links = write_parts(tmp_path / "links", random_links(int), parts=2)
    values, path = np.random.default_rng(2).normal(size=(NODES, 3)), tmp_path / "nodes.npz"
    sp.save_npz(path, sp.csc_array(values))
    assert processes.run(cases.read_nodes, links, {}, path, {}) == [None] * processes.size
    np.savez(path, features=np.asfortranarray(values))
    assert processes.run(cases.read_nodes, links, {}, path, {}) == [None] * processes.size


@pytest.mark.parametrize("wrong", [np.nan, 1e39])
def test_a_number_that_is_none_is_named_by_its_node(processes: Processes, tmp_path: Path, wrong: float) -> None:
    if processes.size > 1:
        pytest.skip("the others would wait for the one that refuses")
    links = write_parts(tmp_path / "links", random_links(int), parts=2)
    values, path = np.ones((NODES, 3)), tmp_path / "nodes.npz"
    values[70, 1] = wrong
    np.savez(path, x=values)
    expected = message_of(lambda: read_graph(links, features=path))
    assert processes.run(cases.read_nodes, links, {}, path, {}) == [expected]


def test_the_command_reads_nodes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    links = write_parts(Path("links"), random_links(text_name), parts=6)
    nodes, options = with_gaps(Path())
    given = ["--features", "nodes", "--standardise", "--impute", "mean", "--label", "class", "--directed"]
    command = ["train", "links", *given, "--iterations", "5", "--no-verdict", "--out", "run"]
    done = run_command(*command, "--keep-features", "--processes", "2")
    assert done.returncode == 0, done.stderr
    expected: Any = read_any(links, directed=True, features=nodes, **options)
    assert done.stderr.splitlines()[:2] == expected.report("links")
    run: Any = read_any_run(Path("run"))
    assert run.split.content_hash == split_links(expected.graph).content_hash
    assert run.split.train.labels.tolist() == expected.graph.labels.tolist()
    assert run.recipe.columns == expected.recipe.columns
    assert np.array_equal(dense(run.split.train.features), dense(expected.graph.normalized("rows").features))

    (nodes / "part-03.csv").write_text("node,other\nn1,2\n")
    done = run_command(*command, "--overwrite", "--processes", "2")
    assert done.returncode == 2
    assert "part-03.csv: its columns are node, other, and those of nodes/part-00.csv are node, size" in done.stderr
    assert "Traceback" not in done.stderr


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vgae", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
