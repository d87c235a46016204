"""Make the tables of the flights example from vega-datasets 3.2.1: routes of 2001 and 2008, airports, and outlines.

    npm pack vega-datasets@3.2.1
    python make_flights.py vega-datasets-3.2.1.tgz

us-routes.csv has a row for each ordered pair of airports: flights from January to June 2001, and in all of 2008. Rows
of fewer than three flights in both columns are left out: these are mostly diversions. us-outlines.csv has the borders
of the states for a map, with a fifth of a degree as the finest detail.
"""

import csv
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

HERE = Path(__file__).parent
LEAST = 3  # flights
DETAIL = 0.2  # degrees


def member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(f"package/data/{name}")
    assert file is not None, name
    return file.read()


def routes_of_2001(data: bytes) -> dict[tuple[str, str], int]:
    table = pq.read_table(io.BytesIO(data), columns=["origin", "destination"])
    counted = table.group_by(["origin", "destination"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["origin"], row["destination"]): row["count_all"] for row in counted}


def routes_of_2008(data: bytes) -> dict[tuple[str, str], int]:
    rows = csv.DictReader(io.StringIO(data.decode()))
    return {(row["origin"], row["destination"]): int(row["count"]) for row in rows}


def outlines(data: bytes) -> Iterator[list[tuple[float, float]]]:
    """The lines between and around the states as (longitude, latitude), from TopoJSON's steps."""
    topology = json.loads(data)
    (scale_x, scale_y), (x0, y0) = topology["transform"]["scale"], topology["transform"]["translate"]
    wanted: set[int] = set()

    def collect(arcs: object) -> None:
        if isinstance(arcs, int):
            wanted.add(arcs if arcs >= 0 else ~arcs)
        elif isinstance(arcs, list):
            for each in arcs:
                collect(each)

    for state in topology["objects"]["states"]["geometries"]:
        collect(state.get("arcs", []))
    for arc in sorted(wanted):
        x = y = 0
        line: list[tuple[float, float]] = []
        for dx, dy in topology["arcs"][arc]:
            x, y = x + dx, y + dy
            point = (round(x * scale_x + x0, 2), round(y * scale_y + y0, 2))
            if not line or max(abs(point[0] - line[-1][0]), abs(point[1] - line[-1][1])) >= DETAIL:
                line.append(point)
        line.append(point)
        if len(line) > 3 or max(abs(line[0][0] - line[-1][0]), abs(line[0][1] - line[-1][1])) >= DETAIL:
            yield line


def write(name: str, head: list[str], rows: list[list[object]]) -> None:
    with (HERE / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def main(tarball: str) -> None:
    with tarfile.open(tarball, "r:gz") as archive:
        old = routes_of_2001(member(archive, "flights-3m.parquet"))
        new = routes_of_2008(member(archive, "flights-airport.csv"))
        airports = list(csv.DictReader(io.StringIO(member(archive, "airports.csv").decode())))
        lines = list(outlines(member(archive, "us-10m.json")))
    pairs = sorted(pair for pair in old | new if old.get(pair, 0) >= LEAST or new.get(pair, 0) >= LEAST)
    write(
        "us-routes.csv", ["origin", "destination", "2001", "2008"], [[*p, old.get(p, 0), new.get(p, 0)] for p in pairs]
    )
    used = {code for pair in pairs for code in pair}
    columns = ["iata", "name", "city", "state", "latitude", "longitude"]
    rows = [[row[column] for column in columns] for row in airports if row["iata"] in used]
    for row in rows:
        row[4:] = [f"{float(degrees):.3f}" for degrees in row[4:]]
    write("us-airports.csv", columns, sorted(rows))
    write("us-outlines.csv", ["line", "longitude", "latitude"], [[k, *p] for k, line in enumerate(lines) for p in line])


if __name__ == "__main__":
    main(sys.argv[1])
