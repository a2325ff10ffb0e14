"""Ties: which of several nodes with the highest total a pod goes to.

Source: Kubernetes v1.34, scheduler/schedule_one.go (selectHost).
"""

from collections.abc import Callable, Sequence
from random import Random

import attrs

from kschedd.cache.table import Rows

Choose = Callable[[Rows, Sequence[str]], int]
"""Picks one of several best nodes: their rows in visiting order and the names of all rows in, the chosen row out."""


def by_name(rows: Rows, names: Sequence[str]) -> int:
    """The alphabetically first of the best nodes."""
    first: int = min(rows.tolist(), key=names.__getitem__)
    return first


@attrs.define(eq=False)
class AtRandom:
    """One of the best nodes, all equally likely; the same seed gives the same choices."""

    random: Random

    def __call__(self, rows: Rows, names: Sequence[str]) -> int:
        return int(rows[self.random.randrange(len(rows))])

    def fork(self) -> "AtRandom":
        """One that chooses from now on as this one would."""
        random = Random()
        random.setstate(self.random.getstate())
        return AtRandom(random)
