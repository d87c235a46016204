"""The kinds of files that are read, by the endings of their names; all but Parquet and npz also with `.gz` or `.zst`.

TABLES      rows are links, or nodes (`links.py`, `nodes.py`), or entries of features (`entries.py`)
DOCUMENTS   links and nodes with their attributes (`graphml.py`, `foreign.py`)
MATRICES    an adjacency matrix, or a matrix of features with a row per node (`matrix_market.py`)
ARRAYS      npz files: vgae's own, SciPy's, the GNN benchmarks', or with an edge_index (`npz_layouts.py`)
LISTS       features alone: for each node a list, in JSON (`entries.py`)
"""

from vgae.errors import InputError

TEXT = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
PARQUET = (".parquet", ".pq")
TABLES = (*TEXT, *PARQUET)
GRAPHML, GML, GEXF = ".graphml", ".gml", ".gexf"
PAJEK = (".net", ".paj")
DOCUMENTS = (GRAPHML, GML, GEXF, *PAJEK)
MATRICES = (".mtx",)
ARRAYS = (".npz",)
LISTS = (".json",)

GRAPHS = (*TABLES, *DOCUMENTS, *MATRICES, *ARRAYS)
FEATURES = (*TABLES, *MATRICES, *ARRAYS, *LISTS)


def refuse_unknown_graph(path: object, ending: str) -> InputError:
    """The sentence about a file that holds no graph of a known kind."""
    if ending in LISTS:
        return InputError(f"{path}: links are not read from JSON, only features (features); use {', '.join(GRAPHS)}.")
    return InputError(f"{path}: not a kind of file that is known; use {', '.join(GRAPHS)}.")


def refuse_unknown_features(path: object) -> InputError:
    """The sentence about a file that holds no features of a known kind."""
    return InputError(f"{path}: not a kind of file that features are read from; use {', '.join(FEATURES)}.")
