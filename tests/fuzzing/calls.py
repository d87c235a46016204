"""Public functions called with whatever somebody may pass by mistake: a result, or one sentence."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
import torch

import vgae
from fuzzing.case import Case
from fuzzing.made import require_sound
from vgae.graph.graph import Graph

ATOMS: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, 7, -1, -3, 2**31, 2**40, 2**63, -(2**63), 10**30, 10**400, 0.0, 0.5, 1.0, 1.5, -0.1,
    2.5, 1e-12, 1e300, float("nan"), float("inf"), 1j, "", "a", "1", "auto", "cpu", "cuda:99", "exact", "x\0",
    "\x1b[31m", "a\nb", "é", "\ud800", b"", b"ab", (), [], {}, set(), Ellipsis, object(), int, print, Decimal("1.5"),
    datetime.date(2020, 1, 2), np.int8(3), np.float32(0.25), np.bool_(True), np.datetime64("2020-01-01"), np.array(2),
    np.array([]), np.empty((0, 2)), np.array([[0, 1], [1, 2]]), np.array([0, 1, 2]), np.array([[0.5, 1.0]]),
    np.array([["a", "b"]]), np.array([None, "a"], dtype=object), np.zeros((2, 2, 2)), torch.tensor(2), torch.ones(2, 2),
    torch.tensor([[0, 1], [1, 2]]), sp.csr_array(np.eye(4)), sp.coo_array(np.ones((3, 3))), [0, 1], [(0, 1), (1, 2)],
    [("a", "b"), ("b", "c")], [(0, 1, 2)], [[0], [1, 2]], [(0, -1)], [(0, 10**30)], "ab", range(4), {"a": 1},
)  # fmt: skip
NODES = 12
PATH = [(place, place + 1) for place in range(NODES - 1)]


@lru_cache(maxsize=1)
def _things() -> tuple[Graph, vgae.LinkSplit, list[Any]]:
    """A graph with features, its split, and a fitted VGAE and GAE."""
    graph = Graph.from_edges(PATH, features=np.eye(NODES, 3, dtype=np.float32))
    split = vgae.split_links(graph, val=0.2, test=0.2, seed=0)
    settings: dict[str, Any] = {"iterations": 2, "hidden_dim": 4, "latent_dim": 2, "device": "cpu"}
    return graph, split, [vgae.VGAE(**settings).fit(split.train, validation=split.val), vgae.GAE(**settings).fit(PATH)]


def junk(random: Random, depth: int = 0) -> Any:
    """Anything: mostly one value, at times several of them in some container."""
    if depth > 2 or random.random() < 0.75:
        return random.choice(ATOMS)
    parts = [junk(random, depth + 1) for _ in range(random.randint(0, 4))]
    how = random.randrange(6)
    if how == 0:
        return tuple(parts)
    if how == 1:
        return {str(place): part for place, part in enumerate(parts)}
    if how == 2:
        return np.fromiter(parts, dtype=object, count=len(parts))
    if how == 3:
        return (part for part in parts)
    if how == 4:
        return [(part, part) for part in parts]
    return parts


def calls(case: Case) -> None:
    """One public function, one or two of its arguments junk."""
    random = case.random
    call = random.choice(CALLS)
    result = case.attempt(lambda: call(random))
    if isinstance(result, Graph):
        require_sound(result)


def _from_edges(random: Random) -> Any:
    names = ("num_nodes", "node_ids", "features", "labels", "weights", "directed")
    edges = junk(random) if random.random() < 0.4 else PATH
    return Graph.from_edges(edges, **{name: junk(random) for name in random.sample(names, random.randint(0, 2))})


def _constructors(random: Random) -> Any:
    make = random.choice((Graph.of, Graph.from_scipy, Graph.from_networkx, Graph.from_pyg, Graph.from_frame))
    return make(junk(random))


def _frame(random: Random) -> Any:
    table = pa.table({"source": ["a", "b", "c"], "target": ["b", "c", "d"], "w": [1.0, 2.0, 3.0]})
    names = ("source", "target", "weight", "directed", "nodes", "id", "label", "standardise", "impute")
    return Graph.from_frame(table, **{name: junk(random) for name in random.sample(names, random.randint(1, 2))})


def _networkx(random: Random) -> Any:
    ring = nx.cycle_graph(4)
    for node in ring:
        ring.nodes[node]["x"] = junk(random)
    for ends in ring.edges:
        ring.edges[ends]["w"] = junk(random)
    return Graph.from_networkx(ring, **random.choice(({"features": "x"}, {"label": "x"}, {"weight": "w"})))


def _bare(random: Random) -> Any:
    names = ("num_nodes", "edges", "features", "labels", "node_ids", "cleaning", "weights", "directions")
    options: dict[str, Any] = {"num_nodes": NODES, "edges": np.array(PATH)}
    return Graph(**options | {name: junk(random) for name in random.sample(names[:5] + names[6:], 1)})


def _split(random: Random) -> Any:
    options = {name: junk(random) for name in random.sample(("val", "test", "seed"), random.randint(0, 2))}
    return vgae.split_links(_things()[0] if options else junk(random), **options)


def _of_graph(random: Random) -> Any:
    graph = _things()[0]
    return random.choice((graph.index_of, graph.ids_of, graph.with_edges))(junk(random))


def _parameters(random: Random) -> Any:
    """Parameters of an estimator, and a training of two iterations if they are none too many."""
    names = ("features", "hidden_dim", "latent_dim", "iterations", "learning_rate", "objective", "weighting",
             "num_negatives", "control_variate", "batch_size", "eval_every", "early_stopping", "seed", "device",
             "precision", "progress")  # fmt: skip
    options: dict[str, Any] = {"iterations": 2, "hidden_dim": 4, "latent_dim": 2, "device": "cpu"}
    options |= {name: junk(random) for name in random.sample(names[:-1], random.randint(1, 2))}
    kind = random.choice((vgae.VGAE, vgae.GAE))
    return kind(**options).fit(_things()[1].train, validation=random.choice((None, _things()[1].val)))


def _fit(random: Random) -> Any:
    names = ("y", "validation", "checkpoint", "checkpoint_every")
    options = {name: junk(random) for name in random.sample(names[:2], random.randint(0, 1))}
    return vgae.VGAE(iterations=1, device="cpu").fit(junk(random) if random.random() < 0.6 else PATH, **options)


def _asked(random: Random) -> Any:
    """What a fitted model can be asked."""
    model = random.choice(_things()[2])
    asked: tuple[Callable[[], Any], ...] = (
        lambda: model.recommend(k=junk(random)),
        lambda: model.recommend(k=2, nodes=junk(random)),
        lambda: model.recommend(k=2, samples=junk(random), seed=junk(random)),
        lambda: model.predict_proba(junk(random)),
        lambda: model.predict_links(junk(random), samples=random.choice((None, 2, junk(random))), seed=junk(random)),
        lambda: model.logits(junk(random)),
        lambda: model.similar(junk(random), k=random.choice((2, junk(random)))),
        lambda: model.transform(junk(random)),
        lambda: model.on(junk(random)),
        lambda: model.on(_things()[0], known=junk(random)),
        lambda: model.score(junk(random)),
        lambda: vgae.evaluate(model, junk(random)),
    )
    return random.choice(asked)()


def _files(random: Random) -> Any:
    """A name that no file has, or nothing that could be a name."""
    names = (None, 3, 2.5, b"ab", "", "x\0.npz", "nowhere.csv", "a\nb.csv", "\x1b[31m.npz", "/", "x" * 5000)
    readers: tuple[Callable[[Any], Any], ...] = (vgae.read_graph, vgae.load, vgae.LinkSplit.load, vgae.load_dataset)
    return random.choice(readers)(random.choice(names))


def _made_up(random: Random) -> Any:
    options: dict[str, Any] = {"num_nodes": 12, "num_blocks": 2}
    name = random.choice(("num_nodes", "num_blocks", "degree_within", "degree_between", "feature_dim", "seed"))
    return vgae.stochastic_block_model(**options | {name: junk(random)})


CALLS = (_from_edges, _constructors, _frame, _networkx, _bare, _split, _of_graph, _parameters, _fit, _asked, _asked,
         _files, _made_up)  # fmt: skip
