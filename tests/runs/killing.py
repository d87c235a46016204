"""Kills trainings with SIGKILL, as a process of its own: `python killing.py moments|steps FOLDER` prints what it found.

Python and torch are loaded once; every training is the command, run in a fork of this process, with one thread.
"""

import gc
import io
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}  # neither threads nor a GPU survive a fork

import numpy as np
import pytest
from powercut import what_is_read

import vgae
from vgae.cli.app import main

OPTIONS = {
    "exact VGAE": ["--objective", "exact"],
    "sampled VGAE": ["--objective", "sampled"],
    "exact GAE, auto": ["--model", "gae"],
    "sampled GAE": ["--model", "gae", "--objective", "sampled", "--no-features"],
    "batches": ["--batch-size", "25"],
    "early stopping": ["--early-stopping", "6", "--eval-every", "3", "--learning-rate", "0.1"],
}
KILLS = 4  # of each of these
EVENTS = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir")  # what Python tells before it does it


def load_everything(graph: Path) -> None:
    """Train once, so that what is loaded only when it is used is there before the forks, which leave it alone."""
    sys.argv[1:] = ["train", str(graph), "--out", str(graph.with_name("first")), "--json"]
    with redirect_stdout(io.StringIO()):
        main()
    gc.freeze()  # what is never collected is not copied for each fork
    pytest.MonkeyPatch().setattr(os, "fsync", lambda _: None)  # a kill loses nothing that was written


def vgae_train(folder: Path, *options: str, before: Callable[[], None] = lambda: None) -> int:
    """Start `vgae train` on the graph beside the folder; its process id."""
    child = os.fork()
    if child:
        return child
    try:
        quiet = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        graph = str(folder.parent / "graph.npz")
        sys.argv = ["vgae", "train", graph, "--out", str(folder), "--no-verdict", *options]
        before()
        main()
    except SystemExit as end:
        os._exit(int(end.code or 0))
    os._exit(0)


def ending_of(process: int) -> int:
    """Wait for a process: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def content_of(folder: Path) -> dict[str, Any]:
    """All that must be the same whether a training was killed or not."""
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    for entry in history:
        del entry["seconds"]
    config = json.loads((folder / "config.json").read_text())
    for seconds in (config["facts"].pop("seconds"), config.pop("config_hash"), config["files"].pop("history.jsonl")):
        del seconds
    weights = (folder / "model.safetensors").read_bytes()
    return {
        "weights": weights.hex(),
        "metrics": (folder / "metrics.json").read_text(),
        "history": history,
        "config": config,
        "files": sorted(path.name for path in folder.iterdir()),
    }


def kill_at_random_moments(place: Path) -> dict[str, Any]:
    """Kill and resume each kind of training until it has been killed often enough, and compare with an unkilled one."""
    generator = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for name, options in OPTIONS.items():
        options = [*options, "--iterations", "25", "--checkpoint-every", "0"]
        started = time.monotonic()
        assert ending_of(vgae_train(place / "whole", *options)) == 0
        duration = time.monotonic() - started
        whole, kills, resumed_at, different = content_of(place / "whole"), 0, [], set()
        while kills < KILLS:
            endings = [-signal.SIGKILL]
            while endings[-1] == -signal.SIGKILL:
                training = vgae_train(place / "run", *options, "--resume")
                if kills < KILLS:
                    time.sleep(generator.uniform(0, duration))
                    os.kill(training, signal.SIGKILL)
                endings.append(ending_of(training))
                kills += endings[-1] == -signal.SIGKILL
                resumed_at += iteration_kept(place / "run")
            assert endings[-1] == 0, (place / "run.log").read_text()
            different |= {part for part, found_now in content_of(place / "run").items() if found_now != whole[part]}
            shutil.rmtree(place / "run")
        shutil.rmtree(place / "whole")
        last = whole["history"][-1]["iteration"]
        found[name] = {"kills": kills, "resumed_at": resumed_at, "different": sorted(different), "iterations": last}
    return found


def iteration_kept(run: Path) -> list[int]:
    path = run / "checkpoint" / "checkpoint.json"
    return [json.loads(path.read_text())["iteration"]] if path.exists() else []


def kill_at_every_step(place: Path) -> dict[str, Any]:
    """Overwrite a run with another, killed before the n-th change to a file, for all n; then resume it."""
    options = ["--iterations", "2", "--checkpoint-every", "0", "--hidden-dim", "4", "--latent-dim", "2"]
    assert ending_of(vgae_train(place / "old", *options, "--seed", "1")) == 0
    assert ending_of(vgae_train(place / "whole", *options)) == 0
    for folder in ("old", "whole"):
        (place / folder / "latent.png").write_bytes(b"a picture of the old run, which stays")
    whole, read = content_of(place / "whole"), [what_is_read(place / name) for name in ("old", "whole")]
    seen, wrong, count = [], [], 0
    while True:
        count += 1
        shutil.copytree(place / "old", place / "run")
        ending = ending_of(
            vgae_train(place / "run", *options, "--overwrite", before=partial(die_at, count, place / "run"))
        )
        state = state_of(place / "run", *read)
        seen.append(state)
        if ending == 0:
            break
        assert ending == -signal.SIGKILL, (place / "run.log").read_text()
        if state != "old" or count % 8 == 0:  # those with an old run are much alike
            resumed = ending_of(vgae_train(place / "run", *options, "--resume", "--overwrite"))
            if resumed != 0 or content_of(place / "run") != whole:
                wrong.append({"step": count, "state": state, "ending": resumed, "log": (place / "run.log").read_text()})
        shutil.rmtree(place / "run")
    return {"steps": count, "seen": seen, "wrong": wrong, "beside": sorted(path.name for path in place.iterdir())}


def die_at(count: int, run: Path) -> None:
    """Have this process killed just before its n-th change to a file of the run."""
    left = count

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in EVENTS or not str(arguments[0]).startswith(str(run) + "/"):
            return
        if event == "open" and not arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)


def state_of(run: Path, old: tuple[Any, ...], whole: tuple[Any, ...]) -> str:
    """What somebody who looks at the folder sees."""
    try:
        found = what_is_read(run)
    except vgae.InputError as error:
        return "unfinished" if "unfinished" in str(error) else str(error)
    return "old" if found == old else "new" if found == whole else "mixed"


if __name__ == "__main__":
    where = Path(sys.argv[2])
    vgae.write_graph(where / "graph.npz", vgae.stochastic_block_model(150, 3, feature_dim=20, seed=4))
    job = kill_at_random_moments if sys.argv[1] == "moments" else kill_at_every_step
    load_everything(where / "graph.npz")
    print(json.dumps(job(where)))
