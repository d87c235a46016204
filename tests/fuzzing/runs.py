"""Run folders and checkpoints from strangers: the answers of the intact one, or a sentence.

changed   files changed without care: a hash does not match, and the run is refused, or what was changed does not matter
forged    values changed and all hashes made to fit: an answer of numbers, or a sentence
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import vgae
from fuzzing.case import Case, WrongResultError
from fuzzing.mutate import mutate
from helpers import put_odd
from vgae.io.json_files import hash_json
from vgae.io.tables import read_any
from vgae.runs.checkpoint import write_checkpoint
from vgae.runs.files import DESCRIBED
from vgae.runs.fingerprint import Fingerprint
from vgae.runs.make import Destination, Source, make_run
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.state import TrainingState

PAIRS = np.array([[0, 1], [2, 3], [5, 1], [7, 30]])
SETTINGS: dict[str, Any] = {"iterations": 4, "hidden_dim": 5, "latent_dim": 3, "eval_every": 2, "device": "cpu"}
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3.5, 1e308, -0.0, 2**31, 2**63, 10**400, "", "x", "auto", "\x1b[31m", "é\0", "a\nb",
    [], [1], [[]], {}, {"a": 1}, "0" * 64, "99.0.0", float("nan"), float("inf"), "x" * 10_000,
)  # fmt: skip


@lru_cache(maxsize=1)
def _intact() -> tuple[Path, ...]:
    """Runs that are trained once for all cases of a process: a VGAE from tables, a GAE without features."""
    folder = Path(mkdtemp(prefix="vgae-fuzz-"))
    (folder / "links.csv").write_text(
        "source,target,w\n" + "".join(f"n{i},n{(i * step + step) % 40},{step}\n" for i in range(40) for step in (1, 3))
    )
    (folder / "nodes.csv").write_text("id,x,kind\n" + "".join(f"n{i},{i * i},{'abc'[i % 3]}\n" for i in range(40)))
    reading = read_any(folder / "links.csv", weight="w", features=folder / "nodes.csv", standardise=True)
    split = vgae.split_links(reading.graph, seed=1)
    make_run(Source(split, recipe=reading.recipe), Config(**SETTINGS), Destination(folder / "vgae"))
    plain = vgae.split_links(vgae.stochastic_block_model(40, 2, seed=3), seed=1)
    vgae.GAE(**SETTINGS).fit(plain.train).save(folder / "gae", split=plain)
    return folder / "vgae", folder / "gae"


class _Memory(Checkpointer):
    """Remembers the states of a training."""

    def __init__(self) -> None:
        self.states: list[TrainingState] = []

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        self.states.append(snapshot())


@lru_cache(maxsize=1)
def _interrupted() -> tuple[Path, vgae.LinkSplit, bytes]:
    """A checkpoint after two of four iterations, what it was trained on, and the embeddings at the end."""
    folder = Path(mkdtemp(prefix="vgae-fuzz-"))
    split = vgae.split_links(vgae.stochastic_block_model(40, 2, seed=3), seed=1)
    job, memory = Job.of(split.train, Config(**SETTINGS), split.val), _Memory()
    trained = train(job, checkpointer=memory)
    write_checkpoint(folder, Fingerprint.of(job), memory.states[1])
    return folder, split, trained.latent["mean"].numpy().tobytes()


def remove_intact() -> None:
    """Remove what was trained for this process."""
    for make in (_intact, _interrupted):
        if make.cache_info().currsize:
            found: Any = make()
            shutil.rmtree(found[0].parent if make is _intact else found[0], ignore_errors=True)
            make.cache_clear()


def runs(case: Case) -> None:
    """A run or a checkpoint, changed or forged, read and asked."""
    if case.random.random() < 0.25:
        _checkpoint(case)
        return
    random = case.random
    original = random.choice(_intact())
    folder = _copy(case, original)
    if random.random() < 0.5:
        _change(random, folder, original)
        answers = case.attempt(lambda: _answers(folder))
        if answers is not None and answers != _answers(original):
            raise WrongResultError("a run that was changed gives other answers than the intact one")
    else:
        _forge_run(random, folder)
        case.attempt(lambda: _answers(folder))


def _checkpoint(case: Case) -> None:
    random = case.random
    original, split, expected = _interrupted()
    folder = _copy(case, original)
    forged = random.random() < 0.5
    if forged:
        _forge_checkpoint(random, folder)
    else:
        _change(random, folder, original)
    model = vgae.VGAE(**SETTINGS)
    found = case.attempt(lambda: model.fit(split.train, validation=split.val, checkpoint=folder).transform().tobytes())
    if found is not None and found != expected and not forged:
        raise WrongResultError("a training continued from a changed checkpoint comes to another end")


def _copy(case: Case, original: Path) -> Path:
    folder = case.folder / "run"
    shutil.copytree(original, folder)
    case.bytes_given += sum(path.stat().st_size for path in folder.rglob("*"))
    return folder


def _answers(folder: Path) -> tuple[bytes, ...]:
    """What a run says when it is asked, all of it finite."""
    model = vgae.load(folder)
    best = model.recommend(k=3)
    some = model.recommend(k=2, nodes=[0, 5])
    answers = (model.transform(), model.predict_proba(PAIRS), best.pairs, best.probabilities, some.pairs, some.logits)
    if not all(np.isfinite(answer).all() for answer in answers):
        raise WrongResultError("answers that are not finite")
    similar = np.array(model.similar(1, k=2))
    return tuple(np.ascontiguousarray(answer).tobytes() for answer in (*answers, similar))


# -------------------------------------------------------------------------------------------------------------- changes


def _change(random: Random, folder: Path, original: Path) -> None:
    """Files changed, swapped, missing, extra, or replaced by what is no file."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for _ in range(random.choice((1, 1, 2))):
        path = random.choice(files)
        how = random.choice(("bytes", "bytes", "bytes", "swap", "odd", "missing", "extra", "json", "staged"))
        if how == "bytes" and path.is_file() and not path.is_symlink():
            path.write_bytes(mutate(path.read_bytes(), random))
        elif how == "swap":
            other = random.choice(sorted(item for item in original.iterdir() if item.is_file()))
            _remove(path)
            path.write_bytes(other.read_bytes())
        elif how == "odd":
            _put_odd(random, path)
        elif how == "missing":
            _remove(path)
        elif how == "extra":
            (folder / random.choice(("notes.txt", "lock", "state-99.safetensors", ".hidden"))).write_bytes(b"mine")
        elif how == "staged":
            (folder / "checkpoint" / "run").mkdir(parents=True, exist_ok=True)
            (folder / "checkpoint" / "run" / path.name).write_bytes(
                mutate((original / path.name).read_bytes() if (original / path.name).is_file() else b"x", random)
            )
        elif how == "json":
            _edit_json(random, random.choice(sorted(folder.glob("*.json")) or [folder / "config.json"]))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _put_odd(random: Random, path: Path) -> None:
    """Something that is not a plain file of a sane size."""
    kind = random.choice(("fifo", "folder", "sparse", "/dev/zero", "nowhere", "loop", "/dev/null", "elsewhere"))
    content = path.read_bytes() if path.is_file() else b""
    _remove(path)
    if kind == "elsewhere":
        target = path.parent.parent / f"elsewhere-{path.name}"
        target.write_bytes(content)
        path.symlink_to(target)
    else:
        put_odd(path, kind)


