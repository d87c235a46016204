"""The command in groups of processes, as a process of its own: `python commanding.py CASES FOLDER` prints its findings.

Python and torch are loaded once. Every process of a group is a fork of this one, with the environment that torchrun
sets; where torchrun's own agents are to start them, these are forks too, and so are their workers.
"""

import gc
import io
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
os.environ["TORCH_CPP_LOG_LEVEL"] = "FATAL"

import pytest
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

import vgae
import vgae.parallel.joining
from vgae.cli.app import main

PATIENCE = 60.0  # seconds, for a busy machine
CHANGES = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir")  # what Python tells before it does it
OPTIONS = ["--preset", "paper", "--no-verdict", "--hidden-dim", "8", "--latent-dim", "4", "--iterations", "12"]
KINDS = {  # of which without features weights have rows of nodes
    "exact VGAE": [*OPTIONS, "--objective", "exact"],
    "sampled GAE": [*OPTIONS, "--model", "gae", "--objective", "sampled", "--no-features"],
}
EVERY = ["--checkpoint-every", "0"]
STEPS = 5  # of the moments to be killed at, every so many


@dataclass(frozen=True)
class Ended:
    """How a process has ended, and what it has said."""

    code: int
    out: str
    said: str


class Command:
    """`vgae …` in some processes, each with its own arguments and something that it does first."""

    def __init__(
        self,
        place: Path,
        size: int,
        *arguments: str,
        others: Mapping[int, Sequence[str]] | None = None,
        before: Mapping[int, Callable[[], None]] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.place = place
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
        self.processes = [
            fork(
                lambda rank=rank: vgae_command(  # type: ignore[misc]
                    (others or {}).get(rank, arguments),
                    {**({} if size == 1 else meeting | {"RANK": str(rank)}), **(environment or {})},
                    (before or {}).get(rank, lambda: None),
                ),
                place / f"said-{rank}",
            )
            for rank in range(size)
        ]

    def wait(self) -> list[Ended]:
        """How each has ended; one that has not after a minute is killed."""
        codes = endings_of(self.processes)
        return [
            Ended(code, (self.place / f"said-{rank}.out").read_text(), (self.place / f"said-{rank}.err").read_text())
            for rank, code in enumerate(codes)
        ]


def vgae_command(arguments: Sequence[str], environment: Mapping[str, str], before: Callable[[], None]) -> None:
    """What a process of the command does."""
    os.environ |= environment
    sys.argv = ["vgae", *arguments]
    before()
    main()


def fork(task: Callable[[], None], log: Path) -> int:
    """A process that does something, and whose words go to files; its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for number, ending in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(f"{log}{ending}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        task()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def endings_of(processes: Sequence[int]) -> list[int]:
    """Exit codes, or minus the signals; whoever takes too long is killed."""
    end, codes = time.monotonic() + PATIENCE, dict.fromkeys(processes, 0)
    left = set(processes)
    while left:
        for process in list(left):
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                codes[process] = os.waitstatus_to_exitcode(status)
                left.remove(process)
        if time.monotonic() > end:
            for process in left:
                os.kill(process, signal.SIGKILL)
        time.sleep(0.03)
    return [codes[process] for process in processes]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def content_of(run: Path) -> dict[str, Any]:
    """All that must be the same whether a training was interrupted or not."""
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    for entry in history:
        del entry["seconds"]
    files = sorted(path.name for path in run.iterdir())
    return {
        "weights": (run / "model.safetensors").read_bytes().hex(),
        "metrics": (run / "metrics.json").read_text(),
        "history": history,
        "files": files,
    }


def at_change(run: Path, count: int, act: Callable[[], None]) -> Callable[[], None]:
    """Have something done just before this process's n-th change to a file of the run."""

    def listen() -> None:
        left = count

        def hear(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if event not in CHANGES or not str(arguments[0]).startswith(str(run)):
                return
            if event == "open" and not arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return
            left -= 1
            if left == 0:
                act()

        sys.addaudithook(hear)

    return listen


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop_me() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def train(run: Path, *options: str) -> list[str]:
    return ["train", str(run.parent / "graph.npz"), "--out", str(run), *options]


def finish(place: Path, size: int, run: Path, *options: str) -> list[Ended]:
    """A training that is to succeed."""
    ended = Command(place, size, *train(run, *options)).wait()
    assert [each.code for each in ended] == [0] * size, ended
    return ended


# ---------------------------------------------------------------------------------------------------------------- cases


def agree(place: Path) -> dict[str, Any]:
    """One process, and groups of two and three, with features and without; two of them twice."""
    found: dict[str, Any] = {}
    for kind, options in KINDS.items():
        said = {}
        for name, size in (("one", 1), ("two", 2), ("two again", 2), ("three", 3)):
            ended = finish(place, size, place / kind / name, *options, *EVERY) if size > 1 else None
            if size == 1:
                (place / kind).mkdir()
                (place / kind / "graph.npz").symlink_to(place / "graph.npz")
                ended = finish(place, 1, place / kind / name, *options)
            said[name] = [[each.out, each.said] for each in ended or []]
        runs = {name: place / kind / name for name in said}
        one = vgae.load(runs["one"])
        found[kind] = {
            "said": said,
            "same bits": content_of(runs["two"]) == content_of(runs["two again"]),
            "files": [content_of(run)["files"] for run in runs.values()],
            "far": [float(abs(vgae.load(run).transform() - one.transform()).max()) for run in runs.values()],
            "auc": [json.loads((run / "metrics.json").read_text())["test"]["auc"] for run in runs.values()],
        }
    return found


def resume(place: Path) -> dict[str, Any]:
    """Trainings that are killed after some checkpoints, and continued by other numbers of processes."""
    found: dict[str, Any] = {}
    for kind, options in KINDS.items():
        whole = place / f"whole {kind}"
        finish(place, 1, whole, *options)
        expected = vgae.load(whole).transform()
        for before, after in ((3, 2), (2, 1), (1, 3)):
            run = place / f"{kind} {before} {after}"
            killed = Command(place, before, *train(run, *options, *EVERY), before={0: at_change(run, 40, kill_me)})
            codes = [each.code for each in killed.wait()]
            kept = json.loads((run / "checkpoint" / "checkpoint.json").read_text())["iteration"]
            ended = finish(place, after, run, *options, *EVERY, "--resume")
            found[f"{kind}, {before} to {after}"] = {
                "codes": codes,
                "kept": kept,
                "said": ended[0].said,
                "far": float(abs(vgae.load(run).transform() - expected).max()),
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
        count, ended = 1, False
        while not ended:
            run = place / f"run-{rank}-{count}"
            killed = Command(place, 2, *train(run, *options), before={rank: at_change(run, count, kill_me)}).wait()
            ended = killed[rank].code != -signal.SIGKILL
            other = killed[1 - rank]
            if not ended and (other.code not in (0, 1) or "Traceback" in other.said):
                wrong.append([rank, count, "the other", other.code, other.said])
            record = run / "checkpoint" / "checkpoint.json"
            kept.append(json.loads(record.read_text())["iteration"] if record.exists() else 0)
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
    case("batches", arguments=[*plain, "--batch-size", "20"])
    case("seeds", arguments=[*plain, "--seeds", "2"])
    case("a part", arguments=[*plain, "--encoder", "directed"])
    case("number", arguments=[*plain, "--processes", "3"])
    case("command", arguments=["evaluate", str(run)])
    case("option", arguments=[*plain, "--none", "1"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = {"MASTER_PORT": str(taken.getsockname()[1]), "WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1"}
        case("busy port", 1, environment=busy)
    case("nobody comes", 1, [*plain, "--timeout", "0.5"], environment=busy | {"MASTER_PORT": str(free_port())})
    (place / "full").mkdir()
    (place / "full" / "notes.txt").write_text("mine")
    case("folder", arguments=train(place / "full", *OPTIONS))
    return found


def hang(place: Path) -> dict[str, Any]:
    """One of three processes stops, once the first and once another."""
    found: dict[str, Any] = {}
    for rank in (0, 2):
        run = place / f"stopped-{rank}"
        options = [*KINDS["sampled GAE"], *EVERY, "--timeout", "1.5"]
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


def agents(place: Path, kills: int = 2) -> dict[str, Any]:
    """Two agents of torchrun as two machines; a worker of either is killed again and again, at random moments."""
    options = [*KINDS["sampled GAE"], "--iterations", "40", *EVERY]
    finish(place, 2, place / "whole", *options)
    run, port, chance = place / "run", free_port(), random.Random(0)  # noqa: S311 - moments to kill at, no secrets
    machines = [fork(lambda: agent(port, train(run, *options), kills), place / f"agent-{number}") for number in (0, 1)]
    at: list[int] = []
    while len(at) < kills and (saved := iteration_of(run)) is not None:
        if saved >= (len(at) + chance.random()) * 40 / kills:
            time.sleep(0.1 * chance.random())
            workers = children_of(machines[len(at) % 2])
            os.kill(workers[0], signal.SIGKILL)
            at.append(saved)
        time.sleep(0.01)
    codes = endings_of(machines)
    logs = {path.name: path.read_text()[-3000:] for path in place.glob("agent-*.err")}
    same = codes == [0, 0] and content_of(run) == content_of(place / "whole")
    return {"codes": codes, "at": at, "same bits": same, "said": logs}


def iteration_of(run: Path) -> int | None:
    """Up to which iteration a training is saved; None if it is complete."""
    try:
        return int(json.loads((run / "checkpoint" / "checkpoint.json").read_text())["iteration"])
    except FileNotFoundError:
        return None if (run / "config.json").exists() else 0


def agent(port: int, arguments: list[str], restarts: int) -> None:
    """What torchrun does on a machine, with one worker, which is a fork."""
    config = LaunchConfig(
        min_nodes=2,
        max_nodes=2,
        nproc_per_node=1,
        run_id="test",
        rdzv_backend="c10d",
        rdzv_endpoint=f"127.0.0.1:{port}",
        local_addr="127.0.0.1",
        max_restarts=restarts,
        start_method="fork",
    )
    try:
        launch_agent(config, worker, [arguments])
    except (ChildFailedError, SignalException):
        sys.exit(1)


def worker(arguments: list[str]) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)  # the agent has handlers of its own, which a new program would not have
    pytest.MonkeyPatch().setattr("vgae.cli.processes.leave", _leave)
    try:
        vgae_command(arguments, {}, lambda: None)
    except _Left as end:
        if end.code:
            os._exit(end.code)


class _Left(BaseException):
    """What stands for the end of a process where the agent waits for a function to return."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _leave(code: int) -> None:
    raise _Left(code)


def children_of(process: int) -> list[int]:
    """The workers of an agent."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(each) for each in found]


def load_everything(place: Path) -> None:
    """Train once, so that what is loaded only when it is used is there before the forks."""
    sys.argv[1:] = ["train", str(place / "graph.npz"), "--out", str(place / "first"), "--json", *OPTIONS]
    with redirect_stdout(io.StringIO()):
        main()
    gc.freeze()
    pytest.MonkeyPatch().setattr(os, "fsync", lambda _: None)  # a kill loses nothing that was written


CASES = {"agree": agree, "resume": resume, "kill": kill, "refuse": refuse, "hang": hang, "agents": agents}

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
        started = time.monotonic()
        found[case_name] = work(where / case_name) | {"took": time.monotonic() - started}
    print(json.dumps(found))
