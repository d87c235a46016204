"""Generated files and calls by the thousand: no traceback, no hang, memory in proportion, and what is read was written.

    tables    links as programs write them (delimiters, headers, quotation marks, line ends, packing, Parquet, frames)
    nodes     node tables with numbers, booleans, categories and labels beside links
    pairs     the pairs that `vgae predict` reads
    runs      run folders and checkpoints, changed without care or forged with hashes that fit
    npz       graphs with all that a graph can have, written by vgae; bytes changed, arrays of another kind
    graphml   graphs in GraphML of several encodings; bytes changed, elements where they should not be
    calls     public functions with arguments of any kind

Of every graph that is generated the links, weights, directions, features and labels are known, and have to come back,
or the file is refused in a sentence. Then the file goes wrong, and is read or refused. A case is all of that, for one
seed.

Cases run in a process of their own, which is killed when one of them takes longer than `--limit` seconds. A case cannot
take more than 2 GiB of address space, and must not take more than 64 MiB and fifty times the bytes that it was given.
One that fails is told with the command that repeats it; `--keep` is where its files are kept.

    python benchmarks/fuzz.py [--seconds 60 | --cases 1000] [--seed 0] [--kind tables ...] [--keep failures]
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # what is generated is there, for the tests as well

from fuzzing import KINDS, Outcome, remove_intact, run_case
from vgae.machine import describe_machine

ADDRESS_SPACE = 2 * 2**30
START = 300.0  # seconds that the imports and the first cases may take
BYTES_AT_LEAST, BYTES_PER_BYTE = 64 * 2**20, 50
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


# --------------------------------------------------------------------------------------------------------------- worker


@dataclass(frozen=True)
class Measured:
    """What a case came to, how long it took, and how much memory it took at most."""

    outcome: Outcome
    seconds: float
    num_bytes: int


def work(connection: Connection, folder: Path) -> None:
    """Run the cases that come in until there are no more; some of each kind first, so that all modules are loaded."""
    warnings.simplefilter("ignore")
    tempfile.tempdir = str(folder.parent)  # which is removed even if this process is killed
    for kind in KINDS:
        for seed in range(3):
            run_case(KINDS, kind, -1 - seed, folder.with_name("first"))
    connection.send("ready")
    while (job := connection.recv()) is not None:
        kind, seed = job
        limit_memory()
        before, started = reset_peak(), time.perf_counter()
        outcome = run_case(KINDS, kind, seed, folder)
        connection.send(Measured(outcome, time.perf_counter() - started, peak() - before))
    remove_intact()


def limit_memory() -> None:
    """Allow so much more address space than there is now; allocators keep some of it from case to case."""
    if used := _status("VmSize"):  # known on Linux only
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, most))


def reset_peak() -> int:
    """Forget the largest amount of memory there was, where the system can, and say how much there is."""
    try:
        RESET.write_text("5")
    except OSError:
        return peak()
    return _status("VmRSS")


def peak() -> int:
    """The largest amount of memory since it was last forgotten."""
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    lines = STATUS.read_text().splitlines() if STATUS.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


class Worker:
    """A process that runs cases one after another, and is replaced when it hangs or dies."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, self.folder), daemon=True)
        self.process.start()
        other.close()
        try:
            ready = self.connection.poll(START) and self.connection.recv()
        except EOFError:
            ready = False
        if not ready:
            self.process.kill()
            raise SystemExit("The first cases hang or end the process: seeds -1 to -3 of each kind.")

    def run(self, kind: str, seed: int) -> Measured:
        """One case, which may neither hang nor end the process."""
        started = time.perf_counter()
        try:
            self.connection.send((kind, seed))
            if self.connection.poll(self.limit):
                measured: Measured = self.connection.recv()
                return measured
            failure = f"it took more than {self.limit:g} seconds"
        except (EOFError, OSError):
            self.process.join()
            failure = f"the process ended with {self.process.exitcode}"
        measured = Measured(Outcome(0, 0, 0, failure), time.perf_counter() - started, 0)
        self.process.kill()
        self.process.join()
        self._start()
        return measured

    def close(self) -> None:
        """Let the process remove what it has made, and end."""
        self.connection.send(None)
        self.process.join()


