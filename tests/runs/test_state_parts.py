"""States in parts: what some processes have written, any number of processes reads."""

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save
from torch import Tensor

from vgae.errors import InputError
from vgae.parallel.shards import Shards
from vgae.runs.parts import Parts, read_state_tensors, state_name, with_rows
from vgae.train.state import Layout, Sharding

NODES, ITERATION = 11, 7
NAMES = frozenset({"weights.first", "adam.first.exp_avg"})
STATE = {
    "weights.first": torch.arange(3.0 * NODES).reshape(NODES, 3),
    "adam.first.exp_avg": -torch.arange(3.0 * NODES).reshape(NODES, 3),
    "weights.second": torch.arange(6.0).reshape(3, 2),
    "adam.first.step": torch.tensor(float(ITERATION)),
}
HASH = "0" * 64
cuts = st.sets(st.integers(1, NODES - 1), max_size=NODES - 1).map(lambda inner: (0, *sorted(inner), NODES))


def write(folder: Path, bounds: tuple[int, ...]) -> tuple[str, Parts]:
    """What a group with these ranges would write: the hash of what all share, and the parts."""
    hashes = []
    for part, first in enumerate(bounds[:-1]):
        rows = {name: STATE[name][first : bounds[part + 1]].clone() for name in NAMES}
        hashes.append(put(folder / state_name(ITERATION, part), rows))
    shared = {name: tensor for name, tensor in STATE.items() if name not in NAMES}
    sha256 = put(folder / state_name(ITERATION), shared)
    return sha256, Parts(bounds, NAMES, tuple(hashes), (1,) * len(hashes))


def put(path: Path, tensors: dict[str, Tensor]) -> str:
    path.write_bytes(save(tensors))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def layout_of(num_rows: int) -> Layout:
    return with_rows({name: (tensor.shape, tensor.dtype) for name, tensor in STATE.items()}, NAMES, num_rows)


def read(folder: Path, sha256: str, parts: Parts | None, bounds: tuple[int, ...], rank: int) -> dict[str, Tensor]:
    """What a process of a group with other ranges reads."""
    sharding = Sharding(Shards(bounds, rank), NAMES)
    layout = layout_of(bounds[rank + 1] - bounds[rank])
    return read_state_tensors(folder, ITERATION, sha256, layout, parts, sharding)


def assert_rows(found: dict[str, Tensor], first: int, last: int) -> None:
    assert set(found) == set(STATE)
    for name, tensor in STATE.items():
        assert torch.equal(found[name], tensor[first:last] if name in NAMES else tensor), name


@given(before=cuts, after=cuts)
def test_any_ranges_are_read_into_any_others(
    tmp_path_factory: pytest.TempPathFactory, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    sha256, parts = write(folder, before)
    parts = Parts.from_json(parts.to_json())
    for rank in range(len(after) - 1):
        assert_rows(read(folder, sha256, parts, after, rank), after[rank], after[rank + 1])
    whole = read_state_tensors(folder, ITERATION, sha256, layout_of(NODES), parts, None)
    assert_rows(whole, 0, NODES)


def test_what_one_process_has_written_is_read_by_several(tmp_path: Path) -> None:
    sha256 = put(tmp_path / state_name(ITERATION), STATE)
    bounds = (0, 4, 5, NODES)
    for rank in range(3):
        assert_rows(read(tmp_path, sha256, None, bounds, rank), bounds[rank], bounds[rank + 1])


@pytest.mark.parametrize("harm", ["missing", "changed", "another's", "rows", "link"])
def test_a_part_that_is_not_what_was_written_is_refused(tmp_path: Path, harm: str) -> None:
    sha256, parts = write(tmp_path, (0, 4, 8, NODES))
    path = tmp_path / state_name(ITERATION, 1)
    if harm == "missing":
        path.unlink()
    elif harm == "changed":
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    elif harm == "another's":
        path.write_bytes((tmp_path / state_name(ITERATION, 0)).read_bytes())
    elif harm == "rows":
        changed = put(path, {name: STATE[name][4:7].clone() for name in NAMES})
        parts = Parts(parts.bounds, parts.names, (parts.sha256[0], changed, parts.sha256[2]), parts.threads)
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to("elsewhere")
    with pytest.raises(ValueError, match=re.escape(path.name)):
        read(tmp_path, sha256, parts, (0, 5, NODES), 0)
    assert_rows(read(tmp_path, sha256, parts, (0, 8, NODES), 1), 8, NODES)  # which needs none of it


GOOD: dict[str, Any] = {"bounds": [0, 4, 9], "names": ["a"], "sha256": [HASH, HASH], "threads": [1, 2]}


@pytest.mark.parametrize(
    "changed",
    [
        {"bounds": [0, 4]},
        {"bounds": [1, 4, 9]},
        {"bounds": [0, 9, 4]},
        {"bounds": [0, 4.5, 9]},
        {"bounds": "049"},
        {"names": [1]},
        {"sha256": [HASH]},
        {"sha256": [HASH, "short"]},
        {"sha256": [], "bounds": [0], "threads": []},
        {"threads": [1, 0]},
        {"threads": [1, True]},
        {"more": []},
    ],
)
def test_parts_that_cannot_be_are_refused(changed: dict[str, Any]) -> None:
    assert len(Parts.from_json(GOOD)) == 2
    with pytest.raises((ValueError, InputError)):
        Parts.from_json(GOOD | changed)


def test_other_tensors_or_nodes_than_the_model_has_are_refused(tmp_path: Path) -> None:
    sha256, parts = write(tmp_path, (0, 4, NODES))
    with pytest.raises(ValueError, match="number of nodes"):
        read(tmp_path, sha256, parts, (0, 4, NODES + 1), 1)
    fewer = Parts(parts.bounds, frozenset({"weights.first"}), parts.sha256, parts.threads)
    with pytest.raises(ValueError, match="other tensors"):
        read(tmp_path, sha256, fewer, (0, 4, NODES), 1)
