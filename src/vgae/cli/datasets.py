"""`vgae datasets`."""

from dataclasses import asdict

from vgae.cli.options import Json
from vgae.io.catalog import DATASETS, cache_path
from vgae.report.console import print_json, print_table


def datasets(as_json: Json = False) -> None:
    """List the datasets that are known by name."""
    if as_json:
        print_json({name: asdict(info) | {"cached": cache_path(name).exists()} for name, info in DATASETS.items()})
        return
    titles = ("dataset", "nodes", "edges", "features", "classes", "cached", "what it is")
    rows = []
    for name, info in DATASETS.items():
        counts = (info.num_nodes, info.num_edges, info.num_features, info.num_classes)
        cached = "yes" if cache_path(name).exists() else "no"
        rows.append((name, *(f"{count:,}" for count in counts), cached, info.description))
    print_table(titles, rows, numbers=titles[1:5])
