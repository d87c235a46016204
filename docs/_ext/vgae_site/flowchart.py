"""Flow charts as SVG in the page: the part of Mermaid's language that our pages use, laid out when the site is built.

A chart is laid out in layers. A node lies below everything that leads to it; nodes of a layer are ordered so that few
lines cross, by the mean place of their neighbours; a line that passes a layer has a place of its own in it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LANGUAGE = "mermaid"
ROUNDS = 24
LETTER, LINE, PADDING, GAP, LAYER_GAP = 6.9, 17.0, 14.0, 22.0, 46.0
_NODE = re.compile(r'(?P<name>\w+)(?:\["(?P<label>[^"]*)"\])?')
_ARROW = re.compile(r'\s*--(?:\s*"(?P<words>[^"]*)"\s*--)?>\s*')


@dataclass
class Box:
    """A node of the chart, or the place of a line in a layer that it passes."""

    name: str
    lines: tuple[str, ...] = ()
    layer: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Pixels, by the number of letters."""
        return max((len(line) for line in self.lines), default=0) * LETTER + 2 * PADDING if self.lines else 8.0

    @property
    def height(self) -> float:
        """Pixels, by the number of lines."""
        return len(self.lines) * LINE + PADDING


@dataclass
class Chart:
    """Nodes by name, and lines with their words."""

    boxes: dict[str, Box] = field(default_factory=dict)
    lines: list[tuple[str, str, str]] = field(default_factory=list)


def parse(text: str) -> Chart:
    """The chart that is written in Mermaid's language; what is not understood is an error."""
    first, *rows = [row.strip() for row in text.strip().splitlines() if row.strip()]
    if first != "flowchart TD":
        raise ValueError(f"{first!r}: only charts that begin with 'flowchart TD' can be drawn.")
    chart = Chart()
    for row in rows:
        ends, words, place = [], [], 0
        while True:
            found = _ARROW.search(row, place)
            ends.append(
                [_box(chart, part.strip()) for part in row[place : found.start() if found else None].split("&")]
            )
            if found is None:
                break
            words.append(found["words"] or "")
            place = found.end()
        for before, after, said in zip(ends[:-1], ends[1:], words, strict=True):
            chart.lines += [(one, other, said) for one in before for other in after]
    return chart


def _box(chart: Chart, text: str) -> str:
    found = _NODE.fullmatch(text)
    if found is None:
        raise ValueError(f'{text!r}: a node is written as name or name["label"].')
    box = chart.boxes.setdefault(found["name"], Box(found["name"], (found["name"],)))
    if found["label"] is not None:
        box.lines = tuple(found["label"].split("<br>"))
    return found["name"]


def laid_out(chart: Chart) -> tuple[list[Box], list[tuple[list[Box], str]]]:
    """The boxes with their places, and the lines as the boxes that they go through."""
    _set_layers(chart)
    layers: dict[int, list[Box]] = defaultdict(list)
    for box in chart.boxes.values():
        layers[box.layer].append(box)
    paths = []
    for one, other, words in chart.lines:
        start, end = chart.boxes[one], chart.boxes[other]
        between = [Box(f"{one}-{other}-{layer}", layer=layer) for layer in range(start.layer + 1, end.layer)]
        for box in between:
            layers[box.layer].append(box)
        paths.append(([start, *between, end], words))
    near: dict[str, dict[int, list[Box]]] = defaultdict(lambda: defaultdict(list))
    for path, _ in paths:
        for above, below in pairwise(path):
            near[below.name][-1].append(above)
            near[above.name][+1].append(below)
    for boxes in layers.values():
        _spread(boxes)
    for turn in range(ROUNDS):
        order = sorted(layers, reverse=bool(turn % 2))
        for layer in order:
            _settle(layers[layer], near, -1 if turn % 2 == 0 else +1)
    for layer in sorted(layers):
        _settle(layers[layer], near, 0)
    y = 0.0
    for layer in sorted(layers):
        tallest = max(box.height for box in layers[layer])
        for box in layers[layer]:
            box.y = y + tallest / 2
        y += tallest + LAYER_GAP
    return list(chart.boxes.values()), paths


def _set_layers(chart: Chart) -> None:
    """A node is one layer below the lowest that leads to it; one that nothing leads to, just above what it leads to."""
    leads = defaultdict(list)
    for one, other, _ in chart.lines:
        leads[other].append(one)
    for _ in chart.boxes:
        for name, box in chart.boxes.items():
            box.layer = max((chart.boxes[above].layer + 1 for above in leads[name]), default=0)
    for name, box in chart.boxes.items():
        below = [chart.boxes[other].layer for one, other, _ in chart.lines if one == name]
        if not leads[name] and below:
            box.layer = min(below) - 1
    first = min(box.layer for box in chart.boxes.values())
    for box in chart.boxes.values():
        box.layer -= first


