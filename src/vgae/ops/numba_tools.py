"""What kernels for the CPU are made with: the compiler, threads, and vectors of numbers (imported only when used)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Result = TypeVar("Result")

LANES = 16  # numbers that an instruction takes at once; factors are padded to a multiple of them


def compiled(*freedom: str) -> Callable[[Kernel], Kernel]:
    """Compile with these freedoms in arithmetic; that nothing is infinite or undefined is never assumed."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(freedom)}

    def compiler(kernel: Kernel) -> Kernel:
        try:
            return cast("Kernel", njit(kernel, cache=True, **options))
        except RuntimeError:  # no folder to keep compiled code in
            return cast("Kernel", njit(kernel, **options))

    return compiler


def in_threads(work: Callable[[int], Result], num_threads: int) -> list[Result]:
    """The results of `work` for each thread, the first of which is this one."""
    if num_threads == 1:
        return [work(0)]
    with ThreadPoolExecutor(num_threads - 1) as others:
        promised = [others.submit(work, number) for number in range(1, num_threads)]
        return [work(0), *(result.result() for result in promised)]


def zeros(*shape: int) -> npt.NDArray[np.float32]:
    """An array in memory of PyTorch's, which whoever looks at that finds with the rest."""
    array: npt.NDArray[np.float32] = torch.zeros(shape).numpy()
    return array


def _power_of_two(_: Any, n: Any) -> Any:
    """2ⁿ of a whole float32, by writing n into the exponent of another."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        integer = ir.IntType(32)
        exponent = builder.add(builder.fptosi(given[0], integer), integer(127))
        return builder.bitcast(builder.shl(exponent, integer(23)), ir.FloatType())

    return types.float32(n), generate


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Where an array's number at a place is, of all its numbers in order."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [place])


def _vector(context: Any, builder: Any, signature: Any, given: Any, first: int) -> Any:
    """A pointer to LANES numbers of the array that is argument `first`, from the place that follows it."""
    place = _pointer(context, builder, signature.args[first], given[first], given[first + 1])
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
        kind = ir.VectorType(ir.FloatType(), LANES)
        target = _vector(context, builder, signature, given, 0)
        numbers = builder.load(_vector(context, builder, signature, given, 3), align=4)
        zero = ir.IntType(32)(0)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), given[2], zero)
        scales = builder.shuffle_vector(
            first, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        )
        scaled = builder.fmul(scales, numbers, flags=("contract",))
        builder.store(builder.fadd(builder.load(target, align=4), scaled, flags=("contract",)), target, align=4)
        return context.get_dummy_value()

    return types.void(out, types.intp, types.float32, source, types.intp), generate


def _fetch(_: Any, array: Any, _place: Any) -> Any:
    """Ask for what is at a place before it is needed."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(_pointer(context, builder, signature.args[0], given[0], given[1]), kind)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [kind], ir.FunctionType(ir.VoidType(), [kind, integer, integer, integer])
        )
        builder.call(prefetch, [pointer, integer(0), integer(3), integer(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _index(_: Any, array: Any, _place: Any) -> Any:
    """What is at a place of an array of indices, which is never counted from the end."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        found = builder.load(_pointer(context, builder, signature.args[0], given[0], given[1]))
        return context.cast(builder, found, signature.args[0].dtype, types.intp)

    return types.intp(array, types.intp), generate


two_to_the = cast("Callable[[Any], Any]", intrinsic(_power_of_two))
product_of = cast("Callable[..., Any]", intrinsic(_product))
add_scaled = cast("Callable[..., None]", intrinsic(_axpy))
fetch = cast("Callable[..., None]", intrinsic(_fetch))
index_at = cast("Callable[..., Any]", intrinsic(_index))
