"""A stack that is interrupted continues with the next fold, to the same bits; folds of another fitting are refused."""

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import vgae
from helpers import message_of, put_odd
from processes import hear_ctrl_c
from vgae.errors import SaveError, TrainingError
from vgae.io.json_files import hash_json
from vgae.runs import fold_store
from vgae.runs.fold_store import FolderFolds, StackFingerprint
from vgae.runs.folder import Stage, stage_of
from vgae.runs.make import Destination, Source, make_run
from vgae.runs.make_stack import StackReporter, make_stack_run
from vgae.runs.opened import file_hash
from vgae.runs.stack_run import StackRun
from vgae.stack.config import StackConfig
from vgae.stack.contenders import FoldEvidence
from vgae.stack.fit import fit_stack
from vgae.train.config import Config

CONFIG = StackConfig(
    bases="gae(iterations=4;latent_dim=3),neighbours,degrees", folds=3, base_seeds=1, boosting=0.0, device="cpu"
)


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(40, 2, degree_within=8, feature_dim=12, seed=5), seed=2)


@pytest.fixture(scope="module")
def whole(split: vgae.LinkSplit, tmp_path_factory: pytest.TempPathFactory) -> StackRun:
    return made(tmp_path_factory.mktemp("whole") / "run", split)


class Stop(BaseException):
    """Ends a fitting as abruptly as anything can without ending the process."""


class StopAt(StackReporter):
    """Stops at an event: ("base", 1, "neighbours"), ("fold", 0) or ("meta",); and takes notes."""

    def __init__(self, *event: Any) -> None:
        self.event = event
        self.restored: list[int] = []
        self.warnings: list[str] = []
        self.completed = False

    def _meet(self, *event: Any) -> None:
        if event == self.event:
            raise Stop

    def on_base(self, fold: int, name: str) -> None:
        self._meet("base", fold, name)

    def on_fold(self, fold: int, *, restored: bool) -> None:
        if restored:
            self.restored.append(fold)
        self._meet("fold", fold)

    def on_meta(self) -> None:
        self._meet("meta")

    def on_warning(self, text: str) -> None:
        self.warnings.append(text)

    def on_complete(self, folder: Path) -> None:
        del folder
        self.completed = True


def made(
    folder: Path,
    split: vgae.LinkSplit,
    config: StackConfig = CONFIG,
    progress: StackReporter | None = None,
    **destination: Any,
) -> StackRun:
    return make_stack_run(Source(split, "planted"), config, Destination(folder, **destination), progress)


def stop_at(folder: Path, split: vgae.LinkSplit, *event: Any, **destination: Any) -> None:
    with pytest.raises(Stop):
        made(folder, split, progress=StopAt(*event), **destination)


def bits(run: StackRun) -> dict[str, Any]:
    """All that must not depend on interruptions."""
    tensors = {name: tensor.numpy().tobytes() for name, tensor in run.tensors().items()}
    return {"tensors": tensors, "metrics": run.metrics, "calibration": run.calibration}


def change_description(folder: Path, **changes: Any) -> None:
    """Change checkpoint.json, and have it vouch for itself."""
    path = folder / "checkpoint.json"
    content = json.loads(path.read_text()) | changes
    del content["hash"]
    path.write_text(json.dumps({**content, "hash": hash_json(content)}))


# ----------------------------------------------------------------------------------------------------- same bits


@pytest.mark.parametrize(
    ("event", "restored"),
    [
        (("base", 0, "neighbours"), []),
        (("fold", 0), [0]),
        (("base", 1, "degrees"), [0]),
        (("fold", 1), [0, 1]),
        (("fold", 2), [0, 1, 2]),
        (("base", 3, "neighbours"), [0, 1, 2]),
        (("meta",), [0, 1, 2]),
    ],
)
def test_a_fitting_that_was_stopped_ends_with_the_same_bits(
    tmp_path: Path, split: vgae.LinkSplit, whole: StackRun, event: tuple[Any, ...], restored: list[int]
) -> None:
    folder = tmp_path / "run"
    stop_at(folder, split, *event)
    assert stage_of(folder) is (Stage.UNFINISHED if restored else Stage.EMPTY)
    assert sorted(path.name for path in folder.glob("checkpoint/fold-*")) == [f"fold-{n}.safetensors" for n in restored]
    heard = StopAt()
    run = made(folder, split, progress=heard, resume=True)
    assert heard.restored == restored
    assert bits(run) == bits(whole)
    assert stage_of(folder) is Stage.COMPLETE
    assert not (folder / "checkpoint").exists()


