"""Odd tables, thousands of them: whatever is in a file, it is read or refused in one sentence, within time and memory.

Two kinds in turn, from a seed that is told with every failure:

    written    a table of random ids as csv writes it, whose links have to come back
    broken     text put together from pieces that have gone wrong before, with random options, as links and as nodes

    python benchmarks/fuzz_tables.py [--seconds 60] [--seed 0]
"""

import argparse
import csv
import io
import random
import resource
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.graph.tables import read_any, read_pairs

DELIMITERS = (",", "\t", ";", "|", " ")
LETTERS = "abcXYZ019 ,;|\"'#%-+.=éß😀\u2028\u00a0_\n"
PIECES = (
    "a", "b", "1", "2", "-0", "007", "1,5", "1.5", "1e9", "nan", "", " ", "  ", "\t", ",", ";", "|", '"', '""', "'",
    "#", "%", "# c", "#x", "\n", "\r", "\r\n", "\n\n", "source", "target", "from,to", "id", "sep=;", "{", "[", "{}",
    "\ufeff", "\0", "\x1a", "é", "😀", "\u2028", "2020-01-01", "x" * 70_000, " " * 10_000, "0,1\n", "1,0\n", "a,b\n",
    "a;b;1,5\n", ",source,target\n", "true", "NA", "99999999999999999999", "%%MatrixMarket", "<html>",
)  # fmt: skip
OPTIONS: dict[str, tuple[Any, ...]] = {
    "delimiter": (None, None, None, *DELIMITERS, "a", "", "ab", "é", "\n", '"', 7),
    "header": (None, None, None, True, False, "no"),
    "source": (None, None, None, "1", "2", "source", "", "9"),
    "target": (None, None, None, "1", "2", "target"),
    "weight": (None, None, None, "3", "1", "w"),
    "directed": (None, None, True, "yes"),
}
SLOW_SECONDS = 10.0


def any_id(random_: random.Random) -> str:
    name = "".join(random_.choice(LETTERS) for _ in range(random_.randint(1, 6))).strip()
    return name if name and not (name.lstrip("#%")[:1].isspace() or not name.lstrip("#%")) else "x"


def check_written(folder: Path, random_: random.Random) -> None:
    """A table that is written is the table that is read."""
    delimiter, header = random_.choice(DELIMITERS), random_.random() < 0.7
    rows = [(any_id(random_), any_id(random_)) for _ in range(random_.randint(1, 30))]
    text = io.StringIO()
    quoting: Any = random_.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    line_end = random_.choice(("\n", "\r\n"))
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=line_end)
    writer.writerows([("source", "target")] * header + rows)
    path = folder / "links.csv"
    path.write_bytes(random_.choice((b"", b"\xef\xbb\xbf")) + text.getvalue().encode())
    options: dict[str, Any] = {} if header else {"delimiter": delimiter, "header": False}
    expected = {frozenset(row) for row in rows if row[0] != row[1]}
    if not expected:
        return
    graph = read_any(path, **options).graph
    found = {frozenset(map(str, pair)) for pair in graph.ids_of(graph.edges).tolist()}
    if found != expected:
        raise AssertionError(f"{path.read_bytes()!r} with {options}: {found ^ expected}")


def check_broken(folder: Path, random_: random.Random) -> None:
    """A table that is no table is refused in one sentence."""
    paths = []
    for name in ("links", "nodes"):
        content = "".join(random_.choice(PIECES) for _ in range(random_.randint(1, 40))).encode()
        if random_.random() < 0.1:
            place = random_.randrange(len(content) or 1)
            content = content[:place] + bytes([random_.randrange(256)]) + content[place + 1 :]
        paths.append(folder / f"{name}{random_.choice(('.csv', '.tsv', '.txt'))}")
        paths[-1].write_bytes(content)
    options = {name: random_.choice(values) for name, values in OPTIONS.items()}
    features = random_.choice((None, paths[1]))
    for call in (
        lambda: read_any(paths[0], features=features, **options),
        lambda: read_pairs(paths[0], ["a", "b", 1, "#x"], delimiter=options["delimiter"], header=options["header"]),
    ):
        try:
            call()
        except InputError as error:
            if "\n" in str(error) or not str(error).endswith("."):
                raise AssertionError(f"not one sentence: {error}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description="Odd tables.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    end, seed, failures = time.monotonic() + options.seconds, options.seed, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            started = time.monotonic()
            try:
                (check_written, check_broken)[seed % 2](Path(folder), random.Random(seed))  # noqa: S311 - no secrets
            except Exception:  # noqa: BLE001 - what nobody thought of is what this script is for
                failures += 1
                print(f"seed {seed}:\n{traceback.format_exc(limit=-3)[-1500:]}", flush=True)
            if time.monotonic() - started > SLOW_SECONDS:
                failures += 1
                print(f"seed {seed}: took {time.monotonic() - started:.0f} s", flush=True)
            seed += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{seed - options.seed:,} tables, {failures} failures, peak {peak:.2f} GiB")
    raise SystemExit(min(failures, 1))


if __name__ == "__main__":
    main()
