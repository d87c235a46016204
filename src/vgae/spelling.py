"""British and American spelling: names of options and parts are understood in both.

Each name is written once, in one spelling, which is what help and error messages show. The pairs below are the only
place that knows the other one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

PAIRS = {  # British: American
    "colour": "color",
    "neighbours": "neighbors",
    "normalise": "normalize",
    "normalised": "normalized",
    "standardise": "standardize",
}
_OTHER = PAIRS | {american: british for british, american in PAIRS.items()}


def other_spelling(name: str) -> str | None:
    """The name with its words spelled the other way; None where no word of it has another spelling."""
    other = re.sub(r"[a-z]+", lambda word: _OTHER.get(word[0], word[0]), name)
    return None if other == name else other


def as_known(name: str, known: Collection[str]) -> str:
    """The one of the known names that this is in either spelling; a name that is none of them stays as it is."""
    if name in known:
        return name
    other = other_spelling(name)
    return other if other is not None and other in known else name


def keywords_as_known(function: str, keywords: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Keywords by the names that a function knows; one that is given in both spellings is refused."""
    found: dict[str, Any] = {}
    for name, value in keywords.items():
        own = as_known(name, known)
        if own in found:
            raise TypeError(f"{function}() got the keyword argument {own!r} in two spellings")
        found[own] = value
    return found
