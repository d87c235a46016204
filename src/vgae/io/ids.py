"""Ids and labels in files: as arrays that need no pickle, and that take memory in proportion to the text in them.

numbers                as they are
text                   as an array of fixed width; if one text is much longer than the others, as bytes (below)
mixed types, tuples    each as JSON in a row of text that starts with "json:"; these rows again as one of the two

Bytes are one array of uint8: a mark of eight bytes, the number n of texts, n + 1 offsets (all little-endian and of 64
bits), and then the texts in UTF-8, the k-th from offset k to offset k + 1.
"""

import json
from itertools import pairwise
from typing import Any

import numpy as np

from vgae.errors import InputError
from vgae.graph.convert import text_array, to_array
from vgae.graph.pairs import AnyArray

JSON_MARK = "json:"
BYTES_MARK = b"\x93vgaeIDS"
DAMAGED = "ids or labels: the bytes that hold them are not whole; the file is damaged."


def pack_ids(ids: AnyArray) -> AnyArray:
    """Ids or labels as an array that needs no pickle."""
    if ids.dtype.kind not in "OU":
        return ids.astype(np.int64) if _is_marked(ids) else ids
    rows = ids.tolist()
    if not all(type(row) is str for row in rows) or any(row.startswith(JSON_MARK) for row in rows):
        rows = [JSON_MARK + _to_json(row) for row in rows]
    packed = text_array(rows)
    return packed if packed.dtype != object else _to_bytes(rows)


def unpack_ids(packed: AnyArray) -> AnyArray:
    """The inverse of `pack_ids`."""
    if _is_marked(packed):
        packed = text_array(_from_bytes(packed.tobytes()))
    elif packed.dtype.kind != "U":
        return packed
    rows = packed.tolist()
    if not all(row.startswith(JSON_MARK) for row in rows):
        return packed
    try:
        return to_array([_hashable(json.loads(row.removeprefix(JSON_MARK))) for row in rows])
    except RecursionError:
        raise InputError("ids or labels: one of them is nested too deeply to be read.") from None


def _is_marked(packed: AnyArray) -> bool:
    start = packed[: len(BYTES_MARK)] if packed.ndim == 1 else packed
    return packed.dtype == np.uint8 and packed.ndim == 1 and start.tobytes() == BYTES_MARK


def _to_bytes(texts: list[str]) -> AnyArray:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype="<i8")
    count = np.array([len(texts)], dtype="<i8")
    whole = b"".join((BYTES_MARK, count.tobytes(), offsets.tobytes(), *encoded))
    return np.frombuffer(whole, dtype=np.uint8)


def _from_bytes(content: bytes) -> list[str]:
    numbers = np.frombuffer(content, dtype="<i8", offset=len(BYTES_MARK), count=(len(content) - len(BYTES_MARK)) // 8)
    count = int(numbers[0]) if len(numbers) else -1
    if not 0 <= count <= len(numbers) - 2:
        raise InputError(DAMAGED)
    offsets, texts = numbers[1 : count + 2], content[len(BYTES_MARK) + 8 * (count + 2) :]
    if offsets[0] != 0 or offsets[-1] != len(texts) or np.any(np.diff(offsets) < 0):
        raise InputError(DAMAGED)
    places = offsets.tolist()
    try:
        return [texts[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(places)]
    except UnicodeDecodeError:
        raise InputError(DAMAGED) from None


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"Only text, numbers and tuples of these can be stored as ids or labels ({error}).") from None


def _plain(value: Any) -> Any:
    """JSON does not know NumPy's numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"not {type(value).__name__}")


def _hashable(value: Any) -> Any:
    """JSON knows only lists, ids only tuples."""
    if isinstance(value, dict):
        raise TypeError("an id or label is no JSON object")
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value
