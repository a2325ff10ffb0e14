"""The strategies LowNodeUtilization and HighNodeUtilization, which compute utilization from the requests of pods.

Amounts of cpu are in thousandths of a core; all other amounts are in whole units (memory: bytes).

Source: sigs.k8s.io/descheduler, pkg/framework/plugins/nodeutilization.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.resources import amounts
from kschedd.descheduler.cluster import DeschedulingCluster, RequestOutcome, Work
from kschedd.descheduler.evictor import Evictor
from kschedd.descheduler.node_fit import tolerates
from kschedd.descheduler.policy import HighUtilizationArgs, LowUtilizationArgs
from kschedd.descheduler.strategies.violations import by_priority

_ALWAYS: Final = ("cpu", "memory", "pods")

Amounts = dict[str, int]
Shares = Mapping[str, float]
Continues = Callable[["_Use", Mapping[str, int]], bool]
"""A function that decides by a node's use and the room of all receiving nodes whether the next pod is evicted."""


@attrs.define(eq=False)
class _Use:
    node: Node
    used: Amounts
    pods: Sequence[Pod]
    capacity: Amounts
    target: Amounts = attrs.field(factory=dict)  # amount of each resource up to which the node may be filled

    @classmethod
    def of(cls, node: Node, cluster: DeschedulingCluster, resources: Iterable[str]) -> "_Use":
        pods = cluster.pods_on(node.name)
        used = {name: sum(pod.pod_spec.requests.get(name, 0) for pod in pods) for name in resources}
        used["pods"] = len(pods)
        capacity = node.allocatable or amounts(node.status.get("capacity"))
        return cls(node, used, pods, {**capacity})

    @property
    def shares(self) -> dict[str, float]:
        """The requested percentage of each resource of the node."""
        return {
            name: 100 * amount / self.capacity[name] if self.capacity[name] > 0 else 0.0
            for name, amount in self.used.items()
            if name in self.capacity
        }

    def set_target(self, shares: Shares) -> None:
        for name in self.used:
            whole = self.capacity.get(name, 0)
            self.target[name] = int(shares[name] * 0.01 * whole) if name in shares and name in self.capacity else whole

    @property
    def is_above_target(self) -> bool:
        return any(self.target[name] < amount for name, amount in self.used.items())


def low_utilization(name: str, args: LowUtilizationArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    uses = yield from _uses(args.thresholds, evictor.cluster, nodes)
    low, high = args.thresholds, args.targets
    if args.deviations:
        low, high = _around_average(uses, low, high)
    under, over = [], []
    for use in uses:
        shares = use.shares
        if not use.node.unschedulable and all(shares.get(each, 0.0) <= share for each, share in low.items()):
            under.append(use)
        elif any(shares.get(each, 0.0) > share for each, share in high.items()):
            over.append(use)
    if len(under) <= args.number_of_nodes or len(under) in (0, len(nodes)) or not over:
        return
    for use in (*under, *over):
        use.set_target(high)
    over.sort(key=lambda use: -sum(use.used.values()))

    def continues(use: _Use, room: Mapping[str, int]) -> bool:
        return use.is_above_target and all(amount > 0 for amount in room.values())

    yield from _Moving(name, evictor, args.exclude, args.most_of_node, continues).run(over, under, evictor.filter)


def high_utilization(name: str, args: HighUtilizationArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    under, others = [], []
    for use in (yield from _uses(args.thresholds, evictor.cluster, nodes)):
        shares = use.shares
        if all(shares.get(each, 0.0) <= share for each, share in args.thresholds.items()):
            under.append(use)
        elif not use.node.unschedulable:
            others.append(use)
    if len(under) <= args.number_of_nodes or len(under) in (0, len(nodes)) or not others:
        return
    for use in others:
        use.set_target({})
    under.sort(key=lambda use: sum(use.used.values()))

    def chosen(pod: Pod) -> bool:
        return evictor.filter(pod) and (not args.only_thresholding or _requests_any(pod, args.thresholds))

    def continues(use: _Use, room: Mapping[str, int]) -> bool:
        return all(amount > 0 for amount in room.values())

    yield from _Moving(name, evictor, args.exclude, None, continues).run(under, others, chosen)


def _uses(thresholds: Iterable[str], cluster: DeschedulingCluster, nodes: Iterable[Node]) -> Work[list[_Use]]:
    resources, found = dict.fromkeys((*thresholds, *_ALWAYS)), []
    for node in nodes:
        found.append(_Use.of(node, cluster, resources))
        yield 1 + len(found[-1].pods)
    return found


def _around_average(uses: Sequence[_Use], below: Shares, above: Shares) -> tuple[Shares, Shares]:
    """Return the lower and upper thresholds in percent: the average use of all nodes less `below`, and plus `above`."""
    averages = {}
    for name in below:
        shares = [found[name] for use in uses if name in (found := use.shares)]
        if shares:
            averages[name] = sum(shares) / len(shares)
    low = {name: min(max(average - below[name], 0.0), 100.0) for name, average in averages.items()}
    high = {name: min(max(average + above[name], 0.0), 100.0) for name, average in averages.items()}
    return low, high


def _requests_any(pod: Pod, resources: Iterable[str]) -> bool:
    spec = pod.pod_spec.raw
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    stated = [(container.get("resources") or {}).get("requests") or {} for container in containers]
    return any(resource in requests for resource in resources for requests in stated)


@attrs.frozen(eq=False)
class _Moving:
    """The eviction of pods from some nodes while other nodes have capacity for them."""

    strategy: str
    evictor: Evictor
    exclude: frozenset[str]
    most_of_node: int | None
    continues: Continues

    def run(self, giving: Sequence[_Use], receiving: Sequence[_Use], chosen: Callable[[Pod], bool]) -> Work[None]:
        room = {name: sum(use.target[name] - use.used[name] for use in receiving) for name in receiving[0].used}
        for use in giving:
            pods = by_priority([pod for pod in use.pods if chosen(pod)])
            yield 1 + len(use.pods)
            if not (yield from self._from(use, pods, room, receiving)):
                return

    def _from(self, use: _Use, pods: Iterable[Pod], room: Amounts, receiving: Sequence[_Use]) -> Work[bool]:
        """Evict pods from the node of `use`. Return False if the limit of evictions per cycle is reached."""
        evicted = 0
        if not self.continues(use, room):
            return True
        for pod in pods:
            if self.most_of_node is not None and evicted >= self.most_of_node:
                break
            if not _tolerated(pod, receiving) or pod.namespace in self.exclude:
                continue
            if not (yield from self.evictor.pre_filter(pod)):
                continue
            outcome = self.evictor.evict(pod, self.strategy)
            if outcome is RequestOutcome.TOTAL_LIMIT:
                return False
            if outcome is RequestOutcome.NODE_LIMIT:
                break
            if outcome is RequestOutcome.REFUSED:
                continue
            evicted += 1
            for name in room:
                amount = 1 if name == "pods" else pod.pod_spec.requests.get(name, 0)
                use.used[name] -= amount
                room[name] -= amount
            if not self.continues(use, room):
                break
        return True


def _tolerated(pod: Pod, receiving: Iterable[_Use]) -> bool:
    """Return whether the pod tolerates all taints of a receiving node.

    The real descheduler also requires that the pod has at least as many tolerations as the node has taints.
    """
    tolerations = pod.pod_spec.tolerations
    return any(
        len(tolerations) >= len(use.node.taints) and tolerates(tolerations, use.node.taints) for use in receiving
    )
