"""What a stack could score on HeaRT, and what that would cost: its meta-model fitted to HeaRT's own non-links.

    as it is      the meta-model of vgae.Stack: fitted for all pairs, no option or row of it knows of HeaRT
    for HeaRT     the same evidence, and a meta-model fitted to links of the folds and the hard non-links that HeaRT's
                  rule picks for them in the graph without the fold

Both are asked for the MRR of test links among HeaRT's non-links, for the AUC on the paper's test pairs, and for the
precision at the top of the first stage. A rule that picks the pairs which heuristics put first can be learned: where
the second is far better on HeaRT and worse elsewhere, it knows the rule, not the links.

    python benchmarks/heart.py GRAPH ... [--splits 1] [--links 300] [--bases NAME,NAME] [--device auto]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import vgae
from vgae.evaluation.all_pairs import Candidates
from vgae.evaluation.heart import heart_negatives
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit
from vgae.machine import describe_machine
from vgae.stack.bases import fit_bases
from vgae.stack.blend import Rows, fit_blend
from vgae.stack.config import StackConfig
from vgae.stack.fit import fit_stack
from vgae.stack.meta import SMALLER
from vgae.stack.scorer import FittedStack
from vgae.stack.strata import fold_links

TOP = (100, 1000)
PER_LINK = 100  # hard non-links of each link of a fold, of 500


def main() -> None:
    parser = argparse.ArgumentParser(description="A stack's meta-model for all pairs, and one for HeaRT alone.")
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--links", type=int, default=300, help="links to learn from, and test links to rank, at most")
    parser.add_argument("--bases", default=StackConfig().bases)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    print(describe_machine())
    for name in options.graphs:
        found: dict[str, list[dict[str, float]]] = {"as it is": [], "for HeaRT": []}
        for seed in range(options.splits):
            split = vgae.split_links(vgae.load_dataset(name), seed=seed)
            config = StackConfig(bases=options.bases, seed=seed, device=options.device)
            for title, scores in both(split, config, options.links).items():
                found[title].append(scores)
        means = {
            title: {key: float(np.mean([each[key] for each in scores])) for key in scores[0]}
            for title, scores in found.items()
        }
        print(f"\n{name}, {options.splits} splits" + "".join(f"{key:>16}" for key in means["as it is"]))
        for title, scores in means.items():
            print(f"{title:20}" + "".join(f"{100 * value:16.2f}" for value in scores.values()))
        ratios = [means["for HeaRT"][key] / max(value, 1e-9) for key, value in means["as it is"].items()]
        print(f"{'ratio':20}" + "".join(f"{ratio:16.3f}" for ratio in ratios), flush=True)


def both(split: LinkSplit, config: StackConfig, num_links: int) -> dict[str, dict[str, float]]:
    """The scores of both meta-models over the same bases."""
    stack = fit_stack(split.train, config)
    smooth = replace(config.meta, leaf_rows=100, **SMALLER)  # there are fewer rows than a second look has
    hard = fit_blend(hard_rows(split.train, config, num_links), smooth, config.seed, tree_balance=0.0)
    asked = Asked.of(stack, split, num_links)
    return {"as it is": asked.scores(stack.meta.log_odds), "for HeaRT": asked.scores(hard.log_odds)}


def hard_rows(graph: Graph, config: StackConfig, num_links: int) -> Rows:
    """Links of all folds and hard non-links of each, described by bases that saw neither."""
    known, generator = config.view(graph), np.random.default_rng(config.seed)
    bases, folds = config.bases_for(known), fold_links(known, config.folds, config.seed)
    links, non_links = [], []
    for fold in range(config.folds):
        members = known.edges[folds == fold]
        seen = known.with_links(known.edges[folds != fold])
        chosen = members[generator.permutation(len(members))[: num_links // config.folds]]
        fitted = fit_bases(seen, bases, config.base_seeds)
        negatives = heart_negatives(seen, chosen, known=members)
        negatives = negatives[:, generator.permutation(negatives.shape[1])[:PER_LINK]].reshape(-1, 2)
        links.append(fitted.describe(chosen))
        non_links.append(fitted.describe(negatives[negatives[:, 0] >= 0]))
    evidence = np.concatenate([*links, *non_links])
    labels = np.arange(len(evidence)) < sum(map(len, links))
    return Rows(evidence, labels.astype(np.float64), np.ones(len(evidence)))


@dataclass(frozen=True, eq=False)
class Asked:
    """Evidence about everything that is asked: test links and their hard non-links, test pairs, the first stage."""

    links: np.ndarray
    negatives: np.ndarray  # links × non-links × columns
    test: np.ndarray
    is_link: np.ndarray
    listed: np.ndarray
    is_hit: np.ndarray

    @classmethod
    def of(cls, stack: FittedStack, split: LinkSplit, num_links: int) -> "Asked":
        """Described by the bases of a stack, which know the training graph."""
        describe, known = stack.bases.describe, np.concatenate([split.train.links, split.val.links])
        chosen = split.test.links[np.random.default_rng(0).permutation(len(split.test.links))[:num_links]]
        negatives = heart_negatives(split.train, chosen, known=split.val.links)  # none is missing in these graphs
        listed, numbering = stack.shortlist(Candidates.of(split.train, known)), split.train.all_pairs
        return cls(
            links=describe(chosen),
            negatives=describe(negatives.reshape(-1, 2)).reshape(*negatives.shape[:2], -1),
            test=describe(split.test.pairs),
            is_link=split.test.labels,
            listed=describe(listed),
            is_hit=np.isin(numbering.ranks(listed), numbering.ranks(split.test.links)),
        )

    def scores(self, log_odds: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        """MRR among hard non-links, AUC among random ones, and precision at the top of the list."""
        num, size, columns = self.negatives.shape
        own, others = log_odds(self.links), log_odds(self.negatives.reshape(-1, columns)).reshape(num, size)
        higher, equal = others > own[:, None], others == own[:, None]
        of_test, best = log_odds(self.test), np.argsort(-log_odds(self.listed), kind="stable")
        return {
            "HeaRT MRR": float((1 / (1 + higher.sum(axis=1) + equal.sum(axis=1) / 2)).mean()),
            "AUC": auc_and_ap(of_test[self.is_link], of_test[~self.is_link])["auc"],
            **{f"precision@{k}": float(self.is_hit[best[:k]].mean()) for k in TOP},
        }


if __name__ == "__main__":
    main()
