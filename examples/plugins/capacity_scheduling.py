"""CapacityScheduling: namespaces share a cluster by elastic quotas: `min` is guaranteed, up to `max` may be borrowed.

    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: ElasticQuota                              # its CustomResourceDefinition: examples/plugins/crds.yaml
    metadata: {name: team, namespace: team-a}
    spec:
      min: {cpu: "8", memory: 16Gi}
      max: {cpu: "16"}

A pod is rejected if its namespace would exceed `max`, or if the namespace would borrow while the sum of all `min` is in
use. If a pod within the `min` of its namespace fits on no node, it preempts pods of borrowing namespaces: pods of lower
or equal priority, the latest first, on the node with the fewest victims.

Source: kubernetes-sigs/scheduler-plugins, pkg/capacityscheduling (the behavior, not the code).
Units: as in a node's allocatable: CPU in millicores, other resources as integers. Namespaces without a quota are
unlimited.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final, Self

import attrs

from kschedd.plugin import (
    ActionType,
    ClusterEventWithHint,
    Code,
    CustomResource,
    CycleState,
    Delete,
    EventResource,
    Handle,
    Pod,
    PostFilterResult,
    PostFilterView,
    QuantityError,
    RawArgs,
    SchedulerCache,
    Status,
    amounts,
    on,
    unschedulable,
)

KIND: Final = "ElasticQuota"
Amounts = Mapping[str, int]


@attrs.frozen
class Quota:
    """Quota of a namespace; `used` is the usage of the namespace's pods that have a node."""

    least: Amounts
    most: Amounts
    used: Amounts

    def borrows(self, *more: Amounts) -> bool:
        """Return whether the namespace would use more of any resource than its `min`."""
        return _exceeds(_sum((self.used, *more)), self.least)


