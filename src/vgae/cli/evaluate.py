"""`vgae evaluate` and `vgae plot`: how well a run does, in numbers and pictures."""

from pathlib import Path
from typing import Annotated, Any

import typer

from vgae.cli.options import PICTURES, Json, RunFolder
from vgae.cli.protocols import LabelOptions, ProtocolOptions, judge_otherwise
from vgae.cli.stack import linked_scores, print_linked
from vgae.cli.summary import AnyRun, paper_scores, run_summary
from vgae.errors import InputError
from vgae.estimators.baseline import fitted_of
from vgae.estimators.links import LinkPredictor
from vgae.estimators.stacked import StackPredictor
from vgae.evaluation.all_pairs import MOST_RANKED
from vgae.evaluation.evaluate import evaluate_split, score_held_out
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut
from vgae.report.collapse import active_words, collapse_sentence
from vgae.report.console import print_json, print_scores
from vgae.report.evaluation import print_reliability, print_top, reliability_json
from vgae.report.figures import (
    PROJECTIONS,
    latent_space,
    project,
    ranking_curves,
    reliability_curves,
    save_figure,
    training_curves,
)
from vgae.runs.baseline_run import BaselineRun
from vgae.runs.files import read_any_run, read_run
from vgae.runs.run import Run
from vgae.runs.stack_run import StackRun
from vgae.screen import note, print_line
from vgae.words import count


def evaluate(run_folder: RunFolder, protocol: ProtocolOptions, labels: LabelOptions, as_json: Json = False) -> None:
    """Score a run on its held-out pairs and among all pairs, and say how far its probabilities hold."""
    run = read_any_run(run_folder)
    fitted = fitted_of(run)
    if protocol.is_other or labels.labels is not None:
        judge_otherwise(fitted, run_summary(run_folder, run), protocol, labels, as_json=as_json)
        return
    held_out = _held_out(run_folder, run)
    what = "the test links" if run.split.test else "the validation links, each half by a fit to the other"
    metrics = evaluate_split(fitted, run.split)
    linked = linked_scores(run) if isinstance(run, StackRun) else {}
    ranked = _ranked(fitted, held_out.links)
    if isinstance(run, BaselineRun) and not fitted.calibration().is_fitted:
        _print_uncalibrated(run_folder, run, metrics, ranked, as_json)
        return
    raw, calibrated = fitted.reliability(held_out)
    if as_json:
        judged = {
            "is_fitted": fitted.calibration().is_fitted,
            "judged_by": what,
            "error": calibrated.error,
            "error_raw": raw.error,
            "bins": reliability_json(calibrated),
        }
        key = "test" if run.split.test else "validation"
        metrics[key] |= linked | ranked
        print_json(run_summary(run_folder, run) | metrics | {"calibration": judged})
        return
    print_scores(metrics, paper_scores(run))
    if isinstance(run, StackRun):
        print_linked(run, linked)
    if isinstance(run, Run):
        print_line(collapse_sentence(run) or f"{active_words(run)}: nodes differ in them by more than noise.")
    print_top(ranked, "Test links" if run.split.test else "Validation links", len(held_out.links))
    print_reliability(calibrated, what)
    if not fitted.calibration().is_fitted:
        only = "the meta-model's log odds are taken" if isinstance(run, StackRun) else "the loss's weight is taken back"
        print_line(f"Not calibrated: there were no validation links to fit to, so only {only}.")
    elif fitted.calibration().is_rough:
        print_line(
            f"Probabilities are rough: there were only {count(fitted.calibration().num_links, 'validation link')}."
        )


def _ranked(fitted: LinkPredictor, links: Pairs) -> dict[str, float]:
    """The ranking of all pairs, unless that would take hours."""
    num_pairs = fitted.graph_.num_candidate_pairs
    if num_pairs > MOST_RANKED and not isinstance(fitted, StackPredictor):
        note(
            f"precision@K is left out: there are {num_pairs:,} pairs; model.evaluate in Python ranks them all, in hours"
        )
        return {}
    return fitted.rank_all_pairs(links)


def _print_uncalibrated(
    folder: Path, run: BaselineRun, metrics: dict[str, dict[str, float]], ranked: dict[str, float], as_json: bool
) -> None:
    """The scores of a baseline whose probabilities are undefined; they were held out for testing, or there are none."""
    if as_json:
        metrics["test"] |= ranked
        print_json(run_summary(folder, run) | metrics | {"calibration": None})
        return
    print_scores(metrics, paper_scores(run))
    print_top(ranked, "Test links", len(run.split.test.links))
    print_line("Probabilities are undefined: there were no validation links to calibrate the baseline's scores by.")


def plot(
    run_folder: RunFolder,
    kind: Annotated[str, typer.Option(help=f"{', '.join(PICTURES)}.")] = "latent",
    projection: Annotated[
        str, typer.Option(help=f"{' or '.join(PROJECTIONS)}: how the latent space is brought to two dimensions.")
    ] = PROJECTIONS[0],
    out: Annotated[Path | None, typer.Option(help="png, svg or pdf.  [default: RUN/KIND.png]")] = None,
) -> None:
    """Draw one picture of a run."""
    if kind not in PICTURES:
        raise InputError(f"kind: {kind!r} is not one of {', '.join(PICTURES)}.")
    run = read_any_run(run_folder)
    path = out or run_folder / f"{kind}.png"
    if isinstance(run, BaselineRun):
        run = read_run(run_folder)  # which says what it is
    if isinstance(run, StackRun):
        if kind not in ("ranking", "reliability"):
            raise InputError(f"{run_folder}: a stack has no picture of the kind {kind}; use ranking or reliability.")
        figure = _judged(run_folder, run, kind)
    elif kind == "latent":
        points = project(run.embeddings.numpy(), projection, seed=run.config.seed)
        figure = latent_space(points, run.split.train.edges, run.split.train.labels)
    elif kind == "training":
        figure = training_curves(run.history)
    else:
        figure = _judged(run_folder, run, kind)
    save_figure(figure, path)
    note(f"drew {path}")


def _judged(folder: Path, run: Run | StackRun, kind: str) -> Any:
    """A picture of how well held-out links are ranked, or of how far probabilities hold."""
    fitted, held_out = fitted_of(run), _held_out(folder, run)
    if kind == "ranking":
        return ranking_curves(*score_held_out(fitted, held_out))
    raw, calibrated = fitted.reliability(held_out)
    return reliability_curves({"σ(logit)": raw, "calibrated": calibrated})


def _held_out(folder: Path, run: AnyRun) -> HeldOut:
    """The pairs that a run is judged by: its test pairs or, where it has none, its validation pairs."""
    held_out = run.split.test or run.split.val
    if not held_out:
        raise InputError(f"{folder}: this run has no held-out pairs to score.")
    return held_out
