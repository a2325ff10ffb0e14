"""Pod counts of a fork, computed on demand from the fork's pods.

A fork gets few queries and is then discarded. The groups of `PodCounts` make many queries fast, but for a few queries
they cost more than they save. The first query visits all pods and stores the signature of each in a column
(`SignedPods`). Each query evaluates each signature once. `recount` collects the affinity terms of the pods once.

Invariant: every answer equals the answer of `PodCounts` for the same pods.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter

import attrs
import numpy as np

from kschedd.api.pods import Pod, PodSignature
from kschedd.cache.counts import PodCounts, PodMatcher
from kschedd.cache.domain_counter import DomainCounter
from kschedd.cache.table import Ints, NodeTable, Rows

_SIGNATURE = attrgetter("signature")


@attrs.frozen(eq=False)
class SignedPods:
    """The pods of a table in columns, in row order. `numbers[i]` is the index of pod i's signature in `signatures`."""

    pods: Sequence[Pod]
    rows: Rows
    numbers: Ints
    signatures: Sequence[PodSignature]

    @classmethod
    def of(cls, table: NodeTable) -> "SignedPods":
        order = np.fromiter(table, dtype=np.int64)
        lists = [table.pods[row] for row in order.tolist()]
        pods = [*chain.from_iterable(lists)]
        signed = [*map(_SIGNATURE, pods)]
        number = {signature: place for place, signature in enumerate(dict.fromkeys(signed))}
        numbers = np.fromiter(map(number.__getitem__, signed), dtype=np.int64, count=len(pods))
        return cls(pods, np.repeat(order, [*map(len, lists)]), numbers, [*number])

    def places(self, holds: Callable[[PodSignature], bool]) -> Ints:
        """Return the indexes of the pods whose signature meets the condition; each signature is evaluated once."""
        held = np.fromiter(map(holds, self.signatures), dtype=bool, count=len(self.signatures))
        found: Ints = np.flatnonzero(held[self.numbers])
        return found

    def matching(self, holds: Callable[[PodSignature], bool]) -> list[Pod]:
        """Return the pods whose signature meets the condition, in row order."""
        return [self.pods[place] for place in self.places(holds).tolist()]


@attrs.define(eq=False)
class ForkedCounts(PodCounts):
    """Pod counts of a fork, computed on demand. Empty until `recount`."""

    any_terms: bool = True  # true if any pod had affinity terms when the fork was created
    _signed: SignedPods | None = None

    @property
    def carries_terms(self) -> bool:
        return self.any_terms or bool(self.existing_terms)

    def recount(self) -> None:
        """Collect the affinity terms of the table's pods."""
        for row in self.table if self.any_terms else ():
            for pod in self.table.pods[row]:
                if pod.signature.spec.has_pod_affinity:
                    self._carry(row, pod.signature, 1)

    @property
    def signed(self) -> SignedPods:
        """The table's pods with their signatures; a later change of the counts discards this value."""
        if self._signed is None:
            self._signed = SignedPods.of(self.table)
        return self._signed

    def add(self, row: int, pod: Pod, amount: int) -> None:
        self._signed = None
        signature, terminating = pod.signature, bool(pod.deletion_timestamp)
        for kind, counter in self._matching.items():
            if not (kind.live and terminating) and kind.includes(
                signature.namespace, signature.labels, self.namespaces
            ):
                counter.add(row, amount)
        if pod.signature.spec.has_pod_affinity:
            self._carry(row, pod.signature, amount)

    def prepare(self, pod: Pod) -> None:
        for kind in self._matching:
            kind.includes(pod.signature.namespace, pod.signature.labels, self.namespaces)

    def add_each(self, rows: Sequence[int], pod: Pod) -> None:
        for row in rows:
            self.add(row, pod, 1)

    def matching(self, kind: PodMatcher) -> DomainCounter:
        counter = self._matching.get(kind)
        if counter is None:
            counter = self._matching[kind] = DomainCounter(self.table)
            counter.by_row = self._counted(kind)
        return counter

    def _counted(self, kind: PodMatcher) -> dict[int, int]:
        signed = self.signed
        places = signed.places(lambda each: kind.includes(each.namespace, each.labels, self.namespaces))
        if kind.live:
            live = [not signed.pods[place].deletion_timestamp for place in places.tolist()]
            places = places[np.array(live, dtype=bool)]
        counts = np.bincount(signed.rows[places])
        rows = np.flatnonzero(counts)
        return dict(zip(rows.tolist(), counts[rows].tolist(), strict=True))

    def _drop(self, kind: PodMatcher) -> None:
        self._matching.pop(kind).dropped = True
