"""What a process of a group is asked about a graph that it has read a part of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut, LinkSplit
from vgae.io.options import LinkOptions, NodeOptions
from vgae.model.sharded import normalized_rows, rows_with_loops
from vgae.parallel import mail
from vgae.parallel.group import Group
from vgae.parallel.reading import NodeFiles, read_graph_in_parts, read_links_in_parts
from vgae.parallel.shards import Shards
from vgae.parallel.splitting import split_in_parts
from vgae.parallel.texts import send_text
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.non_links import more_non_links
from vgae.train.trial import smaller_graph


@dataclass(frozen=True)
class Found:
    """What a process has of a graph and its split."""

    num_edges: int  # of all
    num_own: int
    cleaning: Cleaning
    content_hash: str
    whole: Graph | None
    split_hash: str
    train_hash: str
    split: LinkSplit | None
    validation: HeldOut
    num_test: int
    more: Pairs
    degrees: Any
    rows: sp.csr_array  # of Ã
    num_incident: int
    shards: Shards
    notes: tuple[str, ...]
    num_arcs: int  # of all, in training
    undirected_hash: str  # of the training graph without its directions
    more_undirected: Pairs
    ones: sp.csr_array  # own rows of A + I, by direction where there is one


def read(group: Group, folder: Path, options: dict[str, Any], fractions: dict[str, Any]) -> Found:
    """Read, split and divide a graph."""
    part = read_links_in_parts(group, folder, LinkOptions(**options))
    graph = part.graph
    split = split_in_parts(graph, **fractions)
    train_part: Any = split.train
    degrees = graph.degrees(weighted=True)
    shards = Shards.balanced(1 + train_part.degrees(), group.size, group.rank)
    own = train_part.on(shards)
    return Found(
        num_edges=graph.num_edges,
        num_own=len(graph.edges),
        cleaning=graph.cleaning,
        content_hash=graph.content_hash,
        whole=graph.gathered(),
        split_hash=split.content_hash,
        train_hash=split.train.content_hash,
        split=split.gathered(),
        validation=split.val,
        num_test=len(split.test),
        more=more_non_links(train_part, split.val, 0),
        degrees=degrees,
        rows=normalized_rows(own, shards.own),
        num_incident=len(own.edges),
        shards=shards,
        notes=part.notes,
        num_arcs=train_part.num_arcs,
        undirected_hash=train_part.without_directions().content_hash,
        more_undirected=more_non_links(train_part.without_directions(), split.val, 0),
        ones=rows_with_loops(own, shards.own, directed=own.directed),
    )


@dataclass(frozen=True)
class FoundNodes:
    """What a process has of the nodes of a graph."""

    features: Any  # of its range
    own_features: Any  # of the nodes that it trains
    repr: str
    content_hash: str
    plain_hash: str  # without features
    train_hash: str
    num_entries: int
    recipe: Any
    notes: tuple[tuple[str, ...], ...]
    tried: int  # features of a graph of as many nodes, made of what is here
    whole: Graph | None
    split: LinkSplit | None


def read_nodes(
    group: Group,
    folder: Path,
    links: dict[str, Any],
    features: Path | None,
    nodes: dict[str, Any],
    labels: Path | None = None,
) -> FoundNodes | str | None:
    """Read a graph with a table of nodes, split and divide it; why that is refused, where all processes refuse it."""
    try:
        files = NodeFiles(features, NodeOptions(**nodes), labels, NodeOptions())
        part = read_graph_in_parts(group, folder, LinkOptions(**links), files)
    except InputError as error:
        return str(error)
    if part is None:
        return None
    graph = part.graph
    split = split_in_parts(graph, val=0.1, test=0.1, seed=1)
    train_part: Any = split.train
    own = train_part.on(Shards.balanced(1 + train_part.degrees(), group.size, group.rank))
    return FoundNodes(
        features=graph.features,
        own_features=own.features,
        repr=repr(graph),
        content_hash=graph.content_hash,
        plain_hash=graph.without_features().content_hash,
        train_hash=split.train.content_hash,
        num_entries=split.train.num_feature_entries,
        recipe=part.recipe,
        notes=(part.notes, part.node_notes, part.label_notes),
        tried=smaller_graph(train_part, graph.num_nodes).num_features,
        whole=graph.gathered(),
        split=split.gathered(),
    )


def refused(group: Group, folder: Path, options: dict[str, Any]) -> str:
    """Why a process refuses to read a folder; others wait for it in vain, so that only groups of one can be asked."""
    try:
        read_links_in_parts(group, folder, LinkOptions(**options))
    except InputError as error:
        return str(error)
    return "nothing"


def send(group: Group, piece: int, seed: int) -> tuple[Any, Any, list[str], Any, Any]:
    """Rows, answers and texts, and the rows of all in the first process, in pieces of some length."""
    before, mail.PIECE, mail.STREAMED = (mail.PIECE, mail.STREAMED), piece, piece
    try:
        generator = np.random.default_rng([seed, group.rank])
        owners = generator.integers(group.size, size=int(generator.integers(40)))
        sent = mail.Mail(group, owners)
        rows = np.stack([np.full(len(owners), group.rank), np.arange(len(owners))], axis=1)
        arrived = sent.send(rows)
        answers = sent.answer(arrived * 10)
        texts = pa.array([f"{group.rank}-{'é' * int(row % 4)}-{row}" for row in rows[:, 1]], pa.large_string())
        return owners, arrived, send_text(sent, texts).to_pylist(), answers, mail.collected(group, rows)
    finally:
        mail.PIECE, mail.STREAMED = before


def trained(
    group: Group, folder: Path, options: dict[str, Any], values: dict[str, Any], features: Path | None = None
) -> tuple[Any, Any, int]:
    """The history of a training on a graph in parts, its embeddings, and how many links this process held."""
    graph = read_links_in_parts(group, folder, LinkOptions(**options)).graph
    if features is not None:
        read = read_graph_in_parts(group, folder, LinkOptions(**options), NodeFiles(features))
        assert read is not None
        graph = read.graph
    split = split_in_parts(graph, val=0.1, test=0.1, seed=0)
    found = train(Job.of(split.train, Config(**values), split.val), group=group)
    history = [(entry.iteration, entry.loss, entry.val_auc) for entry in found.history]
    return history, found.embeddings.numpy(), len(split.train.edges)


def trained_twice(group: Group, *given: Any) -> tuple[Any, Any]:
    """The same training twice."""
    return trained(group, *given), trained(group, *given)
