"""Which listed pairs become rows: the best by each column, each once, and a sample of the rest that stands for it."""

import numpy as np
import pytest

from vgae.stack import contenders
from vgae.stack.contenders import FoldEvidence, most_listed, with_listed


def a_fold(num_columns: int) -> FoldEvidence:
    evidence = np.full((3, num_columns), -1, dtype=np.float32)
    return FoldEvidence(evidence, np.array([1, 1, 0], dtype=np.uint8), np.array([1.0, 1.0, 50.0]))


def listed_pairs(num: int, num_columns: int, seed: int) -> np.ndarray:
    """Evidence with gaps, equal values and a number for each pair in its first column."""
    generator = np.random.default_rng(seed)
    found = generator.normal(size=(num, num_columns)).round(1).astype(np.float32)
    found[generator.random(found.shape) < 0.1] = np.nan
    found[:, 0] = generator.permutation(num)
    return found


@pytest.mark.parametrize("num", [0, 1, 5, 40, 3000])
@pytest.mark.parametrize("num_columns", [1, 4])
def test_the_best_of_every_column_are_rows_and_the_rest_is_stood_for(
    num: int, num_columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contenders, "TOP_OF_COLUMN", 7)
    monkeypatch.setattr(contenders, "REST", 20)
    fold, listed = a_fold(num_columns), listed_pairs(num, num_columns, num)
    found = with_listed(fold, listed, np.random.default_rng(0))
    more, weights = found.evidence[3:], found.weights[3:]
    assert np.array_equal(found.evidence[:3], fold.evidence)
    assert np.array_equal(found.labels, [1, 1, *np.zeros(len(found.labels) - 2)])
    assert len(np.unique(more[:, 0])) == len(more) <= most_listed(num_columns)
    assert np.isin(more[:, 0], listed[:, 0]).all()
    assert weights.sum() == pytest.approx(num)
    certain = set(more[weights == 1, 0])
    for column in listed.T:
        present = np.flatnonzero(~np.isnan(column))
        best = sorted(zip((-column[present]).tolist(), present.tolist(), strict=True))[:7]
        assert set(listed[[place for _, place in best], 0]) <= certain
    if num > 7 * num_columns + 20:
        assert np.count_nonzero(weights > 1) == 20


def test_sums_over_the_list_are_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "TOP_OF_COLUMN", 10)
    monkeypatch.setattr(contenders, "REST", 30)
    listed = listed_pairs(500, 2, 1)
    sums = []
    for seed in range(400):
        found = with_listed(a_fold(2), listed, np.random.default_rng(seed))
        sums.append(found.weights[3:] @ np.sqrt(found.evidence[3:, 0]))
    assert abs(np.mean(sums) - np.sqrt(listed[:, 0]).sum()) < 4 * np.std(sums) / np.sqrt(len(sums))


def test_the_same_generator_gives_the_same_rows() -> None:
    listed = listed_pairs(30_000, 3, 2)
    one, same, other = (with_listed(a_fold(3), listed, np.random.default_rng(seed)).evidence for seed in (0, 0, 1))
    assert np.array_equal(one, same, equal_nan=True)
    assert not np.array_equal(one, other, equal_nan=True)
