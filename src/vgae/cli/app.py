"""The command: parsing and printing only.

Results go to standard output, everything else to standard error; with `--json`, one object on standard output and
nothing else there. How the command ends is told in vgae.cli.exits.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vgae.baselines import BASELINES
from vgae.cli.exits import INTERRUPTED, exit_code_of
from vgae.errors import InputError, StoppedError
from vgae.estimators.base import ESTIMATORS, GAE, VGAE
from vgae.estimators.predict import Links
from vgae.evaluation.calibration import equal_counts
from vgae.evaluation.evaluate import evaluate_split, score_held_out
from vgae.experiments.paper import paper_result
from vgae.experiments.reproduce import DATASETS as DATASETS_OF_PAPER
from vgae.experiments.reproduce import METHODS, Archive, Result, Store, Task, embed_cora, plan, reproduce, summarise
from vgae.graph.graph import Graph
from vgae.graph.split import TEST_FRACTION, VAL_FRACTION, HeldOut, split_links
from vgae.io.datasets import DATASETS, cache_path, load_dataset
from vgae.io.embeddings import write_embeddings
from vgae.io.exports import without_formulas, write_csv, write_text
from vgae.io.extend import read_more
from vgae.io.json_files import write_json
from vgae.io.recipe import FeatureRecipe
from vgae.io.tables import LoadedGraph, read_any, read_pairs
from vgae.machine import describe_machine
from vgae.objective.cost import duration
from vgae.report.console import print_json, print_scores, print_table, print_table_1, progress_console, table_1
from vgae.report.figures import (
    PROJECTIONS,
    latent_space,
    project,
    ranking_curves,
    reliability_curves,
    save_figure,
    training_curves,
)
from vgae.report.page import results_page
from vgae.report.tables import to_latex, to_markdown
from vgae.runs.checkpoint import has_checkpoint, kept_iteration
from vgae.runs.folder import Stage, finished_run, new_run_folder, require_same_run, stage_of
from vgae.runs.run import CHECKPOINT, CONFIG, Run, read_run
from vgae.screen import note, prepare_streams, shell_line, tell, visible
from vgae.train.config import Config, choose_device
from vgae.train.plan import plan_training
from vgae.version import __version__

DEFAULTS = Config()
KINDS = ("latent", "training", "ranking", "reliability")
FIGURES = (*PROJECTIONS, "2d", "none")
PATIENCE = 600.0  # seconds that a finished run waits for room on the disk

app = typer.Typer(
    name="vgae",
    help="Graph auto-encoders: node embeddings and link prediction. With --debug, an error shows its traceback.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text, in which [default: …] is not taken for markup
    context_settings={"help_option_names": ["-h", "--help"]},
)

GraphName = Annotated[
    str,
    typer.Argument(metavar="GRAPH", help="cora, citeseer, pubmed, or a file: csv, tsv, txt, parquet, graphml, npz."),
]
Model = Annotated[str, typer.Option(help="gae or vgae.")]
NoFeatures = Annotated[bool, typer.Option("--no-features", help="Leave the features out (the paper's GAE*, VGAE*).")]
HiddenDim = Annotated[int, typer.Option(help="Width of the hidden layer.")]
LatentDim = Annotated[int, typer.Option(help="Dimensions of the embedding.")]
Iterations = Annotated[int, typer.Option(help="Full-batch training steps.")]
NumNegatives = Annotated[int | None, typer.Option(help="Zeros per step of the sampled objective.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Precision = Annotated[str, typer.Option(help="Of the exact objective on a GPU: high or highest.")]
SplitSeed = Annotated[int, typer.Option(help="Which links are held out.")]
Val = Annotated[float, typer.Option(help="Share of links for validation.")]
Test = Annotated[float, typer.Option(help="Share of links for testing.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
OutCsv = Annotated[Path | None, typer.Option("--out", help="A csv file.  [default: print]")]
Samples = Annotated[
    int | None, typer.Option(help="Draw embeddings so many times: mean probability and its std.  [default: the mean]")
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe", help="Begin ids in a csv file with ' where a spreadsheet would run them as formulas."
    ),
]
DrawSeed = Annotated[int | None, typer.Option("--seed", help="Of the draws.  [default: the run's]")]
Source = Annotated[str | None, typer.Option(help="Column of a table with one end of a link, by name or number.")]
Target = Annotated[str | None, typer.Option(help="Column with the other end.")]
Delimiter = Annotated[str | None, typer.Option(help="What splits the columns of a table.")]
Header = Annotated[bool | None, typer.Option("--header/--no-header", help="Whether a table's first row is a header.")]
Weight = Annotated[str | None, typer.Option(help="Column with the weight of a link, or edge attribute of GraphML.")]
Directed = Annotated[bool | None, typer.Option("--directed", help="Links go from source to target; kept as a fact.")]
FeaturesFile = Annotated[
    Path | None,
    typer.Option("--features", help="Table of nodes, whose columns become features: csv, tsv, txt, parquet."),
]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of that table with the id.  [default: the first]")]
Label = Annotated[str | None, typer.Option(help="Column of that table with the class, or node attribute of GraphML.")]
Standardise = Annotated[bool | None, typer.Option("--standardise", help="Bring numeric columns to mean 0 and std 1.")]
Impute = Annotated[str | None, typer.Option(help="Fill in what is missing in the table of nodes: mean or zero.")]
NodeAttributes = Annotated[
    bool | None, typer.Option("--node-attributes", help="Make features of the node attributes of GraphML.")
]
OtherGraph = Annotated[
    str | None,
    typer.Option(
        "--graph", help="Another graph in place of the run's, with the same features: a file.", metavar="FILE"
    ),
]
NewLinks = Annotated[Path | None, typer.Option(help="Table of links to add to the run's, to new nodes too.")]
NodesFile = Annotated[
    Path | None,
    typer.Option("--features", help="Table of the nodes of that graph, or of new nodes to add to the run's."),
]
Options = dict[str, Any]
READING = {
    "source": Source,
    "target": Target,
    "delimiter": Delimiter,
    "header": Header,
    "weight": Weight,
    "directed": Directed,
    "features": FeaturesFile,
    "id": IdColumn,
    "label": Label,
    "standardise": Standardise,
    "impute": Impute,
    "node_attributes": NodeAttributes,
}
ELSEWHERE = {
    "graph": OtherGraph,
    "new_links": NewLinks,
    "source": Source,
    "target": Target,
    "weight": Weight,
    "delimiter": Delimiter,
    "header": Header,
    "features": NodesFile,
    "id": IdColumn,
}
COLUMNS = ("source", "target", "delimiter", "header")  # of links, and of the pairs of `predict`
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else there.")]


def with_options(name: str, options: dict[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options, which are None where they are not given, and hand them to it as one dictionary."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def collecting(**given: Any) -> None:
            command(**{name: {option: given.pop(option) for option in options}}, **given)

        own = [parameter for parameter in signature(command).parameters.values() if parameter.name != name]
        added = [
            Parameter(option, Parameter.KEYWORD_ONLY, default=None, annotation=options[option]) for option in options
        ]
        collecting.__signature__ = Signature([*own, *added])  # type: ignore[attr-defined]  # what typer reads
        collecting.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
        return collecting

    return decorate


@app.command()
@with_options("tables", READING)
def train(
    graph: GraphName,
    model: Model = DEFAULTS.model,
    no_features: NoFeatures = False,
    hidden_dim: HiddenDim = DEFAULTS.hidden_dim,
    latent_dim: LatentDim = DEFAULTS.latent_dim,
    iterations: Iterations = DEFAULTS.iterations,
    learning_rate: Annotated[float, typer.Option(help="Adam's learning rate.")] = DEFAULTS.learning_rate,
    objective: Annotated[str, typer.Option(help="exact, sampled or auto.")] = DEFAULTS.objective,
    weighting: Annotated[str, typer.Option(help="paper or elbo.")] = DEFAULTS.weighting,
    num_negatives: NumNegatives = DEFAULTS.num_negatives,
    eval_every: Annotated[int, typer.Option(help="Iterations between validation scores.")] = DEFAULTS.eval_every,
    early_stopping: Annotated[
        int | None, typer.Option(help="Stop after so many iterations without a better score.")
    ] = DEFAULTS.early_stopping,
    seed: Annotated[int, typer.Option(help="Initialisation and noise.")] = DEFAULTS.seed,
    split_seed: SplitSeed = 0,
    val: Val = VAL_FRACTION,
    test: Test = TEST_FRACTION,
    device: Device = DEFAULTS.device,
    precision: Precision = DEFAULTS.precision,
    out_folder: Annotated[Path | None, typer.Option("--out", help="Run folder.  [default: runs/GRAPH-MODEL]")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in that folder.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue what an interrupted training left there.")] = False,
    checkpoint_every: Annotated[
        float | None,
        typer.Option(help="Seconds between checkpoints, 0: at every iteration.  [default: 1% of the time]"),
    ] = None,
    as_json: Json = False,
    *,
    tables: Options,
) -> None:
    """Train a model on a graph, score it on held-out links, and keep it as a run."""
    config = Config(
        model=model,
        features=not no_features,
        hidden_dim=hidden_dim,
        latent_dim=latent_dim,
        iterations=iterations,
        learning_rate=learning_rate,
        objective=objective,
        weighting=weighting,
        num_negatives=num_negatives,
        eval_every=eval_every,
        early_stopping=early_stopping,
        seed=seed,
        device=device,
        precision=precision,
    )
    choose_device(config.device)
    name, reading = _open_graph(graph, **tables)
    data = reading.graph
    split = split_links(data, val=val, test=test, seed=split_seed)
    folder = out_folder or Path("runs") / f"{Path(name).stem}-{model}{'' if config.features else '-no-features'}"
    say = _say_nothing if as_json else note
    with _told_what_is_kept(folder):
        run = finished_run(folder) if resume and not overwrite else None
        if run is not None:
            require_same_run(folder, run, config, split)
            say(f"{folder}: this run is complete, with nothing to resume")
        else:
            with new_run_folder(folder, overwrite=overwrite, resume=resume) as place:
                say(f"{name}: {data} · {data.cleaning}")
                if resume and not has_checkpoint(place.checkpoint):
                    say(f"{folder}: nothing to resume, so from the beginning")
                parameters = asdict(config)
                estimator = ESTIMATORS[parameters.pop("model")](**parameters, progress=not as_json)
                validation = split.val if len(split.val) else None
                estimator.fit(split.train, validation=validation, checkpoint=place, checkpoint_every=checkpoint_every)
                run = estimator.to_run(split, dataset=visible(name), recipe=reading.recipe)
                place.write(run, patience=PATIENCE, tell=note)
            say(f"trained {model.upper()} in {run.facts.seconds:.1f} s, kept in {folder}")
            for picture in (folder / f"{kind}.png" for kind in KINDS):
                if picture.exists():
                    say(f"{picture}: this picture is of the run before; vgae plot draws it again")
        if as_json:
            print_json(_summary(folder, run))
        else:
            print_scores(run.metrics, _paper_of(run), ("auc", "ap"))


@app.command()
def evaluate(
    run_folder: RunFolder,
    as_json: Json = False,
) -> None:
    """Score a run on its held-out links: AUC, AP, MRR, Hits@K, and how far its probabilities can be trusted."""
    run = read_run(run_folder)
    estimator = ESTIMATORS[run.config.model].from_run(run)
    metrics = evaluate_split(estimator, run.split)
    raw, calibrated = estimator.reliability(_held_out(run_folder, run))
    errors = raw.expected_calibration_error, calibrated.expected_calibration_error
    if as_json:
        curve = {name: values.tolist() for name, values in vars(calibrated).items()}
        pairs = "test" if run.split.test else "validation, each half by a fit to the other"
        described = {"pairs": pairs, "error_raw": errors[0], "error_calibrated": errors[1], "curve": curve}
        print_json(_summary(run_folder, run) | metrics | {"calibration": described})
    else:
        print_scores(metrics, _paper_of(run))
        tell(
            f"Probabilities are off by {errors[1]:.4f} on average at the graph's density; σ(logit) by {errors[0]:.4f}."
        )
        if not run.split.test:
            tell("There are no test pairs: each half of the validation pairs was judged by a fit to the other half.")


@app.command()
def plot(
    run_folder: RunFolder,
    kind: Annotated[str, typer.Option(help=f"{', '.join(KINDS)}.")] = "latent",
    projection: Annotated[
        str, typer.Option(help="tsne or pca: how the latent space is brought to two dimensions.")
    ] = "tsne",
    out_file: Annotated[Path | None, typer.Option("--out", help="png, svg or pdf.  [default: RUN/KIND.png]")] = None,
) -> None:
    """Draw a run: its latent space, training curves, ROC and precision-recall, or whether probabilities come true."""
    if kind not in KINDS:
        raise InputError(f"kind: {kind!r} is not one of {', '.join(KINDS)}.")
    run = read_run(run_folder)
    path = out_file or run_folder / f"{kind}.png"
    if kind == "latent":
        points = project(run.latent["mean"].numpy(), projection, seed=run.config.seed)
        figure = latent_space(points, run.split.train.edges, run.split.train.labels)
    elif kind == "training":
        figure = training_curves(run.history)
    else:
        estimator = ESTIMATORS[run.config.model].from_run(run)
        held_out = _held_out(run_folder, run)
        if kind == "ranking":
            figure = ranking_curves(*score_held_out(estimator, held_out))
        else:
            raw, calibrated = estimator.reliability(held_out, equal_counts)
            figure = reliability_curves({"σ(logit)": raw, "calibrated": calibrated})
    save_figure(figure, path)
    note(f"drew {path}")


@app.command()
@with_options("elsewhere", ELSEWHERE)
def embed(
    run_folder: RunFolder,
    out_file: Annotated[Path, typer.Option("--out", help="csv, parquet, npz, or txt (word2vec's).")],
    spreadsheet_safe: SpreadsheetSafe = False,
    *,
    elsewhere: Options,
) -> None:
    """Write the embedding of every node, with its id; of another graph or of new nodes too, if the run has features."""
    estimator = _open_run(run_folder, **elsewhere)
    write_embeddings(out_file, _ids(estimator.graph_), estimator.transform(), spreadsheet_safe=spreadsheet_safe)
    note(f"wrote {estimator.graph_.num_nodes:,} embeddings to {out_file}")


@app.command()
@with_options("elsewhere", ELSEWHERE)
def recommend(
    run_folder: RunFolder,
    top: Annotated[int, typer.Option(help="How many links.")] = 10,
    node: Annotated[
        list[str] | None, typer.Option(help="So many for this node, by its id; may be repeated.  [default: of all]")
    ] = None,
    every_node: Annotated[bool, typer.Option("--every-node", help="So many for every node.")] = False,
    samples: Samples = None,
    seed: DrawSeed = None,
    out_file: OutCsv = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    as_json: Json = False,
    *,
    elsewhere: Options,
) -> None:
    """Name the most likely links that are not known yet, of the whole graph or node by node."""
    if node and every_node:
        raise InputError("--node and --every-node: give one of the two, some nodes or all of them.")
    _require_file_for(spreadsheet_safe, out_file)
    estimator = _open_run(run_folder, **elsewhere)
    ids = _ids(estimator.graph_)
    nodes: list[int] | None = list(range(len(ids))) if every_node else None
    if node:
        nodes = _places(ids, node)
    found = estimator.recommend(top, nodes, samples=samples, seed=seed)
    _give_links(found, ids, out_file, spreadsheet_safe=spreadsheet_safe, as_json=as_json)


@app.command()
@with_options("elsewhere", ELSEWHERE)
def similar(
    run_folder: RunFolder,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node, by its id.")],
    top: Annotated[int, typer.Option(help="How many nodes.")] = 10,
    as_json: Json = False,
    *,
    elsewhere: Options,
) -> None:
    """Name the nodes whose embeddings are nearest to a node's, by the cosine."""
    estimator = _open_run(run_folder, **elsewhere)
    ids = _ids(estimator.graph_)
    near = [(str(ids[other]), cosine) for other, cosine in estimator.similar(_places(ids, [node])[0], top)]
    if as_json:
        print_json({"node": node, "similar": [{"node": name, "cosine": cosine} for name, cosine in near]})
        return
    print_table(("node", "cosine"), [(name, f"{cosine:.4f}") for name, cosine in near])


