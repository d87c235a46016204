import hashlib
import math
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from helpers import message_of, small_graphs
from vgae.errors import InputError
from vgae.graph.convert import to_array
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut, LeakError, LinkSplit, split_links
from vgae.graph.synthetic import stochastic_block_model
from vgae.io.datasets import load_dataset
from vgae.io.splits import read_split

SETS = ("train", "val_links", "val_non_links", "test_links", "test_non_links")
GRAPH = stochastic_block_model(60, 3, feature_dim=12, seed=5)


def parts_of(split: LinkSplit) -> dict[str, Pairs]:
    held_out = (split.val.links, split.val.non_links, split.test.links, split.test.non_links)
    return dict(zip(SETS, (split.train.edges, *held_out), strict=True))


def as_set(pairs: Pairs) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in pairs.tolist()}


# ----------------------------------------------------------------------------------------------------------- splitting


@given(st.data())
def test_any_split_covers_the_links_and_leaks_nothing(data: st.DataObject) -> None:
    graph = data.draw(small_graphs(3))
    num_non_links = math.comb(graph.num_nodes, 2) - graph.num_edges
    num_held_out = data.draw(st.integers(0, min(graph.num_edges - 1, num_non_links)))
    num_val = data.draw(st.integers(0, num_held_out))
    num_test = num_held_out - num_val
    # Any fractions whose shares of the links round down to the numbers wanted; 0 stands for none at all.
    spare = data.draw(st.floats(0.01, 0.98))
    val = (num_val and num_val + spare) / graph.num_edges
    test = (num_test and num_test + 0.99 - spare) / graph.num_edges
    split = split_links(graph, val=val, test=test, seed=data.draw(st.integers(0, 2**32)))
    split.audit()

    assert (len(split.val.links), len(split.val.non_links)) == (num_val, num_val)
    assert (len(split.test.links), len(split.test.non_links)) == (num_test, num_test)
    sets = {name: as_set(pairs) for name, pairs in parts_of(split).items()}
    assert sum(map(len, sets.values())) == len(set().union(*sets.values())) == graph.num_edges + num_val + num_test
    assert sets["train"] | sets["val_links"] | sets["test_links"] == as_set(graph.edges)
    assert all(len(pair) == 2 for pairs in sets.values() for pair in pairs)


def test_the_training_graph_keeps_all_nodes_and_what_they_carry() -> None:
    train = split_links(GRAPH, seed=1).train
    assert train.num_nodes == GRAPH.num_nodes
    assert_array_equal(sp.csr_array(train.features).toarray(), sp.csr_array(GRAPH.features).toarray())
    assert_array_equal(train.labels, GRAPH.labels)
    assert train.num_edges == GRAPH.num_edges - int(0.05 * GRAPH.num_edges) - int(0.1 * GRAPH.num_edges)


def test_held_out_pairs_are_links_first_and_labelled_so() -> None:
    held_out = split_links(GRAPH, val=0.1, seed=1).val
    num = len(held_out.links)
    assert num == int(0.1 * GRAPH.num_edges)
    assert len(held_out) == 2 * num
    assert_array_equal(held_out.pairs, np.concatenate([held_out.links, held_out.non_links]))
    assert held_out.labels.tolist() == [True] * num + [False] * num
    assert repr(held_out) == f"HeldOut({num} links, {num} non-links)"


def test_every_link_is_held_out_equally_often() -> None:
    graph = Graph.from_edges([(i, (i + step) % 20) for i in range(20) for step in (1, 3)])
    repeats, num = 2000, 6
    counts = {"val": np.zeros((20, 20)), "test": np.zeros((20, 20))}
    for seed in range(repeats):
        split = split_links(graph, val=0.15, test=0.15, seed=seed)
        for name, held_out in (("val", split.val), ("test", split.test)):
            assert len(held_out.links) == num
            counts[name][held_out.links[:, 0], held_out.links[:, 1]] += 1
    for count in counts.values():
        seen = count[graph.edges[:, 0], graph.edges[:, 1]]
        expected = repeats * num / graph.num_edges
        # Without replacement: the covariance of the counts is expected·(1 - num/E)·E/(E-1) times a projection.
        variance = expected * (1 - num / graph.num_edges) * graph.num_edges / (graph.num_edges - 1)
        tail = stats.chi2(graph.num_edges - 1).sf(((seen - expected) ** 2).sum() / variance)
        assert 1e-4 < tail < 1 - 1e-4


def test_the_seed_decides_the_split() -> None:
    hashes = [split_links(GRAPH, seed=seed).content_hash for seed in (0, 0, 1, 2)]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
    assert split_links(GRAPH).content_hash == hashes[0]


