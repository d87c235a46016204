"""Links out of a csv file: read, check, number, merge and split, against pandas, with time and memory.

    ours      vgae.read_graph and vgae.split_links; everything is checked and told, and the ids are kept
    pandas    read_csv, factorize, drop_duplicates: the same edges, nothing checked, nothing split

Each runs in a process of its own, in turn, so that the peak of its memory is its own; what its libraries had taken when
they were loaded is not counted. The file holds whole numbers; a tenth of its rows are others given backwards.

    python benchmarks/reading.py [--rows 10000000] [--rounds 3]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import vgae
from vgae.io.tables import read_graph
from vgae.machine import describe_machine


def write_links(path: Path, num_rows: int) -> None:
    generator = np.random.default_rng(0)
    links = generator.integers(max(num_rows // 5, 3), size=(num_rows, 2)) * 7 + 1_000_000
    again, others = generator.integers(num_rows, size=(2, num_rows // 10))
    links[again] = links[others][:, ::-1]
    pd.DataFrame(links, columns=["source", "target"]).to_csv(path, index=False)


def ours(path: Path) -> dict[str, float]:
    started = time.perf_counter()
    graph = read_graph(path)
    read = time.perf_counter()
    vgae.split_links(graph)
    return {"read": read - started, "split": time.perf_counter() - read, "edges": graph.num_edges}


def pandas(path: Path) -> dict[str, float]:
    started = time.perf_counter()
    frame = pd.read_csv(path)
    codes, _ = pd.factorize(frame.to_numpy().ravel(), sort=True)
    ends = pd.DataFrame(np.sort(codes.reshape(-1, 2), axis=1), columns=["i", "j"])
    edges = ends[ends.i != ends.j].drop_duplicates().sort_values(["i", "j"])
    return {"read": time.perf_counter() - started, "split": 0.0, "edges": len(edges)}


CONTENDERS: dict[str, Callable[[Path], dict[str, float]]] = {"ours": ours, "pandas": pandas}


def measure(name: str, path: Path) -> None:
    """Run one contender in this process, and print what it took as JSON."""
    before, found = peak_bytes(), CONTENDERS[name](path)
    print(json.dumps(found | {"bytes": peak_bytes() - before}))


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Reading links, against pandas.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
        return
    print(describe_machine())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "links.csv"
        write_links(path, options.rows)
        print(f"{options.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB of csv", flush=True)
        results: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
        for _ in range(options.rounds):
            for name, found in results.items():
                command = [sys.executable, __file__, "--measure", name, str(path)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this script
                found.append(json.loads(done.stdout))
    if len({result["edges"] for found in results.values() for result in found}) > 1:
        raise SystemExit("The contenders do not find the same edges.")
    median = {
        name: {key: statistics.median(result[key] for result in found) for key in found[0]}
        for name, found in results.items()
    }
    for name, values in median.items():
        split = f", split {values['split']:.2f} s" if values["split"] else ""
        memory = f"peak {values['bytes'] / 1e9:.2f} GB"
        print(f"{name}: read {values['read']:.2f} s{split}, {memory}, {values['edges']:,.0f} edges")
    mine, rival = median["ours"], median["pandas"]
    print(f"reading takes {mine['read'] / rival['read']:.2f}× the time of pandas", end="")
    print(f" and {mine['bytes'] / rival['bytes']:.2f}× its memory")


if __name__ == "__main__":
    main()