@app.command()
@with_options("elsewhere", ELSEWHERE)
def predict(
    run_folder: RunFolder,
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="Table of pairs of ids: csv, tsv, txt, parquet.")],
    samples: Samples = None,
    seed: DrawSeed = None,
    out_file: OutCsv = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    as_json: Json = False,
    *,
    elsewhere: Options,
) -> None:
    """Give the probability of a link for each pair of a table, whose columns are named as those of new links are."""
    _require_file_for(spreadsheet_safe, out_file)
    columns = {name: elsewhere[name] for name in COLUMNS}
    if elsewhere["graph"] is None and elsewhere["new_links"] is None:
        elsewhere |= dict.fromkeys(COLUMNS)  # they are about the pairs alone
    estimator = _open_run(run_folder, **elsewhere)
    ids = _ids(estimator.graph_)
    index = read_pairs(pairs, [str(name) for name in ids], **columns)
    found = estimator.predict_links(index, samples=samples, seed=seed)
    _give_links(found, ids, out_file, spreadsheet_safe=spreadsheet_safe, as_json=as_json)


@app.command()
@with_options("tables", READING)
def baseline(
    method: Annotated[str, typer.Argument(metavar="METHOD", help=f"{', '.join(BASELINES)}.")],
    graph: GraphName,
    seed: Annotated[int, typer.Option(help="Walks and eigenvectors.")] = DEFAULTS.seed,
    split_seed: SplitSeed = 0,
    val: Val = VAL_FRACTION,
    test: Test = TEST_FRACTION,
    as_json: Json = False,
    *,
    tables: Options,
) -> None:
    """Score a baseline on the split that train uses: spectral (sc), DeepWalk (dw), or a heuristic (cn aa ra pa)."""
    if method not in BASELINES:
        raise InputError(f"There is no baseline called {method!r}; the known ones are {', '.join(BASELINES)}.")
    name, reading = _open_graph(graph, **tables)
    data = reading.graph
    split = split_links(data, val=val, test=test, seed=split_seed)
    metrics = evaluate_split(BASELINES[method](split.train, seed), split)
    if as_json:
        print_json({"method": method, "dataset": name, "split": split.content_hash, **metrics})
    else:
        print_scores(metrics, paper_result(name, method, features=True))


