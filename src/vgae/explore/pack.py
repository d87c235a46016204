"""Numbers and texts as a page holds them: named sections, each compressed and in base64.

Factors are whole numbers of 16 bits, with a unit for each dimension, and where there is room 8 bits more:

    x_id ≈ u_d n_id,   n = 256·high + low,   |n| < 2²³

With 24 bits a number is as exact as float32 is at the largest of its column, so that pairs rank as they do in Python.
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
REFINED = 6_000_000  # numbers of factors up to which there is room for 8 bits more
KINDS = {"uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2", "uint32": "u4", "float32": "f4", "float16": "f2"}


@dataclass(frozen=True, eq=False)
class Pack:
    """Sections by name: how each is to be read, and its bytes in base64."""

    kinds: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, values: AnyArray) -> None:
        """An array, in little-endian order."""
        self._store(name, KINDS[values.dtype.name], values.astype(values.dtype.newbyteorder("<")).tobytes())

    def add_whole(self, name: str, values: AnyArray) -> None:
        """Whole numbers from 0 on, in as few bytes as the largest needs."""
        most = int(values.max(initial=0))
        self.add(name, values.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32))

    def add_json(self, name: str, values: Any) -> None:
        """Plain values; all characters beyond ASCII are escaped, so that half a character is one too."""
        self._store(name, "json", json.dumps(values, separators=(",", ":"), allow_nan=False).encode("ascii"))

    def add_matrix(self, name: str, matrix: npt.NDArray[np.float32], *, refined: bool) -> None:
        """A matrix by dimensions, one after another: units, the upper 16 bits and, refined, the lower 8."""
        bits = 23 if refined else 15
        most = np.abs(matrix.astype(np.float64)).max(axis=0, initial=0)
        units = np.where(most > 0, most, 1) / (2**bits - 1)
        numbers = np.rint(matrix.astype(np.float64) / units).astype(np.int32).T
        self.add(f"{name}_units", units.astype(np.float32))
        # By the unit as it is stored, which is rounded: a part in 2²⁴ of a number, no more than float32 has anyway.
        self.add(f"{name}_high", (numbers >> 8 if refined else numbers).astype(np.int16))
        if refined:
            self.add(f"{name}_low", (numbers & 255).astype(np.uint8))

    def _store(self, name: str, kind: str, content: bytes) -> None:
        self.kinds[name] = kind
        self.contents[name] = base64.b64encode(zlib.compress(content, LEVEL)).decode("ascii")
