"""PyTorch's generator of the CPU, moved on by many words at once (imported only when used).

It is a Mersenne Twister (MT19937, Matsumoto and Nishimura 1998): 624 words of 32 bits, out of which the next 624 are
made together, x_{k+624} = x_{k+397} ^ twist(x_k, x_{k+1}), and each of them is mixed when it is drawn. Whoever needs
none of the numbers needs no mixing, and nothing that is made of them: to pass over a word takes a tenth of what it
takes to draw a byte.

The state is read and written as `torch.Generator.get_state` has it. That is nowhere promised, and so it is looked at
once whether a generator that was moved on draws what one has that has drawn as many words.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vgae.ops.numba_tools import compiled

Words = npt.NDArray[np.uint32]

N, M = 624, 397
UPPER, LOWER, MATRIX = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x9908B0DF)
ONE = np.uint32(1)
# What get_state has, as far as it is needed: how many words are left, plus one, and which comes next.
LAYOUT = np.dtype([("seed", "u8"), ("left", "i4"), ("seeded", "i4"), ("next", "u8"), ("words", "u8", (N,))])
SIZE = LAYOUT.itemsize + 40  # with normal numbers that are kept for later
TRIED = (1, 1000, 5000)  # words, for the one look


def pass_over(generator: torch.Generator, num_words: int) -> None:
    """Leave a generator of the CPU as if it had drawn so many words of 32 bits."""
    state = generator.get_state()
    fields: Any = state[: LAYOUT.itemsize].numpy().view(LAYOUT)
    left, used = int(fields["left"][0]), int(fields["next"][0])
    if num_words < left:
        fields["left"], fields["next"] = left - num_words, used + num_words
    else:
        num_twists, last = divmod(num_words - left, N)  # the first twist comes when none is left
        words = fields["words"][0].astype(np.uint32)
        _twist(words, num_twists + 1)
        fields["words"][0], fields["left"], fields["next"] = words, N - last, last + 1
    generator.set_state(state)


@cache
def is_known() -> bool:
    """Whether generators of this version of PyTorch are as they are taken to be here."""
    moved, drawn = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    if len(moved.get_state()) != SIZE:
        return False
    for num_words in TRIED:
        pass_over(moved, num_words)
        torch.empty(num_words, dtype=torch.uint8).random_(generator=drawn)
    return torch.equal(*(torch.rand(5, generator=each) for each in (moved, drawn)))


@compiled()
def _twist(x: Words, times: int) -> None:
    """Make the next words out of these, so many times."""
    for _ in range(times):
        for k in range(N - M):
            x[k] = x[k + M] ^ _mixed(x[k], x[k + 1])
        for k in range(N - M, N - 1):
            x[k] = x[k + M - N] ^ _mixed(x[k], x[k + 1])
        x[N - 1] = x[M - 1] ^ _mixed(x[N - 1], x[0])


@compiled()
def _mixed(one: np.uint32, other: np.uint32) -> np.uint32:
    """The upper bit of one word and the lower bits of the other, times the matrix."""
    joined = (one & UPPER) | (other & LOWER)
    return (joined >> ONE) ^ (MATRIX * (other & ONE))
