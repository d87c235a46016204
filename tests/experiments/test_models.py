"""What each part scores: which models are compared, how one is run, what is stored, and the page made of it."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import vgae
from command import assert_refused, run_vgae
from vgae.errors import InputError, TrainingError
from vgae.experiments import models, store
from vgae.experiments.models import (
    BASES,
    MORE,
    all_models,
    chosen_models,
    iteration_seconds,
    model_with,
    models_store,
    run_model,
)
from vgae.experiments.results import Archive, Failure, Result, Session, Task
from vgae.experiments.store import list_tasks, run_tasks
from vgae.model.spec import FAMILIES, is_own, registered
from vgae.options import options_of
from vgae.report.models import BEGIN, END, models_page, models_tables
from vgae.train.config import Config
from vgae.train.state import LogEntry

DOCS = Path(__file__).parents[2] / "docs"


def result(method: str, seed: int, auc: float, seconds: float | None = None, dataset: str = "cora") -> Result:
    return Result(Task(dataset, method, seed, seed, all_models()[method].text), {"auc": auc, "ap": 0.5}, 1.0, seconds)


def archive(*found: Result) -> Archive:
    return Archive("1.2.3", 2, [Session("a computer", len(found), 90.0)], list(found), "models")


def config_of(text: str) -> Config:
    """What some options of `vgae train` give; none of them is a switch."""
    words = text.split()
    given = dict(zip(words[::2], words[1::2], strict=True))
    return Config(
        **{each.name: each.parse(given[each.flag], each.name) for each in options_of(Config) if each.flag in given}
    )


def test_every_part_is_in_one_of_the_models_of_the_paper_and_of_the_preset() -> None:
    known = all_models()
    for family in FAMILIES:
        for name, spec in registered(family).items():
            if not is_own(spec):
                continue
            for base in BASES:
                shown = model_with(base, family, name)
                assert shown is not None, (base, family, name)
                assert known[shown].config.value_of(family).name == name
    assert known["vgae"].config == Config()
    assert known["gae"].config == Config(model="gae")
    assert known["accurate"].config == Config(**BASES["accurate"])
    assert len({model.identity for model in known.values()}) == len(known)
    assert set(MORE) <= set(known)


def test_a_model_differs_from_its_base_in_one_part_and_what_goes_with_it() -> None:
    known = all_models()
    differences = set(known["vgae+decoder=distance"].config.differences(Config()))
    assert [text.split()[0] for text in differences] == ["decoder"]
    sphere = known["vgae+posterior=power_spherical"].config
    assert {text.split()[0] for text in sphere.differences(Config())} == {"posterior", "prior", "decoder"}
    assert model_with("vgae", "prior", "uniform_sphere") == "vgae+posterior=power_spherical"
    assert model_with("vgae", "posterior", "delta") == "gae"


def test_models_are_chosen_by_name_or_pattern() -> None:
    assert list(chosen_models(["vgae"])) == ["vgae"]
    accurate = list(chosen_models(["accurate*", "gae"]))
    assert accurate[0] == "gae"
    assert all(name.startswith("accurate") for name in accurate[1:])
    with pytest.raises(InputError, match="model: 'gan' is not one of gae, vgae"):
        chosen_models(["gae", "gan"])


def test_a_task_is_the_estimator_on_that_split_with_that_seed() -> None:
    task = Task("cora", "vgae+mask_links", split=1, seed=3)
    found = run_model(task, "cpu")
    assert isinstance(found, Result)
    split = vgae.split_links(vgae.load_dataset("cora"), seed=1)
    model = vgae.VGAE(mask_links=MORE["vgae+mask_links"]["mask_links"], seed=3, device="cpu")
    scores = model.fit(split.train, validation=split.val).metrics(split.test)
    assert (found.auc, found.ap) == pytest.approx((scores["auc"], scores["ap"]), abs=2e-3)  # threads round differently
    assert found.iteration_seconds is not None
    assert 0 < found.iteration_seconds < found.seconds


def test_the_time_of_an_iteration_is_the_median_after_the_first_ones() -> None:
    seconds = {1: 5.0, 10: 6.0, 20: 7.0, 30: 8.0, 40: 28.0, 50: 29.0, 53: 29.6}
    history = [LogEntry(i, 1.0, 1.0, 0.0, None, None, time) for i, time in seconds.items()]
    assert iteration_seconds(history) == pytest.approx(0.15)  # of 0.1, 2.0, 0.1 and 0.2
    assert iteration_seconds(history[:2]) is None


def test_what_fails_is_reported_and_tried_again_and_the_others_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {name: all_models()[name].text for name in ("gae", "vgae")}
    tasks = list_tasks(["cora"], ["gae", "vgae"], known=["gae", "vgae"], runs=1, splits=1, settings=settings)

    def work(task: Task, device: str) -> Result | Failure:
        assert device == "cpu"
        return Failure(task, "it diverged") if task.method == "vgae" else result("gae", 0, 0.9)

    def one_by_one(work: Any, tasks: Any, **_: Any) -> Any:
        return (work(task) for task in tasks)

    monkeypatch.setattr(store, "results_of", one_by_one)
    folder = models_store(tmp_path / "out", runs=1, device="cpu")
    found = list(run_tasks(partial(work, device="cpu"), tasks, folder))
    assert [type(each) for each in found] == [Result, Failure]
    assert [folder.get(task) is not None for task in tasks] == [True, False]
    with pytest.raises(InputError, match="different: protocol"):
        models_store(tmp_path / "out", runs=1, device="cuda")

    def diverge(*_: Any) -> None:
        raise TrainingError("Training has diverged.")

    monkeypatch.setattr(models, "train", diverge)
    assert run_model(Task("cora", "vgae", 0, 0), "cpu") == Failure(Task("cora", "vgae", 0, 0), "Training has diverged.")


def test_a_model_that_has_changed_is_run_again(tmp_path: Path) -> None:
    store = models_store(tmp_path / "out", runs=1, device="cpu")
    done = result("accurate", 0, 0.9)
    store.put(done)
    assert store.get(done.task) == done
    assert store.get(replace(done.task, settings="--latent-dim 7")) is None


def test_an_archive_holds_the_settings_of_each_model_once(tmp_path: Path) -> None:
    written = archive(result("accurate", 0, 0.9, 0.1), result("accurate", 1, 0.8), result("vgae", 0, 0.7, 0.05))
    written.write(tmp_path / "models.json")
    assert Archive.read(tmp_path / "models.json") == written
    text = (tmp_path / "models.json").read_text()
    assert text.count("--latent-dim") == 1
    assert json.loads(text)["experiment"] == "models"


def test_the_tables_have_means_errors_and_times_beside_the_papers() -> None:
    page = models_tables(
        archive(
            result("vgae", 0, 0.90, 0.01),
            result("vgae", 1, 0.92, 0.01),
            result("vgae+decoder=distance", 0, 0.95, 0.02),
            result("vgae+decoder=distance", 1, 0.95, 0.03),
            result("accurate", 0, 0.96, 0.2),
            result("accurate", 0, 0.97, 0.3, dataset="pubmed"),
        )
    )
    assert "| in the paper's VGAE | Cora | Pubmed | time |" in page
    assert "| `inner_product` | 91.0 / 50.0 ± 1.0 | – | 1.0× / – |" in page
    assert "| `distance` | 95.0 / 50.0 ± 0.0 | – | 2.5× / – |" in page
    assert "| `accurate` | 96.0 / 50.0 | 97.0 / 50.0 | 20.0× / – |" in page
    untimed = models_tables(archive(result("vgae", 0, 0.90)))
    assert "| in the paper's VGAE | Cora |\n" in untimed
    assert "Time is" not in untimed
    assert "logit_ij = b - s·‖z_i - z_j‖²" in page
    assert f"| `accurate` | `{all_models()['accurate'].text}` |" in page
    assert "- 6 runs in 1.5 minutes on a computer" in page


def test_what_is_written_by_hand_stays(tmp_path: Path) -> None:
    found = archive(result("vgae", 0, 0.9))
    new = models_page(found)
    assert new == models_page(found, new)
    by_hand = f"# Mine\n\n{BEGIN}\nold tables\n{END}\n\n## Why the true bound collapses\n\nBecause.\n"
    page = models_page(found, by_hand)
    assert page.startswith("# Mine\n")
    assert page.endswith("## Why the true bound collapses\n\nBecause.\n")
    assert "old tables" not in page
    assert models_tables(found) in page
    found.write(tmp_path / "models.json")
    (tmp_path / "page.md").write_text(by_hand)
    assert run_vgae("report", "models.json", "--out", "page.md", cwd=tmp_path).returncode == 0
    assert (tmp_path / "page.md").read_text() == page
    (tmp_path / "other.md").write_text("# Something else\n")
    assert_refused(run_vgae("report", "models.json", "--out", "other.md", cwd=tmp_path), "no place for the tables")
    both = ("report", str(DOCS / "data" / "ten-splits.json"), "models.json", "--out", "new.md")
    assert_refused(run_vgae(*both, cwd=tmp_path), "reproductions of the paper, or about one models.json")


def test_the_documented_tables_are_those_of_the_stored_runs() -> None:
    page = (DOCS / "models.md").read_text()
    stored = Archive.read(DOCS / "data" / "models.json")
    assert page == models_page(stored, page)
    for name, model in all_models().items():
        for text in {each.task.settings for each in stored.results if each.task.method == name}:
            assert config_of(text) == model.config, name


def test_the_command_stores_scores_and_says_how_to_write_the_page(tmp_path: Path) -> None:
    arguments = ("models", "--dataset", "cora", "--model", "gae", "--runs", "1", "--jobs", "1", "--device", "cpu")
    first = run_vgae(*arguments, "--out", "out", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "vgae report out/models.json" in first.stderr
    stored = Archive.read(tmp_path / "out" / "models.json")
    assert [each.task.method for each in stored.results] == ["gae"]
    assert first.stdout.split()[-3:] == [f"{100 * stored.results[0].auc:.1f}", "/", f"{100 * stored.results[0].ap:.1f}"]
    again = run_vgae(*arguments, "--out", "out", "--json", cwd=tmp_path)  # nothing is run, so nothing changes
    assert json.loads(again.stdout)["cora"]["gae"]["auc"] == pytest.approx(100 * stored.results[0].auc)
    assert Archive.read(tmp_path / "out" / "models.json") == stored
    assert_refused(run_vgae(*arguments, "--model", "gan", "--out", "out", cwd=tmp_path), "model: 'gan' is not one of")