def test_stopped_again_and_again(tmp_path: Path, split: vgae.LinkSplit, whole: StackRun) -> None:
    for fold in range(3):
        stop_at(tmp_path / "run", split, "fold", fold, resume=True)
    assert bits(made(tmp_path / "run", split, resume=True)) == bits(whole)


def test_a_complete_run_is_not_fitted_again(tmp_path: Path, split: vgae.LinkSplit, whole: StackRun) -> None:
    made(tmp_path / "run", split)
    heard = StopAt("base", 0, "neighbours")
    assert bits(made(tmp_path / "run", split, progress=heard, resume=True)) == bits(whole)
    assert heard.completed
    other = replace(CONFIG, folds=2)
    assert "complete, but of another training (folds 3, not 2)" in message_of(
        lambda: made(tmp_path / "run", split, other, resume=True)
    )
    another = vgae.split_links(vgae.stochastic_block_model(40, 2, seed=6), seed=2)
    assert "another graph" in message_of(lambda: made(tmp_path / "run", another, resume=True))


SCRIPT = """
import json, sys, time
from pathlib import Path
import vgae
from vgae.runs.make import Destination, Source
from vgae.runs.make_stack import StackReporter, make_stack_run
from vgae.stack.config import StackConfig
class Wait(StackReporter):
    def on_base(self, fold, name):
        if (fold, name) == (1, "degrees"):
            print("now", flush=True)
            time.sleep(600)
split = vgae.split_links(vgae.stochastic_block_model(40, 2, degree_within=8, feature_dim=12, seed=5), seed=2)
config = StackConfig.from_json(json.loads(sys.argv[2]))
make_stack_run(Source(split, "planted"), config, Destination(Path(sys.argv[1])), Wait())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_within_a_fold(tmp_path: Path, split: vgae.LinkSplit, whole: StackRun, number: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run"), json.dumps(CONFIG.to_json())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hear_ctrl_c) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.send_signal(number)
        process.wait()
    assert stage_of(tmp_path / "run") is Stage.UNFINISHED
    assert "unfinished; vgae train with --resume" in message_of(lambda: vgae.load(tmp_path / "run"))
    heard = StopAt()
    assert bits(made(tmp_path / "run", split, progress=heard, resume=True)) == bits(whole)
    assert heard.restored == [0]


def test_an_estimator_continues_from_a_folder(tmp_path: Path, split: vgae.LinkSplit, whole: StackRun) -> None:
    fingerprint = StackFingerprint.of(split.train, CONFIG)
    with pytest.raises(Stop), FolderFolds(tmp_path / "run" / "checkpoint", fingerprint) as store:
        fit_stack(split.train, CONFIG, store, StopAt("fold", 1))
    model = vgae.Stack(**CONFIG.to_json())
    model.fit(split.train, validation=split.val, checkpoint=tmp_path / "run" / "checkpoint")
    assert bits(model.to_run(split)) == bits(whole)
    assert stage_of(tmp_path / "run") is Stage.UNFINISHED
    model.save(tmp_path / "run", split=split)
    assert stage_of(tmp_path / "run") is Stage.COMPLETE
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_as_many_threads_as_before(tmp_path: Path, split: vgae.LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_at(tmp_path / "run", split, "fold", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    own = torch.get_num_threads()
    change_description(tmp_path / "run" / "checkpoint", threads=own + 1)
    numbers = []

    class Count(StackReporter):
        def on_base(self, fold: int, name: str) -> None:
            del fold, name
            numbers.append(torch.get_num_threads())

    made(tmp_path / "run", split, progress=Count(), resume=True)
    assert set(numbers) == {own + 1}
    assert torch.get_num_threads() == own


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"folds": 4}, "folds 3, not 4"),
        ({"seed": 1}, "seed 0, not 1"),
        ({"bases": "neighbours,degrees"}, "bases gae"),
        ({"base_seeds": 2}, "base_seeds 1, not 2"),
        ({"features": False}, "another training graph"),
    ],
)
def test_folds_of_another_fitting_are_refused(
    tmp_path: Path, split: vgae.LinkSplit, changes: dict[str, Any], words: str
) -> None:
    stop_at(tmp_path / "run", split, "fold", 0)
    message = message_of(lambda: made(tmp_path / "run", split, replace(CONFIG, **changes), resume=True))
    assert "of another training" in message
    assert words in message
    assert "--overwrite it" in message
    assert stage_of(tmp_path / "run") is Stage.UNFINISHED


def test_neither_resumed_nor_overwritten_unless_asked(tmp_path: Path, split: vgae.LinkSplit, whole: StackRun) -> None:
    stop_at(tmp_path / "run", split, "fold", 1)
    assert "an unfinished run is there; --resume" in message_of(lambda: made(tmp_path / "run", split))
    heard = StopAt()
    assert bits(made(tmp_path / "run", split, progress=heard, overwrite=True)) == bits(whole)
    assert heard.restored == []


def test_a_stack_over_an_old_run_leaves_that_until_it_is_done(tmp_path: Path, split: vgae.LinkSplit) -> None:
    folder = tmp_path / "run"
    vgae.Baseline("ra").fit(split.train).save(folder)
    before = file_hash(folder / "config.json")
    stop_at(folder, split, "fold", 1, overwrite=True)
    assert file_hash(folder / "config.json") == before
    assert stage_of(folder) is Stage.UNFINISHED
    made(folder, split, resume=True)
    assert isinstance(vgae.load(folder), vgae.Stack)


def test_checkpoints_of_models_and_of_stacks_are_told_apart(tmp_path: Path, split: vgae.LinkSplit) -> None:
    stop_at(tmp_path / "stack", split, "fold", 0)
    config = Config(iterations=2, hidden_dim=4, latent_dim=2, device="cpu")
    assert "(a stack, not a model)" in message_of(
        lambda: make_run(Source(split), config, Destination(tmp_path / "stack", resume=True))
    )
    vgae.GAE(iterations=2, device="cpu").fit(split.train, checkpoint=tmp_path / "model", checkpoint_every=0)
    model = vgae.Stack(**CONFIG.to_json())
    assert "(a model, not a stack)" in message_of(lambda: model.fit(split.train, checkpoint=tmp_path / "model"))


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (lambda folder: (folder / "fold-0.safetensors").unlink(), "fold-0.safetensors is missing"),
        (lambda folder: (folder / "fold-0.safetensors").write_bytes(pickle.dumps({"labels": 1})), "match its hash"),
        (lambda folder: flip(folder / "fold-0.safetensors"), "match its hash"),
        (lambda folder: flip(folder / "checkpoint.json"), "damaged"),
        (lambda folder: (folder / "checkpoint.json").write_bytes(pickle.dumps({})), "not readable"),
        (lambda folder: change_description(folder, sha256={"7": "0"}), "folds or its seconds are not valid"),
        (lambda folder: change_description(folder, sha256=[]), "folds or its seconds are not valid"),
        (lambda folder: change_description(folder, seconds="1"), "folds or its seconds are not valid"),
        (lambda folder: change_description(folder, threads=0), "threads 0"),
        (lambda folder: change_description(folder, more=1), "more: missing or not known"),
        (lambda folder: change_description(folder, format=2), "does not read"),
        (lambda folder: change_description(folder, vgae="999.0"), "newer vgae"),
        (lambda folder: change_description(folder, owner={"stack": {}}), "missing or not known"),
        (lambda folder: replace_fold(folder, weights=lambda w: w * 0), "labels or weights that cannot be"),
        (lambda folder: replace_fold(folder, weights=lambda w: w / 0), "labels or weights that cannot be"),
        (lambda folder: replace_fold(folder, labels=lambda y: y + 2), "labels or weights that cannot be"),
        (lambda folder: replace_fold(folder, labels=lambda y: y.float()), "another form"),
        (lambda folder: replace_fold(folder, evidence=lambda x: x[:, 1:].contiguous()), "another form"),
        (lambda folder: replace_fold(folder, evidence=lambda x: x[1:].contiguous()), "another form"),
    ],
)
def test_folds_that_were_tampered_with_are_refused(
    tmp_path: Path, split: vgae.LinkSplit, tamper: Callable[[Path], None], words: str
) -> None:
    stop_at(tmp_path / "run", split, "fold", 0)
    tamper(tmp_path / "run" / "checkpoint")
    message = message_of(lambda: made(tmp_path / "run", split, resume=True))
    assert words in message
    assert str(tmp_path / "run") in message


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))


def replace_fold(folder: Path, **changes: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Change arrays of the first fold, and have checkpoint.json vouch for them."""
    path = folder / "fold-0.safetensors"
    arrays = load_file(path)
    save_file(arrays | {name: change(arrays[name]) for name, change in changes.items()}, path)
    change_description(folder, sha256={"0": file_hash(path)})


