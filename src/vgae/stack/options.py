"""How the meta-model of a stack is fitted."""

from __future__ import annotations

from dataclasses import dataclass

from vgae.options import Options, option
from vgae.stack.logistic import MOST_KNOTS


@dataclass(frozen=True)
class MetaOptions(Options):
    """How the meta-model is fitted."""

    boosting: float = option(
        0.5, least=0, most=1, help="Share of the boosted trees in the log odds; the rest is the regression."
    )
    balance: float = option(
        0.0, least=0, most=1, help="Of the regression, 0: best at the top of the list; 1: best over all pairs."
    )
    ridge: float = option(1.0, least=0, help="Strength of the penalty on coefficients of the logistic regression.")
    num_knots: int = option(6, least=0, most=MOST_KNOTS, help="Places where the part of a column may bend.")
    num_trees: int = option(200, least=1, most=10_000, help="Trees of each boosted model.")
    tree_rate: float = option(0.06, above=0, most=1, help="Share of each step of boosting that is taken.")
    num_leaves: int = option(15, least=2, most=1024, help="Leaves of a tree, at most.")
    leaf_rows: int = option(40, least=1, help="Pairs in a leaf, at least.")
    leaf_ridge: float = option(1.0, least=0, help="Strength of the penalty on the values of leaves.")
    column_share: float = option(
        0.5, above=0, most=1, help="Share of the columns, at random, that a split chooses from."
    )
    second_look: float = option(
        3.0, least=0, help="Pairs that are looked at again, as a multiple of the links to be found; 0: none."
    )
    num_boosted: int = option(1, least=1, most=100, help="Boosted models of different seeds that are averaged.")
