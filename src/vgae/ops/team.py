"""Threads that take part in a call of a kernel which is over in less time than one that sleeps needs to wake.

A helper looks out for work in compiled code, without Python's lock, as long as calls follow each other; after half a
millisecond without one it sleeps, and the next call wakes it and does not wait. Whoever calls a kernel asks the helpers
that look out to call it too, with the same arguments, calls it, and waits for those that have begun.

The work of such a kernel has phases, and a phase has parts. A thread takes the next part that nobody has taken, and
begins a phase when all parts of the one before are done: so it makes no difference how many threads there are, or when
one comes. A phase has two counts, of parts that are taken and of parts that are done.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from vgae.machine import Helper, helpers, num_threads
from vgae.ops.numba_tools import compiled, pointer_to

Numbers = npt.NDArray[np.int64]

APART = 16  # numbers from one that threads share to the next, so that these are in different lines of their caches
JOB, FUNCTION, ARGUMENTS, PRESENT = range(4)  # what the board has of a helper
NONE, ASKED, WORKING = range(3)  # what may be said of its job
MOST_HELPERS = 3  # where there are few parts
JOB_TYPE = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]  # of two addresses
LOOKS, MOST_LOOKS = 1000, 3000  # until others may run on this core, and until a helper goes to sleep


# ----------------------------------------------------------------------------------- what threads tell each other


def _get(_: Any, numbers: Any, _place: Any) -> Any:
    """numbers[place], and with it all that was written before it was set."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load_atomic(pointer_to(context, builder, signature.args[0], *given), "acquire", 8)

    return types.int64(numbers, types.intp), generate


def _put(_: Any, numbers: Any, _place: Any, _number: Any) -> Any:
    """numbers[place] = number, after all that was written before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = pointer_to(context, builder, signature.args[0], *given[:2])
        builder.store_atomic(given[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, types.int64), generate


def _change(_: Any, numbers: Any, _place: Any, _before: Any, _after: Any) -> Any:
    """Put `after` in the place of `before`, if that is there; whether it was."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = pointer_to(context, builder, signature.args[0], *given[:2])
        return builder.extract_value(builder.cmpxchg(place, *given[2:], "seq_cst", "seq_cst"), 1)

    return types.boolean(numbers, types.intp, types.int64, types.int64), generate


