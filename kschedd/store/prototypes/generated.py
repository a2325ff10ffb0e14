"""Generated: the uids that objects get, and the names of those that have only a generateName.

Random, but the same for the same seed, version of the store and calls, so that a run can be repeated. What is written
about others (Events, Leases) draws from a sequence of its own: whether anybody writes that changes no other names.

Owns the two sequences. Source: Kubernetes v1.34, apiserver/pkg/storage/names/generate.go.
"""

import random
from collections.abc import Container
from typing import Final

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE: Final = 58
_ASIDE: Final = frozenset(("Event", "Lease"))


class Generated:
    def __init__(self, seed: int, version: int) -> None:
        self.seed = seed
        self.begin_at(version)

    def begin_at(self, version: int) -> None:
        """Go on as one of a store that begins with this version."""
        self._random = random.Random(f"{self.seed}/{version}")
        self._aside = random.Random(f"{self.seed}/{version}/aside")

    def go_on_as(self, other: "Generated") -> None:
        """Make what the other one is about to make."""
        self._random.setstate(other._random.getstate())
        self._aside.setstate(other._aside.getstate())

    def uid(self, kind: str) -> str:
        """For an object of this kind."""
        bits = self._random_of(kind).getrandbits(128).to_bytes(16, "big").hex()  # half the time of formatting it
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

    def name(self, kind: str, base: str, taken: Container[str]) -> str:
        """A name that begins with `base`, an object's generateName, and is not taken."""
        while True:
            name = base[:_LONGEST_BASE] + "".join(self._random_of(kind).choices(_SUFFIX_LETTERS, k=5))
            if name not in taken:
                return name

    def _random_of(self, kind: str) -> random.Random:
        return self._aside if kind in _ASIDE else self._random