@pytest.mark.parametrize("kind", ["fifo", "folder", "sparse", "/dev/zero"])
def test_a_fold_that_is_no_plain_file(tmp_path: Path, split: vgae.LinkSplit, kind: str) -> None:
    stop_at(tmp_path / "run", split, "fold", 0)
    path = tmp_path / "run" / "checkpoint" / "fold-0.safetensors"
    path.unlink()
    put_odd(path, kind)
    assert "missing, a link, or larger" in message_of(lambda: made(tmp_path / "run", split, resume=True))


def test_files_of_others_are_not_touched(tmp_path: Path, split: vgae.LinkSplit) -> None:
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / "fold-notes.txt").write_text("mine")
    assert stage_of(tmp_path / "run") is Stage.NOT_A_RUN
    assert "already used" in message_of(lambda: made(tmp_path / "run", split))


# ----------------------------------------------------------------------------------------------- what goes wrong


def test_a_fold_that_cannot_be_saved_does_not_end_the_fitting(
    tmp_path: Path, split: vgae.LinkSplit, whole: StackRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fold_store, "write_json", full)
    heard = StopAt()
    assert bits(made(tmp_path / "run", split, progress=heard)) == bits(whole)
    assert len(heard.warnings) == 1
    assert "fold 1 cannot be saved (No space left on device); fitting continues" in heard.warnings[0]


