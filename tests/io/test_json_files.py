"""JSON in files: what is written comes back, and what JSON does not know is neither written nor read."""

import json
from pathlib import Path

import pytest

from helpers import message_of
from vgae.io.json_files import read_json, write_json


def test_json_comes_back_and_keeps_letters_readable(tmp_path: Path) -> None:
    content = {"σ": [1, 2.5, None], "name": "Erdős", "nested": {"deep": True}}
    write_json(tmp_path / "config.json", content)
    assert read_json(tmp_path / "config.json") == content
    text = (tmp_path / "config.json").read_text(encoding="utf-8")
    assert json.loads(text) == content
    assert '"Erdős"' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not readable as JSON"),
        (b'{"a": 1', "not readable as JSON"),
        (b"\xff\xfe\xff", "not readable as JSON"),
        (b"[1, 2]", "expected a JSON object"),
        (b"null", "expected a JSON object"),
    ],
)
def test_a_file_that_is_no_json_object_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert message_of(lambda: read_json(path)).startswith(f"{path}: {words}")


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert [found.name for found in tmp_path.iterdir()] == ["config.json"]


def test_numbers_that_json_does_not_know_become_null(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    write_json(tmp_path / "a.json", {"a": nan, "b": [inf, -inf, 1.5, (nan, "NaN")], "c": {"d": inf}})
    assert read_json(tmp_path / "a.json") == {"a": None, "b": [None, None, 1.5, [None, "NaN"]], "c": {"d": None}}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_json_does_not_know_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(f'{{"a": {text}}}')
    assert "not readable as JSON" in message_of(lambda: read_json(tmp_path / "a.json"))


def test_json_that_is_linked_to_is_read_where_links_may_be(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text(json.dumps({"a": 1}))
    (tmp_path / "link.json").symlink_to("real.json")
    assert read_json(tmp_path / "link.json") == {"a": 1}
    assert "not a plain file" in message_of(lambda: read_json(tmp_path / "link.json", follow_links=False))
