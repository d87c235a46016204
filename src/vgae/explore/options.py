"""The options of a page, for the command and for Python alike."""

from __future__ import annotations

from dataclasses import dataclass

from vgae.explore.projection import PROJECTIONS
from vgae.options import Options, option


@dataclass(frozen=True)
class ExploreOptions(Options):
    """What the page of a model shows."""

    projection: str = option(
        PROJECTIONS[0], choices=PROJECTIONS, help="tsne or pca: how the embeddings are brought to two dimensions."
    )
    clusters: int | None = option(
        None,
        least=1,
        help="How many clusters k-means is to find.  [default: those of a mixture prior, else as many as there are "
        "labels, else 8]",
    )
    top: int = option(200, least=1, most=10_000, help="How many of the best new links the table has.")
    title: str | None = option(None, help="What the page is called.  [default: the name of the dataset or file]")
