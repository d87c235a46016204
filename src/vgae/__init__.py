"""Graph auto-encoders with the exact objective: node embeddings and link prediction."""

import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Threads that wait for each other soon go to sleep instead of spinning on. Where another program keeps a core busy,
# spinning threads take turns on what is left, and training slows down tenfold and more. The threads' library reads this
# once, when torch is imported: afterwards nothing can be done, and what the user has set stands.
if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

from vgae.errors import InputError, TrainingError, VgaeError
from vgae.io import register_hooks
from vgae.version import __version__

register_hooks()
logging.getLogger(__name__).addHandler(logging.NullHandler())  # who wants to read adds another

if TYPE_CHECKING:
    from vgae.estimators.base import GAE, VGAE, load
    from vgae.estimators.baseline import Baseline
    from vgae.estimators.stack import Stack
    from vgae.evaluation.evaluate import evaluate
    from vgae.evaluation.heart import heart_negatives
    from vgae.evaluation.labels import evaluate_labels
    from vgae.evaluation.protocols import evaluate_protocol
    from vgae.graph.folds import LinkKFold, LinkShuffleSplit
    from vgae.graph.given import split_by_time
    from vgae.graph.graph import Graph
    from vgae.graph.samples import LinkSamples, link_samples
    from vgae.graph.split import HeldOut, LeakError, LinkSplit, split_links
    from vgae.graph.synthetic import rmat, stochastic_block_model
    from vgae.io.datasets import load_dataset
    from vgae.io.extend import read_more
    from vgae.io.graphs import write_graph
    from vgae.io.tables import read_graph
    from vgae.report.verdict import verdict
    from vgae.search.tune import tune

__all__ = [
    "GAE",
    "VGAE",
    "Baseline",
    "Graph",
    "HeldOut",
    "InputError",
    "LeakError",
    "LinkKFold",
    "LinkSamples",
    "LinkShuffleSplit",
    "LinkSplit",
    "Stack",
    "TrainingError",
    "VgaeError",
    "__version__",
    "evaluate",
    "evaluate_labels",
    "evaluate_protocol",
    "heart_negatives",
    "link_samples",
    "load",
    "load_dataset",
    "read_graph",
    "read_more",
    "rmat",
    "split_by_time",
    "split_links",
    "stochastic_block_model",
    "tune",
    "verdict",
    "write_graph",
]

# What these need takes seconds to load, and is loaded when they are first used.
_LATER = {
    "Baseline": "vgae.estimators.baseline",
    "GAE": "vgae.estimators.base",
    "VGAE": "vgae.estimators.base",
    "Graph": "vgae.graph.graph",
    "HeldOut": "vgae.graph.split",
    "LeakError": "vgae.graph.split",
    "LinkKFold": "vgae.graph.folds",
    "LinkSamples": "vgae.graph.samples",
    "LinkShuffleSplit": "vgae.graph.folds",
    "LinkSplit": "vgae.graph.split",
    "Stack": "vgae.estimators.stack",
    "evaluate": "vgae.evaluation.evaluate",
    "evaluate_labels": "vgae.evaluation.labels",
    "evaluate_protocol": "vgae.evaluation.protocols",
    "heart_negatives": "vgae.evaluation.heart",
    "link_samples": "vgae.graph.samples",
    "load": "vgae.estimators.base",
    "load_dataset": "vgae.io.datasets",
    "read_graph": "vgae.io.tables",
    "read_more": "vgae.io.extend",
    "rmat": "vgae.graph.synthetic",
    "split_by_time": "vgae.graph.given",
    "split_links": "vgae.graph.split",
    "stochastic_block_model": "vgae.graph.synthetic",
    "tune": "vgae.search.tune",
    "verdict": "vgae.report.verdict",
    "write_graph": "vgae.io.graphs",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
