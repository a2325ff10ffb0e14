"""Events that controllers record about other objects, for `kubectl get events` and `describe`.

An `EventRecorder` limits its Events as client-go does. An equal Event increments a count. The tenth different message
with one reason within 10 minutes, and each later one, changes a single combined Event. A component writes at most 25
Events about an object at once, and then one every 5 minutes. The recorder owns these counts; the Events are stored as
other objects, and expire (`event_expiry`). An event about a cluster-scoped object is in the namespace "default".

The name of an Event contains its time in nanoseconds, as upstream, so Events of one second are listed in order. The
last three digits depend on the component, and the microseconds grow with each Event: the names are unique, and equal
runs write equal names.

Source: Kubernetes v1.37, client-go/tools/record (event.go, events_cache.go).
"""

from hashlib import blake2b
from typing import Any, Final, TypeVar

from kschedd.api.objects import Object
from kschedd.api.text.times import stamp
from kschedd.controllers.templates import controller_in
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.errors import ApiError
from kschedd.store.writes import Create, Delete, Patch, Write

_MOST_KEPT: Final = 4_096  # items of each map
_BURST: Final = 25
_REFILL_S: Final = 300.0
_SIMILAR: Final = 10  # number of different messages from which Events are combined
_SIMILAR_S: Final = 600.0
_COMBINED: Final = "(combined from similar events): "
_LONGEST_NAME: Final = 253

_About = tuple[str, str, str, str]  # kind, namespace, name and uid of the object
V = TypeVar("V")
K = TypeVar("K")


def object_event(
    about: Object, reason: str, message: str, component: str, now: float, *, warning: bool = False
) -> Create:
    """Return the write that creates an Event about the object, without limits."""
    event = _event(about, reason, message, stamp(now), component, "", warning=warning)
    return Create({**event, "metadata": {"generateName": f"{about.name}.", "namespace": about.namespace or "default"}})


def _event(
    about: Object, reason: str, message: str, at: str, component: str, host: str, *, warning: bool
) -> dict[str, Any]:
    involved = {
        "apiVersion": about.raw.get("apiVersion") or "v1",
        "kind": about.raw.get("kind") or about.kind,
        "name": about.name,
        "uid": about.uid,
        "resourceVersion": str(about.resource_version),
    }
    if about.namespace:
        involved["namespace"] = about.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "source": {"component": component, "host": host} if host else {"component": component},
        "reportingComponent": component,
        "reportingInstance": host,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


class EventRecorder:
    """The Events of one component; `host` is the node of a kubelet.

    Without `detailed`, only failures are recorded, and a failure that repeats the previous one is not recorded: for
    runs in which nobody reads the Events.
    """

    def __init__(self, component: str, host: str = "", *, detailed: bool = True) -> None:
        self.detailed = detailed
        self._component = component
        self._host = host
        self._digits = int.from_bytes(blake2b(f"{component}/{host}".encode(), digest_size=8).digest()) % 1000
        self._last_us = 0  # time in the name of the last Event
        self._tokens: dict[_About, tuple[float, float]] = {}  # remaining number of Events, at this time
        # object, type and reason -> the different messages, and the time of the last one
        self._similar: dict[tuple[_About, bool, str], tuple[tuple[str, ...], float]] = {}
        self._seen: dict[tuple[_About, bool, str, str], Object] = {}  # the latest state of each Event
        self._failures: dict[_About, str] = {}  # last failure

    def event(self, about: Object, reason: str, message: str, now: float, *, warning: bool = False) -> list[Write]:
        """Return the write that records an Event about the object; none if there are too many about it."""
        key: _About = (about.kind, about.namespace, about.name, about.uid)
        combined = self._is_combined((key, warning, reason), message, now)
        known = (key, warning, reason, "" if combined else message)
        told = _COMBINED + message if combined else message
        at = stamp(now)
        seen = self._seen.get(known)
        if seen is None:
            event = _event(about, reason, told, at, self._component, self._host, warning=warning)
            if combined:
                event["reportingComponent"] = ""  # client-go does not copy the reporting component
            event["metadata"] = {"name": self._name(about, now), "namespace": about.namespace or "default"}
            _keep(self._seen, known, Object.from_raw(event))
            return [Create(event)] if self._accepts(key, now) else []
        change = {"count": seen.raw["count"] + 1, "lastTimestamp": at, "message": told}
        whole = Object.from_raw({**seen.raw, **change})
        _keep(self._seen, known, whole)
        # `seen` contains the whole Event, which is created again if it has expired
        repeated = Patch("Event", whole.namespace, whole.name, change, seen=whole)
        return [repeated] if self._accepts(key, now) else []

    def failure(self, about: Object, error: ApiError, now: float, reason: str, *messages: str) -> list[Write]:
        """Return the writes that record a rejected write of the component."""
        if not self.detailed:
            key: _About = (about.kind, about.namespace, about.name, about.uid)
            # without the rejected object's name, because a generated name differs in each attempt
            gist = str(getattr(error, "why", error))
            if self._failures.get(key) == gist:
                return []
            _keep(self._failures, key, gist)
        return [write for each in messages for write in self.event(about, reason, each, now, warning=True)]

    def of_pod(self, write: Write, pod: Object, view: ClusterReader, now: float) -> list[Write]:
        """Return the Event about the workload whose pod this write creates or deletes; no Event for other writes.

        Source: Kubernetes v1.37, controller/controller_utils.go (RealPodControl).
        """
        if not self.detailed or pod.kind != "Pod" or not isinstance(write, Create | Delete):
            return []
        owner = controller_in(view, pod)
        if owner is None:
            return []
        if isinstance(write, Create):
            return self.event(owner, "SuccessfulCreate", f"Created pod: {pod.name}", now)
        return self.event(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}", now)

    def _name(self, about: Object, now: float) -> str:
        self._last_us = max(round(now * 1e6), self._last_us + 1)
        suffix = f"{self._last_us * 1000 + self._digits:x}"
        name = f"{about.name}.{suffix}"
        return name if len(name) <= _LONGEST_NAME else suffix

    def _is_combined(self, key: tuple[_About, bool, str], message: str, now: float) -> bool:
        messages, last = self._similar.get(key, ((), now))
        if now - last > _SIMILAR_S:
            messages = ()
        if message not in messages:
            messages = (*messages, message)
        combined = len(messages) >= _SIMILAR
        _keep(self._similar, key, (messages[1:] if combined else messages, now))
        return combined

    def _accepts(self, key: _About, now: float) -> bool:
        tokens, since = self._tokens.get(key, (float(_BURST), now))
        tokens = min(_BURST, tokens + (now - since) / _REFILL_S)
        accepted = tokens >= 1
        _keep(self._tokens, key, (tokens - accepted, now))
        return accepted


def again(write: Write) -> Write | None:
    """Return the write to perform if the Event that this write repeats has expired; None for other writes."""
    return Create(write.seen.raw) if isinstance(write, Patch) and write.seen is not None else None


def _keep(items: dict[K, V], key: K, value: V) -> None:
    """Set an item, and drop the one that was set least recently if there are too many."""
    items.pop(key, None)
    items[key] = value
    if len(items) > _MOST_KEPT:
        del items[next(iter(items))]
