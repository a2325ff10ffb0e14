"""Cluster events: kinds of changes, the plugins registered for them, and their queueing hints.

A plugin registers events (`events_to_register`), each with a queueing hint. A change of an object is translated into
the narrowest possible events (`node_events`, `pod_events`, `object_event`). A plugin receives an event if it is
registered for the same event or for a wider one (`matches`). The hint then decides whether the event requeues a pod
that the plugin rejected. All functions of this module are pure.

Source: Kubernetes v1.34, kube-scheduler/framework/types.go (ActionType, EventResource, ClusterEvent),
scheduler/framework/events.go and types.go, scheduler/scheduler.go (buildQueueingHintMap).
Errors: none here. If a hint raises an exception, the queue treats the exception as the result QUEUE.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum, IntFlag, StrEnum
from functools import cached_property
from typing import Any

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature
from kschedd.api.quantity import QuantityError, nanos
from kschedd.api.resources import ResizeRules
from kschedd.api.schemas.kinds import BY_NAME

Raw = Mapping[str, Any]


class ActionType(IntFlag):
    """The change of an object. The order of the bits is important: `matches` compares actions as numbers."""

    NONE = 0
    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4  # the node's taints changed, or spec.unschedulable was cleared
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7  # since v1.35
    UPDATE_NODE_PREEMPTION_POLICY = 1 << 8  # since v1.37
    UPDATE_POD_LABEL = 1 << 9
    UPDATE_POD_SCALE_DOWN = 1 << 10  # a request became smaller
    UPDATE_POD_SCALE_UP = 1 << 11  # a request of the pod increased; this event exists since v1.37
    UPDATE_POD_TOLERATION = 1 << 12
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 13  # the last scheduling gate was removed
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 14
    UPDATE = 0b111_1111_1111_1100
    ALL = 0b111_1111_1111_1111

    @property
    def label(self) -> str:
        """Kubernetes' name, such as `UpdateNodeLabel`, or "" for a combination without a name."""
        return _ACTION_LABELS.get(self, "")


_ACTION_LABELS = {
    ActionType.ADD: "Add",
    ActionType.DELETE: "Delete",
    ActionType.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    ActionType.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    ActionType.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    ActionType.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    ActionType.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    ActionType.UPDATE_NODE_PREEMPTION_POLICY: "UpdateNodePreemptionPolicy",
    ActionType.UPDATE_POD_LABEL: "UpdatePodLabel",
    ActionType.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    ActionType.UPDATE_POD_SCALE_UP: "UpdatePodScaleUp",
    ActionType.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    ActionType.UPDATE: "Update",
    ActionType.ALL: "All",
}


class EventResource(StrEnum):
    """The kind of the object that changed.

    Plugins register for POD; ASSIGNED_POD and UNSCHEDULED_POD occur only in events.
    """

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    SERVICE = "Service"  # for ServiceAffinity, which exists up to v1.22
    WILDCARD = "*"


@attrs.frozen
class CustomResource:
    """The name of a kind that is not built in, as in `SchedulerCache.of_kind`, for example ElasticQuota."""

    value: str

    @property
    def label(self) -> str:
        """The kind in upstream's format, with the API group as a prefix if there is one."""
        name, _, group = self.value.partition(".")
        return f"{group}/{name}" if group else name


@attrs.frozen(cache_hash=True)
class ClusterEvent:
    """One change, or a class of changes for which a plugin is registered."""

    resource: EventResource | CustomResource
    action: ActionType
    custom_label: str = ""

    @cached_property  # read in every call of a hint
    def label(self) -> str:
        """The name in logs, metrics and the queue's history, for example `NodeAdd`, `ForceActivate`."""
        resource = self.resource.label if isinstance(self.resource, CustomResource) else self.resource.value
        return self.custom_label or resource + self.action.label

    @property
    def wildcard(self) -> bool:
        """True if the event requeues every pod, whichever plugins rejected it."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def __str__(self) -> str:
        return self.label


def matches(registered: ClusterEvent, incoming: ClusterEvent) -> bool:
    """Return whether `incoming` is the same event as `registered` or a narrower one.

    A general update matches only registrations for general updates.
    """
    if registered.wildcard:
        return True
    wanted, came = registered.resource, incoming.resource
    if wanted is not EventResource.WILDCARD and wanted is not came and wanted != came:
        of_pods = came is EventResource.ASSIGNED_POD or came is EventResource.UNSCHEDULED_POD
        if wanted is not EventResource.POD or not of_pods:
            return False
    action, happened = registered.action.value, incoming.action.value
    return action & happened != 0 and happened <= action


class QueueingHint(Enum):
    """A plugin's result for one event and one pod that the plugin rejected."""

    QUEUE_SKIP = "QueueSkip"  # the event cannot make this pod schedulable
    QUEUE = "Queue"  # hint that the pod may be schedulable now


