"""Options and parts are understood in British and American spelling, and shown in one of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest

import vgae
from command import assert_refused, run_vgae
from vgae.cli.app import BY_MODEL, COMMANDS, load_command
from vgae.graph.graph import Graph
from vgae.model.spec import find
from vgae.search.domain import names_in
from vgae.spelling import PAIRS, as_known, other_spelling
from vgae.stack.config import parse_base

TWO_SPELLINGS = re.compile(r"\b\w+(?:[iy][sz](?:e|ed|er|es|ing|ation)|ours?|olors?|bors?)\b")
ONE_SPELLING = {"size", "noise"}  # which look as if they had two


def commands() -> Iterator[tuple[str, str | None]]:
    for name in COMMANDS:
        yield name, None
        yield from ((name, model) for model in BY_MODEL.get(name, {}))


def test_the_other_spelling_of_a_name_leads_back() -> None:
    for british, american in PAIRS.items():
        for before, after in ((british, american), (american, british)):
            assert other_spelling(f"--no-{before}") == f"--no-{after}"
            assert other_spelling(f"{before}_network2") == f"{after}_network2"
    assert other_spelling("--latent-dim") is None


def test_a_name_is_found_in_either_spelling_and_an_unknown_one_stays() -> None:
    assert as_known("normalised", ["normalized", "gcn"]) == "normalized"
    assert as_known("normalised", ["normalised", "normalized"]) == "normalised"
    assert as_known("nonsense", ["normalized"]) == "nonsense"
    assert as_known("colour", ["normalized"]) == "colour"


@pytest.mark.parametrize(("name", "model"), list(commands()))
def test_every_option_of_every_command_is_understood_in_both_spellings(name: str, model: str | None) -> None:
    command = load_command(name, model)
    context = command.make_context(name, ["--help"], resilient_parsing=True)
    shown = command.get_help(context)
    for each in command.params:
        for flag in (*each.opts, *each.secondary_opts):
            other = other_spelling(flag)
            words = set(TWO_SPELLINGS.findall(flag)) - ONE_SPELLING
            assert other is not None or not words, f"{flag}: its pair of spellings is missing in vgae/spelling.py"
            if other is not None and each.param_type_name == "option":
                value = [] if each.is_flag else ["rows"]
                parsed = [command.make_parser(context).parse_args([given, *value])[0] for given in (flag, other)]
                assert parsed[0] == parsed[1] != {}
                assert flag in shown
                assert other not in shown


def test_the_command_reads_a_table_alike(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("".join(f"{i},{(i * j) % 17}\n" for i in range(17) for j in (2, 3, 5)))
    (tmp_path / "nodes.csv").write_text("id,age,size\n" + "".join(f"{i},{i * 2},{i**2}\n" for i in range(17)))
    given = ("train", "links.csv", "--features", "nodes.csv", "--iterations", "2", "--no-verdict", "--preset", "paper")
    british = (*given, "--standardise", "--normalise", "rows", "--encoder", "normalised", "--out", "british")
    american = (*given, "--standardize", "--normalize", "rows", "--encoder", "normalized", "--out", "american")
    results = [run_vgae(*each, cwd=tmp_path) for each in (british, american)]
    assert [each.returncode for each in results] == [0, 0], results
    assert results[0].stdout == results[1].stdout
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("british", "american")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("flag", ["--standardise", "--standardize"])
def test_a_model_with_options_of_its_own_knows_both_spellings(tmp_path: Path, flag: str) -> None:
    assert_refused(run_vgae("train", "nothing.csv", "--model", "stack", flag, cwd=tmp_path), "nothing.csv")


def test_keywords_of_python_are_understood_in_both_spellings(tmp_path: Path) -> None:
    links = pandas.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0]})
    nodes = pandas.DataFrame({"id": [0, 1, 2], "age": [10.0, 20.0, 60.0]})
    one = Graph.from_frame(links, nodes=nodes, standardise=True, normalise="columns")
    assert one.content_hash == Graph.from_frame(links, nodes=nodes, standardize=True, normalize="columns").content_hash
    assert one.content_hash != Graph.from_frame(links, nodes=nodes).content_hash
    links.to_csv(tmp_path / "links.csv", index=False)
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    for keywords in ({"standardise": True, "normalise": "columns"}, {"standardize": True, "normalize": "columns"}):
        read = vgae.read_graph(tmp_path / "links.csv", features=tmp_path / "nodes.csv", **keywords)
        assert read.content_hash == one.content_hash
    with pytest.raises(TypeError, match="two spellings"):
        vgae.read_graph(tmp_path / "links.csv", standardise=True, standardize=True)


def test_parts_and_bases_are_found_in_both_spellings() -> None:
    assert find("encoder", "normalised:hops=2") == find("encoder", "normalized:hops=2")
    assert find("prior", "laplacian:normalised=true") == find("prior", "laplacian:normalized=true")
    assert parse_base("neighbors") == parse_base("neighbours")
    assert parse_base("normalised2").text == "normalized2"
    assert names_in("gcn,normalised", "encoder", ("gcn", "normalized")) == ("gcn", "normalized")
