"""Parameters of estimators: the fields of an `Options` class, and `progress`. Nothing about them is written twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from vgae.errors import InputError
from vgae.options import Options, options_of, true_or_false
from vgae.train.config import choose_device

PROGRESS = "progress"


class OptionsEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """An estimator with the parameters of an `Options` class, which a subclass names: `options=Config`.

    `without` are options that the class decides itself. Docstrings of subclasses end with the list of parameters.
    """

    _defaults: ClassVar[dict[str, Any]]  # of the options that are parameters
    _help: ClassVar[dict[str, str]]

    def __init_subclass__(
        cls, *, options: type[Options] | None = None, without: tuple[str, ...] = (), **keywords: Any
    ) -> None:
        super().__init_subclass__(**keywords)
        if options is not None:
            found = [each for each in options_of(options) if each.name not in without]
            cls._defaults = {each.name: each.default for each in found}
            cls._help = {each.name: each.help for each in found} | {PROGRESS: "Show a progress bar on standard error."}
            # scikit-learn reads the signature of the class's own __init__, so that each such class has one
            cls.__init__ = _init_of(cls, cls._defaults | {PROGRESS: False})  # type: ignore[method-assign]
        if cls.__doc__:
            lines = [f"{name}: {text}" for name, text in cls._help.items()]
            cls.__doc__ = f"{cls.__doc__}\n    Parameters:\n\n    " + "\n    ".join(lines) + "\n"

    def _option_values(self) -> dict[str, Any]:
        """The values of the options; `progress` is none of them, and is checked here."""
        true_or_false(self.progress, PROGRESS)
        return {name: getattr(self, name) for name in self._defaults}

    @classmethod
    def _parameters_of(cls, config: Options) -> dict[str, Any]:
        """The parameters of a configuration; a device that this machine has not becomes auto."""
        values = {name: getattr(config, name) for name in cls._defaults}
        try:
            choose_device(values["device"])
        except InputError:
            values["device"] = "auto"
        return values


def _init_of(cls: type, defaults: Mapping[str, Any]) -> Callable[..., None]:
    """The `__init__` of a class that takes these parameters by their names, and stores them as they are."""

    def __init__(self: Any, **parameters: Any) -> None:  # noqa: N807 - it becomes the method of that name
        unknown = set(parameters) - set(defaults)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {', '.join(sorted(unknown))}.")
        for name, value in {**defaults, **parameters}.items():
            setattr(self, name, value)

    __init__.__signature__ = Signature(  # type: ignore[attr-defined]  # what scikit-learn, help() and notebooks read
        [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            *(Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()),
        ]
    )
    __init__.__module__, __init__.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return __init__
