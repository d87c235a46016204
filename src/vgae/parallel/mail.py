"""Rows of arrays to the processes that are to have them, and answers back to whoever has sent them.

Rows arrive in the order of the ranks, and from each process in the order in which it had them. Messages are cut into
pieces, because what reads a large graph sends gigabytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from vgae.graph.pairs import AnyArray, IntArray

if TYPE_CHECKING:
    from vgae.parallel.group import Group

Rows = TypeVar("Rows", bound=npt.NDArray[Any])
PIECE = 2**24  # rows for one process that travel at a time
SAMPLES = 512  # values for each process that ranges are chosen by
SHUFFLED = 2**20  # texts that are hashed at a time
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that its powers never vanish


class Mail:
    """Rows that have an owner each; made by all processes together."""

    def __init__(self, group: Group, owners: IntArray) -> None:
        self.group = group
        self.order = np.argsort(owners, kind="stable")
        self.sent = np.bincount(owners, minlength=group.size)
        self.received = _exchanged(group, self.sent, np.ones(group.size, np.int64), np.ones(group.size, np.int64), 1)
        self.rounds = _rounds(group, self.sent)

    @property
    def num_received(self) -> int:
        """How many rows arrive here."""
        return int(self.received.sum())

    def send(self, rows: Rows) -> Rows:
        """The rows that arrive here."""
        return _exchanged(self.group, rows[self.order], self.sent, self.received, self.rounds)

    def answer(self, rows: Rows) -> Rows:
        """An answer to each row that has arrived, back to where it came from, in the order of the rows there."""
        rounds = _rounds(self.group, self.received)
        back = _exchanged(self.group, rows, self.received, self.sent, rounds)
        answers = np.empty_like(back)
        answers[self.order] = back
        return answers

    def send_text(self, texts: pa.Array) -> pa.Array:
        """The same with texts."""
        ordered = texts.take(pa.array(self.order))
        lengths = _lengths(ordered)
        ends = np.concatenate([[0], np.cumsum(lengths)])[np.concatenate([[0], np.cumsum(self.sent)])]
        arrived = _exchanged(self.group, lengths, self.sent, self.received, self.rounds)
        starts = np.concatenate([[0], np.cumsum(arrived)])[np.concatenate([[0], np.cumsum(self.received)])]
        sent, received = np.diff(ends), np.diff(starts)
        content = _exchanged(self.group, _content(ordered), sent, received, _rounds(self.group, sent))
        return text_of(arrived, content)


def ranges_of(group: Group, values: IntArray) -> IntArray:
    """The process of each value, so that each process has a range of values, and about as many distinct ones as others.

    Ranges are chosen by some of the values of each process.
    """
    number = min(len(values), SAMPLES * group.size)
    taken = np.sort(values[np.linspace(0, len(values), number, endpoint=False).astype(np.int64)])
    samples = np.sort(gathered(group, taken))
    if not len(samples):
        return np.empty(0, dtype=np.int64)
    ends = samples[np.arange(1, group.size) * len(samples) // group.size]
    return np.searchsorted(ends, values, side="right")


def owners_of_text(texts: pa.Array, size: int) -> IntArray:
    """The process of each text, by a hash that is the same everywhere."""
    owners = np.empty(len(texts), dtype=np.int64)
    for begin in range(0, len(texts), SHUFFLED):
        part = texts.slice(begin, SHUFFLED).take(pa.array(np.arange(min(SHUFFLED, len(texts) - begin))))
        lengths, content = _lengths(part), _content(part).astype(np.uint64) + np.uint64(1)
        starts = np.cumsum(lengths) - lengths
        powers = np.cumprod(np.full(int(lengths.max(initial=1)), BASE))
        content *= powers[np.arange(len(content)) - np.repeat(starts, lengths)]
        sums = np.concatenate([[np.uint64(0)], np.cumsum(content)])
        hashes = sums[starts + lengths] - sums[starts]
        hashes = (hashes ^ (hashes >> np.uint64(31))) * BASE
        owners[begin : begin + len(part)] = (hashes >> np.uint64(33)) % np.uint64(size)
    return owners


def gathered(group: Group, rows: Rows) -> Rows:
    """The rows of all processes, one after the other, in each of them."""
    counts = counts_of(group, len(rows))
    tensor = torch.from_numpy(np.ascontiguousarray(rows)).to(group.device)
    found: Rows = group.gather(tensor, counts).cpu().numpy()
    return found


def collected(group: Group, rows: AnyArray) -> AnyArray | None:
    """The rows of all processes, one after the other, in the first; None in others."""
    counts = counts_of(group, len(rows))
    found = group.collect(torch.from_numpy(np.ascontiguousarray(rows)).to(group.device), counts)
    return None if found is None else found.numpy()


def counts_of(group: Group, number: int) -> list[int]:
    """How many each process has."""
    found: list[int] = group.gather(torch.tensor([number], device=group.device), [1] * group.size).tolist()
    return found


def text_of(lengths: IntArray, content: npt.NDArray[np.uint8]) -> pa.Array:
    """Texts, given their lengths in bytes and their bytes."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content))]
    return pa.Array.from_buffers(pa.large_string(), len(lengths), buffers)


def collected_text(group: Group, texts: pa.Array) -> pa.Array | None:
    """The texts of all processes, one after the other, in the first; None in others."""
    lengths, content = collected(group, _lengths(texts)), collected(group, _content(texts))
    return None if lengths is None or content is None else text_of(lengths, content)


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


def _rounds(group: Group, sent: IntArray) -> int:
    """In how many pieces messages travel, so that none is too long."""
    most = max(counts_of(group, int(sent.max())))
    return max(1, -(-most // PIECE))


def _exchanged(group: Group, rows: Rows, sent: IntArray, received: IntArray, rounds: int) -> Rows:
    """What arrives of rows that lie by process."""
    begins, places = (np.concatenate([[0], np.cumsum(each)]).astype(int) for each in (sent, received))
    found = np.empty((int(received.sum()), *rows.shape[1:]), dtype=rows.dtype)
    for number in range(rounds):
        going, coming = (
            [min(max(int(each) - number * PIECE, 0), PIECE) for each in counts] for counts in (sent, received)
        )
        if rounds == 1:
            outgoing = rows
        else:
            firsts = [int(begin) + number * PIECE for begin in begins[:-1]]
            outgoing = np.concatenate(
                [rows[first : first + length] for first, length in zip(firsts, going, strict=True)]
            )
        tensor = torch.from_numpy(np.ascontiguousarray(outgoing)).to(group.device)
        arrived = group.exchange(tensor, going, coming).wait().cpu().numpy()
        end = 0
        for place, length in zip(places[:-1], coming, strict=True):
            first = int(place) + number * PIECE
            found[first : first + length] = arrived[end : end + length]
            end += length
    return found  # type: ignore[return-value]  # of the kind of the rows
