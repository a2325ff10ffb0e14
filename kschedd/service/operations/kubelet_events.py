"""The Events that kubelets would have written about containers, computed from the pods' statuses when they are read.

A running pod causes no writes of Events. An Event names the first and the last time and the number of starts. An Event
disappears an hour after its last occurrence, and when its pod is deleted. Without the name of a pod, a list contains
the Events of the 500 pods that changed last, because computing them takes time. Only clusters with simulated pods have
Events of kubelets (`StoreReader.pod_behavior`). A stored Event of a kubelet with the same reason for the pod, for
example from a dump, is listed instead. When a pod changes, a watch receives the Events that the change adds or changes
(`ReporterOfChanges`). A watch does not report the disappearance of Events.

Source: Kubernetes v1.34, kubelet/kuberuntime/kuberuntime_container.go, kuberuntime_manager.go (doBackOff),
kubelet/images/image_manager.go, kubelet/prober/prober.go.
Units: seconds since the epoch.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from hashlib import blake2b
from heapq import nlargest
from itertools import chain
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.simulation.annotations import pod_settings
from kschedd.api.text.durations import show_duration
from kschedd.api.text.times import seconds, stamp
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, WatchEvent
from kschedd.values import in_parts

COMPONENT: Final = "kubelet"
NOT_CONFIGURED: Final = "CreateContainerConfigError"
_MOST: Final = 500
_PART: Final = 1_000  # number of objects that are read in one step
_PODS_IN_STEP: Final = 10
_TTL_S: Final = 3600.0
_ORDER: Final = ("Pulling", "Pulled", "Created", "Started", "Unhealthy", "Failed", "Killing", "BackOff")
_LISTS: Final = (
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)
_NONE: Final[Raw] = {}
_Place = tuple[int, str]  # the index of a container in the pod, and its field path


@attrs.frozen(eq=False)
class Reported:
    """The objects from which a list of Events is computed."""

    pods: Sequence[Sequence[Object]]
    stored: Sequence[Sequence[Object]]  # Events
    now: float
    renamed: bool


def reported(store: ClusterReader, namespace: str | None, name: str | None = None) -> Reported:
    """Return the pods from which Events are computed, and the stored Events, optionally of one namespace or one pod."""
    renamed = "fields_of_1_35" in store.features
    if store.pod_behavior is None:
        return Reported((), (), store.now, renamed)
    pod = None if name is None else store.find("Pod", namespace or "default", name)
    pods = store.present("Pod", namespace) if name is None else [[pod] if pod is not None else []]
    return Reported(pods, store.present("Event", namespace), store.now, renamed)


def events_of(found: Reported) -> Generator[None, None, list[Object]]:
    """Return the kubelet's Events about the pods, computed in steps of a few milliseconds."""
    latest: list[Pod] = []
    for some in in_parts(chain.from_iterable(found.pods), _PART):
        bound = (pod for pod in some if isinstance(pod, Pod) and pod.node_name and pod.start_time)
        latest = nlargest(_MOST, (*latest, *bound), key=lambda pod: pod.resource_version)
        yield
    stored: set[tuple[Any, Any]] = set()
    for some in in_parts(chain.from_iterable(found.stored), _PART) if latest else ():
        stored.update(
            ((event.raw.get("involvedObject") or _NONE).get("uid"), event.raw.get("reason"))
            for event in some
            if (event.raw.get("source") or _NONE).get("component") == COMPONENT
        )
        yield
    events: list[Object] = []
    for number, pod in enumerate(latest):
        of_pod = _Reporter(pod, found.now, renamed=found.renamed).events()
        events += [event for event in of_pod if (pod.uid, event.raw["reason"]) not in stored]
        if number % _PODS_IN_STEP == 0:
            yield
    return events


