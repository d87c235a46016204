"""Splits of one's own, protocols and labels on the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from vgae.baselines import BASELINES, adamic_adar
from vgae.cli.app import with_values
from vgae.evaluation.heart import evaluate_heart
from vgae.evaluation.ogb import evaluate_ogb
from vgae.graph.given import NamedPairs
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit, split_links
from vgae.graph.synthetic import stochastic_block_model
from vgae.io.tables import read_graph

TINY = ("--iterations", "5", "--latent-dim", "4", "--hidden-dim", "4", "--device", "cpu")


def write_links(path: Path, pairs: Any, extra: Any = None) -> None:
    titles = "source,target" + ("" if extra is None else ",when")
    rows = [
        f"p{i},p{j}" + ("" if extra is None else f",{extra[k]}") for k, (i, j) in enumerate(np.asarray(pairs).tolist())
    ]
    path.write_text("\n".join([titles, *rows]) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a graph and of a split of it, labels, and runs on them."""
    here = tmp_path_factory.mktemp("protocols")
    drawn = split_links(stochastic_block_model(80, 4, seed=3), val=0.1, test=0.2, seed=2)
    edges = np.concatenate([drawn.train.edges, drawn.val.links, drawn.test.links])
    labels = np.asarray(drawn.train.labels)
    write_links(here / "all.csv", edges)
    write_links(here / "train.csv", drawn.train.edges)
    write_links(here / "val.csv", drawn.val.links[:, ::-1])
    write_links(here / "test.csv", drawn.test.links)
    write_links(here / "val-neg.csv", drawn.val.non_links)
    write_links(here / "test-neg.csv", drawn.test.non_links)
    write_links(here / "leaking.csv", np.concatenate([drawn.train.edges, drawn.test.links[:2, ::-1]]))
    write_links(here / "timed.csv", edges, [f"2024-01-{1 + k // 60:02d}T{k % 24:02d}:00" for k in range(len(edges))])
    (here / "strangers.csv").write_text("source,target\np0,p1\np0,nobody\n")
    (here / "labels.csv").write_text(
        "id,class\n" + "".join(f"p{k},c{label}\n" for k, label in enumerate(labels.tolist()))
    )
    big = stochastic_block_model(200, 4, seed=3)  # enough nodes for a spectral embedding
    write_links(here / "big.csv", big.edges)
    classes = np.asarray(big.labels).tolist()
    (here / "big-labels.csv").write_text("id,class\n" + "".join(f"p{k},c{each}\n" for k, each in enumerate(classes)))
    held_out = ("--val-links", "val.csv", "--test-links", "test.csv")
    for name, arguments in {
        "whole": ("all.csv", *held_out),
        "part": ("train.csv", *held_out),
        "three": ("all.csv", "--train-links", "train.csv", *held_out),
        "negatives": ("all.csv", *held_out, "--val-negatives", "val-neg.csv", "--test-negatives", "test-neg.csv"),
        "timed": ("timed.csv", "--time", "when"),
        "labelled": ("all.csv", "--features", "labels.csv", "--label", "class"),
    }.items():
        result = run_vgae("train", *arguments, *TINY, "--out", name, cwd=here)
        assert result.returncode == 0, result.stderr
    return here


def split_of(folder: Path, name: str) -> LinkSplit:
    split = LinkSplit.load(folder / name / "split.npz")
    split.audit()
    return split


def links_of(graph: Graph, pairs: Any) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in graph.ids_of(np.asarray(pairs)).tolist()}


def rows_of(path: Path) -> set[frozenset[str]]:
    return {frozenset(line.split(",")[:2]) for line in path.read_text().splitlines()[1:]}


# --------------------------------------------------------------------------------------------------------------- splits


@pytest.mark.parametrize("name", ["whole", "part", "three", "negatives"])
def test_a_run_has_the_split_that_the_files_give(folder: Path, name: str) -> None:
    split = split_of(folder, name)
    graph = split.train
    assert links_of(graph, graph.edges) == rows_of(folder / "train.csv")
    assert links_of(graph, split.val.links) == rows_of(folder / "val.csv")
    assert links_of(graph, split.test.links) == rows_of(folder / "test.csv")
    given = name == "negatives"
    assert (links_of(graph, split.val.non_links) == rows_of(folder / "val-neg.csv")) == given
    assert (links_of(graph, split.test.non_links) == rows_of(folder / "test-neg.csv")) == given
    assert len(split.test.non_links) == len(split.test.links)


