"""The processes of one training, and what they say to each other.

A group is made of what `torch.distributed` knows: a group of processes that is there already, or the environment that
`torchrun` sets. Messages go by gloo between CPUs and by NCCL between GPUs; where several processes share a GPU, which
NCCL refuses, by gloo and the memory of the host. On the CPUs of one machine, exchanges and sums, which are most of what
is said in a step, go by memory that the processes share (vgae.parallel.memory).

Every process of a group has to call the same methods in the same order. Sums are added up in the order of the ranks, so
that all processes have the same bits, and the same number of processes has them every time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from vgae.errors import InputError
from vgae.parallel.memory import NOWHERE, SharedMemory, can_share

TIMEOUT = 600.0  # seconds that a process waits for the others
SMALL = 2**18  # bytes that every process sends whole to all others, because dividing them would take longer
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # that torchrun sets


@dataclass(frozen=True, eq=False)
class Pending:
    """A message under way."""

    works: Sequence[Callable[[], object]]  # each waits for a part of it
    received: Tensor
    sent: Tensor  # kept until it has left
    device: torch.device

    def wait(self) -> Tensor:
        """What was received, when it is there, on the group's device."""
        for wait in self.works:
            wait()
        return self.received.to(self.device)


class Group:
    """The processes of a training: this one's rank, how many there are, and the device that this one computes on."""

    def __init__(self, device: torch.device | str = "cpu", timeout: float = TIMEOUT) -> None:
        if not dist.is_initialized():
            raise InputError("There is no group of processes; start them with torchrun, and use Group.started.")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.device = torch.device(device)
        self._on_host = self.device.type != "cpu" and dist.get_backend() != "nccl"
        self._memory: SharedMemory | None = None
        if self.size > 1 and self.device.type == "cpu":
            self._memory = self._shared_memory(timeout)

    def _shared_memory(self, timeout: float) -> SharedMemory | None:
        """Memory for messages, if all processes are on one machine that can share it."""
        memory = SharedMemory(self.rank, self.size, timeout) if can_share() else None
        address = NOWHERE if memory is None else memory.address
        found = self._gathered(torch.tensor(address)).tolist()
        failed = self.any(memory is None or not memory.meet(found))
        if failed and memory is not None:
            memory.close()
        return None if failed else memory

    @classmethod
    def started(cls, device: str = "auto", *, timeout: float = TIMEOUT, store: Any = None) -> Group:
        """The group that this process is in; if it is in none yet, it joins the one that torchrun has started.

        The device `auto` is a GPU where there are some, by the rank on this machine, else the CPU. `timeout` is how
        many seconds a process waits for the others. They find each other by `store`, if one is given.
        """
        if not dist.is_initialized():
            missing = [name for name in VARIABLES if name not in os.environ]
            if missing:
                raise InputError(f"There is no group of processes ({missing[0]} is not set); start them with torchrun.")
        on, shared = device_of(device)
        if on.type == "cuda":
            torch.cuda.set_device(on)
        if not dist.is_initialized():
            backend = "nccl" if on.type == "cuda" and not shared else "gloo"
            place: dict[str, Any] = {}
            if store is not None:
                place = {"store": store, "rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
            dist.init_process_group(backend, timeout=timedelta(seconds=timeout), **place)
        return cls(on, timeout)

    @property
    def is_first(self) -> bool:
        """Whether this process speaks for all."""
        return self.rank == 0

    def close(self) -> None:
        """Leave the group; nothing can be said in it afterwards."""
        if self._memory is not None:
            self._memory.close()
        dist.destroy_process_group()

    def leave(self) -> None:
        """Say that no more will be said in shared memory, so that whoever waits for it need not."""
        if self._memory is not None:
            self._memory.leave()

    def barrier(self) -> None:
        """Wait until all are here."""
        self.sum(torch.zeros(1, device=self.device))

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of the tensors of all processes, which have the same shape; the same bits in all of them."""
        if self.size == 1:
            return tensor.clone()
        flat = self._outgoing(tensor).flatten()
        if flat.numel() * flat.element_size() <= SMALL:
            return self._added_up(self._gathered(flat)).to(self.device).view(tensor.shape)
        # Each process adds up one part, and tells the others.
        part = -(-flat.numel() // self.size)
        padded = torch.nn.functional.pad(flat, (0, part * self.size - flat.numel()))
        parts = self.exchange(padded, [part] * self.size, [part] * self.size).wait()
        whole = self._gathered(self._added_up(parts.view(self.size, part))).flatten()
        return whole[: flat.numel()].to(self.device).view(tensor.shape)

    def gather(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all processes, one after the other, in each of them; `counts` says how many each has."""
        most = max(counts)
        padded = self._outgoing(rows).new_zeros(most, *rows.shape[1:])
        padded[: len(rows)] = rows
        every = self._gathered(padded.flatten()).view(self.size, most, *rows.shape[1:])
        return torch.cat([part[:count] for part, count in zip(every, counts, strict=True)]).to(self.device)

    def collect(self, rows: Tensor, counts: Sequence[int]) -> Tensor | None:
        """The rows of all processes, one after the other, on the host of the first; None in the others."""
        rows = rows.detach()
        if not self.is_first:
            dist.send(self._outgoing(rows), 0)
            return None
        whole = torch.empty(sum(counts), *rows.shape[1:], dtype=rows.dtype)
        whole[: counts[0]] = rows.cpu()
        end = counts[0]
        for rank, count in enumerate(counts[1:], start=1):
            part = self._outgoing(rows).new_empty(count, *rows.shape[1:])
            dist.recv(part, rank)
            whole[end : end + count] = part.cpu()
            end += count
        return whole

    def exchange(
        self, rows: Tensor, sent: Sequence[int], received: Sequence[int], chosen: Tensor | None = None
    ) -> Pending:
        """Send the first `sent[0]` rows to process 0, the next `sent[1]` to process 1, …, and receive as many as said.

        With `chosen`, these rows, by their numbers, in the place of all. What arrives is in the order of the ranks.
        """
        if self._memory is None and chosen is not None:
            rows, chosen = rows.detach().index_select(0, chosen), None
        outgoing = self._outgoing(rows)
        incoming = outgoing.new_empty(sum(received), *rows.shape[1:])
        if self._memory is None:
            work = dist.all_to_all_single(incoming, outgoing, list(received), list(sent), async_op=True)
            return Pending((work.wait,), incoming, outgoing, self.device)
        width = outgoing.element_size() * prod(rows.shape[1:])
        ends = list(accumulate(sent, initial=0))
        number = self._memory.send(outgoing, [(begin * width, end * width) for begin, end in pairwise(ends)], chosen)
        take = partial(self._memory.receive, number, torch.split(incoming, list(received)))
        return Pending((take,), incoming, outgoing, self.device)

    def shift(self, rows: Tensor, num_received: int, by: int = 1, *, tag: int = 0) -> Pending:
        """Send rows to the process so many ranks further on the ring, and receive from the one so many before.

        Messages under way at the same time have different tags.
        """
        outgoing = self._outgoing(rows)
        incoming = outgoing.new_empty(num_received, *rows.shape[1:])
        there, here = (self.rank + by) % self.size, (self.rank - by) % self.size
        messages = [
            dist.P2POp(dist.isend, outgoing, there, tag=tag),
            dist.P2POp(dist.irecv, incoming, here, tag=tag),
        ]
        works = [work.wait for work in dist.batch_isend_irecv(messages)]
        return Pending(works, incoming, outgoing, self.device)

    def share(self, value: Any) -> Any:
        """What the first process has, in all of them: anything that JSON can say; others may give None."""
        text = json.dumps(value).encode() if self.is_first else b""
        length = int(self.sum(torch.tensor([len(text)], device=self.device)).item())
        found = torch.zeros(length, dtype=torch.uint8, device=self._message_device)
        if self.is_first:
            found.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        dist.broadcast(found, 0)
        return json.loads(bytes(found.tolist()))

    def any(self, fact: bool) -> bool:
        """Whether it is so in at least one process."""
        return bool(self.sum(torch.tensor([int(fact)], device=self.device)).item())

    @property
    def _message_device(self) -> torch.device:
        """Where messages are when they leave."""
        return torch.device("cpu") if self._on_host else self.device

    def _outgoing(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._message_device).contiguous()

    def _gathered(self, flat: Tensor) -> Tensor:
        """What all have, one in each row."""
        every = flat.new_empty(self.size, len(flat))
        if self._memory is None:
            dist.all_gather(list(every.unbind()), flat)
        else:
            everything = 0, flat.numel() * flat.element_size()
            self._memory.receive(self._memory.send(flat, [everything] * self.size), every.unbind())
        return every

    def _added_up(self, parts: Tensor) -> Tensor:
        """The sum of the rows, from the first to the last."""
        total = parts[0].clone()
        for part in parts[1:]:
            total += part
        return total


def device_of(name: str) -> tuple[torch.device, bool]:
    """The device of this process, and whether others on this machine have it too."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu"), True
    if name not in ("auto", "cuda"):
        return torch.device(name), True
    number, local = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", "0"))
    return torch.device("cuda", local % number), int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > number
