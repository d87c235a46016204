"""The all-pairs op on a GPU: factors are measured, scaled and laid out, the kernels launched, and their sums collected.

What the kernels do, and in which forms, is described in vgae.ops.triton_kernels. Nothing here waits for the device.
"""

# Triton ships no types for what a launch is.
# mypy: disable-error-code="no-untyped-call, misc"

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import triton
from torch import Tensor

from vgae.ops.sums import Sums
from vgae.ops.triton_kernels import collect_kernel, settle_kernel, sweep_kernel

INTERPRETED = bool(triton.knobs.runtime.interpret)  # TRITON_INTERPRET=1: kernels run in Python, on any tensor
WIDEST_FUSED = 16  # beyond, rows and columns are swept one after the other
SIGMA, TANH = 0, 1  # the forms of the kernels
SAMPLED = 512  # rows and columns whose pairs are looked at to tell which form is wanted


@dataclass(frozen=True)
class Blocks:
    """The shape of a tile (rows a multiple of columns), and the warps that share it."""

    rows: int
    columns: int
    num_warps: int
    num_stages: int = 2


# The fastest by benchmarks/allpairs.py --tune on an NVIDIA H200, by precision, form and padded width of the factors.
# They are not tuned at run time: another tile adds up in another order, and the same seed is to give the same bits.
HIGH = {
    16: Blocks(256, 64, 4, 3),
    32: Blocks(64, 64, 4, 3),
    64: Blocks(64, 64, 4, 3),
    128: Blocks(128, 64, 4, 3),
    256: Blocks(64, 64, 4, 2),
}
HIGH_BIASED = HIGH | {16: Blocks(256, 32, 4, 3)}
HIGHEST = {
    16: Blocks(64, 64, 4, 2),
    32: Blocks(64, 64, 4, 2),
    64: Blocks(64, 64, 4, 2),
    128: Blocks(64, 32, 4, 2),
    256: Blocks(32, 32, 4, 2),
}
# Columns that a program walks along: few enough to keep all processors busy, many enough to earn its start.
PROGRAMS_WANTED, LONGEST_STRETCH = 132 * 16, 32768


def sweep(
    q: Tensor,
    k: Tensor,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    *,
    symmetric: bool,
    value: bool,
    gradient: bool,
    precision: str,
    blocks: Blocks | None = None,
) -> Sums:
    """All sums of the op, in float32 or wider; symmetric ones are the same by row and by column."""
    highest, biased = precision == "highest", row_bias is not None or column_bias is not None
    width = max(16, triton.next_power_of_2(q.shape[1]))
    blocks = blocks or (HIGHEST if highest else HIGH_BIASED if biased else HIGH)[width]
    task = Task(blocks=blocks, width=width, biased=biased, value=value, gradient=gradient, highest=highest)
    with torch.cuda.device_of(q):  # streams and kernels are those of the current device
        measured = _measure(q, row_bias, biased=biased)
        measured_right = measured if symmetric else _measure(k, column_bias, biased=biased)
        settled = task.settle(measured, measured_right, _mean_sigma(q, k, row_bias, column_bias), max(len(q), len(k)))
        left = task.lay_out(q, row_bias, settled[1])
        right = left if symmetric else task.lay_out(k, column_bias, settled[2])
        fused = width <= WIDEST_FUSED
        total = task.launch(left, right, settled, symmetric=symmetric and fused, columns=fused)
        if gradient and not fused and not symmetric:
            replace(task, value=False).launch(right, left, settled, symmetric=False, columns=False, unit=1)
        by_row, row_sums = task.collect(left, right, settled, unit=0)
        by_column, column_sums = (by_row, row_sums) if symmetric else task.collect(right, left, settled, unit=1)
    return Sums(total, by_row, row_sums, by_column, column_sums)


def _measure(factors: Tensor, bias: Tensor | None, *, biased: bool) -> Tensor:
    """The largest factor, the longest row, the largest column and, if there are any, the largest bias."""
    norms = [
        torch.linalg.vector_norm(factors, torch.inf),
        torch.linalg.vector_norm(factors, dim=1).amax(),
        torch.linalg.vector_norm(factors, 1, dim=0).amax(),
    ]
    if biased:
        norms.append(norms[0].new_zeros(()) if bias is None else bias.amax())
    return torch.stack(norms)


