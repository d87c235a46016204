"""What several test files need."""

import os
import warnings
from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from vgae.errors import InputError
from vgae.graph.graph import Graph


def message_of(make: Callable[[], object]) -> str:
    """The words of the InputError that a call raises."""
    try:
        make()
    except InputError as error:
        return str(error)
    pytest.fail("no InputError was raised")


@st.composite
def small_graphs(draw: st.DrawFn, least_nodes: int) -> Graph:
    """Any graph of at most fourteen nodes that has a link."""
    num_nodes = draw(st.integers(least_nodes, 14))
    pairs = list(combinations(range(num_nodes), 2))
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=len(pairs), unique=True))
    return Graph.from_edges(edges, num_nodes=num_nodes)


def graph_with(num_nodes: int, links_per_node: int, features: str) -> Graph:
    """Any graph of that size, with features that are none, dense or sparse."""
    generator = np.random.default_rng(0)
    edges = generator.integers(num_nodes, size=(links_per_node * num_nodes, 2))
    matrix: Any = None if features == "none" else (generator.random((num_nodes, 50)) < 0.1).astype(np.float32)
    if features == "sparse":
        matrix = sp.csr_array(matrix)
    return Graph.from_edges(edges, num_nodes=num_nodes, features=matrix)


def pyg(kind: str = "Data", **parts: Any) -> Any:
    """A graph of PyTorch Geometric, which takes seconds to load: only where it is needed."""
    with warnings.catch_warnings():  # of what it uses itself
        warnings.simplefilter("ignore")
        return getattr(import_module("torch_geometric.data"), kind)(**parts)


def put_odd(path: Path, kind: str) -> None:
    """Something that is not a plain file of a sane size: a fifo, a folder, a huge file, or a link to what is named."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 2**42)
    else:
        path.symlink_to(path.name if kind == "loop" else kind)
