"""The Endpoints and EndpointSlices of Services with a selector: the addresses and ports of the pods that it matches.

An index finds the Services of a pod by its labels. Events of pods in namespaces without such Services are not
delivered, and events that change nothing in the endpoints are ignored. A Service with more than 100 pods is examined at
most once per millisecond for each pod, so that the start of many pods costs a limited share of the time. All Services
share a budget of 4000 pods per second. A turn examines Services until it has examined 250 pods; the other Services wait
for the next turns.

A Service's slices are deleted with their owner by the garbage collector; its Endpoints object is deleted here.

Owns the index of Services, and the names of the pods that each Service selects. Source: Kubernetes v1.37,
controller/endpoint, controller/endpointslice, endpointslice/util/trigger_time_tracker.go.
"""

from collections.abc import Generator, Iterable, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.conditions import condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.networking.backends import (
    HEADLESS,
    PodParts,
    address_types,
    facts,
    has_own_endpoints,
    is_backend,
    is_headless,
    ports,
    subsets,
    truncated,
)
from kschedd.controllers.networking.slices import (
    CONTROLLER,
    MANAGED_BY,
    TRIGGER_TIME,
    Backend,
    frozen_ports,
    slice_writes,
)
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Patch, Write, patch_of
from kschedd.values import in_parts

Key = tuple[str, str]  # namespace, name of a Service
_Label = tuple[str, str]
ENDPOINTS_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_CONTROLLER: Final = "endpoint-controller"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_FEW: Final = 100
_S_PER_POD: Final = 0.001  # for a Service
_S_PER_POD_OF_ALL: Final = 0.00025
_BURST_S: Final = 0.25  # time for which the budget is saved
_RETRY_S: Final = 1.0
_PER_SELECTED: Final = 20  # number of labels that can be compared in the time that it takes to examine a pod
_PART: Final = 250  # number of pods examined between two pauses, in about 1 ms


