"""Clusters out, as a file: one row per node, its id first."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet

from vgae.errors import InputError
from vgae.graph.pairs import AnyArray
from vgae.io.exports import require_utf8, without_formulas, writing
from vgae.io.frames import links_table

CLUSTERS = (".csv", ".parquet")


def check_cluster_file(path: Path, *, spreadsheet_safe: bool) -> None:
    """Refuse a name whose ending says nothing, before anything is computed."""
    if path.suffix.lower() not in CLUSTERS:
        raise InputError(f"{path}: clusters are written as {' or '.join(CLUSTERS)}; choose a name with such an ending.")
    if spreadsheet_safe and path.suffix.lower() != ".csv":
        raise InputError(f"spreadsheet_safe: this option is for csv files, and {path} is not one.")


def write_clusters(
    path: Path, ids: Sequence[Any], columns: Mapping[str, AnyArray], *, spreadsheet_safe: bool = False
) -> None:
    """One row per node, its id first: csv or parquet."""
    check_cluster_file(path, spreadsheet_safe=spreadsheet_safe)
    require_utf8(path, (str(name) for name in ids), "print --json instead")
    table = links_table({"id": without_formulas(ids) if spreadsheet_safe else ids}, columns)
    with writing(path) as file:
        if path.suffix.lower() == ".parquet":
            pyarrow.parquet.write_table(table, file)
        else:
            pyarrow.csv.write_csv(table, file)
