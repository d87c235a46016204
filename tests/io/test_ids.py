"""Ids in files: they come back as they were, cost what they hold, and damage is noticed."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import message_of
from vgae.errors import InputError
from vgae.graph.convert import text_array, to_array
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit, split_links
from vgae.io.embeddings import write_embeddings
from vgae.io.graphs import read_npz_graph, write_graph
from vgae.io.ids import BYTES_MARK, pack_ids, unpack_ids
from vgae.io.tables import read_any

TEXTS = st.one_of(
    st.text(max_size=5),
    st.text(st.characters(), max_size=3),  # with lone surrogates
    st.builds(str.__mul__, st.text(min_size=1, max_size=2), st.integers(30, 500)),
    st.sampled_from(["", "\0", "a\0", "json:", 'json:"a"', "json:{"]),
)
VALUES = st.one_of(TEXTS, st.integers(), st.booleans(), st.none(), st.tuples(TEXTS, st.integers()))


@given(ids=st.one_of(st.lists(TEXTS, min_size=1, max_size=8), st.lists(VALUES, min_size=1, max_size=8)))
def test_ids_come_back_as_they_were_and_need_no_pickle(ids: list[Any]) -> None:
    packed = pack_ids(to_array(ids))
    assert not packed.dtype.hasobject
    found = unpack_ids(packed)
    assert found.tolist() == ids
    assert [type(value) for value in found.tolist()] == [type(value) for value in ids]


@given(
    texts=st.lists(st.text(max_size=20), min_size=1, max_size=50),
    long=st.integers(0, 100_000),
    wrap=st.sampled_from([lambda text: text, lambda text: (text, 1)]),
)
def test_what_is_stored_is_in_proportion_to_the_text(texts: list[str], long: int, wrap: Any) -> None:
    ids = to_array([wrap(text) for text in (*texts, "x" * long)])
    size = sum(len(text) for text in texts) + long
    assert pack_ids(ids).nbytes <= 6 * (size + 100 * len(ids))
    assert text_array([*texts, "x" * long]).nbytes <= 4 * (size + 33 * (len(texts) + 1))


def test_arrays_as_earlier_versions_wrote_them_are_read() -> None:
    assert unpack_ids(np.array(["a", "bc"])).tolist() == ["a", "bc"]
    assert unpack_ids(np.array(["json:1", 'json:["a", 2]'])).tolist() == [1, ("a", 2)]
    assert unpack_ids(np.array([3, 1])).tolist() == [3, 1]
    assert pack_ids(np.array(["a", "bc"])).dtype == "<U2"


def test_small_numbers_that_look_like_the_mark_stay_numbers() -> None:
    numbers = np.frombuffer(BYTES_MARK + bytes(40), dtype=np.uint8)
    assert unpack_ids(pack_ids(numbers)).tolist() == numbers.tolist()


@given(data=st.data())
def test_damaged_bytes_are_refused_or_are_other_texts_of_the_same_number(data: st.DataObject) -> None:
    whole = pack_ids(to_array(["a", "bcd", "é" * 200])).tobytes()
    start = len(BYTES_MARK)
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(start, len(whole) - 1))]
    else:
        place, byte = data.draw(st.integers(start, len(whole) - 1)), data.draw(st.integers(1, 255))
        damaged = whole[:place] + bytes([whole[place] ^ byte]) + whole[place + 1 :]
    try:
        found = unpack_ids(np.frombuffer(damaged, dtype=np.uint8)).tolist()
    except InputError:
        return
    assert len(damaged) == len(whole)
    assert len(found) == 3


@pytest.mark.parametrize("rows", [['json:{"a": 1}'] * 3, ["json:" + "[" * 100_000] * 3, ["json:nothing"] * 3])
def test_json_that_is_no_id_is_refused(tmp_path: Path, rows: list[str]) -> None:
    edges = np.array([[0, 1], [1, 2]])
    np.savez(tmp_path / "graph.npz", edges=edges, node_ids=np.array(rows))
    assert message_of(lambda: read_npz_graph(tmp_path / "graph.npz")).startswith(f"{tmp_path / 'graph.npz'}: ")
    split = split_links(Graph.from_edges([(i, i + 1) for i in range(20)]))
    split.save(tmp_path / "split.npz")
    parts = dict(np.load(tmp_path / "split.npz"))
    np.savez(tmp_path / "split.npz", **(parts | {"node_ids": np.array([rows[0]] * 21)}))
    assert message_of(lambda: LinkSplit.load(tmp_path / "split.npz")).startswith(f"{tmp_path / 'split.npz'}: ")


def test_one_long_id_among_many_costs_its_own_length_everywhere(tmp_path: Path) -> None:
    long = "x" * 100_000
    names = [f"n{i}" for i in range(4000)] + [long]
    (tmp_path / "links.csv").write_text("".join(f"{a},{b}\n" for a, b in pairwise(names)))
    graph = read_any(tmp_path / "links.csv", header=False).graph
    assert graph.node_ids is not None
    assert graph.node_ids.nbytes < 10**6
    assert graph.ids_of([4000]).tolist() == [long]
    write_graph(tmp_path / "graph.npz", graph)
    assert np.load(tmp_path / "graph.npz")["node_ids"].nbytes < 10**6
    assert read_npz_graph(tmp_path / "graph.npz").ids_of(range(4001)).tolist() == names
    split_links(graph).save(tmp_path / "split.npz")
    again = LinkSplit.load(tmp_path / "split.npz").train
    assert again.ids_of(range(4001)).tolist() == names
    assert Graph.from_edges([(long, name) for name in names[:-1]]).node_ids.nbytes < 10**6  # type: ignore[union-attr]
    write_embeddings(tmp_path / "z.npz", names, np.zeros((4001, 2), dtype=np.float32))
    stored = np.load(tmp_path / "z.npz")["ids"]
    assert stored.nbytes < 10**6
    assert unpack_ids(stored).tolist() == names
    nodes = "id,class\n" + "".join(f"{name},{name[:50_000]}\n" for name in names)
    (tmp_path / "nodes.csv").write_text(nodes)
    labels = read_any(tmp_path / "links.csv", header=False, features=tmp_path / "nodes.csv", label="class").graph.labels
    assert labels is not None
    assert labels.nbytes < 10**6
    assert json.dumps(labels.tolist()[:2]) == '["n0", "n1"]'
