"""The simulated kubelets: make nodes Ready, and start, complete and remove the pods bound to them.

A node without a Ready condition is marked Ready, and every node gets its hostname label. A Ready condition that is
already set is kept; while it is not True, or the kubelet does not run, no pod starts or ends on the node. A pod being
deleted is removed after its grace period, or earlier, after `kschedd.io/termination-seconds`; with
`kschedd.io/run-seconds` a pod becomes Succeeded that many seconds after its start.

Owns the deadlines at which pods end. Source of the statuses: Kubernetes v1.34, pkg/kubelet/status/generate.go.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.controllers.conditions import is_true
from kschedd.controllers.controller import View
from kschedd.controllers.kubelets.annotations import RUN_SECONDS, TERMINATION_SECONDS, annotated_seconds
from kschedd.controllers.kubelets.pod_status import running_status, succeeded_status
from kschedd.controllers.kubelets.registration import registration
from kschedd.controllers.kubelets.state import kubelet_runs
from kschedd.controllers.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.times import duration_s, seconds, stamp
from kschedd.store.writes import Delete, Write, status_of


class Kubelets:
    """The kubelets of all embedded nodes."""

    name: Final = "kubelets"
    kinds: Final = frozenset(("Node", "Pod"))

    def __init__(self) -> None:
        self._ends: Timers[tuple[str, str]] = Timers()  # by pod: when it completes, or is removed
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._ends.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        pods: dict[tuple[str, str], None] = {}
        nodes: dict[tuple[str, str], None] = {}
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                if new.node_name and event.type != DELETED:
                    pods[new.namespace, new.name] = None
                elif event.type == DELETED:
                    self._ends.clear((new.namespace, new.name))
            elif isinstance(new, Node) and event.type != DELETED:
                served = event.old is not None and is_true(event.old.status, "Ready") and kubelet_runs(event.old)
                if not served:
                    pods.update(dict.fromkeys((pod.namespace, pod.name) for pod in view.pods_on(new.name)))
                nodes["", new.name] = None
        pods.update(dict.fromkeys(self._ends.due(now)))
        writes = self.faults.each("Node", nodes, partial(self._register, view), now)
        return writes + self.faults.each("Pod", pods, partial(self._look_after, view), now)

    def _register(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        return registration(node, now) if isinstance(node, Node) else []

    def _look_after(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        return self._tend(pod, view, now) if isinstance(pod, Pod) and pod.node_name else []

    def _tend(self, pod: Pod, view: View, now: float) -> list[Write]:
        """The writes due for the pod now; sets the timer for a later action."""
        node = view.find("Node", "", pod.node_name)
        if not isinstance(node, Node) or not is_true(node.status, "Ready") or not kubelet_runs(node):
            return []
        key = (pod.namespace, pod.name)
        if pod.deletion_timestamp:
            end = self._end_of_deletion(pod)
            if end > now:
                self._ends.set(key, end)
                return []
            self._ends.clear(key)
            return [Delete("Pod", pod.namespace, pod.name, pod.uid, grace_period_s=0)]
        if pod.phase in ("", "Pending"):
            run = annotated_seconds(pod, RUN_SECONDS)
            if run is not None:
                self._ends.set(key, now + run)
            return [status_of(pod, running_status(pod, node, stamp(now)))]
        run = annotated_seconds(pod, RUN_SECONDS) if pod.phase == "Running" else None
        # startTime has whole seconds only; a timer set when the pod started is more precise, so it takes precedence.
        if run is not None and key not in self._ends:
            end = (seconds(pod.start_time) if pod.start_time else now) + run
            if end <= now:
                self._ends.clear(key)
                return [status_of(pod, succeeded_status(pod, stamp(now)))]
            self._ends.set(key, end)
        return []

    def _end_of_deletion(self, pod: Pod) -> float:
        grace = pod.metadata.get("deletionGracePeriodSeconds") or 0
        end = seconds(pod.deletion_timestamp)
        quicker = annotated_seconds(pod, TERMINATION_SECONDS)
        return end if quicker is None else min(end, end - duration_s(grace) + quicker)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Nothing to do: the object was changed or deleted meanwhile, and that event triggers the next reconcile."""
        return []
