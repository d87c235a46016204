"""A part is one class: decoders that are defined and registered here, and nowhere else, work everywhere.

Shifted    logit_ij = z_i·z_j - shift, with factors and one option
Euclidean  logit_ij = -‖z_i - z_j‖, without factors
Learned    the first, with a shift that is learned
"""

import json
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor

import vgae
from command import assert_refused, run_vgae
from helpers import message_of
from stopping import StopAfter
from vgae.errors import InputError
from vgae.model.decoders import Decoder, DecoderSpec
from vgae.model.spec import find, register, registered
from vgae.ops import Factors
from vgae.options import option
from vgae.runs.checkpoint import FolderCheckpointer, saved_iteration
from vgae.runs.fingerprint import Fingerprint
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

SMALL = {"iterations": 6, "eval_every": 2, "hidden_dim": 6, "latent_dim": 3, "device": "cpu"}


@register("decoder", "shifted")
@dataclass(frozen=True)
class Shifted(DecoderSpec):
    """logit_ij = z_i·z_j - shift."""

    shift: float = option(1.0, least=-10, most=10, help="What is taken off every logit.", search=(0.0, 5.0))

    def factors(self, z: Tensor) -> Factors:
        return Factors(z, row_bias=torch.full_like(z[:, 0], -self.shift))


@register("decoder", "euclidean")
@dataclass(frozen=True)
class Euclidean(DecoderSpec):
    """logit_ij = -‖z_i - z_j‖."""

    factorised: ClassVar[bool] = False

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        distance: Tensor = torch.linalg.vector_norm(z[pairs[:, 0]] - z[pairs[:, 1]], dim=1)
        return -distance


class LearnedShiftDecoder(Decoder):
    def __init__(self, start: float) -> None:
        super().__init__()
        self.shift = torch.nn.Parameter(torch.tensor(start))

    def factors(self, z: Tensor) -> Factors:
        return Factors(z, row_bias=-self.shift.expand(len(z)))


@register("decoder", "learned_shift")
@dataclass(frozen=True)
class LearnedShift(DecoderSpec):
    """The first, with a shift that is learned."""

    start: float = option(1.0, help="What the shift starts from.")

    def build(self, latent_dim: int, generator: torch.Generator) -> LearnedShiftDecoder:
        del latent_dim, generator
        return LearnedShiftDecoder(self.start)


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(40, 2, feature_dim=5, seed=5), val=0.1, test=0.1, seed=0)


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    vgae.write_graph(tmp_path / "graph.npz", vgae.stochastic_block_model(40, 2, feature_dim=5, seed=5))
    return tmp_path / "graph.npz"


def arguments(graph: Path, out: Path, *more: str) -> list[str]:
    sizes = [text for name, value in SMALL.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return ["train", str(graph), "--out", str(out), "--preset", "paper", "--val", "0.1", "--test", "0.1", *sizes, *more]


@pytest.mark.parametrize("estimator", [vgae.GAE, vgae.VGAE])
def test_estimators_take_a_part_as_text_and_as_object(
    estimator: type[vgae.GAE] | type[vgae.VGAE], split: vgae.LinkSplit
) -> None:
    given: list[object] = ["shifted:shift=2.5", Shifted(2.5), Shifted(shift=np.float64(2.5))]
    models = [estimator(**SMALL, decoder=decoder).fit(split.train, validation=split.val) for decoder in given]
    pairs, z = split.test.pairs, models[0].transform()
    expected = np.einsum("md,md->m", z[pairs[:, 0]], z[pairs[:, 1]]) - 2.5
    np.testing.assert_allclose(models[0].logits(pairs), expected, rtol=1e-5, atol=1e-6)
    for model in models[1:]:
        np.testing.assert_array_equal(model.logits(pairs), models[0].logits(pairs))
    best = models[0].recommend(3)
    np.testing.assert_allclose(best.logits, models[0].logits(best.pairs), rtol=1e-5, atol=1e-6)


def test_options_of_a_part_are_parameters(split: vgae.LinkSplit) -> None:
    model = vgae.VGAE(**SMALL, decoder="shifted")
    assert model.get_params()["decoder__shift"] == 1.0
    assert "decoder__shift" not in vgae.VGAE().get_params()
    twin = clone(model).set_params(decoder__shift=3.0, latent_dim=2)
    assert (twin.get_params()["decoder__shift"], twin.latent_dim) == (3.0, 2)
    assert model.get_params()["decoder__shift"] == 1.0
    twin.fit(split.train)
    assert twin.config_.decoder == Shifted(3.0)
    with pytest.raises(ValueError, match="decoder shifted has no option 'scale'"):
        twin.set_params(decoder__scale=1.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nosuch", "decoder: 'nosuch' is not one of "),
        (
            "shifted:shift=much",
            "decoder shifted, shift: a number of at least -10 and of at most 10 is needed",
        ),
        ("shifted:shift=11", "decoder shifted, shift: a number"),
        ("shifted:shift=nan", "decoder shifted, shift: a number"),
        ("shifted:scale=1", "shifted has the options shift"),
        ("shifted:shift", "shifted has the options shift"),
        ("inner_product:scale=1", "inner_product has no options"),
        (7, "decoder: the name of one is needed"),
        ("", "decoder: '' is not one of"),
    ],
)
def test_what_is_no_part_is_refused_by_name(given: object, words: str, split: vgae.LinkSplit) -> None:
    assert words in message_of(lambda: vgae.GAE(decoder=given).fit(split.train))


