"""Every public name has an example in its docstring, and it runs as it stands."""

import doctest
from contextlib import chdir
from pathlib import Path

import pytest

import vgae

NAMES = [name for name in vgae.__all__ if name != "__version__"]


def example_of(name: str) -> doctest.DocTest:
    text = getattr(vgae, name).__doc__ or ""
    return doctest.DocTestParser().get_doctest(text, {}, name, None, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_runs(name: str, tmp_path: Path) -> None:
    example = example_of(name)
    assert example.examples, f"the docstring of vgae.{name} has no example"
    assert any(name in each.source for each in example.examples), f"the example of vgae.{name} does not use it"
    assert not any(doctest.SKIP in each.options for each in example.examples)
    said: list[str] = []
    with chdir(tmp_path):
        result = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert result.failed == 0, "".join(said)


def test_an_example_checks_something() -> None:
    for name in NAMES:
        assert any(each.want for each in example_of(name).examples), name


def test_the_version_is_a_version() -> None:
    assert vgae.__version__.split(".")[0].isdigit() or vgae.__version__ == "unknown"
