"""Zeros of a matrix drawn exactly, by the places of its ones.

Number the N² cells row by row; if the ones are the cells o_0 < o_1 < …, then o_k - k zeros come before one k, and a
search among these turns the u-th zero into its cell. The zeros in this order are divided into M parts of the same size,
and one is drawn from each: every zero is as likely as before, no row of the matrix has many more than its share, so
that a sum over them varies less, and memory is read in order.
"""

from __future__ import annotations

from importlib import import_module

import torch
from torch import Tensor

from vgae.ops.dispatch import HAS_NUMBA, SHORTEST_FOR_NUMBA
from vgae.ops.entries import Ones


def sample_zeros(ones: Ones, num_pairs: int, generator: torch.Generator) -> Tensor:
    """M pairs (M×2), row by row, each drawn uniformly from its part of the cells that are no entries.

    Where there are no such cells the pairs are of the first node: whoever asks multiplies by the number of zeros.
    """
    device, num_zeros = ones.columns.device, ones.num_zeros
    places = draw_places(num_pairs, generator, device)
    if not num_zeros:
        return torch.zeros(num_pairs, 2, dtype=torch.int64, device=device)
    places += torch.arange(num_pairs, device=device)
    return zeros_among(ones, places.mul_(num_zeros / num_pairs).long().clamp_(max=num_zeros - 1))


def draw_places(num_pairs: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Where in each of M parts a zero is drawn: numbers from U(0, 1)."""
    return torch.rand(num_pairs, dtype=torch.float64, generator=generator, device=device)


def zeros_among(ones: Ones, chosen: Tensor) -> Tensor:
    """The cells (M×2) that are no entries, by their numbers row by row, in order."""
    if HAS_NUMBA and chosen.device.type == "cpu" and ones.num_nodes >= SHORTEST_FOR_NUMBA:
        found: Tensor = import_module("vgae.ops.draw_kernels").zeros_at(chosen, ones.starts, ones.columns, ones.width)
        return found
    cells = chosen + torch.searchsorted(ones.zeros_before, chosen, right=True)
    sources = cells.div(ones.width, rounding_mode="floor")
    return torch.stack([sources, cells - sources * ones.width]).T
