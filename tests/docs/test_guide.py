"""Every block of code of the user guide runs, in the order in which it is read."""

from pathlib import Path

import pytest

from pages import SETUP, blocks_of, run_page
from vgae.model import spec
from vgae.train.config import Config

DOCS = Path(__file__).parents[2] / "docs"
NOT_GUIDE = {  # pages whose code is no part of a user's path
    "accuracy.md": "figures, and the commands that made them in hours",
    "architecture.md": "for contributors",
    "callbacks.md": "run by tests/train/test_callbacks.py",
    "conventions.md": "definitions",
    "models.md": "figures, and the commands that made them in hours",
    "newcomer.md": "a transcript",
    "performance.md": "figures, and the commands that made them in hours",
    "results.md": "figures, and the commands that made them in hours",
    "scale.md": "trainings by several processes, which have tests of their own",
    "scikit-learn.md": "run by tests/estimators/test_sklearn.py",
    "tour.md": "a line for each command, which the other pages run",
}
GENERATED = ("examples", "project", "reference")  # made from code and notebooks, which have tests of their own
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if str(path.relative_to(DOCS)) not in NOT_GUIDE and path.relative_to(DOCS).parts[0] not in GENERATED
)
MOST_NOT_RUN = 8  # blocks, of all pages together


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Config()  # which has all parts registered
    for family in spec.FAMILIES:  # a part that a page defines is gone after it
        monkeypatch.setitem(spec._REGISTERED, family, spec.registered(family))
    run_page(page, tmp_path)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page)]
    left_out = [block for block in blocks if block.reason is not None]
    assert all(len(block.reason or "") > 10 for block in left_out)
    assert len(left_out) <= MOST_NOT_RUN
    assert len([block for block in blocks if block.kind != SETUP]) > 10 * len(left_out)


def test_pages_that_are_left_out_hold_no_marks_of_the_guide() -> None:
    for name in NOT_GUIDE:
        path = DOCS / name
        assert not path.exists() or "<!-- not run" not in path.read_text()


def test_no_mark_is_misspelt() -> None:
    for page in PAGES:
        marks = page.read_text().count("<!-- setup\n") + page.read_text().count("<!-- not run: ")
        assert marks == sum(block.kind == SETUP or block.reason is not None for block in blocks_of(page)), page
