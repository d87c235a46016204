"""The public surface: every name is there, and importing it is light."""

import ast
import subprocess
import sys
from pathlib import Path

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


def test_type_checkers_see_what_is_loaded() -> None:
    """The names that are loaded on first use are imported from the same modules for type checkers."""
    blocks = (node for node in ast.parse(Path(str(vgae.__file__)).read_text()).body if isinstance(node, ast.If))
    (checking,) = (block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING")
    imports = (node for node in checking.body if isinstance(node, ast.ImportFrom))
    seen = {alias.name: each.module for each in imports for alias in each.names}
    assert seen == vgae._LATER
    always = {"InputError", "TrainingError", "VgaeError", "__version__"}
    assert set(vgae.__all__) == always | set(seen)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        vgae.nonsense  # noqa: B018


def test_import_loads_only_what_is_used() -> None:
    code = f"import sys, vgae; print([name for name in {LATER!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
