"""The part of the site that is made from the code: reference pages, worked examples, formulas and diagrams.

Pages are written before Sphinx reads its sources, and only where they have changed. They are not kept under version
control: what they say is in docstrings, in the fields of options, in the command and in the notebooks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgae_site.api import api_pages
from vgae_site.commands import command_pages
from vgae_site.notebooks import example_pages
from vgae_site.parts import part_pages
from vgae_site.project import project_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[3]
GENERATED = (
    "reference/api",
    "reference/commands",
    "reference/parts",
    "examples",
    "project",
)  # folders that hold nothing else


def generated_pages() -> dict[str, str | bytes]:
    """Every page and picture that is made from the code, by its path below docs/."""
    made = {**api_pages(), **command_pages(), **part_pages()}
    return {**made, **example_pages(ROOT / "examples"), **project_pages(ROOT)}


def write_pages(docs: Path) -> None:
    """Write the pages that have changed, and remove those that there is no longer anything to tell about."""
    pages = {docs / path: content for path, content in generated_pages().items()}
    for path, content in pages.items():
        data = content if isinstance(content, bytes) else content.encode()
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for folder in GENERATED:
        for path in (docs / folder).rglob("*"):
            if path.is_file() and path not in pages:
                path.unlink()


def _before_reading(app: Sphinx) -> None:
    write_pages(Path(app.srcdir))


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("builder-inited", _before_reading)
    app.setup_extension("vgae_site.formulas")
    app.setup_extension("vgae_site.flowchart")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
