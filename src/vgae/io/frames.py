"""Results as tables: Arrow's, and data frames of pandas where it is installed. Ids that are whole numbers stay such."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import pyarrow as pa

from vgae.errors import InputError
from vgae.graph.convert import to_array


def arrow_ids(ids: Iterable[Any]) -> pa.Array:
    """A column of ids; those that are not all whole numbers become text."""
    keys = to_array(ids)
    if keys.dtype.kind in "iu":
        return pa.array(keys)
    texts = [str(name) for name in keys.tolist()]
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError as error:
        raise InputError(
            f"The id {error.object!r} holds half of a character (a lone surrogate), which Arrow cannot; use to_frame."
        ) from None


def pandas_frame(data: Any, **keywords: Any) -> Any:
    """A data frame of pandas, of what its constructor takes."""
    return _pandas().DataFrame(data, **keywords)


def pandas_index(ids: Iterable[Any], name: str) -> Any:
    """An index of ids as they are, tuples too."""
    return _pandas().Index(to_array(ids), tupleize_cols=False, name=name)


def links_table(ends: Mapping[str, Any], numbers: Mapping[str, Any]) -> pa.Table:
    """An Arrow table of links: columns of ids, then columns of numbers or text."""
    return pa.table({name: arrow_ids(ids) for name, ids in ends.items()} | {**numbers})


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError:
        raise InputError("A data frame needs pandas; install it with pip install pandas.") from None
