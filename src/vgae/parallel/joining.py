"""Joining the group of processes that torchrun has started, and leaving it together.

    with vgae.parallel.joined() as group:
        model = vgae.VGAE(seed=0).fit(split.train, validation=split.val, group=group)
        if group.is_first:
            model.save("runs/mine", split=split)

All processes leave when the first one does: until then, torchrun can still start all of them again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist

from vgae.errors import InputError
from vgae.parallel.board import PAUSE, Board, BoardError
from vgae.parallel.environment import Place
from vgae.parallel.faults import (
    is_lost,
    name_of,
    not_answering,
    post_failure,
    posted_failure,
    this_process,
    why_lost,
)
from vgae.parallel.group import TIMEOUT, Group
from vgae.parallel.meeting import MissingError, Processes, meet
from vgae.version import __version__

BEATS = 4  # notes of the first process within the time limit, at least, to say that it is still there
BEAT = 0.5  # seconds between them, at most
MOMENT = 1.0  # seconds in which the first process should notice by itself that another has failed
FAREWELL = 5.0  # seconds that the keeper of the board waits for the others to have read it
VERSIONS = ("vgae", "torch")


@contextmanager
def joined(
    device: str = "auto", *, timeout: float = TIMEOUT, on_failure: Callable[[BaseException], None] | None = None
) -> Iterator[Group]:
    """The group of processes that torchrun has started, this one among them; all of them leave it together.

    A process that does not answer the others for `timeout` seconds is named in an error, and so is one that has ended.
    What fails in one process fails in all of them, for the same reason, as soon as they want to hear from it. If the
    first process is busy with something else, `on_failure` is called there after a moment, in a thread of its own.
    """
    if dist.is_initialized():
        raise InputError("There is a group of processes already; make a Group of it, or leave it first.")
    place = Place.here()
    board = Board(place, timeout)
    processes = _meet_all(board, timeout)
    group: Group | None = None
    with _beating(board, processes, timeout, on_failure):
        try:
            group = Group.started(device, timeout=timeout, store=board.store_of_group())
            yield group
            _leave_together(board, place, processes, timeout)
        except BaseException as error:
            if not is_lost(error):
                post_failure(board, error)
                if place.keeps_board:
                    _be_heard(board, group)
                raise
            raise why_lost(board, error, processes, timeout) from error
    group.close()


def _meet_all(board: Board, timeout: float) -> Processes:
    """Wait for all, and see that they run the same versions."""
    versions = {"vgae": __version__, "torch": torch.__version__}
    try:
        processes = meet(board, {**this_process(), **versions}, timeout)
    except MissingError as error:
        raise not_answering(error.ranks, {}, timeout, board.size) from None
    for rank, each in processes.items():
        for name in VERSIONS:
            if each[name] != processes[0][name]:
                raise InputError(
                    f"{name_of(rank, processes)} has {name} {each[name]}, rank 0 has {processes[0][name]}; "
                    "install the same version everywhere."
                )
    return processes


@contextmanager
def _beating(
    board: Board, processes: Processes, timeout: float, on_failure: Callable[[BaseException], None] | None
) -> Iterator[None]:
    """Meanwhile the first process posts again and again that it is there, and looks whether another has failed."""
    if board.rank:
        yield
        return
    over = threading.Event()

    def beat() -> None:
        number = 0
        with suppress(BoardError):  # the main thread notices too
            while not over.wait(min(BEAT, timeout / BEATS)):
                number += 1
                board.post("beat", number)
                failure = posted_failure(board, processes)
                if failure is not None and on_failure is not None and not over.wait(MOMENT):
                    on_failure(failure)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _be_heard(board: Board, group: Group | None) -> None:
    """Stay until the others have read why this process fails, which keeps the board; they look when it says no more."""
    if group is not None:
        group.leave()
    threading.Thread(target=dist.destroy_process_group, daemon=True).start()
    _wait_for_all(board, "heard", MOMENT)


def _wait_for_all(board: Board, name: str, seconds: float) -> None:
    """Wait until all others have left a note."""
    end = time.monotonic() + seconds
    with suppress(BoardError):
        while len(board.posted(name)) < board.size - 1 and time.monotonic() < end:
            time.sleep(PAUSE)


def _leave_together(board: Board, place: Place, processes: Processes, timeout: float) -> None:
    """The first process says that it is done; the others wait for that, as long as it is there."""
    if board.rank == 0:
        board.post("done", True)
        if place.keeps_board:
            _wait_for_all(board, "left", FAREWELL)
        return
    beat, since = None, time.monotonic()
    while not board.read("done"):
        failure = posted_failure(board, processes)
        if failure is not None:
            raise failure
        last = board.read("beat")
        if last != beat:
            beat, since = last, time.monotonic()
        if time.monotonic() - since > timeout:
            raise not_answering({0}, processes, timeout, board.size)
        time.sleep(4 * PAUSE)
    board.post("left", True)
