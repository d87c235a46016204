"""A run folder among others: readers while it is replaced, two writers, and files that are not vgae's."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from making import CONFIG, NAMES, content, make, model, small_split, train_in
from powercut import what_is_read

import vgae
import vgae.cli.app
from helpers import message_of
from vgae.errors import InputError
from vgae.io.plain import open_plain
from vgae.runs import files as files_module
from vgae.runs import folder as folder_module
from vgae.runs.checkpoint import FolderCheckpointer, saved_iteration
from vgae.runs.folder import Stage, new_run_folder, stage_of
from vgae.runs.opened import FILES


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


# ------------------------------------------------------------------------------------------------------------- readers


def test_run_that_is_replaced_while_it_is_read_is_one_or_the_other(
    run: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaced just before each file that the reader opens, for all of them."""
    known, opened = [what_is_read(run)], open_plain
    fitted[1].save(run, split=split, overwrite=True)
    known.append(what_is_read(run))
    for turn in range(20):
        left, other = [turn], fitted[turn % 2]

        def open_late(path: Path, left: list[int] = left, other: vgae.VGAE = other) -> Any:
            left[0] -= 1
            if left[0] == -1:
                other.save(run, split=split, overwrite=True)
            return opened(path)

        monkeypatch.setattr(files_module, "open_plain", open_late)
        assert what_is_read(run) in known
    assert left[0] >= 0  # the last turns came to nothing, so that all opened files had theirs


def test_readers_beside_a_writer_never_see_a_mixture_or_nothing(
    run: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE]
) -> None:
    known = [what_is_read(run)]
    fitted[1].save(run, split=split, overwrite=True)
    known.append(what_is_read(run))
    ended = threading.Event()

    def write() -> None:
        for turn in range(30):
            fitted[turn % 2].save(run, split=split, overwrite=True)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    found = []
    while not ended.is_set():
        found.append(known.index(what_is_read(run)))
        assert (run / "config.json").exists()
    writer.join()
    assert set(found) == {0, 1}


def test_folder_that_is_replaced_without_end_is_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "PAUSE", 0.0)
    (run / "metrics.json").write_text("{}")
    ticks = iter(range(10**6))
    monkeypatch.setattr(files_module, "_marks", lambda _: [next(ticks)])
    assert "replaced again and again" in message_of(lambda: vgae.load(run))


def test_each_file_is_read_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    plain = open_plain

    def note(path: Path) -> Any:
        opened.append(path.name)
        return plain(path)

    monkeypatch.setattr(files_module, "open_plain", note)
    vgae.load(run)
    assert sorted(opened) == sorted(NAMES)


# ------------------------------------------------------------------------------------------------------------- writers


