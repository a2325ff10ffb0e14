"""Heartbeats of simulated kubelets: a Lease in kube-node-lease for each node, renewed while its kubelet runs.

Renewals cost nothing: `kschedd.store.leases` computes the renewals when a Lease is read. A Lease is written when its
kubelet starts or stops, and when the deleted namespace of Leases is created again. While a client watches Leases, each
renewal is written as well. When a kubelet starts again, the controller sets the conditions that were Unknown and marks
the running pods Ready.

At most `_MOST` pods are marked and `_MOST` Leases are renewed per reconcile.
Source: Kubernetes v1.34, component-helpers/apimachinery/lease/controller.go, pkg/kubelet/kubelet.go
(nodeLeaseDurationSeconds 40, nodeLeaseRenewIntervalFraction 0.25), pkg/kubelet/util/nodelease.go.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from kschedd.api.conditions import condition, is_true, with_condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import SECOND, micro_stamp, stamp
from kschedd.controllers.kubelets.registration import HEALTHY
from kschedd.controllers.kubelets.state import kubelet_runs
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.leases import LEASE, RENEWED_EVERY, interval_s, next_renewal
from kschedd.store.objects.log import ADDED, DELETED, WatchEvent
from kschedd.store.writes import Create, RenewLease, Write, patch_of, status_of

NODE_LEASES: Final = "kube-node-lease"
LEASE_DURATION_S: Final = 40
RENEW_INTERVAL_S: Final = 10
_UNKNOWN_REASONS: Final = frozenset(("NodeStatusUnknown", "NodeStatusNeverUpdated"))
_MOST: Final = 100  # pods or Leases per turn


class Heartbeats(InSteps):
    name: Final = "node-heartbeats"
    kinds: Final = frozenset(("Node", LEASE, "Namespace"))

    def __init__(self) -> None:
        self._ready_again: dict[tuple[str, str], None] = {}  # pods to mark Ready, on nodes with a restarted kubelet
        self._renewals: Timers[str] = Timers()  # time of the next renewal of each Lease, while a client watches Leases
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return 0.0 if self._ready_again else self._renewals.next

    def concerns(self, event: WatchEvent) -> bool:
        """Return False for the renewals that this controller writes itself.

        When a client starts to watch Leases, the store writes the first renewal.
        """
        return not event.renewal or self._renewals.next is None

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        nodes: dict[tuple[str, str], None] = {}
        watched = view.is_watched(LEASE)
        for event in events:
            new = event.new
            if new.kind == LEASE:
                if event.type == DELETED and new.namespace == NODE_LEASES:
                    nodes["", new.name] = None
                elif watched and new.namespace == NODE_LEASES:
                    begins = event.renewal and self._renewals.next is None
                    for lease in view.list(LEASE, NODE_LEASES) if begins else (new,):
                        self._renew_later(lease)
            elif new.kind == "Namespace":
                # Leases may be missing, because the namespace was deleted meanwhile
                if event.type == ADDED and new.name == NODE_LEASES:
                    nodes.update(dict.fromkeys(("", node.name) for node in view.list("Node")))
            elif isinstance(new, Node) and event.type != DELETED:
                nodes["", new.name] = None
                if event.old is not None and not is_true(event.old.status, "Ready") and is_true(new.status, "Ready"):
                    for pod in view.pods_on(new.name):
                        self._ready_again[pod.namespace, pod.name] = None
        writes = yield from self.faults.each_in_parts("Node", nodes, partial(self._sync, view), now)
        due = self._renewals.due(now, _MOST)
        if due and not watched:
            self._renewals = Timers()
        else:
            writes += [RenewLease(NODE_LEASES, name) for name in due]
        for key in list(islice(self._ready_again, _MOST)):
            del self._ready_again[key]
            writes += self.faults.each("Pod", (key,), partial(self._report_ready, view), now)
        return writes

    def _sync(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        if not isinstance(node, Node):
            return []
        lease = view.find(LEASE, NODE_LEASES, name)
        if not kubelet_runs(node):
            # reading the Lease returns its latest renewal
            stops = lease is not None and interval_s(lease) is not None
            return [_patched(lease, lease.spec.get("renewTime"), None)] if lease is not None and stops else []
        writes: list[Write] = []
        if lease is None:
            writes.append(Create(_lease(node, now)))
        elif interval_s(lease) is None:
            writes.append(_patched(lease, micro_stamp(round(now * SECOND)), str(RENEW_INTERVAL_S)))
        conditions = _reported(node, stamp(now))
        if conditions is not None:
            writes.append(status_of(node, {"conditions": conditions}))
        return writes

    def _report_ready(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        """Return the write that sets a pod's Ready condition to True again after the node controller set False."""
        pod = view.find("Pod", namespace, name)
        if not isinstance(pod, Pod) or pod.phase != "Running" or pod.deletion_timestamp:
            return []
        node = view.find("Node", "", pod.node_name)
        if node is None or not kubelet_runs(node) or not is_true(node.status, "Ready"):
            return []
        ready = condition(pod.status, "Ready")
        gates = [gate.get("conditionType") or "" for gate in pod.pod_spec.raw.get("readinessGates") or ()]
        if ready is None or ready.get("status") == "True" or not is_true(pod.status, "ContainersReady"):
            return []
        if not all(is_true(pod.status, gate) for gate in gates):
            return []
        wanted = {"type": "Ready", "status": "True"}
        if "observedGeneration" in ready:
            wanted["observedGeneration"] = ready["observedGeneration"]
        return [status_of(pod, {"conditions": with_condition(pod.status.get("conditions"), wanted, stamp(now))})]

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> list[Write]:
        """Schedule the next renewal of the Lease after a renewal; return no writes."""
        if isinstance(write, RenewLease):
            self._renew_later(obj)
        return []

    def _renew_later(self, lease: Object) -> None:
        at = next_renewal(lease)
        if at is not None:
            self._renewals.set(lease.name, at)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes: a conflicting change triggers an event, and a deleted namespace needs no Lease."""
        return []


def _lease(node: Node, now: float) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": LEASE,
        "metadata": {
            "name": node.name,
            "namespace": NODE_LEASES,
            "annotations": {RENEWED_EVERY: str(RENEW_INTERVAL_S)},
            "ownerReferences": [owner],
        },
        "spec": {
            "holderIdentity": node.name,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": micro_stamp(round(now * SECOND)),
        },
    }


def _patched(lease: Object, renew_time: Any, every: str | None) -> Write:
    return patch_of(
        lease, {"metadata": {"annotations": {RENEWED_EVERY: every}}, "spec": {"renewTime": renew_time}}, exactly=True
    )


def _reported(node: Node, at: str) -> list[Any] | None:
    """Return the conditions with the kubelet's values for those that were Unknown, or None if none was Unknown."""
    conditions = node.status.get("conditions") or ()
    if not any(_silenced(each) for each in conditions):
        return None
    reported: list[Any] = []
    for each in conditions:
        if _silenced(each):
            reported.append({**HEALTHY[each["type"]], "lastHeartbeatTime": at, "lastTransitionTime": at})
        else:
            reported.append(each)
    return reported


def _silenced(entry: Any) -> bool:
    return entry.get("type") in HEALTHY and entry.get("reason") in _UNKNOWN_REASONS
