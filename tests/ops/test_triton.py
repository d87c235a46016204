"""The fused kernels against the float64 reference: compiled where there is a GPU, else by Triton's interpreter."""

from typing import Any

import pytest
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.ops import all_pairs_softplus

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BORDERS = (127, 128, 129, 255, 256, 257)


def inputs(
    num_rows: int, num_columns: int | None = None, dim: int = 16, *, biases: str = "", seed: int = 0
) -> dict[str, Any]:
    """Random float32 factors; `biases` is any of "", "rc" and "same"."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(DEVICE).requires_grad_()

    given = {"q": draw(num_rows, dim)}
    if num_columns is not None:
        given["k"] = draw(num_columns, dim)
    if biases == "same":
        given["row_bias"] = given["column_bias"] = draw(num_rows)
    elif biases:
        given["row_bias"] = draw(num_rows)
        given["column_bias"] = draw(num_rows if num_columns is None else num_columns)
    return given


def value_and_gradients(given: dict[str, Any], implementation: str, **options: Any) -> list[Tensor]:
    result = 1.7 * all_pairs_softplus(**given, implementation=implementation, **options)
    return [result.detach(), *torch.autograd.grad(result, list(given.values()))]


def errors(given: dict[str, Any], implementation: str = "triton", **options: Any) -> list[float]:
    """Relative errors of the value and of each gradient."""
    exact = {name: tensor.detach().double().requires_grad_() for name, tensor in given.items()}
    if given.get("row_bias") is given.get("column_bias") is not None:
        exact["row_bias"] = exact["column_bias"]
    expected = value_and_gradients(exact, "reference", rows=options.get("rows"))
    found = value_and_gradients(given, implementation, **options)
    return [float((a.double() - b).detach().norm() / b.norm()) for a, b in zip(found, expected, strict=True)]


@pytest.mark.parametrize("num_nodes", [*range(1, 71), *BORDERS])
def test_symmetric_case_matches_the_reference_at_every_size(num_nodes: int) -> None:
    assert max(errors(inputs(num_nodes))) < 1e-6
    assert max(errors(inputs(num_nodes, biases="same"))) < 1e-6


@pytest.mark.parametrize(("num_rows", "num_columns"), [(1, 1), (1, 300), (300, 1), (64, 128), (130, 257), (257, 130)])
@pytest.mark.parametrize("biases", ["", "rc"])
def test_rectangular_case_matches_the_reference(num_rows: int, num_columns: int, biases: str) -> None:
    assert max(errors(inputs(num_rows, num_columns, biases=biases))) < 1e-6


@pytest.mark.parametrize("dim", [1, 2, 3, 17, 32, 33, 100, 128, 130, 256])
@pytest.mark.parametrize("num_columns", [None, 90])
def test_any_number_of_factors_matches_the_reference(dim: int, num_columns: int | None) -> None:
    given = inputs(70, num_columns, dim)
    given["q"] = (given["q"].detach() / dim**0.5).requires_grad_()
    assert max(errors(given)) < 2e-6


@pytest.mark.parametrize("rows", [range(1), range(30, 170), range(199, 200)])
def test_row_ranges_match_the_reference(rows: range) -> None:
    assert max(errors(inputs(200, biases="same"), rows=rows)) < 1e-6


@pytest.mark.parametrize("num_columns", [None, 400])
def test_float32_error_is_at_most_twice_that_of_dense_torch(num_columns: int | None) -> None:
    given = inputs(500, num_columns, seed=3)
    exact = [tensor.detach().double() for tensor in given.values()]
    dense = torch.sigmoid(given["q"] @ given.get("k", given["q"]).T) @ given.get("k", given["q"])
    truth = torch.sigmoid(exact[0] @ exact[-1].T) @ exact[-1]
    dense_error = float((dense.detach().double() - truth).norm() / truth.norm())
    assert errors(given)[1] <= 2 * dense_error


def test_high_precision_is_that_of_tf32() -> None:
    for given in (inputs(500), inputs(300, 200, biases="rc")):
        value_error, *gradient_errors = errors(given, precision="high")
        assert value_error < 1e-4
        assert 1e-6 < max(gradient_errors) < 1e-3


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("logit", [-100.0, 100.0])
def test_extreme_logits_stay_finite_and_right(logit: float, precision: str) -> None:
    q = torch.full((30, 1), abs(logit) ** 0.5, device=DEVICE, requires_grad=True)
    k = torch.full((30, 1), logit / abs(logit) ** 0.5, device=DEVICE)
    result = all_pairs_softplus(q, k, implementation="triton", precision=precision)
    (gradient,) = torch.autograd.grad(result, q)
    tolerance = 1e-6 if precision == "highest" else 1e-3
    assert result.item() == pytest.approx(900 * max(logit, 0.0), rel=tolerance, abs=0.01)
    expected = torch.full_like(gradient, 30 * k[0].item() * (logit > 0))
    torch.testing.assert_close(gradient, expected, rtol=tolerance, atol=1e-3)


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_same_inputs_give_the_same_bits(precision: str) -> None:
    given = inputs(5000 if DEVICE == "cuda" else 100, biases="rc")
    first, second = (value_and_gradients(given, "triton", precision=precision) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # the interpreter's integers of what is no number
@pytest.mark.parametrize("precision", ["highest", "high"])
def test_zero_factors_give_log_two_for_every_pair_and_undefined_ones_are_passed_on(precision: str) -> None:
    q = torch.zeros(40, 4, device=DEVICE, requires_grad=True)
    value, gradient = value_and_gradients({"q": q}, "triton", precision=precision)
    assert value.item() == pytest.approx(1.7 * 1600 * 0.6931471805599453)
    assert torch.equal(gradient, torch.zeros_like(gradient))
    broken = inputs(40)["q"].detach()
    broken[3, 2] = torch.nan
    results = value_and_gradients({"q": broken.requires_grad_()}, "triton", precision=precision)
    assert all(result.isnan().any() for result in results)


def test_bfloat16_factors_are_summed_in_float32() -> None:
    rounded = {name: tensor.detach().bfloat16().requires_grad_() for name, tensor in inputs(200, 150).items()}
    assert max(errors(rounded)) < 2**-8  # the results are bfloat16 again


def test_without_value_the_gradients_are_the_same_bits() -> None:
    given = inputs(300)
    with_value = value_and_gradients(given, "triton")
    without = value_and_gradients(given, "triton", value=False)
    assert torch.isnan(without[0])
    assert torch.equal(with_value[1], without[1])


def test_what_the_kernels_cannot_do_is_refused_by_name() -> None:
    with pytest.raises(
        InputError, match=r"up to 256 columns and 8,388,608 rows, not torch.float32 of shape \(3, 257\)"
    ):
        all_pairs_softplus(torch.zeros(3, 257, device=DEVICE), implementation="triton")
    with pytest.raises(InputError, match="float64"):
        all_pairs_softplus(torch.zeros(3, 2, dtype=torch.float64, device=DEVICE), implementation="triton")
    with pytest.raises(InputError, match="precision"):
        all_pairs_softplus(torch.zeros(3, 2), precision="low")