def test_part_of_another_family_and_a_name_that_is_taken_are_refused() -> None:
    with pytest.raises(InputError, match="posterior: the name of one is needed"):
        Config(posterior=Shifted())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'shifted' is taken by Shifted"):
        register("decoder", "shifted")(Euclidean)
    assert registered("decoder")["shifted"] is Shifted
    of_the_package = registered("decoder")["inner_product"]
    impostor = type("InnerProduct", (DecoderSpec,), {"__qualname__": of_the_package.__qualname__})
    with pytest.raises(ValueError, match="'inner_product' is taken by InnerProduct"):
        register("decoder", "inner_product")(impostor)


@pytest.mark.parametrize("text", ["shifted:shift=2.5", "shifted", "inner_product", "euclidean"])
def test_text_of_a_part_gives_the_part_again(text: str) -> None:
    spec = find("decoder", text)
    assert find("decoder", str(spec)) == spec


def _both_ways(split: vgae.LinkSplit) -> np.ndarray:
    """The training links as numbers of the N×N pairs, in both directions."""
    first, second = split.train.edges.T
    return np.concatenate([first * split.train.num_nodes + second, second * split.train.num_nodes + first])


def test_decoder_without_factors_trains_by_samples_and_says_what_it_cannot(split: vgae.LinkSplit) -> None:
    model = vgae.GAE(**SMALL, decoder="euclidean").fit(split.train)
    assert model.objective_ == "sampled"
    pairs, z = split.test.pairs, model.transform()
    expected = -np.linalg.norm(z[pairs[:, 0]] - z[pairs[:, 1]], axis=1)
    np.testing.assert_allclose(model.logits(pairs), expected, rtol=1e-4, atol=1e-6)
    new = ~np.isin(np.arange(split.train.num_nodes**2), _both_ways(split))
    z_i, z_j = np.repeat(z, len(z), axis=0), np.tile(z, (len(z), 1))
    best = np.sort(-np.linalg.norm(z_i - z_j, axis=1)[new & (np.arange(len(z) ** 2) % (len(z) + 1) > 0)])[-6::2]
    np.testing.assert_allclose(np.sort(model.recommend(3).logits), best, rtol=1e-4, atol=1e-6)
    exact = vgae.GAE(**SMALL, decoder="euclidean", objective="exact")
    assert "objective: the decoder euclidean has no factors" in message_of(lambda: exact.fit(split.train))


def test_weights_of_a_part_are_learned_saved_and_resumed(split: vgae.LinkSplit, tmp_path: Path) -> None:
    settings = SMALL | {"decoder": "learned_shift:start=2"}
    model = vgae.VGAE(**settings).fit(split.train, validation=split.val)
    shift = model.model_.state_dict()["decoder.shift"]
    assert abs(float(shift) - 2) > 0.01
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(vgae.load(tmp_path / "run").logits(split.test.pairs), model.logits(split.test.pairs))
    folder = tmp_path / "checkpoint"
    job = Job.of(split.train, Config(**settings), split.val)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt), FolderCheckpointer(folder, Fingerprint.of(job), every=0) as checkpointer:
        train(job, StopAfter(4), checkpointer)
    again = vgae.VGAE(**settings).fit(split.train, validation=split.val, checkpoint=folder)
    assert torch.equal(again.model_.state_dict()["decoder.shift"], shift)


def test_run_keeps_the_part_and_its_options(split: vgae.LinkSplit, tmp_path: Path) -> None:
    model = vgae.VGAE(**SMALL, decoder="shifted:shift=2.5").fit(split.train, validation=split.val)
    model.save(tmp_path / "run", split=split)
    config = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert config["decoder"] == "shifted:shift=2.5"
    assert config["encoder"] == "gcn:layers=2,dropout=0.0,residual=False,unit_rows=False"
    assert (config["posterior"], config["prior"]) == ("normal", "standard_normal")
    loaded = vgae.load(tmp_path / "run")
    assert loaded.decoder == Shifted(2.5)
    assert loaded.encoder is None  # that of the model
    np.testing.assert_array_equal(loaded.logits(split.test.pairs), model.logits(split.test.pairs))
    np.testing.assert_array_equal(loaded.predict_proba(split.test.pairs), model.predict_proba(split.test.pairs))


