"""Tables of links, nodes and pairs: what was written is what is read, and what has gone wrong is read or refused."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuzzing.case import Case, WrongResultError, differing
from fuzzing.layout import (
    DELIMITERS,
    FRONT,
    OTHERS,
    REMARKS,
    SUFFIXES,
    USUAL,
    Layout,
    line_end_for,
    pack,
    parquet,
    size_unpacked,
    some_options,
)
from fuzzing.made import (
    Column,
    MadeGraph,
    dense_features,
    links_of,
    make_columns,
    make_graph,
    require_same_values,
    require_same_weights,
    require_sound,
    stripped,
)
from fuzzing.mutate import mutate
from vgae.graph.graph import Graph
from vgae.io.tables import LoadedGraph, read_any, read_pairs

WEIGHT, LABEL, ID = "w", "class", "id"


def tables(case: Case) -> None:
    """A table of links as some program writes it, read; then the same gone wrong."""
    random = case.random
    made = make_graph(random)
    if random.random() < 0.2:
        _links_in_columns(case, made)
        return
    layout, rows, surely = _links_layout(case, made)
    content = random.choice(FRONT) + layout.text(rows)
    name, packed = pack(case, "links" + random.choice(SUFFIXES), content)
    path = case.write(name, packed, unpacked=len(content))
    options = layout.options | ({"directed": True} if made.directed else {})
    loaded = case.attempt(lambda: read_any(path, **options))
    if loaded is None:
        if surely and made.links():
            raise WrongResultError(f"a table that leaves nothing open was refused, with {options}: {case.refusal}")
    else:
        _require_links(made, loaded, layout)
    _read_broken(case, "broken" + path.suffixes[0], content, options)


def nodes(case: Case) -> None:
    """A table of nodes beside one of links, read; then the same gone wrong."""
    random = case.random
    made = make_graph(random, weighted=False)
    ids = random.sample(made.ids, len(made.ids))
    columns, labels = make_columns(random, len(ids)), _labels(case, len(ids))
    names = [ID, *(column.name for column in columns), *([LABEL] if labels else [])]
    fields = [ids, *(column.written for column in columns), *([labels] if labels else [])]
    rows = list(zip(*fields, strict=True))
    links = parquet(random, {"source": [row[0] for row in made.rows], "target": [row[1] for row in made.rows]})
    paths = [case.write("links.parquet", links)]
    options: dict[str, Any] = {"directed": made.directed} | ({"label": LABEL} if labels else {})
    content = b""
    if random.random() < 0.2:
        paths.append(case.write("nodes.parquet", parquet(random, dict(zip(names, map(list, fields), strict=True)))))
    else:
        flat = [field for row in rows for field in row]
        layout = Layout(
            random.choice(DELIMITERS),
            names,
            random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
            line_end_for(random, flat),
            random.sample(REMARKS, random.choice((0, 0, 1, 2))),
        )
        content = random.choice(FRONT) + layout.text(rows)
        name, packed = pack(case, "nodes" + random.choice(SUFFIXES[:3]), content)
        paths.append(case.write(name, packed, unpacked=len(content)))
    loaded = case.attempt(lambda: read_any(paths[0], features=paths[1], **options))
    if loaded is not None:
        _require_links(made, loaded, None)
        _require_nodes(loaded.graph, ids, columns, labels)
    elif not content:
        raise WrongResultError(f"a node table in Parquet was refused: {case.refusal}")
    if content:
        broken = case.write("broken.csv", mutate(content, random))
        options |= {"impute": random.choice((None, "mean", "zero")), "standardise": random.random() < 0.5}
        _read_or_refuse(case, paths[0], options | {"features": broken})


def pairs(case: Case) -> None:
    """Pairs of the nodes of a graph, in a table: each row is found; then the same gone wrong."""
    random = case.random
    made = make_graph(random, weighted=False)
    ids: list[Any] = random.sample(made.ids, len(made.ids))
    rows = [(random.choice(ids), random.choice(ids)) for _ in range(random.choice((1, 2, 10, 50)))]
    place = {name: number for number, name in enumerate(ids)}
    expected = [[place[one], place[two]] for one, two in rows]
    options: dict[str, Any] = {}
    if random.random() < 0.2:
        columns = {"source": [row[0] for row in rows], "target": [row[1] for row in rows]}
        path = case.write("pairs.parquet", parquet(random, columns))
        content, surely = b"", True
    else:
        header = list(random.choice(USUAL)) if random.random() < 0.5 else None
        if header and set(header) <= set(ids):  # then it is a row as good as any
            header = None
        layout = Layout(
            random.choice(DELIMITERS),
            header,
            random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
            line_end_for(random, ids),
            random.sample(REMARKS, random.choice((0, 0, 1))),
        )
        surely = random.random() < 0.4
        options = {"delimiter": layout.delimiter, "header": header is not None} if surely else {}
        content = random.choice(FRONT) + layout.text(rows)
        name, packed = pack(case, "pairs" + random.choice(SUFFIXES[:3]), content)
        path = case.write(name, packed, unpacked=len(content))
    found = case.attempt(lambda: read_pairs(path, ids, **options))
    if found is None:
        if surely:
            raise WrongResultError(f"pairs that leave nothing open were refused, with {options}: {case.refusal}")
    elif found.tolist() != expected:
        raise WrongResultError(f"{len(found)} pairs for {len(expected)} rows: {found.tolist()[:5]}, not {expected[:5]}")
    if content:
        broken = case.write("broken.csv", mutate(content, random))
        options = random.choice((options, some_options(random)))
        options = {name: value for name, value in options.items() if name not in ("weight", "directed")}
        case.attempt(lambda: read_pairs(broken, ids, **options))


# -------------------------------------------------------------------------------------------------------------- writing


def _links_layout(case: Case, made: MadeGraph) -> tuple[Layout, list[list[str]], bool]:
    """A layout, the rows as they are written, and whether nothing is left for the reader to guess."""
    random = case.random
    delimiter = random.choice(DELIMITERS)
    rows = [_padded(case, list(row), delimiter) for row in made.rows]
    names: list[str] | None = list(random.choice((*USUAL, *OTHERS))) if random.random() < 0.7 else None
    options: dict[str, Any] = {}
    if made.weights is not None:
        commas = random.random() < 0.2
        for row, weight in zip(rows, made.weights, strict=True):
            row.append(repr(weight).replace(".", ",") if commas else repr(weight))
        options["weight"] = WEIGHT if names else "3"
        names = names and [*names, WEIGHT]
    else:
        commas = False
    if random.random() < 0.2:
        for row in rows:
            row.append(random.choice(("x", "seen, twice", "2020-01-01", "" if delimiter != " " else "-")))
        names = names and [*names, "note"]
    surely = random.random() < 0.4 and not commas
    if surely:
        options |= {"delimiter": delimiter, "header": names is not None}
        options |= {"source": names[0], "target": names[1]} if names else {"source": "1", "target": "2"}
    if names and random.random() < 0.2:  # as pandas writes its index
        rows = [[str(number), *row] for number, row in enumerate(rows)]
        names = ["", *names]
    layout = Layout(
        delimiter,
        names,
        random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
        line_end_for(random, [field for row in rows for field in row]),
        random.sample(REMARKS, random.choice((0, 0, 0, 1, 2))),
        options,
    )
    return layout, rows, surely


def _padded(case: Case, row: list[str], delimiter: str) -> list[str]:
    """Blanks around ids, now and then, where they do not split columns."""
    if delimiter == " " or case.random.random() < 0.9:
        return row
    return [case.random.choice((" ", "", "  ")) + name + case.random.choice((" ", "")) for name in row]


def _labels(case: Case, num_rows: int) -> list[str]:
    """Classes as they are written; empty if there are to be none."""
    kind = case.random.choice(("none", "numbers", "words", "some"))
    choices = {"none": [], "numbers": ["0", "1", "7"], "words": ["cat", "dog", "1", "ça va"], "some": ["a", "b", ""]}
    return [case.random.choice(choices[kind]) for _ in range(num_rows)] if choices[kind] else []


def _links_in_columns(case: Case, made: MadeGraph) -> None:
    """The same links in Parquet and in a frame; both have to come back."""
    columns: dict[str, list[Any]] = {
        "source": [stripped(row[0]) for row in made.rows],
        "target": [stripped(row[1]) for row in made.rows],
    }
    options: dict[str, Any] = {"directed": made.directed}
    if made.weights is not None:
        columns[WEIGHT], options["weight"] = list(made.weights), WEIGHT
    content = parquet(case.random, columns)
    path = case.write("links.parquet", content)
    loaded = case.attempt(lambda: read_any(path, **options))
    graph = case.attempt(lambda: Graph.from_frame(pa.table(columns), **options))
    if loaded is None or graph is None:
        raise WrongResultError(f"links in typed columns were refused: {case.refusal}")
    for found in (loaded, LoadedGraph(graph)):
        _require_links(made, found, None)
    _read_broken(case, "broken.parquet", content, options)


# -------------------------------------------------------------------------------------------------------------- reading


def _read_broken(case: Case, name: str, content: bytes, options: dict[str, Any]) -> None:
    random = case.random
    broken = mutate(content, random)
    size = len(broken)
    if random.random() < 0.2 and not name.endswith(".parquet"):
        name, broken = name + ".gz", mutate(gzip.compress(broken, mtime=0), random)
        size = size_unpacked(broken)
    path = case.write(name, broken, unpacked=size)
    _read_or_refuse(case, path, random.choice((options, some_options(random))))


def _read_or_refuse(case: Case, path: Path, options: dict[str, Any]) -> None:
    loaded = case.attempt(lambda: read_any(path, **options))
    if loaded is not None:
        require_sound(loaded.graph)


def _require_links(made: MadeGraph, loaded: LoadedGraph, layout: Layout | None) -> None:
    """The links are those that were written; a first row may be a header or a link if that was said in the notes."""
    expected, found = made.links(), links_of(loaded.graph)
    same = found == expected
    if not same and layout is not None and "header" not in layout.options:
        same = found == _as_told(made, loaded, layout)
        if same:
            return
    if not same:
        raise differing(f"links ({'; '.join(loaded.notes)})", expected, found)
    named = {name for row in made.rows for name in row}
    if layout is None:
        named = named & {str(name) for name in (loaded.graph.node_ids if loaded.graph.node_ids is not None else [])}
    names = {str(name) for name in loaded.graph.ids_of(list(range(loaded.graph.num_nodes))).tolist()}
    if not named <= names:
        raise differing("nodes", named, names)
    if loaded.graph.directed != made.directed:
        raise WrongResultError("directions are not those that were asked for")
    if made.weights is not None:
        require_same_weights(made, loaded.graph)


def _as_told(made: MadeGraph, loaded: LoadedGraph, layout: Layout) -> set[frozenset[str]] | None:
    """The links where the reader has said that it takes the first row for what it is not."""
    notes = " ".join(loaded.notes)
    if layout.names is None and "the first row is a header" in notes:
        return made.links(leave_out=1)
    usual = layout.names is not None and tuple(layout.names[:2]) in USUAL
    if layout.names is not None and not usual and "not a header" in notes and layout.names[0]:
        return made.links(more=[(stripped(layout.names[0]), stripped(layout.names[1]))])
    return None


def _require_nodes(graph: Graph, ids: Sequence[str], columns: Sequence[Column], labels: Sequence[str]) -> None:
    features = {name: [value for column in columns for value in column.features[row]] for row, name in enumerate(ids)}
    if {str(name) for name in graph.ids_of(list(range(graph.num_nodes))).tolist()} != set(ids):
        raise WrongResultError("the nodes are not those of the node table")
    require_same_values("features", features, graph, dense_features(graph))
    if labels:
        if graph.labels is None:
            raise WrongResultError("the labels are not there")
        expected = {name: label or "-1" for name, label in zip(ids, labels, strict=True)}
        require_same_values("labels", expected, graph, [str(label) for label in graph.labels.tolist()])
