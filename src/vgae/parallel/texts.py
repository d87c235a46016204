"""Texts to the processes that are to have them, as vgae.parallel.mail sends rows: their lengths, and their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vgae.graph.pairs import IntArray
from vgae.parallel.mail import Mail, collected, exchanged, most_of

if TYPE_CHECKING:
    from vgae.parallel.group import Group

TOGETHER = 2**20  # texts that are hashed at a time
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that its powers never vanish


def send_text(mail: Mail, texts: pa.Array) -> pa.Array:
    """The texts that arrive here."""
    ordered = texts.take(pa.array(mail.order))
    lengths = _lengths(ordered)
    ends = np.concatenate([[0], np.cumsum(lengths)])[np.concatenate([[0], np.cumsum(mail.sent)])]
    arrived = exchanged(mail.group, lengths, mail.sent, mail.received, mail.most)
    starts = np.concatenate([[0], np.cumsum(arrived)])[np.concatenate([[0], np.cumsum(mail.received)])]
    sent, received = np.diff(ends), np.diff(starts)
    content = exchanged(mail.group, _content(ordered), sent, received, most_of(mail.group, sent))
    return text_of(arrived, content)


def owners_of_text(texts: pa.Array, size: int) -> IntArray:
    """The process of each text, by a hash that is the same everywhere."""
    owners = np.empty(len(texts), dtype=np.int64)
    for begin in range(0, len(texts), TOGETHER):
        part = texts.slice(begin, TOGETHER).take(pa.array(np.arange(min(TOGETHER, len(texts) - begin))))
        lengths, content = _lengths(part), _content(part).astype(np.uint64) + np.uint64(1)
        starts = np.cumsum(lengths) - lengths
        powers = np.cumprod(np.full(int(lengths.max(initial=1)), BASE))
        content *= powers[np.arange(len(content)) - np.repeat(starts, lengths)]
        sums = np.concatenate([[np.uint64(0)], np.cumsum(content)])
        hashes = sums[starts + lengths] - sums[starts]
        hashes = (hashes ^ (hashes >> np.uint64(31))) * BASE
        owners[begin : begin + len(part)] = (hashes >> np.uint64(33)) % np.uint64(size)
    return owners


def collected_text(group: Group, texts: pa.Array) -> pa.Array | None:
    """The texts of all processes, one after the other, in the first; None in others."""
    lengths, content = collected(group, _lengths(texts)), collected(group, _content(texts))
    return None if lengths is None or content is None else text_of(lengths, content)


def text_of(lengths: IntArray, content: npt.NDArray[np.uint8]) -> pa.Array:
    """Texts, given their lengths in bytes and their bytes."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content))]
    return pa.Array.from_buffers(pa.large_string(), len(lengths), buffers)


def _lengths(texts: pa.Array) -> IntArray:
    found: IntArray = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _content(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of texts that begin at the start of their buffer."""
    if not len(texts):
        return np.empty(0, dtype=np.uint8)
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[-1]]
