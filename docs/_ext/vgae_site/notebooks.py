"""The notebooks of examples/ as pages: their text, their code, and the outputs that are stored in them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vgae_site.markdown import fenced

FOLDER = "examples"
_LINK = re.compile(
    r"(?<!!)\[(?P<words>[^\]]*)\]\((?P<target>[\w][\w./-]*)\)"
)  # beside the notebook: no address, no ../
PICTURES = {"image/png": "png", "image/svg+xml": "svg", "image/jpeg": "jpg"}


def example_pages(folder: Path) -> dict[str, str | bytes]:
    """A page for each notebook with its pictures, and the list of them."""
    pages: dict[str, str | bytes] = {}
    names = []
    for path in sorted(folder.glob("*.ipynb")):
        names.append(path.stem)
        pages |= _pages_of(path)
    pages[f"{FOLDER}/index.md"] = (
        "# Worked examples\n\nNotebooks on real graphs, with their outputs. Each ends in predictions that you can "
        "judge. The files are in the folder `examples/` of the source, and the test suite runs them.\n\n"
        "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n"
    )
    return pages


def _pages_of(path: Path) -> dict[str, str | bytes]:
    notebook = json.loads(path.read_text())
    pictures: dict[str, str | bytes] = {}
    parts: list[str] = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(_LINK.sub(_as_on_the_site, text.replace("](../docs/", "](../")))
        elif cell["cell_type"] == "code" and text.strip():
            parts.append(fenced(_without_magic(text), "python"))
            for output in cell["outputs"]:
                parts += _output(output, path.stem, pictures)
    return {f"{FOLDER}/{path.stem}.md": "\n\n".join(parts) + "\n", **pictures}


def _as_on_the_site(link: re.Match[str]) -> str:
    """A link beside the notebook: to another one it is kept, and to what is only in the source it becomes text."""
    words, target = link["words"], Path(link["target"])
    return f"[{words}]({target.with_suffix('.md')})" if target.suffix == ".ipynb" else words


def _without_magic(text: str) -> str:
    """Code without the lines that only notebooks know."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("%"))


def _output(output: dict[str, Any], name: str, pictures: dict[str, str | bytes]) -> Iterator[str]:
    """What a cell has printed or drawn; of a table the text, which needs no style of its own."""
    data = output.get("data", {})
    kind = next((kind for kind in PICTURES if kind in data), None)
    if kind is not None:
        content = "".join(data[kind])
        file = f"{name}-{len(pictures) + 1}.{PICTURES[kind]}"
        pictures[f"{FOLDER}/{file}"] = content if kind == "image/svg+xml" else base64.b64decode(content)
        yield f"![What the cell above draws]({file})"
        return
    text = "".join(output.get("text", data.get("text/plain", "")))
    if text.strip():
        yield fenced(text, "text")
