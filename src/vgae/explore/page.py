"""The page itself: its template, style and script in one file, with the sections of a subject.

Nothing in it asks for anything from anywhere. A Content-Security-Policy, which the browser enforces, allows the one
script and the one style by their hashes, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from pathlib import Path

from vgae.explore.pack import Pack
from vgae.explore.subject import Subject
from vgae.io.exports import writing
from vgae.visible import visible

# The script, in the order in which its parts build on each other.
SCRIPTS = (
    "words.js",
    "data.js",
    "scores.js",
    "evidence.js",
    "colours.js",
    "shaders.js",
    "camera.js",
    "scene.js",
    "overlay.js",
    "elements.js",
    "state.js",
    "legend.js",
    "search.js",
    "node_panel.js",
    "pair_panel.js",
    "lists.js",
    "pointer.js",
    "main.js",
)
STYLES = ("theme.css", "layout.css", "panels.css")


def write_page(subject: Subject, path: Path) -> int:
    """Write the page of a subject; the size of the file in bytes."""
    content = page_of(subject.packed(), subject.title).encode("utf-8", "replace")
    with writing(path) as file:
        file.write(content)
    return len(content)


def page_of(pack: Pack, title: str) -> str:
    """The page with these sections."""
    style, script = _joined(STYLES), "(() => {\n'use strict';\n" + _joined(SCRIPTS) + "})();\n"
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    sections = "\n".join(
        f'<script type="application/octet-stream" class="section" data-name="{name}" data-kind="{kind}">'
        f"{pack.contents[name]}</script>"
        for name, kind in pack.kinds.items()
    )
    parts = {
        "policy": policy,
        "title": html.escape(visible(title)),
        "style": style,
        "sections": sections,
        "script": script,
    }
    pieces = _read("template.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _joined(names: tuple[str, ...]) -> str:
    """The files one after another, without indentation and lines that only comment."""
    lines = (line.strip() for name in names for line in _read(name).splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith(("// ", "/** ")))


@cache
def _read(name: str) -> str:
    text = files("vgae.explore").joinpath("web", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")
