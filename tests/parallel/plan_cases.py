"""What a process of a group counts in a step: bytes that it sends, and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from vgae.graph.graph import Graph
from vgae.objective import group_cost, sharded
from vgae.parallel.group import Group
from vgae.parallel.memory import SharedMemory
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.setting import Alone
from vgae.train.step import Step
from vgae.train.together import Together


class Counter:
    """Counts the bytes that go to other processes, by torch.distributed or shared memory, which do what they do."""

    def __init__(self, group: Group) -> None:
        self.group, self.sent = group, 0.0
        self.patches = [
            patch.object(dist, name, self._counting(getattr(dist, name), count))
            for name, count in (
                ("all_to_all_single", self._all_to_all),
                ("all_gather", lambda _, tensor: (group.size - 1) * _size(tensor)),
                ("batch_isend_irecv", lambda ops: sum(_size(each.tensor) for each in ops if each.op is dist.isend)),
            )
        ]
        self.patches.append(patch.object(SharedMemory, "send", self._counting(SharedMemory.send, self._shared)))

    def _all_to_all(self, _: Any, tensor: torch.Tensor, received: Any = None, sent: Any = None) -> float:
        del received
        if not len(tensor):
            return 0.0
        share = 1 / self.group.size if sent is None else sent[self.group.rank] / len(tensor)
        return (1 - share) * _size(tensor)

    def _shared(self, memory: SharedMemory, _: torch.Tensor, bounds: Sequence[tuple[int, int]], *_chosen: Any) -> float:
        return float(sum(end - begin for rank, (begin, end) in enumerate(bounds) if rank != memory.rank))

    def _counting(self, function: Callable[..., Any], count: Callable[..., float]) -> Callable[..., Any]:
        def counted(*given: Any, **options: Any) -> Any:
            self.sent += count(*given)
            return function(*given, **options)

        return counted

    def __enter__(self) -> Counter:
        for each in self.patches:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.patches:
            each.stop()


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def first_step(group: Group, graph: Graph, values: dict[str, Any]) -> tuple[Step, tuple[int, ...]]:
    """The step of a training, and the bounds of its processes."""
    job = Job.of(graph, Config(device="cpu", **values))
    setting = Together(job, group) if group.size > 1 else Alone(job)
    setting.require_memory(checkpoints=False)
    setting.open(Checkpointer())
    bounds = setting.shards.bounds if isinstance(setting, Together) else (0, graph.num_nodes)
    return setting.first_step(values["objective"]), bounds


def count(group: Group, graph: Graph, values: dict[str, Any], gathered: int) -> tuple[float, tuple[int, ...]]:
    """Bytes that this process sends in a step which logs nothing; factors are gathered of graphs up to some size."""
    with patch.object(sharded, "GATHERED", gathered), patch.object(group_cost, "GATHERED", gathered):
        step, bounds = first_step(group, graph, values)
        step(1, value=True)
        with Counter(group) as counter:
            step(2, value=False)
    return counter.sent, bounds


def growth(group: Group, small: Graph, graph: Graph, values: dict[str, Any]) -> tuple[int, tuple[int, ...]]:
    """By how many bytes the peak of this process grows in a training, to its third step."""
    step, _ = first_step(group, small, values)  # loads whatever there is to load
    step(1, value=True)
    del step
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    before = _status("VmRSS")
    step, bounds = first_step(group, graph, values)
    for iteration in (1, 2, 3):
        step(iteration, value=iteration == 1)
    return _status("VmHWM") - before, bounds


def _status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])
