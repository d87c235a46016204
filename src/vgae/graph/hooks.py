"""What graphs offer and later layers know how to do, such as reading a data frame.

A method of a graph may need a layer that itself needs graphs. That layer registers its function here, and the method
calls it by name, so that imports keep pointing one way. `vgae/io/__init__.py` has the registrations.
"""

from collections.abc import Callable
from typing import Any

_REGISTERED: dict[str, Callable[..., Any]] = {}


def register(name: str, function: Callable[..., Any]) -> None:
    """Make a function of a later layer known to this one."""
    _REGISTERED[name] = function


def call(name: str, *arguments: Any, **options: Any) -> Any:
    """Call the function that was registered under this name."""
    return _REGISTERED[name](*arguments, **options)
