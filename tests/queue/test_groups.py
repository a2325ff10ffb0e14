"""Tests of PodGroups in the queue; each test's name is a rule of kube-scheduler 1.37."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.framework.events import NODE_ADD, ActionType, EventResource, on
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.queue.entry import SECOND, Move, QueuedPod, SubQueue
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue
from kschedd.queue.snapshot import EntryCopies
from tests.queue.conftest import Make

A, R = ActionType, EventResource
GROUPED = QueueSettings(groups_queued=True)


def group(name: str = "g", priority: int = 0) -> Object:
    return Object.from_raw(
        {"kind": "PodGroup", "metadata": {"name": name, "namespace": "d"}, "spec": {"priority": priority}}
    )


def of(group: str = "g", **spec: Any) -> dict[str, Any]:
    return {"schedulingGroup": {"podGroupName": group}, **spec}


def gates(pod: Pod) -> Status | None:
    return unschedulable("gated") if pod.pod_spec.scheduling_gates else None


class Queue(SchedulingQueue):
    """A queue with a gating plugin, whose moves are recorded."""

    def __init__(self, settings: QueueSettings = GROUPED) -> None:
        self.moves: list[Move] = []
        hints = {
            "Gates": (on(R.POD, A.UPDATE_POD_SCHEDULING_GATES_ELIMINATED), on(R.NODE, A.ADD)),
            "Fit": (on(R.NODE, A.ADD),),
        }
        super().__init__(
            settings,
            pre_enqueue={"default-scheduler": {"Gates": gates}},
            hints={"default-scheduler": hints},
            recorder=self.moves.append,
        )

    def known(self, name: str = "g", priority: int = 0) -> None:
        self.groups.changed(None, group(name, priority), 0)

    def places(self) -> dict[str, str]:
        return {entry.pod.name: entry.place.value for entry in [*self.entries(), *self.in_flight_pods()]}

    def cycle(self, now: int) -> list[QueuedPod]:
        """Begin the cycle of the next group; return its pods."""
        first = self.pop(now)
        assert first is not None
        return [first, *self.pop_others_of_group(first, now)]

    def fail(self, entry: QueuedPod, now: int, *plugins: str) -> None:
        entry.unschedulable_plugins = frozenset(plugins)
        self.add_unschedulable_if_not_present(entry, now)


def names(entries: list[QueuedPod]) -> list[str]:
    return [entry.pod.name for entry in entries]


def grouped(make: Make, *pods: str) -> Queue:
    q = Queue()
    q.known()
    for pod in pods:
        q.add(make.pod(pod, **of()), 0)
    return q


def test_pods_wait_until_their_pod_group_exists(make: Make) -> None:
    q = Queue()
    for name in "ab":
        assert q.add(make.pod(name, **of()), 0) is SubQueue.INCOMPLETE_GROUP
    q.add(make.pod("c", **of("other")), 0)
    assert not q.ready
    assert names(q.entries(SubQueue.INCOMPLETE_GROUP)) == ["a", "b", "c"]
    assert {q.backoff_until(entry) for entry in q.entries()} == {0}
    assert q.counts()[SubQueue.INCOMPLETE_GROUP] == 3
    q.known()
    assert q.places() == {"a": "active", "b": "active", "c": "incomplete_group"}
    assert [(move.pod, move.event) for move in q.moves[3:]] == [("d/a", "PodGroupAdd"), ("d/b", "PodGroupAdd")]
    assert q.entries(SubQueue.PENDING_GROUP) == []


def test_an_updated_pod_group_is_the_cause_of_its_pods_moves(make: Make) -> None:
    q = Queue()
    q.add(make.pod("a", **of()), 0)
    q.groups.changed(group(), group(), 1)
    assert q.moves[-1].event == "PodGroupUpdate"


def test_the_pods_of_a_group_are_tried_by_priority_then_attempts_then_age_then_name(make: Make) -> None:
    q = grouped(make, "z", "b")
    q.add(make.pod("a", **of()), 0)
    q.add(make.pod("old", **of()), 1)
    q.add(make.pod("high", priority=9, **of()), 2)
    assert [entry.pod.name for entry in q.groups.entries()] == ["high"]
    first = q.cycle(3)
    assert names(first) == ["high", "a", "b", "z", "old"]
    q.fail(first[-1], 4)
    q.add(make.pod("new", **of()), 4)
    q.groups.attempted("d/g", Code.SUCCESS, 5)
    assert names(q.cycle(6)) == ["old", "new"]
    assert [entry.attempts for entry in first] == [1, 1, 1, 1, 2]


def test_a_group_leaves_the_queue_by_its_own_priority(make: Make) -> None:
    q = Queue()
    q.known("low", 1)
    q.known("high", 5)
    q.add(make.pod("a", priority=9, **of("low")), 0)
    q.add(make.pod("b", priority=0, **of("high")), 1)
    q.add(make.pod("single", priority=3), 2)
    assert [names(q.cycle(3)) for _ in range(3)] == [["b"], ["single"], ["a"]]


def test_a_new_priority_of_the_pod_group_applies_to_its_entry(make: Make) -> None:
    q = grouped(make, "a")
    q.groups.changed(group(), group(priority=7), 1)
    [entry] = q.groups.entries()
    assert entry.priority == 7


def test_all_pods_of_a_group_are_in_flight_in_its_cycle(make: Make) -> None:
    q = grouped(make, "a", "b")
    q.cycle(1)
    assert q.places() == {"a": "in_flight", "b": "in_flight"}
    assert q.groups.queued == {}
    assert [entry.place for entry in q.groups.entries()] == [SubQueue.IN_FLIGHT]
    assert q.pop(2) is None


@pytest.mark.parametrize(
    ("outcome", "place", "counts"),
    [
        pytest.param(Code.SUCCESS, "active", (0, 0), id="of-which-a-pod-was-placed-is-active-at-once"),
        pytest.param(Code.UNSCHEDULABLE, "error_backoff", (1, 0), id="that-was-rejected-backs-off"),
        pytest.param(Code.ERROR, "error_backoff", (0, 1), id="that-ended-in-an-error-backs-off"),
    ],
)
def test_a_group(make: Make, outcome: Code, place: str, counts: tuple[int, int]) -> None:
    q = grouped(make, "a", "b")
    tried = q.cycle(1 * SECOND)
    for entry in tried:
        q.fail(entry, 2 * SECOND, "Fit")
    q.add(make.pod("late", **of()), 2 * SECOND)
    assert q.places() == dict.fromkeys(["a", "b", "late"], "pending_group")
    assert q.counts()[SubQueue.PENDING_GROUP] == 3
    q.groups.attempted("d/g", outcome, 3 * SECOND)
    assert q.places() == dict.fromkeys(["a", "b", "late"], place)
    [entry] = q.groups.entries()
    assert (entry.unschedulable_count, entry.consecutive_errors) == counts
    assert entry.timestamp == (0 if outcome is Code.SUCCESS else 3 * SECOND)
    assert q.counts()[SubQueue(place)] == 3


def test_after_a_rejection_errors_in_a_row_are_counted_anew(make: Make) -> None:
    q = grouped(make, "a")
    counts = []
    for now, outcome in enumerate((Code.ERROR, Code.ERROR, Code.UNSCHEDULABLE, Code.SUCCESS), 1):
        [tried] = q.cycle(now * 100 * SECOND)
        q.fail(tried, now * 100 * SECOND)
        q.groups.attempted("d/g", outcome, now * 100 * SECOND)
        [entry] = q.groups.entries()
        counts.append((entry.consecutive_errors, entry.unschedulable_count))
        q.flush_backoff((now * 100 + 50) * SECOND)
    assert counts == [(1, 0), (2, 0), (0, 1), (0, 0)]


def test_a_group_without_waiting_pods_leaves_the_queue_with_its_cycle(make: Make) -> None:
    q = grouped(make, "a")
    [tried] = q.cycle(1)
    q.groups.attempted("d/g", Code.SUCCESS, 2)
    q.done(tried.uid, 2)
    assert (q.groups.entries(), q.places()) == ([], {})
    assert q.add(make.pod("b", **of()), 3) is SubQueue.ACTIVE


def test_a_group_of_new_pods_queues_as_of_the_end_of_the_cycle(make: Make) -> None:
    q = grouped(make, "a")
    [tried] = q.cycle(1)
    q.add(make.pod("new", **of()), 2)
    q.groups.attempted("d/g", Code.SUCCESS, 5)
    q.done(tried.uid, 5)
    [entry] = q.groups.entries()
    assert (entry.timestamp, names(entry.members), entry.pod.name) == (5, ["new"], "new")


@pytest.mark.parametrize(("pods", "seconds"), [(1, 10), (4, 20), (9, 30)])
def test_the_longest_backoff_grows_with_the_square_root_of_the_pods(make: Make, pods: int, seconds: int) -> None:
    q = grouped(make, *(f"p{number}" for number in range(pods)))
    now = 0
    for _ in range(10):
        now += 100 * SECOND
        q.flush_backoff(now)
        for entry in q.cycle(now):
            q.fail(entry, now)
        q.groups.attempted("d/g", Code.UNSCHEDULABLE, now)
    assert {q.backoff_until(entry) - now for entry in q.entries()} == {seconds * SECOND}


def test_a_gated_pod_gates_its_group_until_its_gates_are_removed(make: Make) -> None:
    q = Queue()
    q.known()
    gated = make.pod("b", **of(schedulingGates=[{"name": "x"}]))
    q.add(make.pod("a", **of()), 0)
    assert q.add(gated, 0) is SubQueue.GATED
    assert q.places() == {"a": "gated", "b": "gated"}
    assert q.counts()[SubQueue.GATED] == 2
    [entry] = q.groups.entries()
    assert (entry.gating_plugin, entry.gating_status and entry.gating_status.reasons) == ("Gates", ("gated",))
    assert q.update(gated, make.pod("b", **of()), 1) is SubQueue.ACTIVE
    assert q.places() == {"a": "active", "b": "active"}
    assert not entry.gated


def test_an_update_of_a_pod_whose_group_is_active_moves_nothing(make: Make) -> None:
    q = grouped(make, "a", "b")
    moves = len(q.moves)
    assert q.update(make.pod("a", **of()), make.pod("a", **of(), metadata={"labels": {"x": "y"}}), 1) is SubQueue.ACTIVE
    assert len(q.moves) == moves
    [a] = [entry for entry in q.cycle(2) if entry.pod.name == "a"]
    assert a.pod.labels == {"x": "y"}


def test_an_update_that_leaves_the_gates_keeps_the_group_gated(make: Make) -> None:
    q = Queue()
    q.known()
    shut = [{"name": "x"}]
    old = make.pod("a", **of(schedulingGates=shut))
    new = make.pod("a", **of(schedulingGates=shut), metadata={"labels": {"x": "y"}})
    for pod in (old, make.pod("b", **of())):
        q.add(pod, 0)
    seen: list[str] = []
    q.event_listener = lambda event, old, new, now: seen.append(event.label)
    assert q.update(old, new, 1) is SubQueue.GATED
    assert seen == ["UnschedulablePodUpdatePodLabel"]
    assert sorted(names(q.entries(SubQueue.GATED))) == ["a", "b"]
    q.delete(new, 2)
    assert names(q.entries(SubQueue.GATED)) == ["b"]


def test_an_update_of_an_unknown_pod_adds_it_to_its_group(make: Make) -> None:
    q = grouped(make, "a")
    assert q.update(make.pod("b", **of()), make.pod("b", **of()), 1) is SubQueue.ACTIVE
    assert names(q.cycle(2)) == ["a", "b"]


def test_a_group_without_its_gated_pod_is_free(make: Make) -> None:
    q = Queue()
    q.known()
    gated = make.pod("a", **of(schedulingGates=[{"name": "x"}]))
    for pod in (gated, make.pod("b", **of())):
        q.add(pod, 0)
    q.delete(gated, 1)
    assert q.places() == {"b": "gated"}, "the deletion is no event for the gating plugin"
    assert q.counts()[SubQueue.GATED] == 1
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 2)
    assert q.places() == {"b": "active"}
    [entry] = q.groups.entries()
    assert entry.pod.name == "b"


@pytest.mark.parametrize("bound", [False, True])
def test_the_group_is_checked_without_its_deleted_pod(make: Make, bound: bool) -> None:
    q = grouped(make, "a", "b")
    leaving: list[str] = []
    q._gating.plugins = {"default-scheduler": {"Watch": lambda pod: leaving.append(q.groups.leaving)}}
    q.delete(make.pod("a", **of()), 1, bound=bound)
    assert leaving == ["" if bound else "d/g"]
    assert q.groups.leaving == ""
    assert q.moves[-1].target is SubQueue.OUTSIDE
    q.delete(make.pod("b", **of()), 2)
    assert q.groups.entries() == []
    assert q.pop(3) is None


@pytest.mark.parametrize("known", [False, True])
def test_a_deleted_pod_no_longer_waits_for_its_group(make: Make, known: bool) -> None:
    q = grouped(make, "a") if known else Queue()
    if known:
        q.cycle(1)
    q.add(make.pod("b", **of()), 2)
    q.delete(make.pod("b", **of()), 3)
    assert q.entries(SubQueue.PENDING_GROUP) == q.entries(SubQueue.INCOMPLETE_GROUP) == []


def test_without_their_pod_group_pods_wait_again(make: Make) -> None:
    q = grouped(make, "a", "b")
    q.groups.changed(group(), None, 1)
    assert q.places() == {"a": "incomplete_group", "b": "incomplete_group"}
    assert q.moves[-1].event == "UnschedulablePodUpdate"
    assert not q.ready
    assert q.add(make.pod("c", **of()), 1) is SubQueue.INCOMPLETE_GROUP
    q.known()
    assert names(q.cycle(2)) == ["a", "b", "c"]


def test_pods_that_wait_for_a_cycle_wait_for_the_pod_group_after_its_deletion(make: Make) -> None:
    q = grouped(make, "a")
    q.cycle(1)
    q.add(make.pod("b", **of()), 1)
    q.groups.changed(group(), None, 2)
    assert q.places() == {"a": "in_flight", "b": "incomplete_group"}
    q.groups.attempted("d/g", Code.UNSCHEDULABLE, 3)
    assert q.places()["b"] == "incomplete_group"


def test_an_event_for_one_gated_pod_frees_the_group_once(make: Make) -> None:
    q = Queue()
    q.known()
    gate = {"shut": True}
    q._gating.plugins = {"default-scheduler": {"Gates": lambda pod: unschedulable("no") if gate["shut"] else None}}
    for name in "ab":
        q.add(make.pod(name, **of()), 0)
    gate["shut"] = False
    moved = q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1)
    assert [entry.key for entry in moved] == ["podgroup/d/g"]
    assert q.places() == {"a": "active", "b": "active"}


def test_activate_frees_the_whole_group_from_backoff(make: Make) -> None:
    q = grouped(make, "a", "b")
    for entry in q.cycle(1):
        q.fail(entry, 2)
    q.groups.attempted("d/g", Code.ERROR, 3)
    assert names(q.activate([make.pod("a", **of())], 4)) == ["a"]
    assert q.places() == {"a": "active", "b": "active"}
    assert q.activate([make.pod("a", **of())], 5) == []


def test_a_group_enters_the_queue_as_one_entity(make: Make) -> None:
    q = Queue()
    for name in "ab":
        q.add(make.pod(name, **of()), 0)
    q.known()
    q.cycle(4)
    entered = [(move.pod, move.target.value, move.entity, move.stayed) for move in q.moves[2:]]
    assert entered == [
        ("d/a", "active", "podgroup", 0),
        ("d/b", "active", "", 0),
        ("d/a", "in_flight", "podgroup", 4),
        ("d/b", "in_flight", "", 4),
    ]


def test_of_a_group_that_backs_off_one_move_is_counted(make: Make) -> None:
    q = grouped(make, "a", "b")
    for entry in q.cycle(1):
        q.fail(entry, 2)
    q.groups.attempted("d/g", Code.ERROR, 5)
    assert [(move.entity, move.stayed) for move in q.moves[-2:]] == [("podgroup", 3), ("", 3)]
    assert {entry.place for entry in q.groups.entries()} == {SubQueue.ERROR_BACKOFF}


@pytest.mark.parametrize("place", [SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE, SubQueue.ACTIVE])
def test_a_group_is_moved_by_hand_as_a_whole(make: Make, place: SubQueue) -> None:
    q = grouped(make, "a", "b")
    assert q.force("d/b", place, 1)
    wanted = SubQueue.ERROR_BACKOFF if place is SubQueue.BACKOFF else place
    assert q.places() == {"a": wanted.value, "b": wanted.value}
    assert names(q.entries(wanted)) == ["a", "b"]


def test_a_pod_that_waits_for_its_group_is_not_moved_by_hand(make: Make) -> None:
    q = Queue()
    q.add(make.pod("a", **of()), 0)
    assert q.force("d/a", SubQueue.ACTIVE, 1)
    assert q.places() == {"a": "incomplete_group"}


def test_a_pod_with_a_node_is_queued_by_itself(make: Make) -> None:
    q = grouped(make, "a")
    assert q.add(make.pod("resized", nodeName="n", **of()), 1) is SubQueue.ACTIVE
    popped = [q.pop(2), q.pop(2)]
    assert names([entry for entry in popped if entry is not None]) == ["a", "resized"]


def test_a_change_of_the_rule_regroups_all_pods(make: Make) -> None:
    q = grouped(make, "a", "b")
    q.add(make.pod("other", **of("unknown")), 0)
    q.add(make.pod("single"), 0)
    q.reconfigure(QueueSettings(), now=1)
    assert q.places() == dict.fromkeys(["a", "b", "other", "single"], "active")
    assert [(move.pod, move.event) for move in q.moves[-3:]] == [
        (f"d/{name}", "Reconfigured") for name in ("other", "a", "b")
    ]
    assert (q.groups.entries(), q.counts()[SubQueue.ACTIVE]) == ([], 4)
    q.moves.clear()
    q.reconfigure(GROUPED, now=2)
    assert [(move.pod, move.source, move.target) for move in q.moves] == [
        ("d/other", SubQueue.ACTIVE, SubQueue.INCOMPLETE_GROUP)
    ]
    assert q.places() == {"a": "active", "b": "active", "other": "incomplete_group", "single": "active"}
    assert sorted(names(q.cycle(3))) == ["single"]
    assert sorted(names(q.cycle(3))) == ["a", "b"]
    q.reconfigure(GROUPED, now=4)
    assert q.places()["a"] == "in_flight"


def test_a_restored_queue_has_the_same_groups(make: Make) -> None:
    q = Queue()
    for name in ("queued", "flying"):
        q.known(name, 3)
    for name in ("queued-1", "queued-2"):
        q.add(make.pod(name, **of("queued")), 0)
    for entry in q.cycle(1):
        q.fail(entry, 2)
    q.groups.attempted("d/queued", Code.ERROR, 2)
    q.add(make.pod("unknown", **of("none")), 2)
    q.add(make.pod("flying-1", **of("flying")), 3)
    q.cycle(3)
    q.add(make.pod("flying-2", **of("flying")), 4)
    snapshot, restored, counts = q.snapshot(), Queue(), q.counts()
    restored.restore(snapshot, EntryCopies(snapshot.states))
    for queue in (q, restored):
        assert queue.places() == {
            "queued-1": "error_backoff",
            "queued-2": "error_backoff",
            "unknown": "incomplete_group",
            "flying-2": "pending_group",
            "flying-1": "in_flight",
        }
        assert queue.counts() == counts
        queue.groups.attempted("d/flying", Code.SUCCESS, 5)
        assert queue.groups.in_cycle == {}
        assert names(queue.cycle(6)) == ["flying-2"]
        queue.groups.changed(None, group("none"), 7)
        assert names(queue.cycle(8)) == ["unknown"]
        queue.delete(make.pod("queued-1", **of("queued")), 9)
        assert queue.places()["queued-2"] == "error_backoff"
        assert [entry.members[0].pod.name for entry in queue.groups.queued.values()] == ["queued-2"]
