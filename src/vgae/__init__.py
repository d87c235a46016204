"""Graph auto-encoders with the exact objective: node embeddings and link prediction."""

from vgae.errors import InputError, TrainingError, VgaeError
from vgae.estimator import GAE, VGAE, load
from vgae.evaluation.evaluate import evaluate
from vgae.graph.datasets import load_dataset
from vgae.graph.files import read_graph
from vgae.graph.graph import Graph
from vgae.graph.split import HeldOut, LeakError, LinkSplit, split_links
from vgae.graph.synthetic import rmat, stochastic_block_model
from vgae.version import VERSION

__version__ = VERSION

__all__ = [
    "GAE",
    "VGAE",
    "Graph",
    "HeldOut",
    "InputError",
    "LeakError",
    "LinkSplit",
    "TrainingError",
    "VgaeError",
    "evaluate",
    "load",
    "load_dataset",
    "read_graph",
    "rmat",
    "split_links",
    "stochastic_block_model",
]
