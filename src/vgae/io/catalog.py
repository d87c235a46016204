"""The datasets that are known by name, and where they are cached; what reads and fetches them is in `datasets.py`.

This file loads next to nothing, so that a list of the datasets is there at once.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from vgae.errors import InputError

CACHE_FORMAT = 1


@dataclass(frozen=True)
class DatasetInfo:
    """What a dataset is, known without loading it."""

    name: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    description: str


DATASETS = {
    info.name: info
    for info in (
        DatasetInfo("cora", 2708, 5278, 1433, 7, "machine-learning papers; words present or absent"),
        DatasetInfo("citeseer", 3327, 4552, 3703, 6, "computer-science papers; words present or absent"),
        DatasetInfo("pubmed", 19717, 44324, 500, 3, "diabetes papers; TF-IDF of words"),
        DatasetInfo("blogcatalog", 10312, 333983, 0, 0, "bloggers and their friends"),
        DatasetInfo("ca-astroph", 18772, 198050, 0, 0, "astrophysicists who wrote a paper together"),
    )
}


def cache_folder() -> Path:
    """Where datasets are kept: `VGAE_DATA`, or `vgae` in the user's cache folder."""
    chosen = os.environ.get("VGAE_DATA")
    if chosen:
        return _expanded(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return _expanded(base) / "vgae"


def _expanded(folder: str) -> Path:
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        raise InputError(
            f"{folder}: the home folder that this names is not known; set VGAE_DATA to a folder."
        ) from None


def cache_path(name: str) -> Path:
    """The cached file of a dataset, whether or not it is there yet."""
    return cache_folder() / f"{name}-{CACHE_FORMAT}.npz"
