"""Some cases of each kind that `benchmarks/fuzz.py` runs by the thousand: read as written, or refused in a line."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from fuzzing import KINDS, Case, remove_intact, run_case
from fuzzing.case import WrongResultError
from fuzzing.made import STYLES, links_of, make_graph, require_same_weights
from vgae.errors import InputError
from vgae.graph.graph import Graph

CASES = 22  # of each kind
SEED = 20_000


@pytest.fixture(scope="module", autouse=True)
def _clean() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries warn of in damaged files is not the matter here
        yield
    remove_intact()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_was_written(kind: str, tmp_path: Path) -> None:
    outcomes = {seed: run_case(KINDS, kind, seed, tmp_path / "case") for seed in range(SEED, SEED + CASES)}
    again = f"python benchmarks/fuzz.py --kind {kind} --cases 1 --seed"
    assert {f"{again} {seed}": outcome.failure for seed, outcome in outcomes.items() if outcome.failure} == {}
    assert sum(outcome.num_read for outcome in outcomes.values()) > 0
    assert sum(outcome.num_refused for outcome in outcomes.values()) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_its_seed(kind: str, tmp_path: Path) -> None:
    """Same kind and seed, same files and same outcome: what fails can be repeated."""
    found = []
    for name in ("one", "two"):
        outcome = run_case(KINDS, kind, SEED, tmp_path / name)
        plain = sorted(path for path in (tmp_path / name).glob("*") if path.is_file())
        found.append((outcome, {path.name: path.read_bytes() for path in plain if path.suffix != ".gz"}))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("one sentence, but far too long " * 100 + ".", "characters"),
        ("no end", "does not end like a sentence"),
    ],
)
def test_a_message_that_is_no_sentence_fails(words: str, wrong: str, tmp_path: Path) -> None:
    case = Case("tables", 0, tmp_path)
    with pytest.raises(WrongResultError, match=wrong):
        case.require_sentence(words)
    with pytest.raises(WrongResultError, match="cannot be printed"):
        case.require_sentence("a line\nand another.")

    def refuse() -> None:
        raise InputError("edges: there are none.")

    assert case.attempt(refuse) is None
    assert (case.num_read, case.num_refused) == (0, 1)


def test_a_foreign_exception_fails(tmp_path: Path) -> None:
    def broken(_: Case) -> None:
        raise KeyError("edges")

    outcome = run_case({"broken": broken}, "broken", 0, tmp_path / "case")
    assert "KeyError: 'edges'" in outcome.failure


@pytest.mark.parametrize("style", STYLES)
def test_the_reference_agrees_with_links_between_ids(style: str) -> None:
    """The plain Python that says what has to come back, against the graph that is made of the same rows in memory."""
    for seed in range(20):
        made = make_graph(Random(seed), style, weighted=True)  # noqa: S311 - repeatable, not secret
        graph = Graph.from_edges(made.rows, node_ids=made.ids, weights=made.weights, directed=made.directed)
        assert links_of(graph) == made.links()
        require_same_weights(made, graph)
