"""Sparse products against the dense matrix, forward and backward."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from vgae.ops import SparseMatrix


def random_matrix(rows: int, columns: int, *, symmetric: bool = False) -> sp.csr_array:
    """A tenth filled, with some rows and columns empty."""
    matrix = sp.random_array((rows, columns), density=0.1, rng=np.random.default_rng(rows * columns), dtype=np.float32)
    return sp.csr_array(matrix + matrix.T) if symmetric else sp.csr_array(matrix)


@pytest.mark.parametrize(
    ("rows", "columns", "symmetric"), [(1, 1, False), (30, 50, False), (50, 30, False), (40, 40, True)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_product_and_gradient_equal_the_dense_ones(
    rows: int, columns: int, symmetric: bool, dtype: torch.dtype
) -> None:
    matrix = random_matrix(rows, columns, symmetric=symmetric)
    twin = torch.tensor(matrix.toarray(), dtype=dtype)
    dense = torch.randn(columns, 7, dtype=dtype, requires_grad=True)
    upstream = torch.randn(rows, 7, dtype=dtype)
    product = SparseMatrix(matrix, symmetric=symmetric) @ dense
    (gradient,) = torch.autograd.grad(product, dense, upstream)
    torch.testing.assert_close(product, twin @ dense)
    torch.testing.assert_close(gradient, twin.T @ upstream)


def test_gradient_passes_through_a_transposed_upstream() -> None:
    matrix = random_matrix(20, 20, symmetric=True)
    dense = torch.randn(20, 6, dtype=torch.float64, requires_grad=True)
    sparse = SparseMatrix(matrix, symmetric=True)
    assert torch.autograd.gradcheck(lambda h: (sparse @ h).T @ (sparse @ h), (dense,))


def test_same_product_twice_gives_the_same_bits() -> None:
    sparse = SparseMatrix(random_matrix(500, 300))
    dense = torch.randn(300, 32)
    assert torch.equal(sparse @ dense, sparse @ dense)


@pytest.mark.parametrize("symmetric", [False, True])
def test_other_values_are_those_of_the_transpose_too(symmetric: bool) -> None:
    matrix = random_matrix(30, 30 if symmetric else 50, symmetric=symmetric)
    matrix.sort_indices()
    other = matrix.copy()
    other.data = other.data**2 + 1
    upstream, dense = torch.randn(30, 4), torch.randn(matrix.shape[1], 4, requires_grad=True)
    found = SparseMatrix(matrix, symmetric=symmetric).with_values(torch.tensor(other.data)) @ dense
    torch.testing.assert_close(found, torch.tensor(other.toarray()) @ dense)
    (gradient,) = torch.autograd.grad(found, dense, upstream)
    torch.testing.assert_close(gradient, torch.tensor(other.toarray()).T @ upstream)
