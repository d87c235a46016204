"""Generated input for the whole library: what `benchmarks/fuzz.py` runs by the thousand and `test_fuzz.py` in passing.

A kind is a function of a `Case`; it writes, reads and compares, and everything it does follows from the case's seed.
"""

from collections.abc import Callable

from fuzzing.calls import calls
from fuzzing.case import Case, Outcome, run_case
from fuzzing.graphml import graphml
from fuzzing.npz import npz
from fuzzing.runs import remove_intact, runs
from fuzzing.tables import nodes, pairs, tables

__all__ = ["KINDS", "Case", "Outcome", "remove_intact", "run_case"]

KINDS: dict[str, Callable[[Case], None]] = {
    kind.__name__: kind for kind in (tables, nodes, pairs, runs, npz, graphml, calls)
}
