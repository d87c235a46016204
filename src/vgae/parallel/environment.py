"""Which process of a group this one is, by the environment that torchrun sets; loads next to nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass

from vgae.errors import InputError

ADDRESS, PORT, RANK, SIZE = "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"
VARIABLES = (RANK, SIZE, ADDRESS, PORT)
AGENT_KEEPS_STORE = "TORCHELASTIC_USE_AGENT_STORE"
RUN, RESTARTS = "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"
LARGEST_PORT = 2**16 - 1


@dataclass(frozen=True)
class Place:
    """The place of a process in its group, and where the processes meet."""

    rank: int
    size: int
    address: str
    port: int

    @classmethod
    def here(cls) -> Place:
        """That of this process."""
        missing = [name for name in VARIABLES if name not in os.environ]
        if missing:
            raise InputError(f"There is no group of processes ({missing[0]} is not set); start them with torchrun.")
        place = cls(_number(RANK), _number(SIZE), os.environ[ADDRESS], _number(PORT))
        if place.rank >= place.size:
            raise InputError(f"{RANK}: {place.rank} is not below {SIZE}, {place.size}; ranks are counted from 0.")
        if place.port > LARGEST_PORT:
            raise InputError(f"{PORT}: {place.port} is not a port; they end at {LARGEST_PORT}.")
        return place

    @property
    def keeper(self) -> int | None:
        """Who keeps what the processes post: the first one; None under torchrun, whose agent does that."""
        return None if os.environ.get(AGENT_KEEPS_STORE) == "True" else 0

    @property
    def keeps_board(self) -> bool:
        """Whether this one does."""
        return self.rank == self.keeper


def in_group() -> bool:
    """Whether this process was started as one of a group."""
    return all(name in os.environ for name in VARIABLES)


def speaks() -> bool:
    """Whether what this process says is to be heard: it is the only one, or the first of its group."""
    return not in_group() or os.environ[RANK] == "0"


def has_agent() -> bool:
    """Whether torchrun watches this process, and starts it again."""
    return RUN in os.environ


def num_restarts() -> int:
    """How often the processes on this machine were started again after one of them had ended."""
    return _number(RESTARTS) if RESTARTS in os.environ else 0


def _number(name: str) -> int:
    text = os.environ[name]
    if not (text.isascii() and text.isdigit()):
        raise InputError(f"{name}: a whole number is needed in the environment, got {text!r}.")
    return int(text)