@attrs.frozen
class ReporterOfChanges:
    """The source of the kubelet's Events for a watch. `renamed`: messages of 1.35 and later."""

    now: Callable[[], float]
    renamed: bool

    def changes(self, event: WatchEvent) -> Iterator[tuple[str, Object]]:
        """Yield ADDED or MODIFIED and the Event, for each Event that this change of a pod creates or modifies."""
        pod, old = event.new, event.old
        if event.type == DELETED or not isinstance(pod, Pod) or not pod.node_name or not pod.start_time:
            return
        known = {}
        if isinstance(old, Pod) and old.start_time:
            if all(old.status.get(field) == pod.status.get(field) for _, field in _LISTS) and (
                old.deletion_timestamp == pod.deletion_timestamp
            ):
                return
            known = {each.name: each.raw for each in self._of(old)}
        for each in self._of(pod):
            before = known.get(each.name)
            if before != each.raw:
                meta = {**each.metadata, "resourceVersion": str(event.version)}
                yield ADDED if before is None else MODIFIED, Object.from_raw({**each.raw, "metadata": meta})

    def _of(self, pod: Pod) -> Iterator[Object]:
        return _Reporter(pod, self.now(), renamed=self.renamed).events()


@attrs.frozen
class _Reporter:
    """The Events about one pod. `renamed`: messages of 1.35 and later."""

    _pod: Pod
    _now: float
    _renamed: bool = attrs.field(kw_only=True)

    def events(self) -> Iterator[Object]:
        position = 0
        for field, of_status in _LISTS:
            entries = {entry.get("name"): entry for entry in self._pod.status.get(of_status) or ()}
            for container in self._pod.pod_spec.raw.get(field) or ():
                entry = entries.get(container["name"])
                position += 1
                if entry is not None:
                    yield from self._of(container, entry, (position, f"spec.{field}{{{container['name']}}}"))

    def _of(self, container: Raw, entry: Raw, place: _Place) -> Iterator[Object]:
        name, image = container["name"], container.get("image") or ""
        state, restarts = entry.get("state") or _NONE, entry.get("restartCount") or 0
        waiting = state.get("waiting") or _NONE
        latest = state.get("running") or state.get("terminated") or (entry.get("lastState") or _NONE).get("terminated")
        reason = waiting.get("reason") or ""
        if reason in ("ErrImagePull", "ImagePullBackOff"):
            yield from self._pulls(image, reason, waiting.get("message") or "", place)
        start = self._pod.start_time
        if reason == NOT_CONFIGURED and latest is None:
            yield from self._pulled(container, place, start, start)
        if reason == NOT_CONFIGURED:
            why, began = (
                f"Error: {waiting.get('message')}",
                start if latest is None else latest.get("finishedAt") or start,
            )
            yield from self._event("Failed", why, place, began, stamp(self._now), warning=True)
        if latest is None:
            return
        last = latest.get("startedAt") or self._pod.start_time
        first, count = (self._pod.start_time, restarts + 1) if restarts else (last, 1)
        created = "Container created" if self._renamed else f"Created container: {name}"
        started = "Container started" if self._renamed else f"Started container {name}"
        yield from self._pulled(container, place, first, last, count)
        yield from self._event("Created", created, place, first, last, count)
        yield from self._event("Started", started, place, first, last, count)
        yield from self._failures(container, entry, place, first, last)

    def _pulled(self, container: Raw, place: _Place, first: str, last: str, count: int = 1) -> Iterator[Object]:
        image = container.get("image") or ""
        if container.get("imagePullPolicy") == "Always":
            settings = pod_settings(self._pod.annotations)
            took, size = show_duration(settings.startup_s), int(settings.of("image-size", container["name"]) or 0)
            pulled = (
                f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: {size} bytes.'
            )
            yield from self._event("Pulling", f'Pulling image "{image}"', place, first, last, count)
            yield from self._event("Pulled", pulled, place, first, last, count)
        else:
            access = " and can be accessed by the pod" if self._renamed else ""
            present = f'Container image "{image}" already present on machine{access}'
            yield from self._event("Pulled", present, place, first, last, count)

    def _failures(self, container: Raw, entry: Raw, place: _Place, first: str, last: str) -> Iterator[Object]:
        pod, name = self._pod, container["name"]
        state, restarts = entry.get("state") or _NONE, entry.get("restartCount") or 0
        settings = pod_settings(pod.annotations)
        if settings.of("readiness", name) and "running" in state and place[1].startswith("spec.containers"):
            yield from self._unhealthy(
                "Readiness", container.get("readinessProbe") or _NONE, place, last, stamp(self._now)
            )
        if restarts and settings.of("liveness", name):
            yield from self._unhealthy(
                "Liveness", container.get("livenessProbe") or _NONE, place, first, last, restarts
            )
            killed = f"Container {name} failed liveness probe, will be restarted"
            yield from self._event("Killing", killed, place, first, last, restarts)
        if (state.get("waiting") or _NONE).get("reason") == "CrashLoopBackOff":
            ended = ((entry.get("lastState") or _NONE).get("terminated") or _NONE).get("finishedAt") or last
            why = f"Back-off restarting failed container {name} in pod {pod.name}_{pod.namespace}({pod.uid})"
            yield from self._event("BackOff", why, place, ended, stamp(self._now), max(1, restarts), warning=True)
        if pod.deletion_timestamp and "running" in state:
            grace = pod.metadata.get("deletionGracePeriodSeconds") or 0
            at = stamp(seconds(pod.deletion_timestamp) - grace)
            yield from self._event("Killing", f"Stopping container {name}", place, at, at)

    def _unhealthy(
        self, kind: str, probe: Raw, place: _Place, first: str, last: str, kills: int | None = None
    ) -> list[Object]:
        period = probe.get("periodSeconds") or 10
        per_kill = probe.get("failureThreshold") or 3
        count = kills * per_kill if kills else int((seconds(last) - seconds(first)) // period)
        why = "HTTP probe failed with statuscode: 503" if "httpGet" in probe else ""
        return self._event("Unhealthy", f"{kind} probe failed: {why}", place, first, last, max(1, count), warning=True)

    def _pulls(self, image: str, reason: str, message: str, place: _Place) -> Iterator[Object]:
        first = last = self._pod.start_time
        why = message.partition(": ErrImagePull: ")[2] or message
        yield from self._event("Pulling", f'Pulling image "{image}"', place, first, last)
        yield from self._event("Failed", f'Failed to pull image "{image}": {why}', place, first, last, warning=True)
        yield from self._event("Failed", "Error: ErrImagePull", place, first, last, warning=True)
        if reason == "ImagePullBackOff":
            now = stamp(self._now)
            yield from self._event("BackOff", f'Back-off pulling image "{image}"', place, first, now)
            yield from self._event("Failed", "Error: ImagePullBackOff", place, first, now, warning=True)

    def _event(
        self, reason: str, message: str, place: _Place, first: str, last: str, count: int = 1, *, warning: bool = False
    ) -> list[Object]:
        if seconds(last) < self._now - _TTL_S:
            return []
        pod = self._pod
        # grows in the order of the Events of a pod, as the time in nanoseconds that upstream uses
        number = round(seconds(first)) * 1_000_000_000 + (10 * place[0] + _ORDER.index(reason)) * 1_000_000
        number += int.from_bytes(blake2b(f"{pod.uid} {place} {message}".encode(), digest_size=8).digest()) % 1_000_000
        raw: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{pod.name}.{number:x}", "namespace": pod.namespace, "creationTimestamp": first},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
                "fieldPath": place[1],
            },
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "count": count,
            "firstTimestamp": first,
            "lastTimestamp": last,
            "reportingComponent": COMPONENT,
            "reportingInstance": pod.node_name,
            "source": {"component": COMPONENT, "host": pod.node_name},
        }
        return [Object.from_raw(raw)]
