"""Tests of the queue operations that follow from changed objects."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.resources import ResizeRules
from kschedd.framework.events import ActionType, EventResource, on
from kschedd.metrics.instruments import Distribution
from kschedd.object_faults import ObjectRef
from kschedd.queue.entry import SECOND, SubQueue
from kschedd.queue.event_handlers import EventHandlers
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue
from kschedd.queue.times import QueueTimes
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, WatchEvent

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
            self.park(make.pod(name, priority=priority))
        self.queue.add(make.pod("flying"), 0)
        assert self.queue.pop(0) is not None

    def park(self, pod: Pod) -> None:
        self.queue.add(pod, 0)
        entry = self.queue.pop(0)
        assert entry is not None
        entry.unschedulable_plugins = frozenset({"Any"})
        self.queue.add_unschedulable_if_not_present(entry, 0)

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
        pytest.param("n3", ["parked-0", "parked-5"], id="including-pods-of-its-priority"),
    ],
)
def test_a_changed_nomination_leaves_room(watcher: Watcher, make: Any, node: str, moved: list[str]) -> None:
    if "parked-5" in moved:
        watcher.park(make.pod("parked-5", priority=5))
    watcher.change(None, nominated(make, "n1", 1))
    assert watcher.change(nominated(make, "n1", 1), nominated(make, node, 2)) == (min(len(moved), 1), moved)


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


@pytest.mark.parametrize("bound_nominees_wake_none", [False, True])
def test_a_nominated_pod_that_goes_leaves_room(watcher: Watcher, make: Any, bound_nominees_wake_none: bool) -> None:
    watcher.queue.settings = QueueSettings(bound_nominees_wake_none=bound_nominees_wake_none)
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


def test_changes_are_handled_in_order_and_timed_by_their_event(watcher: Watcher, make: Any) -> None:
    clock = iter([1.0, 2.0, 4.0, 8.0])
    watcher.handlers.times = QueueTimes(lambda: next(clock))
    old, new = make.node("n"), make.node("n", a="b")
    made, gone = (Object.from_raw({"kind": "ConfigMap", "metadata": {"name": name}}) for name in "ab")
    changes = [
        (ADDED, None, old),
        (MODIFIED, old, new),
        (ADDED, None, made),
        (DELETED, gone, gone),
        (DELETED, old, new),
    ]
    watcher.handlers.observed([WatchEvent(*change, 1) for change in changes], 10)
    family, _ = watcher.handlers.times.families()
    took_s = {labels: each.sum for labels, each in family.samples.items() if isinstance(each, Distribution)}
    assert took_s == {("NodeAdd",): 1.0, ("NodeUpdateNodeLabel",): 2.0, ("NodeDelete",): 4.0}
    assert [happened.event.label for happened in watcher.queue._in_flight.events()] == [
        "NodeAdd",
        "NodeUpdateNodeLabel",
        "NodeDelete",
    ]


def test_changes_of_pods_are_timed_by_their_event(watcher: Watcher, make: Any) -> None:
    watcher.handlers.times = QueueTimes(lambda: 0.0)
    pending, assigned = make.pod("a"), make.pod("a", nodeName="n")
    changes = [(ADDED, None, pending), (MODIFIED, pending, assigned), (DELETED, assigned, assigned)]
    watcher.handlers.observed([WatchEvent(*change, 1) for change in changes], 10)
    family, _ = watcher.handlers.times.families()
    assert set(family.samples) == {("UnschedulablePodAdd",), ("AssignedPodAdd",), ("AssignedPodDelete",)}


@pytest.mark.parametrize("at_once", [False, True])
def test_a_change_that_fails_is_noted_and_tried_again(watcher: Watcher, make: Any, at_once: bool) -> None:
    queue, handlers, broken = watcher.queue, watcher.handlers, [True]

    def listener(event: Any, old: Any, new: Any, now: int) -> None:
        if broken[0] and new.name == "bad":
            raise RuntimeError("boom")

    queue.event_listener = listener
    if at_once:
        handlers.observed([WatchEvent(ADDED, None, make.node("bad"), 1)], 1 * SECOND)
    else:
        handlers.changed(None, make.node("bad"), 1 * SECOND)
    assert [ref for ref, _ in handlers.faults.by_object] == [ObjectRef("Node", "", "bad")]
    assert queue.events_kept == 0
    broken[0] = False
    handlers.observed([WatchEvent(ADDED, None, make.node("good"), 1)], 3600 * SECOND)
    assert [happened.new.name for happened in queue._in_flight.events()] == ["bad", "good"]
    assert not handlers.faults.by_object


def resized(make: Any, why: str, **parts: Any) -> Pod:
    pending = {"type": "PodResizePending", "status": "True", "reason": why}
    pod: Pod = make.pod("a", nodeName="n", status={"conditions": [pending] if why else []}, **parts)
    return pod


@pytest.mark.parametrize(
    ("old", "new", "queued"),
    [
        pytest.param(None, "Deferred", True, id="found"),
        pytest.param("", "Deferred", True, id="that-becomes-deferred"),
        pytest.param("Deferred", "", False, id="that-is-done"),
        pytest.param("Deferred", "Infeasible", False, id="that-the-node-refuses"),
        pytest.param("Deferred", None, False, id="of-a-deleted-pod"),
        pytest.param("Deferred", "Deferred", True, id="that-stays-deferred"),
    ],
)
def test_a_deferred_resize_waits_in_the_queue(
    watcher: Watcher, make: Any, old: str | None, new: str | None, queued: bool
) -> None:
    watcher.queue.settings = QueueSettings(resizing=ResizeRules())
    before, after = (None if why is None else resized(make, why) for why in (old, new))
    if before is not None:
        watcher.change(None, before)
    if after is not None:
        after = resized(make, new or "", metadata={"labels": {"x": "y"}})
    watcher.change(before, after)
    entry = watcher.queue.entry("d/a")
    assert (entry is not None) is queued
    assert entry is None or entry.pod is after
    watcher.change(None, resized(make, "Deferred", schedulerName="other", uid="other"))
    assert (watcher.queue.entry("d/a") is entry) is True
