"""A real large graph, all the way: read, split, train, judge and recommend, each with its time and memory.

The graph is that of the packages on which npm's packages depended in January 2017, in operation and in development: the
package `dependent-packages` 2.2.2 (MIT), fetched by `npm pack`. It has a JSON file for each package with the names of
those that depend on it, some 304,000 names and 2.3 million dependencies; the script makes a table of links of it.

Every stage is a process of its own, so that the peak of its memory is its own: `vgae plan`, `vgae train` and
`vgae recommend` as anybody would run them, the others by this script. What the plan predicted stands beside what the
training took. AUC and AP are on all test pairs. Precision@K is exact, over all pairs that are not known; rows that
cannot have one of the best pairs, by the lengths of the model's factors or by the weights of a node's neighbours, are
passed over. Of equal scores of cn, aa and ra the smaller indices come first. A stage that takes longer than --limit is
stopped, and is printed as that.

    python benchmarks/large.py [--file dependent-packages-2.2.2.tgz] [--nodes 20000] [--iterations 200] [--model vgae]
                               [--directed] [--folder DIR] [--limit 3600] [--no-all-pairs] [-- options of vgae train]

--nodes K takes the K packages with most links, for a try. --folder keeps the table and the run. With --directed, links
go from a package to what it depends on; `-- --encoder directed --decoder source_target` then learns their directions.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vgae
from vgae.baselines.best_pairs import best_pairs
from vgae.baselines.compare import HEURISTICS
from vgae.baselines.counts import count_scores
from vgae.baselines.heuristics import NeighbourScorer
from vgae.evaluation.all_pairs import Candidates, Ranker, sweep, top_metrics
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.pairs import distinct
from vgae.graph.split import LinkSplit
from vgae.machine import describe_machine
from vgae.report.console import print_table

PACKAGE = "dependent-packages@2.2.2"
ARCHIVES = ("dependents.tgz", "devDependents.tgz")
COLUMNS = ("package", "dependency")
MODEL = "model"
TOP = (100, 1000)

Link = tuple[str, str]
Result = dict[str, Any]


# ------------------------------------------------------------------------------------------------------------ the table


def dependencies(tarball: Path) -> Iterator[Link]:
    """Pairs (package, what it depends on), as the package has them; an empty name, of which there are some, is none."""
    with tarfile.open(tarball, "r:gz") as outer:
        for archive in outer:
            stream = outer.extractfile(archive) if archive.name.endswith(ARCHIVES) else None
            if stream is None:
                continue
            with tarfile.open(fileobj=stream, mode="r|gz") as inner:
                for member in inner:
                    file = inner.extractfile(member) if member.name.endswith(".json") else None
                    # The name of a file is that of the package which the others depend on; it may have a slash in it.
                    name = member.name.partition("/")[2].removesuffix(".json")
                    for dependent in json.load(file) if file is not None and name.strip() else ():
                        if dependent.strip():
                            yield dependent, name


def among_busiest(links: Sequence[Link], num_nodes: int) -> list[Link]:
    """The links between the packages that have most of them; of equally many, those that come first by name."""
    count = Counter(name for link in links for name in link)
    busiest = set(sorted(count, key=lambda name: (-count[name], name))[:num_nodes])
    return [link for link in links if busiest.issuperset(link)]


def write_links(path: Path, links: Iterable[Link]) -> None:
    columns = list(zip(*links, strict=True)) or [(), ()]
    pq.write_table(
        pa.table({name: pa.array(values, pa.string()) for name, values in zip(COLUMNS, columns, strict=True)}), path
    )


def make_table(tarball: str, table: str, num_nodes: str) -> Result:
    links = list(dependencies(Path(tarball)))
    chosen = among_busiest(links, int(num_nodes)) if int(num_nodes) else links
    write_links(Path(table), chosen)
    return {"rows": len(chosen), "names": len({name for link in chosen for name in link})}


# ----------------------------------------------------------------------------------------------------------- the stages


def read_and_split(table: str, directed: str) -> Result:
    started = time.perf_counter()
    graph = vgae.read_graph(table, directed=bool(directed) or None)
    read, read_peak = time.perf_counter() - started, peak_bytes()
    started = time.perf_counter()
    vgae.split_links(graph)
    split = time.perf_counter() - started
    degrees = np.diff(graph.adjacency.indptr)
    return {
        "graph": str(graph),
        "cleaning": str(graph.cleaning),
        "most_links": int(degrees.max()),
        "neighbour_pairs": float(degrees.astype(float) @ degrees),
        "read": [read, read_peak],
        "split": [split, peak_bytes()],
        "resident": resident_bytes(),
    }


def judge(run: str) -> Result:
    """The verdict as `vgae train` gives it, on as many pairs as it takes."""
    started = time.perf_counter()
    model = vgae.load(run)
    loaded = time.perf_counter()
    found = vgae.verdict(model, model.run_.split)
    seconds = time.perf_counter() - loaded
    return {"load": loaded - started, "verdict": seconds, "text": str(found)}


def score(run: str, name: str) -> Result:
    """AUC and AP of the model or of a heuristic on all test pairs."""
    model = vgae.load(run)
    test = model.run_.split.test
    started = time.perf_counter()
    scorer = scorer_of(name, model, model.run_.split)
    found = auc_and_ap(scorer.logits(test.links), scorer.logits(test.non_links))
    return found | {"pairs": len(test.pairs), "seconds": time.perf_counter() - started}


def top_of(run: str, name: str) -> Result:
    """Precision at each K among all pairs that are not known: training and validation links are."""
    model = vgae.load(run)
    started = time.perf_counter()
    split = model.run_.split.as_scored(symmetric=model.symmetric)
    numbering = split.train.all_pairs
    known = np.concatenate([split.train.links, split.val.links])
    candidates = Candidates.of(split.train, numbering.pairs(distinct(numbering.ranks(known))))
    links, top = split.test.links, tuple(k for k in TOP if k <= len(split.test.links))
    if name == MODEL:
        found = sweep(model, candidates, links, max(top))
        precision = top_metrics(found.best, found.marked, top)
    elif isinstance(heuristic := HEURISTICS[name](split.train), NeighbourScorer) and not candidates.ordered:
        ranks = numbering.ranks(best_pairs(heuristic.rows(), max(top), numbering.ranks(candidates.known)))
        is_link = np.isin(ranks, numbering.ranks(links))
        precision = {f"precision@{k}": float(is_link[:k].mean()) for k in top}
    else:
        counts, scores = count_scores(heuristic, candidates, max(top)), heuristic.logits(links)
        precision = {f"precision@{k}": value for k in top if (value := counts.precision(k, scores)) is not None}
    return precision | {"seconds": time.perf_counter() - started}


def check(table: str, directed: str, recommended: str) -> Result:
    """How many of the recommended links are invented."""
    columns = pq.read_table(table).to_pydict()
    known = zip(*(columns[name] for name in COLUMNS), strict=True)
    links = [(link["source"], link["target"]) for link in json.loads(recommended)]
    return {"invented": num_invented(links, known, directed=bool(directed))}


def num_invented(recommended: Sequence[Link], known: Iterable[Link], *, directed: bool) -> int:
    """Of recommended links, those that are known, of a package with itself, or with an end that is no package.

    Unless links are directed, one that is known the other way round is known.
    """
    pairs = {(package.strip(), dependency.strip()) for package, dependency in known}
    names = {name for pair in pairs for name in pair}
    if not directed:
        pairs |= {(dependency, package) for package, dependency in pairs}
    return sum(link in pairs or link[0] == link[1] or not names.issuperset(link) for link in recommended)


def scorer_of(name: str, model: Any, split: LinkSplit) -> Ranker:
    ranker: Ranker = model if name == MODEL else HEURISTICS[name](split.train)
    return ranker


STAGES: dict[str, Callable[..., Result]] = {
    function.__name__: function for function in (make_table, read_and_split, judge, score, top_of, check)
}


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_bytes() -> int:
    """What this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


