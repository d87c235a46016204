"""Training: reproducible to the bit, stops when told, and says why when it cannot go on."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from vgae.errors import InputError, TrainingError
from vgae.graph.graph import Graph
from vgae.graph.split import HeldOut, LinkSplit, split_links
from vgae.graph.synthetic import stochastic_block_model
from vgae.objective import cost
from vgae.train.config import Config, choose_device
from vgae.train.job import Job
from vgae.train.loop import Trained, train
from vgae.train.start import Generators
from vgae.train.state import LogEntry

SHORT = Config(iterations=30, objective="exact")


@pytest.fixture(scope="module")
def split() -> LinkSplit:
    return split_links(stochastic_block_model(300, 3, feature_dim=60, seed=2), seed=1)


def train_on(graph: Graph, config: Config, validation: HeldOut | None = None) -> Trained:
    return train(Job.of(graph, config, validation))


def same_weights(first: Trained, second: Trained) -> bool:
    ours, theirs = first.model.state_dict(), second.model.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("objective", ["exact", "sampled"])
@pytest.mark.parametrize("model", ["gae", "vgae"])
def test_same_seed_gives_the_same_bits(split: LinkSplit, model: str, objective: str) -> None:
    config = replace(SHORT, model=model, objective=objective)
    first, second = (train_on(split.train, config, split.val) for _ in range(2))
    assert same_weights(first, second)
    assert torch.equal(first.posterior.mean, second.posterior.mean)
    assert [replace(entry, seconds=0) for entry in first.history] == [
        replace(entry, seconds=0) for entry in second.history
    ]


def test_another_seed_gives_other_weights(split: LinkSplit) -> None:
    assert not same_weights(train_on(split.train, SHORT), train_on(split.train, replace(SHORT, seed=1)))


def test_watching_the_validation_score_changes_nothing(split: LinkSplit) -> None:
    watched = train_on(split.train, replace(SHORT, eval_every=1), split.val)
    alone = train_on(split.train, replace(SHORT, eval_every=30))
    assert same_weights(watched, alone)


def test_training_is_the_originals_dense_recipe(split: LinkSplit) -> None:
    """Ten steps of a GAE by dense matrices, binary cross entropy and Adam, from the same initial weights."""
    graph = split.train
    config = replace(SHORT, model="gae", iterations=10, device="cpu")
    weights = config.composition.build(graph.num_features, torch.Generator().manual_seed(config.seed))
    first, second = (weight.detach().clone().requires_grad_() for weight in weights.parameters())
    features = torch.tensor(sp.csr_array(graph.features).toarray())
    labels = torch.tensor(graph.adjacency.toarray()) + torch.eye(graph.num_nodes)
    scale = torch.diag(labels.sum(dim=1).rsqrt())
    propagation = scale @ labels @ scale
    num_ones = 2.0 * graph.num_edges
    num_zeros = graph.num_nodes**2 - num_ones
    optimizer = torch.optim.Adam([first, second], lr=0.01)
    for _ in range(10):
        z = propagation @ torch.relu(propagation @ features @ first) @ second
        loss = binary_cross_entropy_with_logits(z @ z.T, labels, pos_weight=torch.tensor(num_zeros / num_ones))
        optimizer.zero_grad()
        (graph.num_nodes**2 / (2 * num_zeros) * loss).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    trained = train_on(graph, config).model.state_dict()
    torch.testing.assert_close(trained["encoder.input_weight"], first.detach(), rtol=0, atol=2e-4)
    torch.testing.assert_close(trained["encoder.head_weights.mean"], second.detach(), rtol=0, atol=2e-4)


def test_loss_is_logged_when_due_and_falls(split: LinkSplit) -> None:
    history = train_on(split.train, replace(SHORT, iterations=25, eval_every=10), split.val).history
    assert [entry.iteration for entry in history] == [1, 10, 20, 25]
    assert history[-1].loss < history[0].loss
    for entry in history:
        assert entry.loss == pytest.approx(entry.reconstruction + entry.kl, rel=1e-6)


def test_first_logged_loss_of_a_gae_without_features_is_near_its_value_at_zero(split: LinkSplit) -> None:
    """With tiny weights all logits are near 0, where the paper's loss is about log 2, whatever the graph."""
    config = replace(SHORT, model="gae", iterations=1)
    graph = split.train.without_features()
    num_nodes, num_ones = graph.num_nodes, 2 * graph.num_edges
    weight, scale = (num_nodes**2 - num_ones) / num_ones, 0.5 / (num_nodes**2 - num_ones)
    labels_one = num_ones + num_nodes
    at_zero = scale * math.log(2) * (weight * labels_one + num_nodes**2 - labels_one)
    assert train_on(graph, config).history[0].loss == pytest.approx(at_zero, rel=0.01)


def test_training_separates_blocks(split: LinkSplit) -> None:
    trained = train_on(split.train, replace(SHORT, iterations=200), split.val)
    last = trained.history[-1]
    assert last.val_auc is not None
    assert last.val_auc > 0.7


def test_early_stopping_stops_and_restores_the_best(split: LinkSplit) -> None:
    config = replace(SHORT, iterations=400, eval_every=5, early_stopping=40)
    trained = train_on(split.train, config, split.val)
    scores = {entry.iteration: (entry.val_auc or 0) + (entry.val_ap or 0) for entry in trained.history}
    best = max(scores, key=lambda iteration: scores[iteration])
    assert trained.best_iteration == best
    assert trained.history[-1].iteration == min(400, best + 40)
    stopped_there = train_on(split.train, replace(config, iterations=best, early_stopping=None))
    assert same_weights(trained, stopped_there)


