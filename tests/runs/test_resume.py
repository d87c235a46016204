"""Continuing after an interruption: the same bits as without one, whenever and however it came."""

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import vgae
from helpers import message_of
from vgae.errors import InputError, TrainingError
from vgae.io.json_files import hash_json
from vgae.objective.cost import Choice
from vgae.objective.variate import MEANS
from vgae.runs.checkpoint import FolderCheckpointer, saved_iteration, write_checkpoint
from vgae.runs.fingerprint import Fingerprint
from vgae.train.callbacks import Callback, Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import Trained, train
from vgae.train.state import LogEntry, TrainingState

CONFIG = Config(iterations=12, eval_every=5, hidden_dim=8, latent_dim=4, device="cpu")
KINDS = {
    "vgae, exact": replace(CONFIG, objective="exact"),
    "vgae, sampled": replace(CONFIG, objective="sampled"),
    "gae, sampled, plain": replace(CONFIG, model="gae", objective="sampled", control_variate="off"),
    "vgae, batches": replace(CONFIG, batch_size=30),
    "gae, batches, drawn zeros": replace(CONFIG, model="gae", batch_size=50, num_negatives=100),
    "gae, auto": replace(CONFIG, model="gae"),
    "early stopping": replace(CONFIG, iterations=60, eval_every=2, early_stopping=4, learning_rate=0.1),
}


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(120, 3, feature_dim=30, seed=5), seed=2)


class Memory(Checkpointer):
    """Takes a snapshot of every state."""

    def __init__(self) -> None:
        self.states: list[TrainingState] = []

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        self.states.append(snapshot())


def bits(trained: Trained) -> dict[str, Any]:
    """All that must not depend on interruptions."""
    weights = {name: tensor.numpy().tobytes() for name, tensor in trained.model.state_dict().items()}
    return {
        "weights": weights,
        "latent": {name: tensor.numpy().tobytes() for name, tensor in trained.latent.items()},
        "history": [replace(entry, seconds=0) for entry in trained.history],
        "choice": trained.choice,
        "best_iteration": trained.best_iteration,
    }


def job_of(split: vgae.LinkSplit, config: Config) -> Job:
    return Job.of(split.train, config, split.val)


def resume(folder: Path, split: vgae.LinkSplit, config: Config, callback: Callback | None = None) -> Trained:
    job = job_of(split, config)
    with FolderCheckpointer(folder, Fingerprint.of(job), every=0, callback=callback) as checkpointer:
        return train(job, callback, checkpointer)


# ----------------------------------------------------------------------------------------------------- same bits


GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="it is about recorded steps"))


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("kind", KINDS)
def test_training_can_be_continued_from_every_iteration(
    tmp_path: Path, split: vgae.LinkSplit, kind: str, device: str
) -> None:
    config, memory = replace(KINDS[kind], device=device), Memory()
    job = job_of(split, config)
    whole = train(job, checkpointer=memory)
    assert [state.iteration for state in memory.states] == list(range(1, whole.history[-1].iteration + 1))
    for state in memory.states:
        folder = tmp_path / f"{state.iteration}"
        folder.mkdir()
        write_checkpoint(folder, Fingerprint.of(job), state)
        resumed = resume(folder, split, config)
        assert bits(resumed) == bits(whole)
        assert [entry.seconds for entry in resumed.history] == sorted(entry.seconds for entry in resumed.history)
    if config.early_stopping:
        assert whole.best_iteration < whole.history[-1].iteration < config.iterations


def test_killed_at_random_moments(tmp_path: Path) -> None:
    found = killing("moments", tmp_path)
    assert sum(kind["kills"] for kind in found.values()) == 24
    assert {name: kind["different"] for name, kind in found.items() if kind["different"]} == {}
    assert len({iteration for kind in found.values() for iteration in kind["resumed_at"]}) > 5
    assert found["early stopping"]["iterations"] < found["exact VGAE"]["iterations"]


def test_killed_before_every_change_to_a_file(tmp_path: Path) -> None:
    """At each of them the old run can be read, or else the new one; and what is unfinished can be continued."""
    found = killing("steps", tmp_path)
    assert found["wrong"] == []
    assert found["seen"] == sorted(found["seen"], key=["old", "new"].index)
    assert set(found["seen"]) == {"old", "new"}
    assert found["steps"] > 30
    assert [name for name in found["beside"] if name.startswith(".")] == []


def killing(job: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("killing.py")), job, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads do not survive a fork
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_auto_does_not_choose_again(tmp_path: Path, split: vgae.LinkSplit) -> None:
    memory, job = Memory(), job_of(split, CONFIG)
    train(job, checkpointer=memory)
    tensors = memory.states[5].tensors | {"objective.means": torch.zeros(MEANS, dtype=torch.float64)}
    reason = "the machine was busy then"
    state = replace(memory.states[5], objective="sampled", objective_reason=reason, tensors=tensors)
    write_checkpoint(tmp_path, Fingerprint.of(job), state)
    assert resume(tmp_path, split, CONFIG).choice == Choice("sampled", "the machine was busy then")


