"""How graphs come in and results go out: tables, GraphML, npz, datasets, splits, embeddings.

What graphs and splits offer and this layer does is registered with `graph/hooks.py` by `import vgae`; the modules are
loaded when they are first used.
"""

from functools import partial
from importlib import import_module
from typing import Any

from vgae.graph import hooks

_HOOKS = {
    "read_frame": "vgae.io.tables",
    "read_split": "vgae.io.splits",
    "write_split": "vgae.io.splits",
}


def register_hooks() -> None:
    """Make these functions known to the layer of graphs."""
    for name, module in _HOOKS.items():
        hooks.register(name, partial(_call, module, name))


def _call(module: str, name: str, *arguments: Any, **options: Any) -> Any:
    return getattr(import_module(module), name)(*arguments, **options)
