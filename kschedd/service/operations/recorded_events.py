"""The scheduler's events as objects, and those of kubelets (`kubelet_events`).

The Events of the scheduler and of kubelets exist only in memory, and are listed together with the stored objects of
kind Event.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from kschedd.api.objects import Object
from kschedd.api.text.times import stamp
from kschedd.log.events import SOURCE, EventKey, EventSeries
from kschedd.log.log import Log
from kschedd.service.cluster import ClusterBackend
from kschedd.service.operations.kubelet_events import events_of, reported
from kschedd.service.turns import Turns
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.objects.listing import by_namespace
from kschedd.store.objects.log import ADDED, MODIFIED
from kschedd.values import run_steps

EVENT = "Event"


async def with_recorded_events(
    cluster: ClusterBackend,
    stored: Iterable[Sequence[Object]],
    namespace: str | None,
    pod: str | None,
    turns: Turns,
    client: str,
) -> list[Sequence[Object]]:
    """Return the stored events and those in memory, by namespace like `ClusterReader.present`.

    `pod` is the name of the only pod whose events are required.
    """
    found = await cluster.store.do(lambda store: reported(store, namespace, pod))
    of_kubelets = await present_events(cluster, await turns.drive(client, events_of(found)))
    return by_namespace((*stored, await _of_scheduler(cluster, namespace, pod), of_kubelets))


async def recorded_event(cluster: ClusterBackend, namespace: str, name: str) -> Object | None:
    pod = name.rpartition(".")[0]
    computed = await cluster.store.do(lambda store: run_steps(events_of(reported(store, namespace, pod))))
    of_kubelets = await present_events(cluster, computed)
    events = (*await _of_scheduler(cluster, namespace, pod), *of_kubelets)
    return next((event for event in events if event.name == name), None)


async def changes_of_scheduler(
    cluster: ClusterBackend, number: int, version: int
) -> tuple[int, list[tuple[str, Object]]]:
    """Return the scheduler's Events after this number as ADDED or MODIFIED, and the number of the latest Event.

    The resourceVersion of the Events is the version that the watch has reached.
    """
    found = []
    series = await cluster.log.query(lambda log: log.events.since(number))
    for each in series:
        event = as_object(each)
        event["metadata"]["resourceVersion"] = str(version)
        if each.first.uid:
            event["involvedObject"]["uid"] = each.first.uid
        found.append((ADDED if each.count == 1 else MODIFIED, Object.from_raw(event)))
    return max((each.number for each in series), default=number), found


async def _of_scheduler(cluster: ClusterBackend, namespace: str | None, pod: str | None) -> list[Object]:
    series = await cluster.log.query(lambda log: log.events.latest(namespace, pod))
    if not series:
        return []
    events = [as_object(each) for each in series]
    about = [(event["involvedObject"]["namespace"], event["involvedObject"]["name"]) for event in events]
    uids = await cluster.store.do(lambda store: _uids(store, about))
    for event, uid in zip(events, uids, strict=True):
        if uid:
            event["involvedObject"]["uid"] = uid  # `describe` finds the events of an object by its UID
    return [Object.from_raw(event) for event in events]


async def present_events(cluster: ClusterBackend, computed: Sequence[Object]) -> list[Object]:
    """Return the computed Events, except the Events that a client has deleted."""

    def present(log: Log) -> list[Object]:
        return [each for each in computed if not log.events.is_deleted(key_of(each))]

    return await cluster.log.query(present)


async def delete_recorded(cluster: ClusterBackend, events: Iterable[Object]) -> None:
    """Delete these Events, which are not stored."""
    keys = list(map(key_of, events))
    await cluster.log.query(lambda log: log.events.delete(keys))


def key_of(event: Object) -> EventKey:
    return event.namespace, event.name, event.raw.get("count") or 0


def _uids(store: ClusterReader, pods: Sequence[tuple[str, str]]) -> list[str]:
    """Return the UID of each of these pods, or "" for a deleted pod."""
    found = (store.find("Pod", namespace, name) for namespace, name in pods)
    return ["" if pod is None else pod.uid for pod in found]


def as_object(series: EventSeries) -> dict[str, Any]:
    """Convert an event of the scheduler to the Event object that kube-scheduler would have written."""
    first = series.first
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{first.name}.{series.born:016x}",
            "namespace": first.namespace,
            "creationTimestamp": stamp(first.at_s),
        },
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": first.namespace, "name": first.name},
        "reason": first.reason,
        "message": first.message,
        "type": first.type,
        "count": series.count,
        "firstTimestamp": stamp(first.at_s),
        "lastTimestamp": stamp(series.last_s),
        "reportingComponent": SOURCE,
        "source": {"component": SOURCE},
    }