# -------------------------------------------------------------------------------------------------------------- account


@dataclass
class Account:
    """The cases of one kind so far."""

    cases: int = 0
    read: int = 0
    refused: int = 0
    failures: int = 0
    seconds: float = 0.0
    num_bytes: int = 0

    def add(self, measured: Measured) -> str:
        """Count a case, and say what is wrong with it, if anything is."""
        outcome = measured.outcome
        failure = outcome.failure
        if not failure and measured.num_bytes > BYTES_AT_LEAST + BYTES_PER_BYTE * outcome.bytes_given:
            failure = f"it took {measured.num_bytes:,} bytes of memory for {outcome.bytes_given:,} bytes of input"
        self.cases += 1
        self.read += outcome.num_read
        self.refused += outcome.num_refused
        self.failures += bool(failure)
        self.seconds = max(self.seconds, measured.seconds)
        self.num_bytes = max(self.num_bytes, measured.num_bytes)
        return failure


def table(accounts: dict[str, Account]) -> Iterator[str]:
    yield f"{'kind':10}{'cases':>8}{'read':>8}{'refused':>9}{'failures':>10}{'worst time':>12}{'worst memory':>14}"
    for kind, account in accounts.items():
        yield (
            f"{kind:10}{account.cases:8,}{account.read:8,}{account.refused:9,}{account.failures:10,}"
            f"{account.seconds:10.2f} s{account.num_bytes / 2**20:10.1f} MiB"
        )


def turns(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Kinds and seeds in turn, for as long or as many as asked."""
    kinds = list(dict.fromkeys(options.kind or KINDS))
    end = time.monotonic() + options.seconds if options.seconds is not None else None
    seed, left = options.seed, options.cases
    while True:
        for kind in kinds:
            if (end is not None and time.monotonic() >= end) or (left is not None and left <= 0):
                return
            yield kind, seed
            left = None if left is None else left - 1
        seed += 1


def keep(folder: Path, options: argparse.Namespace, kind: str, seed: int) -> str:
    """Keep the files of a case, if that was asked for."""
    if options.keep is None:
        return ""
    kept = options.keep / f"{kind}-{seed}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept, symlinks=True, ignore=_no_plain_files)
    return f"; its files are in {kept}"


def _no_plain_files(folder: str, names: list[str]) -> set[str]:
    """FIFOs, which would block, and files that only say that they are large."""
    found = {name: Path(folder) / name for name in names}
    return {
        name
        for name, path in found.items()
        if not path.is_symlink() and (path.is_fifo() or (path.is_file() and path.stat().st_size > 2**32))
    }


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Generated files and calls: read as they were written, or refused.")
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument("--seconds", type=float, help="how long to go on; 60 if nothing is said")
    how_long.add_argument("--cases", type=int, help="how many cases to run, of all kinds together")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first case; the next has one more")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="one kind only; may be repeated")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that a case may take")
    parser.add_argument("--keep", type=Path, help="a folder for the files of cases that fail")
    options = parser.parse_args(arguments)
    if options.seconds is None and options.cases is None:
        options.seconds = 60.0
    return options


def main() -> None:
    options = parsed()
    print(describe_machine(), flush=True)
    accounts: dict[str, Account] = {kind: Account() for kind in options.kind or KINDS}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "case"
        worker = Worker(folder, options.limit)
        for kind, seed in turns(options):
            failure = accounts[kind].add(worker.run(kind, seed))
            if failure:
                print(f"\n{kind}, seed {seed}: {failure.rstrip()}{keep(folder, options, kind, seed)}")
                print(f"  python benchmarks/fuzz.py --kind {kind} --seed {seed} --cases 1", flush=True)
        worker.close()
    print("\n" + "\n".join(table(accounts)))
    if any(account.failures for account in accounts.values()):
        sys.exit(1)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small cases: threads would only wait for each other
    main()
