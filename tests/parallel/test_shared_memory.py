"""Messages by shared memory, of any sizes and waited for in any order; and a process that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vgae.parallel.faults import TIMED_OUT, is_lost
from vgae.parallel.memory import SLOTS, SharedMemory, can_share

pytestmark = pytest.mark.skipif(not can_share(), reason="memory is shared on Linux and x86 alone")

ELSEWHERE = """
import sys
from vgae.parallel.memory import SharedMemory
memory = SharedMemory(1, 2, 10.0)
print(*memory.address, flush=True)
sys.stdin.readline()
"""


def met(size: int, timeout: float = 10.0) -> list[SharedMemory]:
    """Ends of the same messages, all in this process, which shares memory with itself as with any other."""
    ends = [SharedMemory(rank, size, timeout) for rank in range(size)]
    addresses = [end.address for end in ends]
    assert all(end.meet(addresses) for end in ends)
    return ends


def message(rank: int, number: int, counts: list[int]) -> tuple[Tensor, list[tuple[int, int]]]:
    """What a process sends, so many numbers to each, and the bounds of each part in bytes."""
    ends = torch.tensor([0, *counts]).cumsum(0).tolist()
    values = torch.arange(ends[-1], dtype=torch.float32) + 1000 * number + 100_000 * rank
    return values, [(4 * begin, 4 * end) for begin, end in pairwise(ends)]


def take(ends: list[SharedMemory], number: int, counts: list[list[int]]) -> None:
    """Everybody takes a message, and has what was sent to it."""
    for rank, end in enumerate(ends):
        parts = [torch.full((of_sender[rank],), -1.0) for of_sender in counts]
        end.receive(number, parts)
        for other, part in enumerate(parts):
            values, bounds = message(other, number, counts[other])
            begin, until = (place // 4 for place in bounds[rank])
            assert torch.equal(part, values[begin:until])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_everybody_gets_its_parts(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 4))
    sizes = st.sampled_from([0, 1, 3, 1000, 2**14, 2**16])
    ends, begun = met(size), 0
    under_way: list[tuple[int, list[list[int]]]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        oldest = under_way[0][0] if under_way else begun
        if begun - oldest < SLOTS and data.draw(st.booleans()):
            counts = [[data.draw(sizes) for _ in range(size)] for _ in range(size)]
            chosen = data.draw(st.booleans())  # rows are sent as they are, or chosen out of twice as many
            for rank, end in enumerate(ends):
                values, bounds = message(rank, begun, counts[rank])
                many = torch.stack([values.flip(0), torch.zeros_like(values)], dim=1).flatten()
                places = 2 * torch.arange(len(values) - 1, -1, -1)
                given = (many, bounds, places) if chosen else (values, bounds)
                assert end.send(*given) == begun
            under_way.append((begun, counts))
            begun += 1
        elif under_way:
            take(ends, *under_way.pop(data.draw(st.integers(0, len(under_way) - 1))))
    for left in under_way:
        take(ends, *left)
    for end in ends:
        end.close()


def test_a_place_is_written_again_only_when_all_have_taken_what_is_there() -> None:
    first, second = met(2, timeout=0.2)
    for _ in range(SLOTS):
        first.send(torch.ones(3), [(0, 12), (0, 12)])
    with pytest.raises(RuntimeError, match=TIMED_OUT) as found:
        first.send(torch.ones(3), [(0, 12), (0, 12)])
    assert is_lost(found.value)
    second.send(torch.ones(3), [(0, 12), (0, 12)])
    assert [[os.fstat(file).st_size for file in end.files] for end in (first, second)] == [[12] * SLOTS, [12, 0]]
    second.receive(0, [torch.empty(3), torch.empty(3)])
    assert first.send(torch.full((3,), 7.0), [(0, 12), (0, 12)]) == SLOTS


def test_a_process_that_has_ended_is_noticed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        there = [int(number) for number in other.stdout.readline().split()]
        here = SharedMemory(0, 2, 60.0)
        assert here.meet([here.address, there])
        here.send(torch.ones(2), [(0, 8), (0, 8)])
        other.stdin.close()
        other.wait()
        with pytest.raises(RuntimeError, match="connection closed") as found:
            here.receive(0, [torch.empty(2), torch.empty(2)])
        assert is_lost(found.value)
        here.close()


def test_processes_of_several_machines_do_not_share() -> None:
    first, second = SharedMemory(0, 2, 1.0), SharedMemory(1, 2, 1.0)
    machine, process, *files = second.address
    assert not first.meet([first.address, [machine + 1, process, *files]])
    assert not first.meet([first.address, [machine, process, *files[:-1], 10**6]])  # no such file
    assert first.meet([first.address, second.address])
