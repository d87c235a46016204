"""Messages between processes of one machine, by memory that they share: a copy in and a copy out, and no network.

Every process writes what it sends into files of its own that are in memory alone, from which the others read, and
counts its messages in a page of notes, which they map. It maps its files itself, so that rows which are chosen out of
many are written there as they are chosen. Whoever receives waits for that count, and counts what it has
taken. A message is written into one of SLOTS files in turn, when everybody has taken the one that was there. All
processes send and receive the same messages in the same order, as `vgae.parallel.group` asks for.

The files have no name in any folder: they are found by process and number, and gone with the processes. Processors
whose writes are seen by others in the order in which they were made need no more than that (x86); on others, on other
systems, and between machines messages go by gloo, as they do wherever such files cannot be opened.
"""

from __future__ import annotations

import mmap
import os
import platform
import select
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from vgae.parallel.faults import this_process

VARIABLE = "VGAE_SHARED_MEMORY"  # 0: all messages go by gloo
SLOTS = 2  # messages that may be under way
NOTES = 2**14  # bytes of a page of notes
PATIENCE = 1e-3  # seconds in which others are likely to be ready, and which it is not worth to sleep for
PAUSE = 5e-5  # seconds between two looks afterwards
LAST = 5.0  # seconds that others have to take what was sent last
EVERY = 0.05  # seconds after which it is looked whether the others are still there
# Places of notes: messages sent, messages received, whether the process has left, and what is in each slot.
POSTED, TAKEN, LEFT, FIRST_SLOT = 0, 1, 2, 3
NOWHERE = [0] * (3 + SLOTS)  # the address of a process that shares nothing


def can_share() -> bool:
    """Whether this machine is one on which memory can be shared in this way, and it is not forbidden."""
    allowed = os.environ.get(VARIABLE) != "0"
    return (
        allowed and sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64") and hasattr(os, "pidfd_open")
    )


@dataclass(eq=False)
class _Peer:
    """Another process, as it is seen from here."""

    notes: memoryview
    files: list[int]  # of its messages
    watch: int  # becomes readable when the process ends

    @classmethod
    def of(cls, process: int, notes: int, files: Sequence[int]) -> _Peer:
        opened = _opened(process, notes)
        try:
            page = memoryview(mmap.mmap(opened, NOTES)).cast("q")
        finally:
            os.close(opened)
        return cls(page, [_opened(process, file) for file in files], os.pidfd_open(process))

    @property
    def opened(self) -> list[int]:
        """What is to be closed."""
        return [*self.files, self.watch]

    def is_gone(self) -> bool:
        """Whether it has left, or has ended without saying so."""
        if self.notes[LEFT]:
            return True
        watching = select.poll()
        watching.register(self.watch, select.POLLIN)
        return bool(watching.poll(0))


