"""Notes that all processes of a group can read, beside the messages of the group.

They are kept by torchrun's agent or, without one, by the first process, and can still be read when messages no longer
arrive. Each process posts under a name and its rank, so that nobody writes over another's note.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from vgae.errors import InputError, VgaeError
from vgae.parallel.environment import PORT, Place

PAUSE = 0.02  # seconds between two looks


class Board:
    """The notes of the processes of a group."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.rank, self.size = place.rank, place.size
        try:
            self.store = dist.TCPStore(
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
        self.store.set(f"vgae/{name}/{self.rank}", json.dumps(note))

    def read(self, name: str, rank: int = 0) -> Any:
        """The note that a process has left under a name; None if there is none."""
        key = f"vgae/{name}/{rank}"
        return json.loads(self.store.get(key)) if self.store.check([key]) else None

    def posted(self, name: str) -> dict[int, Any]:
        """The notes under a name, by the ranks of those who have left one."""
        keys = {rank: f"vgae/{name}/{rank}" for rank in range(self.size)}
        return {rank: json.loads(self.store.get(key)) for rank, key in keys.items() if self.store.check([key])}

    def gather(self, name: str, note: Any, timeout: float) -> dict[int, Any]:
        """Post a note, and wait for those of all; without those that have not come in time."""
        self.post(name, note)
        end = time.monotonic() + timeout
        while len(found := self.posted(name)) < self.size and time.monotonic() < end:
            time.sleep(PAUSE)
        return found


def _reason(error: Exception) -> str:
    text = str(error)
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return "the port is in use"
    return text.splitlines()[0][:200] if text else type(error).__name__
