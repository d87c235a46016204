"""A folder of links read by several processes: what each holds and takes beside one process that reads all of it.

An R-MAT graph of N nodes with ten links each, its rows in any order and direction, ids as text, in 16 Parquet files.
With --features, a table of nodes in as many files has so many columns of numbers, in another order.
One process reads the folder and splits its links; 2 and 4 processes do it together, each with its part, and lay out the
links of their own nodes. Told are, of the process that has most: the links that it holds; the growth of its memory when
all is done, and at the peak; and its core-seconds.

    python benchmarks/reading_parts.py [--nodes 300000] [--processes 1 2 4] [--features 0]
"""

import os

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import tempfile
import time
from ctypes import CDLL
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch
import torch.distributed as dist

from vgae.graph.split import split_links
from vgae.graph.synthetic import rmat
from vgae.io.options import LinkOptions
from vgae.io.tables import read_graph
from vgae.machine import describe_machine
from vgae.parallel.group import Group
from vgae.parallel.reading import NodeFiles, read_graph_in_parts
from vgae.parallel.shards import Shards
from vgae.parallel.splitting import split_in_parts

FILES = 16


@dataclass(frozen=True)
class Told:
    """What a process tells."""

    links: int
    held: int  # bytes
    peak: int
    seconds: float
    content_hash: str


def write(folder: Path, num_nodes: int) -> None:
    """The links of a graph, in any order, in files."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    edges = generator.permutation(rmat(num_nodes, 10 * num_nodes, seed=0).edges)
    turned = generator.random(len(edges)) < 0.5
    edges[turned] = edges[turned, ::-1]
    for number, rows in enumerate(np.array_split(edges, FILES)):
        source, target = ([f"node-{end:x}" for end in ends] for ends in rows.T)
        columns = {"source": source, "target": target}
        pa.parquet.write_table(pa.table(columns), folder / f"part-{number:02}.parquet")


def write_nodes(folder: Path, links: Path, num_features: int) -> None:
    """Numbers for the nodes of a folder of links, in files."""
    folder.mkdir()
    ends = pa.parquet.read_table(links)
    ids = np.unique(np.concatenate([ends["source"].to_numpy(), ends["target"].to_numpy()]))
    generator = np.random.default_rng(1)
    for number, rows in enumerate(np.array_split(generator.permutation(ids), FILES)):
        columns = {f"x{column}": generator.normal(size=len(rows)) for column in range(num_features)}
        pa.parquet.write_table(pa.table({"node": rows} | columns), folder / f"part-{number:02}.parquet")


def read(group: Group | None, folder: Path) -> Told:
    """Read and split the graph, or a part of it."""
    nodes = folder.with_name(f"{folder.name}-nodes")
    features = nodes if nodes.exists() else None
    trim()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    before, started = _status("VmRSS"), time.process_time()
    kept: Any
    if group is None:
        kept = split_links(read_graph(folder, features=features))
        links = kept.train.num_edges
    else:
        found_part = read_graph_in_parts(group, folder, LinkOptions(), NodeFiles(features))
        if found_part is None:
            raise TypeError("It was not read in parts.")
        part = found_part.graph
        del found_part
        split: Any = split_in_parts(part, val=0.05, test=0.1, seed=0)
        shards = Shards.balanced(1 + split.train.degrees(), group.size, group.rank)
        own = split.train.on(shards)
        kept, links = (split.val, split.test, own), len(own.edges)
        del part, split
    seconds = time.process_time() - started
    trim()
    found = kept.train if group is None else kept[2]
    return Told(links, _status("VmRSS") - before, _status("VmHWM") - before, seconds, found.content_hash)


def trim() -> None:
    """Give back what was freed, so that what is left is what is held."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    CDLL("libc.so.6").malloc_trim(0)


def _status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])


def serve(pipe: Connection, rank: int, size: int, meeting: str, small: Path, folder: Path) -> None:
    """A process that reads."""
    torch.set_num_threads(1)
    group = None
    if size > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
        group = Group("cpu")
    read(group, small)  # loads whatever there is to load
    pipe.send(read(group, folder))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--features", type=int, default=0)
    asked = parser.parse_args()
    print(f"{describe_machine()}; {os.getloadavg()[0]:.1f} processes wait for a core")
    print(f"{asked.nodes:,} nodes, {asked.features} features")
    print("| processes | links held | memory held, MB | peak, MB | core-seconds |\n|---|---|---|---|---|")
    context, hashes = get_context("spawn"), set()
    with tempfile.TemporaryDirectory() as place:
        small, folder = Path(place) / "small", Path(place) / "links"
        write(small, 1000)
        write(folder, asked.nodes)
        for links in (small, folder) if asked.features else ():
            write_nodes(links.with_name(f"{links.name}-nodes"), links, asked.features)
        for size in asked.processes:
            pipes = []
            for rank in range(size):
                ours, theirs = context.Pipe()
                given = theirs, rank, size, f"{place}/meeting-{size}", small, folder
                context.Process(target=serve, args=given, daemon=True).start()
                pipes.append(ours)
            found: list[Told] = [pipe.recv() for pipe in pipes]
            hashes |= {each.content_hash for each in found}
            most = [max(getattr(each, name) for each in found) for name in ("links", "held", "peak", "seconds")]
            print(f"| {size} | {most[0]:,} | {most[1] / 1e6:.0f} | {most[2] / 1e6:.0f} | {most[3]:.1f} |", flush=True)
    print("All have read the same graph." if len(hashes) == 1 else "THE GRAPHS DIFFER.")


if __name__ == "__main__":
    main()
