"""The fused kernels against the float64 reference: numba's on the CPU; Triton's on a GPU, else by its interpreter."""

from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.ops import all_pairs_softplus, dispatch

SMALL_BORDERS = (1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129)
BORDERS = (*SMALL_BORDERS, 255, 256, 257)
ON_GPU = torch.cuda.is_available()
INTERPRETED = find_spec("triton") is not None and not ON_GPU


@pytest.fixture(autouse=True, scope="module")
def _interpreted_soon() -> Iterator[None]:
    with import_module("interpreting").reducing_slice_by_slice() if INTERPRETED else nullcontext():
        yield


@pytest.fixture(params=["numba", "triton"])
def kernels(request: pytest.FixtureRequest) -> str:
    """The name of an implementation that is installed."""
    name: str = request.param
    pytest.importorskip(name)
    return name


@pytest.fixture
def triton() -> str:
    """What only Triton's kernels can do."""
    pytest.importorskip("triton")
    return "triton"


def device_of(implementation: str) -> str:
    return "cuda" if implementation == "triton" and ON_GPU else "cpu"


def inputs(
    num_rows: int,
    num_columns: int | None = None,
    dim: int = 16,
    *,
    biases: str = "",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> dict[str, Tensor]:
    """Random factors; `biases` is any of "", "rc" and "same"."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    given = {"q": draw(num_rows, dim)}
    if num_columns is not None:
        given["k"] = draw(num_columns, dim)
    if biases == "same":
        given["row_bias"] = given["column_bias"] = draw(num_rows)
    elif biases:
        given["row_bias"] = draw(num_rows)
        given["column_bias"] = draw(num_rows if num_columns is None else num_columns)
    return given


def value_and_gradients(given: dict[str, Tensor], implementation: str, **options: Any) -> list[Tensor]:
    """The op's result times a factor that is not one, and its gradient in each input."""
    leaves = {id(tensor): tensor.to(device_of(implementation)).requires_grad_() for tensor in given.values()}
    placed: dict[str, Any] = {name: leaves[id(tensor)] for name, tensor in given.items()}
    result = 1.7 * all_pairs_softplus(**placed, implementation=implementation, **options)
    return [result.detach(), *torch.autograd.grad(result, list(placed.values()))]


def errors(given: dict[str, Tensor], implementation: str, **options: Any) -> list[float]:
    """Relative errors of the value and of each gradient."""
    exact = {id(tensor): tensor.double() for tensor in given.values()}
    expected = value_and_gradients(
        {name: exact[id(tensor)] for name, tensor in given.items()}, "reference", rows=options.get("rows")
    )
    found = [part.cpu().double() for part in value_and_gradients(given, implementation, **options)]
    return [float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)]


@pytest.mark.skipif(not INTERPRETED, reason="kernels are not interpreted here")
@pytest.mark.parametrize("precision", ["highest", "high"])  # which reduce by different functions
def test_the_interpreter_made_faster_gives_the_bits_of_its_own(
    precision: str, monkeypatch: pytest.MonkeyPatch, triton: str
) -> None:
    given, interpreting = inputs(20, 9, dim=4), import_module("interpreting")
    fast = value_and_gradients(given, triton, precision=precision)
    monkeypatch.setattr(interpreting.ReduceOps, "generic_reduce", interpreting.number_by_number)
    assert all(map(torch.equal, fast, value_and_gradients(given, triton, precision=precision)))


@pytest.mark.parametrize(
    ("kernels", "num_nodes"),
    [*product(["numba"], BORDERS), *product(["triton"], BORDERS if ON_GPU else SMALL_BORDERS)],
)
def test_symmetric_case_matches_the_reference_at_every_border(num_nodes: int, kernels: str) -> None:
    pytest.importorskip(kernels)
    assert max(errors(inputs(num_nodes), kernels)) < 1e-6
    assert max(errors(inputs(num_nodes, biases="same"), kernels)) < 1e-6


@pytest.mark.parametrize("kernels", ["numba", *(["triton"] if ON_GPU else [])])
def test_symmetric_case_matches_the_reference_at_every_size(kernels: str) -> None:
    pytest.importorskip(kernels)
    for num_nodes in range(1, 71):
        assert max(errors(inputs(num_nodes), kernels)) < 1e-6, num_nodes
        assert max(errors(inputs(num_nodes, biases="same"), kernels)) < 1e-6, num_nodes


@pytest.mark.parametrize(("num_rows", "num_columns"), [(1, 1), (1, 300), (300, 1), (64, 128), (130, 257), (257, 130)])
@pytest.mark.parametrize("biases", ["", "rc"])
def test_rectangular_case_matches_the_reference(num_rows: int, num_columns: int, biases: str, kernels: str) -> None:
    assert max(errors(inputs(num_rows, num_columns, biases=biases), kernels)) < 1e-6


@pytest.mark.parametrize("dim", [1, 2, 3, 17, 32, 33, 100, 128, 130, 256])
@pytest.mark.parametrize("num_columns", [None, 90])
def test_any_number_of_factors_matches_the_reference(dim: int, num_columns: int | None, kernels: str) -> None:
    given = inputs(70, num_columns, dim)
    given["q"] /= dim**0.5
    assert max(errors(given, kernels)) < 2e-6


