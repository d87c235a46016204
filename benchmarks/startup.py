"""How long the command takes to start: medians of several calls, in turn, and their ratio to `import torch` alone.

    python benchmarks/startup.py [--rounds 5]

`train cora` trains the paper's VGAE, 200 iterations, and saves it; the dataset is in the cache before it is timed.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time

import vgae
from vgae.machine import describe_machine

RIVAL = "import torch"
COMMANDS = {
    "--version": 0.4,
    "--help": 0.4,
    "datasets": 0.7,
    "train --help": None,
    "train cora": 4.5,
}  # seconds, at most


def seconds_of(command: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: S603 - our own command
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description="Starting the command, against importing torch.")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(describe_machine())
    vgae.load_dataset("cora")
    calls = {name: [sys.executable, "-m", "vgae", *name.split()] for name in COMMANDS}
    calls[RIVAL] = [sys.executable, "-c", RIVAL]
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds_of(call))
    rival = statistics.median(times[RIVAL])
    print(f"{RIVAL}: {rival:.2f} s")
    for name, most in COMMANDS.items():
        taken = statistics.median(times[name])
        target = "" if most is None else f"   (target ≤ {most} s)"
        print(f"vgae {name:<13} {taken:.2f} s, {taken / rival:.2f} times as long{target}")


if __name__ == "__main__":
    main()
