"""What `benchmarks/large.py` makes of its package, without the package: a table, a part of it, what it measures by."""

import importlib.util
import io
import json
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

import vgae

pytest.importorskip("resource")  # by which the script measures memory; not everywhere

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "large.py"
DEPENDENTS = {"lodash": ["grunt", "@scope/tool", "mocha "], "@scope/tool": ["grunt"], "": ["grunt"], "grunt": [""]}
DEV_DEPENDENTS = {"mocha": ["lodash", "grunt"], "lodash": ["grunt"]}
LINKS = [
    ("grunt", "lodash"),
    ("@scope/tool", "lodash"),
    ("mocha ", "lodash"),
    ("grunt", "@scope/tool"),
    ("lodash", "mocha"),
    ("grunt", "mocha"),
    ("grunt", "lodash"),
]


@pytest.fixture(scope="module")
def large() -> ModuleType:
    spec = importlib.util.spec_from_file_location("large_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def packed(files: Mapping[str, bytes]) -> bytes:
    """A gzipped tar of these files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    inner = {
        kind: packed({f"{kind}/{name}.json": json.dumps(names).encode() for name, names in lists.items()})
        for kind, lists in (("dependents", DEPENDENTS), ("devDependents", DEV_DEPENDENTS))
    }
    others = {"package/package.json": b"{}", "package/counts.json": b"[]"}
    path = tmp_path / "package.tgz"
    path.write_bytes(packed(others | {f"package/{kind}.tgz": content for kind, content in inner.items()}))
    return path


def test_each_dependent_is_a_link_to_the_package_of_its_file_and_empty_names_are_none(
    large: ModuleType, tarball: Path
) -> None:
    assert list(large.dependencies(tarball)) == LINKS


def test_the_table_is_a_graph_that_the_library_reads(large: ModuleType, tarball: Path, tmp_path: Path) -> None:
    table = tmp_path / "links.parquet"
    assert large.make_table(str(tarball), str(table), "0") == {"rows": 7, "names": 5}
    graph = vgae.read_graph(table, directed=True)
    assert sorted(graph.ids) == ["@scope/tool", "grunt", "lodash", "mocha"]
    arcs = {(graph.ids[i], graph.ids[j]) for i, j in graph.arcs.tolist()}
    assert arcs == {(first.strip(), second.strip()) for first, second in LINKS}


def test_a_part_of_the_graph_has_the_links_among_the_packages_with_most(large: ModuleType) -> None:
    links = [("a", "hub"), ("b", "hub"), ("c", "hub"), ("a", "b"), ("c", "d")]
    assert large.among_busiest(links, 3) == [("a", "hub"), ("b", "hub"), ("a", "b")]
    assert large.among_busiest(links, 4) == links[:4]
    assert large.among_busiest(links, 99) == links


def test_known_links_loops_and_unknown_names_are_invented(large: ModuleType) -> None:
    known = [("a ", "b"), ("b", "c")]
    recommended = [("a", "c"), ("b", "a"), ("a", "b"), ("c", "c"), ("a", "nobody")]
    assert large.num_invented(recommended, known, directed=False) == 4
    assert large.num_invented(recommended, known, directed=True) == 3


def test_the_first_iteration_is_not_counted_in_the_time_of_one(large: ModuleType) -> None:
    history = [json.dumps({"iteration": i, "seconds": 7 + 0.5 * i}) for i in (1, 10, 20)]
    assert large.seconds_per_iteration(history) == pytest.approx(0.5)


def test_a_process_has_its_output_its_time_and_its_peak(large: ModuleType) -> None:
    block = 300_000_000
    code = f"import json; held = bytearray(b'1') * {block}; print(json.dumps({{'length': len(held)}}))"
    took = large.run_process([sys.executable, "-c", code], 60)
    assert took.found == {"length": block}
    assert took.peak >= block


def test_a_process_that_takes_too_long_is_stopped(large: ModuleType) -> None:
    took = large.run_process([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    assert took.found is None
    assert took.seconds < 30
