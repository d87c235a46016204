"""A training that is continued computes with as many threads as before, and so to the same bits."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import vgae
from helpers import message_of
from vgae.io.json_files import hash_json
from vgae.machine import in_one_thread, num_threads
from vgae.ops.dispatch import HAS_NUMBA
from vgae.runs.checkpoint import FolderCheckpointer
from vgae.runs.fingerprint import Fingerprint
from vgae.train.callbacks import Callback
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.loop import Trained, train
from vgae.train.start import is_small
from vgae.train.state import LogEntry

CONFIG = Config(iterations=6, eval_every=1, hidden_dim=8, latent_dim=4, device="cpu", objective="exact")
TWO_CORES = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is no second thread to have")


@pytest.fixture(scope="module")
def graph() -> vgae.Graph:
    """Large enough for the kernels, whose sums over all pairs are divided by threads, on any processor."""
    return vgae.stochastic_block_model(2500, 3, feature_dim=30, seed=5)


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Interrupting(Callback):
    """Interrupts at an iteration, and records the number of threads and all messages."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.seen, self.messages = at, set[int](), list[str]()

    def on_log(self, entry: LogEntry) -> None:
        self.seen.add(num_threads())
        if entry.iteration == self.at:
            raise KeyboardInterrupt

    def on_threads(self, number: int) -> None:
        self.messages.append(f"{number} as before")

    def on_warning(self, text: str) -> None:
        self.messages.append(text)


def fit(folder: Path, graph: vgae.Graph, callback: Callback | None) -> Trained:
    job = Job.of(graph, CONFIG)
    with FolderCheckpointer(folder, Fingerprint.of(job), every=0, callback=callback) as checkpointer:
        return train(job, callback, checkpointer)


def interrupt(folder: Path, graph: vgae.Graph, threads: int) -> None:
    torch.set_num_threads(threads)
    with pytest.raises(KeyboardInterrupt):
        fit(folder, graph, Interrupting(at=4))


def describe(folder: Path, threads: object) -> None:
    """Have checkpoint.json name another number of threads or, with ..., none at all."""
    path = folder / "checkpoint.json"
    content = json.loads(path.read_text())
    del content["hash"], content["threads"]
    if threads is not ...:
        content["threads"] = threads
    path.write_text(json.dumps({**content, "hash": hash_json(content)}))


def bits(trained: Trained) -> bytes:
    return trained.posterior.mean.numpy().tobytes()


@TWO_CORES
@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 1)])
def test_continued_with_the_threads_of_before(tmp_path: Path, graph: vgae.Graph, before: int, now: int) -> None:
    torch.set_num_threads(before)
    whole = bits(train(Job.of(graph, CONFIG)))
    torch.set_num_threads(now)
    assert bits(train(Job.of(graph, CONFIG))) != whole  # else there would be nothing to test
    interrupt(tmp_path, graph, before)
    torch.set_num_threads(now)
    callback = Interrupting()
    assert bits(fit(tmp_path, graph, callback)) == whole
    assert (callback.seen, callback.messages) == ({before}, [f"{before} as before"])
    assert torch.get_num_threads() == now


@pytest.mark.parametrize("stored", [1, ...])
def test_nothing_is_said_where_the_number_is_the_same_or_not_known(
    tmp_path: Path, graph: vgae.Graph, stored: object
) -> None:
    interrupt(tmp_path, graph, 1)
    describe(tmp_path, stored)
    callback = Interrupting()
    assert bits(fit(tmp_path, graph, callback)) == bits(train(Job.of(graph, CONFIG)))
    assert (callback.seen, callback.messages) == ({1}, [])


def test_threads_that_the_machine_does_not_have_are_reported(tmp_path: Path, graph: vgae.Graph) -> None:
    interrupt(tmp_path, graph, 1)
    describe(tmp_path, 9999)
    callback = Interrupting()
    fit(tmp_path, graph, callback)
    assert callback.seen == {1}
    assert len(callback.messages) == 1
    assert "9999 threads before and uses 1 now" in callback.messages[0]
    assert "may differ in the last bits" in callback.messages[0]
    (tmp_path / "again").mkdir()
    interrupt(tmp_path / "again", graph, 1)
    describe(tmp_path / "again", 9999)
    with pytest.warns(RuntimeWarning, match="may differ in the last bits"):
        fit(tmp_path / "again", graph, None)


@pytest.mark.parametrize("threads", [0, -1, 2.0, True, "2", [2], 10**9])
def test_forged_numbers_of_threads_are_refused(tmp_path: Path, graph: vgae.Graph, threads: object) -> None:
    interrupt(tmp_path, graph, 1)
    describe(tmp_path, threads)
    assert "damaged (threads" in message_of(lambda: fit(tmp_path, graph, None))


class Counting(Callback):
    """Records how many threads PyTorch has outside of steps."""

    def __init__(self) -> None:
        self.seen = set[int]()

    def on_log(self, entry: LogEntry) -> None:
        del entry
        self.seen.add(torch.get_num_threads())


@TWO_CORES
def test_small_sampled_steps_have_the_same_bits_with_any_number_of_threads(graph: vgae.Graph) -> None:
    """PyTorch has one thread in them, and sums of our own kernels do not depend on how many they have."""
    pytest.importorskip("numba")
    job, found = Job.of(graph, replace(CONFIG, objective="sampled")), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        callback = Counting()
        found.append(bits(train(job, callback)))
        assert callback.seen == {threads} == {torch.get_num_threads()}
    assert found[0] == found[1]


def test_pytorch_has_one_thread_where_its_operations_are_small() -> None:
    torch.set_num_threads(2)
    with in_one_thread():
        assert (torch.get_num_threads(), num_threads()) == (1, 2)
        with in_one_thread():
            assert (torch.get_num_threads(), num_threads()) == (1, 2)
    assert (torch.get_num_threads(), num_threads()) == (2, 2)


@pytest.mark.parametrize(
    ("num_nodes", "options", "small"),
    [
        (2500, {"objective": "sampled"}, True),
        (2500, {"objective": "exact"}, HAS_NUMBA),  # all pairs are what takes long: with kernels these have threads
        (500, {"objective": "exact"}, False),  # and without PyTorch's are needed
        (2500, {"objective": "sampled", "decoder": "mlp"}, False),
        (2500, {"objective": "sampled", "batch_size": 500}, False),
        (40_000, {"objective": "sampled"}, False),
    ],
)
def test_which_steps_are_small(num_nodes: int, options: dict[str, Any], small: bool) -> None:
    job = Job.of(vgae.stochastic_block_model(num_nodes, 4, seed=1), Config(device="cpu", **options))
    assert is_small(workload(job), options["objective"], torch.device("cpu")) == small
