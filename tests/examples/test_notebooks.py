"""The notebooks run as they stand, in a folder of their own, and hold what they claim: their cells assert it."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert [path.name for path in NOTEBOOKS] == ["debian.ipynb", "flights.ipynb", "les_miserables.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs_and_its_claims_hold(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VGAE_QUICK", "1")  # short trainings, where a notebook has long ones
    shutil.copytree(EXAMPLES / "data", tmp_path / "data")
    stored, fresh = (nbformat.read(path, as_version=4) for _ in range(2))  # type: ignore[no-untyped-call]
    NotebookClient(fresh, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    pairs = [pair for pair in zip(stored.cells, fresh.cells, strict=True) if pair[0].cell_type == "code"]
    assert any("assert " in cell.source for cell, _ in pairs)
    for number, (before, now) in enumerate(pairs, start=1):
        assert before.execution_count == now.execution_count == number, "the stored outputs are not those of one run"
        kinds = [[sorted(output.get("data", {})) for output in cell.outputs] for cell in (before, now)]
        assert kinds[0] == kinds[1], before.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_light_and_tells_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text()
    assert len(text) < 500_000
    assert str(Path.home()) not in text
    assert "/tmp/" not in text  # noqa: S108 - looked for, not used


def test_data_are_small_and_their_sources_are_named() -> None:
    described = (EXAMPLES / "data" / "README.md").read_text()
    for file in sorted((EXAMPLES / "data").iterdir()):
        assert file.stat().st_size < 300_000, file.name
        assert file.name == "README.md" or f"`{file.name}`" in described, file.name
