"""The mixture prior: its density, its KL, how it begins, and that a training is resumed across that."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans as ReferenceKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily
from torch.distributions import Normal as TorchNormal

import vgae
from helpers import message_of
from stopping import StopAfter
from vgae.model.inputs import EncoderInputs
from vgae.model.kl import kl_divergence
from vgae.model.kmeans import kmeans, squared_distances
from vgae.model.posteriors import NormalPosterior
from vgae.model.priors import MixturePrior, PriorInputs
from vgae.model.priors.mixture import fit_components
from vgae.runs.checkpoint import FolderCheckpointer, saved_iteration
from vgae.runs.fingerprint import Fingerprint
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

SMALL: dict[str, Any] = {"hidden_dim": 6, "latent_dim": 3, "device": "cpu", "prior": "mixture:components=3,scales=own"}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def begun_prior(num_components: int, latent_dim: int, *, seed: int = 0, shared: bool = False) -> MixturePrior:
    """A mixture somewhere, in float64."""
    prior = MixturePrior(num_components, latent_dim, shared=shared).double()
    draws = generator(seed)
    with torch.no_grad():
        prior.logits.copy_(torch.randn(num_components, generator=draws))
        prior.means.copy_(1.5 * torch.randn(num_components, latent_dim, generator=draws))
        prior.log_std.copy_(0.5 * torch.randn(prior.log_std.shape, generator=draws))
        prior.begun.fill_(1)
    return prior


def reference(prior: MixturePrior) -> MixtureSameFamily:
    parts = Independent(TorchNormal(prior.means, prior.log_std.exp().expand_as(prior.means)), 1)
    return MixtureSameFamily(Categorical(logits=prior.logits), parts)


def blobs(num_clusters: int, latent_dim: int, *, each: int = 60, seed: int = 0) -> tuple[Tensor, np.ndarray[Any, Any]]:
    """Points in clusters that are far from each other, and the clusters."""
    draws = np.random.default_rng(seed)
    centres = 30 * draws.standard_normal((num_clusters, latent_dim))
    labels = np.repeat(np.arange(num_clusters), each)
    points = centres[labels] + draws.standard_normal((len(labels), latent_dim))
    return torch.tensor(points, dtype=torch.float32), labels


def nothing_seen() -> PriorInputs:
    graph = vgae.stochastic_block_model(10, 2, seed=0)
    return PriorInputs(EncoderInputs.from_graph(graph), lambda _: pytest.fail("a mixture looks at nothing"))


# -------------------------------------------------------------------------------------------------------------- density


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("num_components", "latent_dim"), [(1, 1), (1, 3), (4, 1), (7, 16)])
def test_log_prob_and_its_gradients_are_those_of_torch(num_components: int, latent_dim: int, shared: bool) -> None:
    prior = begun_prior(num_components, latent_dim, shared=shared)
    z = 2 * torch.randn(50, latent_dim, generator=generator(1), dtype=torch.float64)
    twin = z.clone().requires_grad_()
    z.requires_grad_()
    found, expected = prior.log_prob(z), reference(prior).log_prob(twin)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found, expected)
    inputs = [prior.logits, prior.means, prior.log_std]
    for mine, theirs in zip(
        torch.autograd.grad(found.sum(), [z, *inputs]),
        torch.autograd.grad(expected.sum(), [twin, *inputs]),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-9)


def test_in_single_precision_it_is_as_exact_far_from_the_origin() -> None:
    prior = begun_prior(5, 16)
    with torch.no_grad():
        prior.means.add_(40.0)
    z = prior.means.detach()[[0, 1, 4]] + 0.1
    expected = prior.log_prob(z)
    torch.testing.assert_close(prior.float().log_prob(z.float()).double(), expected, rtol=1e-4, atol=1e-3)


def test_responsibilities_follow_bayes() -> None:
    prior = begun_prior(4, 3)
    z = 2 * torch.randn(30, 3, generator=generator(1), dtype=torch.float64)
    shares = torch.softmax(prior.logits, dim=0)
    density = torch.stack(
        [
            TorchNormal(prior.means[k], prior.log_std[k].exp()).log_prob(z).sum(dim=1).exp()  # type: ignore[no-untyped-call]
            for k in range(4)
        ],
        dim=1,
    )
    expected = shares * density / (shares * density).sum(dim=1, keepdim=True)
    found = prior.responsibilities(z)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(30, dtype=torch.float64))


def test_before_it_begins_it_is_standard_normal_and_learns_nothing() -> None:
    prior = MixturePrior(4, 3)
    with torch.no_grad():
        prior.means.add_(1.0)  # whatever is there
    z = torch.randn(20, 3, generator=generator(), requires_grad=True)
    found = prior.log_prob(z)
    torch.testing.assert_close(found, TorchNormal(0.0, 1.0).log_prob(z).sum(dim=1))  # type: ignore[no-untyped-call]
    gradients = torch.autograd.grad(found.sum(), [prior.logits, prior.means, prior.log_std])
    assert all(bool((each == 0).all()) for each in gradients)


# ------------------------------------------------------------------------------------------------------------------- KL


def test_kl_of_a_draw_is_unbiased_for_the_kl_by_quadrature() -> None:
    prior = begun_prior(3, 1, seed=3)
    posterior = NormalPosterior(
        torch.tensor([[-2.0], [0.0], [0.7], [3.0]], dtype=torch.float64),
        torch.tensor([[-1.0], [0.5], [-2.0], [0.0]], dtype=torch.float64),
    )
    exact = []
    for mean, log_std in zip(posterior.mean[:, 0].tolist(), posterior.log_std[:, 0].tolist(), strict=True):
        width = float(np.exp(log_std))
        x = torch.linspace(mean - 12 * width, mean + 12 * width, 40_001, dtype=torch.float64)
        log_q = TorchNormal(torch.tensor(mean, dtype=torch.float64), width).log_prob(x)  # type: ignore[no-untyped-call]
        exact.append(float(torch.trapezoid(log_q.exp() * (log_q - prior.log_prob(x[:, None]).detach()), x)))
    draws, num = generator(5), 20_000
    many = NormalPosterior(posterior.mean.repeat(num, 1), posterior.log_std.repeat(num, 1))
    found = kl_divergence(many, prior, many.sample(draws)).detach().reshape(num, 4)
    error = found.std(dim=0) / num**0.5
    assert error.max() < 0.05
    np.testing.assert_array_less(abs(found.mean(dim=0) - torch.tensor(exact)) / error, 4.0)


def test_kl_to_one_standard_component_is_the_closed_form_on_average() -> None:
    prior = MixturePrior(1, 2)
    posterior = NormalPosterior(torch.full((40_000, 2), 0.5), torch.full((40_000, 2), -0.3))
    found = kl_divergence(posterior, prior, posterior.sample(generator())).detach()
    exact = 2 * 0.5 * (0.25 + np.exp(-0.6) - 1 + 0.6)
    assert abs(float(found.mean()) - exact) < 4 * float(found.std()) / 200


# ------------------------------------------------------------------------------------------------------------ beginning


def test_kmeans_is_as_good_as_that_of_scikit_learn() -> None:
    points = torch.randn(400, 5, generator=generator()) * torch.tensor([3.0, 2.0, 1.0, 1.0, 1.0]) + 100
    theirs = ReferenceKMeans(6, n_init=10, random_state=0).fit(points.double().numpy())
    found = kmeans(points, 6, generator(1))
    assert found.inertia < 1.02 * theirs.inertia_
    distances = squared_distances(points.double() - 100, found.centres - 100)
    assert (distances.argmin(dim=1) == found.assignment).all()
    assert float(distances.min(dim=1).values.sum()) == pytest.approx(found.inertia)
    for k in range(6):
        torch.testing.assert_close(points[found.assignment == k].double().mean(dim=0), found.centres[k])


@pytest.mark.parametrize("num_clusters", [1, 3, 5, 8])
def test_kmeans_of_few_distinct_points(num_clusters: int) -> None:
    points = torch.tensor([[0.0, 0.0], [0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]])
    found = kmeans(points, num_clusters, generator())
    assert found.centres.shape == (num_clusters, 2)
    assert torch.isfinite(found.centres).all()
    if num_clusters >= 3:
        assert found.inertia == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("num_clusters", "latent_dim"), [(1, 2), (3, 2), (7, 16)])
def test_it_begins_with_the_clusters_of_the_embeddings(num_clusters: int, latent_dim: int) -> None:
    points, labels = blobs(num_clusters, latent_dim)
    prior = MixturePrior(num_clusters, latent_dim)
    prior.begin(NormalPosterior(points, torch.full_like(points, -2.0)), nothing_seen(), generator())
    found = prior.responsibilities(points)
    assert adjusted_rand_score(labels, found.argmax(dim=1)) == 1.0
    assert found.max(dim=1).values.min() > 0.99
    for k in range(num_clusters):
        members = points[found.argmax(dim=1) == k]
        torch.testing.assert_close(prior.means[k].detach(), members.mean(dim=0), rtol=1e-3, atol=1e-3)
        variance = members.var(dim=0, correction=0) + np.exp(-4)  # between the means, and of each posterior
        torch.testing.assert_close((2 * prior.log_std[k]).exp().detach(), variance, rtol=1e-3, atol=1e-3)


def test_components_that_share_a_scale_have_the_mean_of_what_each_would_have() -> None:
    points, labels = blobs(4, 3)
    points = points * torch.tensor([1.0, 2.0, 0.5])
    variances = torch.rand(points.shape, generator=generator(2))
    prior = MixturePrior(4, 3, shared=True)
    prior.begin(NormalPosterior(points, 0.5 * variances.log()), nothing_seen(), generator())
    assert prior.log_std.shape == (1, 3)
    assert adjusted_rand_score(labels, prior.responsibilities(points).argmax(dim=1)) == 1.0
    within = torch.stack([points[labels == k] - points[labels == k].mean(dim=0) for k in range(4)]).square()
    expected = within.mean(dim=(0, 1)) + variances.mean(dim=0)
    torch.testing.assert_close((2 * prior.log_std[0]).exp().detach(), expected, rtol=1e-3, atol=1e-3)


def test_one_component_keeps_its_own_kind_of_scale() -> None:
    points, _ = blobs(1, 3)
    for shared in (False, True):
        prior = MixturePrior(1, 3, shared=shared)
        prior.begin(NormalPosterior(points, torch.zeros_like(points)), nothing_seen(), generator())
        variance = points.var(dim=0, correction=0) + 1
        torch.testing.assert_close((2 * prior.log_std[0]).exp().detach(), variance, rtol=1e-4, atol=1e-4)


def test_of_points_it_is_the_em_of_scikit_learn() -> None:
    draws = np.random.default_rng(4)
    points = np.concatenate([draws.normal(-1.5, 1.0, (300, 2)), draws.normal(1.5, 0.5, (100, 2))])
    found = fit_components(torch.tensor(points), torch.zeros(400, 2), 2, generator())
    theirs = GaussianMixture(
        2, covariance_type="diag", means_init=found.means.numpy(), reg_covar=0.0, tol=1e-9, max_iter=1000
    ).fit(points)
    np.testing.assert_allclose(found.log_weights.exp(), theirs.weights_, rtol=1e-2)
    np.testing.assert_allclose(found.means, theirs.means_, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose((2 * found.log_std).exp(), theirs.covariances_, rtol=2e-2)


def test_same_generator_same_beginning_and_equal_points_are_no_trouble() -> None:
    points, _ = blobs(3, 4)
    first, second = (fit_components(points, torch.ones_like(points), 5, generator(7)) for _ in range(2))
    assert torch.equal(first.means, second.means)
    same = fit_components(torch.ones(20, 4), torch.zeros(20, 4), 3, generator())
    assert all(bool(torch.isfinite(each).all()) for each in (same.log_weights, same.means, same.log_std))


# ------------------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("stopped_at", [3, 5, 6, 7])
def test_a_training_is_resumed_across_the_beginning_to_the_same_bits(stopped_at: int, tmp_path: Path) -> None:
    graph = vgae.stochastic_block_model(40, 3, feature_dim=6, seed=5)
    job = Job.of(graph, Config(**SMALL, iterations=10, eval_every=1, warm_up=5), None)
    whole = train(job)
    with (
        pytest.raises(KeyboardInterrupt),
        FolderCheckpointer(tmp_path, Fingerprint.of(job), every=0) as checkpointer,
    ):
        train(job, StopAfter(stopped_at), checkpointer)
    assert saved_iteration(tmp_path) in (stopped_at - 1, stopped_at)
    with FolderCheckpointer(tmp_path, Fingerprint.of(job), every=0) as checkpointer:
        resumed = train(job, None, checkpointer)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name
    assert torch.equal(whole.embeddings, resumed.embeddings)
    assert float(whole.model.state_dict()["prior.begun"]) == 1.0


def test_it_begins_after_the_warm_up_and_learns_from_there() -> None:
    graph = vgae.stochastic_block_model(40, 3, feature_dim=6, seed=5)

    def prior_after(iterations: int) -> dict[str, Tensor]:
        return train(Job.of(graph, Config(**SMALL, iterations=iterations, warm_up=5), None)).model.prior.state_dict()

    before, after, later = prior_after(5), prior_after(6), prior_after(9)
    assert float(before["begun"]) == 0
    assert bool((before["means"] == 0).all())
    assert float(after["begun"]) == 1
    for name in ("logits", "means", "log_std"):
        assert not torch.equal(after[name], later[name]), name


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    graph = vgae.stochastic_block_model(40, 3, feature_dim=6, seed=5)
    model = vgae.VGAE(**SMALL, iterations=8, warm_up=2).fit(graph)
    model.save(tmp_path / "run")
    loaded = vgae.load(tmp_path / "run")
    assert str(loaded.config_.prior) == "mixture:components=3,scales=own"
    z = torch.from_numpy(model.transform())
    first, second = model.model_.prior, loaded.model_.prior
    assert isinstance(first, MixturePrior)
    assert torch.equal(first.responsibilities(z), second.responsibilities(z))
    assert loaded.get_params()["prior__components"] == 3


def test_what_it_cannot_be_is_said() -> None:
    assert "scales: 'no' is not one of shared, own" in message_of(
        lambda: Config(**SMALL | {"prior": "mixture:scales=no"})
    )
    assert "components: a whole number from 1 to 1000" in message_of(
        lambda: Config(**SMALL | {"prior": "mixture:components=0"})
    )
    assert "goes with the posterior normal" in message_of(lambda: Config(**SMALL | {"model": "gae"}))