def test_the_hash_is_the_sha256_of_the_five_sets() -> None:
    split = split_links(GRAPH, seed=3)
    digest = hashlib.sha256(b"60")
    for name, pairs in parts_of(split).items():
        digest.update(f"{name},{len(pairs)}".encode() + pairs.astype("<i8").tobytes())
    assert split.content_hash == digest.hexdigest()


def test_holding_out_nothing_is_a_set_without_pairs() -> None:
    split = split_links(GRAPH, val=0, test=0)
    assert split.train.content_hash == GRAPH.content_hash
    for held_out in (split.val, split.test, HeldOut.none()):
        assert held_out.pairs.tolist() == held_out.labels.tolist() == []
        assert held_out.pairs.shape == (0, 2)


@pytest.mark.parametrize("name", ["links", "non_links"])
def test_moving_a_pair_from_one_set_to_another_changes_the_hash(name: str) -> None:
    split = split_links(GRAPH, seed=3)
    parts = parts_of(split)
    val, test = parts[f"val_{name}"], parts[f"test_{name}"]
    moved = with_set(split, f"val_{name}", val[:-1])
    moved = with_set(moved, f"test_{name}", np.concatenate([val[-1:], test]))
    assert {key: len(pairs) for key, pairs in parts_of(moved).items()} == {
        key: len(pairs) + {f"val_{name}": -1, f"test_{name}": 1}.get(key, 0) for key, pairs in parts.items()
    }
    assert moved.content_hash != split.content_hash


@pytest.mark.parametrize(("name", "num_train"), [("cora", 4488), ("citeseer", 3870), ("pubmed", 37676)])
def test_the_citation_networks_keep_the_published_number_of_training_links(name: str, num_train: int) -> None:
    split = split_links(load_dataset(name), val=0.05, test=0.10, seed=0)
    assert split.train.num_edges == num_train
    split.audit()


@pytest.mark.parametrize(
    ("fractions", "words"),
    [
        ({"val": -0.1}, ["val", "-0.1"]),
        ({"val": 1.0}, ["val", "1.0"]),
        ({"test": 1.5}, ["test", "1.5"]),
        ({"test": math.nan}, ["test", "nan"]),
        ({"val": math.inf}, ["val", "inf"]),
        ({"val": 0.5, "test": 0.5}, ["val + test", "no links to train on"]),
    ],
)
def test_fractions_that_leave_nothing_or_make_no_sense_are_refused(fractions: dict[str, Any], words: list[str]) -> None:
    message = message_of(lambda: split_links(GRAPH, **fractions))
    assert message.startswith(f"{words[0]}: ")
    assert words[1] in message


@pytest.mark.parametrize("name", ["val", "test"])
def test_a_graph_too_small_for_a_fraction_is_refused(name: str) -> None:
    small = Graph.from_edges([(i, i + 1) for i in range(9)])
    fractions: dict[str, Any] = {"val": 0.2, "test": 0.2, name: 0.1}
    message = message_of(lambda: split_links(small, **fractions))
    assert message.startswith(f"{name}: 0.1 of the graph's 9 links is less than one link")
    assert len(getattr(split_links(small, **fractions | {name: 0.0}), name)) == 0


def test_a_graph_too_dense_for_its_negatives_is_refused() -> None:
    edges = list(combinations(range(20), 2))
    complete, almost = Graph.from_edges(edges), Graph.from_edges(edges[5:], num_nodes=20)
    assert "The graph is complete" in message_of(lambda: split_links(complete))
    assert "only 5 pairs without a link, but 27 are needed" in message_of(lambda: split_links(almost))
    kept = split_links(almost, val=0.02, test=0.01)
    assert (len(kept.val), len(kept.test)) == (2 * 3, 2 * 1)


@pytest.mark.parametrize(
    "seed", [-1, 1.5, 2**64, True, "1", None, np.nan, np.array([1, 2]), [1], 1j, pytest.param(10**5000, id="huge")]
)
def test_a_seed_that_is_no_natural_number_is_refused(seed: Any) -> None:
    message = message_of(lambda: split_links(GRAPH, seed=seed))
    assert message.startswith("seed: a whole number from 0 to 18446744073709551615 is needed, got ")
    assert len(message) < 200


