"""Gang: either all pods of a group get a node, or none of them keeps one.

A pod contains the name of its group in the label `kschedd.io/gang`, and the size of the group in the label or
annotation `kschedd.io/gang-size`. Groups are within a namespace.

    metadata:
      labels: {kschedd.io/gang: training, kschedd.io/gang-size: "4"}

    kschedd run --plugin examples/plugins/gang.py --config profiles/gang.yaml

A pod with a chosen node reserves it and waits at Permit. The last pod of the group allows all of them to be bound. If
one pod fits on no node, or is missing at the timeout, every waiting pod of the group is rejected and its node is
released. The group is then not tried again until something changes: another pod of the group, other nodes, or other
pods on them. Otherwise the first rejected pod would immediately reserve a node again, in an endless loop.

A pod waits for `timeoutSeconds` of the plugin's arguments (default 60). The label or annotation
`kschedd.io/gang-timeout` overrides it for a group, in seconds.

The plugin registers no events, so any event wakes the pods that it rejected.
Owns: for each incomplete group, the pods observed so far and the state of the cluster at its last attempt.
"""

from typing import Any, ClassVar, Self

import attrs

from kschedd.plugin import (
    SKIP,
    Code,
    CycleState,
    Handle,
    Pod,
    PostFilterResult,
    RawArgs,
    SchedulerCache,
    Status,
    parse_label_selector,
    spread_matcher,
    unresolvable,
)

GROUP, SIZE, TIMEOUT = "kschedd.io/gang", "kschedd.io/gang-size", "kschedd.io/gang-timeout"
DEFAULT_TIMEOUT_S = 60.0

Group = tuple[str, str]  # namespace and name


def group_of(pod: Pod) -> Group | None:
    name = pod.labels.get(GROUP)
    return (pod.namespace, name) if name else None


def _annotated(pod: Pod, key: str) -> str | None:
    return pod.labels.get(key) or pod.annotations.get(key)


def size_of(pod: Pod) -> int | None:
    """Return the size of the pod's group; None if it is not stated as a positive integer."""
    text = _annotated(pod, SIZE) or ""
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _seconds(text: Any) -> float | None:
    try:
        seconds = float(text)
    except (TypeError, ValueError):
        return None
    return seconds if 0 < seconds < float("inf") else None


@attrs.define(eq=False)
class Known:
    """State that the plugin stores for a group."""

    seen: set[str] = attrs.field(factory=set)  # uids of its pods
    tried: object = None  # the state of the cluster when the last attempt began
    # the state at the beginning of an attempt that failed, and the pods observed before it failed
    failed: object = None
    why: str = ""  # it failed
    patience: int = 0  # number of rejections that are left before the group waits for a change


@attrs.define(eq=False)
class Gang:
    name: ClassVar = "Gang"
    _handle: Handle
    _timeout_s: float = DEFAULT_TIMEOUT_S
    _groups: dict[Group, Known] = attrs.field(factory=dict)

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        given = args.values.get("timeoutSeconds", DEFAULT_TIMEOUT_S)
        timeout_s = None if isinstance(given, bool) else _seconds(given)
        if timeout_s is None:
            raise ValueError(f"timeoutSeconds: {given!r}: a number of seconds above 0 is expected")
        return cls(handle, timeout_s)

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        """Reject a pod that would wait without success: its group has no size, or waits for a change."""
        group, size = group_of(pod), size_of(pod)
        if group is None:
            return SKIP
        if size is None:
            return unresolvable(
                f"label or annotation {SIZE} is no number of pods: {_annotated(pod, SIZE) or 'not set'}"
            )
        known = self._groups.setdefault(group, Known())
        known.seen.add(pod.uid)
        if not self._waiting(group):
            now = self._fingerprint()
            if (now, known.seen) == known.failed and known.patience > 0:
                known.patience -= 1
                return unresolvable(f"gang {group[1]} rests until the cluster changes: {known.why}")
            known.tried = now
        return None

    def post_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache, view: object) -> PostFilterResult:
        """Stop the group from waiting: this pod is unschedulable, and no pod could be preempted for it."""
        group = group_of(pod)
        if group is not None:
            self._give_up(group, pod, "fits on no node")
        return PostFilterResult(Status(Code.UNSCHEDULABLE))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve nothing; this method exists only because `unreserve` is not called without it."""
        return None

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Wait until the group is complete; the pod that completes it allows the others."""
        group, size = group_of(pod), size_of(pod)
        if group is None or size is None:
            return None, 0.0
        if self._with_a_node(group) < size:
            patience_s = _seconds(_annotated(pod, TIMEOUT)) or self._timeout_s
            return Status(Code.WAIT, (f"the other pods of gang {group[1]} have no node yet",)), patience_s
        for other in self._waiting(group):
            self._handle.allow(other.uid, self.name)
        self._groups.pop(group, None)
        return None, 0.0

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Release the nodes of the group's waiting pods: this pod has lost its node, so the group is incomplete."""
        group = group_of(pod)
        if group is not None:
            self._give_up(group, pod, "lost its node or waited too long")

    def _give_up(self, group: Group, because_of: Pod, why: str) -> None:
        reason = f"pod {because_of.name} {why}"
        known = self._groups.get(group)
        if known is not None and known.failed != (known.tried, known.seen):
            known.failed = known.tried, set(known.seen)
            known.why = reason
            # Each rejected pod wakes all other pods. If there are more wake-ups, time has passed in between.
            known.patience = len(known.seen) ** 2
        for other in self._waiting(group):
            if other.uid != because_of.uid:
                self._handle.reject(other.uid, self.name, f"gang {group[1]}: {reason}")

    def _waiting(self, group: Group) -> list[Pod]:
        return [pod for pod, _ in self._handle.waiting_pods() if group_of(pod) == group]

    def _with_a_node(self, group: Group) -> int:
        """Return how many of the group's pods run, wait or have just got a node, including this pod.

        The scheduler keeps such counts up to date, so the cost does not depend on the number of pods.
        """
        namespace, name = group
        selector = parse_label_selector({"matchLabels": {GROUP: name}})
        counter = self._handle.cluster.counts.matching(spread_matcher(namespace, selector))
        return sum(counter.by_row.values())

    def _fingerprint(self) -> object:
        """Return a hash of the other inputs of an attempt: the nodes, their requested resources, and other objects."""
        cluster = self._handle.cluster
        table = cluster.table
        taken = table.requested.tobytes(), table.pod_count.tobytes()
        return hash((cluster.versions.nodes.at, taken, cluster.versions.objects_at))
