"""The simulated kubelets: their work on nodes and on the pods bound to them.

A node without a Ready condition is marked Ready, and every node gets its hostname label. An existing Ready condition is
kept. While the Ready condition is not True, or the kubelet does not run, no pod starts or ends on the node. A pod is
admitted or rejected (`admission`), waits for unavailable volumes and claims (`volumes`), and runs according to its
annotations (`pod_run`, `kschedd.api.simulation.annotations`). If the pods' behavior requires it (`PodBehavior`), the
kubelet also waits for the ConfigMaps and Secrets of a pod (`configuration`). A deleted pod is removed after it has
ended. A node under pressure evicts pods (`eviction`).

Most pods only run. A pod whose containers only run until they are stopped has no `PodRun`. A pod without a `PodRun` is
processed only when it is bound and when its start is confirmed.

After a restart of the process, `PodRun` objects are restored from the pods' statuses.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from kschedd.api.conditions import condition, is_true
from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSpec
from kschedd.api.simulation.annotations import PodSettings, pod_settings
from kschedd.api.text.times import duration_s, seconds, stamp
from kschedd.controllers.kubelets.accounts import Accounts, Key, is_admitted
from kschedd.controllers.kubelets.admission import (
    Insufficient,
    PredicateFailure,
    Refusal,
    failures,
    is_critical,
    refusal_of,
    refused_by_system,
)
from kschedd.controllers.kubelets.configuration import KINDS as CONFIGURATION_KINDS
from kschedd.controllers.kubelets.configuration import UnconfiguredPods, environment_faults
from kschedd.controllers.kubelets.eviction_managers import EvictionManagers
from kschedd.controllers.kubelets.expansion import expansion_by_running_pod, expansions_of
from kschedd.controllers.kubelets.images import ImageSizes, with_images
from kschedd.controllers.kubelets.node_info import internal_ips, reported
from kschedd.controllers.kubelets.pod_run import EVICTED, PREEMPTED_MESSAGE, PREEMPTING, PodRun, Stop, ended_by_kubelet
from kschedd.controllers.kubelets.pod_status import refused_status, running_status, status_of_run
from kschedd.controllers.kubelets.preemption import NoVictimsError, victims
from kschedd.controllers.kubelets.registration import registration
from kschedd.controllers.kubelets.resizing import allocated_requests, is_requested, order, refusal
from kschedd.controllers.kubelets.resizing import reported as reported_resources
from kschedd.controllers.kubelets.state import kubelet_runs
from kschedd.controllers.kubelets.volumes import KINDS as VOLUME_KINDS
from kschedd.controllers.kubelets.volumes import Unavailable, unavailable
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.storage.expansion import waits_for_node
from kschedd.store.creating.service_addresses import networks_of
from kschedd.store.errors import ApiError, Conflict
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Delete, Patch, Write, status_of

COMPONENT: Final = "kubelet"
_MOST_DUE: Final = 1_000  # maximum number of due pods processed per reconcile
_ROUNDED_S: Final = 1.0  # rounding of deletionTimestamp, in seconds


def _only_runs(spec: PodSpec) -> bool:
    """Return whether pods with this spec only run their containers until they are stopped."""
    raw = spec.raw
    if raw.get("initContainers") or raw.get("ephemeralContainers") or raw.get("readinessGates"):
        return False
    return raw.get("activeDeadlineSeconds") is None


def _serves(node: Object) -> bool:
    """Return whether the node's kubelet manages pods."""
    return is_true(node.status, "Ready") and kubelet_runs(node)


