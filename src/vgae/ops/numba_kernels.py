"""The all-pairs op fused for the CPU: a tile of logits never leaves the nearest caches (imported only when used).

The same sums as in `blocked`, by kernels that numba compiles to vector code. A tile is a panel of R rows by a block of
B columns, and goes through four loops: logits, σ, and the two products with σ. Each loop holds a 4×4 square of factors
in registers and runs along the columns, so that four loads serve sixteen multiplications. Factors are padded with zeros
to whole tiles, which adds nothing to the gradients; for the value, pairs that are not there are silenced.

Threads divide the blocks of columns among them. What a block sums up by column is its thread's alone; what it sums up
by row is kept apart by thread and added up in order: the same bits every time, for the same number of threads.
"""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.machine import in_threads, num_threads
from vgae.ops.numba_tools import compiled, two_to_the, zeros
from vgae.ops.sums import Sums

Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

R, B = 16, 256  # rows and columns of a tile
SQUARE = 4  # rows and factors that a loop holds in registers
RECENT = 32  # panels of rows that are summed up by column before they join the rest
STRIPE = 2**16  # rows that threads sum up in copies of their own before these are added up

f32 = np.float32
LN_2 = math.log(2)
LOG2_E = f32(1 / LN_2)
POWERS = tuple(  # the polynomial nearest to 2ʳ, by its largest relative error for |r| ≤ ½, 2·10⁻⁹
    f32(coefficient)
    for coefficient in (1, 0.69314721, 0.24022647, 0.055503288, 0.0096184890, 0.0013399931, 0.00015345812)
)
LOWEST = f32(-126)  # two to the power of less is no normal number

# ------------------------------------------------------------------------------------------------------------ one tile


@compiled("reassoc", "contract", "nsz")
def _set_product(c: Array, source: Array, out: Array) -> None:
    """OUT = C·SOURCE as far as the first columns of C go; SOURCE and OUT are B wide."""
    for i in range(0, len(c), SQUARE):
        a0, a1, a2, a3 = c[i, 0], c[i, 1], c[i, 2], c[i, 3]
        b0, b1, b2, b3 = c[i + 1, 0], c[i + 1, 1], c[i + 1, 2], c[i + 1, 3]
        c0, c1, c2, c3 = c[i + 2, 0], c[i + 2, 1], c[i + 2, 2], c[i + 2, 3]
        d0, d1, d2, d3 = c[i + 3, 0], c[i + 3, 1], c[i + 3, 2], c[i + 3, 3]
        for j in range(B):
            s0, s1, s2, s3 = source[0, j], source[1, j], source[2, j], source[3, j]
            out[i, j] = a0 * s0 + a1 * s1 + a2 * s2 + a3 * s3
            out[i + 1, j] = b0 * s0 + b1 * s1 + b2 * s2 + b3 * s3
            out[i + 2, j] = c0 * s0 + c1 * s1 + c2 * s2 + c3 * s3
            out[i + 3, j] = d0 * s0 + d1 * s1 + d2 * s2 + d3 * s3


@compiled("reassoc", "contract", "nsz")
def _add_product(c: Array, source: Array, first: int, out: Array) -> None:
    """OUT += C·SOURCE, for the columns of C from the `first` on."""
    for i in range(0, len(c), SQUARE):
        for f in range(first, c.shape[1], SQUARE):
            a0, a1, a2, a3 = c[i, f], c[i, f + 1], c[i, f + 2], c[i, f + 3]
            b0, b1, b2, b3 = c[i + 1, f], c[i + 1, f + 1], c[i + 1, f + 2], c[i + 1, f + 3]
            c0, c1, c2, c3 = c[i + 2, f], c[i + 2, f + 1], c[i + 2, f + 2], c[i + 2, f + 3]
            d0, d1, d2, d3 = c[i + 3, f], c[i + 3, f + 1], c[i + 3, f + 2], c[i + 3, f + 3]
            for j in range(B):
                s0, s1, s2, s3 = source[f, j], source[f + 1, j], source[f + 2, j], source[f + 3, j]
                out[i, j] += a0 * s0 + a1 * s1 + a2 * s2 + a3 * s3
                out[i + 1, j] += b0 * s0 + b1 * s1 + b2 * s2 + b3 * s3
                out[i + 2, j] += c0 * s0 + c1 * s1 + c2 * s2 + c3 * s3
                out[i + 3, j] += d0 * s0 + d1 * s1 + d2 * s2 + d3 * s3


