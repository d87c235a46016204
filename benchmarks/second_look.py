"""The second look of a stack beside what it was in version 0.1, on the same evidence.

    before   the regression of the second look bends at six knots in each column, and beside it there is a third model,
             fitted to rows in which a non-link counts as a link by the chance that it is one which nobody has found
             (Elkan and Noto 2008); their log odds are averaged
    once     one model, whose regression is straight in each column, and whose trees are grown once
    now      the same with the mean of trees that are grown four times

The bases are fitted once on each split, so that nothing but the meta-model differs. Test links are among the non-links
of all. With `--seeds` the last two are fitted with so many seeds, and the least that any of them scored stands beside
their means. The last lines are the best of the columns alone, and the ratio of now to before.

    python benchmarks/second_look.py GRAPH ... [--splits 0 1] [--seeds 4] [--bases NAME,NAME] [--features FILE]
                                               [--device auto]

GRAPH is a dataset or a file.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import vgae
from vgae.evaluation.all_pairs import Candidates
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.split import LinkSplit
from vgae.io.catalog import DATASETS
from vgae.machine import describe_machine
from vgae.stack import fit as fitting
from vgae.stack.blend import Rows, calibrated, fit_blend
from vgae.stack.config import StackConfig
from vgae.stack.logistic import sigmoid
from vgae.stack.meta import MetaModel, fit_meta, stiffer
from vgae.stack.options import MetaOptions

TOP = (100, 1000)
BENT = MetaOptions(num_trees=60, num_leaves=8, leaf_rows=300)
HIDDEN, SUREST, HIGHEST = 0.5, 0.995, 500  # share of links that nobody has found; surest of them; rows that say more

Scores = dict[str, dict[str, float]]  # by scorer, by metric


def main() -> None:
    parser = argparse.ArgumentParser(description="The second look of a stack, and what it was.")
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--splits", type=int, nargs="+", default=[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--bases", default=StackConfig().bases)
    parser.add_argument("--features", default=None, help="of the nodes of a file")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    print(describe_machine())
    for name in options.graphs:
        graph = vgae.load_dataset(name) if name in DATASETS else vgae.read_graph(name, features=options.features)
        found = []
        for seed in options.splits:
            config = StackConfig(bases=options.bases, seed=seed, device=options.device)
            found.append(scores(vgae.split_links(graph, seed=seed), config, options.seeds))
        report(f"{Path(name).stem}, {len(found)} splits", found)


def scores(split: LinkSplit, config: StackConfig, num_seeds: int) -> Scores:
    """Those of all meta-models and of each column alone."""
    given: list[Any] = []

    def watched(*arguments: Any, **options: Any) -> MetaModel:
        given.extend(arguments[:3])
        return fit_meta(*arguments, **options)

    with patch.object(fitting, "fit_meta", watched):
        stack = fitting.fit_stack(split.train, config)
    x, y, weights = given
    rows = Rows(np.asarray(x, np.float32), np.asarray(y, np.float64), np.asarray(weights, np.float64))
    known = np.concatenate([split.train.links, split.val.links])
    listed, numbering = stack.shortlist(Candidates.of(split.train, known)), split.train.all_pairs
    is_hit = np.isin(numbering.ranks(listed), numbering.ranks(split.test.links))
    on_list, on_test = (stack.bases.describe(pairs) for pairs in (listed, split.test.pairs))
    models = {"before": [as_it_was(stack.meta, rows, config.seed)], "once": [], "now": []}
    for seed in range(num_seeds):
        models["once"].append(straight(stack.meta, rows, seed, num_boosted=1))
        models["now"].append(straight(stack.meta, rows, seed))
    asked = {
        title: [[meta.log_odds(on_list), meta.log_odds(on_test)] for meta in fitted] for title, fitted in models.items()
    }
    for place, column in enumerate(stack.bases.columns):
        asked[column] = [[np.nan_to_num(each[:, place], nan=-1e30) for each in (on_list, on_test)]]
    labels, found = split.test.labels, {}
    for title, answers in asked.items():
        each = [auc_and_ap(test[labels], test[~labels]) | precision(top, is_hit) for top, test in answers]
        found[title] = {metric: float(np.mean([values[metric] for values in each])) for metric in each[0]}
        if len(each) > 1:
            found[f"{title}, least"] = {metric: min(values[metric] for values in each) for metric in each[0]}
    return found


def precision(values: np.ndarray, is_hit: np.ndarray) -> dict[str, float]:
    """Test links among the best K; of equal scores the first."""
    best = np.argsort(-values.astype(np.float32), kind="stable")
    return {f"precision@{k}": float(is_hit[best[:k]].mean()) for k in TOP}


def straight(meta: MetaModel, rows: Rows, seed: int, **changes: Any) -> MetaModel:
    """The same first model, and the second look of now with other options."""
    if not meta.second:
        return meta
    best = rows[meta.first.log_odds(rows.x) >= meta.threshold]
    return replace(meta, second=(fit_blend(best, replace(stiffer(MetaOptions()), **changes), seed, tree_balance=0.0),))


def as_it_was(meta: MetaModel, rows: Rows, seed: int) -> MetaModel:
    """The same first model, and the second look of version 0.1."""
    if not meta.second:
        return meta
    best = rows[meta.first.log_odds(rows.x) >= meta.threshold]
    models = [fit_blend(each, BENT, seed, tree_balance=0.0) for each in (best, with_hidden(best, seed))]
    both = np.mean([model.log_odds(best.x) for model in models], axis=0)
    scale_and_shift = calibrated(both, best)
    return replace(meta, second=tuple(model.scaled(*scale_and_shift) for model in models))


def with_hidden(rows: Rows, seed: int) -> Rows:
    """The same rows, of whose non-links each counts as a link by the chance that it is one which nobody has found."""
    half, log_odds = np.random.default_rng(seed).permutation(len(rows.y)) % 2 == 0, np.empty(len(rows.y))
    for part in (half, ~half):  # each half by a model of the other
        log_odds[part] = fit_blend(rows[~part], BENT, seed, tree_balance=0.0).log_odds(rows.x[part])
    top = np.argsort(-log_odds, kind="stable")[:HIGHEST]
    share = float(np.average(rows.y[top], weights=rows.weights[top]))
    known = max(1 - HIDDEN, share - 2 * float(np.sqrt(share * (1 - share) / len(top))))
    is_link, others = rows.y == 1, rows[rows.y == 0]
    labelled = np.minimum(sigmoid(log_odds[~is_link]), known * SUREST)
    hidden = (1 - known) / known * labelled / (1 - labelled)
    as_links = replace(others, y=np.ones(len(hidden)), weights=others.weights * hidden)
    return Rows.joined([rows[is_link], as_links, replace(others, weights=others.weights * (1 - hidden))])


def report(title: str, found: list[Scores]) -> None:
    """Means over the splits."""
    means = {
        name: {metric: 100 * float(np.mean([each[name][metric] for each in found])) for metric in found[0]["now"]}
        for name in found[0]
    }
    metrics = list(means["now"])
    fitted = [name for name in means if name.partition(",")[0] in ("before", "once", "now")]
    columns = [name for name in means if name not in fitted]
    best = {metric: max(columns, key=lambda name: means[name][metric]) for metric in metrics}
    print(f"\n{title:24}" + "".join(f"{metric:>24}" for metric in metrics))
    for name in fitted:
        print(f"{name:24}" + "".join(f"{means[name][metric]:24.2f}" for metric in metrics))
    shown = [f"{best[metric]} {means[best[metric]][metric]:.2f}" for metric in metrics]
    print(f"{'best column':24}" + "".join(f"{each:>24}" for each in shown))
    ratios = [means["now"][metric] / means["before"][metric] for metric in metrics]
    print(f"{'now / before':24}" + "".join(f"{ratio:24.3f}" for ratio in ratios), flush=True)


if __name__ == "__main__":
    main()
