"""The node lifecycle controller: nodes with an unresponsive kubelet become Unknown and get NoExecute taints.

A kubelet's heartbeats are its Lease and the heartbeat time of the node's Ready condition. After
`node_monitor_grace_period_s` without a heartbeat, the node's conditions become Unknown and its pods are marked not
Ready. At the next check, the node is queued for the taint `unreachable:NoExecute` (`not-ready` if Ready is False). The
taint is added at the rate of the node's zone. A node that becomes Ready again loses the taints `unreachable` and
`not-ready`. If every zone is fully disrupted, the cause is assumed to be the control plane. If every zone is fully
disrupted, all nodes lose both taints, and no node gets a taint until some node is Ready.

kube-controller-manager checks all nodes every `node_monitor_period_s` seconds. kschedd checks at the same times, but
only if a node may have changed, and processes only nodes that may have changed. While all nodes are healthy, the
controller does no work and has no deadline. A node without a simulated kubelet (`kschedd.io/kubelet: none`) keeps the
conditions that users set; its taints follow these conditions.

The controller stores the last observed state of each node, the zones with their rates and queued nodes, and the pods to
mark. A reconcile makes at most about `_MOST` writes, so a check of many nodes takes several reconciles. Source:
Kubernetes v1.34, controller/nodelifecycle/node_lifecycle_controller.go.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, Literal

import attrs

from kschedd.api.conditions import condition
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.controllers.kubelets.heartbeats import NODE_LEASES
from kschedd.controllers.kubelets.state import NONE, kubelet_state
from kschedd.controllers.nodes.node_health import (
    EXCLUDED,
    condition_taints,
    next_pass,
    pass_at_or_after,
    pod_not_ready,
    ready_status,
    silent_conditions,
    wanted_taint,
    with_taint,
)
from kschedd.controllers.nodes.zones import (
    FULL,
    NodeLifecycleConfig,
    TaintRate,
    Zone,
    ZoneState,
    compute_zone_state,
    eviction_rate,
)
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, Conflict
from kschedd.store.leases import LEASE, interval_s
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Patch, Write, status_of

COMPONENT: Final = "node-controller"
_MOST: Final = 100  # writes per turn


@attrs.define(eq=False)
class _Seen:
    """The last observed state of a node.

    `signs` are the latest heartbeats; None while the node's Lease is renewed automatically.
    """

    zone: str
    excluded: bool
    ready: str | None
    taints: frozenset[str]
    signs: tuple[object, ...] | None = ()
    probe_s: float = 0.0  # time in seconds of the check that detected the latest heartbeat


@attrs.frozen
class Upcoming:
    """A change of a node that will happen if its kubelet's state stays the same.

    `at_s` is None if the change will never happen because the zone's taint rate is 0.
    """

    node: str
    what: Literal["Unknown", "NoExecute"]
    at_s: float | None


class NodeLifecycle(InSteps):
    name: Final = "node-lifecycle"
    kinds: Final = frozenset(("Node", LEASE))

    def __init__(self, config: NodeLifecycleConfig | None = None) -> None:
        self.config = config or NodeLifecycleConfig()
        self._nodes: dict[str, _Seen] = {}
        self._zones: dict[str, Zone] = {}
        self._silent: Timers[str] = Timers()  # by node: time of the check at which the node becomes Unknown
        self._concerned: dict[str, None] = {}  # nodes to process in the next check
        self._pass_at: float | None = None  # time of the next check; None if there are no nodes to process
        self._passing: dict[str, None] = {}  # nodes that the current check has not processed yet
        self._in_pass = False
        self._freed: dict[str, None] = {}  # nodes whose taints are removed because every zone is disrupted
        self._not_ready: dict[tuple[str, str], None] = {}  # pods to mark as not Ready
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def zones(self) -> Mapping[str, Zone]:
        return self._zones

    @property
    def next_deadline(self) -> float | None:
        if self._in_pass or self._freed or self._not_ready:
            return 0.0
        times = [self._pass_at, self._silent.next]
        times += [zone.rate.next_s() for zone in self._zones.values() if zone.waiting]
        return min((at for at in times if at is not None), default=None)

    def upcoming(self) -> list[Upcoming]:
        """Return the nodes that will become Unknown or get a NoExecute taint, sorted by time."""
        silent = [(at, name) for name in self._nodes if (at := self._silent.at(name)) is not None]
        found = [Upcoming(name, "Unknown", at) for at, name in sorted(silent)]
        for _, zone in sorted(self._zones.items()):
            first, per_s = zone.rate.next_s(), zone.rate.per_s
            for place, name in enumerate(zone.waiting):
                found.append(Upcoming(name, "NoExecute", None if first is None else first + place / per_s))
        return sorted(found, key=lambda each: math.inf if each.at_s is None else each.at_s)

    # --- events -------------------------------------------------------------------------------------------------------

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        for event in events:
            new = event.new
            if isinstance(new, Node):
                if event.type == DELETED:
                    self._forget(new.name)
                else:
                    self._see(new, view, now)
            elif new.kind == LEASE and new.namespace == NODE_LEASES and not event.renewal:
                node = view.find("Node", "", new.name)
                if isinstance(node, Node):
                    self._see(node, view, now)
            yield
        self._plan(now)
        writes = yield from self._pass(view, now)
        if not self._in_pass:
            for zone in self._zones.values():
                writes += self._taint_waiting(zone, view, now)
        for name in list(islice(self._freed, _MOST)):
            del self._freed[name]
            writes += self.faults.each("Node", (("", name),), partial(self._free, view), now)
        for key in list(islice(self._not_ready, max(0, _MOST - len(writes)))):
            del self._not_ready[key]
            writes += self.faults.each("Pod", (key,), partial(self._mark_not_ready, view), now)
        return writes

    def _see(self, node: Node, view: View, now: float) -> None:
        """Record the node's current state, and a heartbeat of its kubelet."""
        ready, excluded = ready_status(node), EXCLUDED in node.labels
        seen = self._nodes.get(node.name)
        if seen is None:
            seen = self._nodes[node.name] = _Seen(node.zone, excluded, ready, condition_taints(node))
            self._count(seen, 1)
        elif (seen.zone, seen.excluded, seen.ready) != (node.zone, excluded, ready):
            self._count(seen, -1)
            if seen.zone != node.zone:
                self._zones[seen.zone].waiting.pop(node.name, None)
                self._drop_if_empty(seen.zone)
            seen.zone, seen.excluded, seen.ready = node.zone, excluded, ready
            self._count(seen, 1)
        seen.taints = condition_taints(node)
        self._note_signs(node, seen, view, now)
        if self._has_something_to_do(node.name, seen):
            self._concerned[node.name] = None
        else:
            self._concerned.pop(node.name, None)

    def _note_signs(self, node: Node, seen: _Seen, view: View, now: float) -> None:
        config = self.config
        if kubelet_state(node) == NONE:
            self._silent.clear(node.name)
            seen.signs = None
            return
        lease = view.find(LEASE, NODE_LEASES, node.name)
        if lease is not None and interval_s(lease) is not None:
            self._silent.clear(node.name)
            seen.signs = None
            return
        renew_time = None if lease is None else lease.spec.get("renewTime")
        heartbeat = (condition(node.status, "Ready") or {}).get("lastHeartbeatTime")
        signs = (renew_time, heartbeat)
        if seen.signs is None and renew_time:
            # The node's Lease was renewed automatically until the previous event. The first check after the last
            # renewal detects that the renewals have ended. The last renewal may be in the future if the machine's clock
            # was set back; no check has detected such a renewal yet.
            seen.probe_s = next_pass(min(seconds(renew_time), now), config.node_monitor_period_s)
        elif seen.ready is None and renew_time is None:
            created = node.metadata.get("creationTimestamp")
            seen.probe_s = seconds(created) if created else now
        elif seen.signs != signs:
            seen.probe_s = next_pass(now, config.node_monitor_period_s)
        seen.signs = signs
        if seen.ready == "Unknown":
            self._silent.clear(node.name)
            return
        grace = config.node_monitor_grace_period_s if seen.ready is not None else config.node_startup_grace_period_s
        at = pass_at_or_after(seen.probe_s + grace, config.node_monitor_period_s)
        self._silent.set(node.name, max(at, next_pass(now, config.node_monitor_period_s)))

    def _forget(self, name: str) -> None:
        seen = self._nodes.pop(name, None)
        if seen is None:
            return
        self._count(seen, -1)
        self._zones[seen.zone].waiting.pop(name, None)
        self._drop_if_empty(seen.zone)
        self._silent.clear(name)
        for waiting in (self._concerned, self._passing, self._freed):
            waiting.pop(name, None)

    def _count(self, seen: _Seen, by: int) -> None:
        zone = self._zones.get(seen.zone)
        if zone is None:
            zone = self._zones[seen.zone] = Zone(TaintRate(self.config.node_eviction_rate))
        zone.members += by
        if seen.excluded:
            return
        if seen.ready == "True":
            zone.ready += by
        else:
            zone.not_ready += by

    def _drop_if_empty(self, name: str) -> None:
        if not self._zones[name].members:
            del self._zones[name]

    def _has_something_to_do(self, name: str, seen: _Seen) -> bool:
        wanted = wanted_taint(seen.ready)
        if seen.taints - {wanted}:
            return seen.ready is not None
        waits = name in self._zones[seen.zone].waiting
        return waits if wanted is None else wanted not in seen.taints and not waits

    def _disturbed(self) -> bool:
        """Return whether the recorded state of any zone differs from the state of its nodes."""
        return any(self._state_now(zone) != zone.state for zone in self._zoned())

    def _zoned(self) -> list[Zone]:
        return [zone for zone in self._zones.values() if zone.size]

    def _state_now(self, zone: Zone) -> ZoneState:
        return compute_zone_state(zone.ready, zone.not_ready, self.config.unhealthy_zone_threshold)

    def _plan(self, now: float) -> None:
        if not self._concerned and not self._disturbed():
            self._pass_at = None
        elif self._pass_at is None:
            self._pass_at = next_pass(now, self.config.node_monitor_period_s)

    # --- passes -------------------------------------------------------------------------------------------------------

    def _pass(self, view: View, now: float) -> Reconciling:
        due = self._silent.due(now)
        if due or (self._pass_at is not None and self._pass_at <= now):
            self._passing.update(dict.fromkeys(due))
            if self._pass_at is not None and self._pass_at <= now:
                self._passing.update(self._concerned)
                self._concerned.clear()
                self._pass_at = None
            self._in_pass = True
        if not self._in_pass:
            return []
        writes: list[Write] = []
        while self._passing and len(writes) < _MOST:
            name = next(iter(self._passing))
            del self._passing[name]
            writes += self.faults.each("Node", (("", name),), partial(self._look_at, view), now)
            yield
        if not self._passing:
            self._in_pass = False
            self._handle_disruption(now)
        return writes

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        seen = self._nodes.get(name)
        if not isinstance(node, Node) or seen is None:
            return []
        zone = self._zones[seen.zone]
        observed = ready_status(node)
        writes: list[Write] = []
        if self._is_silent(seen, now):
            writes.append(status_of(node, {"conditions": silent_conditions(node, now)}))
            self._count(seen, -1)
            seen.ready = "Unknown"
            self._count(seen, 1)
            if observed is None:
                observed = "Unknown"
            elif observed == "True":
                message = f"Node {name} status is now: NodeNotReady"
                writes.append(object_event(node, "NodeNotReady", message, COMPONENT, now))
                self._not_ready.update(dict.fromkeys((pod.namespace, pod.name) for pod in view.pods_on(name)))
        wanted = wanted_taint(observed)
        if wanted is None:
            zone.waiting.pop(name, None)
            swap = with_taint(node, None, now) if observed is not None else None
        else:
            # Replacing a taint by another is not rate-limited; only the first taint of a node is.
            swap = with_taint(node, wanted, now) if condition_taints(node) - {wanted} else None
            if swap is None and wanted not in condition_taints(node):
                zone.waiting[name] = None
        return [swap, *writes] if swap is not None else writes

    def _is_silent(self, seen: _Seen, now: float) -> bool:
        if seen.signs is None or seen.ready == "Unknown":
            return False
        config = self.config
        grace = config.node_monitor_grace_period_s if seen.ready is not None else config.node_startup_grace_period_s
        return now >= pass_at_or_after(seen.probe_s + grace, config.node_monitor_period_s)

    def _handle_disruption(self, now: float) -> None:
        zones = self._zoned()
        states = [self._state_now(zone) for zone in zones]
        all_are = all(state == FULL for state in states)
        all_were = all(zone.state == FULL for zone in zones)
        if not zones or (all_are and all_were):
            return
        if all_are:
            for zone in zones:
                zone.rate, zone.state = zone.rate.swapped(0.0, now), FULL
            for name, seen in self._nodes.items():
                self._zones[seen.zone].waiting.pop(name, None)
                if seen.taints:
                    self._freed[name] = None
            self._concerned.update(
                dict.fromkeys(name for name, seen in self._nodes.items() if wanted_taint(seen.ready))
            )
            self._plan(now)
            return
        if all_were:
            self._begin_grace_anew(now)
        for zone, state in zip(zones, states, strict=True):
            if all_were or zone.state != state:
                zone.rate = zone.rate.swapped(eviction_rate(state, zone.size, self.config), now)
                zone.state = state

    def _begin_grace_anew(self, now: float) -> None:
        """Start all grace periods again, because no heartbeat could arrive while kschedd was stopped."""
        config = self.config
        for name, seen in self._nodes.items():
            if seen.signs is not None:
                seen.probe_s = now
                if name in self._silent:
                    at = now + config.node_monitor_grace_period_s
                    self._silent.set(name, pass_at_or_after(at, config.node_monitor_period_s))

    def _taint_waiting(self, zone: Zone, view: View, now: float) -> list[Write]:
        writes: list[Write] = []
        while zone.waiting and zone.rate.try_accept(now):
            node_name = next(iter(zone.waiting))
            del zone.waiting[node_name]
            node = view.find("Node", "", node_name)
            if not isinstance(node, Node):
                continue
            key = wanted_taint(ready_status(node))
            taint = None if key is None else with_taint(node, key, now)
            if taint is not None:
                writes.append(taint)
        return writes

    def _free(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        freed = with_taint(node, None, now) if isinstance(node, Node) else None
        return [] if freed is None else [freed]

    def _mark_not_ready(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        conditions = pod_not_ready(pod, now) if isinstance(pod, Pod) else None
        if pod is None or conditions is None:
            return []
        event = object_event(pod, "NodeNotReady", "Node is not ready", COMPONENT, now, warning=True)
        return [status_of(pod, {"conditions": conditions}), event]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Mark a node whose write was rejected, so that the next check retries it."""
        if isinstance(error, Conflict) and isinstance(write, Patch) and write.kind == "Node":
            self._concerned[write.name] = None
            self._plan(now)
        return []
