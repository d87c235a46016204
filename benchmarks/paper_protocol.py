"""The paper's protocol: 200 iterations, hidden 32, latent 16, learning rate 0.01, raw features, last iteration.

Run i has seed i and split i. Prints the mean test AUC / AP in percent with its standard error beside the paper's
figures.

    python benchmarks/paper_protocol.py --runs 10
    python benchmarks/paper_protocol.py --dataset cora --model VGAE --model GAE
"""

import argparse
import statistics

import vgae
from vgae.estimator import ESTIMATORS
from vgae.experiments.paper import TABLE_1, paper_result
from vgae.machine import describe_machine

METHODS = ("GAE*", "VGAE*", "GAE", "VGAE")


def run(graph: vgae.Graph, method: str, seed: int, objective: str) -> tuple[float, float, float]:
    split = vgae.split_links(graph, seed=seed)
    estimator = ESTIMATORS[method.lower().rstrip("*")]
    model = estimator(features=not method.endswith("*"), seed=seed, objective=objective, eval_every=200)
    scores = model.fit(split.train).score(split.test)
    return 100 * scores["auc"], 100 * scores["ap"], model.seconds_


def summary(values: list[float]) -> str:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{statistics.mean(values):6.2f} ± {error:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", action="append", choices=list(TABLE_1))
    parser.add_argument("--model", action="append", choices=METHODS)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--objective", default="exact", choices=("exact", "sampled"))
    options = parser.parse_args()
    print(describe_machine())
    print(f"{options.runs} runs, {options.objective} objective, run i with seed i on split i")
    print(f"{'':16} {'AUC':>13} {'AP':>13}   paper AUC / AP   seconds a run")
    for dataset in options.dataset or list(TABLE_1):
        graph = vgae.load_dataset(dataset)
        for method in options.model or METHODS:
            results = [run(graph, method, seed, options.objective) for seed in range(options.runs)]
            auc, ap, seconds = (list(column) for column in zip(*results, strict=True))
            paper = paper_result(dataset, method.rstrip("*"), features=not method.endswith("*"))
            beside = "     –" if paper is None else f"{paper[0]:.1f} / {paper[1]:.1f}"
            row = f"{dataset + ' ' + method:16} {summary(auc)} {summary(ap)}      {beside}"
            print(f"{row}       {statistics.median(seconds):8.1f}", flush=True)


if __name__ == "__main__":
    main()
