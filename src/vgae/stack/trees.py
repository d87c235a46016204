"""Boosted trees as plain arrays: a sum of one leaf's value per tree.

The nodes of all trees stand one after the other, each tree's from its start on, parents before their children. A node
with `left` 0 is a leaf. In any other, evidence x goes left where x[feature] ≤ threshold, right where it is above, and
where it is missing (NaN) to the side that the node says.

A leaf's value is what it adds to the log odds; that of any other node is the mean of its leaves, each weighted by the
part of the population that ends in it. So the way of a pair through a tree divides what the tree adds among the
columns it asks about (Saabas): every step adds the difference of two values to the column of the node it leaves. The
steps sum up to the leaf's value less the root's, which is the tree's mean over the population.

Trees are fitted by scikit-learn and read off once; what is here afterwards are arrays, which run nothing and in which
no way can be endless, because children come after their parents.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vgae.errors import InputError

HAS_NUMBA = find_spec("numba") is not None
SMALLEST_FOR_NUMBA = 2_000_000  # rows times trees; below, NumPy is done before the kernel is loaded
ROWS = 4096  # that NumPy follows through the trees at a time, so that they stay in the nearest caches
MOST_NODES = 2**24
KINDS = {"feature": "i4", "threshold": "f4", "missing_left": "u1", "left": "i4", "right": "i4", "value": "f8"}

Evidence = npt.NDArray[np.float32]  # M×C
Doubles = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees, whose values add up."""

    num_columns: int
    starts: npt.NDArray[np.int64]  # where each tree begins, and where the last one ends
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    missing_left: npt.NDArray[np.uint8]
    left: npt.NDArray[np.int32]  # as `right`: places within the tree, 0 in a leaf
    right: npt.NDArray[np.int32]
    value: Doubles

    @property
    def num_trees(self) -> int:
        """How many trees there are."""
        return len(self.starts) - 1

    @classmethod
    def none(cls, num_columns: int) -> Trees:
        """No tree at all."""
        return cls.joined(num_columns, [])

    @classmethod
    def joined(cls, num_columns: int, trees: list[Arrays]) -> Trees:
        """Trees that are given one by one, as arrays of the same names."""
        parts = {
            name: np.concatenate([np.empty(0, dtype=kind), *(tree[name].astype(kind) for tree in trees)])
            for name, kind in KINDS.items()
        }
        starts = np.cumsum([0, *(len(tree["left"]) for tree in trees)], dtype=np.int64)
        return cls(num_columns=num_columns, starts=starts, **parts)

    # ------------------------------------------------------------------------------------------------------- asking

    def sums(self, evidence: Evidence, *, implementation: str = "auto") -> Doubles:
        """Σ of the values over all trees for each row; the same bits whatever else is asked, and however."""
        if implementation == "auto":
            large = len(evidence) * self.num_trees >= SMALLEST_FOR_NUMBA
            implementation = "numba" if HAS_NUMBA and large else "numpy"
        if implementation == "numba":
            return self._sums_compiled(evidence)
        found = np.zeros(len(evidence))
        for rows in _blocks(len(evidence), ROWS):
            columns = np.ascontiguousarray(evidence[rows].T).ravel()
            for tree in range(self.num_trees):
                found[rows] += self.value[self._ends(tree, columns, rows.stop - rows.start)]
        return found

    def leaves(self, evidence: Evidence) -> npt.NDArray[np.int64]:
        """The node in which each row ends in each tree, M×T, counted through all trees."""
        found = np.empty((len(evidence), self.num_trees), dtype=np.int64)
        for rows in _blocks(len(evidence), ROWS):
            columns = np.ascontiguousarray(evidence[rows].T).ravel()
            for tree in range(self.num_trees):
                found[rows, tree] = self._ends(tree, columns, rows.stop - rows.start)
        return found

    def contributions(self, evidence: Evidence) -> Doubles:
        """What each column adds to the sum of each row, M×C, relative to `base`."""
        found = np.zeros((len(evidence), self.num_columns))
        rows = np.arange(len(evidence))
        for start, depth in zip(self.starts[:-1], self._depths, strict=True):
            node = np.full(len(evidence), start, dtype=np.int64)
            for _ in range(depth):
                asked = self.feature[node]
                following = self._next(node, evidence[rows, asked])
                found[rows, asked] += self.value[following] - self.value[node]
                node = following
        return found

    def with_means(self, weight: Doubles) -> Trees:
        """The same trees, in which nodes that are no leaves have the mean of their leaves, weighted by these."""
        weight, value = weight.copy(), self.value.copy()
        left, right = self._children
        for node in np.flatnonzero(self.left > 0)[::-1]:  # children before their parents
            sides = [left[node], right[node]]
            weight[node] = weight[sides].sum()
            value[node] = np.average(value[sides], weights=weight[sides] if weight[node] > 0 else None)
        return replace(self, value=value)

    @property
    def base(self) -> float:
        """The mean of the sums over the population."""
        return float(self.value[self.starts[:-1]].sum())

    def _ends(self, tree: int, columns: npt.NDArray[np.float32], num: int) -> npt.NDArray[np.int64]:
        """The leaves of one tree in which rows end, given the columns of their evidence one after the other."""
        node = np.full(num, self.starts[tree], dtype=np.int64)
        place = np.arange(num)
        for _ in range(self._depths[tree]):
            node = self._next(node, columns[self._offset[node] * num + place])
        return node

    def _next(self, node: npt.NDArray[np.int64], asked: Evidence) -> npt.NDArray[np.int64]:
        """The children that follow, given what each node asks for; a leaf follows itself."""
        goes_left = (asked <= self.threshold[node]) | (np.isnan(asked) & (self.missing_left[node] > 0))
        return np.where(goes_left, self._children[0][node], self._children[1][node])

    @cached_property
    def _offset(self) -> npt.NDArray[np.int64]:
        return self.feature.astype(np.int64)

    @cached_property
    def _children(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The children of each node, counted through all trees; those of a leaf are the leaf."""
        places = np.arange(len(self.left))
        first = np.repeat(self.starts[:-1], np.diff(self.starts))
        inner = self.left > 0
        left, right = (np.where(inner, first + side, places) for side in (self.left, self.right))
        return left, right

    @cached_property
    def _depths(self) -> list[int]:
        """Steps from each root to the lowest of its leaves."""
        depth = np.zeros(len(self.left), dtype=np.int64)
        left, right = self._children
        for node in np.flatnonzero(self.left > 0):  # parents come before their children
            depth[left[node]] = depth[right[node]] = depth[node] + 1
        return np.maximum.reduceat(depth, self.starts[:-1]).tolist() if self.num_trees else []

    def _sums_compiled(self, evidence: Evidence) -> Doubles:
        kernel = import_module("vgae.stack.tree_kernel").add_values
        found = np.zeros(len(evidence))
        left, right = self._children
        evidence = np.ascontiguousarray(evidence)
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(threads) as pool:
            blocks = _blocks(len(evidence), max(1, -(-len(evidence) // threads)))
            tasks = [
                pool.submit(
                    kernel,
                    evidence[rows],
                    (self.starts, self.feature, self.threshold, self.missing_left, left, right, self.value),
                    found[rows],
                )
                for rows in blocks
            ]
            for task in tasks:
                task.result()
        return found

    # ------------------------------------------------------------------------------------------ as they are stored

    def tensors(self) -> Arrays:
        """The arrays by their names."""
        return {name.name: getattr(self, name.name) for name in fields(self) if name.name != "num_columns"}

    @classmethod
    def from_tensors(cls, tensors: Arrays, num_columns: int, most_nodes: int = MOST_NODES) -> Trees:
        """Trees out of arrays that somebody may have changed: what could not have been written is refused."""
        starts = tensors["starts"]
        if starts.dtype != np.int64 or starts.ndim != 1 or len(starts) < 1 or starts[0] != 0:
            raise InputError("trees.starts: whole numbers from 0 on are needed.")
        if len(starts) > most_nodes + 1 or (np.diff(starts) < 1).any():
            raise InputError("trees.starts: each tree must have a node, and come after the one before.")
        for name, kind in KINDS.items():
            array = tensors[name]
            if array.dtype != np.dtype(kind) or array.shape != (starts[-1],) or len(array) > most_nodes:
                raise InputError(f"trees.{name}: {starts[-1]} values of the type {np.dtype(kind)} are needed.")
        for name in ("threshold", "value"):
            if not np.isfinite(tensors[name]).all():
                raise InputError(f"trees.{name}: all numbers must be finite.")
        feature, left, right = (tensors[name].astype(np.int64) for name in ("feature", "left", "right"))
        if ((feature < 0) | (feature >= num_columns)).any():
            raise InputError(f"trees.feature: columns are counted from 0 to {num_columns - 1}.")
        size = np.repeat(np.diff(starts), np.diff(starts))
        place = np.arange(len(left)) - np.repeat(starts[:-1], np.diff(starts))
        leaf = left == 0
        inside = (left > place) & (left < size) & (right > place) & (right < size) & (left != right)
        if not np.where(leaf, right == 0, inside).all():
            raise InputError("trees.left and trees.right: children must come after their parents, in the same tree.")
        if (tensors["missing_left"] > 1).any():
            raise InputError("trees.missing_left: each must be 0 or 1.")
        once = np.bincount(
            np.concatenate(
                [(left + np.arange(len(left)) - place)[~leaf], (right + np.arange(len(left)) - place)[~leaf]]
            ),
            minlength=len(left),
        )
        once[starts[:-1]] += 1
        if (once != 1).any():
            raise InputError("trees.left and trees.right: each node but the first must be the child of one other.")
        return cls(
            num_columns=num_columns, **{name: np.ascontiguousarray(tensors[name]) for name in ("starts", *KINDS)}
        )


def _blocks(num: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, num)) for start in range(0, num, size)]
