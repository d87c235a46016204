"""`vgae evaluate` and `vgae plot`: how well a run does, in numbers and pictures."""

from pathlib import Path
from typing import Annotated

import typer

from vgae.cli.options import PICTURES, Json, RunFolder
from vgae.cli.summary import paper_scores, run_summary
from vgae.errors import InputError
from vgae.estimators.predict import FittedModel
from vgae.evaluation.calibration import equal_counts
from vgae.evaluation.evaluate import evaluate_split, score_held_out
from vgae.graph.split import HeldOut
from vgae.report.console import print_json, print_scores
from vgae.report.figures import (
    PROJECTIONS,
    latent_space,
    project,
    ranking_curves,
    reliability_curves,
    save_figure,
    training_curves,
)
from vgae.runs.files import read_run
from vgae.runs.run import Run
from vgae.screen import note, print_line


def evaluate(run_folder: RunFolder, as_json: Json = False) -> None:
    """Score a run, and say how far its probabilities are off."""
    run = read_run(run_folder)
    fitted = FittedModel(run)
    metrics = evaluate_split(fitted, run.split)
    raw, calibrated = fitted.reliability(_held_out(run_folder, run))
    errors = raw.expected_calibration_error, calibrated.expected_calibration_error
    if as_json:
        curve = {name: values.tolist() for name, values in vars(calibrated).items()}
        pairs = "test" if run.split.test else "validation, each half by a fit to the other"
        described = {"pairs": pairs, "error_raw": errors[0], "error_calibrated": errors[1], "curve": curve}
        print_json(run_summary(run_folder, run) | metrics | {"calibration": described})
        return
    print_scores(metrics, paper_scores(run))
    print_line(
        f"Expected calibration error at the graph's density: {errors[1]:.4f}; without calibration: {errors[0]:.4f}."
    )
    if not run.split.test:
        print_line("There are no test pairs: each half of the validation pairs was calibrated on the other half.")


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
    run = read_run(run_folder)
    path = out or run_folder / f"{kind}.png"
    if kind == "latent":
        points = project(run.latent["mean"].numpy(), projection, seed=run.config.seed)
        figure = latent_space(points, run.split.train.edges, run.split.train.labels)
    elif kind == "training":
        figure = training_curves(run.history)
    else:
        fitted = FittedModel(run)
        held_out = _held_out(run_folder, run)
        if kind == "ranking":
            figure = ranking_curves(*score_held_out(fitted, held_out))
        else:
            raw, calibrated = fitted.reliability(held_out, equal_counts)
            figure = reliability_curves({"σ(logit)": raw, "calibrated": calibrated})
    save_figure(figure, path)
    note(f"drew {path}")


def _held_out(folder: Path, run: Run) -> HeldOut:
    """The pairs that a run is judged by: its test pairs or, where it has none, its validation pairs."""
    held_out = run.split.test or run.split.val
    if not held_out:
        raise InputError(f"{folder}: this run has no held-out pairs to score.")
    return held_out