@compiled("contract")
def _sigmoid(s: Array) -> None:
    """S/ln 2 becomes σ(S): with e = exp(-|s|) = 2ⁿ·2ʳ, n whole and |r| ≤ ½, σ is 1 / (1 + e) or e / (1 + e)."""
    flat = s.reshape(R * B)
    for j in range(R * B):
        x = flat[j]
        y = -abs(x)
        y = LOWEST if y < LOWEST else y
        n = np.rint(y)
        r = y - n
        p = POWERS[6] * r + POWERS[5]
        p = p * r + POWERS[4]
        p = p * r + POWERS[3]
        p = p * r + POWERS[2]
        p = p * r + POWERS[1]
        p = p * r + POWERS[0]
        e = p * two_to_the(n)
        flat[j] = (e if x < f32(0) else f32(1)) / (f32(1) + e)


@compiled("reassoc", "contract", "nsz")
def _add_by_row(sigma: Array, k: Array, top: int, by_row: Array) -> None:
    """Σ_j σ_ij k_j for R rows from `top`."""
    for i in range(0, R, SQUARE):
        for f in range(0, k.shape[0], SQUARE):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = f32(0)
            c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = f32(0)
            for j in range(B):
                a, b, c, d = sigma[i, j], sigma[i + 1, j], sigma[i + 2, j], sigma[i + 3, j]
                k0, k1, k2, k3 = k[f, j], k[f + 1, j], k[f + 2, j], k[f + 3, j]
                a0, a1, a2, a3 = a0 + a * k0, a1 + a * k1, a2 + a * k2, a3 + a * k3
                b0, b1, b2, b3 = b0 + b * k0, b1 + b * k1, b2 + b * k2, b3 + b * k3
                c0, c1, c2, c3 = c0 + c * k0, c1 + c * k1, c2 + c * k2, c3 + c * k3
                d0, d1, d2, d3 = d0 + d * k0, d1 + d * k1, d2 + d * k2, d3 + d * k3
            for place, sums in enumerate(((a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3))):
                for column in range(SQUARE):
                    by_row[top + i + place, f + column] += sums[column]


@compiled("reassoc", "contract", "nsz")
def _add_row_sums(sigma: Array, top: int, row_sums: Doubles) -> None:
    """Σ_j σ_ij for R rows from `top`: in double precision, because σ that are all alike round all the same way."""
    for i in range(R):
        total = 0.0
        for j in range(B):
            total += np.float64(sigma[i, j])
        row_sums[top + i] += total


@compiled("reassoc", "contract", "nsz")
def _add_column_sums(sigma: Array, column_sums: Doubles) -> None:
    """Σ_i σ_ij for the columns of a block."""
    for i in range(R):
        for j in range(B):
            column_sums[j] += np.float64(sigma[i, j])


@compiled("reassoc", "contract", "nsz")
def _sum_of_positives(s: Array) -> float:
    """Σ max(s, 0)."""
    total = 0.0
    for i in range(R):
        of_row = f32(0)
        for j in range(B):
            of_row += f32(0) if s[i, j] < f32(0) else s[i, j]
        total += float(of_row)
    return total


@compiled()
def _silence(sigma: Array, num_rows: int, num_columns: int) -> None:
    """What lies beyond so many rows and columns is padding, whose logits are 0: without σ it adds nothing."""
    for i in range(R):
        for j in range(0 if i >= num_rows else max(0, num_columns), B):
            sigma[i, j] = f32(0)


