"""Interrupts trainings with Ctrl-C, as a process of its own: `python interrupting.py FOLDER` prints what it found.

The command is run in forks of this process, as in killing.py. Ctrl-C comes before each change to a file of the run, as
an exception right there, or after it, as a signal.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from killing import EVENTS, ending_of, load_everything, vgae_train

import vgae

OPTIONS = ["--iterations", "2", "--hidden-dim", "4", "--latent-dim", "2"]
CHECKPOINTS = ["--checkpoint-every", "0"]
COMPLETE, CONTINUE, NOTHING = "the run is complete in", "To continue, run: vgae train", "nothing was saved"


def before_it() -> None:
    raise KeyboardInterrupt


def after_it() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def interrupt_at(count: int, run: Path, press: Callable[[], None]) -> None:
    """Have Ctrl-C pressed at the n-th change to a file of the run."""
    left = count

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in EVENTS or not str(arguments[0]).startswith(str(run)):
            return
        if event == "open" and not arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            return
        left -= 1
        if left == 0:
            press()

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.addaudithook(hear)


CASES: list[tuple[list[str], bool, Callable[[], None], int]] = [  # options, over an old run, when, and every so many n
    (CHECKPOINTS, True, after_it, 1),
    ([], False, before_it, 1),
    (CHECKPOINTS, False, before_it, 3),
    ([], True, after_it, 2),
]


def what_is_there(run: Path, old: vgae.GAE | vgae.VGAE | None) -> str:
    """What somebody who looks at the folder finds."""
    if any((run / "checkpoint" / name).exists() for name in ("checkpoint.json", "run/config.json")):
        return CONTINUE
    try:
        found = vgae.load(run)
    except vgae.InputError:
        return NOTHING
    return NOTHING if old is not None and (found.transform() == old.transform()).all() else COMPLETE


def interrupt_everywhere(place: Path) -> dict[str, Any]:
    """Train, with and without an old run in the folder, interrupted at the n-th change to a file."""
    assert ending_of(vgae_train(place / "old", *OPTIONS, "--seed", "1")) == 0
    old, run = vgae.load(place / "old"), place / "run"
    seen: list[str] = []
    wrong: list[dict[str, Any]] = []
    for options, overwrite, press, step in CASES:
        arguments = [*OPTIONS, *options, *(["--overwrite"] if overwrite else [])]
        count, ending = 1, 130
        while ending == 130:
            if overwrite:
                shutil.copytree(place / "old", run)
            ending = ending_of(vgae_train(run, *arguments, before=partial(interrupt_at, count, run, press)))
            said = (place / "run.log").read_text()
            there = what_is_there(run, old if overwrite else None)
            case = {"case": (options, overwrite, press.__name__, count), "said": said, "there": there, "ending": ending}
            if ending == 130:
                seen.append(there)
            if "Traceback" in said or ending not in (0, 130) or (ending == 130 and there not in said):
                wrong.append(case)
            elif there == CONTINUE and count % 5 == 0 and ending_of(vgae_train(run, *arguments, "--resume")) != 0:
                wrong.append({**case, "resumed": (place / "run.log").read_text()})
            shutil.rmtree(run, ignore_errors=True)
            count += step
    return {"seen": seen, "wrong": wrong}


if __name__ == "__main__":
    where = Path(sys.argv[1])
    vgae.write_graph(where / "graph.npz", vgae.stochastic_block_model(60, 3, feature_dim=5, seed=4))
    load_everything(where / "graph.npz")
    print(json.dumps(interrupt_everywhere(where)))
