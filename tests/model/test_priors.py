"""Every registered prior, and every posterior that goes with it: density, KL and gradients, against quadrature."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from densities import DIMS, POSTERIORS, generator, grid, make_posterior, outputs_of, spec_of
from test_posteriors import within
from torch import Tensor
from torch.distributions import MultivariateNormal
from torch.distributions import Normal as TorchNormal
from torch.distributions import kl_divergence as torch_kl

from helpers import message_of
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.kl import kl_divergence
from vgae.model.posteriors import DeltaPosterior, NormalPosterior, Posterior, PowerSphericalPosterior
from vgae.model.priors import (
    Laplacian,
    LaplacianPrior,
    LearnedNormalPrior,
    Prior,
    PriorInputs,
    PriorSpec,
    StandardNormalPrior,
    UniformSpherePrior,
    VampPrior,
    go_together,
)
from vgae.model.priors.laplacian import estimated_log_determinant, factorised_log_determinant, precision_matrix
from vgae.model.spec import find, registered
from vgae.ops import SparseMatrix
from vgae.train.config import Config


def prior_spec(form: str) -> PriorSpec:
    spec = find("prior", form)
    assert isinstance(spec, PriorSpec)
    return spec


PRIORS = registered("prior")
OPTIONS = {  # other forms of the same prior that have to hold as well
    "laplacian": ("laplacian", "laplacian:epsilon=0.3,normalized=true,learned=true"),
    "vamp": ("vamp:components=3",),
    "mixture": ("mixture:components=3",),
}
FORMS = [form for name in PRIORS for form in OPTIONS.get(name, (name,))]
TOGETHER = [
    (posterior, form)
    for posterior in POSTERIORS
    for form in FORMS
    if not spec_of(posterior).deterministic and go_together(spec_of(posterior), prior_spec(form))
]
BY_NODE = [pair for pair in TOGETHER if not prior_spec(pair[1]).couples_nodes]
PAIR = Graph.from_edges([(0, 1)], num_nodes=2, features=np.array([[1.0, 0.5, 0], [0, 1, 2]], dtype=np.float32))

BLOCKS = stochastic_block_model(12, 2, feature_dim=5, seed=3)


@dataclass(frozen=True, eq=False)
class Case:
    """A model in float64 with a prior whose weights are anywhere, and a graph that it may look at."""

    model: AutoEncoder
    seen: PriorInputs

    @property
    def prior(self) -> Prior:
        return self.model.prior

    def kl(self, posterior: Posterior, z: Tensor) -> Tensor:
        found = kl_divergence(posterior, self.prior, z, self.seen)
        return found if found.dim() == 1 else found.sum(dim=1)


def make_case(posterior: str, form: str, dim: int, graph: Graph | EncoderInputs = PAIR) -> Case:
    config = Config(posterior=posterior, prior=form, latent_dim=dim, hidden_dim=4)  # type: ignore[arg-type]
    inputs = graph if isinstance(graph, EncoderInputs) else EncoderInputs.from_graph(graph)
    if isinstance(inputs.features, Tensor):
        inputs = replace(inputs, features=inputs.features.double())
    model = config.composition.build(inputs.input_dim, generator()).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator(2), dtype=torch.float64))
        model.prior.begin(model.encode(inputs), model.seen(inputs), generator(3))
    return Case(model, model.seen(inputs))


def precision_of(case: Case, graph: Graph, dimension: int) -> Tensor:
    """(L + εI) / s² of a Laplacian prior, written out."""
    assert isinstance(case.prior, LaplacianPrior)
    spec, adjacency = case.prior.spec, torch.tensor(graph.weighted_adjacency.toarray(), dtype=torch.float64)
    degrees = adjacency.sum(dim=1)
    matrix = torch.diag(degrees) - adjacency
    if spec.normalized:
        scale = degrees.rsqrt().where(degrees > 0, 0.0)
        matrix = torch.diag((degrees > 0).double()) - scale[:, None] * adjacency * scale
    matrix = matrix + spec.epsilon * torch.eye(len(matrix), dtype=torch.float64)
    return matrix if case.prior.log_scale is None else matrix * (-2 * case.prior.log_scale[dimension]).exp().detach()


# -------------------------------------------------------------------------------------------------------------- density


@pytest.mark.parametrize(("posterior", "form"), BY_NODE)
def test_every_prior_density_integrates_to_one(posterior: str, form: str) -> None:
    space = spec_of(posterior).space
    for dim in DIMS[space]:
        case = make_case(posterior, form, dim)
        points, weights = grid(space, dim, size=801)
        density = case.prior.log_prob(points, case.seen).detach().exp()
        assert float(density @ weights) == pytest.approx(1, abs=1e-5), dim


@pytest.mark.parametrize(("posterior", "form"), TOGETHER)
def test_every_prior_has_a_number_for_each_node(posterior: str, form: str) -> None:
    """A number for each node; where nodes are independent, that of its own row alone."""
    case = make_case(posterior, form, 3, BLOCKS)
    z = make_posterior(posterior, BLOCKS.num_nodes).sample(generator())
    found = case.prior.log_prob(z, case.seen)
    assert found.shape == (BLOCKS.num_nodes,)
    if not prior_spec(form).couples_nodes:
        torch.testing.assert_close(case.prior.log_prob(z.flip(0), case.seen), found.flip(0))


@pytest.mark.parametrize("form", OPTIONS["laplacian"])
@pytest.mark.parametrize("graph", ["with links", "weighted", "with a lonely node"])
def test_the_laplacian_prior_is_the_normal_distribution_with_that_precision(form: str, graph: str) -> None:
    weights = np.random.default_rng(0).uniform(0.2, 3, BLOCKS.num_edges)
    seen = {
        "with links": BLOCKS,
        "weighted": Graph.from_edges(BLOCKS.edges, num_nodes=BLOCKS.num_nodes, weights=weights),
        "with a lonely node": Graph.from_edges(BLOCKS.edges, num_nodes=BLOCKS.num_nodes + 1),
    }[graph]
    case = make_case("normal", form, 2, seen)
    z = make_posterior("normal", seen.num_nodes, 2).sample(generator())
    expected = 0.0
    for dimension in range(2):
        precision = precision_of(case, seen, dimension)
        expected += float(MultivariateNormal(z.new_zeros(len(z)), precision_matrix=precision).log_prob(z[:, dimension]))  # type: ignore[no-untyped-call]
    assert float(case.prior.log_prob(z, case.seen).sum().detach()) == pytest.approx(expected, rel=1e-6)


# ------------------------------------------------------------------------------------------------------------------- KL


@pytest.mark.parametrize(("posterior", "form"), BY_NODE)
def test_every_kl_is_that_of_quadrature(posterior: str, form: str) -> None:
    """Closed forms to many digits; what is estimated by draws, within standard errors of their mean."""
    space = spec_of(posterior).space
    for dim in DIMS[space]:
        case = make_case(posterior, form, dim)
        given = make_posterior(posterior, num_nodes=5, dim=dim)
        points, weights = grid(space, dim, size=1201)
        log_q = given.log_prob(points[:, None])
        log_p = case.prior.log_prob(points, case.seen).detach()[:, None]
        expected = (log_q.exp() * (log_q - log_p) * weights[:, None]).sum(dim=0)
        draws = torch.stack([case.kl(given, given.sample(generator(seed))).detach() for seed in range(500)])
        if bool((draws.std(dim=0) < 1e-9).all()):  # it does not depend on the draw
            torch.testing.assert_close(draws[0], expected, rtol=1e-5, atol=1e-6)
        else:
            assert within(expected, draws)


@pytest.mark.parametrize(("posterior", "form"), TOGETHER)
def test_every_kl_is_that_of_a_long_run(posterior: str, form: str) -> None:
    """Σ_i KL_i = E[log q(Z) - log p(Z)], in six dimensions, within standard errors."""
    case = make_case(posterior, form, 6, BLOCKS)
    given = make_posterior(posterior, BLOCKS.num_nodes, 6)
    draws, found = [], []
    for seed in range(1000):
        z = given.sample(generator(seed))
        draws.append((given.log_prob(z).sum() - case.prior.log_prob(z, case.seen).sum()).detach())
        found.append(case.kl(given, given.sample(generator(10_000 + seed))).sum().detach())
    ones, others = torch.stack(draws), torch.stack(found)
    error = (ones.var() / len(ones) + others.var() / len(others)).sqrt()
    assert float((ones.mean() - others.mean()).abs()) < 4.5 * float(error)
    assert float(others.mean()) > 20 * float(error)  # else anything near 0 would do


@pytest.mark.parametrize("form", OPTIONS["laplacian"])
def test_the_kl_of_the_laplacian_prior_is_that_of_normal_distributions_over_nodes(form: str) -> None:
    case = make_case("normal", form, 3, BLOCKS)
    given = make_posterior("normal", BLOCKS.num_nodes)
    assert isinstance(given, NormalPosterior)
    found = kl_divergence(given, case.prior, given.mean, case.seen)
    assert found.shape == given.mean.shape
    for dimension in range(3):
        spread = torch.diag(given.variance[:, dimension])
        own = MultivariateNormal(given.mean[:, dimension], spread)
        precision = precision_of(case, BLOCKS, dimension)
        expected = torch_kl(own, MultivariateNormal(torch.zeros_like(own.mean), precision_matrix=precision))
        torch.testing.assert_close(found[:, dimension].sum().detach(), expected, rtol=1e-6, atol=0)


def test_kl_of_normal_and_standard_normal_is_torchs() -> None:
    posterior = make_posterior("normal")
    assert isinstance(posterior, NormalPosterior)
    own = TorchNormal(posterior.mean, posterior.log_std.exp())
    found = kl_divergence(posterior, StandardNormalPrior(), posterior.mean)
    torch.testing.assert_close(found, torch_kl(own, TorchNormal(0.0, 1.0)))
    learned = LearnedNormalPrior(3).double()
    learned.log_std.data.copy_(torch.tensor([-1.0, 0.5, 2.0]))
    found = kl_divergence(posterior, learned, posterior.mean).detach()
    torch.testing.assert_close(found, torch_kl(own, TorchNormal(0.0, learned.log_std.detach().exp())))


def test_kl_vanishes_at_the_prior_and_for_a_point() -> None:
    at_prior = NormalPosterior(torch.zeros(3, 2), torch.zeros(3, 2))
    for prior in (StandardNormalPrior(), LearnedNormalPrior(2)):
        assert torch.equal(kl_divergence(at_prior, prior, at_prior.mean), torch.zeros(3, 2))
    uniform = PowerSphericalPosterior(torch.ones(3, 5), torch.full((3, 1), -200.0))
    nothing = kl_divergence(uniform, UniformSpherePrior(), uniform.mean)
    torch.testing.assert_close(nothing, torch.zeros(3), rtol=0, atol=1e-6)
    point = DeltaPosterior(torch.ones(3, 2))
    assert torch.equal(kl_divergence(point, StandardNormalPrior(), point.mean), torch.zeros(3))


def test_a_vamp_prior_whose_only_pseudo_node_is_a_node_is_that_nodes_posterior() -> None:
    """Without links, pseudo-nodes begin as the nodes themselves; inputs need not come from a graph."""
    alone = EncoderInputs(SparseMatrix(sp.eye_array(1, format="csr"), symmetric=True), torch.tensor([[1.0, 2, 3]]))
    for posterior in ("normal", "power_spherical"):
        case = make_case(posterior, "vamp:components=1", 3, alone)
        given = case.model.encode(case.seen.inputs)
        z = given.sample(generator())
        torch.testing.assert_close(case.kl(given, z), -given.entropy() - given.log_prob(z))
        torch.testing.assert_close(case.prior.log_prob(z, case.seen), given.log_prob(z))


@pytest.mark.parametrize("features", ["sparse", "dense", "none"])
def test_pseudo_nodes_begin_as_what_the_first_layer_sees_of_nodes(features: str) -> None:
    graph = {
        "sparse": BLOCKS,
        "dense": Graph(BLOCKS.num_nodes, BLOCKS.edges, features=sp.csr_array(BLOCKS.features).toarray()),
        "none": BLOCKS.without_features(),
    }[features]
    case = make_case("normal", "vamp:components=20", 2, graph)  # more than there are nodes
    assert isinstance(case.prior, VampPrior)
    adjacency = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    scale = adjacency.sum(axis=1) ** -0.5
    rows = scale[:, None] * adjacency * scale
    if features != "none":
        rows = rows @ sp.csr_array(BLOCKS.features).toarray()
    found = case.prior.pseudo_features.detach().numpy()
    each_once = found[: graph.num_nodes]  # before any twice
    ours, theirs = (np.array(sorted(map(tuple, np.round(values, 4)))) for values in (each_once, rows))
    np.testing.assert_allclose(ours, theirs, atol=2e-4)
    np.testing.assert_array_equal(found[graph.num_nodes :], found[: 20 - graph.num_nodes])


# ------------------------------------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize(("posterior", "form"), TOGETHER)
def test_every_kl_passes_gradcheck(posterior: str, form: str) -> None:
    """By the posterior's parameters, the draw and the prior's weights; those of the encoder in a VampPrior as well."""
    case = make_case(posterior, form, 3, BLOCKS)
    outputs = {head: value.requires_grad_() for head, value in outputs_of(posterior, BLOCKS.num_nodes).items()}
    z = make_posterior(posterior, BLOCKS.num_nodes).sample(generator()).requires_grad_()
    weights = [each for name, each in case.model.named_parameters() if name.startswith("prior.")]

    def value(z: Tensor, *given: Tensor) -> Tensor:
        built = spec_of(posterior).build(dict(zip(outputs, given[: len(outputs)], strict=True)))
        return case.kl(built, z)

    assert torch.autograd.gradcheck(value, (z, *outputs.values(), *weights), eps=1e-5, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(("posterior", "form"), TOGETHER)
def test_every_weight_of_a_prior_is_learned(posterior: str, form: str) -> None:
    case = make_case(posterior, form, 3, BLOCKS)
    given = make_posterior(posterior, BLOCKS.num_nodes)
    weights = list(case.prior.parameters())
    if weights:
        total = case.kl(given, given.sample(generator())).sum()
        for gradient in torch.autograd.grad(total, weights):
            assert bool(torch.isfinite(gradient).all())
            assert float(gradient.abs().max()) > 0


@pytest.mark.parametrize(("posterior", "form"), TOGETHER)
@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e3])
def test_every_kl_holds_in_float32_over_the_posteriors_range(posterior: str, form: str, spread: float) -> None:
    case = make_case(posterior, form, 3, BLOCKS)
    outputs = outputs_of(posterior, BLOCKS.num_nodes)
    last = list(outputs)[-1]  # log σ, or the concentration, of which 1/σ² is the like
    outputs[last] = outputs[last] / 10 + (np.log(spread) if posterior == "normal" else -2 * np.log(spread))
    z = spec_of(posterior).build(outputs).sample(generator())
    expected = case.kl(spec_of(posterior).build(outputs), z).detach()
    single = {head: value.float().requires_grad_() for head, value in outputs.items()}
    case.model.float()
    found = case.kl(spec_of(posterior).build(single), z.float())
    torch.testing.assert_close(found.detach().double(), expected, rtol=2e-3, atol=2e-3)
    for gradient in torch.autograd.grad(found.sum(), list(single.values()), materialize_grads=True):
        assert bool(torch.isfinite(gradient).all())


# ---------------------------------------------------------------------------------------------------------- determinant


@pytest.mark.parametrize("normalized", [False, True])
def test_the_determinant_by_factors_is_exact_and_by_quadrature_near(normalized: bool) -> None:
    graph = stochastic_block_model(400, 4, seed=2)
    matrix = precision_matrix(graph, 0.1, normalized=normalized)
    sign, expected = np.linalg.slogdet(matrix.toarray())
    assert sign == 1
    assert factorised_log_determinant(matrix) == pytest.approx(expected, rel=1e-10)
    # The variance of a quadratic form at random signs is twice the squares of log M off the diagonal.
    values, vectors = np.linalg.eigh(matrix.toarray())
    logarithm = (vectors * np.log(values)) @ vectors.T
    error = np.sqrt(2 * (np.square(logarithm).sum() - np.square(np.diag(logarithm)).sum()) / 30)
    assert abs(estimated_log_determinant(matrix) - expected) < 4 * error
    assert estimated_log_determinant(matrix) == estimated_log_determinant(matrix)


def test_a_graph_is_factorised_once() -> None:
    inputs = EncoderInputs.from_graph(BLOCKS)
    seen = PriorInputs(inputs, lambda _: make_posterior("normal"))
    one, other = (LaplacianPrior(2, Laplacian(epsilon=epsilon)) for epsilon in (1.0, 2.0))
    assert one.precision(seen) is LaplacianPrior(3, Laplacian(epsilon=1.0)).precision(seen)
    assert one.precision(seen) is not other.precision(seen)


def test_priors_that_need_the_graph_or_the_encoder_say_so() -> None:
    with pytest.raises(TypeError, match="needs the training graph"):
        LaplacianPrior(2, Laplacian()).log_prob(torch.zeros(3, 2))
    with pytest.raises(TypeError, match="needs the encoder"):
        VampPrior(2, 3, generator()).log_prob(torch.zeros(3, 2))


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_what_does_not_go_together_is_refused_by_name_with_what_does(posterior: str, prior: str) -> None:
    def make() -> Config:
        return Config(posterior=posterior, prior=prior)  # type: ignore[arg-type]

    if go_together(spec_of(posterior), prior_spec(prior)):
        assert make().value_of("prior").name == prior
        return
    words = message_of(make)
    assert words.startswith(f"prior: {prior} cannot be used with the posterior {posterior}, ")
    fitting = [name for name in POSTERIORS if go_together(spec_of(name), prior_spec(prior))]
    assert f"{prior} goes with the posterior {' or '.join(fitting)}" in words


def test_the_sentences_of_refusals() -> None:
    assert message_of(lambda: Config(prior="uniform_sphere")).startswith(  # type: ignore[arg-type]
        "prior: uniform_sphere cannot be used with the posterior normal, which does not lie on the unit sphere; "
        "uniform_sphere goes with the posterior power_spherical, and normal with the prior "
    )
    assert message_of(lambda: Config(model="gae", prior="vamp")) == (  # type: ignore[arg-type]
        "prior: vamp cannot be used with the posterior delta, a point for each node that is held against no prior; "
        "vamp goes with the posterior normal or power_spherical."
    )
