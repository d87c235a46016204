"""Directed graphs on the command line, from a table to recommended links, as a person uses it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import assert_refused, run_vgae


def vgae_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vgae", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of links that go up the numbers, a few of them both ways."""
    made = tmp_path_factory.mktemp("directed")
    generator = np.random.default_rng(3)
    rows = np.unique(np.sort(generator.integers(60, size=(500, 2)), axis=1), axis=0)
    rows = rows[rows[:, 0] != rows[:, 1]]
    rows = np.concatenate([rows, rows[:40, ::-1]])
    lines = [f"n{i},n{j}" for i, j in rows.tolist()]
    (made / "links.csv").write_text("\n".join(["from,to", *lines]) + "\n")
    return made


OPTIONS = ("--directed", "--iterations", "60", "--preset", "paper")
TOLD = ("--encoder", "directed", "--decoder", "source_target")


def test_from_a_table_to_recommended_links(folder: Path) -> None:
    trained = vgae_process("train", "links.csv", *OPTIONS, *TOLD, "--direction-task", "reversed", cwd=folder)
    assert trained.returncode == 0, trained.stderr
    assert "links are directed, from source to target" in trained.stderr
    assert "cannot tell" not in trained.stderr
    run = "runs/links-vgae"
    scores = json.loads(run_vgae("evaluate", run, "--json", cwd=folder).stdout)
    assert scores["test"]["auc"] > 0.9  # all links but the mutual ones go up the numbers
    recommended = run_vgae("recommend", run, "--top", "200", "--out", "new.csv", cwd=folder)
    assert recommended.returncode == 0, recommended.stderr
    known = {tuple(row) for row in csv.reader((folder / "links.csv").read_text().splitlines())}
    found = {(row["source"], row["target"]) for row in csv.DictReader((folder / "new.csv").read_text().splitlines())}
    assert len(found) == 200
    assert not found & known
    assert any((target, source) in known for source, target in found)
    one_way = next(pair for pair in sorted(known - {("from", "to")}) if pair[::-1] not in known)
    (folder / "pairs.csv").write_text("".join(f"{a},{b}\n" for a, b in (one_way, one_way[::-1])))
    links = json.loads(run_vgae("predict", run, "pairs.csv", "--json", cwd=folder).stdout)["links"]
    assert links[0]["known"] in ("train", "held_out")
    assert links[1]["known"] == "no"


def test_a_symmetric_decoder_says_once_what_it_cannot_tell(folder: Path) -> None:
    options = (*OPTIONS, "--direction-task", "reversed", "--out", "blind")
    trained = run_vgae("train", "links.csv", *options, cwd=folder)
    assert trained.returncode == 0, trained.stderr
    sentence = "the decoder inner_product is symmetric: it cannot tell which way a link goes, and its AUC of links"
    assert trained.stderr.count("cannot tell") == 1
    assert sentence in trained.stderr
    scores = json.loads(run_vgae("evaluate", "blind", "--json", cwd=folder).stdout)
    assert scores["test"]["auc"] == 0.5
    quiet = run_vgae("baseline", "cn", "links.csv", "--directed", "--direction-task", "reversed", cwd=folder)
    assert "cannot tell which way a link goes" in quiet.stderr


@pytest.mark.parametrize("task", ["any", "mutual"])
def test_the_other_tasks_are_scored(folder: Path, task: str) -> None:
    out = f"run-{task}"
    trained = run_vgae("train", "links.csv", *OPTIONS, *TOLD, "--direction-task", task, "--out", out, cwd=folder)
    assert trained.returncode == 0, trained.stderr
    found = json.loads(run_vgae("evaluate", out, "--json", cwd=folder).stdout)
    assert {"auc", "ap", "node_mrr"} <= set(found["test"])


def test_tasks_of_directions_are_refused_where_they_cannot_be(folder: Path) -> None:
    refused = run_vgae("train", "links.csv", "--direction-task", "reversed", cwd=folder)
    assert refused.returncode == 2
    assert "direction_task: reversed asks for the directions of links" in refused.stderr.splitlines()[-1]
    assert_refused(run_vgae("train", "links.csv", "--direction-task", "sideways", cwd=folder), "any, reversed, mutual")
    held_out = ("--directed", "--direction-task", "reversed", "--test-links", "links.csv")
    refused = run_vgae("train", "links.csv", *held_out, cwd=folder)
    assert "reversed chooses the links to hold out itself; leave out test_links" in refused.stderr
    assert_refused(run_vgae("train", "pubmed", "--directed", cwd=folder), "pubmed: its links are published without")


def test_cora_has_directions(tmp_path: Path) -> None:
    options = ("--directed", "--encoder", "directed", "--decoder", "source_target", "--iterations", "2", "--no-verdict")
    trained = run_vgae("train", "cora", *options, "--direction-task", "mutual", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "5,278 directed edges" in trained.stderr
    config = json.loads((tmp_path / "runs/cora-directed-vgae/config.json").read_text())
    assert config["facts"]["dataset"] == "cora-directed"
