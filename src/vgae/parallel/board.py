"""Notes that all processes of a group can read, beside the messages of the group.

They are kept by torchrun's agent or, without one, by the first process, and can still be read when messages no longer
arrive. Each process posts under a name and its rank, so that nobody writes over another's note.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import torch.distributed as dist

from vgae.errors import InputError, VgaeError
from vgae.parallel.environment import PORT, Place

PAUSE = 0.05  # seconds between two looks
Answer = TypeVar("Answer")


class BoardError(RuntimeError):
    """Whoever keeps the notes does not answer, or has ended."""


class Board:
    """The notes of the processes of a group; whoever keeps them has `patience` seconds to answer."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.rank, self.size, self.patience = place.rank, place.size, timeout
        self.keeper = place.keeper
        self.topic = "meeting"  # notes under another are not seen
        try:
            self.store: Any = dist.TCPStore(  # type: ignore[attr-defined]  # not in torch's list of names
                place.address,
                place.port,
                place.size,
                is_master=place.keeps_board,
                timeout=timedelta(seconds=timeout),
                wait_for_workers=False,
            )
        except (dist.DistError, RuntimeError, ValueError) as error:
            where = f"{place.address}:{place.port}"
            if place.keeps_board:
                raise InputError(
                    f"{PORT}: processes cannot meet at {where} ({_reason(error)}); choose a port that is free."
                ) from None
            raise VgaeError(
                f"Rank {place.rank} does not reach the first process at {where} ({_reason(error)})"
            ) from None

    def post(self, name: str, note: Any) -> None:
        """Leave a note of this process: anything that JSON can say."""
        self._ask(lambda: self.store.set(self._key(name, self.rank), json.dumps(note)))

    def read(self, name: str, rank: int = 0) -> Any:
        """The note that a process has left under a name; None if there is none."""
        return self._ask(lambda: self._look([self._key(name, rank)]))[0]

    def posted(self, name: str) -> dict[int, Any]:
        """The notes under a name, by the ranks of those who have left one."""
        found = self._ask(lambda: self._look([self._key(name, rank) for rank in range(self.size)]))
        return {rank: note for rank, note in enumerate(found) if note is not None}

    def store_of_group(self) -> Any:
        """A place for what the processes need to find each other, apart from the notes."""
        return dist.PrefixStore(self.topic, self.store)  # type: ignore[attr-defined]  # as above

    def _key(self, name: str, rank: int) -> str:
        return f"vgae/{self.topic}/{name}/{rank}"

    def _look(self, keys: list[str]) -> list[Any]:
        return [json.loads(self.store.get(key)) if self.store.check([key]) else None for key in keys]

    def _ask(self, ask: Callable[[], Answer]) -> Answer:
        """What the keeper answers; asked in a thread, because a keeper that hangs would have this one hang too."""
        answers: SimpleQueue[tuple[Answer, None] | tuple[None, Exception]] = SimpleQueue()

        def wait() -> None:
            try:
                answers.put((ask(), None))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the answer is waited for
                answers.put((None, error))

        threading.Thread(target=wait, daemon=True).start()
        try:
            answer, error = answers.get(timeout=self.patience)
        except Empty:
            raise BoardError(f"no answer for {self.patience:g} s") from None
        if error is not None:
            raise BoardError(str(error)) from None
        return answer  # type: ignore[return-value]  # there is one where there is no error


def _reason(error: Exception) -> str:
    text = str(error)
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return "the port is in use"
    return text.splitlines()[0][:200] if text else type(error).__name__
