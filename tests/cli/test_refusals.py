"""Wrong input to every command: one sentence and exit code 2, whatever it is, and nothing written."""

import os
import shutil
from itertools import product
from pathlib import Path

import pytest

import vgae
from command import run_vgae

NOISE = bytes(range(256)) * 2
FILES = {
    "nothing.csv": b"",
    "nothing.npz": b"",
    "nothing.parquet": b"",
    "nothing.graphml": b"",
    "nothing.json": b"",
    "noise.csv": NOISE,
    "noise.npz": NOISE,
    "noise.parquet": NOISE,
    "noise.graphml": NOISE,
    "noise.json": NOISE,
    "text": b"some text\n",
    "pairs.csv": b"0,5\n3,9\n",
}
NAMES = [  # of files that are no graph, no table, no run
    *(name for name in FILES if name != "pairs.csv"),
    "nowhere.csv",
    "nowhere",
    "folder",
    "folder.csv",
    "folder.npz",
    "folder.graphml",
    "loop.csv",
    "pairs.csv/below.csv",
    "run/config.json",
    "caf\udce9.csv",  # an argument that is not UTF-8
    "\x1b[31mred\u202e.csv",
    "nul\0.csv",
    "x" * 300 + ".csv",
    "x" * 5000,
    "",
    "-",
]
READING = [
    "train @ --out new",
    "plan @",
    "baseline cn @",
    "evaluate @",
    "plot @",
    "recommend @",
    "similar @ 0",
    "cluster @ --k 2",
    "predict @ pairs.csv",
    "predict run @",
    "embed @ --out new.csv",
    "embed run --out new.csv --graph @",
    "embed run --out new.csv --new-links @",
    "embed run --out new.csv --features @",
    "train graph.npz --out new --features @",
    "report @ --out new.md",
]
OUT = ["folder", "folder.csv", "text/new.csv", "/proc/new.csv", "nul\0.csv", "x" * 300 + ".csv", ""]
WRITING = [
    "train graph.npz --iterations 1 --out @",
    "embed run --out @",
    "recommend run --out @",
    "cluster run --k 2 --out @",
    "predict run pairs.csv --out @",
    "plot run --kind training --out @",
    "report results.json --out @",
    "reproduce --quick --dataset cora --model SC --out @",
]
NO_FOLDERS = ["text", "/proc", "nul\0", "x" * 300]
WRITING_BELOW = [
    *(f"embed run --out @/new.{ending}" for ending in ("csv", "parquet", "npz", "txt")),
    *(f"cluster run --k 2 --out @/new.{ending}" for ending in ("csv", "parquet")),
    *(f"plot run --kind training --out @/new.{ending}" for ending in ("png", "svg", "pdf")),
]
NUMBERS = ["0", "-1", "99999999999999999999999", "nan", "inf", "1e9", "", "many", "\x1b[1m"]
COUNTING = [
    *(f"train graph.npz --iterations 1 --out new --{name} @" for name in ("hidden-dim", "latent-dim", "eval-every")),
    *(f"train graph.npz --out new --{name} @" for name in ("iterations", "num-negatives", "early-stopping")),
    *(f"train graph.npz --iterations 1 --out new --{name} @" for name in ("model", "objective", "weighting", "device")),
    *(f"baseline cn graph.npz --{name} @" for name in ("val", "test")),
    "recommend run --top @",
    "similar run 0 --top @",
    "cluster run --k @",
    "reproduce --out new --runs @",
    "reproduce --out new --dataset @",
    "reproduce --out new --figure @",
    "plot run --kind @ --out new.png",
    "plot run --projection @ --out new.png",
    "baseline @ graph.npz",
]
FINE = {("val", "0"), ("test", "0"), ("top", "99999999999999999999999")}  # what these commands take


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    for name in ("folder", "folder.csv", "folder.npz", "folder.graphml"):
        (folder / name).mkdir()
        (folder / name / "mine.txt").write_text("mine")
    (folder / "loop.csv").symlink_to("loop.csv")
    shutil.copy(Path(__file__).parents[2] / "docs/data/one-split.json", folder / "results.json")
    vgae.write_graph(folder / "graph.npz", vgae.stochastic_block_model(60, 3, feature_dim=5, seed=0))
    trained = run_vgae("train", "graph.npz", "--iterations", "2", "--out", "run", cwd=folder)
    assert trained.returncode == 0, trained.stderr
    return folder