class _Room:
    """A file of this process, mapped as far as messages have needed it: they begin where it begins."""

    def __init__(self) -> None:
        self.file = os.memfd_create("vgae")
        self.bytes = torch.empty(0, dtype=torch.uint8)

    def of(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """The memory of so many numbers."""
        needed = prod(shape) * dtype.itemsize
        if needed > len(self.bytes):
            size = max(needed, 2 * len(self.bytes))  # of which memory is taken as it is written to
            os.ftruncate(self.file, size)
            self.bytes = torch.frombuffer(mmap.mmap(self.file, size), dtype=torch.uint8)
        return self.bytes[:needed].view(dtype).view(*shape)


class SharedMemory:
    """The messages of this process to all others on this machine, and theirs to it."""

    def __init__(self, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.rooms = [_Room() for _ in range(SLOTS)]
        self.files = [room.file for room in self.rooms]
        self.own_notes = os.memfd_create("vgae")
        os.ftruncate(self.own_notes, NOTES)
        self.notes = memoryview(mmap.mmap(self.own_notes, NOTES)).cast("q")
        self.peers: dict[int, _Peer] = {}
        self.sent, self.received = 0, set[int]()

    @property
    def address(self) -> list[int]:
        """Where others find this process: its machine, its number, and those of its notes and of its files."""
        machine = this_process()["machine"]
        place = zlib.crc32(machine.encode()) if machine else -1 - self.rank
        return [place, os.getpid(), self.own_notes, *self.files]

    def meet(self, addresses: Sequence[Sequence[int]]) -> bool:
        """Open what the others have; whether that was possible. Addresses are in the order of the ranks."""
        if len({each[0] for each in addresses}) > 1 or _slot(SLOTS, self.size) > NOTES // 8:
            return False
        with suppress(OSError, ValueError):
            others = {rank: each for rank, each in enumerate(addresses) if rank != self.rank}
            self.peers = {rank: _Peer.of(each[1], each[2], each[3:]) for rank, each in others.items()}
            return True
        return False

    def send(self, rows: Tensor, bounds: Sequence[tuple[int, int]], chosen: Tensor | None = None) -> int:
        """Write a message, of which each process takes what is between its bounds, in bytes; the message's number.

        It is the rows, or those that are chosen of them, by their numbers.
        """
        number, rows = self.sent, rows.detach()
        slot, at = number % SLOTS, _slot(number % SLOTS, self.size)
        self._wait(lambda peer: peer.notes[TAKEN] > number - SLOTS)
        length = len(rows) if chosen is None else len(chosen)
        room = self.rooms[slot].of((length, *rows.shape[1:]), rows.dtype)
        if chosen is None:
            room.copy_(rows)
        else:
            torch.index_select(rows, 0, chosen, out=room)
        for rank, (begin, end) in enumerate(bounds):
            self.notes[at + 2 * rank], self.notes[at + 2 * rank + 1] = begin, end
        self.sent = number + 1
        self.notes[POSTED] = self.sent
        return number

    def receive(self, number: int, parts: Sequence[Tensor]) -> None:
        """Take a message of all processes, this one's own included, into parts in the order of their ranks."""
        slot = number % SLOTS
        self._wait(lambda peer: peer.notes[POSTED] > number)
        at = _slot(slot, self.size) + 2 * self.rank
        for rank, part in enumerate(parts):
            sender = self if rank == self.rank else self.peers[rank]
            begin, end = sender.notes[at], sender.notes[at + 1]
            room, read = _bytes(part), 0
            if len(room) != end - begin:
                raise RuntimeError(f"a message of process {rank} has {end - begin} bytes, not {len(room)}")
            while read < len(room):
                more = os.preadv(sender.files[slot], [room[read:]], begin + read)
                if not more:
                    raise RuntimeError(f"connection closed: a message of process {rank} ends too early")
                read += more
        self.received.add(number)
        while self.notes[TAKEN] in self.received:
            self.received.remove(self.notes[TAKEN])
            self.notes[TAKEN] += 1

    def leave(self) -> None:
        """Tell the others that nothing more will be sent: whoever waits for it need not."""
        self.notes[LEFT] = 1

    def close(self) -> None:
        """Wait until the others have taken what was sent to them, or have ended: then it may be gone."""
        with suppress(RuntimeError):
            self._wait(lambda peer: peer.notes[TAKEN] >= self.sent or peer.is_gone(), LAST)
        self.leave()
        for file in (self.own_notes, *self.files, *(each for peer in self.peers.values() for each in peer.opened)):
            os.close(file)
        self.peers, self.files, self.rooms = {}, [], []

    def _wait(self, is_ready: Callable[[_Peer], bool], timeout: float | None = None) -> None:
        """Until it is so of all others; as with gloo, an error says that one has ended, or that time has passed."""
        timeout = self.timeout if timeout is None else timeout
        for rank, peer in self.peers.items():
            if is_ready(peer):
                continue
            begun = looked = time.monotonic()
            while not is_ready(peer):
                now = time.monotonic()
                if now - begun < PATIENCE:
                    os.sched_yield()
                    continue
                time.sleep(PAUSE)
                if now - looked > EVERY:
                    looked = now
                    if peer.is_gone() and not is_ready(peer):
                        raise RuntimeError(f"connection closed: process {rank} is gone")
                    if now - begun > timeout:
                        raise RuntimeError(f"timed out waiting for process {rank}, {timeout:g} s")


def _bytes(tensor: Tensor) -> memoryview:
    """The memory of a tensor that is in order."""
    flat = tensor.view(-1).view(torch.uint8) if tensor.numel() else torch.empty(0, dtype=torch.uint8)
    return flat.numpy().data


def _slot(slot: int, size: int) -> int:
    """Where the notes about a slot begin: begin and end of each process's part."""
    return FIRST_SLOT + slot * 2 * size


def _opened(process: int, file: int) -> int:
    """A file of another process."""
    return os.open(f"/proc/{process}/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
