"""A power cut at any moment: the folder holds the old run, or the new one, or what a resumed training makes of it."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from making import make, small_split
from powercut import Disk, Tree, grow, what_is_read

import vgae
from vgae.errors import InputError
from vgae.runs.checkpoint import saved_iteration
from vgae.train.config import Config

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it learns from /proc which file is flushed")


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return small_split()


SETTINGS: dict[str, Any] = {"iterations": 2, "eval_every": 1, "hidden_dim": 4, "latent_dim": 2, "device": "cpu"}


def model(seed: int) -> vgae.VGAE:
    return vgae.VGAE(**SETTINGS, seed=seed)


def train(folder: Path, split: vgae.LinkSplit, seed: int = 0, *, overwrite: bool = False, resume: bool = False) -> None:
    """What `vgae train` does."""
    make(folder, split, Config(**SETTINGS, seed=seed), overwrite=overwrite, resume=resume)


def trees_of(root: Path, write: Callable[[], None]) -> list[tuple[int, Tree]]:
    disk = Disk(root)
    with disk.recording():
        write()
    return list(disk.after_a_power_cut())


def expect_old_or_new(
    place: Path, trees: list[tuple[int, Tree]], old: object, new: object, finish: Callable[[Path], None]
) -> list[str]:
    """In each tree the run that is read is the old or the new one, and finishing gives the new one."""
    seen = []
    for count, tree in trees:
        root = place / "after"
        root.mkdir()
        grow(root, tree)
        seen.append(state_of(root / "run", old, new))
        assert seen[-1] in ("new", "nothing" if old is None else "old"), f"after change {count}: {seen[-1]}"
        finish(root / "run")
        assert what_is_read(root / "run") == new, f"after change {count}: other bits"
        assert not (root / "run" / "checkpoint").exists()
        shutil.rmtree(root)
    return seen


def state_of(run: Path, old: object, new: object) -> str:
    try:
        found = what_is_read(run)
    except InputError as error:
        absent = ("no such", "unfinished", "not a run folder")
        return "nothing" if any(words in str(error) for words in absent) else str(error)
    return "old" if found == old else "new" if found == new else "a mixture"


@pytest.mark.parametrize("beside", ["nothing", "old"])
def test_training(tmp_path: Path, split: vgae.LinkSplit, beside: str) -> None:
    """The first run of a folder, one that takes the place of an old one, and the latter resumed after a power cut."""
    root = tmp_path / "disk"
    root.mkdir()
    train(tmp_path / "whole", split)
    old, new = None, what_is_read(tmp_path / "whole")
    if beside == "old":
        train(root / "run", split, seed=1)
        old = what_is_read(root / "run")

    def finish(run: Path) -> None:
        train(run, split, overwrite=True, resume=True)

    trees = trees_of(root, lambda: train(root / "run", split, overwrite=True))
    seen = expect_old_or_new(tmp_path, trees, old, new, finish)
    assert len(trees) > 50
    assert set(seen) == {beside, "new"}
    if beside == "old":
        shutil.rmtree(root / "run")
        unfinished = [tree for _, tree in trees if "run/checkpoint/state-1.safetensors" in tree]
        grow(root, next(tree for tree in unfinished if "run/checkpoint/checkpoint.json" in tree))
        assert saved_iteration(root / "run" / "checkpoint") == 1
        trees = trees_of(root, lambda: finish(root / "run"))
        assert set(expect_old_or_new(tmp_path, trees, old, new, finish)) == {"old", "new"}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_saving(tmp_path: Path, split: vgae.LinkSplit, checkpoint: bool) -> None:
    """In Python, without checkpoints and with the model's own."""
    root = tmp_path / "disk"
    root.mkdir()
    train(root / "run", split, seed=1)
    old = what_is_read(root / "run")
    where = root / "run" / "checkpoint" if checkpoint else None
    every = 0 if checkpoint else None
    fitted = model(0).fit(split.train, validation=split.val, checkpoint=where, checkpoint_every=every)
    fitted.save(tmp_path / "whole", split=split)
    trees = trees_of(root, lambda: fitted.save(root / "run", split=split, overwrite=True))
    if checkpoint:  # it stays until the new run is in its place
        before = trees[0][1]["run/config.json"]
        replaced = [tree for _, tree in trees if "run/checkpoint/checkpoint.json" not in tree]
        assert all(tree["run/config.json"] != before for tree in replaced)
    seen = expect_old_or_new(
        tmp_path,
        trees,
        old,
        what_is_read(tmp_path / "whole"),
        lambda run: fitted.save(run, split=split, overwrite=True),
    )
    assert set(seen) == {"old", "new"}


def test_a_checkpoint_alone(tmp_path: Path, split: vgae.LinkSplit) -> None:
    """Whatever is left, fit continues from it or starts again, to the same bits."""
    root = tmp_path / "disk"
    root.mkdir()
    expected = model(0).fit(split.train, validation=split.val).transform()

    def fit(folder: Path) -> vgae.VGAE:
        return model(0).fit(split.train, validation=split.val, checkpoint=folder, checkpoint_every=0)

    trees = trees_of(root, lambda: fit(root / "checkpoint"))  # type: ignore[arg-type]
    iterations = set()
    for _, tree in trees:
        after = tmp_path / "after"
        after.mkdir()
        grow(after, tree)
        iterations.add(saved_iteration(after / "checkpoint"))
        assert (fit(after / "checkpoint").transform() == expected).all()
        shutil.rmtree(after)
    assert iterations == {None, 1, 2}


def test_files_that_replace_others(tmp_path: Path) -> None:
    """What --out writes: the old file or the new one, never an empty one."""
    root = tmp_path / "disk"
    root.mkdir()
    graph = vgae.stochastic_block_model(30, 2, seed=5)
    vgae.write_graph(root / "graph.npz", graph)
    old = (root / "graph.npz").read_bytes()
    trees = trees_of(root, lambda: vgae.write_graph(root / "graph.npz", vgae.stochastic_block_model(40, 2, seed=5)))
    new = (root / "graph.npz").read_bytes()
    assert {tree["graph.npz"] for _, tree in trees} == {old, new}
