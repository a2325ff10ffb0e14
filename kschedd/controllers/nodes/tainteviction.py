"""The taint eviction controller: deletes pods that do not tolerate a NoExecute taint of their node.

`kschedd.controllers.nodes.tolerance` contains the rules. An evicted pod gets the condition DisruptionTarget and is
deleted with its own grace period. On a node without a kubelet, an evicted pod stays Terminating. The timers are not
persisted. After a restart they are restored from `timeAdded` of the taints; kube-controller-manager starts its timers
again.

If many pods are due at the same time, at most `_MOST` pods are evicted per reconcile, so that the store is not blocked
for long. Source: Kubernetes v1.34, controller/tainteviction/taint_eviction.go, timed_workers.go.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

from kschedd.api.conditions import condition, with_condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.nodes.tolerance import (
    FOR_EVER,
    NOT_TOLERATED,
    EvictionTimer,
    NoExecuteTaint,
    no_execute_taints,
    timer_after_restart,
    tolerated_s,
)
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Delete, Write, status_of

COMPONENT: Final = "taint-eviction-controller"
REASON: Final = "TaintManagerEviction"
DISRUPTION_TARGET: Final[Raw] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}
_MOST: Final = 50  # number of pods per reconcile, with up to three writes each

Key = tuple[str, str]  # namespace, name


class TaintEviction:
    name: Final = COMPONENT
    kinds: Final = frozenset(("Node", "Pod"))

    def __init__(self) -> None:
        # by node: its NoExecute taints; only for nodes that have any
        self._tainted: dict[str, tuple[NoExecuteTaint, ...]] = {}
        self._since: dict[Key, float] = {}  # start of the pod's timer
        self._timers: Timers[Key] = Timers()
        self._marked: dict[Key, bool] = {}  # pods to process; True if they existed before this controller started
        self._restored: int | None = None  # objects up to this version existed before this controller started
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return 0.0 if self._marked else self._timers.next

    def timers(self) -> Mapping[Key, EvictionTimer]:
        """Return the timers of the pods that will be evicted, by time."""
        found = [(at, key) for key in self._since if (at := self._timers.at(key)) is not None]
        return {key: EvictionTimer(self._since[key], at) for at, key in sorted(found)}

    def taints_of(self, node_name: str) -> tuple[NoExecuteTaint, ...]:
        return self._tainted.get(node_name, ())

    def concerns(self, event: WatchEvent) -> bool:
        """Return False for a pod without a timer that is not on a tainted node.

        A change of a node's taints marks all of its pods.
        """
        pod = event.new
        if not isinstance(pod, Pod) or self._restored is None or pod.node_name in self._tainted:
            return True
        key = (pod.namespace, pod.name)
        return event.type == DELETED and (key in self._since or key in self._marked)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        if self._restored is None:
            self._restored = view.version
        writes: list[Write] = []
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                writes += self._pod_event(event, new, now)
            elif isinstance(new, Node):
                self._node_event(event, new, view)
        for key in self._timers.due(now, _MOST):
            del self._since[key]
            writes += self.faults.each("Pod", (key,), partial(self._evict, view), now)
        for key, before in list(islice(self._marked.items(), _MOST)):
            del self._marked[key]
            writes += self.faults.each("Pod", (key,), partial(self._look_at, view, before), now)
        return writes

    def _pod_event(self, event: WatchEvent, pod: Pod, now: float) -> list[Write]:
        key = (pod.namespace, pod.name)
        if event.type == DELETED:
            self._marked.pop(key, None)
            return self._cancel(pod, now)
        if pod.node_name not in self._tainted:
            return []
        old = event.old
        if (
            not isinstance(old, Pod)
            or old.node_name != pod.node_name
            or (old.pod_spec is not pod.pod_spec and old.pod_spec.tolerations != pod.pod_spec.tolerations)
        ):
            self._mark(key, event.version)
        return []

    def _node_event(self, event: WatchEvent, node: Node, view: View) -> None:
        taints = () if event.type == DELETED else no_execute_taints(node)
        before = self._tainted.get(node.name, ())
        if taints:
            self._tainted[node.name] = taints
        else:
            self._tainted.pop(node.name, None)
        # as in kube-controller-manager, the timers for a deleted node's pods continue
        if taints != before and event.type != DELETED:
            for pod in view.pods_on(node.name):
                self._mark((pod.namespace, pod.name), event.version)

    def _mark(self, key: Key, version: int) -> None:
        assert self._restored is not None, "set by the first turn"
        self._marked[key] = self._marked.get(key, True) and version <= self._restored

    def _look_at(self, view: View, before: bool, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        if not isinstance(pod, Pod):
            return []
        key = (namespace, name)
        taints = self._tainted.get(pod.node_name, ())
        tolerations = pod.pod_spec.tolerations
        wait = tolerated_s((each.taint for each in taints), tolerations)
        if wait is NOT_TOLERATED:
            return [*self._cancel(pod, now), *self._evict(view, namespace, name, now)]
        if wait == FOR_EVER:
            return self._cancel(pod, now)
        if key in self._since:
            return []
        timer = timer_after_restart(pod, taints, tolerations, now) if before else None
        if timer is None:
            timer = EvictionTimer(now, now + wait)
        if timer.at_s <= now:
            return self._evict(view, namespace, name, now)
        self._since[key] = timer.since_s
        self._timers.set(key, timer.at_s)
        return []

    def _cancel(self, pod: Pod, now: float) -> list[Write]:
        key = (pod.namespace, pod.name)
        if self._since.pop(key, None) is None:
            return []
        self._timers.clear(key)
        return [object_event(pod, REASON, f"Cancelling deletion of Pod {pod.namespace}/{pod.name}", COMPONENT, now)]

    def _evict(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        if not isinstance(pod, Pod):
            return []
        writes: list[Write] = [
            object_event(pod, REASON, f"Marking for deletion Pod {namespace}/{name}", COMPONENT, now)
        ]
        found = condition(pod.status, DISRUPTION_TARGET["type"])
        if found is None or any(found.get(field) != value for field, value in DISRUPTION_TARGET.items()):
            conditions = with_condition(pod.status.get("conditions"), DISRUPTION_TARGET, stamp(now))
            writes.append(status_of(pod, {"conditions": conditions}))
        if not pod.deletion_timestamp:
            writes.append(Delete("Pod", namespace, name, pod.uid))
        return writes

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes: the pod was changed or deleted meanwhile, or its namespace rejects new Events."""
        return []
