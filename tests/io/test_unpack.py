"""Files and pipes as bytes: bounded by the memory there is, never waited for without end, refused in a sentence."""

import gzip
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import message_of
from vgae import memory
from vgae.graph.graph import Graph
from vgae.io import assemble, tables, unpack
from vgae.io.tables import read_any, read_graph, read_pairs
from vgae.visible import visible

LINKS = b"source,target\n" + b"".join(b"%d,%d\n" % (i, i + 1) for i in range(100))
FIFO = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")


def parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


# -------------------------------------------------------------------------------------------------------------- memory


def repeated(text: str, num_rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(num_rows, dtype=np.int32)), pa.array([text]))


ZEROS = pa.array(np.zeros(300_000, dtype=np.int64))
TOO_LARGE: dict[str, bytes] = {
    "plain.csv": b"source,target\n" + b"1,2\n" * 300_000,
    "many-rows.csv": b"1\t2\n" * 30_000,
    "packed.csv.gz": gzip.compress(b"1,2\n" * 300_000),
    "packed.tsv.zst": pa.compress(b"1\t2\n" * 300_000, "zstd", asbytes=True),
    "dictionary.parquet": parquet(pa.table({"a": repeated("x" * 1000, 5000), "b": repeated("y", 5000)})),
    "numbers.parquet": parquet(pa.table({"a": ZEROS, "b": ZEROS})),
    "lists.parquet": parquet(pa.table({"a": [1], "b": [2], "c": pa.ListArray.from_arrays([0, len(ZEROS)], ZEROS)})),
    "zipped.parquet": parquet(pa.table({"a": ["x" * 10**6, "y"], "b": ["z", "x"]})),
    "graph.graphml": b"<graphml>" + b" " * 10**6 + b"</graphml>",
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_unpacks_to_more_than_the_memory_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(TOO_LARGE[name])
    monkeypatch.setattr(memory, "bytes_free", lambda: 1e6)
    message = message_of(lambda: read_any(path))
    assert message.startswith(f"{path}: reading it takes at least ")
    assert message.endswith(
        "GB of memory, and 0.001 GB are free; use a machine with more, or leave rows or columns out."
    )


@pytest.mark.parametrize("name", [name for name in TOO_LARGE if name.endswith(".parquet") and "lists" not in name])
def test_the_same_files_are_read_where_there_is_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(TOO_LARGE[name])
    table = pq.read_table(path)
    pairs = {frozenset(map(str, row.values())) for row in table.to_pylist()[:10]}
    links = {pair for pair in pairs if len(pair) == 2}
    if not links:
        assert "no links between different nodes" in message_of(lambda: read_any(path))
        return
    graph = read_graph(path)
    assert {frozenset(pair) for pair in graph.ids_of(graph.edges).tolist()} == links


def test_batches_are_counted_whatever_the_file_says_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "links.parquet"
    path.write_bytes(TOO_LARGE["numbers.parquet"])
    monkeypatch.setattr("vgae.io.parquet._least_bytes", lambda *_: [0])
    monkeypatch.setattr(memory, "bytes_free", lambda: 1e6)
    assert "reading it takes at least" in message_of(lambda: read_any(path))


BOMBS = """
import resource, sys
from pathlib import Path
from vgae.errors import InputError
from vgae.io.tables import read_any
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
for path in sys.argv[1:]:
    try:
        read_any(path)
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit is set by what /proc says")
def test_small_files_that_unpack_to_gigabytes_are_refused_under_a_limit(tmp_path: Path) -> None:
    """The files of a few kilobytes to two megabytes that once took gigabytes or ended in a MemoryError."""
    with gzip.open(tmp_path / "links.csv.gz", "wb", compresslevel=1) as stream:
        for _ in range(60):
            stream.write(b"1,2\n" * 2**18)
    table = pa.table({"a": repeated("x" * 50_000, 20_000), "b": repeated("y", 20_000)})
    pq.write_table(table, tmp_path / "links.parquet")
    (tmp_path / "long.csv").write_bytes(b"a,b\n" * 10_000_000)
    names = ["links.csv.gz", "links.parquet", "long.csv"]
    assert all((tmp_path / name).stat().st_size < 50 * 10**6 for name in names)
    command = [sys.executable, "-c", BOMBS, *(str(tmp_path / name) for name in names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all("GB are free" in line or "not enough memory" in line for line in lines), lines


@pytest.mark.parametrize("call", [lambda path: read_any(path), lambda path: read_pairs(path, ["1", "2"])])
def test_running_out_of_memory_on_the_way_is_a_sentence(
    tmp_path: Path, call: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError

    (tmp_path / "links.csv").write_text("1,2\n")
    monkeypatch.setattr(assemble, "number_ids", fails)
    monkeypatch.setattr(tables, "read_links_among", fails)
    message = message_of(lambda: call(tmp_path / "links.csv"))
    assert message.startswith(f"{tmp_path / 'links.csv'}: there is not enough memory to read it")


# --------------------------------------------------------------------------------------------------------------- pipes


def feed(path: Path, content: bytes, after: float = 0.0) -> threading.Thread:
    def write() -> None:
        time.sleep(after)
        with path.open("wb") as pipe:
            pipe.write(content)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


FRAME = pd.read_csv(io.BytesIO(LINKS))
CONTENTS = {"pipe.csv": LINKS, "pipe.csv.gz": gzip.compress(LINKS), "pipe": LINKS,
            "pipe.parquet": parquet(pa.Table.from_pandas(FRAME))}  # fmt: skip


@FIFO
@pytest.mark.parametrize("after", [0.0, 0.1])
@pytest.mark.parametrize("name", CONTENTS)
def test_a_table_is_read_from_a_named_pipe(tmp_path: Path, name: str, after: float) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    thread = feed(path, CONTENTS[name], after)
    assert read_graph(path).num_edges == 100
    thread.join()


@FIFO
def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "WAIT_SECONDS", 0.05)
    for name in ("pipe.csv", "pipe.csv.gz", "pipe.parquet", "pipe.graphml"):
        os.mkfifo(tmp_path / name)
        assert "nobody writes to this pipe" in message_of(lambda name=name: read_any(tmp_path / name))  # type: ignore[misc]
    os.mkfifo(tmp_path / "nodes.csv")
    (tmp_path / "links.csv").write_bytes(LINKS)
    message = message_of(lambda: read_any(tmp_path / "links.csv", features=tmp_path / "nodes.csv"))
    assert message.startswith(f"{tmp_path / 'nodes.csv'}: nobody writes")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="open files have no names here")
def test_standard_input_and_process_substitution_are_tables(tmp_path: Path) -> None:
    """Both are pipes under a name in /dev; so is what is redirected from a file."""
    for content in (LINKS, b""):
        read_end, write_end = os.pipe()
        os.write(write_end, content)
        os.close(write_end)
        try:
            path = Path(f"/dev/fd/{read_end}")
            if content:
                assert read_graph(path).num_edges == 100
            else:
                assert "the file is empty" in message_of(lambda path=path: read_graph(path))  # type: ignore[misc]
        finally:
            os.close(read_end)
    (tmp_path / "links").write_bytes(LINKS)
    with (tmp_path / "links").open("rb") as file:
        assert read_graph(Path(f"/dev/fd/{file.fileno()}")).num_edges == 100


# -------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/urandom"])
def test_devices_are_no_tables(device: str) -> None:
    if not Path(device).exists():
        pytest.skip("there is no such device here")
    assert message_of(lambda: read_any(device)) == f"{device}: this is a device, not a file."


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".graphml"])
def test_names_that_no_file_can_have_are_refused(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"loop{ending}").symlink_to(tmp_path / f"loop{ending}")
    (tmp_path / f"device{ending}").symlink_to("/dev/zero")
    for name in ("a\0b", "x" * 300, "loop", "device", "none", "none/none"):
        path = tmp_path / f"{name}{ending}"
        message = message_of(lambda path=path: read_any(path))  # type: ignore[misc]
        assert message.lstrip("'").startswith(visible(str(path)))
        assert message.endswith(".")
        assert "\n" not in message
        if ending != ".graphml":  # which is no node table, whatever is under the name
            (tmp_path / "links.csv").write_bytes(LINKS)
            of_nodes = message_of(lambda path=path: read_any(tmp_path / "links.csv", features=path))  # type: ignore[misc]
            assert of_nodes == message


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".graphml"])
def test_a_pointer_of_git_lfs_is_told_from_the_file(tmp_path: Path, ending: str) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    path = tmp_path / f"links{ending}"
    path.write_bytes(pointer)
    assert "fetch it with git lfs pull" in message_of(lambda: read_any(path))


def test_text_that_is_not_utf8_is_named_by_its_column(tmp_path: Path) -> None:
    odd = pa.array([b"\xc3(", b"b"], pa.binary()).view(pa.string())
    for columns in ({"source": odd, "target": ["a", "b"]}, {"source": ["a", "b"], "target": ["c", "d"], "w": odd}):
        table = pa.table(columns)
        pq.write_table(table, tmp_path / "links.parquet")
        name = next(name for name, values in columns.items() if values is odd)
        assert f"the column {name!r} holds text that is not UTF-8" in message_of(
            lambda: read_any(tmp_path / "links.parquet")
        )
        assert f"the column {name!r} holds text that is not UTF-8" in message_of(
            lambda table=table: Graph.from_frame(table)  # type: ignore[misc]
        )


@pytest.mark.parametrize("path", [None, 3, 2.5, b"ab", ["links.csv"]], ids=repr)
def test_what_is_no_name_of_a_table_is_refused(path: Any, tmp_path: Path) -> None:
    assert "the name of a file or folder is needed" in message_of(lambda: read_any(path))
    (tmp_path / "links.csv").write_text("a,b\nb,c\n")
    if path is not None:
        features = message_of(lambda: read_any(tmp_path / "links.csv", header=False, features=path))
        assert "the name of a file or folder is needed" in features


def test_an_array_for_a_switch_is_refused() -> None:
    links = pa.table({"source": ["a"], "target": ["b"]})
    for name in ("standardise", "directed"):
        assert message_of(lambda name=name: Graph.from_frame(links, **{name: np.array([0, 1])})).startswith(f"{name}:")  # type: ignore[misc]
