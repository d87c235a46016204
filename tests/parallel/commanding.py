"""The command in groups of processes, as a process of its own: `python commanding.py CASES FOLDER` prints findings."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # what tests share

import pytest
from forking import (
    EVERY,
    NO_FEATURES,
    OPTIONS,
    PATIENCE,
    Command,
    at_change,
    content_of,
    endings_of,
    finish,
    fork,
    free_port,
    iteration_of,
    kill_me,
    load_everything,
    stop_me,
    train,
)
from restarting import agents

import vgae
from processes import children_of, is_running
from vgae.parallel import joined

KINDS = {"exact VGAE": [*OPTIONS, "--objective", "exact"], "sampled GAE": NO_FEATURES}
PARAMETERS: dict[str, Any] = {"iterations": 12, "hidden_dim": 8, "latent_dim": 4, "features": False, "seed": 3}
STEPS = 12  # of the moments to be killed at, every so many


def agree(place: Path) -> dict[str, Any]:
    """One process and groups of two and three, with features and without; one of them twice."""
    found: dict[str, Any] = {}
    for kind, sizes in (("exact VGAE", (1, 3)), ("sampled GAE", (1, 2, 2))):
        runs = [place / f"{kind} {number}" for number in range(len(sizes))]
        ended = [finish(place, size, run, *KINDS[kind], *EVERY) for size, run in zip(sizes, runs, strict=True)]
        one = vgae.load(runs[0]).transform()
        found[kind] = {
            "said": [[[each.out, each.said] for each in group] for group in ended],
            "content": [content_of(run) for run in runs],
            "far": [float(abs(vgae.load(run).transform() - one).max() / abs(one).max()) for run in runs],
        }
    return found


def script(place: Path) -> dict[str, Any]:
    """What a script of two processes does, once until the first of them is killed and once to its end."""
    alone = vgae.VGAE(**PARAMETERS).fit(split_of(place).train, validation=split_of(place).val).transform()
    run = place / "run"
    killed = Command(place, 2, do=lambda: fit(place), before={0: at_change(run, 30, kill_me)}).wait()
    kept = iteration_of(run)
    ended = Command(place, 2, do=lambda: fit(place)).wait()
    return {
        "codes": [[each.code for each in group] for group in (killed, ended)],
        "kept": kept,
        "out": [each.out for each in ended],
        "said": [each.said for each in ended],
        "far": float(abs(vgae.load(run).transform() - alone).max()),
        "files": sorted(path.name for path in run.iterdir()),
    }


def split_of(place: Path) -> vgae.LinkSplit:
    return vgae.split_links(vgae.read_graph(place / "graph.npz"), seed=0)


def fit(place: Path) -> None:
    """A script that torchrun would start."""
    split = split_of(place)
    with joined() as group:
        model = vgae.VGAE(**PARAMETERS)
        model.fit(
            split.train, validation=split.val, group=group, checkpoint=place / "run" / "checkpoint", checkpoint_every=0
        )
        print(hasattr(model, "fitted_"), group.rank, group.size)
        if group.is_first:
            model.save(place / "run", split=split)


def resume(place: Path) -> dict[str, Any]:
    """Trainings that are killed after some checkpoints, and continued by other numbers of processes."""
    found: dict[str, Any] = {}
    for kind, before, after in (
        ("sampled GAE", 3, 2),
        ("sampled GAE", 2, 1),
        ("sampled GAE", 1, 2),
        ("exact VGAE", 2, 3),
    ):
        whole, run = place / f"whole {kind}", place / f"{kind} {before} {after}"
        if not whole.exists():
            finish(place, 1, whole, *KINDS[kind])
        expected = vgae.load(whole).transform()
        killed = Command(place, before, *train(run, *KINDS[kind], *EVERY), before={0: at_change(run, 40, kill_me)})
        codes, kept = [each.code for each in killed.wait()], iteration_of(run)
        ended = finish(place, after, run, *KINDS[kind], *EVERY, "--resume")
        found[f"{kind}, {before} to {after}"] = {
            "codes": codes,
            "kept": kept,
            "said": ended[0].said,
            "far": float(abs(vgae.load(run).transform() - expected).max() / abs(expected).max()),
            "left": sorted(path.name for path in run.iterdir()),
        }
    return found


def kill(place: Path) -> dict[str, Any]:
    """Each of two processes killed just before its n-th change to a file; then both continue."""
    options = [*KINDS["sampled GAE"], "--iterations", "2", *EVERY]
    finish(place, 2, place / "whole", *options)
    whole, kept = content_of(place / "whole"), []
    wrong: list[Any] = []
    for rank in (0, 1):
        count, ended = 1 + 4 * rank, False
        while not ended:
            run = place / f"run-{rank}-{count}"
            killed = Command(place, 2, *train(run, *options), before={rank: at_change(run, count, kill_me)}).wait()
            ended = killed[rank].code != -signal.SIGKILL
            other = killed[1 - rank]
            if not ended and (other.code not in (0, 1) or "Traceback" in other.said):
                wrong.append([rank, count, "the other", other.code, other.said])
            kept.append(iteration_of(run))
            again = Command(place, 2, *train(run, *options, "--resume")).wait()
            if [each.code for each in again] != [0, 0] or content_of(run) != whole:
                wrong.append([rank, count, "again", [each.code for each in again], again[0].said])
            count += STEPS
    return {"wrong": wrong, "kept": kept}


def refuse(place: Path) -> dict[str, Any]:
    """What is refused, and by whom."""
    vgae.write_graph(place / "other.npz", vgae.stochastic_block_model(60, 3, feature_dim=6, seed=5))
    vgae.write_graph(place / "tiny.npz", vgae.Graph.from_edges([[0, 1], [1, 2]]))
    run, found = place / "run", {}
    plain = train(run, *OPTIONS)

    def case(name: str, size: int = 2, arguments: Sequence[str] = plain, **options: Any) -> None:
        ended = Command(place, size, *arguments, **options).wait()
        found[name] = {
            "codes": [each.code for each in ended],
            "said": [each.said for each in ended],
            "out": [each.out for each in ended],
            "left": run.exists(),
        }

    def newer() -> None:
        pytest.MonkeyPatch().setattr("vgae.parallel.joining.__version__", "9.0")

    case("other version", before={1: newer})
    case("other option", others={1: [*plain, "--learning-rate", "0.5"]})
    case("other graph", others={1: ["train", str(place / "other.npz"), *plain[2:]]})
    case("no file", others={1: ["train", str(place / "none.csv"), *plain[2:]]})
    case("no file anywhere", arguments=["train", str(place / "none.csv"), *plain[2:]])
    tiny = ["train", str(place / "tiny.npz"), "--val", "0", "--test", "0", "--out", str(run), *OPTIONS]
    case("more processes than nodes", 4, tiny)
    first = {"MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    for name, arguments in {
        "batches": [*plain, "--batch-size", "20"],
        "seeds": [*plain, "--seeds", "2"],
        "number": [*plain, "--processes", "3"],
        "command": ["evaluate", str(run)],
    }.items():  # which are refused before the processes meet
        case(name, 1, arguments, environment=first)
    case("a part", arguments=[*plain, "--encoder", "directed"])
    case("option", arguments=[*plain, "--none", "1"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = first | {"MASTER_PORT": str(taken.getsockname()[1])}
        case("busy port", 1, environment=busy)
    case("nobody comes", 1, [*plain, "--timeout", "0.5"], environment=first)
    (place / "full").mkdir()
    (place / "full" / "notes.txt").write_text("mine")
    case("folder", arguments=train(place / "full", *OPTIONS))
    return found


def hang(place: Path) -> dict[str, Any]:
    """One of three processes stops, once the first and once another."""
    found: dict[str, Any] = {}
    for rank in (0, 2):
        run = place / f"stopped-{rank}"
        options = [*KINDS["sampled GAE"], *EVERY, "--timeout", "3"]
        began = time.monotonic()
        command = Command(place, 3, *train(run, *options), before={rank: at_change(run, 25, stop_me)})
        ended = command.wait()
        found[str(rank)] = {
            "codes": [each.code for each in ended],
            "said": [each.said for each in ended],
            "numbers": command.processes,
            "seconds": time.monotonic() - began,
            "complete": (run / "config.json").exists(),
        }
    finish(place, 3, run, *options, "--resume")
    return found


def orphans(place: Path) -> dict[str, Any]:
    """A process whose agent is killed."""
    run, port = place / "run", str(free_port())
    alone = {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": "x",
    }
    options = [*OPTIONS, "--iterations", "1000000", *EVERY]

    def start() -> None:
        Command(place, 1, *train(run, *options), environment=alone).wait()

    parent = fork(start, place / "parent")
    while not iteration_of(run):
        time.sleep(0.03)
    (worker,) = children_of(parent)
    os.kill(parent, signal.SIGKILL)
    endings_of([parent])
    end = time.monotonic() + PATIENCE
    while is_running(worker) and time.monotonic() < end:
        time.sleep(0.05)
    return {"is running": is_running(worker)}


CASES = {
    "agree": agree,
    "script": script,
    "resume": resume,
    "kill": kill,
    "refuse": refuse,
    "hang": hang,
    "orphans": orphans,
    "agents": agents,
}

if __name__ == "__main__":
    where = Path(sys.argv[2])
    cases = {name: CASES[name] for name in sys.argv[1].split(",")}
    found: dict[str, Any] = {}
    graph = vgae.stochastic_block_model(60, 3, feature_dim=6, seed=4)
    for case_name in cases:
        (where / case_name).mkdir()
        vgae.write_graph(where / case_name / "graph.npz", graph)
    load_everything(where / next(iter(cases)))
    for case_name, work in cases.items():
        found[case_name] = work(where / case_name)
    print(json.dumps(found))
