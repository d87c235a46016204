"""Several processes beside one: time and memory of training steps, and scores.

    speed    two processes of one thread each against one process of two threads: the ratio of their speeds, on Pubmed
             with its features and on R-MAT graphs (ten links per node, numbered at random, which makes halos as large
             as they get; no features), by both objectives. One step of ten has the value of the loss, as in training.
    memory   the growth of the peak of each of four processes, with the memory that its messages take, as a share of one
             process's, on an R-MAT graph; modules, kernels and the graph itself are there before
    scores   AUC and AP on Cora's test links after 200 iterations, by one to four processes
    gpu      on one GPU, by torchrun: one process with NCCL, which is to have the bits of a process that is alone, and
             two that share the GPU and talk by gloo, whose first step and scores are to be the same to float32

Contenders stay alive and take steps in turn, round by round, so that a busy moment of the machine hits both; what is
told is the median of the ratios of rounds. Beside it stands the ratio of the work, the time in which cores were busy
for either: on a machine that has other things to do it says more. Processes talk by memory that they share.

    python benchmarks/distributed.py speed [--datasets pubmed] [--nodes 100000] [--objectives exact] [--rounds 5]
    python benchmarks/distributed.py memory [--nodes 300000]
    python benchmarks/distributed.py scores [--iterations 200]
    python benchmarks/distributed.py gpu [--nodes 10000] [--iterations 200]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import torch.distributed as dist

import vgae
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.synthetic import rmat
from vgae.machine import describe_machine
from vgae.parallel import joined
from vgae.parallel.environment import in_group
from vgae.parallel.group import Group
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.setting import Alone, Setting
from vgae.train.step import Step
from vgae.train.together import Together

AT_LEAST, AT_MOST = 0.85, 0.35  # speed, and memory per process
CLOSE, POINTS = 1e-5, 0.1  # first steps of groups, relative to one process's, and scores at the end
SECONDS = 4.0  # of a round
WARM_UP = 10_000  # nodes, so many that every process uses its kernels


class Worker:
    """What a process of a contender does."""

    def __init__(self, group: Group | None) -> None:
        self.group = group
        self.steps: Step | None = None
        self.taken = 0

    def prepare(self, name: str, objective: str) -> None:
        """Make the training of a graph ready, up to its first step."""
        graph = graph_of(name)
        setting = self._setting(graph, objective)
        self.steps, self.taken = setting.first_step(objective), 0

    def take(self, number: int) -> tuple[float, float]:
        """Seconds of as many steps, and those in which a core was at work for them."""
        assert self.steps is not None  # noqa: S101
        begun, worked = time.perf_counter(), time.process_time()
        for _ in range(number):
            self.taken += 1
            self.steps(self.taken, value=self.taken % 10 == 1)
        return time.perf_counter() - begun, time.process_time() - worked

    def growth(self, name: str, objective: str) -> int:
        """By how many bytes the peak of this process grows in a training, to its third step."""
        self.prepare(f"rmat-{WARM_UP}", objective)  # loads whatever there is to load
        self.take(2)
        self.steps = None
        setting = self._setting(graph_of(name), objective)
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
        before = _status("VmRSS")
        self.steps, self.taken = setting.first_step(objective), 0
        self.take(3)
        return _status("VmHWM") - before

    def scores(self, options: dict[str, Any]) -> dict[str, float] | None:
        """AUC and AP of a training on Cora, of the first process."""
        split = vgae.split_links(vgae.load_dataset("cora"), seed=0)
        trained = train(Job.of(split.train, Config(device="cpu", **options)), group=self.group)
        if trained.nodes is not None:
            return None
        logits = trained.logits(split.test.pairs)
        return auc_and_ap(logits[split.test.labels], logits[~split.test.labels])

    def _setting(self, graph: vgae.Graph, objective: str) -> Setting:
        job = Job.of(graph, Config(objective=objective, device="cpu"))
        setting: Setting = Alone(job) if self.group is None else Together(job, self.group)
        setting.require_memory(checkpoints=False)
        setting.open(Checkpointer())
        return setting


class Contender:
    """As many processes of as many threads, which do what they are asked together."""

    def __init__(self, processes: int, threads: int = 1) -> None:
        self.processes, self.threads = processes, threads

    def __enter__(self) -> Self:
        context, self.folder = get_context("spawn"), tempfile.TemporaryDirectory()
        meeting = str(Path(self.folder.name) / "meeting")
        self.started = []
        for rank in range(self.processes):
            ours, theirs = context.Pipe()
            given = theirs, rank, self.processes, self.threads, meeting
            process = context.Process(target=serve, args=given, daemon=True)
            process.start()
            self.started.append((process, ours))
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self.started:
            pipe.send(None)
            process.join(30)
        self.folder.cleanup()

    def steps(self, number: int) -> tuple[float, float]:
        """Seconds of a step, the slowest process's of as many, and seconds of all cores together."""
        found = self.ask(Worker.take, number)
        return max(wall for wall, _ in found) / number, sum(work for _, work in found) / number

    def ask(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """What each process answers."""
        for _, pipe in self.started:
            pipe.send((work.__name__, given))
        return [pipe.recv() for _, pipe in self.started]


def serve(pipe: Connection, rank: int, size: int, threads: int, meeting: str) -> None:
    """A process of a contender."""
    torch.set_num_threads(threads)
    group = None
    if size > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
        group = Group("cpu")
    worker = Worker(group)
    while (task := pipe.recv()) is not None:
        name, given = task
        pipe.send(getattr(worker, name)(*given))


def graph_of(name: str) -> vgae.Graph:
    """A dataset, or a generated graph of as many nodes."""
    kind, _, size = name.partition("-")
    return rmat(int(size), 10 * int(size), seed=0) if kind == "rmat" else vgae.load_dataset(name)


def _status(key: str) -> int:
    """A number of this process's memory, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def load() -> str:
    """How busy the machine is."""
    return f"load {os.getloadavg()[0]:.1f}"


def speed(options: argparse.Namespace) -> None:
    print(f"{'':24}{'one process':>14}{'two processes':>15}{'speed':>8}  (rounds)")
    for name in [*options.datasets, *(f"rmat-{number}" for number in options.nodes)]:
        for objective in options.objectives:
            with Contender(1, threads=2) as one, Contender(2) as two:
                for each in (one, two):
                    each.ask(Worker.prepare, name, objective)
                    each.ask(Worker.take, 2)
                number = max(2, round(SECONDS / one.steps(2)[0]))
                rounds = [[each.steps(number) for each in (one, two)] for _ in range(options.rounds)]
            (alone, _), (together, _) = (np.median(each, axis=0) for each in zip(*rounds, strict=True))
            ratios, of_work = ([each[0][which] / each[1][which] for each in rounds] for which in range(2))
            ratio = statistics.median(ratios)
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}, work {statistics.median(of_work):.2f}, {load()}"
            verdict = "" if ratio >= AT_LEAST else f"  below {AT_LEAST}"
            title = f"{name}, {objective}"
            print(
                f"{title:24}{1000 * alone:11.1f} ms{1000 * together:12.1f} ms{ratio:8.2f}  ({spread}){verdict}",
                flush=True,
            )


def memory(options: argparse.Namespace) -> None:
    print(f"{'':24}{'one process':>14}{'each of four':>15}{'share':>8}")
    for number in options.nodes:
        for objective in options.objectives:
            found = []
            for processes in (1, 4):
                with Contender(processes) as contender:
                    found.append(max(contender.ask(Worker.growth, f"rmat-{number}", objective)))
            share = found[1] / found[0]
            verdict = "" if share <= AT_MOST else f"  above {AT_MOST}"
            title = f"rmat-{number}, {objective}"
            print(f"{title:24}{found[0] / 1e6:11.0f} MB{found[1] / 1e6:12.0f} MB{share:8.2f}{verdict}", flush=True)


def trainings_of(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Options of all that are compared."""
    return [
        {"model": model, "features": features, "objective": objective, "iterations": options.iterations}
        for model in ("gae", "vgae")
        for features in (True, False)
        for objective in options.objectives
    ]


def scores(options: argparse.Namespace) -> None:
    print(f"{'Cora, AUC / AP':28}" + "".join(f"{f'{number}':>16}" for number in range(1, 5)))
    trainings = trainings_of(options)
    found: list[list[dict[str, float]]] = []
    for processes in range(1, 5):
        with Contender(processes) as contender:
            found.append([contender.ask(Worker.scores, each)[0] for each in trainings])
    for training, row in zip(trainings, zip(*found, strict=True), strict=True):
        title = f"{training['model']}{'' if training['features'] else '*'}, {training['objective']}"
        cells = [f"{100 * each['auc']:.2f} / {100 * each['ap']:.2f}" for each in row]
        print(f"{title:28}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def gpu(options: argparse.Namespace) -> None:
    """What a process finds alone, what one of torchrun's finds, and what two of torchrun's find."""
    if in_group():
        with joined("cuda") as group:
            found = on_gpu(options, group)
            if group.is_first:
                print(json.dumps({"backend": dist.get_backend(), "found": found}))
        return
    alone = on_gpu(options, None)
    groups = [_by_torchrun(number) for number in (1, 2)]
    titles = [f"{each['backend']}, {number}" for number, each in enumerate(groups, start=1)]
    print(f"{'':28}{'alone':>16}{titles[0]:>16}{titles[1]:>16}   first step of two, off by")
    for key, own in alone.items():
        one, two = (each["found"][key] for each in groups)
        off = max(abs(theirs / mine - 1) for theirs, mine in zip(two["first"], own["first"], strict=True))
        cells = [own["scores"], "same bits" if one["bits"] == own["bits"] else "other bits", two["scores"]]
        apart = max(abs(theirs - mine) for theirs, mine in zip(two["points"], own["points"], strict=True))
        missed = [f"above {CLOSE}"] * (off > CLOSE) + [f"above {POINTS} points"] * (apart > POINTS)
        print(f"{key:28}" + "".join(f"{cell:>16}" for cell in cells) + f"   {off:.1e}  {', '.join(missed)}")


def on_gpu(options: argparse.Namespace, group: Group | None) -> dict[str, dict[str, Any]]:
    """Of each training the loss and the norms of all gradients of a first step, and bits and scores at the end."""
    found = {}
    split = vgae.split_links(vgae.load_dataset("cora"), seed=0)
    generated = vgae.split_links(graph_of(f"rmat-{options.nodes[0]}"), seed=0)
    for name, of in (("Cora", split), ("R-MAT", generated)):
        for training in trainings_of(options):
            if training["features"] and of.train.features is None:
                continue
            job, began = Job.of(of.train, Config(device="cuda", **training)), time.perf_counter()
            first = _first_step(job, group)
            trained = train(job, group=group)
            if trained.nodes is not None:
                continue
            weights = b"".join(each.numpy().tobytes() for each in trained.model.state_dict().values())
            logits = trained.logits(of.test.pairs)
            both = auc_and_ap(logits[of.test.labels], logits[~of.test.labels])
            points = [100 * both["auc"], 100 * both["ap"]]
            key = f"{name}, {training['model']}{'' if training['features'] else '*'}, {training['objective']}"
            print(f"{key}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
            found[key] = {
                "first": first,
                "bits": hashlib.sha256(weights).hexdigest(),
                "points": points,
                "scores": "{:.2f} / {:.2f}".format(*points),
            }
    return found


def _first_step(job: Job, group: Group | None) -> list[float]:
    """The loss of the first step, and the norm of each gradient."""
    setting: Setting = Alone(job) if group is None or group.size == 1 else Together(job, group)
    setting.require_memory(checkpoints=False)
    setting.open(Checkpointer())
    step = setting.first_step(job.config.objective)
    terms = step(1, value=True)
    found, whole = [terms.total.double()], dict(job.outline.named_parameters())
    for name, weight in step.model.named_parameters():
        squares = torch.zeros_like(found[0]) if weight.grad is None else weight.grad.double().square().sum()
        by_node = group is not None and weight.shape != whole[name].shape  # each process has the rows of its nodes
        found.append(group.sum(squares).sqrt() if group is not None and by_node else squares.sqrt())
    return [float(each) for each in found]


def _by_torchrun(processes: int) -> dict[str, Any]:
    """What the first of as many processes prints."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    done = subprocess.run([*command, *sys.argv], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - itself
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description="Several processes beside one.")
    parser.add_argument("what", choices=["speed", "memory", "scores", "gpu"])
    parser.add_argument("--datasets", nargs="*", default=["pubmed"])
    parser.add_argument("--nodes", nargs="*", type=int, default=None)
    parser.add_argument("--objectives", nargs="*", default=["exact", "sampled"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=200)
    options = parser.parse_args()
    if options.nodes is None:
        options.nodes = [{"memory": 300_000, "gpu": WARM_UP}.get(options.what, 100_000)]
    if not in_group():
        print(f"{describe_machine()} · {load()}")
    {"speed": speed, "memory": memory, "scores": scores, "gpu": gpu}[options.what](options)


if __name__ == "__main__":
    main()