def acting(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Have something done after the first iteration of the next training."""
    plain = FolderCheckpointer.after_iteration
    left = [1]

    def after_iteration(self: Any, snapshot: Any) -> None:
        plain(self, snapshot)
        left[0] -= 1
        if left[0] == 0:
            act()

    monkeypatch.setattr(FolderCheckpointer, "after_iteration", after_iteration)


def test_checkpoints_of_a_fit_are_safe_from_another_writer_of_the_run(
    run: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []

    def intrude() -> None:
        before = content(run)
        said.append(message_of(lambda: fitted[1].save(run, overwrite=True)))
        said.append(message_of(lambda: model().fit(split.train, checkpoint=run / "checkpoint")))
        assert content(run) == before

    acting(monkeypatch, intrude)
    trained = model().fit(split.train, validation=split.val, checkpoint=run / "checkpoint", checkpoint_every=0)
    assert said == [
        f"{run}: another process is writing this run; wait for it to end, or choose another folder.",
        f"{run / 'checkpoint'}: another process is writing there; wait for it to end, or choose another.",
    ]
    assert saved_iteration(run / "checkpoint") == 3
    trained.save(run, split=split, overwrite=True)
    assert sorted(content(run)) == sorted(NAMES)


@pytest.mark.parametrize("moment", ["training", "writing"])
def test_run_that_is_made_is_safe_from_a_fit_with_its_checkpoints(
    tmp_path: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    folder, said = tmp_path / "run", []

    def intrude() -> None:
        said.append(message_of(lambda: model(1).fit(split.train, checkpoint=folder / "checkpoint")))

    if moment == "training":
        acting(monkeypatch, intrude)
    with new_run_folder(folder) as writer:
        run = train_in(writer, split, CONFIG)
        if moment == "writing":
            intrude()
        writer.write(run)
    assert said == [
        f"{folder / 'checkpoint'}: another process is writing there; wait for it to end, or choose another."
    ]
    assert (vgae.load(folder).transform() == fitted[0].transform()).all()


# ------------------------------------------------------------------------------------------------ files of other people


def foreign_files(run: Path) -> list[Path]:
    """What people keep beside a run."""
    for name in ("paper.pdf", "notes.svg", "lock", "emb.csv", "latent.png", ".hidden", "vgae.lock", "training.png"):
        (run / name).write_text(f"mine: {name}")
    (run / "plots.png").mkdir()
    (run / "plots.png" / "one.png").write_text("mine")
    (run / "empty").mkdir()
    (run / "link.json").symlink_to(run / "notes.svg")
    (run / "dangling").symlink_to("nowhere")
    return [path for path in run.rglob("*") if path.name not in NAMES]


def test_files_of_other_people_neither_break_a_run_nor_are_touched(
    run: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE]
) -> None:
    foreign = foreign_files(run)
    before = {path: path.lstat() for path in foreign}
    expected = what_is_read(run)
    assert stage_of(run) is Stage.COMPLETE
    assert "already used" in message_of(lambda: fitted[1].save(run))
    fitted[1].save(run, split=split, overwrite=True)
    assert what_is_read(run) != expected
    for resume in (False, True):
        make(run, split, CONFIG, overwrite=True, resume=resume)
        assert what_is_read(run) == expected
    assert {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in foreign} == {
        path: (found.st_ino, found.st_mtime_ns) for path, found in before.items()
    }
    assert sorted(path for path in run.rglob("*") if path.name not in NAMES) == sorted(foreign)


def test_unfinished_run_among_other_files_is_continued(
    tmp_path: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE]
) -> None:
    folder = tmp_path / "run"
    model().fit(split.train, validation=split.val, checkpoint=folder / "checkpoint", checkpoint_every=0)
    (folder / "notes.txt").write_text("mine")
    (folder / "checkpoint" / "notes.txt").write_text("mine too")
    assert stage_of(folder) is Stage.UNFINISHED
    make(folder, split, CONFIG, resume=True)
    assert (vgae.load(folder).transform() == fitted[0].transform()).all()
    assert (folder / "notes.txt").read_text() == "mine"
    assert content(folder / "checkpoint") == {"notes.txt": b"mine too"}


@pytest.mark.parametrize(
    "remains",
    [
        [],
        ["vgae.lock"],
        ["state-9.safetensors"],
        [".state-9.safetensors.1a2b3c4d", "vgae.lock"],
        ["run/"],
        ["run/.config.json.1a2b3c4d"],
    ],
    ids=str,
)
def test_what_a_process_that_was_killed_at_its_very_end_has_left_goes(run: Path, remains: list[str]) -> None:
    before = content(run)
    (run / "checkpoint").mkdir()
    for name in remains:
        (run / "checkpoint" / name).parent.mkdir(exist_ok=True)
        if name.endswith("/"):
            (run / "checkpoint" / name).mkdir()
        else:
            (run / "checkpoint" / name).touch()
    assert folder_module.finished_run(run) is not None
    assert content(run) == before
    assert not (run / "checkpoint").exists()


@pytest.mark.parametrize("name", NAMES)
def test_somebodys_file_under_the_name_of_one_of_ours_is_not_replaced(
    tmp_path: Path, split: vgae.LinkSplit, name: str
) -> None:
    folder = tmp_path / "run"
    model().fit(split.train, validation=split.val, checkpoint=folder / "checkpoint", checkpoint_every=0)
    (folder / name).write_text("mine")
    for overwrite, resume in ((True, False), (False, True), (False, False)):
        with pytest.raises(InputError), new_run_folder(folder, overwrite=overwrite, resume=resume):
            pass
    assert (folder / name).read_text() == "mine"
    assert saved_iteration(folder / "checkpoint") == 3


@pytest.mark.parametrize("name", FILES)
def test_folder_under_the_name_of_a_file_is_refused_before_training(
    run: Path, fitted: list[vgae.VGAE], name: str
) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    assert f"{run / name}: this is a folder" in message_of(lambda: fitted[1].save(run, overwrite=True))
    assert sorted(path.name for path in run.iterdir()) == sorted(NAMES)


def test_lock_that_holds_something_is_not_a_lock(tmp_path: Path, split: vgae.LinkSplit) -> None:
    (tmp_path / "vgae.lock").write_text("mine")
    assert "not a lock of vgae" in message_of(lambda: model().fit(split.train, checkpoint=tmp_path))
    assert content(tmp_path) == {"vgae.lock": b"mine"}


@pytest.mark.parametrize("way", ["load", "save", "overwrite", "checkpoint"])
@pytest.mark.parametrize("path", ["loop", "file/run", "nul\0", "x" * 300, "dangling"])
def test_impossible_paths_are_told_in_a_sentence(
    tmp_path: Path, split: vgae.LinkSplit, fitted: list[vgae.VGAE], path: str, way: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("loop")
    folder = tmp_path / path
    do: dict[str, Callable[[], object]] = {
        "load": lambda: vgae.load(folder),
        "save": lambda: fitted[0].save(folder),
        "overwrite": lambda: fitted[0].save(folder, overwrite=True),
        "checkpoint": lambda: model().fit(split.train, checkpoint=folder),
    }
    assert "\n" not in message_of(do[way])
    with suppress(InputError):
        assert folder_module.finished_run(folder) is None
