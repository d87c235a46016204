"""Two `torchrun` agents as two machines, one of whose workers is killed by SIGKILL again and again at random moments.

    python benchmarks/killed.py [--kills 10] [--nodes 1000] [--iterations 200]

The training that comes out must have the bits of one that nobody has interrupted, with as many processes. Prints how
often workers were killed and after which iteration, and how long both took; ends with 1 if a bit differs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import vgae
from vgae.runs.checkpoint import saved_iteration

PROCESSES = 2  # on each of two machines
# The part of a training in which workers are killed. Were one killed when those of the other machine have ended well,
# its agent would wait for the other agent, which has no more to do.
SHARE = 0.7


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        vgae.write_graph(place / "graph.npz", vgae.stochastic_block_model(given.nodes, 10, seed=0))
        options = [
            "--preset",
            "paper",
            "--iterations",
            str(given.iterations),
            "--checkpoint-every",
            "0",
            "--no-verdict",
        ]
        began = time.monotonic()
        wait_for(start(place, "whole", options, restarts=0))
        whole = time.monotonic() - began
        print(f"uninterrupted: {whole:.1f} s, {given.iterations} iterations, 2 machines of {PROCESSES} processes")
        began = time.monotonic()
        agents = start(place, "killed", options, restarts=given.kills)
        killed_at = kill_workers(agents, place / "killed", given.kills, given.iterations)
        wait_for(agents)
        print(f"killed {len(killed_at)} times, after iterations {killed_at}: {time.monotonic() - began:.1f} s")
        same = all((place / "whole" / name).read_bytes() == (place / "killed" / name).read_bytes() for name in SAME)
    print("the same bits" if same else "OTHER BITS")
    return 0 if same and len(killed_at) == given.kills else 1


SAME = ("model.safetensors", "metrics.json", "split.npz")


def start(place: Path, run: str, options: list[str], *, restarts: int) -> list[subprocess.Popen[bytes]]:
    """Two agents that meet on the loopback interface."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", str(PROCESSES)]
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", run]
    meeting += ["--local-addr", "127.0.0.1", "--max-restarts", str(restarts)]
    command = [*torchrun, *meeting, "-m", "vgae", "train", "graph.npz", "--out", run, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    found = []
    for number in (0, 1):
        with (place / f"{run}-{number}.log").open("wb") as log:
            found.append(subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log))  # noqa: S603
    return found


def kill_workers(agents: list[subprocess.Popen[bytes]], run: Path, kills: int, iterations: int) -> list[int]:
    """Kill a worker of the second agent at random moments, one in each part of the training; what was saved then."""
    chance = random.Random(0)  # noqa: S311 - moments, no secrets
    found: list[int] = []
    while len(found) < kills and agents[1].poll() is None:
        saved = saved_iteration(run / "checkpoint") or 0
        if saved >= (len(found) + chance.random()) * SHARE * iterations / kills:
            time.sleep(0.2 * chance.random())
            children = Path(f"/proc/{agents[1].pid}/task/{agents[1].pid}/children").read_text().split()
            if children:
                os.kill(int(chance.choice(children)), signal.SIGKILL)
                found.append(saved)
        time.sleep(0.05)
    return found


def wait_for(agents: list[subprocess.Popen[bytes]]) -> None:
    codes = [agent.wait() for agent in agents]
    if codes != [0, 0]:
        raise SystemExit(f"torchrun has ended with {codes}")


if __name__ == "__main__":
    sys.exit(main())