@pytest.mark.parametrize("name", ["val", "test"])
@pytest.mark.parametrize(
    "fraction", ["x", "0.1", None, True, 0.1j, [0.1], np.array([0.1]), {}, b"0.1", pytest.param(10**5000, id="huge")]
)
def test_a_fraction_that_is_no_number_is_refused(name: str, fraction: Any) -> None:
    message = message_of(lambda: split_links(GRAPH, **{name: fraction}))
    assert message.startswith(f"{name}: a fraction from 0 to below 1 is needed, got ")
    assert len(message) < 200


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, Fraction])
def test_fractions_and_seeds_of_every_kind_of_number_are_taken(kind: Callable[[Any], Any]) -> None:
    options: dict[str, Any] = {"val": kind(0), "test": Fraction(1, 4), "seed": np.uint16(3)}
    split = split_links(GRAPH, **options)
    assert split.content_hash == split_links(GRAPH, val=0, test=0.25, seed=3).content_hash


@pytest.mark.parametrize("seed", [2**63, 2**64 - 1])
def test_the_largest_seeds_can_be_saved(tmp_path: Path, seed: int) -> None:
    split_links(GRAPH, seed=seed).save(tmp_path / "split.npz")
    assert LinkSplit.load(tmp_path / "split.npz").seed == seed


def test_a_huge_graph_with_few_links_is_split_in_little_memory() -> None:
    tracemalloc.start()
    try:
        graph = Graph.from_edges([(0, 1), (1, 2), (2, 29_999_999)], num_nodes=30_000_000)
        split = split_links(graph, val=0.34, test=0.34)
        assert graph.index_of([29_999_999, 5]).tolist() == [29_999_999, 5]
        assert graph.ids_of([7]).tolist() == [7]
        split.audit()
        assert tracemalloc.get_traced_memory()[1] < 2**20
        assert split.train.adjacency.nnz == 2
        assert tracemalloc.get_traced_memory()[1] < 3 * 8 * 30_000_000
    finally:
        tracemalloc.stop()


# --------------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def split() -> LinkSplit:
    return split_links(GRAPH, val=0.1, test=0.2, seed=8)


@pytest.fixture
def saved(split: LinkSplit, tmp_path: Path) -> Path:
    path = tmp_path / "run" / "split.npz"
    split.save(path)
    return path


def arrays_in(path: Path) -> dict[str, Any]:
    with np.load(path) as archive:
        return dict(archive)


def rewrite(path: Path, **changes: Any) -> None:
    arrays = {name: array for name, array in (arrays_in(path) | changes).items() if array is not None}
    np.savez(path, **arrays)


def test_a_saved_split_comes_back_the_same(split: LinkSplit, saved: Path) -> None:
    loaded = LinkSplit.load(str(saved), GRAPH)
    for name, pairs in parts_of(loaded).items():
        assert_array_equal(pairs, parts_of(split)[name])
    assert (loaded.seed, loaded.content_hash) == (8, split.content_hash)
    assert loaded.train.content_hash == split.train.content_hash
    assert [path.name for path in saved.parent.iterdir()] == ["split.npz"]
    loaded.audit()


@pytest.mark.parametrize("ids", [None, [f"paper {k}" for k in range(60)], [("row", k) for k in range(60)]])
def test_a_split_alone_brings_its_nodes_and_their_ids(tmp_path: Path, ids: list[Any] | None) -> None:
    graph = Graph(GRAPH.num_nodes, GRAPH.edges, node_ids=None if ids is None else to_array(ids))
    split = split_links(graph, seed=4)
    split.save(tmp_path / "split.npz")
    loaded = LinkSplit.load(tmp_path / "split.npz")
    assert loaded.content_hash == split.content_hash
    assert loaded.train.num_nodes == 60
    assert loaded.train.features is None
    assert loaded.train.ids_of(np.arange(60)).tolist() == (ids or list(range(60)))
    loaded.audit()


def test_a_split_is_loaded_from_bytes_that_were_read_before(split: LinkSplit, saved: Path) -> None:
    content = saved.read_bytes()
    saved.unlink()
    for graph in (None, GRAPH):
        assert read_split(saved, graph, content=content).content_hash == split.content_hash
    assert message_of(lambda: read_split(saved, content=content[:-30])).startswith(f"{saved}: the file is damaged")


def test_edges_of_the_caller_stay_writable_and_those_of_a_split_are_frozen(split: LinkSplit) -> None:
    edges = GRAPH.edges.copy()
    graph = Graph(60, edges)
    assert edges.flags.writeable
    part = edges[3:]
    assert graph.with_edges(part).num_edges == len(part)
    assert part.flags.writeable
    assert edges.flags.writeable
    assert not split.train.edges.flags.writeable