def refuse(place: Path, command: str, value: str) -> None:
    """Expect exit code 2, a sentence without anything that a terminal would obey, and all files as they were."""
    before = tree(place)
    result = run_vgae(*(part.replace("@", value) for part in command.split(" ")), cwd=place)
    assert result.returncode == 2, (command, value, result.stderr[-500:])
    assert result.stdout == ""
    sentence = result.stderr.splitlines()[-1]
    assert sentence.startswith("vgae: ")
    assert sentence.endswith(".")
    assert "Unexpected" not in sentence
    assert sentence.isprintable()
    assert tree(place) == before


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if not path.name.startswith("loop")
    }


@pytest.mark.parametrize("command", READING)
def test_what_cannot_be_read_is_refused(place: Path, command: str) -> None:
    for name in NAMES:
        refuse(place, command, name)


@pytest.mark.parametrize("command", WRITING)
def test_what_cannot_be_written_is_refused(place: Path, command: str) -> None:
    for name in OUT:
        refuse(place, command, name)


@pytest.mark.parametrize("command", WRITING_BELOW)
def test_what_is_no_folder_is_refused(place: Path, command: str) -> None:
    for name in NO_FOLDERS:
        refuse(place, command, name)


@pytest.mark.parametrize("command", COUNTING)
def test_impossible_numbers_and_names_are_refused(place: Path, command: str) -> None:
    option = command.split(" @")[0].split("--")[-1]
    for value in NUMBERS:
        if (option, value) not in FINE:
            refuse(place, command, value)


@pytest.mark.parametrize(
    ("first", "second"), list(product(["graph.npz", "run", "pairs.csv", "text", "results.json"], repeat=2))
)
def test_files_in_each_others_places_are_told_apart(place: Path, first: str, second: str) -> None:
    """A graph where a run is expected and the other way round, in any combination: a result or a sentence."""
    before = tree(place)
    for command in (f"predict {first} {second}", f"embed {first} --graph {second} --out new.csv", f"similar {first} 0"):
        result = run_vgae(*command.split(" "), cwd=place)
        assert result.returncode in (0, 2)
        assert "Unexpected" not in result.stderr
        (place / "new.csv").unlink(missing_ok=True)
    assert tree(place) == before


def test_more_than_there_is_gives_all_there_is(place: Path) -> None:
    num_pairs = 60 * 59 // 2
    listed = run_vgae("recommend", "run", "--top", "99999999999999999999999", cwd=place)
    known = vgae.read_graph(place / "graph.npz").num_edges
    assert len(listed.stdout.splitlines()) == 1 + num_pairs - known
    assert len(run_vgae("similar", "run", "0", "--top", "1000", cwd=place).stdout.splitlines()) == 60


def test_options_that_exclude_each_other_are_named(place: Path) -> None:
    result = run_vgae("recommend", "run", "--node", "0", "--every-node", cwd=place)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--node and --every-node" in result.stderr


def test_a_dataset_in_place_of_the_runs_graph(place: Path) -> None:
    """It is taken, with its own features; where those do not fit, that is what is said."""
    result = run_vgae("embed", "run", "--graph", "Cora", "--out", "new.csv", cwd=place)
    assert result.returncode == 2
    assert "trained on 5 columns, but this graph has 1433" in result.stderr
    result = run_vgae("embed", "run", "--graph", "cora", "--id", "name", "--out", "new.csv", cwd=place)
    assert "cora: this is a dataset, which is read without options; id is only for files of your own" in result.stderr
    assert "recipe" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written_is_refused(place: Path) -> None:
    (place / "folder").chmod(0o500)
    refuse(place, "recommend run --out @", "folder/new.csv")
    (place / "folder").chmod(0o700)
