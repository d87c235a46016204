"""Rows of arrays to the processes that are to have them, and answers back to whoever has sent them.

Rows arrive in the order of the ranks, and from each process in the order in which it had them. Messages are cut into
pieces, because what reads a large graph sends gigabytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from vgae.graph.pairs import AnyArray, IntArray

if TYPE_CHECKING:
    from vgae.parallel.group import Group

PIECE = 2**24  # numbers for one process that travel at a time
STREAMED = 2**22  # numbers that travel to the first process at a time
SAMPLES = 512  # values for each process that ranges are chosen by


class Mail:
    """AnyArray that have an owner each; made by all processes together."""

    def __init__(self, group: Group, owners: IntArray) -> None:
        self.group = group
        self.order = np.argsort(owners, kind="stable")
        self.sent = np.bincount(owners, minlength=group.size)
        self.received = exchanged(group, self.sent, np.ones(group.size, np.int64), np.ones(group.size, np.int64), 1)
        self.most = most_of(group, self.sent)

    def send(self, rows: AnyArray) -> AnyArray:
        """The rows that arrive here."""
        return exchanged(self.group, rows[self.order], self.sent, self.received, self.most)

    def answer(self, rows: AnyArray) -> AnyArray:
        """An answer to each row that has arrived, back to where it came from, in the order of the rows there."""
        back = exchanged(self.group, rows, self.received, self.sent, most_of(self.group, self.received))
        answers: AnyArray = np.empty_like(back)
        answers[self.order] = back
        return answers


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


def gathered(group: Group, rows: AnyArray) -> AnyArray:
    """The rows of all processes, one after the other, in each of them."""
    counts = counts_of(group, len(rows))
    found: AnyArray = group.gather(tensor_of(group, rows), counts).cpu().numpy()
    return found


def streamed(group: Group, rows: AnyArray) -> Iterator[AnyArray]:
    """The rows of all processes, piece by piece and in order, in the first; in others nothing, but they take part."""
    counts, most = counts_of(group, len(rows)), rows_within(STREAMED, rows)
    for rank, number in enumerate(counts):
        for begin in range(0, number, most):
            length = min(most, number - begin)
            here = rows[begin : begin + length] if rank == group.rank else rows[:0]
            sent, received = [0] * group.size, [0] * group.size
            sent[0] = len(here)
            received[rank] = length if group.is_first else 0
            arrived = group.exchange(tensor_of(group, here), sent, received).wait()
            if group.is_first:
                yield arrived.cpu().numpy()


def collected(group: Group, rows: AnyArray) -> AnyArray | None:
    """The rows of all processes, one after the other, in the first; None in others."""
    total = sum(counts_of(group, len(rows)))
    found = np.empty((total if group.is_first else 0, *rows.shape[1:]), dtype=rows.dtype)
    end = 0
    for piece in streamed(group, rows):
        found[end : end + len(piece)] = piece
        end += len(piece)
    return found if group.is_first else None


def tensor_of(group: Group, rows: AnyArray) -> Tensor:
    """AnyArray as messages take them; PyTorch warns of arrays that are frozen."""
    return torch.from_numpy(np.require(rows, requirements=["C", "W"])).to(group.device)


def counts_of(group: Group, number: int) -> list[int]:
    """How many each process has."""
    found: list[int] = group.gather(torch.tensor([number], device=group.device), [1] * group.size).tolist()
    return found


def most_of(group: Group, sent: IntArray) -> int:
    """The most rows that any process sends to another."""
    return max(counts_of(group, int(sent.max())))


def rows_within(numbers: int, rows: AnyArray) -> int:
    """How many such rows have no more than so many numbers; one at least."""
    return max(1, numbers // max(1, math.prod(rows.shape[1:])))


def exchanged(group: Group, rows: AnyArray, sent: IntArray, received: IntArray, most: int) -> AnyArray:
    """What arrives of rows that lie by process; in pieces, so that no message is too long."""
    piece = rows_within(PIECE, rows)
    rounds = max(1, -(-most // piece))
    begins, places = (np.concatenate([[0], np.cumsum(each)]).astype(int) for each in (sent, received))
    found = np.empty((int(received.sum()), *rows.shape[1:]), dtype=rows.dtype)
    for number in range(rounds):
        going, coming = (
            [min(max(int(each) - number * piece, 0), piece) for each in counts] for counts in (sent, received)
        )
        if rounds == 1:
            outgoing = rows
        else:
            firsts = [int(begin) + number * piece for begin in begins[:-1]]
            outgoing = np.concatenate(
                [rows[first : first + length] for first, length in zip(firsts, going, strict=True)]
            )
        arrived = group.exchange(tensor_of(group, outgoing), going, coming).wait().cpu().numpy()
        end = 0
        for place, length in zip(places[:-1], coming, strict=True):
            first = int(place) + number * piece
            found[first : first + length] = arrived[end : end + length]
            end += length
    return found
