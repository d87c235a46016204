"""Run folders: what is written comes back, what is damaged is refused, nothing is half-written."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import vgae
from vgae.errors import InputError
from vgae.io.tables import read_any
from vgae.runs.files import read_run, write_run
from vgae.runs.folder import finished_run, new_run_folder
from vgae.runs.opened import FILES


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(120, 3, feature_dim=30, seed=5), seed=2)


@pytest.fixture
def run(tmp_path: Path, split: vgae.LinkSplit) -> Path:
    folder = tmp_path / "run"
    vgae.VGAE(iterations=20, hidden_dim=8, latent_dim=4).fit(split.train, validation=split.val).save(
        folder, split=split
    )
    return folder


def forge_hash(run: Path, name: str) -> None:
    """Make config.json vouch for a file that was changed, as somebody who means harm would."""
    content = json.loads((run / "config.json").read_text())
    content["files"][name] = hashlib.sha256((run / name).read_bytes()).hexdigest()
    (run / "config.json").write_text(json.dumps(content))


@pytest.mark.parametrize("model", [vgae.GAE, vgae.VGAE])
@pytest.mark.parametrize("features", [True, False])
def test_loaded_model_predicts_the_same_bits(
    tmp_path: Path, split: vgae.LinkSplit, model: type[vgae.GAE], features: bool
) -> None:
    fitted = model(iterations=20, latent_dim=4, features=features).fit(split.train, validation=split.val)
    fitted.save(tmp_path / "run", split=split)
    loaded = vgae.load(tmp_path / "run")
    assert type(loaded) is model
    assert {**loaded.get_params(), "progress": False} == {**fitted.get_params(), "progress": False}
    np.testing.assert_array_equal(loaded.transform(), fitted.transform())
    np.testing.assert_array_equal(loaded.predict_proba(split.test.pairs), fitted.predict_proba(split.test.pairs))
    assert loaded.score(split.test) == fitted.score(split.test)
    assert loaded.history_ == fitted.history_
    if features:
        np.testing.assert_array_equal(loaded.transform(split.train), fitted.transform(split.train))


@pytest.mark.parametrize(
    "ids", [["a", "b", "c", "d"], [10, 20, 30, 40], ["a", 1, ("x", 2), 3.5], ["json:1", "json:x", "c", "d"]]
)
def test_ids_of_any_type_survive(tmp_path: Path, ids: list[object]) -> None:
    edges = [(ids[0], ids[1]), (ids[1], ids[2]), (ids[2], ids[3])]
    graph = vgae.Graph.from_edges(edges, node_ids=ids)
    vgae.GAE(iterations=2, latent_dim=2).fit(graph).save(tmp_path / "run")
    loaded = vgae.load(tmp_path / "run").graph_
    assert loaded.ids_of(np.arange(4)).tolist() == ids
    assert loaded.index_of(ids).tolist() == [0, 1, 2, 3]


def test_run_holds_the_files_of_the_design_and_nothing_else(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {"config.json", *FILES}
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_metrics_and_history_are_plain_text(run: Path, split: vgae.LinkSplit) -> None:
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["test"]["auc"] == vgae.load(run).score(split.test)
    lines = (run / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 10, 20]


def test_used_folder_is_refused_unless_overwriting(run: Path, split: vgae.LinkSplit) -> None:
    other = vgae.GAE(iterations=2).fit(split.train)
    before = (run / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match="already used"):
        other.save(run)
    assert (run / "model.safetensors").read_bytes() == before
    other.save(run, overwrite=True)
    np.testing.assert_array_equal(vgae.load(run).transform(), other.transform())


def test_overwriting_spares_folders_that_are_not_runs(tmp_path: Path, split: vgae.LinkSplit) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="not a run of vgae"):
        vgae.GAE(iterations=2).fit(split.train).save(tmp_path / "precious", overwrite=True)
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "years of work"


def test_overwriting_spares_another_programs_model_and_a_users_notes(run: Path, split: vgae.LinkSplit) -> None:
    (run / "notes.txt").write_text("mine")
    model = vgae.GAE(iterations=2).fit(split.train)
    model.save(run, overwrite=True)
    assert (run / "notes.txt").read_text() == "mine"
    (run / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="not a run of vgae"):
        model.save(run, overwrite=True)
    assert (run / "config.json").read_text() == '{"model_type": "bert"}'


def test_link_to_a_folder_is_followed_and_kept(tmp_path: Path, split: vgae.LinkSplit) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    model = vgae.GAE(iterations=2).fit(split.train)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(vgae.load(tmp_path / "real").transform(), model.transform())


def test_failure_removes_the_folders_it_made(tmp_path: Path) -> None:
    def fail() -> None:
        with new_run_folder(tmp_path / "a" / "b" / "c"):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_split_of_another_training_graph_is_refused(tmp_path: Path, split: vgae.LinkSplit) -> None:
    """Its test links were trained on: scores on them would be worth nothing."""
    model = vgae.GAE(iterations=2).fit(split.train)
    graph = vgae.stochastic_block_model(120, 3, feature_dim=30, seed=5)
    with pytest.raises(InputError, match="not fitted on the training graph"):
        model.save(tmp_path / "run", split=vgae.split_links(graph, seed=3))
    assert list(tmp_path.iterdir()) == []


def test_loaded_run_saves_as_it_was(run: Path) -> None:
    vgae.load(run).save(run.parent / "copy")
    for path in run.iterdir():
        assert (run.parent / "copy" / path.name).read_bytes() == path.read_bytes()


def test_edited_config_is_refused(run: Path) -> None:
    content = json.loads((run / "config.json").read_text())
    content["config"]["features"] = False
    (run / "config.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="does not match its own hash"):
        vgae.load(run)


def test_empty_folder_may_be_used(tmp_path: Path, split: vgae.LinkSplit) -> None:
    (tmp_path / "run").mkdir()
    model = vgae.GAE(iterations=2).fit(split.train)
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(vgae.load(tmp_path / "run").transform(), model.transform())


def test_failure_while_writing_leaves_nothing_and_keeps_the_old_run(run: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}

    def write_half() -> None:
        with new_run_folder(run, overwrite=True) as place:
            (place.staging / "model.safetensors").write_bytes(b"half")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_half()
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_folder_below_a_file_is_refused(tmp_path: Path, split: vgae.LinkSplit) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        vgae.GAE(iterations=2).fit(split.train).save(tmp_path / "file" / "run")


@pytest.mark.parametrize("name", [*FILES, "config.json"])
def test_missing_file_is_named(run: Path, name: str) -> None:
    (run / name).unlink()
    with pytest.raises(InputError, match=name):
        vgae.load(run)


@pytest.mark.parametrize("name", FILES)
def test_changed_file_is_named(run: Path, name: str) -> None:
    content = bytearray((run / name).read_bytes())
    content[len(content) // 2] ^= 1
    (run / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: the file does not match the hash"):
        vgae.load(run)


@pytest.mark.parametrize("name", FILES)
def test_truncated_file_is_refused_even_if_its_hash_was_forged(run: Path, name: str) -> None:
    content = (run / name).read_bytes()
    (run / name).write_bytes(content[: len(content) // 2])
    forge_hash(run, name)
    with pytest.raises(InputError, match=r"damaged|not readable|hash"):
        vgae.load(run)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"format": 99}', '{"format": 1}', "\x00"])
def test_nonsense_config_is_refused(run: Path, content: str) -> None:
    (run / "config.json").write_text(content)
    with pytest.raises(InputError):
        vgae.load(run)


def test_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such run folder"):
        read_run(tmp_path / "nowhere")


def test_the_recipe_of_the_features_is_kept_and_vouched_for(tmp_path: Path) -> None:
    links = "".join(f"{i},{(i + step) % 40}\n" for i in range(40) for step in (1, 2))
    (tmp_path / "links.csv").write_text(links)
    (tmp_path / "nodes.csv").write_text("id,x,kind\n" + "".join(f"{i},{i * i},{'ab'[i % 2]}\n" for i in range(40)))
    reading = read_any(tmp_path / "links.csv", features=tmp_path / "nodes.csv", standardise=True)
    split = vgae.split_links(reading.graph)
    fitted = vgae.VGAE(iterations=5).fit(split.train, validation=split.val)
    with new_run_folder(tmp_path / "run") as place:
        write_run(place.staging, replace(fitted.to_run(split), recipe=reading.recipe))
    again = read_run(tmp_path / "run")
    assert again.recipe == reading.recipe
    vgae.load(tmp_path / "run").save(tmp_path / "copy")
    assert read_run(tmp_path / "copy").recipe == reading.recipe
    assert again.recipe is not None
    features, _ = again.recipe.apply(pa.table({"x": [9, 0], "kind": ["b", "a"]}))
    np.testing.assert_array_equal(features, np.asarray(reading.graph.features)[[3, 0]])
    for change in ("edited", "removed"):
        content = json.loads((tmp_path / "copy/config.json").read_text())
        if change == "edited":
            content["recipe"][0]["mean"] += 1
        else:
            del content["recipe"]
        (tmp_path / "run/config.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match="does not match its own hash"):
            read_run(tmp_path / "run")


def test_weights_and_directions_are_kept_and_used_again(tmp_path: Path) -> None:
    bare = vgae.stochastic_block_model(80, 2, feature_dim=10, seed=1)
    weights = np.random.default_rng(0).uniform(0.1, 5, bare.num_edges)
    graph = vgae.Graph.from_edges(bare.edges, features=bare.features, weights=weights, directed=True)
    split = vgae.split_links(graph)
    with pytest.warns(UserWarning, match="cannot tell which way a link goes"):
        fitted = vgae.GAE(iterations=5).fit(split.train)
    fitted.save(tmp_path / "run", split=split)
    train = read_run(tmp_path / "run").split.train
    np.testing.assert_array_equal(train.weights, split.train.weights)
    np.testing.assert_array_equal(train.directions, split.train.directions)
    unweighted = train.with_parts(weights=None, directions=None, features=bare.features)
    assert not np.allclose(vgae.GAE(iterations=5).fit(unweighted).transform(), fitted.transform())
    both_ways = split.train.without_directions()  # a symmetric decoder sees the same graph
    np.testing.assert_array_equal(vgae.GAE(iterations=5).fit(both_ways).transform(), fitted.transform())


def test_unfinished_run_says_so(tmp_path: Path, split: vgae.LinkSplit) -> None:
    folder = tmp_path / "run"
    vgae.GAE(iterations=2).fit(split.train, checkpoint=folder / "checkpoint", checkpoint_every=0)
    with pytest.raises(InputError, match="this run is unfinished; vgae train with --resume continues it"):
        read_run(folder)
    vgae.GAE(iterations=2).fit(split.train).save(folder, overwrite=True)
    assert {path.name for path in folder.iterdir()} == {"config.json", *FILES}


def test_what_a_killed_process_left_before_its_first_checkpoint_is_nothing(
    tmp_path: Path, split: vgae.LinkSplit
) -> None:
    (tmp_path / "run" / "checkpoint" / "run").mkdir(parents=True)
    (tmp_path / "run" / "lock").touch()
    (tmp_path / "run" / "checkpoint" / "lock").touch()
    (tmp_path / "run" / "checkpoint" / "run" / ".split.npz.a1b2").write_bytes(b"half")
    vgae.GAE(iterations=2).fit(split.train).save(tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"config.json", *FILES, "lock"}  # an older version's


@pytest.mark.parametrize("inside", ["checkpoint/epoch-3.pt", "checkpoint/run/model.bin", "latent.png"])
def test_folders_of_other_programs_are_spared(tmp_path: Path, split: vgae.LinkSplit, inside: str) -> None:
    path = tmp_path / "run" / inside
    path.parent.mkdir(parents=True)
    path.write_text("not ours")
    model = vgae.GAE(iterations=2).fit(split.train)
    with pytest.raises(InputError, match="already used"):
        model.save(tmp_path / "run")
    with pytest.raises(InputError, match="not a run of vgae"):
        model.save(tmp_path / "run", overwrite=True)
    assert path.read_text() == "not ours"
    assert [found.name for found in tmp_path.rglob("*") if found.is_file()] == [path.name]


def test_linked_checkpoint_folder_is_not_followed(tmp_path: Path, split: vgae.LinkSplit) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "checkpoint.json").write_text("{}")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="not a run of vgae"):
        vgae.GAE(iterations=2).fit(split.train).save(tmp_path / "run", overwrite=True)
    assert (tmp_path / "elsewhere" / "checkpoint.json").exists()


@pytest.mark.parametrize("moved", range(6))
def test_moves_that_were_cut_short_are_completed(run: Path, split: vgae.LinkSplit, moved: int) -> None:
    """A process was killed after it had moved so many files of a finished run up."""
    new = vgae.GAE(iterations=2).fit(split.train, validation=split.val)
    new.save(run.parent / "new", split=split)
    staging = run / "checkpoint" / "run"
    staging.mkdir(parents=True)
    for path in (run.parent / "new").iterdir():
        (staging / path.name).write_bytes(path.read_bytes())
    if moved:
        (run / "config.json").unlink()
    for name in FILES[: max(0, moved - 1)]:
        (staging / name).replace(run / name)
    with pytest.raises(InputError, match="an unfinished run is there"):
        new.save(run)
    found = finished_run(run)
    assert found is not None
    assert found.config == new.config_
    assert {path.name: path.read_bytes() for path in run.iterdir()} == {
        path.name: path.read_bytes() for path in (run.parent / "new").iterdir()
    }


def test_overwriting_what_was_cut_short_can_be_cut_short_too(run: Path, split: vgae.LinkSplit) -> None:
    staging, before = run / "checkpoint" / "run", vgae.load(run).metrics(split.test)
    staging.mkdir(parents=True)
    (run / "config.json").replace(staging / "config.json")

    def fail() -> None:
        with new_run_folder(run, overwrite=True):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert vgae.load(run).metrics(split.test) == before
