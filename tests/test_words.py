"""Words for sentences: the right plural, and any value in short."""

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


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000, 10**5000, list(range(10_000)), np.zeros(10_000), {"a": [[[[[1]]]]]}, "two\nlines", object()],
    ids=["text", "number", "list", "array", "nested", "lines", "object"],
)
def test_any_value_is_shown_in_one_short_line(value: object) -> None:
    assert "\n" not in shown(value)
    assert 0 < len(shown(value)) < 100


def test_short_values_are_shown_as_python_writes_them() -> None:
    for value in ("a", 3, 2.5, None, True, (1, "b"), [1, 2]):
        assert shown(value) == repr(value)
