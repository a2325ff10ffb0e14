"""The states of a benchmark's pods, observed by a watch: which pods were bound or attempted, and when.

This class owns the existing pods by namespace, and the observed bindings in order. Ends with the cluster.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

import attrs
import trio

from kschedd.api.pods import Pod
from kschedd.store.cluster_api import ClusterWatch
from kschedd.store.objects.log import DELETED, WatchEvent


@attrs.frozen(eq=False)
class BoundPod:
    pod: Pod
    at: float  # by the tracker's timer


@attrs.define(eq=False)
class PodTracker:
    """The tracker. `timer` is a monotonic clock in seconds."""

    timer: Callable[[], float]
    bindings: list[BoundPod] = attrs.field(factory=list, init=False)
    _pods: dict[str, dict[str, Pod]] = attrs.field(factory=lambda: defaultdict(dict), init=False)
    _bound: dict[str, int] = attrs.field(factory=lambda: defaultdict(int), init=False)
    _ever_bound: dict[str, int] = attrs.field(factory=lambda: defaultdict(int), init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def run(self, watch: ClusterWatch) -> None:
        while await watch.wait():
            now = self.timer()
            for event in watch.take():
                self._take(event, now)
            self._changed.set()
            self._changed = trio.Event()

    def _take(self, event: WatchEvent, now: float) -> None:
        pod = event.new if event.type != DELETED else event.old
        if not isinstance(pod, Pod):
            return
        pods = self._pods[pod.namespace]
        before = pods.get(pod.name)
        was_bound = before is not None and bool(before.node_name)
        if event.type == DELETED:
            pods.pop(pod.name, None)
            self._bound[pod.namespace] -= was_bound
            return
        pods[pod.name] = pod
        if pod.node_name and not was_bound:
            self._bound[pod.namespace] += 1
            self._ever_bound[pod.namespace] += 1
            self.bindings.append(BoundPod(pod, now))

    def pods(self, namespace: str, selector: Mapping[str, str]) -> Iterator[Pod]:
        return (pod for pod in self._pods[namespace].values() if matches(pod, selector))

    def ever_bound(self, namespace: str) -> int:
        """Return the number of pods of the namespace that were ever bound, including deleted ones."""
        return self._ever_bound[namespace]

    def scheduled(self, namespace: str, selector: Mapping[str, str]) -> int:
        if not selector:
            return self._bound[namespace]
        return sum(1 for pod in self.pods(namespace, selector) if pod.node_name)

    def attempted(self, namespace: str, selector: Mapping[str, str]) -> int:
        """Return the number of pods that are bound or have a PodScheduled condition."""
        return sum(1 for pod in self.pods(namespace, selector) if pod.node_name or _was_reported(pod))

    async def changed(self) -> None:
        """Wait for the next events."""
        await self._changed.wait()

    def bound_since(self, first: int, namespaces: Collection[str], selector: Mapping[str, str]) -> Iterator[BoundPod]:
        """Yield the bindings from number `number` on, of pods in these namespaces (empty: in any namespace)."""
        for each in self.bindings[first:]:
            if (not namespaces or each.pod.namespace in namespaces) and matches(each.pod, selector):
                yield each


def matches(pod: Pod, selector: Mapping[str, str]) -> bool:
    return all(pod.labels.get(key) == value for key, value in selector.items())


def _was_reported(pod: Pod) -> bool:
    conditions = (pod.raw.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "PodScheduled" for condition in conditions)
