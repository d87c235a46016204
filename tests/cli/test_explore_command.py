"""`vgae explore`: a page for every model that has factors, and one sentence for those that have none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae
from helpers import message_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small graph of people as a table, and runs of it."""
    made = tmp_path_factory.mktemp("explore")
    graph = vgae.stochastic_block_model(90, 3, seed=0)
    rows = [f"p{i},p{j}" for i, j in graph.edges.tolist()]
    (made / "people.csv").write_text("from,to\n" + "\n".join(rows) + "\n")
    small = ("--preset", "paper", "--iterations", "5", "--latent-dim", "4", "--hidden-dim", "8")
    for name, options in {"gae": (), "mlp": ("--decoder", "mlp"), "gravity": ("--decoder", "gravity")}.items():
        result = run_vgae("train", "people.csv", "--model", "gae", *small, *options, "--out", f"runs/{name}", cwd=made)
        assert result.returncode == 0, result.stderr
    return made


def test_a_run_becomes_a_page(folder: Path) -> None:
    asked = ("explore", "runs/gae", "--projection", "pca", "--clusters", "3", "--top", "7")
    result = run_vgae(*asked, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    page = folder / "runs" / "gae" / "map.html"
    assert f"wrote {Path('runs/gae/map.html')} (" in result.stderr
    text = page.read_text(encoding="utf-8")
    assert "<title>people.csv · vgae explorer</title>" in text
    assert "/" + folder.name not in text  # of a file its name, and not where it was
    named = run_vgae(*asked, "--title", "<b>People</b> & co", "--out", "c.html", cwd=folder)
    assert named.returncode == 0
    assert "<title>&lt;b&gt;People&lt;/b&gt; &amp; co · vgae explorer" in (folder / "c.html").read_text(
        encoding="utf-8"
    )
    again = run_vgae(*asked, "--out", "b.html", cwd=folder)
    assert again.returncode == 0
    assert (folder / "b.html").read_text(encoding="utf-8") == text  # same run, same bytes


def test_what_has_no_factors_is_refused_in_a_sentence(folder: Path) -> None:
    for decoder in ("mlp", "gravity"):
        result = run_vgae("explore", f"runs/{decoder}", "--out", "x.html", cwd=folder)
        assert_refused(result, f"decoder {decoder} has no factors", "inner_product", "source_target", "sc and dw")
    options = ("--bases", "cn,aa", "--folds", "2", "--out", "runs/stack")
    assert run_vgae("train", "people.csv", "--model", "stack", *options, cwd=folder).returncode == 0
    assert_refused(run_vgae("explore", "runs/stack", cwd=folder), "A stack has no embeddings", "GAE")
    assert run_vgae("baseline", "ra", "people.csv", "--out", "runs/ra", cwd=folder).returncode == 0
    assert_refused(run_vgae("explore", "runs/ra", cwd=folder), "baseline ra has no embeddings", "sc and dw")
    assert not (folder / "x.html").exists()


def test_options_that_cannot_be_are_refused(folder: Path) -> None:
    for options, words in (
        (("--out", "map.png"), ("map.png", ".html")),
        (("--out", "people.csv/map.html", "--projection", "pca"), ("people.csv", "cannot be written")),
        (("--projection", "umap"), ("umap", "tsne, pca")),
        (("--clusters", "91"), ("clusters", "91", "90 nodes")),
        (("--top", "0"), ("top",)),
    ):
        assert_refused(run_vgae("explore", "runs/gae", *options, cwd=folder), *words)
    assert_refused(run_vgae("explore", "runs/nothing", cwd=folder), "runs/nothing")


def test_a_baseline_with_embeddings_can_be_explored(tmp_path: Path) -> None:
    graph = vgae.stochastic_block_model(150, 3, seed=0)
    split = vgae.split_links(graph, val=0.1, test=0.1, seed=0)
    spectral = vgae.Baseline("sc").fit(split.train, validation=split.val)
    assert spectral.explore(tmp_path / "sc.html", projection="pca").stat().st_size > 50_000
    bare = vgae.Baseline("sc").fit(graph)
    assert "no validation links" in message_of(lambda: bare.explore(tmp_path / "bare.html"))


def test_attributes_are_checked_before_anything_takes_its_time(tmp_path: Path) -> None:
    model = vgae.GAE(iterations=2, latent_dim=4).fit(vgae.stochastic_block_model(30, 3, seed=0))
    path = tmp_path / "map.html"
    few: dict[str, Any] = {"age": np.arange(29)}
    assert "for each of the 30 nodes" in message_of(lambda: model.explore(path, attributes=few))
    nothing: Any = [1]
    assert "names and a value per node" in message_of(lambda: model.explore(path, attributes=nothing))


@pytest.mark.parametrize("num_nodes", [2, 3, 4, 5])
def test_the_smallest_graphs_have_a_page(tmp_path: Path, num_nodes: int) -> None:
    edges = [(i, i + 1) for i in range(num_nodes - 1)]
    model = vgae.VGAE(iterations=2, latent_dim=4).fit(edges)
    assert model.explore(tmp_path / "map.html").exists()