def test_fit_continues_and_save_clears_up(tmp_path: Path, split: vgae.LinkSplit) -> None:
    folder = tmp_path / "run" / "checkpoint"
    whole = vgae.VGAE(iterations=12, latent_dim=4).fit(split.train, validation=split.val)
    model = vgae.VGAE(iterations=12, latent_dim=4)
    model.fit(split.train, validation=split.val, checkpoint=folder, checkpoint_every=0)
    assert saved_iteration(folder) == 12
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint.json", "state-12.safetensors"]
    again = vgae.VGAE(iterations=12, latent_dim=4).fit(split.train, validation=split.val, checkpoint=folder)
    np.testing.assert_array_equal(again.transform(), whole.transform())
    with pytest.raises(InputError, match="an unfinished run is there; --resume"):
        whole.save(tmp_path / "run")
    again.save(tmp_path / "run", split=split)
    assert not folder.exists()
    np.testing.assert_array_equal(vgae.load(tmp_path / "run").transform(), whole.transform())


def test_checkpoints_are_not_written_unless_they_are_due(tmp_path: Path, split: vgae.LinkSplit) -> None:
    vgae.GAE(iterations=5).fit(split.train, checkpoint=tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------------------- Ctrl-C


class CtrlC(Callback):
    """Presses Ctrl-C so many times in the iteration after which this is logged."""

    def __init__(self, iteration: int, times: int) -> None:
        self.iteration, self.times, self.heard = iteration, times, 0

    def on_log(self, entry: LogEntry) -> None:
        if entry.iteration == self.iteration:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)

    def on_stop_request(self) -> None:
        self.heard += 1


@pytest.mark.parametrize(("times", "saved"), [(1, 10), (2, 9)])
def test_ctrl_c_saves_a_state_between_two_iterations(
    tmp_path: Path, split: vgae.LinkSplit, times: int, saved: int
) -> None:
    config, finger = KINDS["vgae, exact"], CtrlC(10, times)
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path, split, config, finger)
    assert (finger.heard, saved_iteration(tmp_path)) == (1, saved)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert bits(resume(tmp_path, split, config)) == bits(train(job_of(split, config)))


def test_another_thread_and_a_handler_of_the_programs_own_are_left_alone(tmp_path: Path, split: vgae.LinkSplit) -> None:
    def fit(name: str) -> None:
        vgae.GAE(iterations=3).fit(split.train, checkpoint=tmp_path / name, checkpoint_every=0)

    thread = threading.Thread(target=fit, args=("thread",))
    thread.start()
    thread.join()
    assert saved_iteration(tmp_path / "thread") == 3
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with FolderCheckpointer(tmp_path / "own", Fingerprint.of(Job.of(split.train, CONFIG))):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_diverged_training_takes_its_checkpoints_with_it(tmp_path: Path, split: vgae.LinkSplit) -> None:
    config = replace(CONFIG, learning_rate=1e30, eval_every=100)
    with pytest.raises(TrainingError, match="diverged"):
        resume(tmp_path / "checkpoint", split, config)
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------------- what is refused


@pytest.fixture
def checkpoint(tmp_path: Path, split: vgae.LinkSplit) -> Path:
    """A training that was interrupted after iteration 10."""
    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        resume(folder, split, CONFIG, CtrlC(10, 1))
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"latent_dim": 5}, "latent_dim 4, not 5"),
        ({"iterations": 24}, "iterations 12, not 24"),
        ({"model": "gae", "seed": 3}, "model vgae, not gae; posterior normal, not delta; seed 0, not 3"),
    ],
)
def test_checkpoint_of_another_config_names_the_option(
    checkpoint: Path, split: vgae.LinkSplit, changes: dict[str, Any], words: str
) -> None:
    before = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    said = message_of(lambda: resume(checkpoint, split, replace(CONFIG, **changes)))
    assert said.startswith(f"{checkpoint}: the checkpoint there is of another training ({words});")
    assert {path.name: path.read_bytes() for path in checkpoint.iterdir()} == before


def test_checkpoint_of_another_graph_or_other_pairs_is_refused(checkpoint: Path, split: vgae.LinkSplit) -> None:
    other = vgae.split_links(vgae.stochastic_block_model(120, 3, feature_dim=30, seed=5), seed=3)
    assert "(another training graph; other validation pairs)" in message_of(lambda: resume(checkpoint, other, CONFIG))
    fewer = replace(split, val=vgae.HeldOut(split.val.links[1:], split.val.non_links))
    assert "(other validation pairs)" in message_of(lambda: resume(checkpoint, fewer, CONFIG))


@pytest.mark.skipif(torch.cuda.is_available(), reason="auto is the CPU only where there is no GPU")
def test_where_it_is_trained_is_not_what_is_trained(checkpoint: Path, split: vgae.LinkSplit) -> None:
    whole = train(job_of(split, CONFIG))
    assert bits(resume(checkpoint, split, replace(CONFIG, device="auto"))) == bits(whole)