@pytest.fixture
def without_shifted() -> Iterator[None]:
    """As a process in which nobody has imported this file."""
    parts = registered("decoder")
    from_everywhere = find.__globals__["_REGISTERED"]["decoder"]
    del from_everywhere["shifted"]
    yield
    from_everywhere["shifted"] = parts["shifted"]


def test_run_with_a_part_that_is_not_imported_says_so(
    split: vgae.LinkSplit, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    vgae.GAE(**SMALL, decoder="shifted").fit(split.train).save(tmp_path / "run")
    request.getfixturevalue("without_shifted")
    message = message_of(lambda: vgae.load(tmp_path / "run"))
    assert "decoder: 'shifted' is not one of" in message
    assert "import the module that registers it" in message


def test_command_offers_the_part_and_its_options(graph_file: Path, tmp_path: Path) -> None:
    text = " ".join(run_vgae("train", "--help", cwd=tmp_path).stdout.split())
    assert "shifted (shift)" in text
    listed = " ".join(run_vgae("parts", "decoder", cwd=tmp_path).stdout.split())
    assert "shifted logit_ij = z_i·z_j - shift" in listed
    assert "shift = 1.0: What is taken off every logit; a number of at least -10 and of at most 10." in listed
    done = run_vgae(*arguments(graph_file, tmp_path / "run", "--decoder", "shifted:shift=2.5"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    split = vgae.split_links(vgae.read_graph(graph_file), val=0.1, test=0.1, seed=0)
    model = vgae.VGAE(**SMALL, decoder=Shifted(2.5)).fit(split.train, validation=split.val)
    np.testing.assert_array_equal(vgae.load(tmp_path / "run").transform(), model.transform())
    refused = run_vgae(*arguments(graph_file, tmp_path / "other", "--decoder", "shifted:shift=99"), cwd=tmp_path)
    assert_refused(refused, "decoder shifted, shift: a number of at least -10 and of at most 10")
    planned = run_vgae("plan", str(graph_file), "--decoder", "shifted", "--json", cwd=tmp_path)
    assert json.loads(planned.stdout)["auto"] == "exact"


def test_interrupted_training_continues_with_the_part_and_with_no_other(graph_file: Path, tmp_path: Path) -> None:
    split = vgae.split_links(vgae.read_graph(graph_file), val=0.1, test=0.1, seed=0)
    job = Job.of(split.train, Config(decoder=Shifted(2.5), **SMALL), split.val)  # type: ignore[arg-type]
    folder = tmp_path / "run" / "checkpoint"
    with pytest.raises(KeyboardInterrupt), FolderCheckpointer(folder, Fingerprint.of(job), every=0) as checkpointer:
        train(job, StopAfter(4), checkpointer)
    assert saved_iteration(folder) == 3
    other = run_vgae(*arguments(graph_file, tmp_path / "run", "--decoder", "shifted", "--resume"), cwd=tmp_path)
    assert_refused_last(other.stderr, "decoder shifted:shift=2.5, not shifted:shift=1.0")
    same = ("--decoder", "shifted:shift=2.5", "--resume")
    done = run_vgae(*arguments(graph_file, tmp_path / "run", *same), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "continuing after iteration 3" in done.stderr
    np.testing.assert_array_equal(
        vgae.load(tmp_path / "run").latent_["mean"].numpy(), train(job).latent["mean"].numpy()
    )
    again = run_vgae(*arguments(graph_file, tmp_path / "run", "--decoder", "shifted", "--resume"), cwd=tmp_path)
    assert_refused(again, "decoder shifted:shift=2.5, not shifted:shift=1.0")


def test_example_of_the_docs_works(split: vgae.LinkSplit, tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "parts.md").read_text()
    code = page.split("## A part of your own is one class")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "example.py").write_text(code.replace("vgae.VGAE(", "vgae.VGAE(iterations=3, "))
    model = runpy.run_path(str(tmp_path / "example.py"), {"graph": split.train})["model"]
    z, pairs = model.transform(), split.test.pairs
    expected = 2 * (z[pairs[:, 0]] * z[pairs[:, 1]]).sum(axis=1)
    np.testing.assert_allclose(model.logits(pairs), expected, rtol=1e-4, atol=1e-6)


def assert_refused_last(errors: str, words: str) -> None:
    last = errors.strip().splitlines()[-1]
    assert last.startswith("vgae: ")
    assert words in last
