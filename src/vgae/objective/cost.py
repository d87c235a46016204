"""What training would cost on this machine, before anything is allocated, and which objective is affordable.

Memory is arithmetic (vgae.objective.workload). Time is arithmetic times three rates that a few steps of the training
give (vgae.train.trial): pairs per second of the all-pairs op, numbers per second that everything else moves, and the
fixed cost of a step. On graphs so small that the exact objective is affordable on any machine, nothing is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from vgae.errors import InputError
from vgae.memory import bytes_free
from vgae.objective.batch_cost import BatchCost
from vgae.objective.partition import BatchOptions
from vgae.objective.workload import Memory, Workload

AFFORDABLE_SECONDS = 900.0  # for a whole training run
SLOWEST = 25e6  # pairs per second, fewer than any machine in use computes
SMALLEST_BATCH = 1000  # nodes of a step that is worth proposing
LARGEST_RECORDED = 2_000_000  # nodes; beyond, launching is a small part of a step, and a recording holds its memory


@dataclass(frozen=True)
class Rates:
    """What a machine can do of one training with one objective, as measured."""

    pairs_per_second: float
    numbers_per_second: float
    seconds_per_step: float

    def times(self, number: int) -> Rates:
        """Those of as many processes as this one, together."""
        return Rates(number * self.pairs_per_second, number * self.numbers_per_second, self.seconds_per_step)


@dataclass(frozen=True)
class Cost:
    """One objective's price: seconds per iteration and memory at the peak."""

    objective: str
    seconds: float
    memory: Memory
    batch_size: int | None = None  # nodes of a step; None: all


@dataclass(frozen=True)
class Choice:
    """The objective that was picked, and the estimate that it was picked by."""

    objective: str
    reason: str


def estimate(work: Workload, rates: Rates, objective: str, device: torch.device) -> Cost:
    """Time per iteration and memory of an objective."""
    batched = BatchCost.of(work)
    if batched is not None:
        seconds = rates.seconds_per_step + batched.numbers_moved() / rates.numbers_per_second
        seconds += batched.all_pairs / rates.pairs_per_second
        return Cost(objective, seconds, memory_on(work, objective, device), batched.batch.size)
    seconds = rates.seconds_per_step + work.numbers_moved(objective) / rates.numbers_per_second
    if objective == "exact":
        seconds += work.all_pairs / rates.pairs_per_second
    return Cost(objective, seconds, memory_on(work, objective, device))


def choose_objective(work: Workload, iterations: int, device: torch.device, measure: Callable[[], Rates]) -> Choice:
    """Exact where it is affordable, else sampled; what the machine can do is measured only if that decides."""
    gigabytes = memory_on(work, "exact", device).largest / 1e9
    if iterations * work.all_pairs / SLOWEST < AFFORDABLE_SECONDS:
        return Choice("exact", f"{_count(work.all_pairs)} pairs and {gigabytes:.1f} GB are cheap on any machine")
    seconds = iterations * estimate(work, measure(), "exact", device).seconds
    cost = f"about {duration(seconds)} and {gigabytes:.1f} GB for {iterations} iterations over all pairs"
    if seconds <= AFFORDABLE_SECONDS:
        return Choice("exact", cost)
    return Choice("sampled", f"{cost} exceed {duration(AFFORDABLE_SECONDS)}")


def memory_on(work: Workload, objective: str, device: torch.device) -> Memory:
    """What training with this objective takes on a device, and beside it on the host."""
    batched = BatchCost.of(work)
    if batched is not None:
        return batched.memory(on_cpu=device.type == "cpu")
    recorded = device.type == "cuda" and work.num_nodes <= LARGEST_RECORDED
    return work.memory_needed(objective, on_cpu=device.type == "cpu", recorded=recorded)


