"""From training to new nodes with every encoder: saved, loaded, interrupted, and asked about another graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from encoder_equations import REFERENCES, SPECS, dense_propagation, generator, spec_of, unit, with_dropout

import vgae
from stopping import StopAfter
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.runs.checkpoint import FolderCheckpointer
from vgae.runs.fingerprint import Fingerprint
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.presets import ACCURATE

SMALL = {"iterations": 8, "eval_every": 2, "hidden_dim": 6, "latent_dim": 3, "device": "cpu"}


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(stochastic_block_model(40, 2, feature_dim=9, seed=5), val=0.1, test=0.1, seed=0)


@pytest.mark.parametrize("text", SPECS)
def test_every_encoder_is_trained_saved_and_loaded_and_embeds_new_nodes(
    split: vgae.LinkSplit, text: str, tmp_path: Path
) -> None:
    model = vgae.VGAE(encoder=text, **SMALL).fit(split.train, validation=split.val)
    start = Config(encoder=spec_of(text), **SMALL).composition.build(9, generator())  # type: ignore[arg-type]
    assert any(not torch.equal(weight, start.state_dict()[name]) for name, weight in model.model_.state_dict().items())
    model.save(tmp_path / "run")
    loaded = vgae.load(tmp_path / "run")
    assert loaded.get_params(deep=False)["encoder"] in (None, spec_of(text))
    pairs = split.test.pairs
    np.testing.assert_array_equal(loaded.logits(pairs), model.logits(pairs))

    features = sp.csr_array(split.train.features)
    more = Graph.from_edges(
        [*split.train.edges.tolist(), (40, 0), (40, 1), (40, 41)],
        num_nodes=42,
        features=sp.vstack([features, features[[5, 6]]]).tocsr(),
    )
    spec, own = spec_of(text), sp.csr_array(more.features).toarray().astype(np.float64)
    weights = {name: weight.double().numpy() for name, weight in model.model_.encoder.state_dict().items()}
    seen = unit(own) if getattr(spec, "unit_rows", False) else own
    expected = REFERENCES[spec.name](spec, dense_propagation(more), seen, weights)["mean"]
    np.testing.assert_allclose(loaded.on(more).transform(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("objective", ["exact", "sampled"])
@pytest.mark.parametrize("text", SPECS)
def test_interrupted_training_with_dropout_and_hidden_links_ends_with_the_same_bits(
    split: vgae.LinkSplit, text: str, objective: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = SMALL | {"objective": objective, "mask_links": 0.4}
    job = Job.of(split.train, Config(encoder=spec_of(with_dropout(text, 0.3)), **options), split.val)
    whole = train(job)
    with pytest.raises(KeyboardInterrupt), FolderCheckpointer(tmp_path, Fingerprint.of(job), every=0) as checkpointer:
        train(job, StopAfter(4), checkpointer)
    with FolderCheckpointer(tmp_path, Fingerprint.of(job), every=0) as checkpointer:
        resumed = train(job, None, checkpointer)
    for found, expected in (
        (resumed.model.state_dict(), whole.model.state_dict()),
        (resumed.latent, whole.latent),
    ):
        assert all(torch.equal(found[name], values) for name, values in expected.items())
    assert [entry.loss for entry in resumed.history] == [entry.loss for entry in whole.history]


def test_options_of_the_preset_are_options_of_a_training() -> None:
    config = Config(**ACCURATE)
    assert not config.value_of("posterior").deterministic
    assert config.beta > 0
    assert config.early_stopping is not None