class Kubelets(InSteps):
    """The kubelets of all embedded nodes."""

    name: Final = "kubelets"
    kinds: Final = frozenset(("Node", "Pod")) | VOLUME_KINDS | CONFIGURATION_KINDS

    def __init__(self, version: str = "") -> None:
        """Create kubelets of this version, which report addresses and system information; "" reports neither."""
        self._version = version
        self._requires_configuration = False  # whether pods of the cluster wait for ConfigMaps and Secrets
        self._unconfigured = UnconfiguredPods()
        self._addresses: set[str] = set()  # InternalIPs of nodes
        self._timers: Timers[Key] = Timers()  # by pod: time of its next action or of its removal
        self._runs: dict[Key, PodRun] = {}
        self._accounts = Accounts()
        self._held: dict[str, dict[Key, None]] = {}  # by node: critical pods that wait for the end of preempted pods
        self._unmounted: dict[Key, tuple[Unavailable, ...]] = {}  # admitted pods that wait for volumes or claims
        self._deferred: dict[str, dict[Key, None]] = {}  # by node: pods with a resize that waits for resources
        self._images = ImageSizes()
        self._pulled: dict[str, dict[str, int]] = {}  # by node: images added in this reconcile, with their sizes
        self._evictions = EvictionManagers(COMPONENT)
        self._freed: dict[str, None] = {}  # nodes on which resources were freed in this reconcile
        self._began_s: float | None = None  # the first turn
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        times = (self._timers.next, self._evictions.next_deadline)
        return min((at for at in times if at is not None), default=None)

    def concerns(self, event: WatchEvent) -> bool:
        """Return False for a pod without a node, and for an admitted pod that needs no action."""
        pod = event.new
        if not isinstance(pod, Pod):
            if pod.kind in CONFIGURATION_KINDS:
                return bool(self._unconfigured.of_object(pod.kind, pod.namespace, pod.name))
            return True
        if event.type == DELETED or self.faults.by_object:
            return True
        if not pod.node_name:
            return False
        key = pod.namespace, pod.name
        admitted = self._accounts.of_pod(key)
        if admitted is None or admitted.uid != pod.uid or admitted.signature is not pod.signature:
            return True
        if pod.phase != "Running" or pod.deletion_timestamp or key in self._runs:
            return True
        settings = pod_settings(pod.annotations)
        return bool(settings) or not self._is_plain(pod, settings)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        pods: dict[Key, None] = {}
        nodes: dict[Key, None] = {}
        expanding: dict[Key, None] = {}
        behavior = view.pod_behavior
        self._requires_configuration = behavior is not None and behavior.waits_for_configuration
        if self._began_s is None:
            self._began_s = now
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                key = new.namespace, new.name
                if event.type == DELETED:
                    self._forget(key, new.uid)
                elif new.node_name:
                    pods[key] = None
            elif isinstance(new, Node):
                if event.type == DELETED:
                    self._addresses.difference_update(internal_ips(new))
                    self._images.forget(new.name)
                    self._evictions.forget(new.name)
                    self._deferred.pop(new.name, None)
                    continue
                self._addresses.update(internal_ips(new))
                self._images.note(event.old if isinstance(event.old, Node) else None, new)
                self._evictions.node_changed(new)
                served = event.old is not None and _serves(event.old)
                if not served:
                    pods.update(dict.fromkeys((pod.namespace, pod.name) for pod in view.pods_on(new.name)))
                nodes["", new.name] = None
                yield
            elif new.kind in CONFIGURATION_KINDS:
                pods.update(dict.fromkeys(self._unconfigured.of_object(new.kind, new.namespace, new.name)))
            else:  # the event is a change of a claim or volume
                pods.update(dict.fromkeys(self._unmounted))
                if event.type != DELETED and new.kind == "PersistentVolumeClaim" and waits_for_node(new):
                    expanding[new.namespace, new.name] = None
        pods.update(dict.fromkeys(self._timers.due(now, _MOST_DUE)))
        writes: list[Write] = []
        writes += yield from self.faults.each_in_parts("Node", nodes, partial(self._register, view), now)
        writes += yield from self.faults.each_in_parts("Pod", pods, partial(self._look_after, view), now)
        writes += self.faults.each("PersistentVolumeClaim", expanding, partial(self._expand, view), now)
        writes += self._admit_held(view, now)
        writes += self.faults.each("Node", self._evictions.due(now), partial(self._observe, view), now, "pressure")
        pulled, self._pulled = self._pulled, {}
        pulling = partial(self._list_images, view, pulled)
        return writes + self.faults.each("Node", [("", name) for name in pulled], pulling, now, "images")

    def _register(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        if not isinstance(node, Node):
            return []
        if not self._version or condition(node.status, "Ready") is not None:
            return registration(node, now)
        more = reported(node, self._version, networks_of(view.service_range), self._addresses)
        self._addresses.update(each["address"] for each in more.get("addresses") or ())
        return registration(node, now, more)

    # -- pods -----------------------------------------------------------------------------------------------------

    def _look_after(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        return self._tend(pod, view, now) if isinstance(pod, Pod) and pod.node_name else []

    def _forget(self, key: Key, uid: str) -> None:
        """Drop the state of a pod that was removed or has ended."""
        admitted = self._accounts.of_pod(key)
        if admitted is not None and admitted.uid == uid:
            self._accounts.remove(key)
            self._freed[admitted.node_name] = None
            self._evictions.pod_changed(admitted.node_name)
        run = self._runs.get(key)
        if run is None or run.uid == uid:
            self._runs.pop(key, None)
            self._timers.clear(key)
            self._unmounted.pop(key, None)
            self._unconfigured.discard(key)

    def _tend(self, pod: Pod, view: View, now: float) -> list[Write]:
        """Return the writes that are due for the pod, and set the timer for its next action."""
        key = pod.namespace, pod.name
        admitted = self._accounts.of_pod(key)
        if admitted is not None and admitted.uid != pod.uid:
            self._forget(key, admitted.uid)
            admitted = None
        if pod.finished:
            self._forget(key, pod.uid)
            if pod.deletion_timestamp and pod.metadata.get("deletionGracePeriodSeconds"):
                return [Delete("Pod", pod.namespace, pod.name, pod.uid, grace_period_s=0)]
            return []
        settings = pod_settings(pod.annotations)
        if admitted is None and is_admitted(pod):
            self._count(pod, settings)
            if ended_by_kubelet(pod) is not None:
                self._run_of(pod, now)
        elif admitted is not None and (admitted.signature is not pod.signature or settings):
            self._count(pod, settings)
        if (admitted is None or admitted.signature is not pod.signature) and is_requested(pod, reported_resources(pod)):
            self._run_of(pod, now)
        run = self._runs.get(key)
        if run is None and pod.phase == "Running" and not pod.deletion_timestamp and self._is_plain(pod, settings):
            return []
        node = view.find("Node", "", pod.node_name)
        if not isinstance(node, Node) or not _serves(node):
            return []
        if pod.deletion_timestamp:
            return self._end(pod, node, now)
        if self._accounts.of_pod(key) is None:
            return self._admit(pod, node, view, now)
        if key in self._unmounted or (run is None and self._has_waited(pod)):
            return self._begin(pod, node, view, now)
        if run is not None:
            self._configure(pod, run, view)
            self._resize(pod, node, run, view, now)
        return self._go_on(pod, node, now)

    @staticmethod
    def _is_plain(pod: Pod, settings: PodSettings) -> bool:
        return _only_runs(pod.pod_spec) and not (settings and settings.states_run)

    def _count(self, pod: Pod, settings: PodSettings) -> None:
        self._accounts.add(pod, self._requests_of(pod))
        self._evictions.pod_changed(pod.node_name, states_usage=bool(settings) and settings.states_usage)

    def _run_of(self, pod: Pod, now: float) -> PodRun:
        """Return the `PodRun` of an admitted pod, and create it if it is missing."""
        key = pod.namespace, pod.name
        run = self._runs.get(key)
        if run is None or run.uid != pod.uid:
            run = self._runs[key] = PodRun.resumed(pod, now)
        return run

    def _go_on(self, pod: Pod, node: Node, now: float) -> list[Write]:
        """Advance the pod's `PodRun` to the present time, and report its status."""
        key = pod.namespace, pod.name
        if key not in self._runs and self._is_plain(pod, pod_settings(pod.annotations)):
            return self._start(pod, node, now)
        run = self._run_of(pod, now)
        run.follow(pod)
        run.advance(pod, now)
        if run.created:
            self._pull(pod)
        self._wait_for(key, run)
        status = status_of_run(pod, node, run, now)
        if all(pod.status.get(field) == value for field, value in status.items()):
            return []
        return [status_of(pod, status)]

    def _wait_for(self, key: Key, run: PodRun, at_most: float | None = None) -> None:
        times = [at for at in (run.next_at, at_most) if at is not None and at < math.inf]
        if times and not run.over:
            self._timers.set(key, min(times))
        else:
            self._timers.clear(key)

    def _pull(self, pod: Pod) -> None:
        missing = self._images.missing(pod.node_name, pod)
        if missing:
            self._pulled.setdefault(pod.node_name, {}).update(missing)

    def _end(self, pod: Pod, node: Node, now: float) -> list[Write]:
        """Stop the containers of a pod that is being deleted, and then remove the pod."""
        key = pod.namespace, pod.name
        settings = pod_settings(pod.annotations)
        run = self._runs.get(key)
        if run is None and not self._is_plain(pod, settings):
            run = self._run_of(pod, now)
        latest = self._end_of_deletion(pod, settings, now)
        if self._accounts.of_pod(key) is None or key in self._unmounted or (run is None and self._has_waited(pod)):
            latest = now  # no container has started
        if run is not None:
            run.told_to_stop(Stop(now, max(0.0, latest - now)))
            run.advance(pod, now)
            if run.over:
                latest = now
        if latest > now:
            if run is None and latest == math.inf:
                self._timers.clear(key)
            elif run is None:
                self._timers.set(key, latest)
            else:
                self._wait_for(key, run, latest)
            return []
        self._timers.clear(key)
        removal = Delete("Pod", pod.namespace, pod.name, pod.uid, grace_period_s=0)
        if not pod.metadata.get("finalizers"):
            return [removal]
        # creates the `PodRun`, so that the pod's end can be detected
        run = self._run_of(pod, now)
        run.told_to_stop(Stop(now, 0.0))
        run.cut_off(now)
        return [status_of(pod, status_of_run(pod, node, run, now)), removal]

    def _end_of_deletion(self, pod: Pod, settings: PodSettings, now: float) -> float:
        """Return the time at which the pod's grace period ends; infinity if the pod is annotated to be stuck.

        The start of a deletion is in the future only if the machine's clock was set back before a restart. In this case
        the grace period begins at the restart.
        """
        grace_s = duration_s(pod.metadata.get("deletionGracePeriodSeconds") or 0)
        end = seconds(pod.deletion_timestamp)
        if end - grace_s > now + _ROUNDED_S and self._began_s is not None:
            end = self._began_s + grace_s
        if grace_s and settings.is_stuck:
            return math.inf
        quicker = settings.of("termination-seconds", "")
        return end if quicker is None else min(end, end - grace_s + quicker)

    # -- resizes --------------------------------------------------------------------------------------------------

    def _requests_of(self, pod: Pod) -> Mapping[str, int]:
        """Return the pod's requests, based on the resources allocated to its containers."""
        run = self._runs.get((pod.namespace, pod.name))
        if run is not None and run.uid == pod.uid:
            return allocated_requests(pod, run.allocated)
        return allocated_requests(pod, reported_resources(pod)) if pod.reports_resources else pod.requests

    def _resize(self, pod: Pod, node: Node, run: PodRun, view: View, now: float) -> None:
        """Allocate the requested resources to the pod's containers, or record why this is impossible."""
        run.pending = None
        if run.stop is not None or not is_requested(pod, run.allocated):
            return
        key = pod.namespace, pod.name
        self._recount(node.name, view)
        self._accounts.remove(key)
        run.pending = refusal(pod, node, self._accounts.on_node(node.name), now)
        if run.pending is None:
            run.resize(pod, now)
            self._freed[node.name] = None
        elif run.pending.retry_at is not None:
            self._deferred.setdefault(node.name, {})[key] = None
        self._accounts.add(pod, self._requests_of(pod))

    def _deferred_on(self, node_name: str, view: View) -> list[Key]:
        """Return the pods of a node with resizes to retry, in order."""
        keys = self._deferred.pop(node_name, {})
        there = [pod for namespace, name in keys if isinstance(pod := view.find("Pod", namespace, name), Pod)]
        there.sort(key=lambda pod: order(pod, reported_resources(pod)))
        return [(pod.namespace, pod.name) for pod in there]

    # -- admission ------------------------------------------------------------------------------------------------

    def _admit(self, pod: Pod, node: Node, view: View, now: float) -> list[Write]:
        """Admit or reject the pod."""
        refusal = refused_by_system(pod, node)
        if refusal is None:
            found = failures(pod, node, self._accounts.on_node(node.name))
            if found:
                self._recount(node.name, view)
                found = failures(pod, node, self._accounts.on_node(node.name))
            if found and is_critical(pod):
                return self._make_way(pod, node, found, view, now)
            refusal = refusal_of(found) if found else None
        if refusal is not None:
            return self._refuse(pod, refusal, now)
        self._count(pod, pod_settings(pod.annotations))
        return self._begin(pod, node, view, now)

    def _begin(self, pod: Pod, node: Node, view: View, now: float) -> list[Write]:
        """Start an admitted pod; if volumes or claims are missing, report them once."""
        key = pod.namespace, pod.name
        missing = unavailable(pod, view, with_configuration=self._requires_configuration)
        if missing:
            return self._wait(pod, node, missing, now)
        waited = self._unmounted.pop(key, None) is not None
        mounting = expansions_of(pod, view, now) if pod.pod_spec.volumes else []
        faults = environment_faults(pod, view) if self._requires_configuration else None
        if not faults:
            self._unconfigured.discard(key)
            if self._is_plain(pod, pod_settings(pod.annotations)):
                return [*mounting, *self._start(pod, node, now)]
        run = self._runs[key] = PodRun.of(pod, now) if waited or not pod.start_time else PodRun.resumed(pod, now)
        if faults:
            self._unconfigured.add(pod)
            run.configure(faults)
        return [*mounting, *self._go_on(pod, node, now)]

    @staticmethod
    def _expand(view: View, namespace: str, name: str, now: float) -> list[Write]:
        claim = view.find("PersistentVolumeClaim", namespace, name)
        return expansion_by_running_pod(claim, view, now) if claim is not None and waits_for_node(claim) else []

    def _wait(self, pod: Pod, node: Node, missing: tuple[Unavailable, ...], now: float) -> list[Write]:
        """Report the missing volumes and claims of a pod; repeated calls write the same Event only once."""
        key = pod.namespace, pod.name
        known, self._unmounted[key] = self._unmounted.get(key, ()), missing
        new = [each for each in missing if each not in known]
        writes: list[Write] = [
            object_event(pod, each.reason, each.message, COMPONENT, now, warning=True) for each in new
        ]
        if self._requires_configuration:
            self._unconfigured.add(pod)
            run = PodRun.of(pod, now)
            run.creating_until = math.inf
            status = status_of_run(pod, node, run, now)
            if any(pod.status.get(field) != value for field, value in status.items()):
                writes.append(status_of(pod, status))
        return writes

    def _has_waited(self, pod: Pod) -> bool:
        """Return whether the kubelet has admitted the pod in an earlier run, but started none of its containers."""
        return self._requires_configuration and pod.phase == "Pending"

    def _configure(self, pod: Pod, run: PodRun, view: View) -> None:
        """Set which containers of the pod lack ConfigMaps or Secrets for their environment."""
        if self._requires_configuration:
            faults = environment_faults(pod, view)
            run.configure(faults)
            if faults:
                self._unconfigured.add(pod)
            else:
                self._unconfigured.discard((pod.namespace, pod.name))

    def _start(self, pod: Pod, node: Node, now: float) -> list[Write]:
        """Return the write that starts a pod with containers that only run."""
        self._pull(pod)
        return [status_of(pod, running_status(pod, node, stamp(now)))]

    def _recount(self, node_name: str, view: View) -> None:
        for key in self._accounts.recount(node_name, view.pods_on(node_name), self._requests_of):
            self._runs.pop(key, None)
            self._timers.clear(key)

    def _refuse(self, pod: Pod, refusal: Refusal, now: float) -> list[Write]:
        event = object_event(pod, refusal.reason, refusal.message, COMPONENT, now, warning=True)
        return [event, status_of(pod, refused_status(pod, refusal, stamp(now)))]

    def _make_way(
        self, pod: Pod, node: Node, found: Sequence[Insufficient | PredicateFailure], view: View, now: float
    ) -> list[Write]:
        """Preempt pods for a critical pod that lacks only resources.

        The critical pod waits until the preempted pods have ended.
        """
        lacking = {each.resource: each.lacking for each in found if isinstance(each, Insufficient)}
        others = [each for each in found if not isinstance(each, Insufficient)]
        if others:
            return self._refuse(pod, refusal_of(others), now)
        key = pod.namespace, pod.name
        active = self._active(node.name, view)
        leaving = [each for each in active if self._stops_for(each, PREEMPTING)]
        if leaving and key in self._held.get(node.name, {}):
            return []
        try:
            chosen = victims(pod, [each for each in active if each not in leaving], lacking)
        except NoVictimsError as none:
            why = f"Unexpected error while attempting to recover from admission failure: {none}"
            return self._refuse(pod, Refusal("UnexpectedAdmissionError", why), now)
        self._held.setdefault(node.name, {})[key] = None
        writes: list[Write] = []
        for victim in chosen:
            writes.append(object_event(victim, PREEMPTING, PREEMPTED_MESSAGE, COMPONENT, now, warning=True))
            grace = victim.pod_spec.raw.get("terminationGracePeriodSeconds")
            writes += self._stop(victim, node, Stop(now, float(grace or 0), PREEMPTING, PREEMPTED_MESSAGE), now)
        return writes

    def _stop(self, pod: Pod, node: Node, stop: Stop, now: float) -> list[Write]:
        self._run_of(pod, now).told_to_stop(stop)
        return self._go_on(pod, node, now)

    def _stops_for(self, pod: Pod, *reasons: str) -> bool:
        run = self._runs.get((pod.namespace, pod.name))
        return run is not None and run.stop is not None and (not reasons or run.stop.reason in reasons)

    def _active(self, node_name: str, view: View) -> list[Pod]:
        """Return the admitted pods of a node that have not ended, in order of arrival."""
        admitted = self._accounts.of_pod
        return [
            pod
            for pod in view.pods_on(node_name)
            if not pod.finished and (here := admitted((pod.namespace, pod.name))) is not None and here.uid == pod.uid
        ]

    def _admit_held(self, view: View, now: float) -> list[Write]:
        """Retry the waiting critical pods on nodes with freed resources."""
        freed, self._freed = self._freed, {}
        resizing = [key for name in freed for key in self._deferred_on(name, view)]
        held = [(name, key) for name in freed if name in self._held for key in self._held.pop(name)]
        for name, key in held:
            self._held.setdefault(name, {})[key] = None
        waiting = [*(key for _, key in held), *resizing]
        writes = self.faults.each("Pod", waiting, partial(self._look_after, view), now)
        for name, key in held:
            if self._accounts.of_pod(key) is not None or view.find("Pod", *key) is None:
                self._held.get(name, {}).pop(key, None)
        return writes

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _observe(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        """Run the node's eviction manager, and evict the pod that it selects."""
        node = view.find("Node", "", name)
        if not isinstance(node, Node) or not _serves(node):
            return []
        active = self._active(name, view)
        stopping = [pod for pod in active if pod.deletion_timestamp or self._stops_for(pod)]
        evicted = [pod for pod in active if self._stops_for(pod, EVICTED)]
        writes, order = self._evictions.synchronize(node, active, stopping, evicted, now)
        if order is not None:
            writes.append(object_event(order.pod, EVICTED, order.message, COMPONENT, now, warning=True))
            writes += self._stop(order.pod, node, Stop(now, order.grace_s, EVICTED, order.message), now)
        return writes

    @staticmethod
    def _list_images(
        view: View, pulled: dict[str, dict[str, int]], namespace: str, name: str, now: float
    ) -> list[Write]:
        """Add the images of new pods to the node's list."""
        node = view.find("Node", "", name)
        if not isinstance(node, Node):
            return []
        images = with_images(node, pulled[name])
        return [] if images is None else [status_of(node, {"images": images})]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Run the eviction manager again for a node whose write was rejected.

        Rejected writes of pods need no action, because an event of the changed pod follows.
        """
        if isinstance(error, Conflict) and isinstance(write, Patch) and write.kind == "Node":
            return self._observe(view, "", write.name, now)
        return []