def room_on(device: torch.device) -> Memory:
    """Memory that is free for this process: the host's and, of another device, that device's."""
    return Memory(host=bytes_free(), device=float(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else 0.0)


def require_memory(work: Workload, objectives: tuple[str, ...], device: torch.device, room: Memory) -> None:
    """Refuse what cannot fit with any of these objectives, with the sentence that says what would."""
    needed = {objective: memory_on(work, objective, device) for objective in objectives}
    if any(memory.fits(room) for memory in needed.values()):
        return
    objective = min(needed, key=lambda name: needed[name].largest)
    memory = needed[objective]
    on_device = memory.device > room.device
    asked, free = (memory.device, room.device) if on_device else (memory.host, room.host)
    where = f"free on {device}" if on_device else "free to this process"
    raise InputError(
        f"Training with the {objective} objective on this graph needs about {_gigabytes(asked)}, more than the "
        f"{_gigabytes(free)} that are {where}; {_what_would_fit(work, objective, device, room)}."
    )


def can_have_parts(work: Workload) -> bool:
    """Whether steps of a model can be over a part of the nodes."""
    composition = work.composition
    return composition.encoder.reach is not None and not composition.prior.couples_nodes and not work.mask_links


def parts_that_fit(work: Workload, device: torch.device, room: Memory) -> int | None:
    """The largest part of the nodes, of halves and halves of these, over which steps fit; None where none does."""
    for _, objective, change in _smaller_batches(work, work.num_nodes):
        if change.batch is not None and memory_on(change, objective, device).fits(room):
            return change.batch.size
    return None


def why_parts(work: Workload, device: torch.device, room: Memory) -> str | None:
    """Why steps are over parts of the nodes, if steps over all of them would not fit."""
    objectives = ("exact", "sampled") if work.factorised else ("sampled",)
    needed = min((memory_on(replace(work, batch=None), each, device) for each in objectives), key=lambda m: m.largest)
    if work.batch is None or needed.fits(room):
        return None
    free = room.device if needed.device > room.device else room.host
    return f"steps over all nodes need about {_gigabytes(needed.largest)}, and {_gigabytes(free)} are free"


def _what_would_fit(work: Workload, objective: str, device: torch.device, room: Memory) -> str:
    """The least change that makes a training fit."""
    for words, other, change in _changes(work, objective):
        memory = memory_on(change, other, device)
        if memory.fits(room):
            return f"{words} would fit, in about {_gigabytes(memory.largest)}"
    narrowest = [work, *_narrower(work)][-1]
    least = memory_on(narrowest, objective, device)
    shares = [free / asked for free, asked in ((room.host, least.host), (room.device, least.device)) if asked]
    fitting = float(f"{min(shares) * work.num_nodes:.1g}")
    return f"even with {_widths(narrowest)} only graphs of up to about {fitting:,.0f} nodes would fit"


def _changes(work: Workload, objective: str) -> Iterator[tuple[str, str, Workload]]:
    if work.batch is not None:
        yield from _smaller_batches(work, work.batch.size)
    elif objective == "sampled":
        if work.factorised:
            yield "the exact objective", "exact", work
        num_negatives = work.num_negatives // 2
        while num_negatives >= work.num_nodes // 10 + 1:
            yield f"num_negatives {num_negatives:,}", objective, replace(work, num_negatives=num_negatives)
            num_negatives //= 2
        yield from _smaller_batches(work, work.num_nodes)
    for narrower in _narrower(work):
        yield _widths(narrower), objective, narrower


def _smaller_batches(work: Workload, size: int) -> Iterator[tuple[str, str, Workload]]:
    """Steps over ever smaller parts of the graph, where the model can have such steps."""
    if not can_have_parts(work):
        return
    while size > SMALLEST_BATCH:
        size //= 2
        batch = BatchOptions(size) if work.batch is None else replace(work.batch, size=size)
        yield f"batch_size {size:,}", "sampled", replace(work, batch=batch)


def _narrower(work: Workload) -> Iterator[Workload]:
    """The same with half the widths, and so on, down to the last that the parts allow."""
    hidden_dim, latent_dim = work.composition.hidden_dim, work.composition.latent_dim
    while (hidden_dim, latent_dim) != (1, 1):
        hidden_dim, latent_dim = max(1, hidden_dim // 2), max(1, latent_dim // 2)
        smaller = work.with_widths(hidden_dim, latent_dim)
        try:
            smaller.composition.check()
        except InputError:  # such as a decoder that needs two dimensions
            continue
        yield smaller


def _widths(work: Workload) -> str:
    return f"hidden_dim {work.composition.hidden_dim} and latent_dim {work.composition.latent_dim}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 1:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _gigabytes(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e8 else f"{number / 1e9:.2g} GB"


def _count(number: float) -> str:
    return f"{number / 1e6:.1f} million" if number >= 1e5 else f"{number:.0f}"
