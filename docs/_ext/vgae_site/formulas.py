"""Formulas as pictures in the page itself (SVG), set when the site is built: no script, no network."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from docutils import nodes
from ziamath.zmath import Latex

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SIZE = 18.0  # pixels of a letter while it is drawn; pages scale it with their text
TALLEST = 8.0  # lines; brackets around some sums have no end
NAME = "svg"


def drawn(latex: str, *, inline: bool) -> str:
    """A formula as SVG, as large as the text around it and in its colour; its source is what a screen reader reads."""
    formula = Latex(latex, size=SIZE, inline=inline, color="currentColor")
    svg = formula.svgxml()
    _, top, width, height = (float(number) / SIZE for number in svg.get("viewBox", "").split())
    if height > TALLEST:
        raise ValueError(f"{latex!r} cannot be set: it would be {height:.0f} lines high; write it in another way.")
    svg.set("width", f"{width:.3f}em")
    svg.set("height", f"{height:.3f}em")
    svg.set("style", f"vertical-align: {-(top + height):.3f}em")
    svg.set("role", "img")
    svg.set("aria-label", latex)
    return ElementTree.tostring(svg, encoding="unicode")


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="formula">{drawn(node.astext(), inline=True)}</span>')
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    rows = [row for row in node.astext().strip().split(r"\\") if row.strip()]
    pictures = "".join(f"<div>{drawn(row.strip(), inline=False)}</div>" for row in rows)
    label = f' id="{escape(node["ids"][0])}"' if node.get("ids") else ""
    translator.body.append(f'<div class="formula-block"{label}>{pictures}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Make it the way in which pages show formulas."""
    app.add_html_math_renderer(NAME, (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