# -------------------------------------------------------------------------------------------------------------- forgery


def _edit_json(random: Random, path: Path) -> None:
    if not path.is_file() or path.is_symlink() or path.stat().st_size > 2**20:
        return
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return
    _edit(random, content)
    path.write_text(json.dumps(content), encoding="utf-8")


def _edit_json_lines(random: Random, path: Path) -> None:
    try:
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    except ValueError:  # changed before
        return
    _edit(random, rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _edit(random: Random, content: Any) -> None:
    """One value, anywhere in it, becomes another, is missing, or is joined by one more."""
    while True:
        keys: list[Any] = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = random.choice(keys)
        if not isinstance(content[key], dict | list) or random.random() < 0.2:
            break
        content = content[key]
    how = random.random()
    if how < 0.1:
        del content[key]
    elif how < 0.2 and isinstance(content, dict):
        content[random.choice(("extra", "model", "mean", "\x07"))] = random.choice(VALUES)
    elif how < 0.4 and isinstance(content[key], int | float):
        content[key] = content[key] + random.choice((-1, 1, 0.5, 10**6))
    else:
        content[key] = random.choice(VALUES)


def _forge_run(random: Random, folder: Path) -> None:
    """Values changed, and config.json made to vouch for all files and for itself."""
    for _ in range(random.choice((1, 1, 2))):
        how = random.choice(("config", "config", "tensors", "split", "metrics", "history", "bytes"))
        if how == "tensors":
            _forge_tensors(random, folder / random.choice(("model.safetensors", "features.safetensors")))
        elif how == "split":
            _forge_split(random, folder / "split.npz")
        elif how == "metrics":
            _edit_json(random, folder / "metrics.json")
        elif how == "history":
            _edit_json_lines(random, folder / "history.jsonl")
        elif how == "bytes":
            path = random.choice(sorted(path for path in folder.iterdir() if path.name != "config.json"))
            path.write_bytes(mutate(path.read_bytes(), random))
        else:
            _edit_json(random, folder / "config.json")
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        return
    if isinstance(content.get("files"), dict):
        for name in content["files"]:
            path = folder / name
            if isinstance(name, str) and "\0" not in name and path.is_file():
                content["files"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    described = {name: content[name] for name in DESCRIBED if name in content}
    content["config_hash"] = hash_json(described)
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")


def _forge_tensors(random: Random, path: Path) -> None:
    try:
        tensors = load_tensors(path.read_bytes())
    except Exception:  # noqa: BLE001 - changed before, in whatever way
        return
    if not tensors:
        return
    name = random.choice(sorted(tensors))
    tensor = tensors[name].copy()
    how = random.randrange(5)
    if how == 0 and tensor.size:
        tensor.flat[random.randrange(tensor.size)] = random.choice(
            (0, 1, 100, 200 if tensor.dtype.kind == "u" else -100)
        )
    elif how == 1 and tensor.size and tensor.dtype.kind == "f":
        tensor.flat[random.randrange(tensor.size)] = random.choice((np.nan, np.inf, 3e38, -3e38, 1e19, 1e-40))
    elif how == 2:
        tensor = tensor.astype(random.choice(("f2", "f4", "f8", "i8", "u1", "?")))
    elif how == 3:
        tensor = np.resize(tensor, random.choice(((), (0,), (1,), (3, 3), (tensor.size,), (40, 3), (3, 40))))
    elif random.random() < 0.5:
        tensors[random.choice(("latent.other", "x", ""))] = tensor
    else:
        del tensors[name]
    if name in tensors:
        tensors[name] = np.ascontiguousarray(tensor)
    path.write_bytes(save_tensors(tensors))


def _forge_split(random: Random, path: Path) -> None:
    """An array of the split changed, with the hash that the split keeps of itself left as it was or not."""
    try:
        with np.load(path) as archive:
            arrays = dict(archive)
    except Exception:  # noqa: BLE001 - changed before, in whatever way
        return
    name = random.choice(sorted(arrays))
    array = arrays[name]
    how = random.randrange(5)
    if how == 0 and array.size and array.dtype.kind in "iuf":
        array = array.copy()
        array.flat[random.randrange(array.size)] = random.choice((0, 1, 39, 40, 10**6))
    elif how == 1:
        array = array[:-1] if array.ndim else array
    elif how == 2:
        array = array.astype(random.choice(("f8", "U70", "i4", "S9"))) if array.dtype.kind in "iuf" else array
    elif how == 3:
        array = array.reshape(-1)
    else:
        arrays[random.choice(("other", "node_ids", "labels", "weights", "directions"))] = np.arange(40)
    arrays[name] = array
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _forge_checkpoint(random: Random, folder: Path) -> None:
    path = folder / "checkpoint.json"
    state = next(folder.glob("state-*.safetensors"))
    if random.random() < 0.5:
        _forge_tensors(random, state)
    else:
        _edit_json(random, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        return
    content["sha256"] = hashlib.sha256(state.read_bytes()).hexdigest()
    content["hash"] = hash_json({name: value for name, value in content.items() if name != "hash"})
    path.write_text(json.dumps(content), encoding="utf-8")
