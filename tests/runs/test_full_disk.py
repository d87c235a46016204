"""A disk without room, at any moment: training continues, the run is finished later, and nothing is lost."""

import errno
import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from making import CONFIG, NAMES, content, make, model, small_split, train_in
from powercut import what_is_read

import vgae
import vgae.cli.app
from vgae.errors import InputError, SaveError
from vgae.evaluation.evaluate import evaluate_split
from vgae.io import atomic
from vgae.runs import folder as folder_module
from vgae.runs.checkpoint import saved_iteration
from vgae.runs.folder import new_run_folder
from vgae.train.callbacks import Warnings


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return small_split()


@pytest.fixture(scope="module")
def fitted(split: vgae.LinkSplit) -> list[vgae.VGAE]:
    return [model(seed).fit(split.train, validation=split.val) for seed in (0, 1)]


@pytest.fixture
def run(tmp_path: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE]) -> Path:
    fitted[0].save(tmp_path / "run", split=split)
    return tmp_path / "run"


class Full:
    """A disk that is full from the n-th write on, for so many writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: int, number: float, code: int) -> None:
        self.count, self.first, self.last, self.code = 0, first, first + number, code
        self.failed = 0
        plain = atomic._flush

        def flush(handle: int) -> None:
            self.count += 1
            if self.first < self.count <= self.last:
                self.failed += 1
                raise OSError(self.code, os.strerror(self.code))
            plain(handle)

        monkeypatch.setattr(atomic, "_flush", flush)


def ending_of(do: Callable[[], None]) -> Exception | None:
    try:
        do()
    except (InputError, SaveError) as error:
        return error
    return None


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the trainings of a test say about their checkpoints."""
    said: list[str] = []
    monkeypatch.setattr(Warnings, "on_warning", lambda _, text: said.append(text))
    return said


def train(folder: Path, split: vgae.LinkSplit, say: Callable[[str], None], **options: Any) -> None:
    with new_run_folder(folder, **options) as writer:
        writer.write(train_in(writer, split, CONFIG), report=say)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG])
def test_checkpoints_that_cannot_be_written_do_not_end_training(
    tmp_path: Path,
    split: vgae.LinkSplit,
    fitted: list[vgae.VGAE],
    monkeypatch: pytest.MonkeyPatch,
    told: list[str],
    code: int,
) -> None:
    disk = Full(monkeypatch, 1, 2, code)
    trained = model().fit(split.train, validation=split.val, checkpoint=tmp_path / "c", checkpoint_every=0)
    assert (trained.transform() == fitted[0].transform()).all()
    assert disk.failed == 2
    assert os.strerror(code) in told[0]
    assert [text.split(":")[0] for text in told] == [str(tmp_path / "c")] * 2
    assert told[1].endswith("can be written again")
    assert saved_iteration(tmp_path / "c") == 3
    assert len(content(tmp_path / "c")) == 2


