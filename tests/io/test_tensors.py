"""A file of tensors that is written piece by piece has the bytes that safetensors would write."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from vgae.io import tensors

ARRAYS: dict[str, Any] = {
    "w.b": np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32),
    "a": np.arange(11),
    "é": np.zeros((0, 3), dtype=np.float32),
    "indices": np.arange(5, dtype=np.int32),
    "one": np.array(2.5),
    **{kind: np.arange(3).astype(kind) for kind in tensors.TYPES},
    "by columns": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
}


@pytest.mark.parametrize("piece", [1, 7, 2**24])
@pytest.mark.parametrize("names", [list(ARRAYS), list(ARRAYS)[::-1], []])
def test_bytes_are_those_of_safetensors(monkeypatch: pytest.MonkeyPatch, piece: int, names: list[str]) -> None:
    monkeypatch.setattr(tensors, "PIECE", piece)
    file = io.BytesIO()
    tensors.write_tensors(file, {name: ARRAYS[name] for name in names})
    assert file.getvalue() == save({name: torch.tensor(ARRAYS[name]).contiguous() for name in names})
