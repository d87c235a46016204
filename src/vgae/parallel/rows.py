"""What is so of all rows of a table of which each process has some: counts, means, different texts.

Means are those of one process, to the last bit: the first has the values of one column for a moment. How many texts
there are is counted by their owners, as `numbering.py` has them, so that nobody has all of a column of names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import torch

from vgae.io.columns import FloatArray
from vgae.io.everywhere import Here, moments_of
from vgae.parallel.agreement import gather_json
from vgae.parallel.mail import Mail, collected
from vgae.parallel.texts import owners_of_text, send_text

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True)
class InGroup(Here):
    """Rows of which other processes have more; all of them ask the same."""

    group: Group

    def every(self, fact: bool) -> bool:
        """Whether something is so of the rows of all."""
        return not self.group.any(not fact)

    def total(self, number: int) -> int:
        """A count of all rows."""
        return int(self.group.sum(torch.tensor([number], device=self.group.device)).item())

    def moments(self, values: FloatArray) -> tuple[float, float]:
        """The mean and the standard deviation of the values of all."""
        every = collected(self.group, values)
        mean, deviation = self.group.share(None if every is None else moments_of(every))
        return mean, deviation

    def num_distinct(self, texts: pa.Array) -> int:
        """How many different texts there are."""
        texts = texts.cast(pa.large_string())
        arrived = send_text(Mail(self.group, owners_of_text(texts, self.group.size)), texts)
        return self.total(pc.count_distinct(arrived).as_py())

    def distinct(self, texts: pa.Array) -> list[str]:
        """All of them."""
        return list({text for found in gather_json(self.group, texts.to_pylist()) for text in found})
