"""Words for sentences: the right plural, and any value in short."""

from typing import Any

import numpy as np
import pytest

from vgae.words import count, shown


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 links"), (1, "1 link"), (2, "2 links"), (1000, "1,000 links"), (-1, "-1 links")]
)
def test_one_is_singular_and_everything_else_plural(number: int, words: str) -> None:
    assert count(number, "link") == words


def test_a_plural_of_its_own_is_used_where_one_is_given() -> None:
    assert count(1, "class", "classes") == "1 class"
    assert count(3, "class", "classes") == "3 classes"


class Odd:
    def __repr__(self) -> str:
        return "one\ntwo"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x" * 10**6, "'xxx"),
        (10**5000, "a number of 16610 bits"),
        ([10**5000], "[a number of 16610 bits]"),
        (np.zeros((3, 2)), "an array of float64 of the shape (3, 2)"),
        ({"a": [1, [2, [3, [4]]]] * 100}, "{'a': [1, [2, [...]], 1, ...]}"),
        ("two\nlines", r"'two\nlines'"),
        (Odd(), "one two"),
    ],
    ids=range(7),
)
def test_values_are_shown_on_one_short_line(value: Any, words: str) -> None:
    assert words in shown(value)
    assert "\n" not in shown(value)
    assert len(shown(value)) < 100


def test_short_values_are_shown_as_python_writes_them() -> None:
    for value in ("a", 3, 2.5, None, True, (1, "b"), [1, 2]):
        assert shown(value) == repr(value)
