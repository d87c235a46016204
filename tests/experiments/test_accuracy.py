"""`vgae accuracy`: what is planned, how a method is run, what is stored, merged, refused, and resumed after a kill."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from helpers import message_of
from processes import wait_until
from vgae.errors import InputError
from vgae.experiments import methods
from vgae.experiments.accuracy import (
    Setting,
    Source,
    accuracy_store,
    archive_of,
    facts_of,
    find_sources,
    limited_threads,
    list_tasks,
    merge,
    read_results,
    run_accuracy,
)
from vgae.experiments.measures import measure
from vgae.experiments.methods import all_methods, chosen_methods, fit
from vgae.experiments.results import Archive, Failure, GraphFacts, Result, Session, Task
from vgae.graph.synthetic import stochastic_block_model
from vgae.io.graphs import write_graph
from vgae.stack import config
from vgae.stack.options import MetaOptions

FACTS = GraphFacts(100, 400, 20, 40, "hash")
DOCS = Path(__file__).parents[2] / "docs"


def result(method: str, seed: int, auc: float = 0.9, graph: str = "mine") -> Result:
    metrics = {"auc": auc, "ap": 0.8, "auc_linked": 0.7, "precision@100": 0.25}
    return Result(Task(graph, method, seed, seed, all_methods()[method].settings), metrics, 2.0, fit_seconds=1.5)


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "blocks.npz"
    write_graph(path, stochastic_block_model(60, 3, feature_dim=30, seed=0))
    return path


# --------------------------------------------------------------------------------------------------------- what is done


def test_a_graph_without_features_has_only_methods_that_do_without() -> None:
    chosen = [all_methods()[name] for name in ("gae", "gae*", "ra")]
    bare = replace(FACTS, num_features=0, num_nodes=7)
    tasks = list_tasks({"bare": bare, "mine": FACTS}, chosen, runs=2)
    assert [(task.dataset, task.method, task.split, task.seed) for task in tasks] == [
        *(("mine", name, 0, 0) for name in ("gae", "gae*", "ra")),
        *(("bare", name, 0, 0) for name in ("gae*", "ra")),
        *(("mine", name, 1, 1) for name in ("gae", "gae*", "ra")),
        *(("bare", name, 1, 1) for name in ("gae*", "ra")),
    ]
    assert len({task.file_name for task in tasks}) == len(tasks)
    with pytest.raises(InputError, match="the graph has none"):
        list_tasks({"bare": bare}, chosen[:1])


def test_citation_networks_have_ten_splits_and_others_five() -> None:
    tasks = list_tasks({"pubmed": FACTS, "ca-astroph": FACTS, "mine": FACTS}, [all_methods()["ra"]])
    assert [sum(task.dataset == name for task in tasks) for name in ("pubmed", "ca-astroph", "mine")] == [10, 5, 5]
    for runs in (0, 10**9):
        with pytest.raises(InputError, match="from 1 to 10,000"):
            list_tasks({"mine": FACTS}, [all_methods()["ra"]], runs)


def test_graphs_go_by_name_or_by_the_name_of_their_file(tmp_path: Path) -> None:
    for name in ("a.npz", "a.csv", "cora.csv", "two words.csv"):
        (tmp_path / name).touch()
    assert list(find_sources(None)) == ["cora", "citeseer", "pubmed", "blogcatalog", "ca-astroph"]
    given = str(tmp_path / "a.npz")
    assert find_sources(["Cora", given, given]) == {"cora": Source("cora"), "a": Source("a", tmp_path / "a.npz")}
    wrong = {
        "nowhere.csv": "neither a dataset (cora, citeseer",
        str(tmp_path / "cora.csv"): "would go by the name 'cora'",
        str(tmp_path / "two words.csv"): "would go by the name 'two words'",
        str(tmp_path / "a.csv"): "two files go by the name a;",
    }
    for text, words in wrong.items():
        assert words in message_of(lambda text=text: find_sources([given, text]))  # type: ignore[misc]


def test_what_cannot_be_run_here_is_left_out_or_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "find_spec", lambda name: None if name == "gensim" else name)
    chosen, left_out = chosen_methods(None)
    assert {"dw"} == set(all_methods()) - {method.name for method in chosen}
    assert [line.split()[0] for line in left_out] == ["dw"]
    assert "method dw: it needs gensim" in message_of(lambda: chosen_methods(["ra", "dw"]))
    assert "method: 'gan' is not one of gae, gae*, vgae" in message_of(lambda: chosen_methods(["gan"]))


def test_settings_are_options_of_train_and_tell_methods_apart() -> None:
    known = all_methods()
    assert known["gae*"].settings == "--model gae --no-features"
    assert known["vgae"].settings == ""
    assert "--latent-dim 256" in known["accurate*"].settings
    assert known["accurate*"].settings == known["accurate"].settings.replace(" --latent", " --no-features --latent")


# ---------------------------------------------------------------------------------------------------------- how it runs


@pytest.mark.parametrize(("name", "features"), [("vgae", True), ("gae*", False)])
def test_a_task_is_the_estimator_on_that_split_with_that_seed(graph_file: Path, name: str, features: bool) -> None:
    setting = Setting("cpu", 1, {"blocks": Source("blocks", graph_file)})
    found = run_accuracy(Task("blocks", name, 2, 2), setting)
    assert isinstance(found, Result)
    split = vgae.split_links(vgae.read_graph(graph_file), seed=2)
    estimator = vgae.VGAE if name == "vgae" else vgae.GAE
    model = estimator(features=features, objective="exact", seed=2, device="cpu").fit(split.train, validation=split.val)
    expected = measure(model, split)
    assert set(expected) == set(found.metrics)
    assert dict(found.metrics) == pytest.approx(expected, abs=2e-3)
    assert found.fit_seconds is not None
    assert 0 < found.fit_seconds < found.seconds


def test_a_stack_is_fitted_with_validation_pairs_and_asked_for_its_best_pairs(
    graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "STACKS", "stand_in")
    split = vgae.split_links(vgae.read_graph(graph_file), seed=0)
    fitted = {name: fit(all_methods()[name], split, 3, "cpu") for name in ("stack", "stack*")}
    own = vgae.VGAE(seed=3, device="cpu").fit(split.train, validation=split.val)
    with_features = measure(fitted["stack"].scorer, split, recommender=fitted["stack"].recommender)
    assert with_features == pytest.approx(measure(own, split))
    stack = fitted["stack*"].scorer
    assert isinstance(stack, vgae.VGAE)
    assert (stack.n_features_in_, stack.get_params()["seed"]) == (0, 3)


def test_settings_of_a_stack_change_with_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = all_methods()["stack"].settings
    assert before == all_methods()["stack*"].settings
    assert before.startswith("bases=normalized1,")
    for module, name, value in (
        ("vgae.stack.config", "MODELS", {**config.MODELS, "networks": {"model": "gae"}}),
        ("vgae.stack.config", "MetaOptions", lambda boosting: MetaOptions(boosting=boosting, ridge=2.0)),
        ("vgae.experiments.methods", "REST", 7),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.{name}", value)
            assert all_methods()["stack"].settings != before
    assert all_methods()["stack"].settings == before


def test_what_fails_is_told_and_not_stored(graph_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(*_: object) -> None:
        raise RuntimeError("out of\nmemory")

    monkeypatch.setattr(methods, "train", diverge)
    task = Task("blocks", "vgae", 0, 0)
    assert run_accuracy(task, Setting("cpu", 1, {"blocks": Source("blocks", graph_file)})) == Failure(
        task, "out of memory"
    )


def test_threads_are_limited_for_processes_that_are_started_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with limited_threads(3):
        assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("3", "3")
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


# ------------------------------------------------------------------------------------------------------- what is stored


def test_results_and_graphs_come_back_as_they_were_stored(tmp_path: Path) -> None:
    store = accuracy_store(tmp_path / "out")
    store.add_graph("mine", FACTS)
    for each in (result("vgae", 1), result("ra", 0), result("vgae", 0)):
        store.put(each)
    store.record(Session("a computer", 3, 9.0))
    archive, num_left_out = archive_of(accuracy_store(tmp_path / "out"))
    assert archive is not None
    assert num_left_out == 0
    assert archive.results == [result("vgae", 0), result("vgae", 1), result("ra", 0)]
    assert (archive.graphs, archive.splits) == ({"mine": FACTS}, 2)
    archive.write(tmp_path / "accuracy.json")
    assert Archive.read(tmp_path / "accuracy.json") == archive
    content = json.loads((tmp_path / "accuracy.json").read_text())
    assert content["results"][0]["metrics"]["precision@100"] == 0.25


@pytest.mark.parametrize("earlier", ["--latent-dim 7", ""])
def test_runs_of_a_method_with_several_settings_keep_their_own(tmp_path: Path, earlier: str) -> None:
    now, before = result("accurate", 0), result("accurate", 1, graph="other")
    before = replace(before, task=replace(before.task, settings=earlier))
    archive = Archive("1.2.3", 2, [], [now, before], "accuracy", {"mine": FACTS, "other": FACTS})
    archive.write(tmp_path / "accuracy.json")
    assert Archive.read(tmp_path / "accuracy.json") == archive
    assert archive.settings_of("accurate") == {now.task.settings: ["mine"], earlier: ["other"]}


def test_an_archive_that_does_not_say_what_its_graphs_are_is_refused(tmp_path: Path) -> None:
    archive = Archive("1.2.3", 1, [], [result("ra", 0)], "accuracy", {"mine": FACTS})
    for wrong in (replace(archive, graphs={}), replace(archive, graphs={"other": FACTS})):
        wrong.write(tmp_path / "accuracy.json")
        assert "nor what vgae models or vgae accuracy does" in message_of(
            lambda: Archive.read(tmp_path / "accuracy.json")
        )
    replace(archive, experiment="models").write(tmp_path / "models.json")  # which is about the paper's datasets alone
    with pytest.raises(InputError, match="nor what vgae models"):
        Archive.read(tmp_path / "models.json")


@pytest.mark.parametrize("name", ["one-split.json", "ten-splits.json", "models.json"])
def test_archives_from_before_are_read_and_written_as_they_were(tmp_path: Path, name: str) -> None:
    Archive.read(DOCS / "data" / name).write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (DOCS / "data" / name).read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": {"auc": 0.5}},
        {"metrics": {"auc": 0.5, "ap": 2}},
        {"metrics": [0.5, 0.5]},
        {"fit_seconds": -1},
        {"seconds": None},
        {"task": {"dataset": "../mine", "method": "ra", "split": 0, "seed": 0}},
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    store = accuracy_store(tmp_path / "out")
    store.put(result("ra", 0))
    (path,) = (tmp_path / "out" / "runs").iterdir()
    path.write_text(json.dumps(result("ra", 0).to_json() | change))
    with pytest.raises(InputError, match="not a stored result"):
        store.results()


def test_a_method_that_has_changed_is_left_out(tmp_path: Path) -> None:
    store = accuracy_store(tmp_path / "out")
    old = result("accurate", 0)
    store.put(replace(old, task=replace(old.task, settings="--latent-dim 7")))
    assert archive_of(store) == (None, 1)
    store.put(old)
    archive, num_left_out = archive_of(store)
    assert archive is not None
    assert (archive.results, num_left_out) == ([old], 1)


def test_folders_and_files_of_several_machines_are_merged_into_one(tmp_path: Path) -> None:
    parts = {"one": [result("vgae", 0), result("ra", 0)], "two": [result("ra", 0), result("ra", 1)]}
    for name, found in parts.items():
        store = accuracy_store(tmp_path / name)
        store.add_graph("mine", FACTS)
        for each in found:
            store.put(each)
        store.record(Session(f"computer {name}", 2, 9.0))
    archive, _ = archive_of(accuracy_store(tmp_path / "two"))
    assert archive is not None
    archive.write(tmp_path / "two.json")
    for sources in (["one", "two"], ["one", "two.json"], ["two.json", "one", "two"]):
        shutil.rmtree(tmp_path / "all", ignore_errors=True)
        whole = accuracy_store(tmp_path / "all")
        assert sum(merge(whole, read_results(tmp_path / source)) for source in sources) == 3
        merged, _ = archive_of(whole)
        assert merged is not None
        assert merged.results == [result("vgae", 0), result("ra", 0), result("ra", 1)]
        assert {session.machine for session in merged.sessions} == {"computer one", "computer two"}
        assert merged.graphs == {"mine": FACTS}
    other = accuracy_store(tmp_path / "other")
    other.add_graph("mine", replace(FACTS, content_hash="another"))
    assert "another graph called mine" in message_of(lambda: merge(other, read_results(tmp_path / "one")))
    assert "no results of vgae accuracy" in message_of(lambda: read_results(tmp_path))
    assert "results of vgae models" in message_of(lambda: read_results(DOCS / "data" / "models.json"))


def test_killed_and_resumed_it_ends_with_the_numbers_of_an_uninterrupted_one(graph_file: Path, tmp_path: Path) -> None:
    names = ("ra", "gae*", "pa", "vgae*")
    chosen = [word for name in names for word in ("--method", name)]
    arguments = ["accuracy", "--graph", str(graph_file), *chosen, "--runs", "2", "--workers", "1", "--device", "cpu"]
    command = [sys.executable, "-m", "vgae", *arguments, "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: list((tmp_path / "out" / "runs").glob("blocks*.json")))
        os.killpg(process.pid, signal.SIGKILL)
    stored = {path.name: path.read_bytes() for path in (tmp_path / "out" / "runs").glob("blocks*.json")}
    assert stored
    resumed = run_vgae(*arguments, "--out", "out", "--json", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    for name, content in stored.items():
        assert (tmp_path / "out" / "runs" / name).read_bytes() == content
    archive = Archive.read(tmp_path / "out" / "accuracy.json")
    assert archive.graphs == {"blocks": facts_of(vgae.read_graph(graph_file))}
    tasks = list_tasks(archive.graphs, [all_methods()[name] for name in names], 2)
    assert {each.task for each in archive.results} == set(tasks)
    setting = Setting("cpu", 1, {"blocks": Source("blocks", graph_file)})
    for each in archive.results:
        uninterrupted = run_accuracy(each.task, setting)
        assert isinstance(uninterrupted, Result)
        assert uninterrupted.metrics == each.metrics
    found = strict_json(resumed.stdout)["blocks"]
    assert list(found) == ["gae*", "vgae*", "ra", "pa"]
    of_ra = [each.auc for each in archive.results if each.task.method == "ra"]
    assert found["ra"]["auc"]["mean"] == pytest.approx(100 * sum(of_ra) / 2)


def test_the_command_merges_and_refuses_in_a_sentence(tmp_path: Path) -> None:
    store = accuracy_store(tmp_path / "one")
    store.add_graph("mine", FACTS)
    store.put(result("ra", 0))
    merged = run_vgae("accuracy", "--merge", "one", "--out", "all", cwd=tmp_path)
    assert merged.returncode == 0
    assert "one: 1 new result\n" in merged.stderr
    assert merged.stdout.split() == ["AUC", "/", "AP", "mine", "ra", "90.0", "/", "80.0"]
    assert Archive.read(tmp_path / "all" / "accuracy.json").results == [result("ra", 0)]
    assert_refused(run_vgae("accuracy", "--merge", "none", "--out", "new", cwd=tmp_path), "none: there is no such file")
    assert_refused(
        run_vgae("accuracy", "--graph", "karate", "--out", "new", cwd=tmp_path), "graph: 'karate' is neither"
    )
    assert_refused(run_vgae("accuracy", "--method", "gan", "--out", "new", cwd=tmp_path), "method: 'gan' is not one of")
    assert not (tmp_path / "new").exists()


def test_a_session_takes_the_place_of_no_other(tmp_path: Path) -> None:
    store = accuracy_store(tmp_path / "out")
    for name in ("first", "second"):
        store.record(Session(name, 1, 1.0))
    (tmp_path / "out" / "sessions" / "0000.json").unlink()  # as a sentence about a damaged one advises
    store.record(Session("third", 1, 1.0))
    assert [each.machine for each in store.sessions()] == ["second", "third"]
    (tmp_path / "out" / "sessions" / "0001.json").write_text("{}")
    assert "0001.json: not what vgae accuracy writes there; delete" in message_of(store.sessions)
