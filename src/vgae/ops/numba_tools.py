"""What kernels for the CPU are made with: the compiler, threads, and vectors of numbers (imported only when used)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.core.event import Event, Listener, register
from numba.extending import intrinsic

from vgae.ops.pages import empty

logger = logging.getLogger(__name__)

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Result = TypeVar("Result")

ALONE = 2**18  # numbers that one thread writes before another could have begun
LANES = 16  # numbers that an instruction takes at once; factors are padded to a multiple of them
BLOCK_ROWS = 8  # rows of a small product that are in registers together


class _Compiling(Listener):
    """Tells, once in a process, that kernels are compiled: code that was compiled before is loaded without an event."""

    told = False

    def on_start(self, event: Event) -> None:
        """A function is being compiled, one of these kernels or anybody else's."""
        package = event.data["dispatcher"].py_func.__module__.partition(".")[0]
        if package == __name__.partition(".")[0] and not self.told:
            self.told = True
            logger.info("compiling kernels for this processor; it is done once, and takes up to a minute")

    def on_end(self, event: Event) -> None:
        """It is compiled."""


_compiling = _Compiling()
register("numba:compile", _compiling)  # type: ignore[no-untyped-call]  # numba has no types here


def compiled(*freedom: str) -> Callable[[Kernel], Kernel]:
    """Compile with these freedoms in arithmetic; that nothing is infinite or undefined is never assumed."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(freedom)}

    def compiler(kernel: Kernel) -> Kernel:
        try:
            made = njit(kernel, cache=True, **options)
        except RuntimeError:  # no folder to keep compiled code in
            return cast("Kernel", njit(kernel, **options))
        kept = getattr(made._cache, "_cache_file", None)
        if kept is not None:  # numba knows of changes of a kernel's own file alone, and not of those that it calls
            kept._source_stamp = kept._source_stamp, _stamps_of_kernels()
        return cast("Kernel", made)

    return compiler


@cache
def _stamps_of_kernels() -> tuple[tuple[str, float, int], ...]:
    """When the files of kernels, and of what they are made with, have been changed, and how large they are."""
    here = Path(__file__).parent
    files = [here / "numba_tools.py", here / "team.py", *sorted(here.glob("*_kernels.py"))]
    return tuple((file.name, file.stat().st_mtime, file.stat().st_size) for file in files)


def zeros(*shape: int) -> npt.NDArray[np.float32]:
    """An array in memory of PyTorch's, which whoever looks at that finds with the rest."""
    tensor = empty(*shape)
    array: npt.NDArray[np.float32] = tensor.numpy()
    if tensor.numel() < ALONE:
        array.fill(0)  # before PyTorch could have woken a thread
    else:
        tensor.zero_()
    return array


def _power_of_two(_: Any, n: Any) -> Any:
    """2ⁿ of a whole float32, by writing n into the exponent of another."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        integer = ir.IntType(32)
        exponent = builder.add(builder.fptosi(given[0], integer), integer(127))
        return builder.bitcast(builder.shl(exponent, integer(23)), ir.FloatType())

    return types.float32(n), generate


def pointer_to(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Where an array's number at a place is, of all its numbers in order."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [place])


def _vector(context: Any, builder: Any, signature: Any, given: Any, first: int) -> Any:
    """A pointer to LANES numbers of the array that is argument `first`, from the place that follows it."""
    place = pointer_to(context, builder, signature.args[first], given[first], given[first + 1])
    return builder.bitcast(place, ir.VectorType(ir.FloatType(), LANES).as_pointer())


def _product(_: Any, left: Any, _i: Any, right: Any, _j: Any) -> Any:
    """Σ_f left[i + f]·right[j + f] over LANES numbers."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.VectorType(ir.FloatType(), LANES)
        terms = [builder.load(_vector(context, builder, signature, given, first), align=4) for first in (0, 2)]
        products = builder.fmul(*terms)
        width = LANES
        while width > 1:  # halves on halves: always the same order
            width //= 2
            order = ir.Constant(
                ir.VectorType(ir.IntType(32), LANES), [(place + width) % LANES for place in range(LANES)]
            )
            products = builder.fadd(products, builder.shuffle_vector(products, ir.Constant(kind, ir.Undefined), order))
        return builder.extract_element(products, ir.IntType(32)(0))

    return types.float32(left, types.intp, right, types.intp), generate