@app.command("reproduce")
def reproduce_paper(
    dataset: Annotated[
        list[str] | None, typer.Option(help="One of the datasets; may be repeated.  [default: all]")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="SC, DW, GAE*, VGAE*, GAE, VGAE; may be repeated.")] = None,
    runs: Annotated[int, typer.Option(help="Runs per cell; run i has seed i.")] = 10,
    splits: Annotated[int, typer.Option(help="Different splits; run i uses split i mod this number.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="One run per cell.")] = False,
    figure: Annotated[str, typer.Option(help="Figure 1 by tsne or pca, of a 2d latent space, or none.")] = "tsne",
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Run the paper's Table 1 and Figure 1 again; what is in the folder already is not run twice."""
    if figure not in FIGURES:
        raise InputError(f"figure: {figure!r} is not one of {', '.join(FIGURES)}.")
    tasks = plan(dataset or DATASETS_OF_PAPER, model or METHODS, runs=1 if quick else runs, splits=splits)
    store = Store(out_folder, splits=splits)
    with _told_how_many_are_stored(tasks, store):
        results = _watched(reproduce(tasks, store), total=len(tasks), quiet=as_json)
        table = summarise(results)
        cells = {name: {method: asdict(cell) for method, cell in row.items()} for name, row in table.items()}
        write_json(out_folder / "table.json", cells)
        Archive(__version__, splits, store.sessions(), results).write(out_folder / "results.json")
        write_text(out_folder / "table.md", to_markdown(table))
        write_text(out_folder / "table.tex", to_latex(table))
        written = ["table.json", "table.md", "table.tex", "results.json"]
        if figure != "none" and "VGAE" in table.get("cora", {}):
            embedding, cora = embed_cora(latent_dim=2) if figure == "2d" else embed_cora()
            picture = latent_space(project(embedding, "tsne" if figure == "2d" else figure), cora.edges, cora.labels)
            for name in ("figure-1.png", "figure-1.svg"):
                save_figure(picture, out_folder / name)
                written.append(name)
        if as_json:
            print_json(cells)
        else:
            print_table_1(table)
            note(f"kept in {out_folder}: {', '.join(written)}")


@app.command()
def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="results.json of one or more reproductions.")
    ],
    figure: Annotated[Path | None, typer.Option(help="A picture to show, as a path from the page.")] = None,
    out_file: Annotated[Path, typer.Option("--out", help="The page, in Markdown.")] = Path("results.md"),
) -> None:
    """Write a page about reproductions of the paper: tables, hardware and time, and where we differ and why."""
    write_text(out_file, results_page([Archive.read(path) for path in files], figure))
    note(f"wrote {out_file}")


