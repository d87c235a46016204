"""Every posterior with every prior that it goes with, as a user has it: trained, saved, resumed, asked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from test_resume import Memory, bits, job_of, resume

import vgae
from vgae.graph.graph import Graph
from vgae.model.posteriors import SPHERE, PosteriorSpec
from vgae.model.priors import PriorSpec, go_together
from vgae.model.spec import find, registered
from vgae.runs.checkpoint import write_checkpoint
from vgae.runs.fingerprint import Fingerprint
from vgae.train.config import Config
from vgae.train.loop import train

TOGETHER = [
    (posterior, prior)
    for posterior in registered("posterior")
    for prior in registered("prior")
    if isinstance(one := find("posterior", posterior), PosteriorSpec)
    and isinstance(other := find("prior", prior), PriorSpec)
    and go_together(one, other)
]
SMALL: dict[str, Any] = {"iterations": 12, "eval_every": 5, "hidden_dim": 8, "latent_dim": 4, "device": "cpu"}


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(120, 3, feature_dim=30, seed=5), seed=2)


@pytest.mark.parametrize(("posterior", "prior"), TOGETHER)
def test_a_run_is_the_same_after_saving_and_loading(
    split: vgae.LinkSplit, tmp_path: Path, posterior: str, prior: str
) -> None:
    model = vgae.VGAE(posterior=posterior, prior=prior, **SMALL).fit(split.train, validation=split.val)
    model.save(tmp_path / "run", split=split)
    loaded = vgae.load(tmp_path / "run")
    assert model.transform().tobytes() == loaded.transform().tobytes()
    assert loaded.fitted_.run.config.to_json() == model.fitted_.run.config.to_json()
    for name, tensor in model.fitted_.run.model.state_dict().items():
        assert torch.equal(tensor, loaded.fitted_.run.model.state_dict()[name])
    if model.fitted_.run.config.value_of("posterior").space == SPHERE:
        np.testing.assert_allclose(np.linalg.norm(loaded.transform(), axis=1), 1, atol=1e-6)
    if model.fitted_.run.model.posterior.deterministic:
        return
    ours, theirs = (each.predict_links(split.test.pairs, samples=5, seed=1) for each in (model, loaded))
    np.testing.assert_array_equal(ours.probabilities, theirs.probabilities)
    assert ours.std is not None
    assert float(ours.std.max()) > 0


@pytest.mark.parametrize(("posterior", "prior"), TOGETHER)
def test_new_nodes_are_embedded(split: vgae.LinkSplit, posterior: str, prior: str) -> None:
    model = vgae.VGAE(posterior=posterior, prior=prior, **SMALL).fit(split.train)
    graph = split.train
    more = np.vstack([sp.csr_array(graph.features).toarray(), np.ones((1, graph.num_features))]).astype(np.float32)
    edges = np.vstack([graph.edges, [[0, graph.num_nodes]]])
    found = model.transform(Graph.from_edges(edges, num_nodes=graph.num_nodes + 1, features=more))
    assert found.shape == (graph.num_nodes + 1, 4)
    assert np.isfinite(found).all()
    assert np.abs(found[:-1] - model.transform()).max() > 0  # the neighbour of the new node, at least


@pytest.mark.parametrize(("posterior", "prior"), TOGETHER)
@pytest.mark.parametrize("options", [{}, {"warm_up": 6, "free_bits": 0.05, "beta": 0.5}], ids=["plain", "warm-up"])
def test_an_interrupted_training_ends_with_the_same_bits(
    split: vgae.LinkSplit, tmp_path: Path, posterior: str, prior: str, options: dict[str, Any]
) -> None:
    """Also in the middle of the warm-up, and right before the prior begins and right after."""
    config = Config(posterior=posterior, prior=prior, **SMALL, **options)  # type: ignore[arg-type]
    job, memory = job_of(split, config), Memory()
    expected = bits(train(job, checkpointer=memory))
    for iteration in (3, 6, 7, 11):
        folder = tmp_path / str(iteration)
        folder.mkdir()
        write_checkpoint(folder, Fingerprint.of(job), memory.states[iteration - 1])
        assert bits(resume(folder, split, config)) == expected, iteration