def test_a_split_without_validation_pairs_is_saved_and_loaded(tmp_path: Path) -> None:
    split = split_links(GRAPH, val=0, test=0.2, seed=8)
    split.save(tmp_path / "split.npz")
    assert len(LinkSplit.load(tmp_path / "split.npz", GRAPH).val) == 0


@pytest.mark.parametrize("name", ["train", *SETS[1:]])
def test_a_tampered_array_is_noticed(saved: Path, name: str) -> None:
    pairs = arrays_in(saved)[name]
    pairs[-1] = pairs[-1, ::-1]
    rewrite(saved, **{name: pairs})
    message = message_of(lambda: LinkSplit.load(saved, GRAPH))
    assert message == f"{saved}: the contents do not match their hash; the file is damaged or was edited."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"num_nodes": 61}, "do not match their hash"),
        ({"content_hash": "0" * 64}, "do not match their hash"),
        ({"val_links": np.array([["a", "b"]])}, "val_links should be rows of two node indices, but is <U1"),
        ({"val_links": None}, "no array called val_links"),
        ({"content_hash": None}, "no array called content_hash"),
        ({"format": None}, "no array called format"),
        ({"format": 2}, "does not read"),
        ({"more": np.arange(3)}, "it holds 'more', but only"),
        ({"num_nodes": 10**15}, "more than the 100,000,000 that are supported"),
        ({"num_nodes": -1}, "num_nodes: a whole number of at least 0 is needed"),
        ({"num_nodes": np.array([60, 60])}, "num_nodes should be a whole number"),
        ({"seed": 1.5}, "seed should be a whole number"),
        ({"labels": np.array(["json:" + "[" * 10_000] * 60)}, "nested too deeply"),
        ({"labels": np.array(["json:{}"] * 60)}, "label"),
        ({"node_ids": np.zeros(60)}, "node_ids: an id occurs more than once"),
        ({"node_ids": np.zeros((60, 1))}, "node_ids should be a text or number for each node"),
        *(({name: np.arange(6)}, f"{name} should be rows of two node indices") for name in SETS),
        *(({name: np.zeros((4, 3), dtype=int)}, f"{name}: expected two columns") for name in SETS),
    ],
)
def test_an_edited_file_is_refused_by_name(saved: Path, changes: dict[str, Any], words: str) -> None:
    rewrite(saved, **changes)
    message = message_of(lambda: LinkSplit.load(saved))
    assert message.startswith(f"{saved}: ")
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.99])
def test_a_file_cut_short_is_refused_by_name(saved: Path, keep: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(keep * len(content))])
    assert message_of(lambda: LinkSplit.load(saved, GRAPH)).startswith(f"{saved}: the file is damaged or not an npz")