@pytest.mark.parametrize("rows", [range(1), range(30, 170), range(199, 200)])
def test_row_ranges_match_the_reference(rows: range, kernels: str) -> None:
    assert max(errors(inputs(200, biases="same"), kernels, rows=rows)) < 1e-6


@pytest.mark.parametrize("num_columns", [None, 400])
def test_float32_error_is_at_most_twice_that_of_dense_torch(num_columns: int | None, kernels: str) -> None:
    interpreted = kernels == "triton" and not ON_GPU
    given = inputs(150 if interpreted else 500, num_columns and (130 if interpreted else num_columns), seed=3)
    q, k = given["q"], given.get("k", given["q"])
    dense = torch.sigmoid(q @ k.T) @ k
    truth = torch.sigmoid(q.double() @ k.double().T) @ k.double()
    dense_error = float((dense.double() - truth).norm() / truth.norm())
    assert errors(given, kernels)[1] <= 2 * dense_error


SHIFTS = range(-30, 31, 3)
ROUNDED = 1.2e-7  # of a float32, which is what a dense sum may be right to by luck


def shifted(shift: float, num_rows: int, num_columns: int | None, *, spread: float, halves: bool) -> dict[str, Tensor]:
    """Factors of a spread, all logits shifted through the biases: half by row and half by column, or all by row."""
    given = inputs(num_rows, num_columns)
    given = {name: spread * factors for name, factors in given.items()}
    columns = num_rows if num_columns is None else num_columns
    biases = {"row_bias": torch.full((num_rows,), shift / 2 if halves else float(shift))}
    if halves:
        biases["column_bias"] = torch.full((columns,), shift / 2)
    return given | biases


