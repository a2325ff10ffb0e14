"""A kubelet's eviction manager: thresholds that are met, pressure conditions of the node, and resources to reclaim.

A hard threshold takes effect immediately, and a soft threshold after it has been met for its grace period. A threshold
that was met counts as met until the minimum reclaim is available in addition. A pressure condition remains for the
transition period after the pressure ends. Pods are evicted one at a time, each after a new observation.

Source: Kubernetes v1.34, pkg/kubelet/eviction/eviction_manager.go (synchronize), helpers.go.
Units: bytes, counts; seconds since the epoch.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.api.quantity import Style, canonical, format_value, value
from kschedd.api.simulation.eviction_thresholds import (
    IMAGEFS,
    IMAGEFS_INODES,
    MEMORY,
    NODEFS,
    NODEFS_INODES,
    PID,
    EvictionConfig,
    Threshold,
)
from kschedd.controllers.kubelets.ranking import PodUsage, StarvedResource, counted_containers

MONITORING_S: Final = 10.0  # interval of observations while a threshold is met
HARD_GRACE_S: Final = 1.0  # grace period of a pod evicted by a hard threshold

CONDITION_OF: Final[Mapping[str, str]] = {
    MEMORY: "MemoryPressure",
    NODEFS: "DiskPressure",
    NODEFS_INODES: "DiskPressure",
    IMAGEFS: "DiskPressure",
    IMAGEFS_INODES: "DiskPressure",
    PID: "PIDPressure",
}
RESOURCE_OF: Final[Mapping[str, StarvedResource]] = {
    MEMORY: "memory",
    NODEFS: "ephemeral-storage",
    NODEFS_INODES: "inodes",
    IMAGEFS: "ephemeral-storage",
    IMAGEFS_INODES: "inodes",
    PID: "pids",
}


@attrs.frozen
class Observation:
    """The available amount of a signal, its capacity, and the time of the observation."""

    available: int
    capacity: int
    at: float


Observations = Mapping[str, Observation]  # by signal


def thresholds_met(
    thresholds: Iterable[Threshold], observations: Observations, *, with_reclaim: bool = False
) -> list[Threshold]:
    """Return the thresholds for which less is available than required, plus the minimum reclaim if `with_reclaim`."""
    met = []
    for threshold in thresholds:
        seen = observations.get(threshold.signal)
        if seen is None:
            continue
        least = threshold.value.of(seen.capacity)
        if with_reclaim and threshold.min_reclaim is not None:
            least += threshold.min_reclaim.of(seen.capacity)
        if seen.available < least:
            met.append(threshold)
    return met


@attrs.frozen
class Outcome:
    """The result of one run: the node's pressure conditions, and the thresholds that require an eviction."""

    conditions: tuple[str, ...]
    met: bool  # True if a threshold's grace period has passed, even if it may not evict a pod yet
    acting: tuple[Threshold, ...]  # thresholds that may evict a pod now, most urgent first
    next_at: float | None  # end of the next grace or transition period


@attrs.define(eq=False)
class EvictionManager:
    """The thresholds and conditions of one node over time."""

    _first_met: dict[Threshold, float] = attrs.field(factory=dict)
    _seen: dict[str, float] = attrs.field(factory=dict)  # condition -> latest time of pressure
    _met: tuple[Threshold, ...] = ()
    last: Observations = attrs.field(factory=dict)

    @property
    def idle(self) -> bool:
        """True if no threshold is met and no condition is set."""
        return not self._first_met and not self._seen

    def presume(self, condition: str, now: float) -> None:
        """Record a pressure condition that the node had before this manager started."""
        self._seen.setdefault(condition, now)

    def synchronize(
        self, config: EvictionConfig, observations: Observations, now: float, *, hold: bool = False
    ) -> Outcome:
        """Process the current observations.

        `hold` is true while an evicted pod is still running; until it has ended, no threshold evicts another pod.
        """
        met = thresholds_met(config.thresholds, observations)
        met += [t for t in thresholds_met(self._met, observations, with_reclaim=True) if t not in met]
        # a threshold that was met in the previous run has been met since then, because every change causes a run
        self._seen.update(dict.fromkeys([CONDITION_OF[threshold.signal] for threshold in self._first_met], now))
        self._first_met = {threshold: self._first_met.get(threshold, now) for threshold in met}
        there = {CONDITION_OF[threshold.signal] for threshold in met}
        self._seen.update(dict.fromkeys(sorted(there), now))
        self._seen = {name: at for name, at in self._seen.items() if name in there or now - at < config.transition_s}
        acting = [t for t, since in self._first_met.items() if now - since >= t.grace_s]
        self._met = tuple(acting)
        fresh: list[Threshold] = []
        if not hold:
            # Two observations may have the same virtual time.
            fresh = [t for t in acting if observations[t.signal] != self.last.get(t.signal)]
            self.last = observations
        fresh.sort(key=lambda threshold: threshold.signal != MEMORY)
        waits = [since + t.grace_s for t, since in self._first_met.items() if now - since < t.grace_s]
        waits += [at + config.transition_s for name, at in self._seen.items() if name not in there]
        conditions = tuple(name for name in dict.fromkeys(CONDITION_OF.values()) if name in self._seen)
        return Outcome(conditions, bool(acting), tuple(fresh), min(waits, default=None))


def eviction_message(
    pod: Pod, usage: PodUsage, resource: StarvedResource, acting: Sequence[Threshold], observations: Observations
) -> str:
    """Return the kubelet's message for the eviction of a pod.

    Source: pkg/kubelet/eviction/helpers.go (evictionMessage).
    """
    message = f"The node was low on resource: {resource}. "
    for threshold in acting:
        seen = observations.get(threshold.signal)
        if RESOURCE_OF[threshold.signal] == resource and seen is not None:
            quantity = threshold.value.text(seen.capacity)
            notation: Style = "DecimalSI" if resource in ("pids", "inodes") else "BinarySI"
            left = format_value(seen.available, notation)
            message += f"Threshold quantity: {quantity}, available: {left}. "
            break
    if resource not in ("memory", "ephemeral-storage"):
        return message
    used = {container.name: container.of(resource) for container in usage}
    requested = {
        container.get("name"): ((container.get("resources") or {}).get("requests") or {}).get(resource)
        for container in counted_containers(pod)
    }
    for name, amount in used.items():
        request = requested.get(name)
        if amount > (0 if request is None else value(request)):
            message += (
                f"Container {name} was using {format_value(amount, 'BinarySI')}, "
                f"request is {'0' if request is None else canonical(request)}, has larger consumption of {resource}. "
            )
    return message
