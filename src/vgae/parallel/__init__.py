"""One training in many processes: their group, which nodes each has, and what they say to each other."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vgae.parallel.group import Group
    from vgae.parallel.joining import joined

__all__ = ["Group", "joined"]

_LATER = {"Group": "vgae.parallel.group", "joined": "vgae.parallel.joining"}  # which load torch


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