class Endpoints(InSteps):
    name: Final = "endpoints"
    kinds: Final = frozenset(("Service", "Pod", "Endpoints", "EndpointSlice"))

    def __init__(self) -> None:
        # namespace -> first label of the selector -> Service -> selector
        self._services: dict[str, dict[_Label, dict[str, tuple[_Label, ...]]]] = {}
        self._filed: dict[Key, _Label] = {}
        self._members: dict[Key, dict[str, None]] = {}  # Service -> names of the pods that it selects
        self._incomplete: dict[Key, tuple[_Label, ...]] = {}  # Services whose pods are not yet all in the index
        self._of_pod: dict[tuple[str, str], tuple[Key, ...]] = {}
        self._later: Timers[Key] = Timers()  # Services that wait to be examined
        self._examined: dict[Key, float] = {}
        self._spent: float = 0.0  # time at which the budget for examined pods is available again
        self._parts = PodParts()
        # Service -> trigger times of its pods by name, and its own
        self._triggers: dict[Key, tuple[dict[str, str], str]] = {}
        self._own: dict[tuple[str, str, str], int] = {}  # kind, namespace, name -> version of the last own write
        self._events = EventRecorder(ENDPOINTS_CONTROLLER)
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        at = self._later.next
        return None if at is None else max(at, self._spent - _BURST_S)

    def concerns(self, event: WatchEvent) -> bool:
        new, old = event.new, event.old
        if not isinstance(new, Pod):
            return new.kind == "Service" or not self._is_own(event)
        if new.namespace not in self._services:
            return False
        if (new.namespace, new.name) not in self._of_pod and not any(True for _ in self._selecting(new)):
            return False
        if event.type == DELETED or not isinstance(old, Pod) or old.labels != new.labels:
            return True
        return facts(old) != facts(new)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        changed: dict[Key, None] = {}
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                changed.update(dict.fromkeys(self._observe_pod(new, gone=event.type == DELETED)))
                yield
            elif new.kind == "Service":
                self._observe_service(new, gone=event.type == DELETED)
                changed[new.namespace, new.name] = None
            else:
                if event.type == DELETED:
                    self._own.pop((new.kind, new.namespace, new.name), None)
                changed.update(dict.fromkeys(self._service_of(new)))
        for key in changed:
            self._wait(key, now)
        due = yield from self._due(view, now)
        return (yield from self.faults.each_in_steps("Service", due, partial(self._look_at, view), now))

    # --- the index ----------------------------------------------------------------------------------------------------

    def _selecting(self, pod: Pod) -> Iterable[Key]:
        """Yield the Services whose selectors match the pod."""
        by_label = self._services.get(pod.namespace)
        if by_label is None:
            return
        labels = pod.labels
        for label in labels.items():
            for name, selector in by_label.get(label, {}).items():
                if all(labels.get(key) == value for key, value in selector):
                    yield pod.namespace, name

    def _observe_pod(self, pod: Pod, *, gone: bool) -> Iterable[Key]:
        """Update the index. Return the Services to examine."""
        place = (pod.namespace, pod.name)
        before = self._of_pod.pop(place, ())
        after = () if gone else tuple(self._selecting(pod))
        if after:
            self._of_pod[place] = after
        else:
            self._parts.forget(pod.uid)
        if before == after:
            return after
        both = {**dict.fromkeys(before), **dict.fromkeys(after)}
        for key in before:
            if key in self._members:
                self._members[key].pop(pod.name, None)
        for key in after:
            self._members[key][pod.name] = None
        return both

    def _observe_service(self, service: Object, *, gone: bool) -> None:
        """Update the index; `_complete` adds the pods that exist already."""
        key = (service.namespace, service.name)
        selector: tuple[_Label, ...] = ()
        if not gone and has_own_endpoints(service):
            selector = tuple((str(name), str(value)) for name, value in service.spec["selector"].items())
        by_label = self._services.get(service.namespace, {})
        label = self._filed.get(key)
        if label is not None:
            if by_label[label].get(service.name) == selector:
                return
            self._unfile(key, label)
        if selector:
            label = self._filed[key] = selector[0]
            self._services.setdefault(service.namespace, {}).setdefault(label, {})[service.name] = selector
            self._members[key] = {}
            self._incomplete[key] = selector

    def _complete(self, key: Key, view: View) -> Generator[None, None, int]:
        """Add the pods that exist to the index of a new Service. Return the number of pods in the namespace."""
        selector = self._incomplete.pop(key, None)
        count = 0
        if selector is None:
            return count
        members = self._members[key]
        for present in view.present("Pod", key[0]):
            for some in in_parts(present, _PART):
                count += len(some)
                for pod in some:
                    labels = pod.labels
                    if pod.name not in members and all(labels.get(name) == value for name, value in selector):
                        members[pod.name] = None
                        place = (pod.namespace, pod.name)
                        self._of_pod[place] = (*self._of_pod.get(place, ()), key)
                yield
        return count

    def _unfile(self, key: Key, label: _Label) -> None:
        namespace, name = key
        by_label = self._services[namespace]
        del self._filed[key], by_label[label][name]
        self._incomplete.pop(key, None)
        if not by_label[label]:
            del by_label[label]
        if not by_label:
            del self._services[namespace]
        for pod in self._members.pop(key, {}):
            left = tuple(each for each in self._of_pod.get((namespace, pod), ()) if each != key)
            if left:
                self._of_pod[namespace, pod] = left
            else:
                self._of_pod.pop((namespace, pod), None)

    def _is_own(self, event: WatchEvent) -> bool:
        new = event.new
        return event.type != DELETED and event.version <= self._own.get((new.kind, new.namespace, new.name), -1)

    def _service_of(self, obj: Object) -> Iterable[Key]:
        owner = obj.owner
        name = obj.name if obj.kind == "Endpoints" else owner.name if owner is not None else ""
        return [(obj.namespace, name)] if (obj.namespace, name) in self._members else []

    def _wait(self, key: Key, now: float) -> None:
        """Let a Service wait until it may be examined; a Service that waits already keeps its place."""
        members, examined = len(self._members.get(key, ())), self._examined.get(key)
        due = now if members <= _FEW or examined is None else max(now, examined + members * _S_PER_POD)
        at = self._later.at(key)
        if at is None or at > due:
            self._later.set(key, due)

    def _due(self, view: View, now: float) -> Generator[None, None, list[Key]]:
        """Return the Services to examine in this turn."""
        found: list[Key] = []
        pods = 0
        while pods < _PART and self._spent - _BURST_S <= now and (due := self._later.due(now, 1)):
            (key,) = due
            pods += (yield from self._complete(key, view)) // _PER_SELECTED
            members = len(self._members.get(key, ()))
            pods += 1 + members
            self._spent = max(self._spent, now) + members * _S_PER_POD_OF_ALL
            self._examined[key] = now
            found.append(key)
        return found

    # --- a Service ----------------------------------------------------------------------------------------------------

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> Reconciling:
        key = (namespace, name)
        service = view.find("Service", namespace, name)
        if service is None:
            self._later.clear(key)
            self._examined.pop(key, None)
            self._triggers.pop(key, None)
            found = view.find("Endpoints", namespace, name)
            managed = found is not None and found.labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS_CONTROLLER
            return [Delete("Endpoints", namespace, name, found.uid)] if found is not None and managed else []
        if not has_own_endpoints(service):
            return []
        pods: list[Pod] = []
        for some in in_parts(sorted(self._members.get(key, ())), _PART):
            there = (view.find("Pod", namespace, each) for each in some)
            pods += (pod for pod in there if isinstance(pod, Pod))
            yield
        trigger_time = self._trigger_time(key, service, pods)
        writes = _endpoints_writes(service, pods, view, trigger_time, self._parts)
        yield
        listed = view.owned_by(service.uid)
        slices = [each for each in listed if each.kind == "EndpointSlice" and each.labels.get(MANAGED_BY) == CONTROLLER]
        families = address_types(service)
        for family in families:
            backends: list[Backend] = []
            for some_pods in in_parts(pods, _PART):
                made = (_backend(service, pod, view, family, self._parts) for pod in some_pods)
                backends += (each for each in made if each is not None)
                yield
            existing = [each for each in slices if each.raw.get("addressType") == family]
            writes += slice_writes(service, family, backends, existing, trigger_time)
        others = [each for each in slices if each.raw.get("addressType") not in families]
        return writes + [Delete("EndpointSlice", each.namespace, each.name, each.uid) for each in others]

    def _trigger_time(self, key: Key, service: Object, pods: Iterable[Pod]) -> str:
        """Return the earliest time of the changes since the last call; "" if there are none."""
        known = self._triggers.get(key)
        before, service_before = known or ({}, "")
        created = str(service.metadata.get("creationTimestamp") or "")
        times: dict[str, str] = {}
        changes: list[str] = []
        for pod in pods:
            at = str((condition(pod.status, "Ready") or {}).get("lastTransitionTime") or "")
            if at:
                times[pod.name] = at
                if at > before.get(pod.name, ""):
                    changes.append(at)
        if created > service_before:
            changes.append(created)
        self._triggers[key] = (times, created)
        return created if known is None else min(changes, default="")

    # --- results of writes --------------------------------------------------------------------------------------------

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> Sequence[Write]:
        """Record the version of an own write, whose event needs no reconcile."""
        if not isinstance(write, Delete) and obj.kind in ("Endpoints", "EndpointSlice"):
            self._own[obj.kind, obj.namespace, obj.name] = obj.resource_version
        return ()

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Record a rejected Endpoints object, and examine the Service again later."""
        if isinstance(write, Delete):
            return []
        raw, namespace, name = _target(write)
        service = view.find("Service", namespace, name)
        if service is None or service.deleting or isinstance(error, NotFound):
            return []
        self._later.set((namespace, name), now + _RETRY_S)
        if raw is None:
            return []
        verb, done = ("Create", "create") if isinstance(write, Create) else ("Update", "update")
        of = f"for service {namespace}/{name}" if done == "create" else f"{namespace}/{name}"
        message = f"Failed to {done} endpoint {of}: {error}"
        return self._events.event(Object.from_raw(raw), f"FailedTo{verb}Endpoint", message, now, warning=True)


def _backend(service: Object, pod: Pod, view: View, family: str, parts: PodParts) -> Backend | None:
    if not is_backend(pod, terminating=True):
        return None
    node = view.find("Node", "", pod.node_name)
    if node is None and not service.spec.get("publishNotReadyAddresses"):
        return None
    found = parts.endpoint(service, pod, node, family)
    return None if found is None else Backend(pod, found, frozen_ports(ports(service, pod)))


def _endpoints_writes(
    service: Object, pods: Iterable[Pod], view: View, trigger_time: str, parts: PodParts
) -> list[Write]:
    """Return the write of the Service's Endpoints object, if it changes."""
    wanted = subsets(service, pods, parts)
    cut = truncated(wanted)
    present = view.find("Endpoints", service.namespace, service.name)
    headless = {HEADLESS: ""} if is_headless(service) else {}
    labels = {**service.labels, **headless, ENDPOINTS_MANAGED_BY: ENDPOINTS_CONTROLLER}
    annotations = {TRIGGER_TIME: trigger_time or None, _OVER_CAPACITY: None if cut is None else "truncated"}
    if present is None:
        meta = {"name": service.name, "namespace": service.namespace, "labels": labels}
        meta["annotations"] = {name: value for name, value in annotations.items() if value}
        raw = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": wanted if cut is None else cut}
        return [] if service.deleting else [Create(raw)]
    shown = list(present.raw.get("subsets") or ())
    if shown == (wanted if cut is None else cut) and present.labels == labels:
        return []
    gone = {name: None for name in present.labels if name not in labels}
    change = {"metadata": {"labels": {**gone, **labels}, "annotations": annotations}}
    return [patch_of(present, {**change, "subsets": wanted if cut is None else cut})]


def _target(write: Write) -> tuple[dict[str, Any] | None, str, str]:
    """Return the Endpoints object of a write (None: it writes a slice), and namespace and name of the Service.

    A name that the write does not contain is "".
    """
    if isinstance(write, Create):
        meta = write.raw["metadata"]
        if write.raw["kind"] == "Endpoints":
            return dict(write.raw), meta["namespace"], meta["name"]
        return None, meta["namespace"], meta["ownerReferences"][0]["name"]
    if isinstance(write, Patch) and write.seen is not None:
        if write.kind == "Endpoints":
            return dict(write.seen.raw), write.namespace, write.name
        owner = write.seen.owner
        return None, write.namespace, owner.name if owner is not None else ""
    return None, "", ""
