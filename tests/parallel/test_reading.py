"""A folder that several processes read is the graph that one reads: ids, links, counts, split, rows, training."""

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
from grouping import Processes

from helpers import message_of
from vgae.graph.split import LinkSplit, split_links
from vgae.io.tables import read_any, read_graph
from vgae.model.inputs import normalized_adjacency
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.non_links import more_non_links

SIZES = (1, 2, 3)


@pytest.fixture(params=SIZES, scope="module")
def processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(request.param, tmp_path_factory.mktemp("group"))
    yield started
    started.close()


def write_folder(
    folder: Path, kind: str, names: Any, *, parts: int, weights: bool = False, twice: bool = False
) -> Path:
    """Links among some nodes, with duplicates, reversed links and self-loops, in files of different lengths."""
    generator = np.random.default_rng(7)
    ends = (generator.random((700, 2)) ** 2 * 120).astype(np.int64)
    if twice:
        ends = np.concatenate([ends, ends[:, ::-1]])
    values = np.round(generator.random(700) * 9 + 0.1, 3)
    values = np.concatenate([values, values]) if twice else values
    folder.mkdir()
    cuts = np.sort(generator.integers(len(ends), size=parts - 1))
    for number, rows in enumerate(np.split(np.arange(len(ends)), cuts)):
        columns: dict[str, Any] = {
            "source": [names(i) for i in ends[rows, 0]],
            "target": [names(i) for i in ends[rows, 1]],
        }
        if weights:
            columns["w"] = values[rows]
        path = folder / f"part-{number:02}"
        if kind == "parquet":
            pq.write_table(pa.table(columns), path.with_suffix(".parquet"), row_group_size=50)
            continue
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.with_suffix(".csv").write_text("\n".join(lines) + "\n")
    return folder


FOLDERS: dict[str, dict[str, Any]] = {
    "numbers": {"kind": "csv", "names": lambda i: int(i) * 977 - 40_000, "parts": 7},
    "text": {"kind": "csv", "names": lambda i: f"née {i * i}", "parts": 9},
    "one file by row groups": {"kind": "parquet", "names": lambda i: f"n{i}", "parts": 1, "weights": True},
    "whole numbers in Parquet": {"kind": "parquet", "names": lambda i: 2 * int(i), "parts": 3, "weights": True},
    "both ways": {"kind": "csv", "names": lambda i: f"{i:03}", "parts": 5, "weights": True, "twice": True},
    "fewer files than processes": {"kind": "csv", "names": lambda i: int(i), "parts": 2},
}


@pytest.mark.parametrize("name", FOLDERS)
def test_parts_are_those_of_the_whole(processes: Processes, tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "links", **FOLDERS[name])
    options = {"weight": "w"} if FOLDERS[name].get("weights") else {}
    expected, fractions = read_any(folder, **options), {"val": 0.1, "test": 0.2, "seed": 3}
    graph, split = expected.graph, split_links(expected.graph, val=0.1, test=0.2, seed=3)
    found: list[cases.Found] = processes.run(cases.read, folder, options, fractions)
    first = found[0]

    assert all(each.content_hash == graph.content_hash for each in found)
    assert all(each.cleaning == graph.cleaning for each in found)
    assert sum(each.num_own for each in found) == graph.num_edges == first.num_edges
    assert first.whole is not None
    assert first.whole.ids == graph.ids
    assert first.whole.content_hash == graph.content_hash
    assert all(each.whole is None and each.split is None for each in found[1:])

    assert all(each.split_hash == split.content_hash for each in found)
    assert all(each.train_hash == split.train.content_hash for each in found)
    assert first.split is not None
    assert first.split.content_hash == split.content_hash
    assert first.split.train.ids == graph.ids
    first.split.audit()
    for each in found:
        assert np.array_equal(each.validation.pairs, split.val.pairs)
        assert np.array_equal(each.more, more_non_links(split.train, split.val, 0))
        assert np.allclose(each.degrees, graph.degrees(weighted=True), rtol=1e-12)
    assert [each.num_test for each in found[1:]] == [0] * (len(found) - 1)

    rows = sp.vstack([each.rows for each in found])
    whole = normalized_adjacency(split.train)
    assert abs(rows - whole).max() < 1e-6
    assert rows.nnz == whole.nnz
    for each in found:
        own = each.shards.own
        inside = (split.train.edges >= own.start) & (split.train.edges < own.stop)
        assert each.num_incident == inside.any(axis=1).sum()


