"""Whatever can be asked of a model can be asked of one with any decoder: trained, saved, resumed, on other graphs."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from tampering import change_tensor

import vgae
from command import assert_refused, run_vgae
from helpers import message_of
from stopping import StopAfter
from vgae.errors import InputError
from vgae.likelihood.bernoulli import calibration_shift
from vgae.runs.checkpoint import FolderCheckpointer
from vgae.runs.fingerprint import Fingerprint
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

SMALL = {"iterations": 6, "eval_every": 2, "hidden_dim": 6, "latent_dim": 4, "device": "cpu"}
WITHOUT_FACTORS = ("gravity", "mlp:width=7,layers=2")
DIRECTED = ("bilinear:form=full", "source_target", "gravity")
DECODERS = (
    "inner_product",
    "scaled",
    "scaled:node_bias=true,bias=-1",
    "bilinear",
    "bilinear:form=full",
    "distance",
    "source_target",
    *WITHOUT_FACTORS,
)


@pytest.fixture(scope="module")
def whole() -> vgae.Graph:
    return vgae.stochastic_block_model(50, 2, feature_dim=5, seed=5)


@pytest.fixture(scope="module")
def split(whole: vgae.Graph) -> vgae.LinkSplit:
    return vgae.split_links(whole, val=0.1, test=0.1, seed=0)


@pytest.fixture(scope="module", params=DECODERS)
def fitted(request: pytest.FixtureRequest, split: vgae.LinkSplit) -> vgae.VGAE:
    model = vgae.VGAE(**SMALL, decoder=request.param)
    return model.fit(split.train, validation=split.val)


def matrix_of(model: vgae.GAE) -> np.ndarray:
    """The logits of all pairs, one by one."""
    number = model.graph_.num_nodes
    pairs = np.stack(np.divmod(np.arange(number**2), number), axis=1)
    return model.logits(pairs).reshape(number, number)


def test_saved_model_answers_with_the_same_bits(fitted: vgae.VGAE, split: vgae.LinkSplit, tmp_path: Path) -> None:
    fitted.save(tmp_path / "run", split=split)
    loaded = vgae.load(tmp_path / "run")
    assert str(loaded.decoder) == str(fitted.config_.decoder)
    pairs = split.test.pairs
    for model in (fitted, loaded):
        assert model.symmetric == (fitted.decoder not in DIRECTED)
        assert model.objective_ == ("sampled" if fitted.decoder in WITHOUT_FACTORS else "exact")
    np.testing.assert_array_equal(loaded.transform(), fitted.transform())
    np.testing.assert_array_equal(loaded.logits(pairs), fitted.logits(pairs))
    np.testing.assert_array_equal(loaded.predict_proba(pairs), fitted.predict_proba(pairs))
    drawn = [model.predict_links(pairs, samples=3, seed=1) for model in (fitted, loaded)]
    np.testing.assert_array_equal(drawn[0].probabilities, drawn[1].probabilities)


def test_recommended_links_are_the_best_of_all(fitted: vgae.VGAE) -> None:
    logits, graph = matrix_of(fitted).astype(np.float64), fitted.graph_
    known = np.concatenate([graph.edges, fitted.fitted_.excluded_pairs])
    logits[known[:, 0], known[:, 1]] = logits[known[:, 1], known[:, 0]] = -np.inf
    np.fill_diagonal(logits, -np.inf)
    if fitted.symmetric:
        logits[np.tril_indices(len(logits))] = -np.inf
    expected = np.sort(logits.ravel())[::-1][:8]
    np.testing.assert_allclose(fitted.recommend(8).logits, expected, rtol=1e-5, atol=1e-5)
    best = fitted.recommend(3, [7])
    of_node = matrix_of(fitted)[7].astype(np.float64)
    of_node[[7, *known[known[:, 0] == 7, 1], *known[known[:, 1] == 7, 0]]] = -np.inf
    np.testing.assert_allclose(best.logits, np.sort(of_node)[::-1][:3], rtol=1e-5, atol=1e-5)
    assert np.all((best.pairs == 7).any(axis=1))


def test_probabilities_are_calibrated_with_validation_links_and_without(
    fitted: vgae.VGAE, split: vgae.LinkSplit
) -> None:
    assert fitted.calibration().is_fitted
    alone = vgae.VGAE(**SMALL, decoder=fitted.decoder).fit(split.train)
    assert not alone.calibration().is_fitted
    shift = calibration_shift(alone.config_.weighting_for(split.train).positive_weight)
    pairs = split.test.pairs
    expected = 1 / (1 + np.exp(shift - alone.logits(pairs).astype(np.float64)))
    np.testing.assert_allclose(alone.predict_proba(pairs), expected, rtol=1e-5)
    drawn = alone.predict_links(pairs, samples=3, seed=1)
    assert drawn.std is not None
    assert float(drawn.std.min()) > 0


def test_similar_nodes_are_those_of_the_decoders_own_measure(fitted: vgae.VGAE) -> None:
    z = fitted.transform().astype(np.float64)
    at = z[:, :-1] if str(fitted.decoder).startswith(("gravity", "scaled:node_bias")) else z
    if str(fitted.decoder) in ("gravity", "distance"):
        assert fitted.likeness == "nearness"
        alike = 1 / (1 + np.linalg.norm(at - at[3], axis=1))
    else:
        assert fitted.likeness == "cosine"
        alike = at @ at[3] / (np.linalg.norm(at, axis=1) * np.linalg.norm(at[3]))
    alike[3] = -np.inf
    found = fitted.similar(3, k=5)
    assert [node for node, _ in found] == np.argsort(-alike)[:5].tolist()
    np.testing.assert_allclose([how_much for _, how_much in found], np.sort(alike)[::-1][:5], rtol=1e-5)


def test_new_nodes_are_scored_and_recommended_for(fitted: vgae.VGAE, whole: vgae.Graph) -> None:
    features = np.concatenate([sp.csr_array(whole.features).toarray(), np.eye(2, 5)]).astype(np.float32)
    edges = np.concatenate([whole.edges, [[3, 50], [4, 51]]])
    larger = vgae.Graph.from_edges(edges, num_nodes=52, features=features)
    moved = fitted.on(larger)
    z = torch.from_numpy(moved.transform())
    with torch.no_grad():
        expected = fitted.model_.decoder.logits(z, torch.tensor([[50, 51], [51, 50], [50, 3]]))
    np.testing.assert_array_equal(moved.logits([[50, 51], [51, 50], [50, 3]]), expected.numpy())
    best = moved.recommend(2, [50])
    assert len(best.pairs) == 2
    assert not (best.pairs == 3).any()


@pytest.mark.parametrize("decoder", DECODERS)
def test_interrupted_training_ends_with_the_same_bits(decoder: str, split: vgae.LinkSplit, tmp_path: Path) -> None:
    settings = SMALL | {"decoder": decoder, "weighting": "elbo"}
    job = Job.of(split.train, Config(**settings), split.val)  # type: ignore[arg-type]
    straight = train(job)
    with pytest.raises(KeyboardInterrupt), FolderCheckpointer(tmp_path, Fingerprint.of(job), every=0) as checkpointer:
        train(job, StopAfter(4), checkpointer)
    again = vgae.VGAE(**settings).fit(split.train, validation=split.val, checkpoint=tmp_path)
    weights, expected = again.model_.state_dict(), straight.model.state_dict()
    assert set(weights) == set(expected)
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


@pytest.mark.parametrize("decoder", DECODERS[1:])
def test_run_with_huge_weights_of_the_decoder_is_refused_or_has_finite_logits(
    decoder: str, split: vgae.LinkSplit, tmp_path: Path
) -> None:
    model = vgae.VGAE(**SMALL, decoder=decoder).fit(split.train)
    refused = []
    for name in [name for name in model.model_.state_dict() if name.startswith("decoder.")]:
        model.save(tmp_path / name)
        assert np.isfinite(matrix_of(vgae.load(tmp_path / name))).all()
        huge = 300.0 if "log" in name else float(torch.finfo(torch.float32).max)
        change_tensor(name, partial(torch.full_like, fill_value=huge))(tmp_path / name)
        try:
            assert np.isfinite(matrix_of(vgae.load(tmp_path / name))).all()
        except InputError as error:
            assert "the decoder's weights are so large that logits would be infinite" in str(error)  # noqa: PT017
            refused.append(name)
    assert {"decoder.bias", "decoder.log_scale"} & set(model.model_.state_dict()) <= set(refused)


@pytest.mark.parametrize("decoder", WITHOUT_FACTORS)
def test_exact_objective_is_refused_where_there_are_no_factors(decoder: str, split: vgae.LinkSplit) -> None:
    name = str(Config(decoder=decoder).decoder)  # type: ignore[arg-type]
    said = message_of(lambda: vgae.GAE(**SMALL, decoder=decoder, objective="exact").fit(split.train))
    assert f"objective: the decoder {name} has no factors" in said
    assert "use sampled or auto" in said


def test_command_plans_and_refuses(whole: vgae.Graph, tmp_path: Path) -> None:
    vgae.write_graph(tmp_path / "graph.npz", whole)
    for decoder, objective in (("distance", "exact"), ("mlp", "sampled")):
        done = run_vgae("plan", "graph.npz", "--decoder", decoder, "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["auto"] == objective
    refused = run_vgae(
        "train", "graph.npz", "--out", "run", "--decoder", "gravity", "--objective", "exact", cwd=tmp_path
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "objective: the decoder gravity:scale=1.0,epsilon=0.01,bias=None has no factors" in refused.stderr
    odd = ("train", "graph.npz", "--out", "run", "--decoder", "source_target", "--latent-dim", "5")
    assert_refused(run_vgae(*odd, cwd=tmp_path), "latent_dim: the decoder source_target needs an even number")
    done = run_vgae("train", "graph.npz", "--out", "run", "--decoder", "distance", "--iterations", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    near = json.loads(run_vgae("similar", "run", "3", "--top", "2", "--json", cwd=tmp_path).stdout)["similar"]
    found = vgae.load(tmp_path / "run").similar(3, k=2)
    assert [each["nearness"] for each in near] == pytest.approx([how_much for _, how_much in found], rel=1e-6)
