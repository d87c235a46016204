"""The tensors of a saved state: in one file, or in parts that the processes of a group have written.

    state-N.safetensors     after iteration N: all tensors or, of a group, those that are the same in all processes
    state-N-R.safetensors   of a group: the rows of the nodes of process R

What is saved in parts is read whole by one process, and in other parts by another number of processes: each takes the
rows of its own nodes out of the parts that hold them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as deserialize
from torch import Tensor

from vgae.errors import InputError
from vgae.io.plain import read_plain
from vgae.runs.checks import HEADER, check_keys
from vgae.train.state import Layout, Sharding

MOST_THREADS = 2**16
MOST_PARTS = 2**16
SHA256 = 64  # characters


@dataclass(frozen=True)
class Parts:
    """How a state was divided when it was saved: part p has the rows of the nodes from bounds[p] to bounds[p + 1]."""

    bounds: tuple[int, ...]
    names: frozenset[str]  # of the tensors that are divided
    sha256: tuple[str, ...]
    threads: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sha256)

    def to_json(self) -> dict[str, Any]:
        """As checkpoint.json has it."""
        return {
            "bounds": list(self.bounds),
            "names": sorted(self.names),
            "sha256": list(self.sha256),
            "threads": list(self.threads),
        }

    @classmethod
    def from_json(cls, values: Any) -> Parts:
        """The inverse of `to_json`; ValueError or InputError where that is not what it holds."""
        check_keys(values, ("bounds", "names", "sha256", "threads"), "parts")
        if not all(isinstance(each, list) for each in values.values()):
            raise ValueError("the parts are no lists")
        bounds, names, hashes, threads = (values[key] for key in ("bounds", "names", "sha256", "threads"))
        if not 1 <= len(hashes) <= MOST_PARTS or len(bounds) != len(hashes) + 1 or len(threads) != len(hashes):
            raise ValueError("the parts are not as many as their ranges, hashes or threads")
        rises = bounds[0] == 0 and all(first < last for first, last in pairwise(bounds))
        if not all(type(each) is int for each in bounds) or not rises:
            raise ValueError("the ranges of the parts do not follow each other")
        if not all(isinstance(each, str) for each in (*names, *hashes)) or any(len(each) != SHA256 for each in hashes):
            raise ValueError("the names or hashes of the parts are none")
        if not all(type(each) is int and 1 <= each <= MOST_THREADS for each in threads):
            raise ValueError("the threads of the parts are none")
        return cls(tuple(bounds), frozenset(names), tuple(hashes), tuple(threads))

    def overlaps(self, rows: range) -> Iterator[tuple[int, slice]]:
        """The parts that hold some of these rows, and where in each of them they are."""
        for part, (first, last) in enumerate(pairwise(self.bounds)):
            start, stop = max(first, rows.start), min(last, rows.stop)
            if start < stop:
                yield part, slice(start - first, stop - first)


def state_name(iteration: int, part: int | None = None) -> str:
    """The file of a state, or of a part of it."""
    return f"state-{iteration}{'' if part is None else f'-{part}'}.safetensors"


def read_state_tensors(
    folder: Path, iteration: int, sha256: str, layout: Layout, parts: Parts | None, sharding: Sharding | None
) -> dict[str, Tensor]:
    """The tensors of a state as laid out, which in a group are the rows of this process; the files are checked."""
    path = folder / state_name(iteration)
    if parts is None and sharding is None:
        return read_tensors(path, sha256, layout)
    names = sharding.names if sharding is not None else parts.names if parts is not None else frozenset()
    if parts is None:
        assert sharding is not None  # noqa: S101 - for the type checker: one of the two is there
        whole = read_tensors(path, sha256, with_rows(layout, names, sharding.shards.num_nodes))
        own = sharding.shards.own
        return {
            name: tensor[own.start : own.stop].clone() if name in names else tensor for name, tensor in whole.items()
        }
    num_nodes = parts.bounds[-1]
    if parts.names != names or not names <= set(layout):
        raise ValueError("other tensors are divided into parts than this model has")
    if sharding is not None and sharding.shards.num_nodes != num_nodes:
        raise ValueError("the parts are of another number of nodes")
    rows = range(num_nodes) if sharding is None else sharding.shards.own
    tensors = read_tensors(path, sha256, {name: of for name, of in layout.items() if name not in names})
    divided = {name: of for name, of in layout.items() if name in names}
    if any(shape[0] != len(rows) for shape, _ in divided.values()):
        raise ValueError("the parts are of another number of nodes")
    found: dict[str, list[Tensor]] = {name: [] for name in divided}
    for part, place in parts.overlaps(rows):
        size = parts.bounds[part + 1] - parts.bounds[part]
        expected = with_rows(divided, names, size)
        for name, tensor in read_tensors(folder / state_name(iteration, part), parts.sha256[part], expected).items():
            found[name].append(tensor[place])
    return tensors | {name: torch.cat(pieces) for name, pieces in found.items()}


def read_tensors(path: Path, sha256: str, layout: Layout) -> dict[str, Tensor]:
    """The tensors in a file, if it has this hash and they are laid out like this."""
    try:
        data = read_plain(path, HEADER + num_bytes_of(layout))
    except (InputError, FileNotFoundError):
        raise ValueError(f"{path.name} is missing, a link, or larger than this model's state") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"{path.name} does not match its hash")
    tensors = deserialize(data)
    if {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()} != layout:
        raise ValueError(f"{path.name} holds other tensors than this model has")
    return {name: tensor.clone() for name, tensor in tensors.items()}  # into memory that is aligned as usual


def with_rows(layout: Layout, names: frozenset[str], num_rows: int) -> Layout:
    """A layout in which the tensors of these names have so many rows."""
    return {
        name: (torch.Size([num_rows, *shape[1:]]) if name in names else shape, dtype)
        for name, (shape, dtype) in layout.items()
    }


def num_bytes_of(layout: Layout) -> int:
    """Bytes of all tensors of a state."""
    return sum(shape.numel() * dtype.itemsize for shape, dtype in layout.values())