def _sum(parts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _exceeds(used: Amounts, bound: Amounts) -> bool:
    """Return whether the usage exceeds the bound for any resource in the bound."""
    return any(used.get(name, 0) > most for name, most in bound.items())


def _quota(spec: object, used: Amounts) -> Quota | None:
    """Return the quota of a spec; None if this plugin cannot read the spec, because no schema excludes other forms."""
    given = {} if spec is None else spec
    if not isinstance(given, Mapping):
        return None
    bounds: list[Amounts] = []
    for bound in (given.get("min"), given.get("max")):
        if not isinstance(bound, Mapping | None):
            return None
        try:
            bounds.append(amounts(bound))
        except QuantityError:
            return None
    return Quota(bounds[0], bounds[1], used)


def _readable(quotas: Mapping[str, Quota | None]) -> dict[str, Quota]:
    return {namespace: quota for namespace, quota in quotas.items() if quota is not None}


@attrs.define(eq=False)
class Usage:
    """Requests of the scheduled pods of each namespace, updated from the rows that have changed."""

    total: dict[str, dict[str, int]] = attrs.field(factory=dict)
    _by_row: dict[int, dict[str, dict[str, int]]] = attrs.field(factory=dict)
    _stamp: int = -1

    def refresh(self, cluster: SchedulerCache) -> None:
        versions, table = cluster.versions, cluster.table
        changed = versions.pods.since(self._stamp) if self._stamp >= 0 else None
        self._stamp = versions.now
        if changed is None:
            self.total, self._by_row = {}, {}
        for row in set(table if changed is None else changed):
            before = self._by_row.pop(row, {})
            now: dict[str, dict[str, int]] = {}
            for pod in table.pods[row]:
                now[pod.namespace] = _sum((now.get(pod.namespace, {}), pod.requests))
            for namespace in before.keys() | now.keys():
                gone = {name: -amount for name, amount in before.get(namespace, {}).items()}
                self.total[namespace] = _sum((self.total.get(namespace, {}), gone, now.get(namespace, {})))
            if now:
                self._by_row[row] = now


@attrs.define(eq=False)
class CapacityScheduling:
    name: ClassVar = "CapacityScheduling"
    _handle: Handle
    _usage: Usage = attrs.field(factory=Usage)

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        return cls(handle)

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        found = self._quotas(cluster)
        if pod.namespace in found and found[pod.namespace] is None:
            return unschedulable(f"ElasticQuota of namespace {pod.namespace}: min and max must be maps of quantities")
        quotas = _readable(found)
        quota = quotas.get(pod.namespace)
        if quota is None:
            return None
        if _exceeds(_sum((quota.used, pod.requests)), quota.most):
            return unschedulable(
                f"Pod {pod.key} is rejected in PreFilter because ElasticQuota {pod.namespace} is more than Max"
            )
        used = _sum((pod.requests, *(each.used for each in quotas.values())))
        if quota.borrows(pod.requests) and _exceeds(used, _sum(each.least for each in quotas.values())):
            return unschedulable(
                f"Pod {pod.key} is rejected in PreFilter because total ElasticQuota used is more than min"
            )
        return None

    def post_filter(
        self, state: CycleState, pod: Pod, cluster: SchedulerCache, view: PostFilterView
    ) -> PostFilterResult:
        """Preempt pods of borrowing namespaces on one node."""
        quotas = _readable(self._quotas(cluster))
        quota = quotas.get(pod.namespace)
        nothing = PostFilterResult(Status(Code.UNSCHEDULABLE, ("no borrowed resources can be taken back",)))
        if quota is None or quota.borrows(pod.requests):
            return nothing
        found: list[tuple[int, int, list[Pod]]] = []  # how many go, row, who
        for row in view.rows_with(Code.UNSCHEDULABLE).tolist():
            victims = self._victims(pod, row, cluster, dict(quotas))
            if victims:
                found.append((len(victims), row, victims))
        if not found:
            return nothing
        _, row, victims = min(found, key=lambda each: each[:2])
        writes = tuple(Delete("Pod", victim.namespace, victim.name, victim.uid) for victim in victims)
        node = cluster.table.names[row]
        return PostFilterResult(Status(Code.SUCCESS), nominated_node=node, victims=tuple(victims), writes=writes)

    def _victims(self, pod: Pod, row: int, cluster: SchedulerCache, quotas: dict[str, Quota]) -> list[Pod]:
        """Return the pods to evict so that the pod fits on that row; [] if evicting pods is not enough."""
        table = cluster.table
        short = {
            name: wanted
            - int(table.allocatable[table.resource(name), row] - table.requested[table.resource(name), row])
            for name, wanted in pod.requests.items()
        }
        chosen: list[Pod] = []
        candidates = [other for other in table.pods[row] if other.priority <= pod.priority]
        for other in sorted(candidates, key=lambda other: (other.priority, -_age(other), other.key)):
            if all(amount <= 0 for amount in short.values()):
                break
            quota = quotas.get(other.namespace)
            if quota is None or other.namespace == pod.namespace or not quota.borrows():
                continue
            chosen.append(other)
            quotas[other.namespace] = attrs.evolve(
                quota, used={name: amount - other.requests.get(name, 0) for name, amount in quota.used.items()}
            )
            short = {name: amount - other.requests.get(name, 0) for name, amount in short.items()}
        return chosen if all(amount <= 0 for amount in short.values()) else []

    def _quotas(self, cluster: SchedulerCache) -> dict[str, Quota | None]:
        """Return the quota of each namespace: the first by name if there are several.

        None means that the quota is invalid, so that only the pods of this namespace wait.
        """
        given: dict[str, object] = {}
        for key, found in sorted(cluster.of_kind(KIND).items()):
            given.setdefault(key.partition("/")[0], found.raw.get("spec"))
        if given:
            self._usage.refresh(cluster)
        return {namespace: _quota(spec, self._usage.total.get(namespace, {})) for namespace, spec in given.items()}

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            on(EventResource.POD, ActionType.DELETE),
            on(CustomResource(KIND), ActionType.ALL),
        ]


def _age(pod: Pod) -> int:
    """Return a number that is larger for newer pods."""
    return pod.resource_version
