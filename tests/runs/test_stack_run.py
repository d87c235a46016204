"""The run folder of a stack: the same predictions to the bit, and whatever was tampered with is refused."""

import io
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tampering import Trap, edit

import vgae
from helpers import message_of, put_odd
from vgae.baselines import BASELINES
from vgae.baselines.spectral import spectral_embedding
from vgae.runs.files import read_any_run, read_run
from vgae.runs.opened import FILES
from vgae.runs.stack_run import StackRun
from vgae.stack.config import StackConfig

BASES = "gae(iterations=4;latent_dim=3),vgae(iterations=3;latent_dim=2;decoder=distance),neighbours,cosines,degrees,sc"
CONFIG = StackConfig(bases=BASES, folds=2, base_seeds=2, device="cpu")


def planted(feature_dim: int = 20) -> vgae.LinkSplit:
    graph = vgae.stochastic_block_model(50, 2, degree_within=9, feature_dim=feature_dim, seed=1)
    return vgae.split_links(graph, seed=0)


@pytest.fixture(scope="module")
def model() -> vgae.Stack:
    with pytest.MonkeyPatch.context() as patched:  # the graph is too small for 128 dimensions
        patched.setitem(BASELINES, "sc", lambda graph, seed: spectral_embedding(graph, dim=4, seed=seed))
        return vgae.Stack(**CONFIG.to_json()).fit_split(planted(), "planted")


@pytest.fixture(scope="module")
def saved(model: vgae.Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "run"
    model.save(folder)
    return folder


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "run")
    return tmp_path / "run"


ALL = np.array([(i, j) for i in range(50) for j in range(50) if i != j])


# ------------------------------------------------------------------------------------------------------ same bits


def test_a_loaded_stack_says_the_same_to_the_bit(model: vgae.Stack, saved: Path) -> None:
    loaded = vgae.load(saved)
    assert isinstance(loaded, vgae.Stack)
    assert loaded.logits(ALL).tobytes() == model.logits(ALL).tobytes()
    assert loaded.predict_proba(ALL).tobytes() == model.predict_proba(ALL).tobytes()
    assert loaded.calibration() == model.calibration()
    assert loaded.recommend(20).pairs.tolist() == model.recommend(20).pairs.tolist()
    assert loaded.run_.metrics == model.run_.metrics
    assert loaded.run_.facts == model.run_.facts
    assert loaded.explain(0, 1).bases == model.explain(0, 1).bases
    assert loaded.get_params() == CONFIG.to_json() | {"bases": loaded.bases, "progress": False}
    assert loaded.config_ == CONFIG


