"""PodBatch: pods that are added to rows of a what-if copy, or removed from them, in a few array operations.

Pods of one kind have the same signature and requests, so their amounts are computed once.

Shapes: `requested` has one row for each of R resources, `nonzero` has 2 rows; both have one column for each kind.
Amounts beyond int64 wrap around, and the copy is marked with `wraps`.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.resources import Resources
from kschedd.cache.table import Ints, Rows, TableCopy


def kind_of_pod(pod: Pod) -> object:
    """Return a key that is equal for pods of one kind."""
    # During an in-place resize, each pod has its own requests.
    return (pod.signature.id, pod.uid) if pod.reports_resources else pod.signature.id


@attrs.frozen(eq=False)
class PodKinds:
    pods: Sequence[Pod]
    kinds: Ints  # of each pod
    of: Sequence[Pod]  # one of each kind

    @classmethod
    def among(cls, pods: Sequence[Pod], kinds_of: Iterable[object] | None = None) -> "PodKinds":
        """Group pods by kind. `kinds_of` contains the `kind_of_pod` of each pod, if already computed."""
        numbers: dict[object, int] = {}
        of: list[Pod] = []
        kinds = []
        for pod, key in zip(pods, map(kind_of_pod, pods) if kinds_of is None else kinds_of, strict=True):
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(of)
                of.append(pod)
            kinds.append(number)
        return PodKinds(pods, np.array(kinds, dtype=np.int64), of)


@attrs.frozen(eq=False)
class PodBatch(PodKinds):
    _requested: Ints
    _nonzero: Ints
    _resources: list[int]  # indices of all requested resources
    _ports: frozenset[int]  # indices of the kinds of pods with host ports

    @classmethod
    def made(cls, pods: Sequence[Pod], table: TableCopy, kinds_of: Iterable[object] | None = None) -> Self:
        """Create a batch. `kinds_of` contains the `kind_of_pod` of each pod, if already computed."""
        among = PodKinds.among(pods, kinds_of)
        of = among.of
        amounts: dict[int, int] = {}  # by `id()` of the requests, which pods with equal specs share
        distinct: list[tuple[Resources, tuple[int, int]]] = []
        amounts_of = []
        for pod in map(table.counted, of):
            requests = pod.requests
            number = amounts.setdefault(id(requests), len(distinct))
            if number == len(distinct):
                distinct.append((requests, pod.nonzero_requests))
            amounts_of.append(number)
        names = {name for requests, _ in distinct for name, amount in requests.items() if name != "pods" and amount}
        columns = {name: table.resource(name) for name in sorted(names)}
        requested = np.zeros((len(table.resources), len(distinct)), dtype=np.int64)
        nonzero = np.zeros((2, len(distinct)), dtype=np.int64)
        for number, (requests, cpu_and_memory) in enumerate(distinct):
            for name, column in columns.items():
                requested[column, number] = table.plain(requests.get(name, 0))
            nonzero[:, number] = [table.plain(amount) for amount in cpu_and_memory]
        ports = frozenset(number for number, pod in enumerate(of) if pod.signature.spec.host_ports)
        return cls(
            pods,
            among.kinds,
            of,
            requested[:, amounts_of],
            nonzero[:, amounts_of],
            list(columns.values()),
            ports,
        )

    def count(self, table: TableCopy, rows: Rows, places: Ints, sign: int) -> None:
        """Add (`sign` 1) or remove (-1) the pod with this index in the batch, on each of these distinct rows."""
        kinds = self.kinds[places]
        for resource in self._resources:
            table.requested[resource][rows] += sign * self._requested[resource][kinds]
        for number in (0, 1):
            table.nonzero[number][rows] += sign * self._nonzero[number][kinds]
        table.pod_count[rows] += sign
        if self._ports:
            self._count_ports(table, rows, kinds, sign)
        table.versions.touch_each(rows)

    def count_all(self, table: TableCopy, rows: Rows, first: Ints, sign: int) -> None:
        """Add or remove the whole batch. The pods of row `rows[n]` begin at index `first[n]` and are consecutive.

        Every row has at least one pod.
        """
        for resource in self._resources:
            amounts = np.add.reduceat(self._requested[resource][self.kinds], first)
            table.requested[resource][rows] += sign * amounts
        for number in (0, 1):
            table.nonzero[number][rows] += sign * np.add.reduceat(self._nonzero[number][self.kinds], first)
        many = np.diff(np.append(first, len(self.kinds)))
        table.pod_count[rows] += sign * many
        if self._ports:
            self._count_ports(table, np.repeat(rows, many), self.kinds, sign)
        table.versions.touch_each(rows)

    def _count_ports(self, table: TableCopy, rows: Rows, kinds: Ints, sign: int) -> None:
        for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True):
            if kind in self._ports:
                table.count_ports(row, self.of[kind].signature.spec, sign)
