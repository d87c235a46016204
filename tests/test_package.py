"""The package as others get it: what the wheel and the source archive hold, and that they install and run.

The wheel is installed in bare virtual environments. What it depends on is not installed there again, which would take
gigabytes: symbolic links point to the environment of this suite, except to what only extras bring. `make try-wheel` is
the same with nothing borrowed.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest

import vgae

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HIDDEN = ("gensim", "matplotlib", "numba", "optuna", "pandas", "polars", "tensorboard", "torch_geometric")
TOOLS = ("hatchling", "twine", "check_wheel_contents")

needs_tools = pytest.mark.skipif(
    any(find_spec(name) is None for name in TOOLS), reason="what builds a release is not installed: vgae[release]"
)


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Standard output of a command that must succeed; PYTHONPATH is not passed on."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run([str(each) for each in command], cwd=cwd, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


def build(source: Path, folder: Path, *kinds: str) -> None:
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, *kinds, cwd=source)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def contents(wheel: Path) -> dict[str, str]:
    """The hash of each file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def bare_environment(folder: Path) -> Path:
    """The Python of a virtual environment in which nothing is installed, and what vgae depends on can be imported."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for borrowed in map(Path, sys.path):
        for entry in borrowed.iterdir() if borrowed.name == "site-packages" else ():
            known = entry.name.startswith((*HIDDEN, "vgae", "_vgae")) or entry.suffix in (".pth", ".egg-link")
            if not known and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def install(python: Path, *what: str | Path) -> None:
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, *what, cwd=python.parent)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a virtual environment with the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    install(bare_environment(folder), wheel)
    return folder


# --------------------------------------------------------------------------------------------------------- the archives


@needs_tools
def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path) -> None:
    files = {path for path in (SOURCE / "vgae").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    found = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert found == {str(path.relative_to(SOURCE)) for path in files}
    assert found >= {"vgae/py.typed", "vgae/cli/completion.json", "vgae/explore/web/main.js"}


@needs_tools
def test_the_wheel_of_the_source_archive_is_the_same(built: Path, wheel: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build(source, tmp_path / "again", "--target", "wheel")
    assert contents(tmp_path / "again" / wheel.name) == contents(wheel)
    for name in ("Makefile", "constraints.txt", "tests/test_package.py", "docs/architecture.md", "LICENSE"):
        assert (source / name).read_bytes() == (ROOT / name).read_bytes()


@needs_tools
def test_the_archives_pass_the_checks_of_the_index(built: Path, wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()), cwd=tmp_path)
    run(sys.executable, "-m", "check_wheel_contents", wheel, cwd=ROOT)


@needs_tools
def test_the_metadata_bounds_no_version_from_above(wheel: Path) -> None:
    found = metadata(wheel)
    assert found["Version"] == vgae.__version__
    requirements = [line for line in found.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert "torch>=2.9" in requirements
    assert [line for line in requirements if re.search("[<~]|==[0-9]", line.partition(";")[0])] == []
    assert set(found.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


# --------------------------------------------------------------------------------------------------------- installation


@needs_tools
def test_the_installed_wheel_trains(installed: Path, tmp_path: Path) -> None:
    command = installed / "bin" / "vgae"
    assert run(command, "--version", cwd=tmp_path) == f"{vgae.__version__}\n"
    code = "import vgae; print(vgae.__file__)"
    assert run(installed / "bin" / "python", "-c", code, cwd=tmp_path).startswith(str(installed))
    printed = run(command, "train", "cora", cwd=tmp_path)
    scores = dict(re.findall(r"^(\w+) +([0-9.]+) +[0-9.]+$", printed, re.MULTILINE))
    assert float(scores["test"]) > 88.0


@needs_tools
def test_the_version_is_right_in_every_way_of_running(installed: Path, tmp_path: Path) -> None:
    expected = f"{vgae.__version__}\n"
    python = bare_environment(tmp_path / "tree")
    assert run(python, "-m", "vgae", "--version", cwd=tmp_path, PYTHONPATH=str(SOURCE)) == expected
    assert run(installed / "bin" / "python", "-m", "vgae", "--version", cwd=tmp_path) == expected
    install(python, "--editable", ROOT)
    assert run(tmp_path / "tree" / "bin" / "vgae", "--version", cwd=tmp_path) == expected
    code = "from importlib.metadata import version; import vgae; print(vgae.__file__, version('vgae'))"
    assert run(python, "-c", code, cwd=tmp_path) == f"{SOURCE / 'vgae' / '__init__.py'} {expected}"


# ------------------------------------------------------------------------------------------------ what has to agree


def test_files_that_name_the_version_agree() -> None:
    assert "version" in PROJECT["dynamic"]
    assert f"\nversion: {vgae.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    released = re.findall(r"^## \[([0-9.]+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == vgae.__version__


def test_python_versions_in_the_metadata_are_those_of_the_workflow() -> None:
    prefix = "Programming Language :: Python :: "
    listed = [each.removeprefix(prefix) for each in PROJECT["classifiers"] if re.match(rf"{prefix}3\.\d+$", each)]
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"3\.\d+", matrix) == listed
    assert PROJECT["requires-python"] == f">={listed[0]}"


def test_make_installs_by_the_constraints_alone() -> None:
    makefile = (ROOT / "Makefile").read_text()
    installing = [line for line in makefile.splitlines() if "pip install" in line]
    assert [line for line in installing if "--constraint constraints.txt" not in line] == []
    assert any(line.startswith("PIP_INSTALL := ") for line in installing)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert set(pinned) == {"torch"}


def test_every_extra_is_explained() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    for extra in PROJECT["optional-dependencies"]:
        assert f"| `{extra}` |" in pages, extra