@app.command("plan")
@with_options("tables", READING)
def plan_command(
    graph: GraphName,
    model: Model = DEFAULTS.model,
    no_features: NoFeatures = False,
    hidden_dim: HiddenDim = DEFAULTS.hidden_dim,
    latent_dim: LatentDim = DEFAULTS.latent_dim,
    iterations: Iterations = DEFAULTS.iterations,
    num_negatives: NumNegatives = DEFAULTS.num_negatives,
    device: Device = DEFAULTS.device,
    precision: Precision = DEFAULTS.precision,
    as_json: Json = False,
    *,
    tables: Options,
) -> None:
    """Say what training would cost on this machine, exact and sampled, before it is run."""
    config = Config(
        model=model,
        features=not no_features,
        hidden_dim=hidden_dim,
        latent_dim=latent_dim,
        iterations=iterations,
        num_negatives=num_negatives,
        device=device,
        precision=precision,
    )
    place = choose_device(config.device)
    name, reading = _open_graph(graph, **tables)
    data = reading.graph
    found = plan_training(data, config, place)
    if as_json:
        described = {cost.objective: {"seconds": cost.seconds, "bytes": cost.memory.largest} for cost in found.costs}
        available = found.room.device or found.room.host
        print_json({"dataset": name, "auto": found.choice.objective, "available_bytes": available, **described})
        return
    note(f"{name}: {data} · on {describe_machine()}")
    titles = ("objective", "an iteration", f"{iterations} iterations", "memory", "fits")
    rows = []
    for cost in found.costs:
        fits = "yes" if cost.memory.fits(found.room) else "no"
        whole = duration(iterations * cost.seconds)
        rows.append((cost.objective, duration(cost.seconds), whole, f"{cost.memory.largest / 1e9:.2f} GB", fits))
    print_table(titles, rows, numbers=titles[1:])
    tell(f"--objective auto would be {found.choice.objective}: {found.choice.reason}")


