"""Every registered part, and every composition that is allowed, through the public interface: from fit to resume.

Parts are taken from the registry, so that a new one is here by itself. Each part, and each allowed pair of posterior
and prior, passes the whole contract; all compositions of all four families are fitted.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import vgae
from helpers import message_of
from stopping import StopAfter
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.model.spec import FAMILIES, find, is_own, registered
from vgae.options import options_of
from vgae.runs.checkpoint import FolderCheckpointer
from vgae.runs.fingerprint import Fingerprint
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

Parts = dict[str, str]
SMALL = {"iterations": 6, "eval_every": 2, "hidden_dim": 6, "latent_dim": 4, "warm_up": 2, "device": "cpu"}
OWN = {family: [name for name, spec in registered(family).items() if is_own(spec)] for family in FAMILIES}


def is_allowed(parts: Parts) -> bool:
    try:
        Config(**parts)  # type: ignore[arg-type]
    except InputError:
        return False
    return True


def covering() -> list[Parts]:
    """Every allowed posterior with every prior, and meanwhile every encoder and every decoder at least once."""
    pairs = [
        {"posterior": posterior, "prior": prior}
        for posterior, prior in product(OWN["posterior"], OWN["prior"])
        if is_allowed({"posterior": posterior, "prior": prior})
    ]
    length = max(len(pairs), len(OWN["encoder"]), len(OWN["decoder"]))
    return [
        pairs[i % len(pairs)] | {family: OWN[family][i % len(OWN[family])] for family in ("encoder", "decoder")}
        for i in range(length)
    ]


ALL = [
    parts
    for choice in product(*(OWN[family] for family in FAMILIES))
    if is_allowed(parts := dict(zip(FAMILIES, choice, strict=True)))
]
COVERING = covering()


def name_of(parts: Parts) -> str:
    return "-".join(parts.values())


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    graph = vgae.stochastic_block_model(30, 2, degree_within=6, degree_between=1, feature_dim=5, seed=5)
    return vgae.split_links(graph, val=0.1, test=0.1, seed=0)


def test_every_part_is_covered() -> None:
    for family in FAMILIES:
        assert {parts[family] for parts in COVERING} == set(OWN[family])
    pairs = {(parts["posterior"], parts["prior"]) for parts in ALL}
    assert pairs == {(parts["posterior"], parts["prior"]) for parts in COVERING}
    assert len(ALL) == len(pairs) * len(OWN["encoder"]) * len(OWN["decoder"])  # nothing else is refused


@pytest.mark.parametrize("parts", COVERING, ids=name_of)
def test_a_composition_is_fitted_saved_loaded_asked_and_moved(
    parts: Parts, split: vgae.LinkSplit, tmp_path: Path
) -> None:
    model = vgae.VGAE(**SMALL, **parts).fit(split.train, validation=split.val)
    pairs = split.test.pairs
    logits, z = model.logits(pairs), model.transform()
    assert np.isfinite(logits).all()
    assert z.shape == (30, 4)
    assert {name: model.config_.value_of(name).name for name in FAMILIES} == parts
    if model.model_.decoder.symmetric:
        np.testing.assert_allclose(model.logits(pairs[:, ::-1]), logits, rtol=1e-4, atol=1e-5)

    model.save(tmp_path / "run", split=split)
    stored = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert {name: stored[name].partition(":")[0] for name in FAMILIES} == parts
    loaded = vgae.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.logits(pairs), logits)
    np.testing.assert_array_equal(loaded.transform(), z)
    assert loaded.config_ == model.config_

    _is_asked(loaded, model, pairs)
    _is_moved(loaded, split, z)


def _is_asked(loaded: Any, model: Any, pairs: Any) -> None:
    """The best new links are those of all pairs; draws have a spread, or there is none to draw from."""
    best = loaded.recommend(3)
    np.testing.assert_allclose(best.logits, model.logits(best.pairs), rtol=1e-4, atol=1e-5)
    everything = np.stack(np.meshgrid(range(30), range(30), indexing="ij"), axis=-1).reshape(-1, 2)
    everything = everything[everything[:, 0] != everything[:, 1]]
    new = everything[loaded.predict_links(everything).known == "no"]
    assert best.logits[0] == pytest.approx(model.logits(new).max(), rel=1e-4, abs=1e-5)
    assert len(loaded.similar(0, k=3)) == 3
    if model.model_.posterior.deterministic:
        assert "no spread to draw from" in message_of(lambda: loaded.predict_links(pairs, samples=5))
    else:
        drawn = loaded.predict_links(pairs, samples=5, seed=3)
        assert (loaded.fitted_.posterior.variance > 0).all()
        assert ((drawn.probabilities >= 0) & (drawn.probabilities <= 1) & (drawn.std >= 0)).all()
        np.testing.assert_array_equal(drawn.std, loaded.predict_links(pairs, samples=5, seed=3).std)


def _is_moved(loaded: Any, split: vgae.LinkSplit, z: Any) -> None:
    """Three nodes more: they get embeddings, and the others keep theirs, since nothing near them has changed."""
    graph = split.train
    given: Any = graph.features  # sparse
    np.testing.assert_allclose(loaded.transform(graph), z, rtol=1e-4, atol=1e-5)
    features = np.concatenate([given.toarray(), np.eye(3, 5, dtype=np.float32)])
    links = np.concatenate([graph.edges, [(30, 31), (31, 32)]])
    larger = Graph.from_edges(links, num_nodes=33, features=features)
    moved = loaded.transform(larger)
    assert moved.shape == (33, 4)
    np.testing.assert_allclose(moved[:30], z, rtol=1e-4, atol=1e-5)
    assert np.isfinite(loaded.on(larger).recommend(2, nodes=[32]).logits).all()


@pytest.mark.parametrize("parts", COVERING, ids=name_of)
def test_an_interrupted_composition_continues_to_the_same_bits(
    parts: Parts, split: vgae.LinkSplit, tmp_path: Path
) -> None:
    settings = SMALL | parts | {"mask_links": 0.3, "early_stopping": 50, "objective": "sampled"}
    job = Job.of(split.train, Config(**settings), split.val)  # type: ignore[arg-type]
    whole = train(job)
    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt), FolderCheckpointer(folder, Fingerprint.of(job), every=0) as checkpointer:
        train(job, StopAfter(4), checkpointer)
    again = vgae.VGAE(**settings).fit(split.train, validation=split.val, checkpoint=folder)
    for name, weights in whole.model.state_dict().items():
        assert torch.equal(again.model_.state_dict()[name], weights), name
    assert torch.equal(again.fitted_.embeddings, whole.embeddings)
    other = vgae.VGAE(**settings | {"latent_dim": 2})
    assert "latent_dim" in message_of(lambda: other.fit(split.train, validation=split.val, checkpoint=folder))


@pytest.mark.parametrize("parts", COVERING, ids=name_of)
def test_parameters_of_a_composition_go_round(parts: Parts) -> None:
    model = vgae.VGAE(**SMALL, **parts)
    flat = model.get_params(deep=True)
    for family, name in parts.items():
        for each in options_of(registered(family)[name]):
            assert flat[f"{family}__{each.name}"] == each.default
    twin = clone(model)
    nested = {name: value for name, value in flat.items() if "__" in name}
    twin.set_params(**nested)
    assert {family: twin.get_params()[family] for family in nested} == {family: flat[family] for family in nested}
    assert twin._config() == model._config()
    text = {family: str(model._config().value_of(family)) for family in FAMILIES}
    assert Config.from_json(model._config().to_json()) == model._config()
    assert {family: str(find(family, text[family])) for family in FAMILIES} == text


def test_every_composition_can_be_fitted(split: vgae.LinkSplit) -> None:
    settings = SMALL | {"iterations": 2, "warm_up": 0, "objective": "sampled"}
    for parts in ALL:
        trained = train(Job.of(split.train, Config(**settings | parts)))  # type: ignore[arg-type]
        assert np.isfinite(trained.logits(split.test.pairs)).all(), parts


def test_a_search_goes_over_parts_and_their_options(split: vgae.LinkSplit) -> None:
    graph = split.train
    samples, labels = vgae.link_samples(graph, seed=0)
    grid = [
        {"decoder": OWN["decoder"], "encoder": ["linear:hops=1"]},
        {"encoder": ["normalized"], "encoder__scale": [1.0, 2.0]},
    ]
    short = SMALL | {"iterations": 2, "warm_up": 0}
    search = GridSearchCV(vgae.VGAE(**short), grid, cv=vgae.LinkKFold(2), refit=False).fit(samples, labels)
    assert len(search.cv_results_["params"]) == len(OWN["decoder"]) + 2
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