@compiled("reassoc", "contract", "nsz")
def _sum_of_logs(sigma: Array, missing: Doubles) -> float:
    """Σ -log max(σ, 1 - σ): softplus(s) is max(s, 0) and this.

    The factors are 1 - m with m = min(σ, 1 - σ) at most ½. A product of R of them is kept as what is missing to one,
    1 - (1 - a)(1 - b) = a + b - ab, and one of R of these as what its inverse has beyond one, (1 + a)(1 + b) - 1 =
    a + b + ab: neither ever cancels, the smallest m keep their digits, and one logarithm serves 256 factors. The first
    four are taken together in single precision.
    """
    missing[:] = 0.0
    for i in range(0, R, SQUARE):
        for j in range(B):
            a, b, c, d = sigma[i, j], sigma[i + 1, j], sigma[i + 2, j], sigma[i + 3, j]
            a = f32(1) - a if a > f32(0.5) else a
            b = f32(1) - b if b > f32(0.5) else b
            c = f32(1) - c if c > f32(0.5) else c
            d = f32(1) - d if d > f32(0.5) else d
            a = a + b - a * b
            c = c + d - c * d
            of_four = np.float64(a + c - a * c)
            missing[j] += of_four - missing[j] * of_four
    total = 0.0
    for start in range(0, B, R):
        beyond = 0.0
        for j in range(start, start + R):
            more = missing[j] / (1.0 - missing[j])
            beyond += more + beyond * more
        total += np.log1p(beyond)
    return total


# ----------------------------------------------------------------------------------------------------------- all tiles