QUEUE = QueueingHint.QUEUE
QUEUE_SKIP = QueueingHint.QUEUE_SKIP

Hint = Callable[[Pod, Any, Any], QueueingHint]
"""`hint(pod, old, new)` gets typed objects: `old` is None for a created object, `new` is None for a deleted one."""


Concerns = Callable[[PodSignature, Any, Any], Collection[str] | None]
"""`concerns(signature, old, new)` returns keys of pods; None: all pods of the signature."""


@attrs.frozen
class ClusterEventWithHint:
    """An event for which a plugin is registered. Without a hint, the event requeues each pod that the plugin rejected.

    If `by_signature` is true, the hint must read only the pod's signature (spec, namespace, labels). If the event's
    object is the pod itself (same uid), the hint may read more. The queue then calls the hint once for all other pods
    of a signature.

    `concerns` returns the pods to which an event may apply; the queue calls the hint only for these pods. The hint must
    return QueueSkip for all other pods of the signature. In-tree plugins only.
    """

    event: ClusterEvent
    hint: Hint | None = None
    by_signature: bool = False
    concerns: Concerns | None = None


def on(
    resource: EventResource | CustomResource,
    action: ActionType,
    hint: Hint | None = None,
    *,
    by_signature: bool = False,
    concerns: Concerns | None = None,
) -> ClusterEventWithHint:
    """Return a registration: `on(EventResource.NODE, ActionType.ADD, self._hint, by_signature=True)`."""
    return ClusterEventWithHint(ClusterEvent(resource, action), hint, by_signature, concerns)


ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE)
UNSCHEDULED_POD_DELETE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE)
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")

# causes of requeueing that are not cluster events
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF_Q = "PopFromBackoffQ"
POP_WITH_POD_GROUP = "PopWithPodGroup"

# Kind -> resource, for all kinds for which plugins can register.
RESOURCE_OF_KIND = {
    resource.value.rpartition("/")[2]: resource
    for resource in EventResource
    if resource not in (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.WILDCARD)
}


def object_event(old: Object | None, new: Object | None) -> ClusterEvent | None:
    """Return the event for a change of an object other than a Pod or a Node.

    Return None if plugins cannot register for this kind.
    """
    subject = new or old
    assert subject is not None, "a change has an old or a new object"
    resource: EventResource | CustomResource | None = RESOURCE_OF_KIND.get(subject.kind)
    if resource is None:
        if subject.kind in BY_NAME:
            return None
        resource = CustomResource(subject.kind)
    if old is None:
        return ClusterEvent(resource, ActionType.ADD)
    return ClusterEvent(resource, ActionType.UPDATE if new is not None else ActionType.DELETE)


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """Return the events of a node update, in upstream's order; none if the update does not affect scheduling.

    Uncordoning a node is also a change of taints, so this event may occur twice.
    """
    found = []
    if old.unschedulable and not new.unschedulable:
        found.append(ActionType.UPDATE_NODE_TAINT)
    if _quantities_differ(old.status.get("allocatable"), new.status.get("allocatable")):
        found.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        found.append(ActionType.UPDATE_NODE_LABEL)
    if _taints(old) != _taints(new):
        found.append(ActionType.UPDATE_NODE_TAINT)
    if _condition_statuses(old) != _condition_statuses(new):
        found.append(ActionType.UPDATE_NODE_CONDITION)
    if old.annotations != new.annotations:
        found.append(ActionType.UPDATE_NODE_ANNOTATION)
    if old.status.get("declaredFeatures") != new.status.get("declaredFeatures"):
        found.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    if old.spec.get("podPreemptionPolicy") != new.spec.get("podPreemptionPolicy"):
        found.append(ActionType.UPDATE_NODE_PREEMPTION_POLICY)
    return [ClusterEvent(EventResource.NODE, action) for action in found]


