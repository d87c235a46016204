"""JSON in files: strict, so that every program can read it, and read only up to a size that fits the memory."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.io.atomic import atomic_write
from vgae.io.plain import open_plain, read_open
from vgae.memory import bytes_free

LONGEST_JSON = 2**28  # bytes
JSON_MEMORY = 8  # bytes of memory that a byte of JSON may take as Python objects


def write_json(path: Path, content: Any, *, durable: bool = False, follow_links: bool = True) -> None:
    """A value as indented JSON; numbers that JSON does not know (NaN, infinity) become null."""
    text = json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_write(path, durable=durable, follow_links=follow_links) as file:
        file.write(text.encode() + b"\n")


def read_json(path: Path, *, follow_links: bool = True) -> dict[str, Any]:
    """A JSON object."""
    try:
        with open_plain(path, follow_links=follow_links) as file:
            return parse_json(read_open(file, path, json_limit()), path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{path}: not readable as JSON ({error.strerror}).") from None


def parse_json(data: bytes, path: Path) -> dict[str, Any]:
    """A JSON object out of the bytes of a file; NaN and infinity, which JSON does not know, are refused."""
    content = parse_any_json(data, path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object.")
    return content


def parse_any_json(data: bytes, path: Path, objects: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Any value of JSON, by the same rule; `objects` makes the objects in it of their names and values."""
    try:
        return json.loads(data, parse_constant=_refuse_constant, parse_float=_finite_number, object_pairs_hook=objects)
    except (MemoryError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}).") from None


def json_limit() -> float:
    """The size up to which a file of JSON is read: a number of bytes that follows the memory there is."""
    return min(LONGEST_JSON, bytes_free() / JSON_MEMORY)


def json_line(content: Any) -> bytes:
    """A value as a line of JSON, by the same rule."""
    return json.dumps(finite(content), allow_nan=False).encode() + b"\n"


def hash_json(content: object) -> str:
    """SHA-256 of a value as JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(finite(content), sort_keys=True, allow_nan=False).encode()).hexdigest()


def finite(value: Any) -> Any:
    """A value with null in place of the numbers that JSON does not have, NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def _finite_number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:30]} is beyond the largest number")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
