"""Options of reading: None is as good as not given, and a keyword that is not known is named by the function."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

import vgae
from helpers import message_of
from vgae.graph.graph import Graph
from vgae.io.options import LinkOptions, NodeOptions, names_of
from vgae.io.tables import read_any, read_frame
from vgae.options import options_of

FRAME = pandas.DataFrame({"who": ["a", "b"], "whom": ["b", "c"], "times": [2.0, 3.0]})
EVERY = names_of(LinkOptions, NodeOptions)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    path = tmp_path / "links.csv"
    FRAME.to_csv(path, index=False)
    return path


def test_every_option_has_words_for_the_help() -> None:
    for option in (*options_of(LinkOptions), *options_of(NodeOptions)):
        assert option.help.endswith((".", "]")), option.name
    assert len(set(EVERY)) == len(EVERY)


def test_none_counts_as_not_given(links: Path) -> None:
    plain, none = read_any(links), read_any(links, **dict.fromkeys((*EVERY, "features", "recipe")))
    assert none.graph.content_hash == plain.graph.content_hash
    assert none.notes == plain.notes
    of_frame = dict.fromkeys(
        ("source", "target", "weight", "directed", "nodes", "id", "label", "standardise", "impute")
    )
    assert read_frame(FRAME, **of_frame).graph.content_hash == plain.graph.content_hash


def test_columns_may_be_numbers_of_any_type(links: Path) -> None:
    for source, target in ((3, 1), ("3", "1"), ("times", "who")):
        graph = vgae.read_graph(links, source=source, target=target, header=True)
        assert set(graph.ids_of(graph.edges).ravel().tolist()) == {"a", "b", "2.0", "3.0"}


@pytest.mark.parametrize("wrong", [0, 4, -1, "9" * 5000])
def test_a_column_that_is_not_there_is_named(links: Path, wrong: Any) -> None:
    words = f"{links}: there is no column '{str(wrong)[:100]}"
    assert message_of(lambda: vgae.read_graph(links, source=wrong)).startswith(words)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("read_graph", lambda folder, **options: vgae.read_graph(folder / "links.csv", **options)),
        ("read_graph", lambda folder, **options: vgae.read_graph(folder / "graph.graphml", **options)),
        ("read_graph", lambda folder, **options: vgae.read_graph(folder / "graph.npz", **options)),
        ("from_frame", lambda _, **options: Graph.from_frame(FRAME, **options)),
        ("read_more", lambda folder, **options: vgae.read_more(vgae.read_graph(folder / "links.csv"), None, **options)),
    ],
    ids=["table", "graphml", "npz", "frame", "more"],
)
@pytest.mark.parametrize("value", [1, None])
def test_an_unknown_keyword_is_named_by_the_function(
    tmp_path: Path, links: Path, name: str, read: Callable[..., Any], value: int | None
) -> None:
    assert links.parent == tmp_path
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'sauce'$"):
        read(tmp_path, sauce=value)


@pytest.mark.parametrize("name", ["delimiter", "header", "node_attributes", "features"])
def test_a_frame_has_no_options_of_files(name: str) -> None:
    with pytest.raises(TypeError, match=f"'{name}'"):
        Graph.from_frame(FRAME, **{name: "x"})


@pytest.mark.parametrize("name", ["header", "directed", "standardise", "node_attributes"])
@pytest.mark.parametrize("value", ["no", 0, 1.0])
def test_true_or_false_is_nothing_else(tmp_path: Path, name: str, value: Any) -> None:
    cls = LinkOptions if name in names_of(LinkOptions) else NodeOptions
    assert message_of(lambda: cls(**{name: value})) == f"{name}: True or False is needed, got {value!r}."
    (tmp_path / "graph.graphml").write_text("")
    if name == "node_attributes":
        assert f"{name}: True or False" in message_of(
            lambda: vgae.read_graph(tmp_path / "graph.graphml", **{name: value})
        )
