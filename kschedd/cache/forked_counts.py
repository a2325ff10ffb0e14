"""The counts of a fork: worked out from its pods when they are asked for.

A fork is asked few questions and then forgotten, so that groups of pods, which make many questions cheap, would cost it
more than they save: a walk over all pods for each kind that is asked about is all it does. The terms that pods carry
are taken in once, by `recount`.

Invariant: every answer equals that of `PodCounts` over the same pods.
Owned by the fork's cluster; plugins read it.
"""

from kschedd.api.pods import Pod
from kschedd.cache.counts import GroupKey, PodCounts, PodMatcher
from kschedd.cache.domain_counter import DomainCounter


class ForkedCounts(PodCounts):
    """See the module. Empty until `recount`."""

    def recount(self) -> None:
        """Take in the terms that the pods of the table carry."""
        for row in self.table:
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

    def matching(self, kind: PodMatcher) -> DomainCounter:
        counter = self._matching.get(kind)
        if counter is None:
            counter = self._matching[kind] = DomainCounter(self.table)
            counter.by_row = self._counted(kind)
        return counter

    def _counted(self, kind: PodMatcher) -> dict[int, int]:
        included: dict[GroupKey, bool] = {}
        by_row: dict[int, int] = {}
        for row in self.table:
            total = 0
            for pod in self.table.pods[row]:
                signature, terminating = pod.signature, bool(pod.deletion_timestamp)
                key = (signature.group_key, terminating)
                holds = included.get(key)
                if holds is None:
                    of_kind = kind.includes(signature.namespace, signature.labels, self.namespaces)
                    holds = included[key] = of_kind and not (kind.live and terminating)
                total += holds
            if total:
                by_row[row] = total
        return by_row

    def _drop(self, kind: PodMatcher) -> None:
        self._matching.pop(kind).dropped = True
