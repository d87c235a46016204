"""objective="auto": the exact objective wherever it is affordable, else the sampled one, and the reason why.

The estimate is arithmetic, not a stopwatch, so that the same graph gets the same objective every time. Per iteration
the exact objective computes about N²/2 logits of a symmetric decoder (N² otherwise); beside the graph and a handful
of N×d matrices it holds one tile.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

from vgae.errors import InputError
from vgae.graph.graph import Graph

# Logits per second of the all-pairs op at latent dimension 16, gradient only, half of a symmetric matrix counted:
# measured on two cores of an AMD EPYC at Pubmed's size (0.9 G/s) and on one NVIDIA H200 at four times that (118 G/s).
LOGITS_PER_CORE = 0.4e9
LOGITS_PER_GPU = 100e9
AFFORDABLE_SECONDS = 900.0  # for a whole training run


@dataclass(frozen=True)
class Choice:
    """The objective that was picked, and the estimate that it was picked by."""

    objective: str
    reason: str


def choose_objective(
    graph: Graph, device: torch.device, *, hidden_dim: int, latent_dim: int, iterations: int, symmetric: bool
) -> Choice:
    """Exact or sampled, by the estimated time of the exact objective; neither, if memory is too small for both."""
    num_logits = graph.num_nodes**2 / (2 if symmetric else 1)
    rate = LOGITS_PER_GPU if device.type == "cuda" else LOGITS_PER_CORE * torch.get_num_threads()
    seconds = iterations * num_logits * max(1.0, latent_dim / 16) / rate
    gigabytes = _bytes_needed(graph, hidden_dim, latent_dim) / 1e9
    available = _bytes_available(device) / 1e9
    cost = f"about {_duration(seconds)} and {gigabytes:.1f} GB for {iterations} iterations over all pairs"
    if gigabytes > available:  # the sampled objective holds the same matrices, and would not fit either
        raise InputError(
            f"The graph and the model need about {gigabytes:.1f} GB, more than the {available:.1f} GB of this device; "
            "lower hidden_dim and latent_dim, or train on a smaller graph."
        )
    if seconds > AFFORDABLE_SECONDS:
        return Choice("sampled", f"{cost} exceed {_duration(AFFORDABLE_SECONDS)}")
    return Choice("exact", cost)


def _bytes_needed(graph: Graph, hidden_dim: int, latent_dim: int) -> float:
    """Ã and the edge list, X both ways, and activations, gradients and Adam's state."""
    entries = 2 * graph.num_edges + graph.num_nodes
    width = 6 * hidden_dim + 12 * latent_dim
    features = 0 if graph.features is None else 2 * graph.features.size
    weights = 4 * hidden_dim * (graph.num_features or graph.num_nodes)
    return 24.0 * entries + 8.0 * features + 4.0 * (graph.num_nodes * width + weights)


def _bytes_available(device: torch.device) -> float:
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if hasattr(os, "sysconf") else float("inf")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