@app.command()
def datasets(
    as_json: Json = False,
) -> None:
    """List the datasets that train knows by name."""
    if as_json:
        print_json({name: asdict(info) | {"cached": cache_path(name).exists()} for name, info in DATASETS.items()})
        return
    titles = ("dataset", "nodes", "edges", "features", "classes", "cached", "what it is")
    rows = []
    for name, info in DATASETS.items():
        counts = (info.num_nodes, info.num_edges, info.num_features, info.num_classes)
        cached = "yes" if cache_path(name).exists() else "no"
        rows.append((name, *(f"{count:,}" for count in counts), cached, info.description))
    print_table(titles, rows, numbers=titles[1:5])


def _say_nothing(_: str) -> None:
    """What `note` becomes where only JSON is wanted."""


@contextmanager
def _told_what_is_kept(folder: Path) -> Iterator[None]:
    """On Ctrl-C, look at what the run folder holds and say it, with the command that continues where there is one."""
    before = _identity(folder / CONFIG)
    try:
        yield
    except KeyboardInterrupt:
        if stage_of(folder) is Stage.UNFINISHED:
            iteration = kept_iteration(folder / CHECKPOINT)
            when = "" if iteration is None else f" after iteration {iteration}"
            words = f"Interrupted{when}. To continue, run: {_same_command('--resume')}"
        elif _identity(folder / CONFIG) != before:
            words = f"Interrupted, but the run is complete in {folder}."
        elif before is not None:
            words = f"Interrupted; nothing was kept, and the run in {folder} is as it was."
        else:
            words = "Interrupted; nothing was kept."
        raise StoppedError(words) from None


