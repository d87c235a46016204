"""One sentence when embeddings have collapsed, the same everywhere, and none when they have not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import vgae
from command import run_vgae, strict_json
from vgae.report.collapse import active_words, collapse_sentence
from vgae.runs.files import read_run

SMALL: dict[str, Any] = {"hidden_dim": 8, "latent_dim": 8, "iterations": 120, "learning_rate": 0.05, "device": "cpu"}


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(300, 3, feature_dim=30, seed=5), seed=2)


@pytest.fixture(scope="module")
def held(split: vgae.LinkSplit) -> vgae.VGAE:
    """A model whose KL outweighs all else."""
    return vgae.VGAE(beta=1e4, **SMALL).fit(split.train, validation=split.val)


def test_a_healthy_model_has_no_sentence(split: vgae.LinkSplit) -> None:
    model = vgae.VGAE(device="cpu").fit(split.train, validation=split.val)
    assert model.active_dimensions_ > 1
    assert collapse_sentence(model.run_) is None
    found = vgae.verdict(model, split)
    assert not found.collapsed
    assert not any("collapsed" in each for each in found.sentences)


def test_the_sentence_says_what_to_do(split: vgae.LinkSplit, held: vgae.VGAE) -> None:
    words = collapse_sentence(held.run_)
    assert words == (
        "The embeddings have collapsed: 0 of 8 dimensions are active, so that nodes differ by less than the noise in "
        "their embeddings. To get a model, try a lower --learning-rate, a decoder with a bias (--decoder scaled), a "
        "posterior on the sphere (--posterior power_spherical --decoder scaled:scale=5), --free-bits 0.1 or --beta "
        "1000."
    )
    assert held.active_dimensions_ == 0
    elbo = vgae.VGAE(**SMALL | {"iterations": 30}, weighting="elbo", decoder="scaled", beta=1e4).fit(split.train)
    assert "try more --iterations, --weighting paper, a lower --learning-rate, a posterior" in str(
        collapse_sentence(elbo.run_)
    )


def test_a_model_that_has_hardly_been_trained_has_not_collapsed(split: vgae.LinkSplit) -> None:
    begun = vgae.VGAE(**SMALL | {"iterations": 5}).fit(split.train)
    assert begun.run_.activity.is_collapsed
    assert collapse_sentence(begun.run_) is None


def test_one_collapse_is_said_once_in_the_verdict(split: vgae.LinkSplit, held: vgae.VGAE) -> None:
    found = vgae.verdict(held, split)
    assert found.collapsed
    assert found.to_json()["collapsed"] is True
    assert sum("collapsed" in each for each in found.sentences) == 1
    assert "collapsed" in found.sentences[0]


def test_the_command_says_it_too(split: vgae.LinkSplit, held: vgae.VGAE, tmp_path: Path) -> None:
    held.save(tmp_path / "run", split=split)
    shown = run_vgae("evaluate", "run", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert str(collapse_sentence(held.run_)) in shown.stdout
    found = strict_json(run_vgae("evaluate", "run", "--json", cwd=tmp_path).stdout)
    assert (found["active_dimensions"], found["latent_dim"], found["collapsed"]) == (0, 8, True)


def test_runs_that_never_counted_are_counted_when_they_are_read(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "runs" / "data" / "complete"
    run = read_run(Path(shutil.copytree(folder, tmp_path / "run")))
    assert all(entry.active is None for entry in run.history)
    assert 0 <= run.activity.active <= run.activity.latent_dim == 2
    verb = "is" if run.activity.active == 1 else "are"
    assert active_words(run) == f"{run.activity.active} of 2 dimensions {verb} active"
