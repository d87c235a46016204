"""`vgae train --model stack` and what the other commands make of its run; `vgae explain` of any run."""

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from helpers import message_of
from vgae.cli.stack import StackScreen
from vgae.runs.make import Destination
from vgae.runs.stack_progress import REST, TimeLeft

BASES = "gae(iterations=5;latent_dim=4),neighbours,degrees"
OPTIONS = ("--model", "stack", "--bases", BASES, "--folds", "3", "--base-seeds", "1", "--boosting", "0")
NODES = 120


def in_words(path: Path) -> None:
    """A table of links and one of nodes: a group, whose name is a category, and two numbers."""
    graph = vgae.stochastic_block_model(NODES, 4, degree_within=7, degree_between=1, seed=1)
    rows = "".join(f"n{i},n{j}\n" for i, j in graph.edges.tolist())
    (path / "links.csv").write_text("source,target\n" + rows)
    groups = np.asarray(graph.labels).tolist()
    table = "".join(f"n{i},group{group},{i % 5},{group}\n" for i, group in enumerate(groups))
    (path / "nodes.csv").write_text("id,group,rest,number\n" + table)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables of links and nodes, the run of a stack, and that of a heuristic and of a GAE."""
    folder = tmp_path_factory.mktemp("stacks")
    in_words(folder)
    tables = ("links.csv", "--features", "nodes.csv", "--id", "id")
    result = run_vgae("train", *tables, *OPTIONS, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "features normalized by rows; --normalize none takes them as they are" in result.stderr
    assert f"stack of {', '.join(BASES.split(','))}; 3 folds, 1 seed each" in result.stderr
    assert "saved in runs/links-stack" in result.stderr
    (folder / "trained.txt").write_text(result.stdout)
    assert run_vgae("baseline", "ra", *tables, "--out", "runs/ra", cwd=folder).returncode == 0
    few = ("--preset", "paper", "--iterations", "3", "--no-verdict")
    assert run_vgae("train", *tables, *few, "--model", "gae", "--out", "runs/gae", cwd=folder).returncode == 0
    return folder


def test_a_stack_is_trained_scored_and_compared(folder: Path) -> None:
    shown = (folder / "trained.txt").read_text()
    model = vgae.load(folder / "runs/links-stack")
    auc = 100 * model.metrics(model.run_.split.test)["auc"]
    scores, table = shown.split("\n\n")
    assert scores.splitlines()[0].split() == ["protocol", "paper", "AUC", "AP"]
    assert f"{auc:.1f}" in next(line for line in scores.splitlines() if line.startswith("test"))
    assert f"{auc:.1f}" in next(line for line in table.splitlines() if line.startswith("stack "))
    assert "\nbest base: " in table
    assert "alone, the best of its bases, has an AUC of" in table
    assert "% of the test links; a pair that is not on its list is not ranked and not recommended." in table
    assert model.run_.recipe is not None
    assert model.run_.recipe.features == (
        "group=group0",
        "group=group1",
        "group=group2",
        "group=group3",
        "rest",
        "number",
    )


def test_json_has_the_scores_the_verdict_and_the_bases(folder: Path) -> None:
    arguments = ("train", "links.csv", *OPTIONS, "--no-features", "--json")
    result = run_vgae(*arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    found = strict_json(result.stdout)
    assert found["run"] == "runs/links-stack-no-features"
    assert (found["model"], found["features"], found["bases"], found["folds"]) == ("stack", False, BASES, 3)
    stored = json.loads((folder / "runs/links-stack-no-features/metrics.json").read_text())
    assert {name: found["test"][name] for name in stored["test"]} == stored["test"]
    model = vgae.load(folder / "runs/links-stack-no-features")
    recall = model.evaluate(model.run_.split.test)["first_stage_recall"]
    assert found["test"]["first_stage_recall"] == found["verdict"]["model"]["first_stage_recall"] == recall
    listed = f"The first stage lists {100 * recall:.1f}% of the test links; "
    assert any(sentence.startswith(listed) for sentence in found["verdict"]["sentences"])
    assert set(found["verdict"]["bases"]) >= {"cn", "ra", "degree_sum"}
    assert found["verdict"]["model"]["auc"] == pytest.approx(stored["test"]["auc"])
    again = strict_json(run_vgae(*arguments, "--resume", "--no-verdict", cwd=folder).stdout)
    assert again["test"] == {name: value for name, value in found["test"].items() if name != "first_stage_recall"}
    assert again["verdict"] is None
    assert_refused(_last_line(run_vgae(*arguments, cwd=folder)), "runs/links-stack-no-features", "--overwrite")
    other = run_vgae(*arguments, "--resume", "--seed", "1", cwd=folder)
    assert_refused(_last_line(other), "seed 0, not 1")


def test_pairs_of_nodes_without_training_links_are_left_out(tmp_path: Path) -> None:
    graph = vgae.stochastic_block_model(150, 5, degree_within=2.5, degree_between=0.5, seed=3)
    vgae.write_graph(tmp_path / "thin.npz", graph)
    arguments = ("train", "thin.npz", "--model", "stack", "--bases", "neighbours,degrees", "--folds", "2")
    result = run_vgae(*arguments, "--boosting", "0", "--test", "0.3", "--no-verdict", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    model = vgae.load(tmp_path / "runs/thin-stack")
    split = model.run_.split
    degrees = np.bincount(split.train.edges.ravel(), minlength=150)
    links, non_links = (
        np.array([pair for pair in pairs.tolist() if min(degrees[pair]) > 0])
        for pairs in (split.test.links, split.test.non_links)
    )
    assert len(links) < len(split.test.links)
    scores = model.metrics(vgae.HeldOut(links, non_links))
    kept = f"On the {len(links) + len(non_links)} of {len(split.test)} pairs whose nodes all have training links"
    assert kept in result.stdout
    assert f"AUC {100 * scores['auc']:.1f}, AP {100 * scores['ap']:.1f}." in result.stdout
    train_again = (*arguments, "--boosting", "0", "--test", "0.3", "--no-verdict", "--resume")
    for asked in (train_again, ("evaluate", "runs/thin-stack")):
        found = strict_json(run_vgae(*asked, "--json", cwd=tmp_path).stdout)["test"]
        assert {name: found[f"{name}_linked"] for name in ("auc", "ap")} == {"auc": scores["auc"], "ap": scores["ap"]}
        assert found["left_out"] == pytest.approx(1 - len(links) / len(split.test.links))


def test_a_stack_is_evaluated_like_a_model(folder: Path) -> None:
    found = strict_json(run_vgae("evaluate", "runs/links-stack", "--json", cwd=folder).stdout)
    model = vgae.load(folder / "runs/links-stack")
    expected = model.evaluate(model.run_.split.test)
    assert {name: found["test"][name] for name in expected} == pytest.approx(expected)
    assert 0 < found["test"]["first_stage_recall"] <= 1
    assert found["calibration"]["is_fitted"] is True
    shown = run_vgae("evaluate", "runs/links-stack", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    recall = 100 * expected["first_stage_recall"]
    assert f"The first stage lists {recall:.1f}% of these links; a pair that is not on its list" in shown.stdout
    assert "Probabilities of all pairs" in shown.stdout
    for protocol in ("heart", "ogb"):
        other = run_vgae("evaluate", "runs/links-stack", "--protocol", protocol, "--json", cwd=folder)
        assert other.returncode == 0, other.stderr
        by = vgae.evaluate_protocol(model, model.run_.split, protocol).metrics["test"]
        assert strict_json(other.stdout)["test"] == pytest.approx(by)


def test_links_of_a_stack_are_recommended_and_predicted(folder: Path) -> None:
    model = vgae.load(folder / "runs/links-stack")
    for nodes in (None, ["n7", "n3"]):
        best = model.recommend(4, nodes)
        asked = [word for node in nodes or () for word in ("--node", node)]
        result = run_vgae("recommend", "runs/links-stack", "--top", "4", "--json", *asked, cwd=folder)
        assert result.returncode == 0, result.stderr
        content = strict_json(result.stdout)
        found = content["links"]
        assert [[link["source"], link["target"]] for link in found] == best.ids.tolist()
        assert [link["logit"] for link in found] == pytest.approx(best.logits.tolist(), rel=1e-5)
        recall = model.first_stage_recall(model.run_.split.test, by_node=nodes is not None)
        assert content["first_stage_recall"] == recall
        assert f"the first stage finds {100 * recall:.1f}% of the held-out links" in result.stderr
    (folder / "pairs.csv").write_text("source,target\n" + "".join(f"{i},{j}\n" for i, j in best.ids.tolist()))
    assert run_vgae("predict", "runs/links-stack", "pairs.csv", "--out", "scores.csv", cwd=folder).returncode == 0
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    assert [float(row["probability"]) for row in rows] == pytest.approx(best.probabilities.tolist(), rel=1e-5)


def test_new_nodes_have_links_too(folder: Path) -> None:
    (folder / "more.csv").write_text("source,target\nnew,n1\nnew,n2\n")
    (folder / "new.csv").write_text("id,group,rest,number\nnew,group0,2,0\n")
    new = ("--new-links", "more.csv", "--features", "new.csv", "--id", "id", "--json")
    result = run_vgae("recommend", "runs/links-stack", "--node", "new", "--top", "3", *new, cwd=folder)
    assert result.returncode == 0, result.stderr
    found = strict_json(result.stdout)["links"]
    assert [link["source"] for link in found] == ["new"] * 3
    assert not {"n1", "n2", "new"} & {link["target"] for link in found}
    assert "first stage" not in result.stderr  # of new nodes nothing is held out


def test_what_a_stack_has_not_is_said_in_a_sentence(folder: Path) -> None:
    run = "runs/links-stack"
    for arguments in (("embed", run, "--out", "z.csv"), ("similar", run, "n1"), ("cluster", run, "--k", "2")):
        assert_refused(run_vgae(*arguments, cwd=folder), "A stack has no embeddings")
    assert_refused(run_vgae("evaluate", run, "--labels", "nodes.csv", cwd=folder), "no embeddings")
    for kind in ("latent", "training"):
        assert_refused(run_vgae("plot", run, "--kind", kind, cwd=folder), run, f"kind {kind}", "ranking or reliability")
    assert_refused(run_vgae("recommend", run, "--samples", "5", cwd=folder), "no posterior to draw from")
    for kind in ("ranking", "reliability"):
        result = run_vgae("plot", run, "--kind", kind, "--out", f"{kind}.svg", cwd=folder)
        assert result.returncode == 0, result.stderr
        assert (folder / f"{kind}.svg").stat().st_size > 1000


# ------------------------------------------------------------------------------------------------------------- explain


def test_a_link_is_explained_base_by_base_and_by_name(folder: Path) -> None:
    model = vgae.load(folder / "runs/links-stack")
    (best,) = model.recommend(1).ids.tolist()
    found = strict_json(run_vgae("explain", "runs/links-stack", *best, "--json", cwd=folder).stdout)
    assert found == {"run": "runs/links-stack"} | json.loads(json.dumps(model.explain(*best).to_json()))
    assert found["nodes"] == best
    assert found["known"] == "no"
    added = [each["adds"] for each in found["bases"]]
    assert sorted(each["base"] for each in found["bases"]) == sorted(BASES.split(","))
    assert added == sorted(added, reverse=True)
    assert found["mean"] + sum(added) == pytest.approx(found["logit"], abs=1e-3)
    neighbours = next(each["evidence"] for each in found["bases"] if each["base"] == "neighbours")
    assert neighbours["cn"] == found["num_neighbours"]
    assert {each["name"] for each in found["features"]} <= set(model.run_.recipe.features)
    shown = run_vgae("explain", "runs/links-stack", *best, "--top", "2", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert f"Probability of a link: {found['probability']:.3g} (logit {found['logit']:.3f})." in shown.stdout
    assert "mean of many pairs (for one of the best, of the best) and what each base adds:" in shown.stdout
    assert f"{best[0]} and {best[1]} are not linked in the training graph" in shown.stdout
    assert "of length three" in shown.stdout


@pytest.mark.parametrize("run", ["runs/gae", "runs/ra"])
def test_other_models_are_explained_by_the_graph(folder: Path, run: str) -> None:
    model = vgae.load(folder / run)
    one, other = model.graph_.ids_of(model.graph_.edges[:1])[0].tolist()
    found = strict_json(run_vgae("explain", run, one, other, "--json", cwd=folder).stdout)
    assert (found["known"], found["linked"], found["mean"], found["bases"]) == ("train", True, None, [])
    assert found["logit"] == pytest.approx(float(model.logits([(one, other)])[0]))
    stack = vgae.load(folder / "runs/links-stack").explain(one, other).to_json()
    assert found["neighbours"] == json.loads(json.dumps(stack["neighbours"]))
    shown = run_vgae("explain", run, one, other, cwd=folder).stdout
    assert "This link is in the training graph, so the model has seen it" in shown
    assert "what each base adds" not in shown


def test_a_link_that_was_held_out_is_said_to_be_known(folder: Path) -> None:
    model = vgae.load(folder / "runs/links-stack")
    pair = model.graph_.ids_of(model.run_.split.test.links[:1])[0].tolist()
    shown = run_vgae("explain", "runs/links-stack", *pair, cwd=folder).stdout
    assert "This link is known, but was held out: the model has not seen it." in shown


def test_bad_pairs_are_refused(folder: Path) -> None:
    run = "runs/links-stack"
    assert_refused(run_vgae("explain", run, "n1", "nobody", cwd=folder), "nobody")
    assert_refused(run_vgae("explain", run, "n1", "n1", cwd=folder), "two different nodes")
    assert_refused(run_vgae("explain", run, "n1", "n2", "--top", "0", cwd=folder), "top", "at least 1")
    assert_refused(run_vgae("explain", "runs/none", "n1", "n2", cwd=folder), "runs/none")


# ------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "stack", "--bases", "vgea"), ("bases: 'vgea' is not one of", "neighbours")),
        (("--model", "stack", "--bases", ""), ("bases: there are none",)),
        (("--model", "stack", "--bases", "degrees,degrees"), ("'degrees' is there twice",)),
        (("--model", "stack", "--bases", "gae(depth=3)"), ("'depth=3'", "is not an option")),
        (("--model", "stack", "--bases", "cosines", "--no-features"), ("'cosines' can do nothing without features",)),
        (("--model", "stack", "--folds", "1"), ("folds: a whole number from 2 to 1000 is needed",)),
        (("--model", "stack", "--bases", "degrees", "--folds", "999", "--out", "new"), ("folds",)),
        (("--model", "stack", "--latent-dim", "8"), ("--latent-dim: this option is not for --model stack", "--bases")),
        (("--model=stack", "--preset=accurate"), ("--preset: this option is not for --model stack",)),
        (("--model", "stack", "--seeds", "3"), ("--seeds: this option is not for --model stack",)),
        (("--model", "stack", "--nonsense"), ("--nonsense",)),
        (("--bases", "degrees"), ("--bases: this option is for --model stack; add that, or leave it out",)),
        (("--model", "vgae", "--folds", "3"), ("--folds: this option is for --model stack",)),
        (("--model", "stak"), ("model: 'stak' is not one of gae, vgae, stack",)),
        (("--model", "stack", "--device", "tpu"), ("device: 'tpu'",)),
        (("--model", "stack", "--bases", "degrees", "--out", "links.csv"), ("links.csv",)),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(
    folder: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    result = run_vgae("train", "links.csv", *arguments, "--json", cwd=folder)
    assert result.returncode == 2
    assert_refused(_last_line(result), *words)


def _last_line(result: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """What was assumed in reading a table is printed before a refusal that comes after it."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("links.csv: ")]
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout, "\n".join(lines))