@contextmanager
def _told_how_many_are_stored(tasks: Sequence[Task], store: Store) -> Iterator[None]:
    """On Ctrl-C, say how much of a reproduction is stored, and which command continues."""
    try:
        yield
    except KeyboardInterrupt:
        words = f"Interrupted; {store.count(tasks)} of {len(tasks)} results are stored in {store.folder}"
        raise StoppedError(f"{words}. To continue, run: {_same_command()}") from None


def _same_command(*options: str) -> str:
    """What was called, as a line for the shell, with other ways to start in place of those that were given."""
    given = [argument for argument in sys.argv[1:] if argument not in ("--overwrite", "--resume", "--debug")]
    return shell_line(["vgae", *given, *options])


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file has a name: another one after it was replaced."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _watched(results: Generator[Result], *, total: int, quiet: bool) -> list[Result]:
    """All results, shown on a terminal as they come: the table as far as it is known, and the time left."""
    found: list[Result] = []
    bar = Progress(
        TextColumn("{task.completed}/{task.total} runs"), BarColumn(), TimeRemainingColumn(elapsed_when_finished=True)
    )
    task = bar.add_task("", total=total)
    with closing(results), Live(console=progress_console(quiet=quiet), refresh_per_second=2) as live:
        for result in results:
            found.append(result)
            bar.update(task, completed=len(found))
            live.update(Group(table_1(summarise(found)), bar))
    return found


