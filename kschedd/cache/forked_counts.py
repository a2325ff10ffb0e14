"""The counts of a fork, computed from the fork's pods on request.

A fork gets few queries and is then discarded. Groups of pods make many queries cheap, but for a few queries they would
cost more than they save. `ForkedCounts` visits all pods for each requested matcher. `recount` collects the terms of
the pods only once.

Invariant: every answer equals the answer of `PodCounts` for the same pods.
The fork's cluster owns the counts; plugins read them.
"""

from collections.abc import Sequence

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.counts import PodCounts, PodMatcher
from kschedd.cache.domain_counter import DomainCounter


@attrs.define(eq=False)
class ForkedCounts(PodCounts):
    """The counts of a fork, computed on request. Empty until `recount`."""

    any_terms: bool = True  # true if any pod has terms, counted when the fork was created

    @property
    def carries_terms(self) -> bool:
        return self.any_terms or bool(self.existing_terms)

    def recount(self) -> None:
        """Collect the terms of the table's pods."""
        for row in self.table if self.any_terms else ():
            for pod in self.table.pods[row]:
                if pod.signature.spec.has_pod_affinity:
                    self._carry(row, pod.signature, 1)

    def add(self, row: int, pod: Pod, amount: int) -> None:
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
        included: dict[int, bool] = {}  # by signature
        by_row: dict[int, int] = {}
        live, pods = kind.live, self.table.pods
        for row in self.table:
            total = 0
            for pod in pods[row]:
                signature = pod.signature
                holds = included.get(signature.id)
                if holds is None:
                    holds = kind.includes(signature.namespace, signature.labels, self.namespaces)
                    included[signature.id] = holds
                if holds and not (live and pod.deletion_timestamp):
                    total += 1
            if total:
                by_row[row] = total
        return by_row

    def _drop(self, kind: PodMatcher) -> None:
        self._matching.pop(kind).dropped = True