def test_help_lists_the_options_of_the_model(folder: Path) -> None:
    stack = run_vgae("train", "--model", "stack", "--help", cwd=folder).stdout
    assert "--base-seeds" in stack
    assert "--latent-dim" not in stack
    plain = run_vgae("train", "--help", cwd=folder).stdout
    assert "--base-seeds" not in plain
    assert "vgae train --model stack --help" in " ".join(plain.split())


def test_a_stack_is_planned_roughly(folder: Path) -> None:
    asked = ("plan", "links.csv", *OPTIONS[:6], "--base-seeds", "2")
    found = strict_json(run_vgae(*asked, "--json", cwd=folder).stdout)
    assert found["trainings_of_each"] == 8
    (name,) = found["bases"]
    assert name == BASES.split(",")[0]
    assert found["training_seconds"] == pytest.approx(8 * found["bases"][name]["seconds"])
    either = [f"gae(iterations=5;objective={each})" for each in ("exact", "auto")]  # the same on a small graph
    same = ("plan", "links.csv", "--model", "stack", "--bases")
    exact, auto = (strict_json(run_vgae(*same, each, "--json", cwd=folder).stdout)["bases"][each] for each in either)
    assert auto["bytes"] == exact["bytes"]
    assert auto["seconds"] > 0
    shown = run_vgae(*asked, cwd=folder).stdout
    assert "for the auto-encoders, 3 folds and the whole graph, 2 seeds each" in shown
    assert_refused(run_vgae("plan", "links.csv", "--model", "stack", "--hidden-dim", "3", cwd=folder), "--hidden-dim")


