"""How many threads a training computes with: sums are added up in another order by another number of them.

The same seed therefore gives the same bits only with as many threads. A training that is continued uses as many as it
did before, if the machine has them; else its last bits may differ, and that is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from vgae.train.callbacks import Callback


@contextmanager
def same_threads(number: int | None, callback: Callback) -> Iterator[None]:
    """As many threads as a training had before, where that is known and possible; afterwards as many as there were."""
    own = torch.get_num_threads()
    if number is None or number == own:
        yield
        return
    if number > (os.cpu_count() or 1):
        callback.on_warning(
            f"this training used {number} threads before and uses {own} now, all that this machine has: "
            "its result may differ in the last bits"
        )
        yield
        return
    callback.on_threads(number)
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(own)
