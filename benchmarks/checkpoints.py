"""What checkpoints cost at default settings: the same training with and without them, round by round in turn.

A VGAE without features, which has the most weights, on a block-model graph of Pubmed's size, long enough that some
checkpoints are in fact written. Reported are the ratio of the medians, and the share of the time that was spent on
writing, which is steadier: rounds differ by more than checkpoints cost.

    python benchmarks/checkpoints.py [--nodes 19717] [--seconds 60] [--rounds 3] [--objective sampled] [--folder DIR]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import vgae
from vgae.machine import describe_machine
from vgae.runs.checkpoint import FolderCheckpointer, saved_iteration
from vgae.runs.fingerprint import Fingerprint
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

TARGET = 1.02  # most that a training with checkpoints may take, in times of one without


def seconds_without(split: vgae.LinkSplit, config: Config) -> float:
    return train(Job.of(split.train, config, split.val)).seconds


def seconds_with(split: vgae.LinkSplit, config: Config, folder: Path) -> tuple[float, float, int]:
    """Of the training, of the writing in it, and the last iteration that was saved."""
    job = Job.of(split.train, config, split.val)
    with FolderCheckpointer(folder, Fingerprint.of(job)) as checkpointer:
        seconds = train(job, checkpointer=checkpointer).seconds
    return seconds, checkpointer.schedule.spent, saved_iteration(folder) or 0


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of checkpoints.")
    parser.add_argument("--nodes", type=int, default=19_717)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each training, about")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--objective", default="sampled")
    parser.add_argument("--folder", type=Path, help="where to write  [default: a temporary folder]")
    options = parser.parse_args()
    print(describe_machine())
    split = vgae.split_links(vgae.stochastic_block_model(options.nodes, 3))
    config = Config(objective=options.objective)
    short = replace(config, iterations=20)
    seconds_without(split, short)  # warms up
    config = replace(config, iterations=max(1, round(20 * options.seconds / seconds_without(split, short))))
    without, with_checkpoints, shares = [], [], []
    for turn in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            without.append(seconds_without(split, config))
            taken, writing, saved = seconds_with(split, config, Path(folder))
        with_checkpoints.append(taken)
        shares.append(writing / taken)
        text = f"{without[-1]:.1f} s without, {taken:.1f} s with checkpoints, {1000 * writing:.0f} ms of it writing"
        print(f"round {turn + 1}: {text}, the last after iteration {saved} of {config.iterations}", flush=True)
    print(f"\n{split.train}, {options.objective}, {config.iterations} iterations")
    ratio = statistics.median(with_checkpoints) / statistics.median(without)
    print(f"  with checkpoints {ratio:.3f}× the time without   (target ≤ {TARGET}×)")
    print(f"  {100 * statistics.median(shares):.3f}% of the time spent on writing")


if __name__ == "__main__":
    main()
