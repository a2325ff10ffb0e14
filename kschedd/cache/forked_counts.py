"""The counts of a fork: worked out from its pods when they are asked for.

A fork is asked few questions and then forgotten, so that groups of pods, which make many questions cheap, would cost it
more than they save: a walk over all pods for each kind that is asked about is all it does. The terms that pods carry
are taken in once, by `recount`.

Invariant: every answer equals that of `PodCounts` over the same pods.
Owned by the fork's cluster; plugins read it.
"""

from kschedd.api.pods import Pod
from kschedd.cache.counts import GroupKey, Kind, PodCounts
from kschedd.cache.tally import Counter


class ForkedCounts(PodCounts):
    """See the module. Empty until `recount`."""

    def recount(self) -> None:
        """Take in the terms that the pods of the table carry."""
        for row in self.table:
            for pod in self.table.pods[row]:
                if pod.shape.spec.has_pod_affinity:
                    self._carry(row, pod.shape, 1)

    def add(self, row: int, pod: Pod, amount: int) -> None:
        self._matching.clear()  # made again when asked for
        if pod.shape.spec.has_pod_affinity:
            self._carry(row, pod.shape, amount)

    def matching(self, kind: Kind) -> Counter:
        counter = self._matching.get(kind)
        if counter is None:
            counter = self._matching[kind] = Counter(self.table)
            counter.by_row = self._counted(kind)
        return counter

    def _counted(self, kind: Kind) -> dict[int, int]:
        included: dict[GroupKey, bool] = {}
        by_row: dict[int, int] = {}
        for row in self.table:
            total = 0
            for pod in self.table.pods[row]:
                shape, terminating = pod.shape, bool(pod.deletion_timestamp)
                key = (shape.group_key, terminating)
                holds = included.get(key)
                if holds is None:
                    of_kind = kind.includes(shape.namespace, shape.labels, self.namespaces)
                    holds = included[key] = of_kind and not (kind.live and terminating)
                total += holds
            if total:
                by_row[row] = total
        return by_row

    def _drop(self, kind: Kind) -> None:
        self._matching.pop(kind).dropped = True
