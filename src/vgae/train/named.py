"""Presets: compositions with training options that have a name, and take the place of what was not given.

`paper` is what `Config` has anyway. A preset that stops early needs validation links to stop by; with fewer than
`ENOUGH_TO_STOP` of them, the number of iterations is the paper's, and none of them is special.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from vgae.errors import InputError
from vgae.options import one_of
from vgae.train.config import Config
from vgae.train.presets import ACCURATE, ENOUGH_TO_STOP

NAMED: dict[str, dict[str, Any]] = {"paper": {}, "accurate": ACCURATE}
TO_STOP = ("iterations", "early_stopping", "stop_by")  # of which none holds where there is nothing to stop by


def preset_values(name: Any, num_validation_links: int | None = None) -> dict[str, Any]:
    """The options of a preset; where it is known how many validation links there are, those that can be used."""
    values = NAMED[one_of(name, "preset", tuple(NAMED))]
    if num_validation_links is None or num_validation_links >= ENOUGH_TO_STOP:
        return dict(values)
    return {option: value for option, value in values.items() if option not in TO_STOP}


def with_preset(config: Config, name: str, given: Collection[str], num_validation_links: int) -> Config:
    """A configuration with the values of a preset where an option was not given."""
    values = preset_values(name, num_validation_links)
    try:
        return replace(config, **{option: value for option, value in values.items() if option not in given})
    except InputError as error:  # what was given and what the preset has cannot go together
        raise InputError(f"preset {name}: {error}") from None
