"""Generated values: UIDs of new objects, and names of objects that have only a generateName.

The values are random, but equal for the same seed, store version and sequence of calls, so that a run can be repeated.
Events and Leases use a second random sequence, and dry runs a third, so that they do not change the names of other
objects. The generated values also depend on the UIDs of objects from another cluster. Without these UIDs, a cluster
that loads a dump of a cluster with the same seed would generate UIDs that the dump already contains.

Owns the sequences.
Source: Kubernetes v1.34, apiserver/pkg/storage/names/generate.go.
"""

import random
from collections.abc import Container, Generator, Iterable
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE: Final = 58
_ASIDE: Final = frozenset(("Event", "Lease"))


class Generated:
    def __init__(self, seed: int, version: int) -> None:
        self.seed = seed
        self._others = ""  # hash of the UIDs from other clusters
        self.begin_at(version)

    def begin_at(self, version: int) -> None:
        """Restart the sequences as in a store that starts with this version."""
        start = f"{self.seed}/{version}{self._others}"
        self._random = random.Random(start)
        self._aside = random.Random(f"{start}/aside")
        self._tried = random.Random(f"{start}/tried")

    def begin_beside(self, uids: Iterable[str], version: int) -> None:
        """Restart the sequences after objects of another cluster with these UIDs were stored."""
        self._others = "/" + blake2b("".join([self._others, *uids]).encode(), digest_size=8).hexdigest()
        self.begin_at(version)

    def begin_as(self, other: "Generated", version: int) -> None:
        """Restart the sequences at this version, with the same UIDs of other clusters as `other`."""
        self._others = other._others
        self.begin_at(version)

    def go_on_as(self, other: "Generated") -> None:
        """Continue with the values that another instance would return next."""
        self._others = other._others
        self._random.setstate(other._random.getstate())
        self._aside.setstate(other._aside.getstate())
        self._tried.setstate(other._tried.getstate())

    @contextmanager
    def apart(self) -> Generator[None]:
        """Use a third sequence in the context, for a dry run; the other two sequences do not change."""
        kept = self._random, self._aside
        self._random = self._aside = self._tried
        try:
            yield
        finally:
            self._random, self._aside = kept

    def uid(self, kind: str) -> str:
        """Return the UID of a new object of this kind."""
        # Formatting the bytes takes half as long as formatting the integer.
        bits = self._random_of(kind).getrandbits(128).to_bytes(16, "big").hex()
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

    def name(self, kind: str, base: str, taken: Container[str]) -> str:
        """Return an unused name that begins with `base`, an object's generateName."""
        while True:
            name = base[:_LONGEST_BASE] + "".join(self._random_of(kind).choices(_SUFFIX_LETTERS, k=5))
            if name not in taken:
                return name

    def _random_of(self, kind: str) -> random.Random:
        return self._aside if kind in _ASIDE else self._random