def _spread(boxes: list[Box]) -> None:
    """Put boxes side by side in their order, as near to where they are as they fit."""
    place = 0.0
    for box in boxes:
        box.x = place + box.width / 2
        place += box.width + GAP
    for box in boxes:
        box.x -= (place - GAP) / 2


def _settle(boxes: list[Box], near: dict[str, dict[int, list[Box]]], side: int) -> None:
    """Move boxes to the mean place of their neighbours on one side (0: on both), and apart where they overlap."""

    def wish(box: Box) -> float:
        others = near[box.name][side] if side else near[box.name][-1] + near[box.name][+1]
        return sum(each.x for each in others) / len(others) if others else box.x

    wishes = {box.name: wish(box) for box in boxes}
    boxes.sort(key=lambda box: wishes[box.name])
    groups: list[list[Box]] = []
    for box in boxes:  # boxes that would overlap become one group, which is placed by the mean of its wishes
        groups.append([box])
        while len(groups) > 1 and _start(groups[-1], wishes) < _end(groups[-2], wishes) + GAP:
            groups[-2:] = [groups[-2] + groups[-1]]
    for group in groups:
        place = _start(group, wishes)
        for box in group:
            box.x = place + box.width / 2
            place += box.width + GAP


def _extent(group: list[Box]) -> float:
    return sum(box.width for box in group) + GAP * (len(group) - 1)


def _start(group: list[Box], wishes: dict[str, float]) -> float:
    """Where a group begins, if the mean of its boxes' wishes is met."""
    place, total = 0.0, 0.0
    for box in group:
        total += wishes[box.name] - (place + box.width / 2)
        place += box.width + GAP
    return total / len(group)


def _end(group: list[Box], wishes: dict[str, float]) -> float:
    return _start(group, wishes) + _extent(group)


def drawn(text: str) -> str:
    """The chart as SVG, in the colours of the page."""
    boxes, paths = laid_out(parse(text))
    left = min(box.x - box.width / 2 for box in boxes) - 8
    right = max(box.x + box.width / 2 for box in boxes) + 8
    bottom = max(box.y + box.height / 2 for box in boxes) + 8
    parts = [
        f'<svg viewBox="{left:.0f} -8 {right - left:.0f} {bottom + 8:.0f}" class="flowchart" role="img" '
        f'aria-label="{escape(described(text))}" style="max-width: {right - left:.0f}px">',
        '<defs><marker id="flowchart-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for path, words in paths:
        parts.append(f'<path class="line" d="{_curve(path)}" marker-end="url(#flowchart-head)"/>')
        if words:
            x, y = (path[0].x + path[1].x) / 2, (path[0].y + path[0].height / 2 + path[1].y - path[1].height / 2) / 2
            parts.append(f'<text class="words" x="{x:.1f}" y="{y + 4:.1f}">{escape(words)}</text>')
    for box in boxes:
        x, y = box.x - box.width / 2, box.y - box.height / 2
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7"/>')
        for number, line in enumerate(box.lines):
            at = y + PADDING / 2 + LINE * (number + 0.75)
            name = ' class="name"' if number == 0 else ""
            parts.append(f'<text{name} x="{box.x:.1f}" y="{at:.1f}">{escape(line)}</text>')
    return "".join((*parts, "</svg>"))


def _curve(path: list[Box]) -> str:
    """A smooth line from the lower edge of the first box to the upper edge of the last."""
    points = [(path[0].x, path[0].y + path[0].height / 2)]
    points += [(box.x, box.y) for box in path[1:-1]]
    points.append((path[-1].x, path[-1].y - path[-1].height / 2))
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        text += f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    return text


def described(text: str) -> str:
    """The chart in words, for those who cannot see it."""
    chart = parse(text)
    label = {name: box.lines[0] for name, box in chart.boxes.items()}
    return "; ".join(f"{label[one]} leads to {label[other]}" for one, other, _ in chart.lines)


def _replace(app: Sphinx, doctree: nodes.document) -> None:
    del app
    for block in list(doctree.findall(nodes.literal_block)):
        if block.get("language") == LANGUAGE:
            figure = f'<div class="flowchart-frame">{drawn(block.astext())}</div>'
            block.replace_self(nodes.raw("", figure, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw every block of code in that language."""
    app.connect("doctree-read", _replace)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