def _count_up(_: Any, numbers: Any, _place: Any) -> Any:
    """numbers[place] += 1; what it was before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = pointer_to(context, builder, signature.args[0], *given)
        return builder.atomic_rmw("add", place, ir.IntType(64)(1), "seq_cst")

    return types.int64(numbers, types.intp), generate


def _job_of(context: Any, kernel: Any, given: Any) -> Any:
    """Two addresses for `_do`: of code that calls a kernel with a tuple of arguments, and of this tuple.

    The tuple is in the frame of the caller, who must not return before the job is done.
    """
    signature = kernel.get_call_type(context, given.types, {})
    described = kernel.dispatcher.get_compile_result(signature).fndesc

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        with builder.goto_entry_block():
            place = builder.alloca(values[1].type)
        builder.store(values[1], place)
        byte, long = ir.IntType(8).as_pointer(), ir.IntType(64)
        name = builder.module.get_unique_name(f"job.{described.unique_name}")
        job = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [byte]), name)
        job.linkage = "internal"
        inside = ir.IRBuilder(job.append_basic_block("entry"))
        arguments = _unpacked(inside, inside.load(inside.bitcast(job.args[0], place.type)))
        function = context.declare_function(builder.module, described)
        context.call_conv.call_function(inside, function, described.restype, described.argtypes, arguments)
        inside.ret_void()
        found = builder.ptrtoint(job, long), builder.ptrtoint(place, long)
        return context.make_tuple(builder, JOB_TYPE, found)

    return JOB_TYPE(kernel, given), generate


def _do(_: Any, _job: Any) -> Any:
    """What `_job_of` has."""

    def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
        function, arguments = _unpacked(builder, given[0])
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte]).as_pointer()
        builder.call(builder.inttoptr(function, kind), [builder.inttoptr(arguments, byte)])
        return context.get_dummy_value()

    return types.void(JOB_TYPE), generate


def _unpacked(builder: Any, values: Any) -> list[Any]:
    return [builder.extract_value(values, place) for place in range(len(values.type))]


get = cast("Callable[..., Any]", intrinsic(_get))
put = cast("Callable[..., None]", intrinsic(_put))
change = cast("Callable[..., bool]", intrinsic(_change))
count_up = cast("Callable[..., Any]", intrinsic(_count_up))
job_of = cast("Callable[..., Any]", intrinsic(_job_of))
do = cast("Callable[..., None]", intrinsic(_do))
_yield = types.ExternalFunction("sched_yield", types.int32()) if hasattr(os, "sched_yield") else None


@compiled()
def wait_a_moment(looks: int) -> None:
    """Between two looks at what another thread is to change, of which there have been so many."""
    if looks > LOOKS and _yield is not None:
        _yield()


# ------------------------------------------------------------------------------------------------------ phases


def new_counts(num_phases: int) -> Numbers:
    """Those of phases of which nothing is done yet."""
    return np.zeros(2 * num_phases * APART, np.int64)


@compiled()
def size_of_part(height: int, least: int, most_parts: int) -> int:
    """How many rows of so many a part has: at least these, and more where there would be more parts than that."""
    return max(least, -(-height // most_parts))


@compiled()
def first_part(counts: Numbers, phase: int) -> Any:
    """The number of the first part of a phase that this thread is to do, if there are as many."""
    return count_up(counts, 2 * phase * APART)


@compiled()
def part_after(counts: Numbers, phase: int) -> Any:
    """The same after a part that it has done."""
    count_up(counts, (2 * phase + 1) * APART)
    return count_up(counts, 2 * phase * APART)


@compiled()
def wait_for_all(counts: Numbers, phase: int, num_parts: int) -> None:
    """Until all parts of a phase are done: what is left of them, others are about to finish."""
    looks = 0
    while get(counts, (2 * phase + 1) * APART) < num_parts:
        looks += 1
        wait_a_moment(looks)


# ------------------------------------------------------------------------------------------------------ helpers


@compiled()
def ask_helpers(board: Numbers, num: int, job: tuple[int, int]) -> bool:
    """Ask so many; False if another thread of this process is about to ask them."""
    if not change(board, 0, 0, 1):
        return False
    for place in range(APART, (num + 1) * APART, APART):
        board[place + FUNCTION], board[place + ARGUMENTS] = job
        put(board, place + JOB, ASKED)
    return True


@compiled()
def wait_for_helpers(board: Numbers, num: int) -> None:
    """Until those that have begun are done; the others are not to begin."""
    for place in range(APART, (num + 1) * APART, APART):
        looks = 0
        if not change(board, place + JOB, ASKED, NONE):
            while get(board, place + JOB) == WORKING:
                looks += 1
                wait_a_moment(looks)
    put(board, 0, 0)


@njit(inline="always")  # so that who calls it has a call of the kernel, and can be kept on disk
def with_helpers(board: Numbers, num: int, kernel: Any, arguments: Any) -> None:
    """Call a kernel with a tuple of arguments, and have so many helpers call it too if they come in time."""
    asked = ask_helpers(board, num, job_of(kernel, arguments))
    kernel(*arguments)
    if asked:
        wait_for_helpers(board, num)


@compiled()
def _look_out(board: Numbers, place: int) -> None:
    """What a helper does, until nothing has been asked for for a while, or it is dismissed."""
    put(board, place + PRESENT, 1)
    looks = 0
    while get(board, place + PRESENT):
        if get(board, place + JOB) == ASKED and change(board, place + JOB, ASKED, WORKING):
            do((board[place + FUNCTION], board[place + ARGUMENTS]))
            put(board, place + JOB, NONE)
            looks = 0
        looks += 1
        wait_a_moment(looks)
        if looks > MOST_LOOKS:
            put(board, place + PRESENT, 0)


@compiled()
def _dismiss(board: Numbers, place: int) -> bool:
    """Whether it was there; it is about to go then."""
    return change(board, place + PRESENT, 1, 0)


class Team:
    """This thread and some helpers; `board` has a place for each, and before them whether they are being asked."""

    def __init__(self, others: list[Helper]) -> None:
        self.others = others
        self.board = np.zeros((len(others) + 1) * APART, np.int64)

    def call(self, kernel: Callable[[Numbers, int, Any], None], arguments: tuple[Any, ...], num: int) -> None:
        """Call a kernel that is no more than a call of `with_helpers`, with so many of them."""
        num = min(num, len(self.others))
        for place, helper in enumerate(self.others[:num], start=1):
            if helper.idle and not self.board[place * APART + PRESENT]:
                given = self.board, place * APART
                helper.ask(partial(_look_out, *given), partial(_dismiss, *given))
        kernel(self.board, num, arguments)


@cache
def _team() -> Team:
    return Team(helpers())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.cache_clear)


def call(
    kernel: Callable[[Numbers, int, Any], None], arguments: tuple[Any, ...], *, few: bool = True, alone: bool = False
) -> None:
    """Call a kernel that is no more than a call of `with_helpers`, with a few or all of them; `alone` with none."""
    num = num_threads() - 1
    _team().call(kernel, arguments, 0 if alone else min(num, MOST_HELPERS) if few else num)
