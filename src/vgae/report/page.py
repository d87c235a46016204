"""The page about the paper's reproduction: made from stored results, so that its figures are always those of runs."""

from collections.abc import Sequence
from pathlib import Path

from vgae.experiments.paper import TABLE_1
from vgae.experiments.reproduce import summarise
from vgae.experiments.results import Archive
from vgae.report.tables import to_markdown

NEAR = 1.5  # points below the paper that one split may differ from another

HEAD = """# The paper's results, run again

Test AUC and AP in percent, mean ± standard error, beside the figures of Kipf & Welling (2016), Table 1. The protocol is
theirs: 85/5/10 split of the links, 200 iterations of Adam at 0.01, hidden 32, latent 16, raw features, the exact
re-weighted loss over all N² pairs, the last iteration, scores of the posterior mean. A star marks models without
features. Run i has seed i; every run has one thread to itself. This page is written by `vgae report`.
"""

DIFFERENCES = """## Where we differ from the paper, and why

- **The split was never published**, nor was a seed. From split to split the same model moves by two to four points;
  ten initialisations on one split have small standard errors and say little about the next split. The table over ten
  splits is the one to compare with.
- **Links to nodes without links.** The split may leave a node without any training link: on Citeseer about three test
  links in ten have such an end, on Cora one in ten. Without features nothing is known about such a node, and where a
  method puts it decides the score: DeepWalk's AUC on Citeseer is near 90 on test pairs whose ends both have training
  links, and 80 on all of them.
- **SC** is scikit-learn's spectral embedding. Training graphs fall apart into hundreds of components, and each
  component beyond the first takes one of the 128 dimensions for its own outline: as it comes, the method has an AUC of
  67 on Citeseer's first split. So we add one node that is linked to all others with weight 0.1. The weight matters: on
  Pubmed's first split, 0.03, 0.1, 0.3 and 1 give an AP of 83.1, 84.8, 86.6 and 86.6, and on Cora's an AUC of 87.5,
  87.1, 84.5 and 81.6. 0.1 makes the strongest baseline over the three datasets, 0.3 comes closest to the paper, which
  does not say how it treated components: hence an SC above the paper on Citeseer and an AP below it on Pubmed.
  Components of one shape have the same eigenvalues, and the solver does not find all of their eigenvectors: on Cora's
  first split, with three seeds, it returned 93 to 111 of the 128 lowest and others in the place of the rest. Which ones
  is up to the seed and to rounding, so that SC differs from seed to seed there, and from machine to machine; on Pubmed
  it does not.
- **DW** is gensim's skip-gram with five negatives on walks of the training graph, one epoch. The paper's figures are
  those of negatives: with hierarchical softmax the AP on Cora would be three points higher than the paper's and the
  AUC on Citeseer two points lower. A node without links stays where it is for a whole walk; if such walks were cut
  to their first node, as some implementations do, the AUC on Citeseer would be 15 points lower.
"""


def results_page(archives: Sequence[Archive], figure: Path | None = None) -> str:
    """The page, in Markdown."""
    parts = [HEAD, *(_section(archive) for archive in archives)]
    if figure is not None:
        parts.append(
            f"## Figure 1\n\n![The latent space of a VGAE on Cora]({figure.as_posix()})\n\n"
            "The latent space of an unsupervised VGAE on Cora (16 dimensions, brought to two by t-SNE): citation links "
            "in grey, colours by class. The model never sees the classes. By `vgae reproduce`; `--figure pca` and "
            "`--figure 2d` (a latent space of two dimensions, shown as it is) are other views.\n"
        )
    return "\n".join([*parts, DIFFERENCES])


def _section(archive: Archive) -> str:
    runs = max(result.task.seed for result in archive.results) + 1
    kind = f"{runs} splits" if archive.splits >= runs else f"{runs} initialisations on {_splits(archive.splits)}"
    option = "" if archive.splits == 1 else f" --splits {archive.splits}"
    core_minutes = sum(result.seconds for result in archive.results) / 60
    made = f"Made by `vgae reproduce --runs {runs}{option}`: {len(archive.results)} runs, {core_minutes:.0f} minutes of"
    sessions = [
        f"- {session.num_runs} runs in {session.seconds / 60:.1f} minutes on {session.machine}"
        for session in archive.sessions
    ]
    table = to_markdown(summarise(archive.results))
    return (
        f"## {kind.capitalize()}\n\n{table}\n{_shortfalls(archive)}\n\n{made} one core.\n\n"
        + "\n".join(sessions)
        + "\n"
    )


def _splits(number: int) -> str:
    return "one split" if number == 1 else f"{number} splits"


def _shortfalls(archive: Archive) -> str:
    """Which figures are further below the paper than one split from the next."""
    below = [
        f"{method} on {dataset.title()} ({measure} {ours - paper:+.1f})"
        for dataset, cells in summarise(archive.results).items()
        for method, cell in cells.items()
        for measure, ours, paper in zip(("AUC", "AP"), (cell.auc, cell.ap), TABLE_1[dataset][method], strict=True)
        if ours < paper - NEAR
    ]
    if not below:
        return f"No figure is more than {NEAR} points below the paper's."
    return f"More than {NEAR} points below the paper: {', '.join(below)}; every other figure is nearer or above."