def test_a_run_for_which_there_is_no_room_is_finished_later(
    tmp_path: Path, split: vgae.LinkSplit, whole: StackRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("vgae.runs.folder.write_run", full)
        with pytest.raises(SaveError, match="its training is saved; make room"):
            made(tmp_path / "run", split)
    heard = StopAt()
    assert bits(made(tmp_path / "run", split, progress=heard, resume=True)) == bits(whole)
    assert heard.restored == [0, 1, 2]


def test_a_base_that_diverges_takes_its_folds_with_it(tmp_path: Path, split: vgae.LinkSplit) -> None:
    config = replace(CONFIG, bases="gae(iterations=20;learning_rate=1e38),degrees")
    with pytest.raises(TrainingError, match="The base gae"):
        made(tmp_path / "run", split, config)
    assert not (tmp_path / "run").exists()


def test_one_process_at_a_time(tmp_path: Path, split: vgae.LinkSplit) -> None:
    fingerprint = StackFingerprint.of(split.train, CONFIG)
    with FolderFolds(tmp_path / "folds", fingerprint):
        assert "another process is writing there" in message_of(
            lambda: vgae.Stack(**CONFIG.to_json()).fit(split.train, checkpoint=tmp_path / "folds")
        )
    assert not (tmp_path / "folds").exists()


def test_seconds_of_all_processes_count(tmp_path: Path, split: vgae.LinkSplit) -> None:
    stop_at(tmp_path / "run", split, "fold", 0)
    change_description(tmp_path / "run" / "checkpoint", seconds=1000.0)
    assert made(tmp_path / "run", split, resume=True).facts.seconds > 1000


def test_evidence_that_is_missing_is_saved_as_such(tmp_path: Path, split: vgae.LinkSplit) -> None:
    fingerprint = StackFingerprint.of(split.train, CONFIG)
    found = FoldEvidence(
        np.array([[np.nan] * fingerprint.num_columns, [np.inf] * fingerprint.num_columns], dtype=np.float32),
        np.array([1, 0], dtype=np.uint8),
        np.array([1.0, 1e9]),
    )
    with FolderFolds(tmp_path, fingerprint) as store:
        store.save(2, found)
    with FolderFolds(tmp_path, fingerprint) as store:
        back = store.load(2)
        assert store.load(0) is None
    assert back is not None
    for name, array in vars(found).items():
        np.testing.assert_array_equal(getattr(back, name), array)
