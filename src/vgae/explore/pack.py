"""Numbers and texts as a page holds them: named sections, each compressed and in base64.

Numbers of several bytes are stored as planes, all first bytes, then all second ones and so on, which compress better.
Factors are turned into the directions in which they extend most, by an orthogonal V that no product depends on, and are
whole numbers of at most 24 bits with a unit for each direction,

    (qV)_id ≈ u_d n_id,   u_d = c / max_j |(kV)_jd|   and the same for k,

so that rounding changes a term of a logit by c at most, whatever its direction. One that says little has few bits, and
those that say most have about as many as float32.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.graph.pairs import AnyArray

LEVEL = 9
KINDS = {"uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2", "uint32": "u4", "float32": "f4", "float16": "f2"}
LARGEST = 2**23 - 1  # of a whole number in three bytes
STEPS = (1e-6, 3e-6, 1e-5, 3e-5)  # of logits: the first with which factors are small enough, else the last
SMALL, FEW_NODES = 250_000, 2_000  # bytes of factors that are small enough for so many nodes or fewer
PER_NODE = 170  # and for each node more

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Pack:
    """Sections by name: how each is to be read, and its bytes in base64."""

    kinds: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, values: AnyArray) -> None:
        """An array."""
        self._store(name, KINDS[values.dtype.name], in_planes(values))

    def add_whole(self, name: str, values: AnyArray) -> None:
        """Whole numbers from 0 on, in as few bytes as the largest needs."""
        most = int(values.max(initial=0))
        self.add(name, values.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32))

    def add_json(self, name: str, values: Any) -> None:
        """Plain values; all characters beyond ASCII are escaped, so that half a character is one too."""
        self._store(name, "json", json.dumps(values, separators=(",", ":"), allow_nan=False).encode("ascii"))

    def add_factors(self, matrices: dict[str, FloatArray]) -> float:
        """Factors q, and k where it is another, and the step of logits that they are rounded by."""
        num_nodes = len(matrices["q"])
        basis = directions(list(matrices.values()))
        self.add("basis", basis)
        turned = {name: (matrix.astype(np.float64) @ basis).astype(np.float32) for name, matrix in matrices.items()}
        for step in STEPS:
            rounded = {name: rounded_factors(turned, name, step) for name in turned}
            for name, (numbers, units) in rounded.items():
                self.add(f"{name}_units", units)
                self._store(name, "i3", in_planes(numbers, 3))
            if sum(len(self.contents[name]) for name in matrices) <= SMALL + PER_NODE * max(0, num_nodes - FEW_NODES):
                break
        return step

    def _store(self, name: str, kind: str, content: bytes) -> None:
        self.kinds[name] = kind
        self.contents[name] = base64.b64encode(zlib.compress(content, LEVEL)).decode("ascii")


def in_planes(values: AnyArray, num_bytes: int | None = None) -> bytes:
    """The bytes of numbers, all lowest ones first; of whole numbers as many as asked for."""
    little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"))
    planes = little.reshape(-1).view(np.uint8).reshape(-1, values.dtype.itemsize).T
    return planes[:num_bytes].tobytes()


def directions(matrices: list[FloatArray]) -> FloatArray:
    """The orthogonal directions (d×d, in columns) in which the rows of matrices extend, the farthest first."""
    wide = [matrix.astype(np.float64) for matrix in matrices]
    _, vectors = np.linalg.eigh(sum(matrix.T @ matrix / max(1.0, float(np.square(matrix).sum())) for matrix in wide))
    found: FloatArray = np.ascontiguousarray(vectors[:, ::-1]).astype(np.float32)
    return found


def rounded_factors(
    matrices: dict[str, FloatArray], name: str, step: float
) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """One of the factors in whole numbers, by dimensions (d×N), and the unit of each dimension."""
    own, other = matrices[name], matrices["k" if name == "q" and "k" in matrices else "q"]
    reach, partner = (np.abs(matrix.astype(np.float64)).max(axis=0, initial=0) for matrix in (own, other))
    units = np.maximum(step / np.where(partner > 0, partner, 1), np.where(reach > 0, reach, 1) / LARGEST * (1 + 1e-6))
    stored = units.astype(np.float32)
    numbers = np.rint(own.astype(np.float64) / stored.astype(np.float64)).astype(np.int32)
    return np.clip(numbers, -LARGEST, LARGEST).T, stored
