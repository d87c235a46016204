"""What the library tells through `logging`: nothing unless somebody listens, and the command's screen stays its own."""

import logging
from pathlib import Path

import pytest

import vgae
from command import run_vgae
from vgae.io import datasets

TABLE = "von;nach\n" + "".join(f"{node};{(node + step) % 20}\n" for node in range(20) for step in (1, 3))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "leute.csv"
    path.write_text(TABLE)
    return path


def test_the_library_says_nothing_unless_asked(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    vgae.GAE(iterations=2).fit(vgae.read_graph(table))
    assert tuple(capfd.readouterr()) == ("", "")
    assert logging.NullHandler in map(type, logging.getLogger("vgae").handlers)


def test_reading_tells_what_was_assumed(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="vgae"):
        vgae.read_graph(table)
    (record,) = caplog.records
    assert record.name == "vgae.io.tables"
    assert record.getMessage().startswith(f"{table}: columns are split at semicolons; the first row is a header")


def test_training_tells_its_objective_and_every_logged_iteration(caplog: pytest.LogCaptureFixture) -> None:
    split = vgae.split_links(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    with caplog.at_level(logging.INFO, logger="vgae"):
        model = vgae.VGAE(iterations=20).fit(split.train, validation=split.val)
    first, *logged, last = [record.getMessage() for record in caplog.records]
    assert first.startswith("objective: exact (")
    assert logged == [f"iteration {entry.iteration}: {entry}" for entry in model.history_]
    assert last.startswith("trained VGAE in ")
    best = model.history_[-1]
    assert f"AUC {100 * (best.val_auc or 0):.1f}" in logged[-1]


def test_the_command_prints_as_before(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_vgae("train", table.name, "--iterations", "20", "--no-verdict", cwd=tmp_path)
    said = done.stderr.splitlines()
    assert sum(line.startswith("objective: ") for line in said) == 1
    assert not any(line.startswith("iteration ") for line in said)
    assert sum("columns are split at semicolons" in line for line in said) == 1

    def refuse(folder: Path) -> None:
        del folder
        datasets.logger.info("Fetching the datasets")
        raise vgae.InputError("no network")

    monkeypatch.setenv("VGAE_DATA", str(tmp_path / "empty"))
    monkeypatch.setattr(datasets, "_download", refuse)
    for _ in range(2):
        assert run_vgae("plan", "cora", cwd=tmp_path).stderr.splitlines() == [
            "Fetching the datasets",
            "vgae: no network.",
        ]


def test_compiling_is_told_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    numba_tools = pytest.importorskip("vgae.ops.numba_tools", exc_type=ImportError)
    monkeypatch.setattr(numba_tools._compiling, "told", False)

    def plus_one(x: float) -> float:
        return x + 1

    with caplog.at_level(logging.INFO, logger="vgae"):
        for module, values in {"others": (1,), "vgae.ops.made": (1, 1.0, 1)}.items():
            plus_one.__module__ = module
            kernel = numba_tools.njit(plus_one)
            assert [kernel(value) for value in values] == [2.0] * len(values)
            assert len(caplog.records) == (module != "others")
    assert "compiling kernels" in caplog.messages[0]
