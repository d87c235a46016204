"""Pages of the project that stand beside docs/: how to contribute, what has changed, and the like."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = "project"
FILES = ("CONTRIBUTING", "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT")  # those that are there, in this order
_LINK = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>[\w][\w./-]*)(?P<place>#[\w-]*)?\)")  # to a file of the source


def project_pages(root: Path) -> dict[str, str | bytes]:
    """A page for each of the files, and the list of them."""
    found = [name for name in FILES if (root / f"{name}.md").exists()]
    pages: dict[str, str | bytes] = {}
    for name in found:
        text = (root / f"{name}.md").read_text()
        pages[f"{FOLDER}/{_page(name)}"] = _LINK.sub(lambda link: _as_on_the_site(link, found), text)
    names = "\n".join(_page(name) for name in found)
    pages[f"{FOLDER}/index.md"] = f"# The project\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n"
    return pages


def _page(name: str) -> str:
    return f"{name.lower().replace('_', '-')}.md"


def _as_on_the_site(link: re.Match[str], found: list[str]) -> str:
    """A link to a page of docs/ or to one of the files leads there; to anything else it becomes text."""
    words, target, place = link["words"], Path(link["target"]), link["place"] or ""
    if target.parts[0] == "docs" and target.suffix == ".md":
        return f"[{words}](../{target.relative_to('docs')}{place})"
    if target.stem in found:
        return f"[{words}]({_page(target.stem)}{place})"
    return words
