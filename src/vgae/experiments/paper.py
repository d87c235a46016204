"""What the paper reports: Kipf & Welling, Variational Graph Auto-Encoders, 2016.

Table 1 holds AUC and AP on the test pairs, in percent: the mean of ten runs with random initialisations on fixed
splits, by dataset and method. A star marks models that use no features. SC is spectral clustering, DW is DeepWalk.
"""

TABLE_1: dict[str, dict[str, tuple[float, float]]] = {
    "cora": {
        "SC": (84.6, 88.5),
        "DW": (83.1, 85.0),
        "GAE*": (84.3, 88.1),
        "VGAE*": (84.0, 87.7),
        "GAE": (91.0, 92.0),
        "VGAE": (91.4, 92.6),
    },
    "citeseer": {
        "SC": (80.5, 85.0),
        "DW": (80.5, 83.6),
        "GAE*": (78.7, 84.1),
        "VGAE*": (78.9, 84.1),
        "GAE": (89.5, 89.9),
        "VGAE": (90.8, 92.0),
    },
    "pubmed": {
        "SC": (84.2, 87.8),
        "DW": (84.4, 84.1),
        "GAE*": (82.2, 87.4),
        "VGAE*": (82.7, 87.5),
        "GAE": (96.4, 96.5),
        "VGAE": (94.4, 94.7),
    },
}


def paper_result(dataset: str | None, model: str, *, features: bool) -> tuple[float, float] | None:
    """The paper's AUC and AP for a model on a dataset, in percent; None where it reports none."""
    method = model.upper() + ("" if features else "*")
    return TABLE_1.get(dataset or "", {}).get(method)