def pod_events(old: Pod, new: Pod, resizing: ResizeRules | None = None) -> list[ClusterEvent]:
    """Return the events of a pod update in upstream's order, or a general update if no narrower event applies.

    `resizing` contains the rules for counting the requests of running pods. If it is None, pods with a deferred resize
    are not queued, and an increased request is not a separate event.
    """
    found = []
    if old.signature is not new.signature and old.labels != new.labels:
        found.append(ActionType.UPDATE_POD_LABEL)
    before, after = old.requests, new.requests
    if resizing is not None:
        before, after = old.counted(resizing).requests, new.counted(resizing).requests
    if _smaller(after, before):
        found.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if resizing is not None and _smaller(before, after):
        found.append(ActionType.UPDATE_POD_SCALE_UP)
    if old.pod_spec is not new.pod_spec:
        if old.pod_spec.scheduling_gates and not new.pod_spec.scheduling_gates:
            found.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        # Tolerations of a pod can be added but not changed, so it is enough to compare their number.
        if len(old.pod_spec.tolerations) != len(new.pod_spec.tolerations):
            found.append(ActionType.UPDATE_POD_TOLERATION)
    if _generated_claims(old.status) != _generated_claims(new.status):
        found.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    resource = EventResource.ASSIGNED_POD if new.node_name else EventResource.UNSCHEDULED_POD
    return [ClusterEvent(resource, action) for action in found or (ActionType.UPDATE,)]


def _quantities_differ(old: Raw | None, new: Raw | None) -> bool:
    """Return whether two ResourceLists differ in amount; "1" and "1000m" do not."""
    if old is new or (old or {}) == (new or {}):
        return False
    if not old or not new or old.keys() != new.keys():
        return True
    try:
        return any(nanos(old[name]) != nanos(new[name]) for name in old)
    except QuantityError:
        return True


def _taints(node: Node) -> list[tuple[str, str, str, str]]:
    return [
        (t.get("key") or "", t.get("value") or "", t.get("effect") or "", t.get("timeAdded") or "")
        for t in node.spec.get("taints") or ()
    ]


def _condition_statuses(node: Node) -> dict[str, str]:
    return {c.get("type", ""): c.get("status", "") for c in node.status.get("conditions") or ()}


def _smaller(requests: Mapping[str, int], than: Mapping[str, int]) -> bool:
    if requests is than:
        return False
    return any(name not in requests or requests[name] < amount for name, amount in than.items())


def _generated_claims(status: Raw) -> tuple[list[tuple[Any, Any]], Any] | None:
    statuses, extended = status.get("resourceClaimStatuses"), status.get("extendedResourceClaimStatus")
    if not statuses and extended is None:
        return None
    return [(s.get("name"), s.get("resourceClaimName")) for s in statuses or ()], extended


# Extenders register no events; this name is in the unschedulable plugins of a pod that an extender rejected.
EXTENDER_NAME = "Extender"

# A plugin without registrations is treated as registered for every event.
EVERY_EVENT: tuple[ClusterEventWithHint, ...] = tuple(
    on(resource, ActionType.ALL)
    for resource in (
        EventResource.POD,
        EventResource.NODE,
        EventResource.PERSISTENT_VOLUME,
        EventResource.PERSISTENT_VOLUME_CLAIM,
        EventResource.CSI_NODE,
        EventResource.CSI_DRIVER,
        EventResource.CSI_STORAGE_CAPACITY,
        EventResource.STORAGE_CLASS,
        EventResource.RESOURCE_CLAIM,
        EventResource.DEVICE_CLASS,
    )
)


def hints_of(
    registered: Iterable[ClusterEventWithHint] | None, *, taints_for_all: bool = True
) -> tuple[ClusterEventWithHint, ...]:
    """Return one plugin's registrations in the queue's form. `registered` is None without `events_to_register`.

    With `taints_for_all`, a plugin registered for node additions also gets every taint change, as in releases without
    the rule taints_wake_their_own.
    """
    if registered is None:
        return EVERY_EVENT
    events = tuple(registered)
    if not taints_for_all:
        return events
    of_nodes = [entry.event.action for entry in events if entry.event.resource is EventResource.NODE]
    if any(action & ActionType.ADD for action in of_nodes) and not any(
        action & ActionType.UPDATE_NODE_TAINT for action in of_nodes
    ):
        events += (on(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),)
    return events


def hint_map(plugins: Sequence[Any], *, taints_for_all: bool = True) -> dict[str, tuple[ClusterEventWithHint, ...]]:
    """Return the registrations of a profile's plugins that may reject a pod, by name of the plugin."""
    found = {}
    for plugin in plugins:
        register = getattr(plugin, "events_to_register", None)
        found[plugin.name] = hints_of(None if register is None else register(), taints_for_all=taints_for_all)
    return found
