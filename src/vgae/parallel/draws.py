"""Draws for all nodes of which a process keeps those of its own: the same numbers as one process would draw.

A generator of the CPU gives one number after the other, so that draws can be made in pieces, and what others have is
passed over: uniform numbers one by one, normal ones sixteen at a time, as PyTorch makes them of as many uniform ones.
If their number is not a multiple of sixteen, the last sixteen are drawn again. Pieces are therefore multiples of
sixteen, and what is left at the end is never less. On a GPU a draw depends on its size: it is made whole, and cut.

Many numbers are passed over without making them (vgae.ops.twister_kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from math import prod

import torch
from torch import Tensor

from vgae.ops.dispatch import HAS_NUMBA

TOGETHER = 16  # normal numbers that are made together
PIECE = 2**20  # numbers that are drawn at a time
WORDS = {torch.float32: 1, torch.float64: 2}  # of 32 bits, that a number is made of
MANY = 2**12  # words for which it is worth to have a kernel


class RowGenerator(torch.Generator):
    """A generator for some rows of N; whatever is not drawn by rows is drawn as by any other."""

    num_rows: int
    rows: range

    @classmethod
    def of(cls, seed: int, device: torch.device | str, num_rows: int, rows: range) -> RowGenerator:
        """One with a seed, for rows that there are N of."""
        made = cls(device)
        made.manual_seed(seed)
        made.num_rows, made.rows = num_rows, rows
        return made

    def uniform(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Own rows of N×… numbers from U(0, 1)."""
        return self._drawn(Tensor.uniform_, shape, dtype, self.rows, self.num_rows, spare=0)

    def normal(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Own rows of N×… numbers from N(0, 1)."""
        return self._drawn(Tensor.normal_, shape, dtype, self.rows, self.num_rows, spare=TOGETHER)

    def some(self, kept: range, total: int, dtype: torch.dtype) -> Tensor:
        """Some of as many numbers from U(0, 1)."""
        return self._drawn(Tensor.uniform_, (len(kept),), dtype, kept, total, spare=0)

    def _drawn(
        self,
        fill: Callable[..., Tensor],
        shape: Sequence[int],
        dtype: torch.dtype,
        rows: range,
        num_rows: int,
        spare: int,
    ) -> Tensor:
        """Rows out of a draw of as many; `spare` numbers are drawn again where the last are not complete."""
        width = prod(shape[1:])
        if self.device.type != "cpu":
            whole = torch.empty(num_rows, *shape[1:], dtype=dtype, device=self.device)
            return fill(whole, generator=self)[rows.start : rows.stop].clone()
        out = torch.empty(len(rows), *shape[1:], dtype=dtype)
        if out.is_meta:
            return out
        flat, first = out.view(-1), rows.start * width
        room = torch.empty(min(PIECE + TOGETHER, num_rows * width) + TOGETHER, dtype=dtype)
        for begin, end in _pieces(num_rows * width, first, first + len(flat)):
            low, high = max(begin, first), min(end, first + len(flat))
            if low < high:
                drawn = fill(room[: end - begin], generator=self)
                flat[low - first : high - first] = drawn[low - begin : high - begin]
                continue
            again = spare if spare and (end - begin) % TOGETHER else 0
            if (spare and end - begin < TOGETHER) or dtype not in WORDS:
                fill(room[: end - begin], generator=self)  # so few are drawn in another way
            else:
                self._pass_over(WORDS[dtype] * (end - begin + again))
        return out

    def _pass_over(self, num_words: int) -> None:
        """As if so many words of 32 bits were drawn, of which each else makes a byte: the least that it can make."""
        if HAS_NUMBA and num_words >= MANY:
            twister = import_module("vgae.ops.twister_kernels")
            if twister.is_known():
                twister.pass_over(self, num_words)
                return
        torch.empty(num_words, dtype=torch.uint8).random_(generator=self)


def _pieces(total: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Where pieces of a draw begin and end, so that few numbers are in one with those from the first to the last."""
    cuts = [number // TOGETHER * TOGETHER for number in (first, last + TOGETHER - 1)]
    begin = 0
    while begin < total:
        end = min([begin + PIECE, *(cut for cut in cuts if cut > begin)])
        if total - end < TOGETHER:
            end = total
        yield begin, end
        begin = end