def test_saved_again_it_is_the_same(saved: Path, tmp_path: Path) -> None:
    vgae.load(saved).save(tmp_path / "again")
    for name in (*FILES, "config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes(), name


def test_loaded_elsewhere_and_in_another_process(model: vgae.Stack, run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "another" / "place"
    moved.parent.mkdir()
    run.rename(moved)
    code = (
        "import sys, vgae, numpy; model = vgae.load(sys.argv[1]); pairs = numpy.array([(0, 1), (3, 40), (7, 9)]);"
        "print(model.logits(pairs).tobytes().hex(), 'pickle' in str(type(model)), 'sklearn.ensemble' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(moved)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    pairs = np.array([(0, 1), (3, 40), (7, 9)])
    assert done.stdout.split() == [model.logits(pairs).tobytes().hex(), "False", "False"]


@pytest.mark.parametrize(
    "bases",
    [
        "neighbours",
        "degrees,pa,ra",
        "gae(iterations=2;latent_dim=2;decoder=mlp)",
        "vgae(iterations=2;latent_dim=4;decoder=source_target)",
        "vgae(iterations=2;latent_dim=4;decoder=gravity)",
        "vgae(iterations=2;latent_dim=3;posterior=power_spherical)",
        "vgae(iterations=2;latent_dim=3;prior=mixture)",
        "vgae(iterations=2;latent_dim=3;encoder=normalized:hops=1,scale=3),paths,pagerank,cosine",
    ],
)
@pytest.mark.parametrize("features", [True, False])
def test_any_bases(tmp_path: Path, bases: str, features: bool) -> None:
    split = planted(10)
    if bases.endswith("cosine") and not features:
        bases = bases.removesuffix(",cosine")
    model = vgae.Stack(bases=bases, folds=2, base_seeds=1, boosting=0.0, features=features, device="cpu")
    model.fit_split(split).save(tmp_path / "run")
    loaded = vgae.load(tmp_path / "run")
    assert loaded.logits(ALL).tobytes() == model.logits(ALL).tobytes()
    assert loaded.n_features_in_ == (10 if features else 0)
    assert loaded.run_.recipe is None


def test_what_is_in_the_folder(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted((*FILES, "config.json"))
    content = json.loads((saved / "config.json").read_text())
    assert content["stack"] == CONFIG.to_json()
    assert content["facts"]["columns"][0] == "gae(iterations=4;latent_dim=3)"
    assert content["facts"]["dimensions"] == {"sc": load_file(saved / "model.safetensors")["base.5.embedding"].shape[1]}
    assert set(content["facts"]["models"]) == set(CONFIG.bases.split(",")[:2])
    assert content["calibration"]["num_links"] == len(planted().val.links)
    run = read_any_run(saved)
    assert isinstance(run, StackRun)
    assert "this run is of a stack, which has no training" in message_of(lambda: read_run(saved))


def test_a_device_that_is_not_there_becomes_auto(model: vgae.Stack, run: Path) -> None:
    edit(run, stack__device="cuda:99")
    loaded = vgae.load(run)
    assert loaded.device == "auto"
    assert loaded.logits(ALL).tobytes() == model.logits(ALL).tobytes()
    assert all(base.config.device == "auto" for base in loaded.stack_.bases.bases if base.config is not None)


def test_a_stack_of_an_earlier_preset_is_built_as_it_was(run: Path) -> None:
    """What a base's name means may change; config.json says what it meant."""
    content = json.loads((run / "config.json").read_text())
    for name, options in content["facts"]["models"].items():
        assert options["latent_dim"] == (3 if name.startswith("gae") else 2)
    edit(run, facts__models={**content["facts"]["models"], "gae(iterations=4;latent_dim=3)": {"latent_dim": 3}})
    assert "not the weights" in message_of(lambda: vgae.load(run))  # of the VGAE that it says now


# ------------------------------------------------------------------------------------------------------ tampering


def tensors(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    """Change the tensors, and have config.json vouch for them."""

    def tamper(folder: Path) -> None:
        found = load_file(folder / "model.safetensors")
        change(found)
        save_file({name: tensor.contiguous() for name, tensor in found.items()}, folder / "model.safetensors")
        edit(folder)

    return tamper


def swap(first: str, second: str) -> Callable[[dict[str, torch.Tensor]], Any]:
    def change(found: dict[str, torch.Tensor]) -> None:
        found[first], found[second] = found[second], found[first]

    return change


def put(name: str, place: int, value: float) -> Callable[[dict[str, torch.Tensor]], Any]:
    def change(found: dict[str, torch.Tensor]) -> None:
        found[name].view(-1)[place] = value

    return change


TAMPERINGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "NaN in the weights": (tensors(put("base.0.0.latent.z", 0, np.nan)), "finite float32"),
    "infinity in an embedding": (tensors(put("base.5.embedding", 0, np.inf)), "finite float32"),
    "huge embeddings": (tensors(lambda t: t["base.0.0.latent.z"].fill_(1e30)), "logits would be infinite"),
    "doubles": (tensors(lambda t: t.update({"base.5.embedding": t["base.5.embedding"].double()})), "finite float32"),
    "a row too few": (tensors(lambda t: t.update({"base.0.1.latent.z": t["base.0.1.latent.z"][1:]})), "should be 50×3"),
    "no embeddings": (tensors(lambda t: t.pop("base.0.1.latent.z")), "should be 50×3"),
    "a seed too few": (tensors(lambda t: [t.pop(name) for name in list(t) if "base.1.1." in name]), "should be 50×2"),
    "a seed too many": (tensors(lambda t: t.update({"base.0.2.latent.z": torch.zeros(50, 3)})), "not known"),
    "weights of another form": (tensors(lambda t: t.update({"base.0.0.more": torch.zeros(1)})), "not the weights"),
    "another posterior": (tensors(lambda t: t.update({"base.0.0.latent.mean": torch.zeros(50, 3)})), "not known"),
    "vectors of a formula": (tensors(lambda t: t.update({"base.2.embedding": torch.zeros(50, 3)})), "not known"),
    "narrow vectors": (tensors(lambda t: t.update({"base.5.embedding": torch.zeros(50, 3)})), "not the vectors of"),
    "a tensor too many": (tensors(lambda t: t.update({"more": torch.zeros(1)})), "more: not known"),
    "bases exchanged": (tensors(swap("base.0.0.latent.z", "base.1.0.latent.z")), "should be 50×3"),
    "a meta-model's array missing": (tensors(lambda t: t.pop("meta.mix")), "mix"),
    "an array too many in the meta-model": (tensors(lambda t: t.update({"meta.code": torch.zeros(1)})), "code"),
    "children exchanged with columns": (tensors(swap("meta.trees.left", "meta.trees.feature")), "trees"),
    "a child that is its parent": (tensors(put("meta.trees.left", 0, 0)), "trees.left"),
    "a child beyond the tree": (tensors(put("meta.trees.right", 0, 10_000)), "trees.left and trees.right"),
    "a child before its parent": (tensors(put("meta.trees.left", 1, -1)), "trees.left and trees.right"),
    "a column that is none": (tensors(put("meta.trees.feature", 0, 99)), "trees.feature"),
    "a threshold that is none": (tensors(put("meta.trees.threshold", 0, np.nan)), "finite"),
    "a value that is none": (tensors(put("meta.trees.value", 0, np.inf)), "finite"),
    "trees that begin elsewhere": (tensors(put("meta.trees.starts", 1, 0)), "trees.starts"),
    "slopes exchanged with forms": (tensors(swap("meta.logistic.slope", "meta.logistic.logarithmic")), "logistic"),
    "a scale of 0": (tensors(put("meta.logistic.scale", 0, 0)), "above 0"),
    "a slope that is none": (tensors(put("meta.logistic.slope", 0, np.nan)), "finite"),
    "a share above 1": (tensors(put("meta.mix", 0, 2)), "a share from 0 to 1"),
    "a column of evidence too few": (
        tensors(lambda t: t.update({"meta.logistic.slope": t["meta.logistic.slope"][1:]})),
        "values of the type",
    ),
    "a flipped byte": (lambda folder: flip_a_byte(folder / "model.safetensors"), "does not match the hash"),
    "another split": (lambda folder: flip_a_byte(folder / "split.npz"), "does not match the hash"),
    "other features": (lambda folder: flip_a_byte(folder / "features.safetensors"), "does not match the hash"),
    "other scores": (lambda folder: flip_a_byte(folder / "metrics.json"), "does not match the hash"),
    "a history": (lambda folder: put_text(folder / "history.jsonl", "{}"), "history.jsonl"),
    "an edited configuration": (lambda folder: rewrite(folder, '"folds": 2', '"folds": 3'), "does not match its own"),
    "other bases": (lambda folder: edit(folder, stack__bases="neighbours,sc"), "other bases in facts"),
    "bases in another order": (
        lambda folder: edit(folder, stack__bases=",".join(reversed(CONFIG.bases.split(",")))),
        "evidence of this stack is other",
    ),
    "a base that does not exist": (lambda folder: edit(folder, stack__bases="magic"), "'magic' is not one of"),
    "another version's option": (lambda folder: edit(folder, stack__more=1), "more: not known to this version"),
    "no configuration": (lambda folder: edit(folder, stack=[]), "a JSON object is needed"),
    "folds that cannot be": (lambda folder: edit(folder, stack__folds=1), "folds"),
    "more seeds": (lambda folder: edit(folder, stack__base_seeds=3), "should be 50×3"),
    "no features": (lambda folder: edit(folder, stack__features=False), "other bases in facts|evidence"),
    "other columns": (lambda folder: edit(folder, facts__columns=["a"]), "evidence of this stack is other"),
    "columns that are no text": (lambda folder: edit(folder, facts__columns=[1]), "facts that cannot be"),
    "a wide embedding": (lambda folder: edit(folder, facts__dimensions={"sc": 2**40}), "facts that cannot be"),
    "vectors of another base": (lambda folder: edit(folder, facts__dimensions={"dw": 4}), "other bases in facts"),
    "models that are none": (lambda folder: edit(folder, facts__models={}), "other bases in facts"),
    "models that are text": (lambda folder: edit(folder, facts__models={"a": "b"}), "facts that cannot be"),
    "huge models": (
        lambda folder: edit(
            folder, **{"facts__models__gae(iterations=4;latent_dim=3)": {"model": "gae", "latent_dim": 2**16}}
        ),
        "should be 50×65536|not the weights",
    ),
    "facts missing": (lambda folder: edit(folder, facts={}), "facts"),
    "two kinds": (lambda folder: edit(folder, config={}), "config: missing or not known"),
    "a newer version": (lambda folder: edit(folder, vgae="999.0"), "newer vgae"),
    "another format": (lambda folder: edit(folder, format=1), "not a run that this version"),
    "a pickle": (lambda folder: put_pickle(folder, "model.safetensors"), "damaged"),
    "a pickle as the split": (lambda folder: put_pickle(folder, "split.npz"), "split.npz"),
    "a pickle as features": (lambda folder: put_pickle(folder, "features.safetensors"), "damaged"),
    "a torch file": (lambda folder: put_torch(folder), "damaged"),
    "a huge file": (lambda folder: put_huge(folder), "larger|too large|bytes"),
}


def rewrite(folder: Path, old: str, new: str) -> None:
    text = (folder / "config.json").read_text()
    assert old in text
    (folder / "config.json").write_text(text.replace(old, new))


def put_text(path: Path, text: str) -> None:
    path.write_text(text)
    edit(path.parent)


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def put_pickle(folder: Path, name: str) -> None:
    (folder / name).write_bytes(pickle.dumps(Trap(folder / "executed")))
    edit(folder)


def put_torch(folder: Path) -> None:
    buffer = io.BytesIO()
    torch.save(Trap(folder / "executed"), buffer)
    (folder / "model.safetensors").write_bytes(buffer.getvalue())
    edit(folder)


def put_huge(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    put_odd(folder / "model.safetensors", "sparse")


@pytest.mark.parametrize("what", TAMPERINGS)
def test_tampering_is_refused_and_executes_nothing(run: Path, what: str) -> None:
    tamper, words = TAMPERINGS[what]
    tamper(run)
    message = message_of(lambda: vgae.load(run))
    assert any(part in message for part in words.split("|")), message
    assert str(run) in message
    assert message.count("\n") == 0
    assert len(message) < 700
    assert not (run / "executed").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "split.npz", "config.json"])
@pytest.mark.parametrize("kind", ["fifo", "folder", "/etc/hostname", "loop"])
def test_what_is_no_plain_file_is_refused(run: Path, name: str, kind: str) -> None:
    (run / name).unlink()
    put_odd(run / name, kind)
    message_of(lambda: vgae.load(run))


def test_every_byte_that_is_lost_is_noticed(run: Path) -> None:
    data = (run / "model.safetensors").read_bytes()
    for length in np.linspace(0, len(data) - 1, 15).astype(int).tolist():
        (run / "model.safetensors").write_bytes(data[:length])
        assert "hash" in message_of(lambda: vgae.load(run))
        edit(run)
        assert "damaged" in message_of(lambda: vgae.load(run))
