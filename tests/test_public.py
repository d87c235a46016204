"""The public surface: every name is there, and importing it is light."""

import subprocess
import sys

import pytest

import vgae

LATER = (
    "gensim",
    "matplotlib",
    "networkx",
    "torch_geometric",
    "sklearn",
    "pandas",
    "polars",
    "pyarrow",
    "torch",
    "numpy",
)


def test_every_public_name_is_there() -> None:
    assert dir(vgae) == sorted(vgae.__all__)
    for name in vgae.__all__:
        assert getattr(vgae, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        vgae.nonsense  # noqa: B018


def test_import_loads_only_what_is_used() -> None:
    code = f"import sys, vgae; print([name for name in {LATER!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
