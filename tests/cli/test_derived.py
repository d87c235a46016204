"""Options of commands come from fields of classes: name, type, default, help and check are written there alone."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import typer
import typer.main

from command import assert_refused, run_vgae
from vgae.cli import app
from vgae.cli.app import COMMANDS, load_command
from vgae.cli.options import given_options, with_options
from vgae.errors import InputError
from vgae.options import Options, option, options_of
from vgae.train.config import Config

SHAPES = ["round"]  # what is registered, which may become more


@dataclass(frozen=True)
class Shape:
    """What a text such as "round:2" stands for."""

    name: str
    size: int = 1

    @classmethod
    def read(cls, given: Any) -> "Shape":
        """The shape that a text names."""
        if isinstance(given, Shape):
            return given
        name, _, size = str(given).partition(":")
        if name not in SHAPES:
            raise InputError(f"shape: {name!r} is not one of {', '.join(SHAPES)}.")
        return cls(name, int(size or 1))

    def __str__(self) -> str:
        return f"{self.name}:{self.size}"


@dataclass(frozen=True)
class Cake(Options):
    """Options of every kind."""

    layers: int = option(2, least=1, help="Number of layers.")
    sugar: float | None = option(None, least=0, help="Grams of sugar.  [default: to taste]")
    filling: str = option("jam", choices=("jam", "cream"), help="jam or cream.")
    baked: bool = option(True, help="Whether it is baked.")
    iced: bool = option(False, help="Whether it is iced.")
    cut: bool | None = option(None, help="Whether it is cut.")
    features: bool = option(True, flag="--plain", help="Whether it has decorations.")
    shape: Shape = option(Shape("round"), convert=Shape.read, help="Shape.", more_help=lambda: " ".join(SHAPES))
    box: Path | None = option(None, convert=Path, help="What it is packed in.")


@dataclass(frozen=True)
class Guests(Options):
    """Has an option of the same name as a cake."""

    features: str | None = option(None, help="What the guests look like.")


def baked(*arguments: str) -> tuple[str, Cake, Guests, int]:
    """What a command's function is given for these arguments."""
    given: list[Any] = []

    def bake(
        name: Annotated[str, typer.Argument()], *, top: Annotated[int, typer.Option()] = 3, cake: Cake, guests: Guests
    ) -> None:
        given.extend((name, cake, guests, top))

    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command()(with_options(bake))
    typer.main.get_command(single)(list(arguments), standalone_mode=False)
    return given[0], given[1], given[2], given[3]


def test_without_arguments_every_field_has_its_default() -> None:
    assert baked("tea") == ("tea", Cake(), Guests(), 3)
    assert given_options(Cake()) == {}


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (["--layers", "5"], {"layers": 5}),
        (["--sugar", "1e2"], {"sugar": 100.0}),
        (["--filling", "cream"], {"filling": "cream"}),
        (["--no-baked"], {"baked": False}),
        (["--iced"], {"iced": True}),
        (["--cut"], {"cut": True}),
        (["--no-cut"], {"cut": False}),
        (["--plain"], {"features": False}),
        (["--shape", "round:4"], {"shape": Shape("round", 4)}),
        (["--box", "a/b"], {"box": Path("a/b")}),
    ],
)
def test_an_argument_changes_its_field(arguments: list[str], changed: dict[str, Any]) -> None:
    _, cake, guests, _ = baked("tea", *arguments)
    assert cake == Cake(**changed)
    assert given_options(cake) == changed
    assert guests == Guests()


def test_two_classes_may_have_a_field_of_the_same_name() -> None:
    _, cake, guests, top = baked("tea", "--plain", "--features", "hats", "--top", "1")
    assert (cake, guests, top) == (Cake(features=False), Guests(features="hats"), 1)


@pytest.mark.parametrize("arguments", [["--layers", "0"], ["--filling", "mud"], ["--shape", "flat"]])
def test_values_are_checked_by_the_class(arguments: list[str]) -> None:
    with pytest.raises(InputError, match=arguments[0].removeprefix("--")):
        baked("tea", *arguments)


@pytest.fixture
def bakery(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command `train` takes a cake."""

    def train(cake: Cake) -> None:
        assert cake == Cake()

    def import_module(name: str) -> Any:
        return SimpleNamespace(train=train) if name == "vgae.cli.train" else real(name)

    real: Callable[[str], Any] = app.import_module  # type: ignore[attr-defined]
    monkeypatch.setattr(app, "import_module", import_module)
    yield
    SHAPES[1:] = []


@pytest.mark.usefixtures("bakery")
def test_help_knows_what_is_registered_at_the_moment(tmp_path: Path) -> None:
    before = run_vgae("train", "--help", cwd=tmp_path).stdout
    SHAPES.append("oblong")
    after = run_vgae("train", "--help", cwd=tmp_path).stdout
    assert "Shape. round  [default: round:1]" in before
    assert "Shape. round oblong  [default: round:1]" in after
    for shown in ("--layers", "--sugar", "--no-baked", "--iced", "--cut / --no-cut", "--plain", "to taste"):
        assert shown in after


@pytest.mark.parametrize("name", ["train", "plan"])
def test_every_field_of_the_configuration_is_an_option(tmp_path: Path, name: str) -> None:
    shown = " ".join(run_vgae(name, "--help", cwd=tmp_path).stdout.split())
    assert len(options_of(Config)) == len(fields(Config))
    for each in options_of(Config):
        flag = each.rule.flag or f"--{each.name.replace('_', '-')}"
        assert f"{flag} " in shown
        assert " ".join(each.help.split()) in shown.replace("precision- recall", "precision-recall")


def test_plan_takes_every_option_of_the_configuration(tmp_path: Path) -> None:
    assert_refused(run_vgae("plan", "cora", "--eval-every", "0", cwd=tmp_path), "eval_every")
    assert_refused(run_vgae("plan", "cora", "--weighting", "heavy", cwd=tmp_path), "weighting", "paper, elbo")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_the_function_of_its_name_and_has_the_help_of_the_table(tmp_path: Path, name: str) -> None:
    function = inspect.unwrap(load_command(name).callback)
    assert function.__name__ == name
    assert function.__module__ == COMMANDS[name].module
    assert len(inspect.signature(function).parameters) <= 8
    shown = run_vgae(name, "--help", cwd=tmp_path).stdout
    listed = run_vgae(cwd=tmp_path).stdout
    for text in (shown, listed):
        assert " ".join(COMMANDS[name].help.split()) in " ".join(text.split()).replace("precision- ", "precision-")


def test_a_misspelt_command_is_refused_with_the_right_one(tmp_path: Path) -> None:
    assert_refused(run_vgae("trian", "cora", cwd=tmp_path), "trian", "train")
