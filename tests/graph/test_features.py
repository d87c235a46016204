"""Features brought to scale: rows of unit length, columns between -1 and 1, and the same for other rows later."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import message_of
from vgae import Graph
from vgae.errors import InputError
from vgae.graph import checks
from vgae.graph.features import Normalization, normalize
from vgae.graph.scales import NORMALIZATIONS


def counts(seed: int = 0) -> np.ndarray:
    """A bag of words: few entries, large ones among them, an empty row and an empty column."""
    generator = np.random.default_rng(seed)
    matrix = generator.poisson(0.4, size=(30, 12)).astype(np.float32) * generator.integers(1, 500, size=(30, 12))
    matrix[7], matrix[:, 3] = 0, 0
    return matrix.astype(np.float32)


@pytest.mark.parametrize("how", NORMALIZATIONS)
def test_sparse_and_dense_features_come_to_the_same_scale(how: str) -> None:
    dense = counts()
    sparse: Any = normalize(sp.csr_array(dense), how)
    assert sp.issparse(sparse)
    assert sparse.dtype == np.float32
    np.testing.assert_array_equal(sparse.toarray(), normalize(dense, how))


def test_rows_have_unit_length_and_keep_their_direction() -> None:
    dense = counts().astype(np.float64)
    expected = dense / np.where(dense.any(axis=1), np.linalg.norm(dense, axis=1), 1)[:, None]
    np.testing.assert_allclose(normalize(dense, "rows"), expected, rtol=1e-6)


def test_columns_are_divided_by_their_largest_magnitude() -> None:
    dense = counts() * np.where(np.arange(12) % 2, 1, -1)
    largest = np.abs(dense).max(axis=0)
    np.testing.assert_allclose(normalize(dense, "columns"), dense / np.where(largest, largest, 1), rtol=1e-6)


def test_the_largest_numbers_of_32_bits_do_not_overflow() -> None:
    huge = np.full((2, 4), 3e38, dtype=np.float32)
    np.testing.assert_allclose(normalize(huge, "rows"), 0.5, rtol=1e-6)
    np.testing.assert_allclose(normalize(huge, "columns"), 1.0)


def test_entries_that_are_stored_twice_count_once_as_their_sum() -> None:
    twice = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    scaled: Any = normalize(twice, "rows")
    np.testing.assert_allclose(scaled.toarray(), [[0.6, 0.8]], rtol=1e-6)
    assert twice.nnz == 3, "the caller's matrix stays as it was"


def test_other_rows_are_scaled_as_the_first_were() -> None:
    first, other = counts(0), counts(1)
    columns = Normalization.fit(first, "columns")
    largest = first.max(axis=0)
    np.testing.assert_allclose(columns.apply(other), other / np.where(largest > 0, largest, 1), rtol=1e-6)
    np.testing.assert_array_equal(Normalization.fit(first, "rows").apply(other), normalize(other, "rows"))


def test_another_number_of_columns_is_refused() -> None:
    with pytest.raises(InputError, match="12 were normalized before"):
        Normalization.fit(counts(), "columns").apply(counts()[:, :5])


def test_a_graph_with_normalized_features_is_otherwise_the_same() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)], features=counts()[:3], labels=[0, 1, 0])
    scaled = graph.normalized("rows")
    np.testing.assert_array_equal(scaled.features, normalize(graph.features, "rows"))
    np.testing.assert_array_equal(scaled.edges, graph.edges)
    np.testing.assert_array_equal(scaled.labels, graph.labels)
    assert Graph.from_edges([(0, 1)]).normalized("rows").features is None


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="not one of none, rows, columns"):
        normalize(counts(), "l2")


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_not_finite_is_found_block_by_block(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    monkeypatch.setattr(checks, "BLOCK", 7)  # two rows, or seven entries
    features = np.ones((10, 3), np.float32)
    features[7, 1], features[9, 0] = np.nan, np.inf
    given = sp.csr_array(features) if sparse else features
    words = message_of(lambda: Graph.from_edges([(0, 1)], num_nodes=10, features=given))
    assert words.startswith("features: row 7, column 1 is nan; ")
