"""Tests of the queue operations that follow from changed objects."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.framework.events import ActionType, EventResource, on
from kschedd.queue.entry import SubQueue
from kschedd.queue.event_handlers import EventHandlers
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue

EVERY = tuple(
    on(resource, ActionType.ALL)
    for resource in (EventResource.POD, EventResource.NODE, EventResource.PERSISTENT_VOLUME)
)


class Watcher:
    """Event handlers over a queue in which a pod of priority 5 is in flight, so that the queue keeps every event."""

    def __init__(self, make: Any) -> None:
        self.queue = SchedulingQueue(hints={"default-scheduler": {"Any": EVERY}})
        self.assumed: set[str] = set()
        self.waiting: set[str] = set()
        self.handlers = EventHandlers(self.queue, {"default-scheduler"})
        for name, priority in [("parked-0", 0), ("parked-9", 9)]:
            self.queue.add(make.pod(name, priority=priority), 0)
            entry = self.queue.pop(0)
            assert entry is not None
            entry.unschedulable_plugins = frozenset({"Any"})
            self.queue.add_unschedulable_if_not_present(entry, 0)
        self.queue.add(make.pod("flying"), 0)
        assert self.queue.pop(0) is not None

    def change(self, old: Object | None, new: Object | None) -> tuple[int, list[str]]:
        """Apply the change and return the number of resulting events and the parked pods that were moved."""
        before = self.queue.events_kept
        self.handlers.assumed, self.handlers.rejected = self.assumed, self.waiting
        self.handlers.changed(old, new, 10)
        moved = [
            e.pod.name for e in self.queue.entries() if "parked" in e.pod.name and e.place is not SubQueue.UNSCHEDULABLE
        ]
        return self.queue.events_kept - before, sorted(moved)


@pytest.fixture
def watcher(make: Any) -> Watcher:
    return Watcher(make)


BOTH = ["parked-0", "parked-9"]


def test_a_pending_pod_comes_changes_and_goes(watcher: Watcher, make: Any) -> None:
    assert watcher.change(None, make.pod("a", version=1)) == (0, [])
    assert watcher.change(make.pod("a", version=1), make.pod("a", version=2, metadata={"labels": {"x": "y"}})) == (
        0,
        [],
    )
    entry = watcher.queue.entry("d/a")
    assert entry is not None
    assert entry.pod.labels == {"x": "y"}
    assert watcher.change(make.pod("a"), None) == (0, [])
    assert watcher.queue.entry("d/a") is None


def test_pods_of_other_schedulers_are_none_of_ours_until_they_have_a_node(watcher: Watcher, make: Any) -> None:
    pod = make.pod("a", schedulerName="other")
    assert watcher.change(None, pod) == (0, [])
    assert watcher.queue.entry("d/a") is None
    assert watcher.change(pod, pod.on_node("n")) == (1, BOTH)


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        pytest.param(None, {}, 1, id="comes"),
        pytest.param({}, {"metadata": {"labels": {"x": "y"}}, "tolerations": [{}]}, 2, id="changes-one-event-each"),
        pytest.param({}, None, 1, id="goes"),
        pytest.param({}, {"status": {"phase": "Succeeded"}}, 1, id="finishes"),
        pytest.param(None, {"status": {"phase": "Failed"}}, 0, id="was-never-there"),
    ],
)
def test_a_pod_with_a_node(watcher: Watcher, make: Any, old: Any, new: Any, count: int) -> None:
    versions = [None if parts is None else make.pod("a", nodeName="n", **parts) for parts in (old, new)]
    assert watcher.change(*versions) == (count, BOTH if count else [])


def test_a_bound_pod_leaves_the_queue_and_wakes_others(watcher: Watcher, make: Any) -> None:
    pod = make.pod("a")
    watcher.change(None, pod)
    assert watcher.change(pod, pod.on_node("n")) == (1, BOTH)
    assert watcher.queue.entry("d/a") is None


def test_an_update_that_changes_nothing_is_passed_over(watcher: Watcher, make: Any) -> None:
    watcher.change(None, make.pod("a", version=3))
    watcher.change(make.pod("a", version=3), make.pod("a", version=3, metadata={"labels": {"x": "y"}}))
    entry = watcher.queue.entry("d/a")
    assert entry is not None
    assert entry.pod.labels == {}


def test_an_assumed_pod_is_not_put_back(watcher: Watcher, make: Any) -> None:
    watcher.assumed.add("uid-a")
    watcher.change(make.pod("a", version=1), make.pod("a", version=2))
    assert watcher.queue.entry("d/a") is None


def nominated(make: Any, node: str, version: int) -> Pod:
    pod: Pod = make.pod("a", priority=5, version=version, status={"nominatedNodeName": node})
    return pod


@pytest.mark.parametrize(
    ("node", "moved"),
    [
        pytest.param("n1", [], id="kept"),
        pytest.param("n2", ["parked-0"], id="changed-wakes-pods-of-no-higher-priority"),
        pytest.param("", ["parked-0"], id="cleared"),
    ],
)
def test_a_changed_nomination_leaves_room(watcher: Watcher, make: Any, node: str, moved: list[str]) -> None:
    watcher.change(None, nominated(make, "n1", 1))
    assert watcher.change(nominated(make, "n1", 1), nominated(make, node, 2)) == (len(moved), moved)


@pytest.mark.parametrize(
    ("bound_nominees_wake_none", "expected"),
    [
        # The assigned pod moves both waiting pods; up to 1.34 the end of its nomination is an event as well.
        pytest.param(False, (2, BOTH), id="up-to-1.34-its-nomination-ends-as-a-deletion"),
        pytest.param(True, (1, BOTH), id="since-1.35-it-is-no-deletion"),
    ],
)
def test_a_nominated_pod_gets_bound(
    watcher: Watcher, make: Any, bound_nominees_wake_none: bool, expected: tuple[int, list[str]]
) -> None:
    watcher.queue.settings = QueueSettings(bound_nominees_wake_none=bound_nominees_wake_none)
    pending = nominated(make, "n1", 1)
    watcher.change(None, pending)
    assert watcher.change(pending, pending.on_node("n1")) == expected


def test_a_nominated_pod_that_goes_leaves_room(watcher: Watcher, make: Any) -> None:
    watcher.change(None, nominated(make, "n1", 1))
    assert watcher.change(nominated(make, "n1", 1), None) == (1, ["parked-0"])


def test_a_pod_deleted_while_it_waits_in_permit_leaves_room_for_all(watcher: Watcher, make: Any) -> None:
    watcher.waiting.add("uid-a")
    assert watcher.change(make.pod("a", priority=5), None) == (1, BOTH)


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        pytest.param(None, {}, 1, id="comes"),
        pytest.param({}, {"a": "b"}, 1, id="changes"),
        pytest.param({}, {}, 0, id="changes-nothing-scheduling-sees"),
        pytest.param({}, None, 1, id="goes"),
    ],
)
def test_a_node(watcher: Watcher, make: Any, old: Any, new: Any, count: int) -> None:
    versions = [None if labels is None else make.node("n", **labels) for labels in (old, new)]
    assert watcher.change(*versions) == (count, BOTH if count else [])


@pytest.mark.parametrize(("kind", "count"), [("PersistentVolume", 1), ("StorageClass", 0), ("ConfigMap", 0)])
def test_other_kinds_matter_if_a_plugin_waits_for_them(watcher: Watcher, kind: str, count: int) -> None:
    thing = Object.from_raw({"kind": kind, "metadata": {"name": "x"}})
    assert watcher.change(None, thing)[0] == count