def dense_errors(given: dict[str, Tensor]) -> list[float]:
    """Those of plain torch in float32."""
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in given.items()}
    logits = leaves["q"] @ leaves.get("k", leaves["q"]).T + leaves["row_bias"][:, None]
    logits = logits + leaves["column_bias"] if "column_bias" in leaves else logits
    value = torch.logaddexp(logits, torch.zeros(())).sum()
    found = [value.detach(), *torch.autograd.grad(value, list(leaves.values()))]
    exact = {name: tensor.double() for name, tensor in given.items()}
    expected = [part / 1.7 for part in value_and_gradients(exact, "reference")]
    return [float((a.double() - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)]


@pytest.mark.parametrize("implementation", ["blocked", "numba"])
@pytest.mark.parametrize("spread", [0.03, 0.3, 0.7])
@pytest.mark.parametrize("halves", [True, False])
def test_wherever_logits_lie_errors_are_at_most_twice_those_of_dense_torch(
    implementation: str, spread: float, halves: bool
) -> None:
    pytest.importorskip(implementation if implementation == "numba" else "torch")
    for shift in SHIFTS:
        given = shifted(shift, 400, 300, spread=spread, halves=halves)
        for found, dense in zip(errors(given, implementation), dense_errors(given), strict=True):
            assert found <= 2 * max(dense, ROUNDED), f"at logits about {shift}"


@pytest.mark.parametrize("implementation", ["blocked", "numba"])
def test_logits_that_are_all_negative_without_biases_keep_their_digits(implementation: str) -> None:
    """Padding, of which a kernel knows that it adds log 2 a pair, would drown what is there."""
    pytest.importorskip(implementation if implementation == "numba" else "torch")
    for logit in (-1.0, -5.0, -10.0, -20.0, -40.0):
        given = {"q": torch.full((33, 2), 1.0), "k": torch.full((270, 2), logit / 2)}
        assert errors(given, implementation)[0] < 1e-6


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("halves", [True, False])
def test_wherever_logits_lie_triton_is_as_exact_as_its_precision(precision: str, halves: bool, triton: str) -> None:
    sizes = (3000, 2500) if ON_GPU else (70, 90)
    for shift in SHIFTS if ON_GPU else (-30, -12, -6, 3, 30):
        given = shifted(shift, *sizes, spread=0.5, halves=halves)
        for found, dense in zip(errors(given, triton, precision=precision), dense_errors(given), strict=True):
            allowed = 2 * max(dense, ROUNDED) if precision == "highest" else 2e-3
            assert found <= allowed, f"at logits about {shift}"


@pytest.mark.parametrize("exponent", range(-8, 9, 2))
def test_factors_of_any_size_stay_within_half_precision(exponent: int, triton: str) -> None:
    given = {name: 10.0**exponent * factors for name, factors in inputs(60, 50).items()}
    assert max(errors(given, triton, precision="high")) < 2e-3


def test_one_huge_factor_does_not_spoil_the_others(triton: str) -> None:
    given = inputs(60, 50)
    given["q"][7] *= 1e5
    expected = value_and_gradients({name: part.double() for name, part in given.items()}, "reference")[1]
    found = value_and_gradients(given, triton, precision="high")[1].cpu().double()
    assert float((found - expected).norm() / expected.norm()) < 2e-3


def test_high_precision_is_that_of_tf32(triton: str) -> None:
    for given in (inputs(500 if ON_GPU else 150), inputs(*((300, 200) if ON_GPU else (100, 70)), biases="rc")):
        value_error, *gradient_errors = errors(given, triton, precision="high")
        assert value_error < 1e-4
        assert 1e-6 < max(gradient_errors) < 1e-3


@pytest.mark.parametrize(("kernels", "precision"), [("numba", "highest"), ("triton", "highest"), ("triton", "high")])
@pytest.mark.parametrize("logit", [-100.0, 100.0])
def test_extreme_logits_stay_finite_and_right(logit: float, kernels: str, precision: str) -> None:
    pytest.importorskip(kernels)
    q, k = torch.full((30, 1), abs(logit) ** 0.5), torch.full((30, 1), logit / abs(logit) ** 0.5)
    value, gradient, _ = value_and_gradients({"q": q, "k": k}, kernels, precision=precision)
    tolerance = 1e-6 if precision == "highest" else 1e-3
    assert value.item() == pytest.approx(1.7 * 900 * max(logit, 0.0), rel=tolerance, abs=0.01)
    expected = torch.full_like(gradient, 1.7 * 30 * k[0].item() * (logit > 0))
    torch.testing.assert_close(gradient, expected, rtol=tolerance, atol=1e-3)


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_same_inputs_give_the_same_bits(precision: str, kernels: str) -> None:
    given = inputs(100 if kernels == "triton" and not ON_GPU else 5000, biases="rc")
    first, second = (value_and_gradients(given, kernels, precision=precision) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")  # NumPy in the interpreter
@pytest.mark.parametrize("precision", ["highest", "high"])
def test_zero_factors_give_log_two_for_every_pair_and_undefined_ones_are_passed_on(
    precision: str, kernels: str
) -> None:
    value, gradient = value_and_gradients({"q": torch.zeros(40, 4)}, kernels, precision=precision)
    assert value.item() == pytest.approx(1.7 * 1600 * 0.6931471805599453)
    assert torch.equal(gradient, torch.zeros_like(gradient))
    for undefined in (torch.nan, torch.inf):
        broken = inputs(40)
        broken["q"][3, 2] = undefined
        results = value_and_gradients(broken, kernels, precision=precision)
        assert all(not result.isfinite().all() for result in results)


def test_bfloat16_factors_are_summed_in_float32(kernels: str) -> None:
    assert max(errors(inputs(200, 150, dtype=torch.bfloat16), kernels)) < 2**-8  # the results are bfloat16 again


@pytest.mark.parametrize("biases", ["", "same", "rc"])
def test_without_value_the_gradients_are_the_same_bits(biases: str, kernels: str) -> None:
    given = inputs(130 if kernels == "triton" and not ON_GPU else 300, biases=biases)
    with_value = value_and_gradients(given, kernels)
    without = value_and_gradients(given, kernels, value=False)
    assert torch.isnan(without[0])
    assert len(with_value) == len(without) == 1 + len(given)
    assert all(torch.equal(a, b) for a, b in zip(with_value[1:], without[1:], strict=True))


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("stripe", [16, 256, 65536])
def test_numba_gives_the_same_sums_whatever_the_threads_and_stripes(
    num_threads: int, stripe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    from vgae.ops import numba_kernels

    monkeypatch.setattr(numba_kernels, "STRIPE", stripe)
    monkeypatch.setattr(torch, "get_num_threads", lambda: num_threads)
    assert max(errors(inputs(900, biases="same"), "numba")) < 1e-6
    assert max(errors(inputs(530, 700, biases="rc"), "numba")) < 1e-6


def test_auto_takes_the_fused_kernels_where_they_pay() -> None:
    pytest.importorskip("numba")
    large = inputs(dispatch.SHORTEST_FOR_NUMBA)
    fused, auto, tiles = (value_and_gradients(large, name)[1] for name in ("numba", "auto", "blocked"))
    assert torch.equal(fused, auto)
    assert not torch.equal(fused, tiles)
    small = inputs(dispatch.SHORTEST_FOR_NUMBA - 1)
    assert torch.equal(value_and_gradients(small, "auto")[1], value_and_gradients(small, "blocked")[1])


def test_what_the_kernels_cannot_do_is_refused_by_name(triton: str) -> None:
    device = device_of(triton)
    with pytest.raises(
        InputError, match=r"up to 256 columns and 8,388,608 rows, not torch.float32 of shape \(3, 257\)"
    ):
        all_pairs_softplus(torch.zeros(3, 257, device=device), implementation=triton)
    for implementation in ("triton", "numba"):
        with pytest.raises(InputError, match="float64"):
            all_pairs_softplus(torch.zeros(3, 2, dtype=torch.float64, device=device), implementation=implementation)
    with pytest.raises(InputError, match="precision"):
        all_pairs_softplus(torch.zeros(3, 2), precision="low")
