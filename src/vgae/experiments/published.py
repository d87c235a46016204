"""What others have published, for docs/accuracy.md: figures in percent, where they are from, and what differs there.

A figure that could not be checked against its source says by whom it is given.
"""

from __future__ import annotations

from dataclasses import dataclass

from vgae.experiments.paper import TABLE_1

Figures = dict[str, tuple[float | None, ...]]  # by dataset; None for what is not known


@dataclass(frozen=True)
class Published:
    """The figures of one method, AUC and AP or an MRR by dataset."""

    name: str
    figures: Figures
    source: str
    differences: str


def _of_table_1(method: str) -> Figures:
    return {dataset: methods[method] for dataset, methods in TABLE_1.items()}


KIPF = "Kipf & Welling, 2016, Table 1"
ONE_SPLIT = "One split, not published, ten initialisations on it; options chosen by validation, no early stopping."
HEART = "Li et al., 2023 (HeaRT, arXiv 2306.10453)"
NOT_CHECKED = "as quoted by others; not checked against the paper"
HEART_SPLIT = (
    "One fixed split of theirs and ten seeds on it; training is stopped, and options are chosen, by the MRR of "
    "validation links among hard non-links of their own."
)

WITH_FEATURES = (
    Published("GAE", _of_table_1("GAE"), KIPF, ONE_SPLIT),
    Published("VGAE", _of_table_1("VGAE"), KIPF, ONE_SPLIT),
    Published(
        "GNAE",
        {"cora": (95.6, None), "citeseer": (96.5, None), "pubmed": (97.5, None)},
        "Ahn & Kim, 2021 (arXiv 2108.08046); AUC as given by sotaverified.org, AP not found",
        "The split of their program is 80/7/13 unless another is asked for. It prints test scores after each "
        "iteration and does not use the validation links; how the published figure was chosen is not said there.",
    ),
    Published(
        "VGNAE",
        {"cora": (95.4, None), "citeseer": (97.0, None), "pubmed": (97.6, None)},
        "Ahn & Kim, 2021, as GNAE",
        "As GNAE; its KL is left out of the loss in the published program.",
    ),
    Published(
        "WalkPool",
        {"cora": (95.9, 96.0), "citeseer": (95.9, 96.0), "pubmed": (98.7, 98.7)},
        "Pan, Shi & Dokmanić, ICLR 2022 (arXiv 2110.04375), as given by paperswithcode.com",
        "A classifier of the subgraph around each pair; splits of their own, which were not compared with ours.",
    ),
    Published(
        "MaskGAE",
        {"cora": (96.4, 95.9), "citeseer": (97.8, 98.0), "pubmed": (98.8, 98.7)},
        "Li et al., KDD 2023 (arXiv 2205.10053), README of its program",
        "85/5/10; one split, by a fixed seed, and ten initialisations on it, so that its error says nothing about "
        "other splits; stopped by validation AUC.",
    ),
)
WITHOUT_FEATURES = (
    Published("SC", _of_table_1("SC"), KIPF, ONE_SPLIT),
    Published("DW", _of_table_1("DW"), KIPF, ONE_SPLIT),
    Published("GAE*", _of_table_1("GAE*"), KIPF, ONE_SPLIT),
    Published("VGAE*", _of_table_1("VGAE*"), KIPF, ONE_SPLIT),
)
HARD_NON_LINKS = (
    Published("GAE", {"cora": (18.3,), "citeseer": (25.3,), "pubmed": (5.3,)}, f"{HEART}, {NOT_CHECKED}", HEART_SPLIT),
    Published("NCN", {"cora": (14.7,), "citeseer": (28.7,), "pubmed": (5.8,)}, f"{HEART}, {NOT_CHECKED}", HEART_SPLIT),
    Published(
        "LPFormer",
        {"cora": (16.8,), "citeseer": (26.3,), "pubmed": (10.0,)},
        f"Shomer et al., KDD 2024 (arXiv 2310.11009), {NOT_CHECKED}",
        "The split and the non-links of HeaRT.",
    ),
)
