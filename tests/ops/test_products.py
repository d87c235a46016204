"""Kernels for products and draws on the CPU: the bits of PyTorch's bags of rows, the formulas in double precision."""

import platform
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.ops import SparseMatrix, pages, sparse
from vgae.ops.normal import draw_with_kl

numba = pytest.importorskip("numba")
from vgae.ops import normal_kernels, product_kernels  # noqa: E402 - only where numba is installed


def matrix(height: int, width: int, *, degree: int = 6, hub: int = 0, seed: int = 0) -> sp.csr_array:
    """Random entries; the first and last row have none, and one row may have many."""
    draws = np.random.default_rng(seed)
    dense = sp.random_array(
        (height, width), density=min(1.0, degree / width), rng=draws, dtype=np.float32, format="lil"
    )
    dense[0] = 0
    dense[height - 1] = 0
    if hub:
        dense[height // 2, draws.permutation(width)[:hub]] = 0.5
    found = sp.csr_array(dense)
    found.eliminate_zeros()
    return found


def bags(rows: Any, dense: Tensor) -> Tensor:
    return torch.nn.functional.embedding_bag(
        rows.columns, dense, rows.starts, mode="sum", per_sample_weights=rows.values, include_last_offset=True
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", [16, 32, 48, 64])
@pytest.mark.parametrize(
    ("height", "columns", "hub"), [(2, 3, 0), (300, 2500, 0), (2100, 700, 600), (4000, 4000, 4000)]
)
def test_products_are_those_of_bags_of_rows(
    monkeypatch: pytest.MonkeyPatch, height: int, columns: int, hub: int, width: int, threads: int
) -> None:
    monkeypatch.setattr(product_kernels, "ALONE", 1)
    monkeypatch.setattr(product_kernels, "PART", 64)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    given = SparseMatrix(matrix(height, columns, hub=hub))
    for rows, length in ((given.rows, columns), (given.rows_of_transpose, height)):
        dense = torch.randn(length, width, generator=torch.Generator().manual_seed(1))
        found = product_kernels.multiply(rows.starts, rows.columns, rows.values, dense)
        expected = bags(rows, dense)
        assert torch.equal(found, expected)
        assert torch.equal(
            product_kernels.multiply(rows.starts, rows.columns, rows.values, dense, early=True), expected
        )
        exact = sp.csr_array(given_array(rows, length)).astype(np.float64) @ dense.double().numpy()
        assert np.abs(found.numpy() - exact).max() <= 1e-5 * max(1.0, np.abs(exact).max())
        before = torch.randn(found.shape, generator=torch.Generator().manual_seed(2))
        onto = before.clone()
        assert product_kernels.multiply(rows.starts, rows.columns, rows.values, dense, onto) is onto
        assert torch.equal(onto, before + expected)


def given_array(rows: Any, width: int) -> sp.csr_array:
    parts = rows.values.numpy(), rows.columns.numpy(), rows.starts.numpy()
    return sp.csr_array(parts, shape=(len(rows.starts) - 1, width))


@pytest.mark.parametrize("width", [1, 15, 16, 17, 32, 40, 64, 80])
def test_steps_and_evaluations_have_the_same_bits(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """With a gradient and without, which take the kernels and PyTorch's bags; widths without a kernel have bags."""
    monkeypatch.setattr(sparse, "is_in_one_thread", lambda: True)
    given = SparseMatrix(matrix(2100, 2100), symmetric=False)
    dense = torch.randn(2100, width, generator=torch.Generator().manual_seed(1), requires_grad=True)
    upstream = torch.randn(2100, width, generator=torch.Generator().manual_seed(2))
    found = given @ dense
    (gradient,) = torch.autograd.grad(found, dense, upstream)
    assert torch.equal(found.detach(), given @ dense.detach())
    monkeypatch.setattr(sparse, "HAS_NUMBA", False)
    (expected,) = torch.autograd.grad(given @ dense, dense, upstream)
    assert torch.equal(gradient, expected)


def test_columns_in_64_bits_are_taken_too() -> None:
    rows = SparseMatrix(matrix(50, 40)).rows
    dense = torch.randn(40, 16)
    found = product_kernels.multiply(rows.starts.long(), rows.columns.long(), rows.values, dense)
    assert torch.equal(found, bags(rows, dense))


def heads(num: int, width: int, *, largest: float = 3.0, side_by_side: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, log σ and noise; an encoder's heads lie side by side."""
    draws = torch.Generator().manual_seed(num + width)
    outputs = largest * (2 * torch.rand(num, 2 * width, generator=draws) - 1)
    outputs[:, :width] *= 5
    mean, log_std = torch.split(outputs, [width, width], dim=1)
    if not side_by_side:
        mean, log_std = mean.contiguous(), log_std.T.contiguous().T
    return mean, log_std, torch.randn(num, width, generator=draws)


@pytest.mark.parametrize("side_by_side", [True, False])
@pytest.mark.parametrize(
    ("num", "width"), [(1, 1), (33, 1), (4095, 7), (4096, 16), (4097, 16), (9000, 64), (4100, 33), (40, 600)]
)
def test_draws_their_kl_and_gradients_are_the_formulas(num: int, width: int, side_by_side: bool) -> None:
    mean, log_std, noise = heads(num, width, side_by_side=side_by_side)
    draws = torch.Generator().manual_seed(0)
    of_z, of_kl = torch.randn(num, width, generator=draws), torch.randn(width, generator=draws)
    results = []
    for implementation, dtype in (("numba", torch.float32), ("torch", torch.float32), ("torch", torch.float64)):
        given = tuple(each.detach().to(dtype).requires_grad_() for each in (mean, log_std))
        z, kl = draw_with_kl(given[0], given[1], noise.to(dtype), implementation=implementation)
        upstream = of_z.to(dtype), of_kl.to(dtype)
        results.append([z.detach(), kl.detach(), *torch.autograd.grad((z, kl), given, upstream)])
    for found, plain, exact in zip(*results, strict=True):
        error, of_plain = (float((each - exact).abs().max()) for each in (found, plain))
        assert error <= 2 * of_plain + 1e-7 * float(exact.abs().max())


def test_sums_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    given = heads(20_000, 16)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(normal_kernels.draw(*given)[1])
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("log_std", [-200.0, -88.0, -87.0, -20.0, 0.0, 1e-8, 20.0, 44.0, 88.0, 89.0, 1e9, np.nan])
def test_extreme_scales_are_what_exp_makes_of_them(log_std: float) -> None:
    mean, noise = torch.zeros(5, 3), torch.ones(5, 3)
    z, _ = normal_kernels.draw(mean, torch.full((5, 3), log_std), noise)
    expected = torch.full((5, 3), log_std, dtype=torch.float64).exp().float()
    torch.testing.assert_close(z, expected, rtol=3e-7, atol=3e-38, equal_nan=True)


@pytest.mark.parametrize("rows", [3, pages.LARGE // 64 + 7])
def test_large_pages_change_no_bits(rows: int) -> None:
    """Below the size from which on they are asked for, and above."""
    draws = torch.Generator().manual_seed(0)
    left = torch.randn(rows, 16, generator=draws, requires_grad=True)
    right = torch.randn(16, 8, generator=draws, requires_grad=True)
    assert pages.is_large(left) == (rows > 3)
    found, expected = pages.product(left, right), left @ right
    upstream = torch.randn(rows, 8, generator=draws)
    assert torch.equal(found, expected)
    of_found, of_expected = (torch.autograd.grad(each, (left, right), upstream) for each in (found, expected))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(of_found, of_expected, strict=True))
    assert torch.equal(pages.moved(left.detach()), left.detach())
    assert torch.equal(pages.scaled(left.detach(), torch.tensor(0.3)), 0.3 * left.detach())


FREED = """
import resource
import torch
from vgae.ops import pages
pages.keep_freed()
def use():
    tensors = [torch.ones(750_000) for _ in range(12)]
    while tensors:
        tensors.pop()
for _ in range(5):
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have other ways")
def test_memory_that_is_freed_is_there_for_the_next_step() -> None:
    """Hardly a page of 4 KB comes from the system in a round that takes 36 MB and frees them; else it may be 8,757."""
    ask = [sys.executable, "-c", FREED]
    found = [float(subprocess.run(ask, capture_output=True, text=True, check=True).stdout) for _ in range(2)]
    assert max(found) < 50