def _open_graph(given: str, *, recipe: FeatureRecipe | None = None, **options: Any) -> tuple[str, LoadedGraph]:
    """A dataset by name or a graph from a file, with the name it goes by; what was assumed in reading is told.

    Features of a table of nodes are made by the recipe, if there is one; a dataset has its own.
    """
    if given.lower() in DATASETS:
        asked = [name for name, value in options.items() if value is not None]
        if asked:
            raise InputError(f"{given}: this is a dataset, and {', '.join(asked)} can be given for tables of your own.")
        return given.lower(), LoadedGraph(load_dataset(given))
    path = Path(given)
    if not path.suffix and not os.path.exists(path):  # noqa: PTH110 - which is no error for any name
        raise InputError(
            f"{given!r} is neither a known dataset ({', '.join(DATASETS)}) nor a file; see vgae datasets for the first."
        )
    reading = read_any(path, recipe=recipe, **options)
    for line in reading.report(str(path)):
        note(line)
    return str(path), reading


def _open_run(
    folder: Path,
    *,
    graph: str | None,
    new_links: Path | None,
    features: Path | None,
    id: str | None,  # noqa: A002 - the option's name
    **columns: Any,
) -> GAE | VGAE:
    """The model of a run, on its own graph, on that with more nodes and links, or on another one."""
    run = read_run(folder)
    estimator = ESTIMATORS[run.config.model].from_run(run)
    if all(given is None for given in (graph, new_links, features, id, *columns.values())):
        return estimator
    if graph is not None and new_links is not None:
        raise InputError("graph and new_links: either another graph, or more links for the run's own.")
    if run.facts.num_features == 0:
        raise InputError(
            f"{folder}: this run was trained without features, so it knows nothing of other nodes than its own; "
            "train one with features (--features) to embed new nodes."
        )
    if graph is not None:
        _, reading = _open_graph(graph, features=features, id=id, recipe=run.recipe, **columns)
        return estimator.on(reading.graph)
    reading = read_more(run.split.train, run.recipe, links=new_links, nodes=features, id=id, **columns)
    for line in reading.report(str(new_links or folder)):
        note(line)
    return estimator.on(reading.graph)


