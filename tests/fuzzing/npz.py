"""Graphs as npz: written and read again, however odd their ids; bytes changed; members of another kind."""

import io
import zipfile
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzzing.case import Case, WrongResultError
from fuzzing.made import make_graph, require_sound
from fuzzing.mutate import mutate
from vgae.graph.graph import Graph
from vgae.io.graphs import read_npz_graph, write_graph

PARTS = (
    "edges", "num_nodes", "features", "feature_data", "feature_indices", "feature_indptr", "num_features", "labels",
    "node_ids", "weights", "directions", "cleaning", "other", "edges.npy", "",
)  # fmt: skip
TYPES = ("i1", "i4", "<i8", ">i8", "u8", "f2", "f4", "f8", "c16", "?", "U3", "S3", "M8[D]", "m8[s]", "i4,f4", "V3")
LABELS: tuple[Any, ...] = ("a", "", -1, 3, 2.5, True, None, "json:1", "é", (1, "b"), "x\0", 10**30)


def npz(case: Case) -> None:
    """A graph is written and read again; then its file goes wrong."""
    random = case.random
    graph = _some_graph(random)
    path = case.folder / "graph.npz"
    write_graph(path, graph)
    content = path.read_bytes()
    case.bytes_given += len(content)
    found = case.attempt(lambda: read_npz_graph(path))
    if found is None:
        raise WrongResultError(f"a graph that was written is refused: {case.refusal}")
    _require_same(graph, found)
    if random.random() < 0.4:
        broken = case.write("broken.npz", mutate(content, random))
        found = case.attempt(lambda: read_npz_graph(broken))
        if found is not None:  # the archive has checksums: bytes change nothing, or the file is refused
            _require_same(graph, found)
    else:
        other = case.write("other.npz", _with_other_members(random, content))
        found = case.attempt(lambda: read_npz_graph(other))
        if found is not None:
            require_sound(found)


def _some_graph(random: Random) -> Graph:
    """A graph with any combination of what a graph can have."""
    made = make_graph(random, random.choice((None, "small numbers", "letters")))
    ids: Any = made.ids
    convert = random.choice((str, str, lambda name: (name, 1), lambda name: name.encode() + b"!", lambda name: name))
    if random.random() < 0.5:
        ids = [convert(name) for name in ids]
    place = {name: number for number, name in enumerate(made.ids)}
    options: dict[str, Any] = {}
    if random.random() < 0.4:
        width = random.randint(1, 5)
        dense = np.array([[random.choice((0, 0, 1, 2.5, -1e-9)) for _ in range(width)] for _ in ids], dtype=np.float32)
        options["features"] = sp.csr_array(dense) if random.random() < 0.5 else dense
    if random.random() < 0.4:
        kinds = random.sample(LABELS, random.randint(1, 3))
        options["labels"] = [random.choice(kinds) for _ in ids]
    rows = [(place[one], place[two]) for one, two in made.rows if one != two]
    weights = made.weights and [w for w, (one, two) in zip(made.weights, made.rows, strict=True) if one != two]
    plain = Graph.from_edges(rows, num_nodes=len(ids), weights=weights, directed=made.directed, **options)
    if random.random() < 0.2:
        return plain
    mixed = random.random() < 0.5 and not isinstance(ids[0], bytes)
    node_ids = np.fromiter(ids, dtype=object, count=len(ids)) if mixed else ids
    return Graph(
        plain.num_nodes,
        plain.edges,
        plain.features,
        plain.labels,
        node_ids,
        plain.cleaning,
        plain.weights,
        plain.directions,
    )


def _require_same(graph: Graph, found: Graph) -> None:
    if found.content_hash != graph.content_hash:
        raise WrongResultError(f"{found} was read where {graph} was written")
    for words, one, two in (("node_ids", graph.node_ids, found.node_ids), ("labels", graph.labels, found.labels)):
        given, read = (None if values is None else values.tolist() for values in (one, two))
        if given != read or repr(given) != repr(read):
            raise WrongResultError(f"{words} {read!r:.300} were read where {given!r:.300} were written")
    if graph.cleaning != found.cleaning:
        raise WrongResultError("what was merged and dropped is not told as it was")


def _with_other_members(random: Random, content: bytes) -> bytes:
    """The archive with members of another type, shape or name, packed or stored."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    for _ in range(random.choice((1, 1, 2, 3))):
        if random.random() < 0.2 and len(arrays) > 1:
            del arrays[random.choice(list(arrays))]
        else:
            arrays[random.choice(PARTS)] = _some_array(random)
    out, packing = io.BytesIO(), random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(out, "w", packing) as made:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=True)
            value = member.getvalue()
            made.writestr(name + ".npy", mutate(value, random) if random.random() < 0.2 else value)
    return out.getvalue()


def _some_array(random: Random) -> Any:
    if random.random() < 0.05:
        return np.array([{"a": 1}], dtype=object)
    shape = random.choice(((), (1,), (3,), (5, 2), (2, 2), (0, 2), (4, 1), (2, 2, 2), (40,), (3, 7)))
    values = np.array([random.choice((0, 1, 2, 5, -1, 40, 127)) for _ in range(int(np.prod(shape)))], dtype="i8")
    name = random.choice(TYPES)
    if name == "f8" and random.random() < 0.5:
        return np.full(shape, random.choice((np.nan, np.inf, -np.inf, 1e300, 0.5)))
    if name == "<i8" and random.random() < 0.5:
        return np.full(shape, random.choice((2**62, -(2**62), 10**9, 10**7)))
    return values.reshape(shape).astype("S3").astype(name) if name == "V3" else _cast(values.reshape(shape), name)


def _cast(values: Any, name: str) -> Any:
    if name == "i4,f4":
        return np.zeros(values.shape, dtype=name)
    return values.astype(name)
