"""What the processes of a group find out about each other in a word: anything that JSON can say."""

from __future__ import annotations

import json
from typing import Any

import torch

from vgae.parallel.group import Group


def gather_json(group: Group, value: Any) -> list[Any]:
    """What each process has, by rank, in all of them."""
    text = bytearray(json.dumps(value).encode())
    lengths = group.gather(torch.tensor([len(text)], device=group.device), [1] * group.size).tolist()
    own = torch.frombuffer(text, dtype=torch.uint8).to(group.device)
    every = bytes(group.gather(own, lengths).cpu().tolist())
    ends = [sum(lengths[: rank + 1]) for rank in range(group.size)]
    return [json.loads(every[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
