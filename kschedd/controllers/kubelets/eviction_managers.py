"""The eviction managers of all nodes: the nodes to observe, and the resulting conditions, images and evictions.

A node has an eviction manager if an annotation gives its usage or a shortage. A manager runs after a change, when a
grace or transition period ends, and every 10 s while there are pods to evict. Source: Kubernetes v1.34,
pkg/kubelet/eviction/eviction_manager.go (synchronize).
"""

from collections.abc import Collection, Sequence
from typing import Any

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.simulation.annotations import node_settings
from kschedd.api.text.times import stamp
from kschedd.controllers.kubelets.admission import is_critical
from kschedd.controllers.kubelets.eviction import (
    HARD_GRACE_S,
    MONITORING_S,
    RESOURCE_OF,
    EvictionManager,
    Observations,
    Outcome,
    eviction_message,
    thresholds_met,
)
from kschedd.controllers.kubelets.images import unused_removed
from kschedd.controllers.kubelets.node_pressure import (
    config_of,
    image_bytes,
    observe,
    own_pressures,
    with_pressures,
)
from kschedd.controllers.kubelets.ranking import EvictionCandidate, ranked, usage_of
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.timers import Timers
from kschedd.store.writes import Write, patch_of


@attrs.frozen(eq=False)
class EvictionOrder:
    """A pod to evict, with the message and the grace period."""

    pod: Pod
    message: str
    grace_s: float


@attrs.define(eq=False)
class EvictionManagers:
    """The eviction managers of all observed nodes."""

    component: str
    _managers: dict[str, EvictionManager] = attrs.field(factory=dict)
    _looks: Timers[str] = attrs.field(factory=Timers)  # by node: time of the next run
    _changed: dict[str, None] = attrs.field(factory=dict)  # nodes to observe in this reconcile

    @property
    def next_deadline(self) -> float | None:
        return self._looks.next

    def forget(self, node_name: str) -> None:
        self._managers.pop(node_name, None)
        self._looks.clear(node_name)
        self._changed.pop(node_name, None)

    def node_changed(self, node: Node) -> None:
        if node.name in self._managers or node_settings(node.annotations).short or own_pressures(node):
            self._changed[node.name] = None

    def pod_changed(self, node_name: str, *, states_usage: bool = False) -> None:
        if states_usage or node_name in self._managers:
            self._changed[node_name] = None

    def due(self, now: float) -> list[tuple[str, str]]:
        """Return the keys of the nodes to observe now."""
        changed, self._changed = self._changed, {}
        return [("", name) for name in dict.fromkeys([*changed, *self._looks.due(now)])]

    def synchronize(
        self,
        node: Node,
        active: Sequence[Pod],
        stopping: Collection[Pod],
        evicted: Collection[Pod],
        now: float,
    ) -> tuple[list[Write], EvictionOrder | None]:
        """Run the manager of a node.

        Active pods include pods that were evicted or stopped but are still running.
        """
        settings = node_settings(node.annotations)
        config = config_of(settings)
        candidates = [EvictionCandidate(pod, usage_of(pod)) for pod in active]
        manager = self._managers.get(node.name)
        if manager is None:
            manager = self._managers[node.name] = EvictionManager()
            for condition in own_pressures(node):
                manager.presume(condition, now)
        images = image_bytes(node.status.get("images"))
        seen = observe(node, settings, candidates, images, manager.last, now)
        outcome = manager.synchronize(config, seen, now, hold=bool(evicted))
        conditions = with_pressures(node, outcome.conditions, stamp(now))
        status: dict[str, Any] = {} if conditions is None else {"conditions": conditions}
        may_go = [each for each in candidates if each.pod not in stopping and not is_critical(each.pod)]
        writes: list[Write] = []
        order = None
        if outcome.acting:
            resource = RESOURCE_OF[outcome.acting[0].signal]
            why = f"Attempting to reclaim {resource}"
            writes.append(object_event(node, "EvictionThresholdMet", why, self.component, now, warning=True))
            kept = unused_removed(node, active) if resource == "ephemeral-storage" else None
            if kept is not None:
                status["images"] = kept
                seen = observe(node, settings, candidates, image_bytes(kept), manager.last, now)
            if kept is None or thresholds_met(config.thresholds, seen, with_reclaim=True):
                order = _choice(may_go, outcome, seen, config.max_pod_grace_s)
        if status:
            writes.insert(0, patch_of(node, {"status": status}, "status", exactly=True))
        self._look_again(node.name, manager, outcome, bool(may_go), seen, now)
        return writes, order

    def _look_again(
        self, name: str, manager: EvictionManager, outcome: Outcome, any_left: bool, seen: Observations, now: float
    ) -> None:
        times = [] if outcome.next_at is None else [outcome.next_at]
        if outcome.met and any_left and seen:
            looked = min(observation.at for observation in seen.values())
            times.append(looked + MONITORING_S if looked + MONITORING_S > now else now + MONITORING_S)
        if times:
            self._looks.set(name, min(times))
        else:
            self._looks.clear(name)
            if manager.idle and not seen:
                del self._managers[name]


def _choice(
    may_go: Sequence[EvictionCandidate], outcome: Outcome, seen: Observations, max_grace_s: float
) -> EvictionOrder | None:
    """Return the first pod of the ranking that may be evicted, or None."""
    threshold = outcome.acting[0]
    resource = RESOURCE_OF[threshold.signal]
    if not may_go:
        return None
    first = ranked(may_go, resource)[0]
    grace = HARD_GRACE_S
    if not threshold.hard:
        own = first.pod.pod_spec.raw.get("terminationGracePeriodSeconds")
        grace = max(1.0, max_grace_s if own is None else min(max_grace_s, own))
    message = eviction_message(first.pod, first.usage or (), resource, outcome.acting, seen)
    return EvictionOrder(first.pod, message, grace)