def test_without_early_stopping_the_last_iteration_is_kept(split: LinkSplit) -> None:
    assert train_on(split.train, SHORT, split.val).best_iteration == SHORT.iterations


def test_diverging_training_is_diagnosed() -> None:
    graph = stochastic_block_model(50, 2, feature_dim=10, seed=0)
    huge = np.full((50, 10), 1e25, dtype=np.float32)
    one_column = np.where(np.arange(10) == 3, huge, np.float32(1))
    rate = r"lower the learning rate \(now 0.01\)"
    for features, how in ((huge, "rows"), (sp.csr_array(huge), "rows"), (one_column, "columns")):
        with pytest.raises(
            TrainingError, match=rf"iteration 1; features are as large as 1e\+25, .* \(--normalize {how}\), or {rate}"
        ):
            train_on(Graph(graph.num_nodes, graph.edges, features=features), SHORT)
        train_on(Graph(graph.num_nodes, graph.edges, features=features).normalized(how), SHORT)
    with pytest.raises(TrainingError, match=r"has diverged: [^;]*; lower the learning rate \(now 1e\+30\)\.$"):
        train_on(graph, replace(SHORT, learning_rate=1e30))


@pytest.mark.parametrize("validated", [True, False])
@pytest.mark.parametrize("model", ["gae", "vgae"])
def test_a_last_step_that_diverges_is_diagnosed_too(split: LinkSplit, model: str, validated: bool) -> None:
    config = replace(SHORT, model=model, iterations=1, learning_rate=1e30)
    with pytest.raises(TrainingError, match="has diverged"):
        train_on(split.train, config, split.val if validated else None)


def test_noise_is_independent_of_the_initial_weights() -> None:
    """Generators that share their 32 bits of seed would make the first noise a function of the first weights."""
    generators = Generators.of(3, torch.device("cpu"))
    init, noise_of = generators.weights, generators.noise
    weights, noise = torch.rand(2000, generator=init), torch.rand(2000, generator=noise_of)
    assert abs(float(torch.corrcoef(torch.stack([weights, noise]))[0, 1])) < 0.1


def test_numpy_numbers_are_taken_and_stored_as_plain_ones() -> None:
    config = Config(latent_dim=np.int64(4), seed=np.int32(2), learning_rate=np.float32(0.5))  # type: ignore[arg-type]
    assert json.dumps(config.to_json()) == json.dumps(Config(latent_dim=4, seed=2, learning_rate=0.5).to_json())


def test_auto_records_what_it_picked(split: LinkSplit) -> None:
    trained = train_on(split.train, replace(SHORT, objective="auto"))
    assert trained.choice.objective == "exact"
    assert "cheap on any machine" in trained.choice.reason


def test_an_entry_says_the_loss_and_the_score() -> None:
    entry = LogEntry(10, 0.75, 0.5, 0.25, val_auc=0.912, val_ap=0.926, seconds=1.0)
    assert str(entry) == "loss 0.750 = 0.500 + KL 0.250 · AUC 91.2 AP 92.6"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("model", "gcn", "gae, vgae"),
        ("objective", "dense", "exact, sampled, auto"),
        ("weighting", "none", "paper, elbo"),
        ("hidden_dim", 0, "from 1 to"),
        ("latent_dim", -3, "from 1 to"),
        ("latent_dim", 2.5, "whole number"),
        ("iterations", 0, "from 1 to"),
        ("eval_every", 0, "from 1 to"),
        ("num_negatives", 0, "from 1 to"),
        ("early_stopping", -1, "from 1 to"),
        ("seed", -1, "from 0 to"),
        ("seed", 2**32, "from 0 to"),
        ("latent_dim", 10**11, "from 1 to"),
        ("latent_dim", True, "whole number"),
        ("features", "no", "True or False"),
        ("device", None, "a text"),
        ("learning_rate", 0.0, "above 0"),
        ("learning_rate", float("nan"), "above 0"),
        ("learning_rate", float("inf"), "above 0"),
    ],
)
def test_bad_options_are_named(option: str, value: object, words: str) -> None:
    with pytest.raises(InputError, match=rf"^{option}: .*{words}"):
        replace(Config(), **{option: value})  # type: ignore[arg-type]


def test_another_model_has_its_own_parts_unless_others_were_given() -> None:
    assert replace(Config(), model="gae") == Config(model="gae")
    assert replace(Config(model="gae"), model="vgae") == Config()
    kept = replace(Config(model="gae"), seed=3).composition.posterior
    assert kept == Config(model="gae").composition.posterior != Config().composition.posterior
    given = Config(model="gae", posterior="normal")  # type: ignore[arg-type]
    assert replace(given, seed=3).composition.posterior == Config().composition.posterior
    assert given != Config(model="gae")
    assert Config(posterior="normal") == Config()  # type: ignore[arg-type]  # given or not, it is the same


@pytest.mark.parametrize("name", ["tpu9", "mps", "cuda:77"])
def test_missing_devices_are_named(name: str) -> None:
    with pytest.raises(InputError, match="device"):
        choose_device(name)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recording needs a GPU")
@pytest.mark.parametrize("objective", ["exact", "sampled"])
@pytest.mark.parametrize("model", ["gae", "vgae"])
def test_recorded_steps_give_the_bits_of_eager_ones(
    split: LinkSplit, model: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(SHORT, model=model, objective=objective, device="cuda")
    recorded = train_on(split.train, config, split.val)
    monkeypatch.setattr(cost, "LARGEST_RECORDED", 0)
    eager = train_on(split.train, config, split.val)
    assert torch.equal(recorded.posterior.mean, eager.posterior.mean)
    assert [entry.loss for entry in recorded.history] == [entry.loss for entry in eager.history]
