"""The page of `vgae explore`: its size, the time to make, open and draw it, and whether it computes as Python does.

Three models, each trained here: Cora with features and labels; a table of links without features; and a random graph of
blocks with 100,000 nodes, half a million links and words as features. Every page is opened in a headless Chromium that
draws in software, without a graphics card, and asked for probabilities and for the ten best new links of 50 nodes.

    python benchmarks/explorer.py [--only cora csv large] [--nodes 100000] [--iterations 60] [--folder DIR]
                                  [--chromium PATH] [--pictures docs/images]

--folder keeps runs and pages, and takes runs that are there. A frame is the median of 15, in a window of 1440×900.
--pictures takes the pictures of the documentation from the page of Cora.
"""

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import vgae
from vgae.machine import describe_machine
from vgae.report.console import print_table

FLAGS = ["--enable-unsafe-swiftshader", "--use-angle=swiftshader", "--no-sandbox"]
LIMITS = {"cora": 2.0, "csv": 0.5, "large": 25.0}  # MB
NODES, TOP = 50, 10
PAPER = "341188"  # on reinforcement learning, for a picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(LIMITS), default=tuple(LIMITS))
    parser.add_argument("--nodes", type=int, default=100_000, help="Of the large graph.")
    parser.add_argument("--iterations", type=int, default=60, help="Of the training on it.")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="vgae-explorer-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(describe_machine())
    rows = []
    for case in options.only:
        run = folder / case
        if not run.exists():
            train(case, run, options)
        seconds = make(run)
        rows.append((case, *measure(run, seconds, LIMITS[case], options.chromium)))
        if case == "cora" and options.pictures:
            take_pictures(run.with_suffix(".html"), options.pictures, options.chromium)
    columns = ("page", "nodes", "made in", "size", "limit", "opens in", "frame", "worst p", "same ten best")
    print_table(columns, rows)


def train(case: str, run: Path, options: argparse.Namespace) -> None:
    """A run of the case, by the command where there is a file for it."""
    if case == "cora":
        command("train", "cora", "--out", str(run))
    elif case == "csv":
        table = run.with_suffix(".csv")
        graph = vgae.stochastic_block_model(2_000, 8, degree_within=7, degree_between=1, seed=0)
        lines = [f"person {i},person {j}" for i, j in graph.edges.tolist()]
        table.write_text("\n".join(["from,to", *lines]) + "\n")
        command("train", str(table), "--out", str(run))
    else:
        graph = vgae.stochastic_block_model(options.nodes, 12, feature_dim=1_200, seed=0)
        split = vgae.split_links(graph, val=0.05, test=0.1, seed=0)
        model = vgae.VGAE(objective="sampled", iterations=options.iterations, seed=0)
        model.fit(split.train, validation=split.val).save(run, split=split)


def make(run: Path) -> float:
    """The page of a run, by the command, and the seconds that it took."""
    begun = time.perf_counter()
    command("explore", str(run), "--out", str(run.with_suffix(".html")))
    return time.perf_counter() - begun


def command(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "vgae", *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def measure(run: Path, seconds: float, limit: float, chromium: str) -> tuple[str, ...]:
    """What a browser says about a page."""
    path, model = run.with_suffix(".html"), vgae.load(run)
    generator = np.random.default_rng(0)
    num_nodes = model.graph_.num_nodes
    nodes = generator.choice(num_nodes, size=min(NODES, num_nodes), replace=False)
    pairs = generator.integers(num_nodes, size=(2_000, 2))
    best = model.recommend(TOP, nodes)
    pairs = np.concatenate([pairs[pairs[:, 0] != pairs[:, 1]], best.pairs])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        begun = time.perf_counter()
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("body:not(.loading)", timeout=120_000)
        opened = time.perf_counter() - begun
        page.wait_for_timeout(500)
        frames = [page.evaluate("vgae.frame()") for _ in range(15)]
        found = page.evaluate("pairs => pairs.map(([i, j]) => vgae.probability(i, j))", pairs.tolist())
        ranked = page.evaluate(
            f"nodes => nodes.map(i => vgae.predict(i, {{most: {TOP}}}).map(b => b.node))", nodes.tolist()
        )
        browser.close()
    worst = float(np.abs(np.array(found) - model.predict_proba(pairs)).max())
    same = sum(row == each for row, each in zip(ranked, by_node(best, nodes), strict=True))
    return (
        f"{num_nodes:,}",
        f"{seconds:.0f} s",
        f"{path.stat().st_size / 1e6:.2f} MB",
        f"{limit} MB",
        f"{opened:.1f} s",
        f"{median(frames):.0f} ms",
        f"{worst:.1e}",
        f"{same} of {len(nodes)}",
    )


def take_pictures(path: Path, folder: Path, chromium: str) -> None:
    """The whole map in the light theme, and a chosen paper with its known and predicted links in the dark one."""
    pictures: tuple[tuple[str, Literal["light", "dark"]], ...] = (("explorer-map", "light"), ("explorer-node", "dark"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, scheme in pictures:
            page = browser.new_page(
                viewport={"width": 1440, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
            )
            page.goto(path.resolve().as_uri())
            page.wait_for_selector("body:not(.loading)")
            if scheme == "dark":
                page.evaluate("id => vgae.choose(vgae.ids.indexOf(id))", PAPER)
            page.wait_for_timeout(1_000)
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.save(folder / f"{name}.webp", lossless=True, quality=100, method=6)
        browser.close()


def by_node(best: Any, nodes: Sequence[int]) -> list[list[int]]:
    return [best.pairs[best.pairs[:, 0] == node, 1].tolist() for node in nodes]


if __name__ == "__main__":
    main()
