"""Tensors into a safetensors file one by one, so that their bytes are not in memory a second time.

The file is what `safetensors` writes: the length of a header of JSON, the header, and the numbers of all tensors, the
widest types first and then by name.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import IO

from vgae.graph.pairs import AnyArray, bytes_of

TYPES = {  # in the order in which they are stored
    "u8": "U64",
    "i8": "I64",
    "f8": "F64",
    "f4": "F32",
    "u4": "U32",
    "i4": "I32",
    "f2": "F16",
    "u2": "U16",
    "i2": "I16",
    "i1": "I8",
    "u1": "U8",
    "b1": "BOOL",
}
PIECE = 2**24  # bytes that are written at a time
ALIGNED = 8


def write_tensors(file: IO[bytes], arrays: Mapping[str, AnyArray]) -> None:
    """Write arrays under their names."""
    order, header, end = list(TYPES), {}, 0
    ordered = sorted(arrays.items(), key=lambda item: (order.index(_kind(item[1])), item[0]))
    for name, array in ordered:
        where = [end, end + array.nbytes]
        header[name] = {"dtype": TYPES[_kind(array)], "shape": list(array.shape), "data_offsets": where}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNED)
    file.write(struct.pack("<Q", len(text)) + text)
    for _, array in ordered:
        content = bytes_of(array, array.dtype.newbyteorder("<").str)
        for begin in range(0, len(content), PIECE):
            file.write(content[begin : begin + PIECE])


def _kind(array: AnyArray) -> str:
    return array.dtype.str[1:]