def test_a_file_with_flipped_bits_is_refused_by_name(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[200:230] = bytes(byte ^ 0xFF for byte in content[200:230])
    saved.write_bytes(content)
    assert message_of(lambda: LinkSplit.load(saved, GRAPH)).startswith(f"{saved}: the file is damaged or not an npz")


@pytest.mark.parametrize("content", [b"source,target\n0,1\n", b"\x00" * 100, b"PK\x03\x04 and then something else"])
def test_a_file_that_is_no_npz_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "split.npz"
    path.write_bytes(content)
    assert message_of(lambda: LinkSplit.load(path, GRAPH)).startswith(f"{path}: the file is damaged or not an npz")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.npz"
    assert message_of(lambda: LinkSplit.load(path, GRAPH)) == f"{path}: there is no such file."


def link_less() -> Graph:
    return GRAPH.with_edges(GRAPH.edges[1:])


def link_more() -> Graph:
    non_link = split_links(GRAPH, seed=1).test.non_links[:1]
    return Graph.from_edges(np.concatenate([GRAPH.edges, non_link]), num_nodes=GRAPH.num_nodes)


def node_more() -> Graph:
    return Graph.from_edges(GRAPH.edges, num_nodes=GRAPH.num_nodes + 1)


def fewer_nodes() -> Graph:
    return stochastic_block_model(30, 3, seed=6)


def other_links() -> Graph:
    return stochastic_block_model(60, 3, seed=6)


@pytest.mark.parametrize(
    "make_other",
    [
        link_less,
        link_more,
        other_links,
        node_more,
        fewer_nodes,
    ],
)
def test_a_split_of_another_graph_is_refused(split: LinkSplit, saved: Path, make_other: Callable[[], Graph]) -> None:
    other = make_other()
    assert split.is_of(GRAPH)
    assert not split.is_of(other)
    assert message_of(lambda: LinkSplit.load(saved, other)).startswith(
        f"{saved}: this split was made from another graph"
    )


# --------------------------------------------------------------------------------------------------------------- leaks


def with_set(split: LinkSplit, name: str, pairs: Pairs) -> LinkSplit:
    """The split with one of its sets replaced."""
    if name == "train":
        canonical = np.sort(pairs, axis=1)
        return replace(split, train=split.train.with_edges(canonical[np.lexsort(canonical.T[::-1])]))
    parts = parts_of(split) | {name: pairs}
    val = HeldOut(parts["val_links"], parts["val_non_links"])
    test = HeldOut(parts["test_links"], parts["test_non_links"])
    return replace(split, val=val, test=test)


def adding(split: LinkSplit, name: str, pairs: Pairs) -> LinkSplit:
    return with_set(split, name, np.concatenate([parts_of(split)[name], pairs]))


ORDERED_SETS = [(source, target) for source in SETS for target in SETS if source != target]


@pytest.mark.parametrize("direction", [1, -1], ids=["as it is", "reversed"])
@pytest.mark.parametrize(("source", "target"), ORDERED_SETS)
def test_a_pair_of_one_set_planted_in_another_is_a_leak(
    split: LinkSplit, source: str, target: str, direction: int
) -> None:
    split.audit()
    planted = parts_of(split)[source][2:4, ::direction]
    first, second = sorted((source, target), key=SETS.index)
    with pytest.raises(LeakError, match=f"^2 of the pairs in {second} are also in {first}\\.$"):
        adding(split, target, planted).audit()


@pytest.mark.parametrize("direction", [1, -1], ids=["as it is", "reversed"])
@pytest.mark.parametrize("name", SETS[1:])
def test_a_pair_twice_in_one_set_is_a_leak(split: LinkSplit, name: str, direction: int) -> None:
    planted = parts_of(split)[name][:1, ::direction]
    with pytest.raises(LeakError, match=f"^{name}: 1 row repeats a pair of the same set\\.$"):
        adding(split, name, planted).audit()


@pytest.mark.parametrize("name", SETS[1:])
def test_a_self_pair_is_a_leak(split: LinkSplit, name: str) -> None:
    row = len(parts_of(split)[name])
    with pytest.raises(LeakError, match=f"^{name}: row {row} pairs the node 7 with itself\\.$"):
        adding(split, name, np.array([[7, 7]])).audit()


@pytest.mark.parametrize("name", SETS[1:])
def test_a_pair_of_unknown_nodes_is_refused(split: LinkSplit, name: str) -> None:
    row = len(parts_of(split)[name])
    with pytest.raises(InputError, match=f"^{name}: row {row} is \\(0, 60\\)"):
        adding(split, name, np.array([[0, 60]])).audit()


@pytest.mark.parametrize("name", SETS[1:])
def test_the_direction_of_held_out_pairs_alone_is_no_leak(split: LinkSplit, name: str) -> None:
    flipped = with_set(split, name, parts_of(split)[name][:, ::-1])
    assert not np.array_equal(parts_of(flipped)[name], parts_of(split)[name])
    flipped.audit()


def test_a_split_keeps_weights_and_directions(tmp_path: Path) -> None:
    bare = stochastic_block_model(60, 2, seed=3)
    weights = np.random.default_rng(0).uniform(0.5, 2, bare.num_edges)
    graph = Graph.from_edges(bare.edges[:, ::-1], num_nodes=60, weights=weights, directed=True)
    split = split_links(graph, seed=1)
    assert graph.weights is not None
    assert split.train.weights is not None
    of_edge = dict(zip(map(tuple, graph.edges.tolist()), graph.weights.tolist(), strict=True))
    assert split.train.weights.tolist() == [of_edge[i, j] for i, j in split.train.edges.tolist()]
    assert_array_equal(split.train.directions, np.full(split.train.num_edges, -1))
    assert len(split.train.edges) == len(split_links(bare, seed=1).train.edges)
    assert split.content_hash != split_links(bare, seed=1).content_hash
    split.save(tmp_path / "split.npz")
    for again in (LinkSplit.load(tmp_path / "split.npz"), LinkSplit.load(tmp_path / "split.npz", graph)):
        assert again.content_hash == split.content_hash
        assert_array_equal(again.train.weights, split.train.weights)
        assert_array_equal(again.train.directions, split.train.directions)
    assert "another graph" in message_of(lambda: LinkSplit.load(tmp_path / "split.npz", bare))
    parts = dict(np.load(tmp_path / "split.npz"))
    parts["weights"] = parts["weights"] * 2
    np.savez(tmp_path / "split.npz", **parts)
    assert "do not match their hash" in message_of(lambda: LinkSplit.load(tmp_path / "split.npz"))
