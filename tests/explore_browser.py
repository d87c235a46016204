"""A browser for the tests of the explorer: Chromium of the system, driven by Playwright, drawing in software."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vgae

FLAGS = ["--enable-unsafe-swiftshader", "--use-angle=swiftshader"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


HOSTILE = [
    "<script>document.title='run'</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\", 'twice' & <b>bold</b>",
    "\u202egnippilf \u05e9\u05dc\u05d5\u05dd",
    "👩‍👩‍👧‍👦 family",
    "=HYPERLINK(1)",
    "x" * 10_000,
    "line\nbreak\ttab \u2028 \\u0000 ]]> <!-- {{sections}}",
]


def fitted(**options: Any) -> Any:
    """A small model with validation links, words as features, and hostile ids and labels."""
    graph = vgae.stochastic_block_model(160, 4, feature_dim=40, seed=1)
    ids = [*HOSTILE, *(f"node {i}" for i in range(len(HOSTILE), 160))]
    labels = [HOSTILE[0] if label == 0 else f"class {label}" for label in graph.labels.tolist()]  # type: ignore[union-attr]
    graph = vgae.Graph(
        num_nodes=160,
        edges=graph.edges,
        features=graph.features,
        labels=np.array(labels),
        node_ids=np.array(ids, object),
    )
    split = vgae.split_links(graph, val=0.1, test=0.1, seed=0)
    model = vgae.VGAE(**{"iterations": 60, "latent_dim": 8, "hidden_dim": 16, "seed": 0} | options)
    return model.fit(split.train, validation=split.val)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser; where none can be had, the test is skipped and says why."""
    try:
        playwright = import_module("playwright.sync_api")
    except ImportError:
        pytest.skip("no browser: Playwright is not installed (pip install playwright)")
    path = next((found for found in map(shutil.which, NAMES) if found), None)
    if path is None:
        pytest.skip("no browser: Chromium is not installed (apt-get install chromium)")
    flags = [*FLAGS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else FLAGS
    with playwright.sync_playwright() as driver:
        try:
            launched = driver.chromium.launch(executable_path=path, args=flags)
        except playwright.Error as error:
            pytest.skip(f"no browser: {path} does not start ({str(error).splitlines()[0]})")
        yield launched
        launched.close()


class Opened:
    """A page in a browser, with what it has asked for and complained about."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce", **context)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body:not(.loading)", timeout=20_000)

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def ask(self, script: str, given: Any = None) -> Any:
        """What a script in the page gives back."""
        return self.page.evaluate(script, given)

    def text(self, selector: str) -> str:
        """The text of an element, as it is read."""
        return str(self.page.inner_text(selector))

    def at(self, node: int) -> tuple[float, float]:
        """The pixel of a node."""
        x, y = self.ask("i => vgae.screen(i)", node)
        return x, y