def _mean_sigma(q: Tensor, k: Tensor, row_bias: Tensor | None, column_bias: Tensor | None) -> Tensor:
    """The mean of σ over the pairs of rows and columns that lie evenly spread over the whole."""
    rows, columns = (slice(None, None, -(-len(factor) // SAMPLED)) for factor in (q, k))
    logits = q[rows] @ k[columns].T
    if row_bias is not None:
        logits += row_bias[rows, None]
    if column_bias is not None:
        logits += column_bias[columns]
    return logits.sigmoid_().mean()


@dataclass(frozen=True, eq=False)
class Side:
    """One side's factors, laid out and rounded for the kernel, and the integers that its sums are collected in.

    Integers of 32 bits, where they are enough, take the first half of the memory of those of 64.
    """

    size: int
    dim: int
    factors: Tensor  # times the side's scale
    bias: Tensor
    by_node: Tensor
    counts: Tensor
    totals: Tensor  # of the rounded factors, so that what should cancel against the kernel's sums does

    def integers(self, form: int) -> tuple[Tensor, Tensor]:
        """Where a form collects its sums: 64-bit integers, or the same memory as 32-bit ones."""
        if form == SIGMA:
            return self.by_node, self.counts
        return self.by_node.view(torch.int32), self.counts.view(torch.int32)


@dataclass(frozen=True)
class Task:
    """What is wanted, and the steps that lead there."""

    blocks: Blocks
    width: int
    biased: bool
    value: bool
    gradient: bool
    highest: bool

    @property
    def forms(self) -> tuple[int, ...]:
        """The forms among which the device chooses."""
        return (SIGMA,) if self.highest else (SIGMA, TANH)

    def settle(self, left: Tensor, right: Tensor, mean_sigma: Tensor, most_nodes: int) -> Tensor:
        """Numbers on the device that follow from what was measured.

        0       the form
        1, 2    what the factors of either side are multiplied by: √½ in float16, which makes a product half a logit,
                and more only where its range needs it
        3       what makes a logit of a product
        4       what weights are divided by, so that in float16 the largest possible is 2¹⁵ and small ones do not vanish
        5 - 7   integers per unit of a sum of weights times factors by row, by column, and of a sum of weights alone
        8 - 10  the same for the form with tanh
        """
        settled = torch.empty(11, dtype=torch.float64, device=left.device)
        settle_kernel[(1,)](left, right, mean_sigma, settled, most_nodes, BIASED=self.biased, HIGHEST=self.highest)
        return settled

    def lay_out(self, factors: Tensor, bias: Tensor | None, scale: Tensor) -> Side:
        """Factors times a scale, with zeros up to whole blocks, and room for their sums."""
        size, dim = factors.shape
        padded = triton.cdiv(size, self.blocks.rows) * self.blocks.rows
        laid_out = factors.new_zeros(padded, self.width, dtype=torch.float32 if self.highest else torch.float16)
        laid_out[:size, :dim] = factors if self.highest else factors * scale.float()
        biases = factors.new_zeros(padded, dtype=torch.float32)
        if bias is not None:
            biases[:size] = bias
        integers = factors.new_zeros(padded * (self.width + 1), dtype=torch.int64)
        return Side(
            size=size,
            dim=dim,
            factors=laid_out,
            bias=biases,
            by_node=integers[: padded * self.width],
            counts=integers[padded * self.width :],
            totals=laid_out.sum(dim=0, dtype=torch.float64),
        )

    def launch(
        self, left: Side, right: Side, settled: Tensor, *, symmetric: bool, columns: bool, unit: int = 0
    ) -> Tensor:
        """Run the kernels of all forms, of which one does the work; the value, if it is wanted.

        `unit` is the place of the unit by row: 1 where the sides have changed places.
        """
        blocks = self.blocks
        num_row_blocks = len(left.factors) // blocks.rows
        tiles = num_row_blocks * (len(right.factors) // blocks.rows) // (2 if symmetric else 1)
        stretch = blocks.rows * max(1, min(tiles // PROGRAMS_WANTED, LONGEST_STRETCH // blocks.rows))
        num_programs = num_row_blocks * triton.cdiv(right.size, stretch)
        values = left.bias.new_zeros(num_programs if self.value else 1)
        for form in self.forms:
            by_row, row_sums = left.integers(form)
            by_column, column_sums = right.integers(form)
            sweep_kernel[(num_programs,)](
                left.factors,
                right.factors,
                left.bias,
                right.bias,
                by_row,
                by_column,
                row_sums,
                column_sums,
                values,
                settled,
                left.size,
                right.size,
                num_row_blocks,
                stretch,
                BM=blocks.rows,
                BN=blocks.columns,
                BF=self.width,
                SYMMETRIC=symmetric,
                COLUMNS=columns,
                BIASED=self.biased or (self.value and form == SIGMA),  # padding must not add to the value
                VALUE=self.value,
                GRADIENT=self.gradient,
                HIGHEST=self.highest,
                APPROXIMATE=not (self.highest or INTERPRETED),
                FORM=form,
                UNIT=unit,
                LOGITS="tf32x3" if self.highest else None,
                SUMS="ieee" if self.highest else None,
                num_warps=blocks.num_warps,
                num_stages=blocks.num_stages,
            )
        if not self.value:
            return values.new_full((), torch.nan, dtype=torch.float64)
        total = values.sum(dtype=torch.float64)
        if self.highest:
            return total
        # What tanh leaves out: ½ s and log 2 for every pair.
        twice = settled[3] * (left.totals @ right.totals) + left.size * right.size * math.log(4)
        if self.biased:
            twice += right.size * left.bias.sum(dtype=torch.float64)
            twice += left.size * right.bias.sum(dtype=torch.float64)
        return torch.where(settled[0] == TANH, total + 0.5 * twice, total)

    def collect(self, side: Side, other: Side, settled: Tensor, *, unit: int) -> tuple[Tensor, Tensor]:
        """Σ σ(s)·(the other side's factors) and, with biases, Σ σ(s) for each node of a side."""
        by_node = side.bias.new_empty(side.size, side.dim)
        counts = side.bias.new_empty(side.size if self.biased else 0)
        (wide, wide_counts), (narrow, narrow_counts) = side.integers(SIGMA), side.integers(TANH)
        rows = min(32, self.blocks.rows)
        collect_kernel[(triton.cdiv(side.size, rows),)](
            wide,
            narrow,
            wide_counts,
            narrow_counts,
            other.totals,
            settled,
            by_node,
            counts,
            side.size,
            other.size,
            side.dim,
            UNIT=unit,
            SCALE=2 - unit,
            BIASED=self.biased,
            BM=rows,
            BF=self.width,
        )
        return by_node, counts