def edit(folder: Path, **changes: Any) -> None:
    """Change checkpoint.json and have it vouch for itself and for the tensors, as somebody who means harm would."""
    content = json.loads((folder / "checkpoint.json").read_text()) | changes
    content["sha256"] = hashlib.sha256((folder / "state-10.safetensors").read_bytes()).hexdigest()
    del content["hash"]
    (folder / "checkpoint.json").write_text(json.dumps({**content, "hash": hash_json(content)}))


def with_tensor(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        tensors = load_file(folder / "state-10.safetensors")
        tensors[name] = change(tensors[name]).contiguous()
        save_file(tensors, folder / "state-10.safetensors")
        edit(folder)

    return tamper


def with_bytes(name: str, change: Callable[[bytes], bytes], *, forge: bool) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))
        if forge:
            edit(folder)

    return tamper


def with_link(name: str) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        (folder / name).rename(folder.parent / "elsewhere")
        (folder / name).symlink_to(folder.parent / "elsewhere")

    return tamper


def with_pipe(name: str) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return tamper


def json_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "checkpoint.json").read_text())
    return content


def with_trap(folder: Path) -> None:
    (folder / "state-10.safetensors").write_bytes(pickle.dumps(Trap(folder.parent / "executed")))
    edit(folder)


class Trap:
    """Touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


WEIGHT = "weights.encoder.input_weight"
TAMPERED: dict[str, Callable[[Path], None]] = {
    "half the tensors": with_bytes("state-10.safetensors", lambda data: data[: len(data) // 2], forge=True),
    "one bit of the tensors": with_bytes("state-10.safetensors", lambda data: data[:-1] + b"?", forge=False),
    "half the description": with_bytes("checkpoint.json", lambda data: data[: len(data) // 2], forge=False),
    "an edited description": with_bytes("checkpoint.json", lambda data: data.replace(b"10", b"11"), forge=False),
    "deep nesting": with_bytes("checkpoint.json", lambda _: b'{"a":' + b"[" * 200_000, forge=False),
    "no tensors": lambda folder: (folder / "state-10.safetensors").unlink(),
    "linked tensors": with_link("state-10.safetensors"),
    "a linked description": with_link("checkpoint.json"),
    "a pickle": with_trap,
    "another shape": with_tensor(WEIGHT, lambda tensor: tensor[:-1]),
    "another type": with_tensor(WEIGHT, lambda tensor: tensor.double()),
    "nan": with_tensor(WEIGHT, lambda tensor: tensor * torch.nan),
    "another step": with_tensor("adam.encoder.input_weight.step", lambda tensor: tensor + 1),
    "another generator": with_tensor("generator", lambda tensor: tensor[:-8]),
    "no generator": with_tensor("generator", torch.zeros_like),
    "a tensor of another name": with_bytes(
        "state-10.safetensors", lambda data: data.replace(b"weights.", b"weight5."), forge=True
    ),
    "another format": lambda folder: edit(folder, format=2),
    "a path for an iteration": lambda folder: edit(folder, iteration="../../evil"),
    "an iteration to come": lambda folder: edit(folder, iteration=13),
    "no history": lambda folder: edit(folder, history=[]),
    "words in the history": lambda folder: edit(folder, history=[{"iteration": "one"}]),
    "endless seconds": lambda folder: edit(folder, seconds=float("inf")),
    "an unknown objective": lambda folder: edit(folder, objective="os.system"),
    "a best iteration to come": lambda folder: edit(folder, best_iteration=99),
    "a further key": lambda folder: edit(folder, execute="rm"),
    "a version to come": lambda folder: edit(folder, vgae="99.0.0"),
    "a true format": lambda folder: edit(folder, format=True),
    "a format that is no whole number": lambda folder: edit(folder, format=1.0),
    "a score above all": lambda folder: edit(folder, best_score=3.0),
    "a gap in the history": lambda folder: edit(folder, history=json_of(folder)["history"][1:]),
    "a state without end": lambda folder: os.truncate(folder / "state-10.safetensors", 2**42),
    "a pipe for a state": with_pipe("state-10.safetensors"),
    "an owner of other things": lambda folder: edit(folder, owner={**json_of(folder)["owner"], "execute": "rm"}),
    "no owner": lambda folder: edit(folder, owner=None),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampered_checkpoint_is_refused_and_executes_nothing(checkpoint: Path, split: vgae.LinkSplit, how: str) -> None:
    TAMPERED[how](checkpoint)
    said = message_of(lambda: resume(checkpoint, split, CONFIG))
    assert str(checkpoint) in said
    assert said.endswith(".")
    assert "\n" not in said
    assert not (checkpoint.parent / "executed").exists()


def test_unfinished_writes_of_a_killed_process_do_no_harm(checkpoint: Path, split: vgae.LinkSplit) -> None:
    (checkpoint / "state-11.safetensors").write_bytes(b"half of i")
    (checkpoint / ".checkpoint.json.x1").write_bytes(b"{")
    (checkpoint / "notes.txt").write_text("mine")
    assert bits(resume(checkpoint, split, CONFIG)) == bits(train(job_of(split, CONFIG)))
    assert sorted(path.name for path in checkpoint.iterdir()) == [
        "checkpoint.json",
        "notes.txt",
        "state-12.safetensors",
    ]