# --------------------------------------------------------------------------------------------------- processes, in turn


@dataclass(frozen=True)
class Took:
    """What a process printed as JSON (None if it was stopped), the time that it and its threads took, and its peak."""

    found: Result | None
    seconds: float
    cpu_seconds: float
    peak: int


def run_process(command: Sequence[str], limit: float) -> Took:
    """Run a command that prints JSON; one that takes longer than the limit is stopped."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output)  # noqa: S603 - this script, or vgae
        is_stopped = False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if not is_stopped and time.perf_counter() - started > limit:
                process.kill()
                is_stopped = True
            time.sleep(0.02)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode and not is_stopped:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}.")
        output.seek(0)
        found = None if is_stopped else json.loads(output.read())
        return Took(found, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


@dataclass(frozen=True)
class Runner:
    """Runs stages one after the other, and prints what each took."""

    limit: float

    def stage(self, stage: Callable[..., Result], *arguments: str, title: str) -> Result | None:
        """A stage of this script."""
        return self._run(title, [sys.executable, __file__, "--stage", stage.__name__, *arguments])

    def command(self, *words: str) -> Result | None:
        """A command of vgae."""
        return self._run(f"vgae {words[0]}", [sys.executable, "-m", "vgae", *words, "--json"])

    def _run(self, title: str, command: Sequence[str]) -> Result | None:
        took = run_process(command, self.limit)
        words = f"{took.seconds:8.1f} s" if took.found is not None else f"stopped after {took.seconds:.0f} s"
        print(
            f"{title:<24}{words} ({took.cpu_seconds:.1f} s of the processor), peak {took.peak / 1e9:.2f} GB", flush=True
        )
        return None if took.found is None else took.found | {"peak": took.peak}


# ------------------------------------------------------------------------------------------------------------ the whole


def fetch(folder: Path) -> Path:
    """The package as npm packs it."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(f"npm is not installed; get the tarball of {PACKAGE} elsewhere and name it with --file.")
    command = [npm, "pack", PACKAGE, "--silent"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603 - as it says
    return folder / done.stdout.split()[-1]


def seconds_per_iteration(history: Iterable[str]) -> float:
    """From the lines of history.jsonl: the first iteration, with what is set up before it, aside."""
    entries = [json.loads(line) for line in history]
    first, last = entries[0], entries[-1]
    return float((last["seconds"] - first["seconds"]) / max(last["iteration"] - first["iteration"], 1))


def beside_plan(plan: Result, trained: Result, run: Path, resident: int) -> None:
    """Print what was predicted and what it took; the plan's bytes are those beside the process and the graph."""
    predicted = plan[trained["objective"]]
    took = seconds_per_iteration((run / "history.jsonl").read_text().splitlines())
    memory = resident + predicted["bytes"]
    print(f"\nobjective {trained['objective']}: {trained['objective_reason']}")
    ratio = took / predicted["seconds"]
    print(f"an iteration: planned {predicted['seconds']:.2f} s, took {took:.2f} s, {ratio:.2f} times")
    print(
        f"memory: planned {predicted['bytes'] / 1e9:.2f} GB beside the {resident / 1e9:.2f} GB of process and graph, "
        f"peak {trained['peak'] / 1e9:.2f} GB, {trained['peak'] / memory:.2f} times"
    )
    print(
        f"{trained['iterations']} iterations in {trained['seconds']:.0f} s, the best was {trained['best_iteration']}\n"
    )


def compare(runner: Runner, run: Path, *, all_pairs: bool) -> None:
    """Print AUC, AP and precision of the model and of the heuristics."""
    rows = []
    for name in (MODEL, *HEURISTICS):
        scores = runner.stage(score, str(run), name, title=f"scores of {name}") or {}
        if all_pairs:
            scores |= runner.stage(top_of, str(run), name, title=f"all pairs by {name}") or {}
        metrics = ("auc", "ap", *(f"precision@{k}" for k in TOP))
        rows.append((name, *(f"{100 * scores[key]:.1f}" if key in scores else "" for key in metrics)))
    print()
    print_table(("", "AUC", "AP", *(f"P@{k}" for k in TOP)), rows, numbers=("AUC", "AP", *(f"P@{k}" for k in TOP)))


def whole_way(options: argparse.Namespace, folder: Path) -> None:
    table, run, runner = folder / "links.parquet", folder / "run", Runner(options.limit)
    started = time.perf_counter()
    tarball = options.file or fetch(folder)
    print(f"fetched in {time.perf_counter() - started:.1f} s: {tarball.stat().st_size / 1e6:.1f} MB", flush=True)
    made = runner.stage(make_table, str(tarball), str(table), str(options.nodes), title="table")
    directed = "directed" * options.directed
    graph = runner.stage(read_and_split, str(table), directed, title="read and split")
    if made is None or graph is None:
        raise SystemExit("There is no graph to train on; give more time by --limit.")
    print(f"{made['rows']:,} rows with {made['names']:,} names: {graph['graph']} · {graph['cleaning']}")
    print(f"at most {graph['most_links']:,} links of a package; {graph['neighbour_pairs']:.2g} pairs of links meet")
    for what in ("read", "split"):
        print(f"  {what:<22}{graph[what][0]:8.1f} s, peak so far {graph[what][1] / 1e9:.2f} GB")
    given = ["--model", options.model, "--iterations", str(options.iterations), *["--directed"] * options.directed]
    plan = runner.command("plan", str(table), *given, *options.options)
    kept = ["--no-verdict", "--out", str(run), "--overwrite"]
    trained = runner.command("train", str(table), *given, *options.options, *kept)
    if trained is None:
        raise SystemExit("The training was stopped; give more time by --limit, or fewer --iterations.")
    if plan is not None:
        beside_plan(plan, trained, run, graph["resident"])
    judged = runner.stage(judge, str(run), title="verdict")
    if judged is not None:
        print(f"loaded in {judged['load']:.1f} s, judged in {judged['verdict']:.1f} s\n{judged['text']}\n", flush=True)
    compare(runner, run, all_pairs=options.all_pairs)
    links = runner.command("recommend", str(run), "--top", str(options.top))
    if links is None:
        return
    names = [(link["source"], link["target"]) for link in links["links"]]
    checked = runner.stage(check, str(table), directed, json.dumps(links["links"]), title="check")
    print(f"of {len(names)} recommended links, {checked['invented'] if checked else '?'} are invented\n")
    print_table(
        ("source", "target", "probability"),
        [(*ends, f"{link['probability']:.3g}") for ends, link in zip(names, links["links"], strict=True)],
        numbers=("probability",),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="A real large graph: read, split, train, judge, recommend.")
    parser.add_argument("--file", type=Path, help="the tarball, in place of npm pack")
    parser.add_argument("--nodes", type=int, default=0, help="only so many packages, those with most links")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--model", default="vgae")
    parser.add_argument("--directed", action="store_true", help="links go from a package to what it depends on")
    parser.add_argument("--folder", type=Path, help="where the table and the run stay  [default: nowhere]")
    parser.add_argument("--limit", type=float, default=3600, help="seconds after which a stage is stopped")
    parser.add_argument("--no-all-pairs", dest="all_pairs", action="store_false", help="leave precision at K out")
    parser.add_argument("--top", type=int, default=20, help="links to recommend")
    parser.add_argument("--stage", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*", help="further options of vgae train and vgae plan, after --")
    options = parser.parse_args()
    if options.stage:
        print(json.dumps(STAGES[options.stage[0]](*options.stage[1:])))
        return
    print(describe_machine(), flush=True)
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        whole_way(options, options.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        whole_way(options, Path(folder))


if __name__ == "__main__":
    main()