def test_who_does_not_watch_is_warned_once(
    tmp_path: Path, split: vgae.LinkSplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    Full(monkeypatch, 2, 10**9, errno.ENOSPC)  # the first two are the folders
    with pytest.warns(RuntimeWarning, match="No space left") as warned:
        model().fit(split.train, checkpoint=tmp_path / "new" / "checkpoint", checkpoint_every=0)
    assert len(warned) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("number", [1, 10**9])
def test_disk_that_is_full_at_any_write_loses_nothing(
    tmp_path: Path,
    split: vgae.LinkSplit,
    fitted: list[vgae.VGAE],
    monkeypatch: pytest.MonkeyPatch,
    told: list[str],
    number: int,
    old: bool,
) -> None:
    """From each write of a run on, for one write, two, or for good: it is finished, or can be once there is room."""
    monkeypatch.setattr(folder_module, "POLL", 0.05)
    folder, endings = tmp_path / "run", set()
    fitted[0].save(tmp_path / "whole", split=split)
    expected = what_is_read(tmp_path / "whole")
    for first in range(100):
        if old:
            fitted[1].save(folder, split=split, overwrite=True)
            replaced = what_is_read(folder)
        with monkeypatch.context() as patch:
            disk = Full(patch, first, number, errno.ENOSPC)
            ending = ending_of(lambda: train(folder, split, told.append, overwrite=old))
            endings.add(type(ending))
        if ending is None:
            assert what_is_read(folder) == expected
        elif isinstance(ending, InputError):
            assert first < 4, "refused although it has been trained"
        else:
            assert "--resume" in str(ending) or "start it again" in str(ending)
        if not disk.failed:
            break
        if old:
            assert what_is_read(folder) in (expected, replaced), "the old run is gone"
        train(folder, split, told.append, overwrite=True, resume=True)
        assert what_is_read(folder) == expected
        assert sorted(content(folder)) == sorted(NAMES)
        if not old:
            for path in folder.iterdir():
                path.unlink()
    else:
        pytest.fail("there was no end to the writes")
    assert SaveError in endings


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits to the size of files")
def test_files_that_the_system_refuses_to_let_grow(tmp_path: Path, split: vgae.LinkSplit, told: list[str]) -> None:
    """The real thing, by a limit on the size of files (EFBIG): fewer and fewer of them fit."""
    resource = import_module("resource")
    train(tmp_path / "whole", split, told.append)
    expected = what_is_read(tmp_path / "whole")
    sizes = sorted({len(data) for data in content(tmp_path / "whole").values()})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for number, size in enumerate(sizes):
        folder = tmp_path / f"run-{number}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, before[1]))
        try:
            ending = ending_of(lambda folder=folder: train(folder, split, told.append))  # type: ignore[misc]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert isinstance(ending, SaveError)
        assert "File too large" in str(ending)
        train(folder, split, told.append, resume=True)
        assert what_is_read(folder) == expected


def test_final_state_is_saved_where_there_is_room_for_it_but_not_for_the_run(
    tmp_path: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def train_on_it() -> None:
        with monkeypatch.context() as patch, new_run_folder(tmp_path / "run") as writer:
            run = train_in(writer, split, CONFIG, every=None)  # too short for a checkpoint
            assert saved_iteration(writer.checkpoint) is None
            patch.setattr(folder_module, "write_run", full)
            writer.write(run, patience=100)

    ending = str(ending_of(train_on_it))
    assert "on device), but its training is saved; make room, and use --resume to finish." in ending
    assert saved_iteration(tmp_path / "run" / "checkpoint") == 3
    make(tmp_path / "run", split, CONFIG, resume=True)
    assert (vgae.load(tmp_path / "run").transform() == fitted[0].transform()).all()


def test_finished_run_waits_for_room_and_says_so(
    tmp_path: Path,
    split: vgae.LinkSplit,
    fitted: list[vgae.VGAE],
    monkeypatch: pytest.MonkeyPatch,
    told: list[str],
) -> None:
    monkeypatch.setattr(folder_module, "POLL", 0.01)
    say: list[str] = []
    with monkeypatch.context() as patch, new_run_folder(tmp_path / "run") as writer:
        run = train_in(writer, split, CONFIG, every=None)
        disk = Full(patch, 0, 20, errno.ENOSPC)
        writer.write(run, patience=100, report=say.append)
    assert disk.failed == 20
    assert [text for text in say if "make room: it is tried again" in text] == say
    assert len(say) == len(told) == 1
    assert (vgae.load(tmp_path / "run").transform() == fitted[0].transform()).all()


def test_model_that_cannot_be_saved_is_still_there(
    run: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(run)
    with monkeypatch.context() as patch:
        Full(patch, 3, 10**9, errno.ENOSPC)
        with pytest.raises(SaveError, match="still in memory"):
            fitted[1].save(run, split=split, overwrite=True)
    assert content(run) == before
    fitted[1].save(run, split=split, overwrite=True)


@pytest.mark.parametrize("moment", ["write", "promote"])
def test_the_command_ends_with_one_and_says_how_to_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], moment: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def command(*more: str) -> tuple[int, str]:
        given = ["train", str(tmp_path / "g.npz"), "--out", str(tmp_path / "run"), "--val", "0.2", "--test", "0.2"]
        monkeypatch.setattr("sys.argv", ["vgae", *given, "--iterations", "2", "--json", *more])
        try:
            vgae.cli.app.main()
        except SystemExit as end:
            return int(end.code or 0), capsys.readouterr().err
        return 0, capsys.readouterr().err

    vgae.write_graph(tmp_path / "g.npz", vgae.stochastic_block_model(30, 2, feature_dim=5, seed=5))
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "write_run" if moment == "write" else "_promote", full)
        code, said = command()
    assert (code, len(said.splitlines())) == (1, 1)
    assert said.startswith(f"vgae: {tmp_path / 'run'}: the run ")
    assert "use --resume to finish" in said
    assert command("--resume") == (0, "")
    found = vgae.load(tmp_path / "run").run_
    assert json.loads((tmp_path / "run" / "metrics.json").read_text()) == evaluate_split(found, found.split)
