"""Messages: one line that can be shown anywhere and is not endless, whatever they quote."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vgae
from helpers import message_of
from vgae.errors import LONGEST, InputError, OutputClosedError, SaveError, StoppedError, TrainingError, VgaeError
from vgae.graph.split import LeakError
from vgae.visible import visible

KINDS = (VgaeError, InputError, TrainingError, SaveError, StoppedError, OutputClosedError, LeakError)


@given(st.sampled_from(KINDS), st.text())
def test_a_message_is_one_visible_line(kind: type[VgaeError], text: str) -> None:
    error = kind(text)
    assert str(error) == visible(text)
    assert len(str(error).splitlines()) <= 1
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own


@pytest.mark.parametrize("length", [0, 1, LONGEST - 40, LONGEST - 20, LONGEST, LONGEST + 1, 10 * LONGEST, 300_000])
def test_a_message_about_input_keeps_its_beginning_and_its_end(length: int) -> None:
    whole = f"a.csv: row 1 names {'x' * length}, which is no node."
    message = str(InputError(whole))
    assert message == whole if len(whole) <= LONGEST else len(message) == LONGEST
    assert message.startswith("a.csv: row 1 names ")
    assert message.endswith(", which is no node.")
    assert str(InputError(message)) == message


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "\u202egnp", "a\x85b", "x" * 200])
def test_a_file_of_any_name_is_named_on_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name} run").mkdir()
    (tmp_path / f"{name} run" / "config.json").write_text("{}")
    for take in (
        lambda: vgae.LinkSplit.load(tmp_path / f"{name}.npz"),
        lambda: vgae.load(tmp_path / name),
        lambda: vgae.load(tmp_path / f"{name} run"),
        lambda: vgae.read_graph(tmp_path / f"{name}.npz"),
    ):
        message = message_of(take)
        assert message == visible(message)
        assert message.count(visible(name)) == 1


@pytest.mark.parametrize("path", [None, 3, 2.5, b"run", ["run"], ...], ids=repr)
def test_what_is_no_name_of_a_file_is_refused(path: Any, tmp_path: Path) -> None:
    graph = vgae.stochastic_block_model(12, 2, seed=0)
    split = vgae.split_links(graph)
    model = vgae.GAE(iterations=1, device="cpu").fit(graph)
    for take in (
        lambda: vgae.load(path),
        lambda: vgae.LinkSplit.load(path),
        lambda: vgae.write_graph(path, graph),
        lambda: split.save(path),
        lambda: model.save(path),
    ):
        assert "the name of a file or folder is needed, got " in message_of(take)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [None, [], [(0, 1)], "test", 3], ids=repr)
def test_evaluating_something_else_than_held_out_pairs_is_refused(given: Any) -> None:
    model = vgae.GAE(iterations=1, device="cpu").fit(vgae.stochastic_block_model(12, 2, seed=0))
    assert message_of(lambda: vgae.evaluate(model, given)).startswith("held_out: held-out pairs are needed, ")