def test_by_time_the_newest_links_are_for_testing(folder: Path) -> None:
    split = split_of(folder, "timed")
    when = {
        frozenset(line.split(",")[:2]): line.split(",")[2]
        for line in (folder / "timed.csv").read_text().splitlines()[1:]
    }
    ages = [
        sorted(when[link] for link in links_of(split.train, part))
        for part in (split.train.edges, split.val.links, split.test.links)
    ]
    assert ages[0][-1] <= ages[1][0] <= ages[1][-1] <= ages[2][0]
    assert [len(part) for part in ages[1:]] == [len(when) // 20, len(when) // 10]


def test_only_the_test_links_given_validation_is_drawn(folder: Path) -> None:
    result = run_vgae(
        "train",
        "all.csv",
        "--test-links",
        "test.csv",
        "--val",
        "0.2",
        *TINY,
        "--out",
        "drawn",
        "--overwrite",
        cwd=folder,
    )
    assert result.returncode == 0, result.stderr
    split = split_of(folder, "drawn")
    assert links_of(split.train, split.test.links) == rows_of(folder / "test.csv")
    rest = len(rows_of(folder / "all.csv")) - len(split.test.links)
    assert len(split.val.links) == rest // 5


def test_a_run_is_resumed_only_with_its_own_split(folder: Path) -> None:
    arguments = (
        "train",
        "all.csv",
        "--val-links",
        "val.csv",
        "--test-links",
        "test.csv",
        *TINY,
        "--out",
        "whole",
        "--resume",
    )
    same = run_vgae(*arguments, cwd=folder)
    assert same.returncode == 0, same.stderr
    assert "this run is complete" in same.stderr
    other = run_vgae(*arguments, "--test-negatives", "test-neg.csv", cwd=folder)
    assert other.returncode == 2
    assert "another graph or another split" in other.stderr


def test_baseline_and_plan_take_the_same_options(folder: Path) -> None:
    held_out = ("--val-links", "val.csv", "--test-links", "test.csv", "--test-negatives", "test-neg.csv")
    found = json.loads(run_vgae("baseline", "aa", "all.csv", *held_out, "--json", cwd=folder).stdout)
    assert found["protocol"] == "paper"
    graph = read_graph(folder / "all.csv")
    pairs = {
        name: [line.split(",") for line in (folder / f"{name}.csv").read_text().splitlines()[1:]]
        for name in ("val", "test", "test-neg")
    }
    split = LinkSplit.from_links(graph, val=pairs["val"], test=pairs["test"], non_links={"test": pairs["test-neg"]})
    assert found["split"] == split.content_hash
    assert found["test"] == vgae.evaluate(adamic_adar(split.train), split.test)
    for options in (held_out, ("--val", "0.3"), ()):
        planned = run_vgae("plan", "all.csv", *options, cwd=folder)
        assert planned.returncode == 0, planned.stderr
        num = {held_out: split.train.num_edges, ("--val", "0.3"): split_links(graph, val=0.3).train.num_edges}.get(
            options
        )
        assert f"80 nodes, {num or graph.num_edges} edges" in planned.stderr
    assert "edges" in run_vgae("plan", "timed.csv", "--time", "when", cwd=folder).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("leaking.csv", "--test-links", "test.csv"),
            ("test.csv: 2 of its", "are in the graph, such as 'p", "are not"),
        ),
        (("all.csv", "--val-links", "test.csv", "--test-links", "test.csv"), ("also in test.csv (validation links)",)),
        (
            ("all.csv", "--train-links", "all.csv", "--test-links", "test.csv"),
            ("test links are also in all.csv (training links)", "such as 'p"),
        ),
        (("train.csv", "--train-links", "all.csv"), ("all.csv:", "are not in the graph")),
        (("all.csv", "--test-negatives", "val.csv"), ("val.csv:", "non-links are links of the graph, such as 'p")),
        (("all.csv", "--test-links", "strangers.csv"), ("1 of its 2 rows names a node", "'nobody'")),
        (("all.csv", "--test-links", "nowhere.csv"), ("nowhere.csv", "no such file")),
        (("timed.csv", "--time", "when", "--test-links", "test.csv"), ("time and test_links", "give one of the two")),
        (("timed.csv", "--time", "then"), ("timed.csv", "no column 'then'")),
        (("timed.csv", "--time", "source"), ("timed.csv", "has the time 'p", "times are numbers or ISO dates")),
        (("cora", "--time", "when"), ("cora", "time is only for files of your own")),
    ],
)
@pytest.mark.parametrize("command", ["train", "plan"])
def test_leaks_are_refused_in_one_sentence(
    folder: Path, command: str, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    result = run_vgae(command, *arguments, "--device", "cpu", cwd=folder)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("vgae: ")
    assert last.endswith(".")
    for word in words:
        assert word in last


# ------------------------------------------------------------------------------------------------------------ protocols


@pytest.mark.parametrize("protocol", ["paper", "heart", "ogb"])
def test_tables_and_json_say_which_protocol_they_are_by(folder: Path, protocol: str) -> None:
    printed = run_vgae("evaluate", "whole", "--protocol", protocol, cwd=folder)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.startswith(f"protocol {protocol} ")
    found = strict_json(run_vgae("evaluate", "whole", "--protocol", protocol, "--json", cwd=folder).stdout)
    assert found["protocol"] == protocol
    model = vgae.load(folder / "whole")
    split = split_of(folder, "whole")
    if protocol != "paper":
        expected = evaluate_heart(model, split) if protocol == "heart" else evaluate_ogb(model, split).metrics
        assert found["test"] == pytest.approx(expected["test"])
        assert found["validation"] == pytest.approx(expected["validation"])
        assert found["compared_with"]["test"] in printed.stdout
    else:
        assert "hits@100" not in found["validation"]  # there are fewer non-links


def test_ogb_takes_non_links_from_files(folder: Path) -> None:
    found = strict_json(
        run_vgae(
            "evaluate", "whole", "--protocol", "ogb", "--test-negatives", "test-neg.csv", "--json", cwd=folder
        ).stdout
    )
    split = split_of(folder, "negatives")
    negatives = {"test": NamedPairs("test-neg.csv", split.test.non_links)}
    expected = evaluate_ogb(vgae.load(folder / "whole"), split_of(folder, "whole"), negatives)
    assert found["test"] == pytest.approx(expected.metrics["test"])
    assert found["compared_with"]["test"].endswith("(test-neg.csv)")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--protocol", "hart"), ("protocol", "paper, heart, ogb")),
        (("--test-negatives", "test-neg.csv"), ("--protocol ogb",)),
        (("--protocol", "ogb", "--test-negatives", "train.csv"), ("train.csv", "are links of the graph", "'p")),
        (("--labels",), ("the graph has none", "--labels FILE")),
        (("--labels", "test.csv"), ("test.csv", "both about the node")),
        (("--labels", "strangers.csv"), ("strangers.csv", "both about the node")),
        (("--labels", "cora"), ("cora has 2,708 nodes", "80")),
        (("--labels", "--label", "class"), ("name its file",)),
    ],
)
def test_what_cannot_be_evaluated_is_refused(folder: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_refused(run_vgae("evaluate", "whole", *arguments, cwd=folder), *words)


# --------------------------------------------------------------------------------------------------------------- labels


def test_labels_of_the_graph_or_of_a_file_are_the_same(folder: Path) -> None:
    own = run_vgae("evaluate", "labelled", "--labels", "--json", cwd=folder)
    assert own.returncode == 0, own.stderr
    found = strict_json(own.stdout)["labels"]
    named = strict_json(run_vgae("evaluate", "labelled", "--labels", "labels.csv", "--json", cwd=folder).stdout)[
        "labels"
    ]
    assert found == named
    graph = split_of(folder, "labelled").train
    expected = vgae.evaluate_labels(vgae.load(folder / "labelled").transform(), graph.labels)
    assert found == json.loads(json.dumps(expected.to_json()))
    printed = run_vgae("evaluate", "labelled", "--labels", cwd=folder).stdout
    for title in ("accuracy", "macro F1", "micro F1", "NMI", "ARI", "ACC", "80 nodes in 4 classes", "10 repetitions"):
        assert title in printed
    assert f"{100 * found['nmi']['mean']:.1f} ± {100 * found['nmi']['error']:.1f}" in printed


@pytest.mark.parametrize("protocol", ["paper", "heart", "ogb"])
@pytest.mark.parametrize("method", ["ra", "sc"])
def test_baselines_are_judged_in_the_same_way(folder: Path, method: str, protocol: str) -> None:
    made = run_vgae("baseline", method, "big.csv", "--out", f"{method}-run", "--overwrite", cwd=folder)
    assert made.returncode == 0, made.stderr
    found = strict_json(run_vgae("evaluate", f"{method}-run", "--protocol", protocol, "--json", cwd=folder).stdout)
    assert found["protocol"] == protocol
    split = split_of(folder, f"{method}-run")
    scorer = BASELINES[method](split.train, 0)
    expected = vgae.evaluate_protocol(scorer, split, protocol).metrics["test"]
    assert {name: found["test"][name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_labels_are_read_off_a_baseline_that_has_embeddings(folder: Path) -> None:
    for method in ("sc", "cn"):
        made = run_vgae("baseline", method, "big.csv", "--out", f"{method}-labels", "--overwrite", cwd=folder)
        assert made.returncode == 0, made.stderr
    judged = run_vgae("evaluate", "sc-labels", "--labels", "big-labels.csv", cwd=folder)
    assert judged.returncode == 0, judged.stderr
    assert "\nSC " in judged.stdout
    refused = run_vgae("evaluate", "cn-labels", "--labels", "big-labels.csv", cwd=folder)
    assert_refused(refused, "cn", "no embeddings")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["evaluate", "run", "--labels"], ["evaluate", "run", "--labels=own"]),
        (["evaluate", "run", "--labels", "--json"], ["evaluate", "run", "--labels=own", "--json"]),
        (["evaluate", "run", "--labels", "x.csv"], ["evaluate", "run", "--labels", "x.csv"]),
        (["evaluate", "run", "--labels=x.csv", "--json"], ["evaluate", "run", "--labels=x.csv", "--json"]),
        (["evaluate", "run"], ["evaluate", "run"]),
        ([], []),
    ],
)
def test_labels_may_be_named_without_a_file(given: list[str], taken: list[str]) -> None:
    assert with_values(given) == taken