@compiled()
def _sweep_blocks(
    q: Array,
    k: Array,  # blocks × F × B
    mates: Array,  # what a row adds to the sums by column
    blocks: npt.NDArray[np.int64],
    rows: tuple[int, int],
    sizes: tuple[int, int],  # rows and columns that are not padding
    symmetric: bool,
    value: bool,
    gradient: bool,
    by_row: Array,  # of these rows
    by_column: Array,  # blocks × F × B
    row_sums: Doubles,  # of these rows; empty if nobody asks for them
    column_sums: Doubles,  # blocks × B
) -> float:
    """All tiles of some blocks of columns and a range of rows; of symmetric logits those on and above the diagonal."""
    tile = np.empty((R, B), np.float32)
    missing = np.empty(B, np.float64)
    recent = np.zeros_like(by_column[0])  # added up apart, so that small terms do not meet large sums
    total = 0.0
    for block in blocks:
        diagonal = block * B if symmetric else rows[1]  # from here on a tile has no mirror image
        for top in range(rows[0], min(rows[1], diagonal + B), R):
            mirrored = symmetric and top < diagonal
            _set_product(q[top : top + R], k[block], tile)
            _add_product(q[top : top + R], k[block], SQUARE, tile)
            part = LN_2 * _sum_of_positives(tile) if value else 0.0
            _sigmoid(tile)
            at_the_edge = top + R > sizes[0] or (block + 1) * B > sizes[1]
            if at_the_edge and (value or len(row_sums)):
                _silence(tile, sizes[0] - top, sizes[1] - block * B)
            if value:
                part += _sum_of_logs(tile, missing)
                total += 2 * part if mirrored else part
            if gradient:
                _add_by_row(tile, k[block], top - rows[0], by_row)
            if len(row_sums):
                _add_row_sums(tile, top - rows[0], row_sums)
                if mirrored or not symmetric:
                    _add_column_sums(tile, column_sums[block])
            if gradient and (mirrored or not symmetric):
                _add_product(mates[top : top + R].T, tile, 0, recent)
                if (top // R) % RECENT == 0:
                    by_column[block] += recent
                    recent[:] = 0
        by_column[block] += recent
        recent[:] = 0
    return total


def sweep(
    q: Tensor,
    k: Tensor,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    *,
    symmetric: bool,
    value: bool,
    gradient: bool,
) -> Sums:
    """All sums of the op for float32 factors on the CPU."""
    biased = row_bias is not None or column_bias is not None
    rows, columns = q.detach().numpy(), k.detach().numpy()
    scaled = rows * LOG2_E  # powers of two are what is cheap to compute
    if biased:
        scaled, rows, columns = _with_biases(rows, columns, row_bias, column_bias)
    of_rows = B if symmetric else R
    scaled, rows, columns = _padded(scaled, of_rows), _padded(rows, of_rows), _padded(columns, B)
    height, width = rows.shape
    blocks = zeros(len(columns) // B, width, B)
    blocks[:] = columns.reshape(-1, B, width).transpose(0, 2, 1)
    mates = columns if symmetric else rows
    shares = _shares(len(blocks), symmetric=symmetric)
    by_row, by_column = zeros(*rows.shape), zeros(*blocks.shape)
    counted = biased and gradient
    row_sums, column_sums = np.zeros(height if counted else 0), np.zeros((len(blocks), B if counted else 0))
    total = 0.0
    for top in range(0, height, STRIPE):
        stop = min(top + STRIPE, height)
        by_thread = [zeros(stop - top, width) for _ in shares]
        sums_by_thread = [np.zeros(stop - top if counted else 0) for _ in shares]

        def work(
            share: int,
            top: int = top,
            stop: int = stop,
            by_thread: list[Array] = by_thread,
            sums_by_thread: list[Doubles] = sums_by_thread,
        ) -> float:
            result: float = _sweep_blocks(
                scaled,
                blocks,
                mates,
                shares[share],
                (top, stop),
                (len(q), len(k)),
                symmetric,
                value,
                gradient,
                by_thread[share],
                by_column,
                sums_by_thread[share],
                column_sums,
            )
            return result

        total += sum(in_threads(work, len(shares)))
        by_row[top:stop] = sum(by_thread)
        row_sums[top:stop] = sum(sums_by_thread)
    of_columns = by_column.transpose(0, 2, 1).reshape(-1, width)
    sums_of_columns = column_sums.ravel()
    if symmetric:
        by_row += of_columns
        row_sums += sums_of_columns
        of_columns, sums_of_columns = by_row, row_sums
    own = slice(2, 2 + q.shape[1]) if biased else slice(q.shape[1])  # the factors' columns
    return Sums(
        torch.tensor(total if value else math.nan, dtype=torch.float64),
        torch.from_numpy(by_row[: len(q), own]),
        torch.from_numpy(row_sums[: len(q)]),
        torch.from_numpy(of_columns[: len(k), own]),
        torch.from_numpy(sums_of_columns[: len(k)]),
    )


def _with_biases(
    rows: Array, columns: Array, row_bias: Tensor | None, column_bias: Tensor | None
) -> tuple[Array, Array, Array]:
    """The left factors over ln 2 and both sides' factors, between columns for the biases.

    That is, s/ln 2 = [r', 1, q/ln 2, r, 1] · [1, c', k, 1, c].

    Here r and c are the biases over ln 2 rounded to multiples of 2⁻⁸, whose sums float32 holds exactly, and r', c' what
    that leaves of them, first of all because there they are added to small sums. Biases may be as large as logits and
    all the same: rounded like others, they would be wrong in the same direction everywhere.
    """
    ends = []
    for bias, length in ((row_bias, len(rows)), (column_bias, len(columns))):
        exact = np.zeros(length) if bias is None else bias.detach().numpy().astype(np.float64) / LN_2
        coarse = np.rint(256 * exact) / 256
        fine = np.where(np.isfinite(exact), exact - coarse, 0.0)
        ends.append((fine.astype(f32)[:, None], coarse.astype(f32)[:, None], np.ones((length, 1), f32)))
    (row_fine, row_coarse, row_one), (column_fine, column_coarse, column_one) = ends
    scaled = (rows.astype(np.float64) / LN_2).astype(f32)
    nothing = np.zeros((len(rows), 2), f32)
    return (
        np.hstack([row_fine, row_one, scaled, row_coarse, row_one]),
        np.hstack([nothing, rows, nothing]),
        np.hstack([column_one, column_fine, columns, column_one, column_coarse]),
    )


def _padded(given: Array, rows: int) -> Array:
    """Factors with zeros up to a multiple of `rows` rows and of SQUARE columns."""
    padded = zeros(-(-len(given) // rows) * rows, -(-given.shape[1] // SQUARE) * SQUARE)
    padded[: len(given), : given.shape[1]] = given
    return padded


def _shares(num_blocks: int, *, symmetric: bool) -> list[npt.NDArray[np.int64]]:
    """Blocks of columns for each thread, dealt out from the last one, which has most tiles if logits are symmetric."""
    threads = min(num_threads(), num_blocks)
    shares: list[list[int]] = [[] for _ in range(threads)]
    loads = [0] * threads
    for block in reversed(range(num_blocks)):
        thread = loads.index(min(loads))
        shares[thread].append(block)
        loads[thread] += block + 1 if symmetric else 1
    return [np.array(share) for share in shares]