def test_a_tiny_graph_leaves_some_processes_without_links(processes: Processes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("source,target\nx,y\n")
    (tmp_path / "b.csv").write_text("source,target\ny,x\ny,z\n")
    found: list[cases.Found] = processes.run(cases.read, tmp_path, {}, {"val": 0.0, "test": 0.0, "seed": 0})
    graph = read_graph(tmp_path)
    split = found[0].split
    assert split is not None
    assert split.content_hash == split_links(graph, val=0, test=0).content_hash
    assert split.train.ids == graph.ids == ("x", "y", "z")
    assert all(each.cleaning == graph.cleaning for each in found)


@pytest.mark.parametrize("piece", [1, 3, 2**24])
def test_rows_arrive_in_the_order_of_their_senders(processes: Processes, piece: int) -> None:
    found = processes.run(cases.send, piece, 5)
    owners = [each[0] for each in found]
    everything = [[rank, row] for rank, own in enumerate(owners) for row in range(len(own))]
    assert [None if each[4] is None else each[4].tolist() for each in found] == [everything, *[None] * (len(found) - 1)]
    for rank, (own, arrived, texts, answers, _) in enumerate(found):
        expected = [(sender, row) for sender, to in enumerate(owners) for row in np.flatnonzero(to == rank)]
        assert arrived.tolist() == [list(pair) for pair in expected]
        assert texts == [f"{sender}-{'é' * (row % 4)}-{row}" for sender, row in expected]
        assert answers.tolist() == [[10 * rank, 10 * row] for row in range(len(own))]


@pytest.mark.parametrize("objective", ["exact", "sampled"])
def test_training_on_parts_is_training_on_the_whole(processes: Processes, tmp_path: Path, objective: str) -> None:
    if processes.size == 1:
        pytest.skip("one process has the whole graph")
    weighted = objective == "sampled"
    folder = write_folder(tmp_path / "links", "csv", lambda i: f"n{i}", parts=6, weights=weighted)
    options = {"weight": "w"} if weighted else {}
    values: dict[str, Any] = {
        "objective": objective,
        "iterations": 6,
        "eval_every": 3,
        "hidden_dim": 8,
        "latent_dim": 4,
    }
    values |= {"latent_dim": 4, "early_stopping": 5, "stop_by": "top"}
    split = split_links(read_graph(folder, **options), val=0.1, test=0.1, seed=0)
    expected = train(Job.of(split.train, Config(**values), split.val))
    found = processes.run(cases.trained, folder, options, values)
    history = [(entry.iteration, entry.loss, entry.val_auc) for entry in expected.history]
    for each, _, num_links in found:
        assert np.allclose(np.array(each), np.array(history), rtol=1e-4)
        assert num_links < 0.8 * split.train.num_edges
    assert np.allclose(found[0][1], expected.embeddings.numpy(), rtol=1e-3, atol=1e-4)


def test_the_command_reads_a_folder_in_parts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "links", "csv", lambda i: f"n{i}", parts=6)
    options = ["--preset", "paper", "--iterations", "5", "--processes", "2", "--no-verdict"]
    done = run_command("train", "links", *options, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    graph = read_graph(folder)
    assert f"{graph} · {graph.cleaning}" in done.stderr
    assert done.stderr.startswith("links: 6 files read as one table; columns are split at commas; the first row is a")
    split = LinkSplit.load(tmp_path / "run" / "split.npz")
    assert split.content_hash == split_links(graph).content_hash
    assert split.train.ids == graph.ids


def run_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vgae", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"a.csv": "source,target\n1,2\n", "b.csv": "source,target\n1,2\n3,\n"}, {}),
        ({"a.csv": "source,target\n1,2\n", "b.csv": "source,end\n1,2\n"}, {}),
        ({"a.csv": "source,target,w\n1,2,0\n"}, {"weight": "w"}),
        ({"a.csv": "source,target\n1,1\n"}, {}),
        ({"a.csv": "source,target\n"}, {}),
        ({"a.csv": "source,target\n1,2\n", "b.csv": "", "c.csv": "source,target\n1,2\n1\n"}, {}),
        ({}, {}),
    ],
)
def test_bad_folders_are_refused_in_the_same_words(
    processes: Processes, tmp_path: Path, files: dict[str, str], options: dict[str, str]
) -> None:
    if processes.size > 1:
        pytest.skip("the others would wait for the one that refuses")
    folder = tmp_path / "links"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    words = processes.run(cases.refused, folder, options)[0].replace("any of its files", "its file")
    assert words == message_of(lambda: read_graph(folder, **options))
