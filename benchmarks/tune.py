"""A search that is killed twice, and what it is worth on fresh splits.

`vgae tune` searches on the validation links of one split; it is killed with SIGKILL after a quarter and after half of
the trials, and resumed. The configuration that it ends with is then trained on splits that the search has not seen, and
scored on their test links beside the preset `paper`.

    python benchmarks/tune.py [--dataset cora] [--trials 50] [--splits 10] [--first-split 100] [--workers 2]
        [--out runs/cora-tune]

Other options, such as --objective sampled, are passed on to `vgae tune`.
"""

from __future__ import annotations

import argparse
import re
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from vgae.evaluation.evaluate import evaluate
from vgae.graph.split import split_links
from vgae.io.datasets import load_dataset
from vgae.runs.config_file import read_config
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.workers import results_of

FIRST_SPLIT = 100  # the search is on split 0
ENDED = re.compile(r'"op_code":6,.*"state":[12],')  # complete or pruned, as Optuna writes it
SHARES = (0.25, 0.5)  # of the trials, after which the search is killed


@dataclass(frozen=True)
class Task:
    dataset: str
    name: str
    config: Config
    split: int


def score(task: Task) -> tuple[Task, dict[str, float]]:
    """Test AUC and AP of a configuration on a split."""
    torch.set_num_threads(1)
    split = split_links(load_dataset(task.dataset), seed=task.split)
    return task, evaluate(train(Job.of(split.train, task.config, split.val)), split.test)


def finished(folder: Path) -> int:
    """How many trials of a search have come to an end."""
    journal = folder / "trials.journal"
    return len(ENDED.findall(journal.read_text())) if journal.exists() else 0


def search(options: argparse.Namespace, others: list[str]) -> None:
    """Search, killed on the way and resumed."""
    given = ["tune", options.dataset, "--trials", str(options.trials), "--workers", str(options.workers)]
    command = [sys.executable, "-m", "vgae", *given, "--out", str(options.out), *others]
    for share in SHARES:
        with subprocess.Popen([*command, "--resume"]) as process:  # noqa: S603 - our own command
            while process.poll() is None and finished(options.out) < share * options.trials:
                time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
        print(f"killed after {finished(options.out)} trials")
    subprocess.run([*command, "--resume"], check=True)  # noqa: S603 - our own command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first-split", type=int, default=FIRST_SPLIT)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/cora-tune"))
    options, others = parser.parse_known_args()
    load_dataset(options.dataset)
    started = time.perf_counter()
    search(options, others)
    print(f"searched in {time.perf_counter() - started:.0f} s, the trials that were lost among it")
    rows = (options.out / "trials.csv").read_text().splitlines()[1:]
    numbers = [int(row.split(",")[0]) for row in rows]
    assert numbers == list(range(options.trials)), numbers  # noqa: S101 - each trial counts once

    configs = {"paper": Config(), "found": Config(**read_config(options.out / "best.json"))}
    splits = range(options.first_split, options.first_split + options.splits)
    tasks = [Task(options.dataset, name, config, split) for split in splits for name, config in configs.items()]
    scores: dict[str, dict[int, dict[str, float]]] = {name: {} for name in configs}
    for task, found in results_of(score, tasks, num_workers=options.workers):
        scores[task.name][task.split] = found
    print(f"{options.dataset}, test links of splits {splits[0]} to {splits[-1]}:")
    for name in configs:
        print(f"  {name:6}  " + "  ".join(f"{metric.upper()} {cell(scores[name], metric)}" for metric in ("auc", "ap")))
    for metric in ("auc", "ap"):
        gains = [100 * (scores["found"][split][metric] - scores["paper"][split][metric]) for split in splits]
        least = min(gains)
        print(f"  {metric.upper()}: {statistics.fmean(gains):+.2f} points, on the least of the splits {least:+.2f}")


def cell(scores: dict[int, dict[str, float]], metric: str) -> str:
    """Mean and standard error, in percent."""
    values = [100 * each[metric] for each in scores.values()]
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{statistics.fmean(values):.2f} ± {error:.2f}"


if __name__ == "__main__":
    main()
