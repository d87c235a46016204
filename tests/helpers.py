"""What several test files need."""

from collections.abc import Callable

import pytest

from vgae.errors import InputError


def message_of(make: Callable[[], object]) -> str:
    """The words of the InputError that a call raises."""
    try:
        make()
    except InputError as error:
        return str(error)
    pytest.fail("no InputError was raised")