def _axpy(_: Any, out: Any, _i: Any, _scale: Any, source: Any, _j: Any) -> Any:
    """out[i + f] += scale·source[j + f] for LANES numbers."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        target = _vector(context, builder, signature, given, 0)
        numbers = builder.load(_vector(context, builder, signature, given, 3), align=4)
        scaled = builder.fmul(_everywhere(builder, given[2]), numbers, flags=("contract",))
        builder.store(builder.fadd(builder.load(target, align=4), scaled, flags=("contract",)), target, align=4)
        return context.get_dummy_value()

    return types.void(out, types.intp, types.float32, source, types.intp), generate


def _copy(_: Any, out: Any, _i: Any, source: Any, _j: Any) -> Any:
    """out[i + f] = source[j + f] for LANES numbers."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        numbers = builder.load(_vector(context, builder, signature, given, 2), align=4)
        builder.store(numbers, _vector(context, builder, signature, given, 0), align=4)
        return context.get_dummy_value()

    return types.void(out, types.intp, source, types.intp), generate


def _weighted_sum(num_vectors: int) -> Any:
    """The code for rows of so many times LANES numbers, all of which stay in registers until the sum is done."""

    def weighted_sum(
        _: Any, out: Any, _place: Any, values: Any, columns: Any, _begin: Any, _end: Any, dense: Any, _add: Any
    ) -> Any:
        """out[place + f] = Σ_e values[e]·dense[columns[e]·width + f] over the entries from the first up to the end.

        Where `add` is true, the sum is added to what is there.
        """

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            kind, long, lanes = ir.VectorType(ir.FloatType(), LANES), ir.IntType(64), range(num_vectors)
            begin, end = given[4], given[5]
            nothing = ir.Constant(kind, [ir.Constant(ir.FloatType(), 0.0)] * LANES)
            before = builder.block
            loop, after = builder.append_basic_block("entry"), builder.append_basic_block("sum")
            builder.cbranch(builder.icmp_signed("<", begin, end), loop, after)
            builder.position_at_end(loop)
            entry, sums = builder.phi(long), [builder.phi(kind) for _ in lanes]
            entry.add_incoming(begin, before)
            value = builder.load(pointer_to(context, builder, signature.args[2], given[2], entry))
            found = builder.load(pointer_to(context, builder, signature.args[3], given[3], entry))
            column = context.cast(builder, found, signature.args[3].dtype, types.intp)
            scale, added = _everywhere(builder, value), []
            for lane in lanes:
                place = builder.add(builder.mul(column, long(num_vectors * LANES)), long(lane * LANES))
                pointer = pointer_to(context, builder, signature.args[6], given[6], place)
                row = builder.load(builder.bitcast(pointer, kind.as_pointer()), align=4)
                scaled = builder.fmul(scale, row, flags=("contract",))
                added.append(builder.fadd(sums[lane], scaled, flags=("contract",)))
            following = builder.add(entry, long(1))
            entry.add_incoming(following, loop)
            for total, more in zip(sums, added, strict=True):
                total.add_incoming(nothing, before)
                total.add_incoming(more, loop)
            builder.cbranch(builder.icmp_signed("<", following, end), loop, after)
            builder.position_at_end(after)
            totals = [builder.phi(kind) for _ in lanes]
            for lane, total in enumerate(totals):
                total.add_incoming(nothing, before)
                total.add_incoming(added[lane], loop)
            places = []
            for lane in lanes:
                place = builder.add(given[1], long(lane * LANES))
                pointer = pointer_to(context, builder, signature.args[0], given[0], place)
                places.append(builder.bitcast(pointer, kind.as_pointer()))
            # What is there is read only if it counts: new memory has numbers with which sums take far longer.
            with builder.if_else(given[7]) as (added_to, in_place):
                with added_to:
                    for place, total in zip(places, totals, strict=True):
                        builder.store(builder.fadd(builder.load(place, align=4), total), place, align=4)
                with in_place:
                    for place, total in zip(places, totals, strict=True):
                        builder.store(total, place, align=4)
            return context.get_dummy_value()

        kinds = (out, types.intp, values, columns, types.intp, types.intp, dense, types.boolean)
        return types.void(*kinds), generate

    return intrinsic(weighted_sum)


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector of one number."""
    kind = ir.VectorType(ir.FloatType(), LANES)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), order)


def _fetch(_: Any, array: Any, _place: Any) -> Any:
    """Ask for what is at a place before it is needed."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(pointer_to(context, builder, signature.args[0], given[0], given[1]), kind)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [kind], ir.FunctionType(ir.VoidType(), [kind, integer, integer, integer])
        )
        builder.call(prefetch, [pointer, integer(0), integer(3), integer(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _block(
    _: Any,
    out: Any,
    _o: Any,
    _os: Any,
    left: Any,
    _l: Any,
    _ls: Any,
    _lk: Any,
    right: Any,
    _r: Any,
    _rk: Any,
    _num: Any,
) -> Any:
    """Σ_k left[l + i·ls + k·lk]·right[r + k·rk + f], added to out[o + i·os + f], for BLOCK_ROWS i and LANES f.

    `num` is how many k there are.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, long, rows = ir.VectorType(ir.FloatType(), LANES), ir.IntType(64), range(BLOCK_ROWS)
        out, out_step, at_left, left_step, left_k, at_right, right_k, num = (
            given[place] for place in (1, 2, 4, 5, 6, 8, 9, 10)
        )

        def place_of(array: int, place: Any) -> Any:
            return pointer_to(context, builder, signature.args[array], given[array], place)

        def stepped(start: Any, row: int, step: Any) -> Any:
            return builder.add(start, builder.mul(long(row), step))

        def multiply_add(scale: Any, vector: Any, total: Any) -> Any:
            scaled = builder.fmul(_everywhere(builder, scale), vector, flags=("contract",))
            return builder.fadd(total, scaled, flags=("contract",))

        places = [builder.bitcast(place_of(0, stepped(out, row, out_step)), kind.as_pointer()) for row in rows]
        begun = [builder.load(place, align=4) for place in places]
        before = builder.block
        loop, after = builder.append_basic_block("k"), builder.append_basic_block("block")
        builder.cbranch(builder.icmp_signed("<", long(0), num), loop, after)
        builder.position_at_end(loop)
        k, totals = builder.phi(long), [builder.phi(kind) for _ in rows]
        k.add_incoming(long(0), before)
        vector_at = place_of(7, builder.add(at_right, builder.mul(k, right_k)))
        vector = builder.load(builder.bitcast(vector_at, kind.as_pointer()), align=4)
        first = builder.add(at_left, builder.mul(k, left_k))
        added = [
            multiply_add(builder.load(place_of(3, stepped(first, row, left_step))), vector, totals[row]) for row in rows
        ]
        following = builder.add(k, long(1))
        k.add_incoming(following, loop)
        for total, start, more in zip(totals, begun, added, strict=True):
            total.add_incoming(start, before)
            total.add_incoming(more, loop)
        builder.cbranch(builder.icmp_signed("<", following, num), loop, after)
        builder.position_at_end(after)
        found = [builder.phi(kind) for _ in rows]
        for total, start, more in zip(found, begun, added, strict=True):
            total.add_incoming(start, before)
            total.add_incoming(more, loop)
        for place, total in zip(places, found, strict=True):
            builder.store(total, place, align=4)
        return context.get_dummy_value()

    whole = types.intp
    return types.void(out, whole, whole, left, whole, whole, whole, right, whole, whole, whole), generate


def _index(_: Any, array: Any, _place: Any) -> Any:
    """What is at a place of an array of indices, which is never counted from the end."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        found = builder.load(pointer_to(context, builder, signature.args[0], given[0], given[1]))
        return context.cast(builder, found, signature.args[0].dtype, types.intp)

    return types.intp(array, types.intp), generate


two_to_the = cast("Callable[[Any], Any]", intrinsic(_power_of_two))
product_of = cast("Callable[..., Any]", intrinsic(_product))
add_scaled = cast("Callable[..., None]", intrinsic(_axpy))
copy = cast("Callable[..., None]", intrinsic(_copy))
fetch = cast("Callable[..., None]", intrinsic(_fetch))
index_at = cast("Callable[..., Any]", intrinsic(_index))
weighted_sum_1, weighted_sum_2, weighted_sum_3, weighted_sum_4 = (
    cast("Callable[..., None]", _weighted_sum(num_vectors)) for num_vectors in range(1, 5)
)
block_product = cast("Callable[..., None]", intrinsic(_block))
