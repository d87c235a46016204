"""An estimator with the interface of the stack, which scores as a VGAE does, for tests of what asks it."""

from typing import Any

import numpy.typing as npt

import vgae
from vgae.estimators.links import Links


class Stack(vgae.VGAE):
    """A VGAE that is asked for its best pairs and never for the scores of all."""

    asked_to_recommend = False

    def rows(self) -> Any:
        """What a stack does not have; only its own way to the best pairs uses it."""
        assert self.asked_to_recommend, "a stack is not asked for rows"
        return super().rows()

    def recommend(self, k: int = 10, nodes: npt.ArrayLike | None = None, **options: Any) -> Links:
        """The best pairs of the VGAE."""
        self.asked_to_recommend = True
        try:
            return super().recommend(k, nodes, **options)
        finally:
            self.asked_to_recommend = False
