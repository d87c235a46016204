"""How the processes of a group meet, on a board that may still have the notes of processes that have ended.

torchrun keeps one store for all its restarts. What is read there may be of an earlier start, and nothing in the
environment tells one start from the next on all machines. So each process posts who it is, with a number drawn by
chance; the first process posts a list of all that it has read; each answers to the list that has its own number; and
when all have answered to the same list, the first one says so. Lists that name a process of before are never answered.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from vgae.parallel.board import PAUSE, Board

Processes = Mapping[int, Mapping[str, Any]]  # by rank: who they are


class MissingError(Exception):
    """Not all came in time; `ranks` are those who did not."""

    def __init__(self, ranks: set[int]) -> None:
        super().__init__(str(sorted(ranks)))
        self.ranks = ranks


def meet(board: Board, own: Mapping[str, Any], timeout: float) -> Processes:
    """Who all processes of the group are, this one included; from now on only their notes are on the board."""
    meeting = _Meeting(board, {**own, "number": secrets.token_hex(8)})
    end = time.monotonic() + timeout
    while (found := meeting.next_look()) is None:
        if time.monotonic() > end:
            raise MissingError(meeting.missing())
        time.sleep(PAUSE)
    board.topic = found
    return meeting.members


class _Meeting:
    """One process's view of it."""

    def __init__(self, board: Board, own: Mapping[str, Any]) -> None:
        self.board, self.own = board, own
        self.lists = 0
        self.members: dict[int, Any] = {}
        board.post("join", own)

    def next_look(self) -> str | None:
        """The name of this start, once all have answered to the same list."""
        board = self.board
        if board.rank == 0:
            self._list()
        found = board.read("list")
        if found is None or self._number_in(found) != self.own["number"]:
            return None
        name: str = found["name"]
        board.post("answer", name)
        if board.rank == 0 and all(answer == name for answer in self._answers()):
            board.post("begin", name)
        if board.read("begin") != name:
            return None
        self.members = dict(enumerate(found["members"]))
        return name

    def missing(self) -> set[int]:
        """Those who have not come, as far as this process knows."""
        if self.board.rank == 0:
            answers = self._answers()
            name = f"{self.own['number']}-{self.lists}"
            return {rank for rank, answer in enumerate(answers) if answer != name and rank != 0}
        absent = set(range(self.board.size)) - set(self.board.posted("join"))
        return absent or {0}

    def _list(self) -> None:
        """Post a list of all who are known, if there is a new one."""
        joined = self.board.posted("join")
        if len(joined) == self.board.size and joined != self.members:
            self.lists, self.members = self.lists + 1, joined
            name = f"{self.own['number']}-{self.lists}"
            self.board.post("list", {"name": name, "members": [joined[rank] for rank in range(self.board.size)]})

    def _answers(self) -> list[Any]:
        found = self.board.posted("answer")
        return [found.get(rank) for rank in range(self.board.size)]

    def _number_in(self, found: Any) -> Any:
        members = found["members"]
        return members[self.board.rank]["number"] if len(members) == self.board.size else None
