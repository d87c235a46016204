"""Dense features looked at by some rows at a time are the arrays of the CSR array of all of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from vgae.graph import features


@pytest.mark.parametrize("block", [1, 50, 2**20])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (200, 37)])
def test_pieces_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch, block: int, shape: tuple[int, int]) -> None:
    monkeypatch.setattr(features, "BLOCK", block)
    generator = np.random.default_rng(0)
    values = (generator.normal(size=shape) * (generator.random(shape) < 0.6)).astype(np.float32)
    values[-1] = -0.0
    whole = sp.csr_array(values)
    (starts, _), *rest = features.csr_pieces(values)
    assert np.array_equal(starts, whole.indptr)
    for kind, expected in (("<i8", whole.indices), ("<f4", whole.data)):
        assert np.array_equal(np.concatenate([piece for piece, of in rest if of == kind]), expected)
