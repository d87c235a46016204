"""Sums over pairs piece by piece are those over all pairs at once, at every border, by any number of threads."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from vgae.model.decoders import Decoder, DecoderSpec
from vgae.model.decoders.inner_product import InnerProduct
from vgae.model.decoders.mlp import MLP
from vgae.model.spec import find, is_own, registered
from vgae.objective import pairwise
from vgae.objective.pairwise import FEWEST, PIECE, sum_over_pairs

NUM_NODES, LATENT = 50, 6


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def made(num_pairs: int, layers: int, dtype: torch.dtype = torch.float64) -> tuple[Decoder, Tensor, Tensor, Tensor]:
    """A decoder, embeddings, pairs of which many have the same ends, and a weight for each."""
    draws = torch.Generator().manual_seed(num_pairs)
    decoder = MLP(width=8, layers=layers).build(LATENT, draws).to(dtype)
    z = torch.randn(NUM_NODES, LATENT, generator=draws, dtype=dtype).requires_grad_()
    pairs = torch.randint(NUM_NODES, (num_pairs, 2), generator=draws)
    pairs[: num_pairs // 3, 0] = 7
    return decoder, z, pairs, torch.rand(num_pairs, generator=draws, dtype=dtype)


def made_of(name: str) -> Decoder:
    spec = find("decoder", name)
    assert isinstance(spec, DecoderSpec)
    return spec.build(LATENT, torch.Generator().manual_seed(0)).double()


def loss_of(weights: Tensor) -> pairwise.Loss:
    return lambda part, logits: weights[part] @ torch.nn.functional.softplus(logits)


def differentiated(total: Tensor, decoder: Decoder, z: Tensor) -> list[Tensor]:
    """The sum, and gradients of a multiple of it."""
    return [total.detach(), *torch.autograd.grad(-1.7 * total, [z, *decoder.parameters()])]


def at_once(decoder: Decoder, z: Tensor, pairs: Tensor, weights: Tensor) -> list[Tensor]:
    return differentiated(loss_of(weights)(slice(None), decoder.logits(z, pairs)), decoder, z)


def by_pieces(decoder: Decoder, z: Tensor, pairs: Tensor, weights: Tensor) -> list[Tensor]:
    return differentiated(sum_over_pairs(decoder, z, pairs, loss_of(weights)), decoder, z)


@pytest.mark.parametrize("layers", [0, 1, 3])
@pytest.mark.parametrize("num_pairs", [1, PIECE, FEWEST - 1, FEWEST, FEWEST + 1, FEWEST + PIECE, FEWEST + PIECE + 17])
def test_value_and_gradients_are_those_of_all_pairs_at_once(num_pairs: int, layers: int) -> None:
    given = made(num_pairs, layers)
    for found, expected in zip(by_pieces(*given), at_once(*given), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12 * float(expected.abs().max()))


@pytest.mark.parametrize("name", ["gravity", "mlp"])  # which are all that are by ends: the next test
def test_every_decoder_by_ends_is_summed_up_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, z, pairs, weights = made(FEWEST, 0)
    decoder = made_of(name)
    expected, sizes = at_once(decoder, z, pairs, weights), list[int]()
    between = decoder.between

    def watched(left: Tensor, right: Tensor) -> Tensor:
        sizes.append(len(left))
        return between(left, right)

    monkeypatch.setattr(decoder, "between", watched)
    for found, other in zip(by_pieces(decoder, z, pairs, weights), expected, strict=True):
        torch.testing.assert_close(found, other, rtol=1e-12, atol=1e-12 * float(other.abs().max()))
    assert sizes == [PIECE] * (FEWEST // PIECE)


def test_no_decoder_by_ends_is_left_out() -> None:
    """Those of the package; other tests register parts of their own."""
    parts = {name: made_of(name) for name, part in registered("decoder").items() if is_own(part)}
    by_ends = {name for name, decoder in parts.items() if decoder.by_ends}
    (mark,) = test_every_decoder_by_ends_is_summed_up_in_pieces.pytestmark  # type: ignore[attr-defined]
    assert by_ends == set(mark.args[1])


def test_the_bits_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "PIECE", 512)
    given, found = made(FEWEST + 5, 1, torch.float32), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(by_pieces(*given))
    for one, *others in zip(*found, strict=True):
        assert all(torch.equal(one, other) for other in others)


def test_float32_error_is_at_most_twice_that_of_all_pairs_at_once() -> None:
    given = made(FEWEST + 3, 2, torch.float32)
    decoder, z, pairs, weights = made(FEWEST + 3, 2)  # drawn again in double precision, and then the same numbers
    with torch.no_grad():
        for mine, theirs in zip(decoder.parameters(), given[0].parameters(), strict=True):
            mine.copy_(theirs)
    exact = at_once(decoder, given[1].detach().double().requires_grad_(), pairs, given[3].double())
    del z, weights
    for found, plain, truth in zip(by_pieces(*given), at_once(*given), exact, strict=True):
        error, of_plain = (float((each.double() - truth).norm() / truth.norm()) for each in (found, plain))
        assert error <= 2 * of_plain + 1e-7


def test_a_part_of_the_weights_may_be_fixed() -> None:
    decoder, z, pairs, weights = made(FEWEST, 1)
    fixed, *free = decoder.parameters()
    fixed.requires_grad_(False)
    total = sum_over_pairs(decoder, z, pairs, loss_of(weights))
    expected = loss_of(weights)(slice(None), decoder.logits(z, pairs))
    for one, other in zip(*(torch.autograd.grad(each, [z, *free]) for each in (total, expected)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_without_gradients_it_is_the_same_sum() -> None:
    decoder, z, pairs, weights = made(FEWEST + 1, 1)
    with torch.no_grad():
        alone = sum_over_pairs(decoder, z, pairs, loss_of(weights))
    assert not alone.requires_grad
    torch.testing.assert_close(alone, sum_over_pairs(decoder, z, pairs, loss_of(weights)).detach(), rtol=1e-12, atol=0)


def test_decoders_that_need_all_nodes_get_them() -> None:
    """Factors may depend on the mean of all embeddings, so that pairs are scored at once."""
    _, z, pairs, weights = made(FEWEST, 0)
    decoder = InnerProduct().build(LATENT, torch.Generator())
    total = sum_over_pairs(decoder, z, pairs, loss_of(weights))
    expected = loss_of(weights)(slice(None), (z[pairs[:, 0]] * z[pairs[:, 1]]).sum(dim=1))
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=0)
    with pytest.raises(TypeError, match="needs the embeddings of all nodes"):
        decoder.between(z, z)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_piece_raises_is_raised(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no thread waits for a piece that will not come."""
    monkeypatch.setattr(pairwise, "PIECE", 512)
    decoder, z, pairs, weights = made(FEWEST, 1)
    torch.set_num_threads(threads)

    def refusing(part: slice, logits: Tensor) -> Tensor:
        if part.start == 5 * 512:
            raise ValueError("no")
        return loss_of(weights)(part, logits)

    with pytest.raises(ValueError, match="no"):
        sum_over_pairs(decoder, z, pairs, refusing)
    assert torch.get_num_threads() == threads
