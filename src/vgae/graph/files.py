"""Files in and out: written under a temporary name and renamed, so that a reader never sees half of one.

A graph in an npz file has the arrays `edges` (rows of two node indices) and, as far as there are any, `num_nodes`,
`features` (dense) or `feature_data`, `feature_indices`, `feature_indptr` and `num_features` (CSR), `labels`,
`node_ids`, `weights` (one per row of edges), `directions` (1 for a row that goes from its first node to its second,
-1 for one that goes back, 0 for both).
"""

import csv
import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.graph import BACKWARD, BOTH, FORWARD, Cleaning, Graph
from vgae.graph.ids import pack_ids, unpack_ids
from vgae.graph.pairs import AnyArray


@contextmanager
def atomic_write(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A binary file that appears under its name only once it is complete; if durable, also after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        if durable:
            sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames in a folder outlast a power cut, where the system lets a folder be opened for that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_npz(path: Path, **arrays: Any) -> None:
    """Arrays as a compressed npz without pickles."""
    content: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in content.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds objects, which only a pickle could store")
    with atomic_write(path) as file:
        np.savez_compressed(file, **content)


def read_npz(path: Path) -> dict[str, AnyArray]:
    """All arrays of an npz; pickles are refused."""
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            return dict(archive)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (PermissionError, IsADirectoryError) as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror}).") from None
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        if "Object arrays" in str(error):
            raise InputError(
                f"{path}: an array holds Python objects, which are not read; store text or numbers."
            ) from None
        raise InputError(f"{path}: the file is damaged or not an npz file.") from None


def write_graph(path: str | Path, graph: Graph) -> None:
    """A graph as an npz file."""
    arrays: dict[str, Any] = {
        "num_nodes": graph.num_nodes,
        "edges": graph.edges,
        "cleaning": astuple(graph.cleaning),
    }
    if sp.issparse(graph.features):
        matrix: Any = graph.features
        arrays |= {
            "feature_data": matrix.data,
            "feature_indices": matrix.indices,
            "feature_indptr": matrix.indptr,
        }
        arrays["num_features"] = graph.num_features
    elif graph.features is not None:
        arrays["features"] = graph.features
    arrays |= {
        name: values
        for name, values in (("weights", graph.weights), ("directions", graph.directions))
        if values is not None
    }
    if graph.labels is not None:
        arrays["labels"] = pack_ids(graph.labels)
    if graph.node_ids is not None:
        arrays["node_ids"] = pack_ids(graph.node_ids)
    write_npz(Path(path), **arrays)


def read_npz_graph(path: str | Path) -> Graph:
    """A graph from an npz file, whoever wrote it."""
    path = Path(path)
    parts = read_npz(path)
    if "edges" not in parts:
        raise InputError(f"{path}: there is no array called edges in it; it holds {', '.join(parts) or 'nothing'}.")
    try:
        ids = unpack_ids(parts["node_ids"]) if "node_ids" in parts else None
        by_index = parts["edges"].dtype.kind in "iu"
        edges, weights, directed = _directed_rows(parts)
        graph = Graph.from_edges(
            edges,
            weights=weights,
            directed=directed,
            num_nodes=int(parts["num_nodes"]) if "num_nodes" in parts else None,
            node_ids=None if by_index else ids,
            features=_features(parts),
            labels=unpack_ids(parts["labels"]) if "labels" in parts else None,
        )
        if by_index and ids is not None:
            graph = replace(graph, node_ids=ids)
        if "cleaning" in parts:
            graph = replace(graph, cleaning=Cleaning(*parts["cleaning"].tolist()))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a graph ({error}).") from None
    return graph


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows below the names of their columns, as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    try:
        with atomic_write(path) as file:
            file.write(text.getvalue().encode())
    except OSError as error:
        raise InputError(f"{path}: the file cannot be written there ({error.strerror}).") from None


def write_json(path: Path, content: Any, *, durable: bool = False) -> None:
    """A value as indented JSON."""
    with atomic_write(path, durable=durable) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object.")
    return content


def hash_json(content: object) -> str:
    """SHA-256 of a value as JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _directed_rows(parts: dict[str, AnyArray]) -> tuple[AnyArray, AnyArray | None, bool]:
    """The rows of edges, their weights, and whether they have directions: a row that goes both ways becomes two."""
    edges, weights = parts["edges"], parts.get("weights")
    if "directions" not in parts:
        return edges, weights, False
    directions = parts["directions"]
    if directions.shape != edges.shape[:1] or not np.isin(directions, (FORWARD, BACKWARD, BOTH)).all():
        raise InputError("directions: 1, -1 or 0 is needed for each row of edges.")
    there, back = directions != BACKWARD, directions != FORWARD
    if weights is not None:
        if weights.shape != directions.shape:
            raise InputError("weights: one is needed for each row of edges.")
        share = np.where(directions == BOTH, 0.5, 1.0) * weights
        weights = np.concatenate([share[there], share[back]])
    return np.concatenate([edges[there], edges[back][:, ::-1]]), weights, True


def _features(parts: dict[str, AnyArray]) -> Any:
    if "feature_data" not in parts:
        return parts.get("features")
    columns = (parts["feature_data"], parts["feature_indices"], parts["feature_indptr"])
    return sp.csr_array(columns, shape=(len(columns[2]) - 1, int(parts["num_features"])))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