def _give_links(
    links: Links, ids: Sequence[Any], out_file: Path | None, *, spreadsheet_safe: bool, as_json: bool
) -> None:
    """Pairs with probability, logit and, over draws, std: into a csv file, as JSON, or as a table."""
    numbers = {"probability": links.probabilities, "logit": links.logits}
    if links.std is not None:
        numbers["std"] = links.std
    columns = ("source", "target", *numbers)
    values = [[f"{value:.6g}" for value in row] for row in zip(*map(np.ndarray.tolist, numbers.values()), strict=True)]
    pairs = links.pairs.tolist()
    if out_file is not None:
        cells = without_formulas(ids) if spreadsheet_safe else ids
        write_csv(out_file, columns, ((cells[i], cells[j], *row) for (i, j), row in zip(pairs, values, strict=True)))
    rows = [(str(ids[i]), str(ids[j]), *row) for (i, j), row in zip(pairs, values, strict=True)]
    if as_json:
        plain = [(i, j, *(float(value) for value in row)) for i, j, *row in rows]
        print_json({"links": [dict(zip(columns, row, strict=True)) for row in plain]})
    elif out_file is not None:
        note(f"wrote {len(rows):,} links to {out_file}")
    else:
        print_table(columns, rows)


def _require_file_for(spreadsheet_safe: bool, out_file: Path | None) -> None:
    if spreadsheet_safe and out_file is None:
        raise InputError("--spreadsheet-safe: this option is for csv files; name one with --out.")


def _held_out(folder: Path, run: Run) -> HeldOut:
    """The pairs that a run is judged by: its test pairs or, where it has none, its validation pairs."""
    held_out = run.split.test or run.split.val
    if not held_out:
        raise InputError(f"{folder}: this run has no held-out pairs to score.")
    return held_out


def _places(ids: Sequence[Any], names: list[str]) -> list[int]:
    """The indices of nodes that are given by their ids."""
    place = {str(name): index for index, name in enumerate(ids)}
    for name in names:
        if name not in place:
            raise InputError(f"{name!r} is not a node of this run; ids look like {', '.join(map(_in_short, ids[:3]))}.")
    return [place[name] for name in names]


def _in_short(name: object) -> str:
    text = str(name)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _ids(graph: Graph) -> list[Any]:
    """The nodes' own ids, or their indices where they have none."""
    return list(range(graph.num_nodes)) if graph.node_ids is None else graph.node_ids.tolist()


def _summary(folder: Path, run: Run) -> dict[str, Any]:
    return {
        "run": str(folder),
        "model": run.config.model,
        "dataset": run.facts.dataset,
        "features": run.facts.num_features > 0,
        "objective": run.facts.objective,
        "objective_reason": run.facts.objective_reason,
        "iterations": run.history[-1].iteration,
        "best_iteration": run.facts.best_iteration,
        "seconds": run.facts.seconds,
        "split": run.split.content_hash,
        "validation": run.metrics.get("validation"),
        "test": run.metrics.get("test"),
    }


def _paper_of(run: Run) -> tuple[float, float] | None:
    return paper_result(run.facts.dataset, run.config.model, features=run.facts.num_features > 0)


def _run(arguments: list[str]) -> int | None:
    for argument in arguments:
        if "\0" in argument:
            raise InputError(f"{argument!r}: no name of a file and no option can hold a NUL character.")
    code: int | None = app(arguments, prog_name="vgae", standalone_mode=False)
    return code


def main() -> None:
    """Run the command and, unless all went well, end the process with its exit code."""
    prepare_streams()
    debug = "--debug" in sys.argv[1:]  # anywhere: it is about the process, not about a command
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"] or ["--help"]
    code = exit_code_of(partial(_run, arguments), debug=debug)
    if code == INTERRUPTED:
        os._exit(code)  # where Ctrl-C hit an import, sys.exit would end in death by SIGINT and another exit code
    if code:
        sys.exit(code)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        tell(__version__)
        raise typer.Exit