def test_directed_links_are_said_to_have_one_score(tmp_path: Path) -> None:
    in_words(tmp_path)
    arguments = (
        "train",
        "links.csv",
        "--directed",
        "--model",
        "stack",
        "--bases",
        "neighbours,degrees",
        "--folds",
        "2",
    )
    result = run_vgae(*arguments, "--boosting", "0", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "a stack has one score for both ways: it cannot tell which way a link goes" in result.stderr
    assert run_vgae("evaluate", "runs/links-stack", cwd=tmp_path).returncode == 0
    assert run_vgae("explain", "runs/links-stack", "n1", "n2", cwd=tmp_path).returncode == 0


# -------------------------------------------------------------------------------------------------------- interruption


def test_a_stack_is_continued_fold_by_fold(tmp_path: Path) -> None:
    in_words(tmp_path)
    asked = ["train", "links.csv", *OPTIONS, "--no-verdict"]
    with (  # Ctrl-C when the first fold is done; the process, which is that of the tests, is not ended
        patch.object(StackScreen, "on_fold", side_effect=KeyboardInterrupt),
        patch.object(os, "_exit", side_effect=SystemExit),
    ):
        stopped = run_vgae(*asked, "--out", "run", cwd=tmp_path)
        assert cast("Any", os)._exit.call_args.args == (130,)
    last = stopped.stderr.strip().splitlines()[-1]
    assert last.startswith("vgae: Interrupted after 1 fold. To continue, run: vgae train links.csv --model stack")
    assert last.endswith("--out run --resume")
    resumed = run_vgae(*asked, "--out", "run", "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "continuing after 1 fold of 3" in resumed.stderr
    whole = run_vgae(*asked, "--out", "whole", cwd=tmp_path)
    assert resumed.stdout == whole.stdout
    one, other = (vgae.load(tmp_path / name) for name in ("run", "whole"))
    pairs = one.run_.split.test.pairs
    np.testing.assert_array_equal(one.logits(pairs), other.logits(pairs))


def test_time_left_is_known_once_every_step_was_made() -> None:
    with patch("vgae.runs.stack_progress.time.perf_counter") as now:
        now.return_value = 0.0
        left = TimeLeft(["a", "b"], 3)
        for second, turn, name in ((0, 0, "a"), (5, 0, "b"), (7, 0, REST)):
            now.return_value = float(second)
            left.begin(turn, name)
            assert left.seconds is None
        now.return_value = 8.0
        left.begin(1, "a")
        assert left.seconds == 16.0
        assert left.done == pytest.approx(3 / 9)


def test_a_bar_follows_folds_that_were_there(capsys: pytest.CaptureFixture[str]) -> None:
    shown = StackScreen(["a", "b"], 2, Destination(Path("run"), resume=True), ["about the graph"])
    shown.on_ready(fresh=False)
    shown.on_fold(0, restored=True)
    for name in ("a", "b"):
        shown.on_base(1, name)
    shown.on_describing(1)
    shown.on_fold(1, restored=False)
    shown.on_base(2, "a")
    shown.on_meta()
    said = capsys.readouterr().err.splitlines()
    assert said == ["about the graph", "continuing after 1 fold of 2"]
    status = shown.bar.tasks[0].fields["status"]
    assert status.startswith("meta-model and scores · about ")
    assert status.endswith(" left")
    assert shown.bar.tasks[0].completed == pytest.approx(8 / 9)


def test_nodes_of_one_kind_have_no_link_to_explain() -> None:
    links = vgae.Graph.from_edges([(0, 3), (1, 3), (0, 4), (2, 4)], num_nodes=5)
    graph = links.with_parts(sides=np.array([0, 0, 0, 1, 1], dtype=np.int8))
    model = vgae.Baseline("pa").fit(graph)
    assert "links of a bipartite graph go across" in message_of(lambda: model.explain(0, 1))
    assert model.explain(1, 4).pair.num_paths == 1


def test_a_verdict_on_a_stack_in_python(folder: Path) -> None:
    model = vgae.load(folder / "runs/links-stack")
    found = vgae.verdict(model, model.run_.split)
    (name,) = (row for row in found.table if row.startswith("best base: "))
    assert found.table[name]["auc"] == max(each["auc"] for each in found.comparison.bases.values())
    assert f"\n{name} " in (folder / "trained.txt").read_text()
    assert any("the best of its bases" in sentence for sentence in found.sentences)
