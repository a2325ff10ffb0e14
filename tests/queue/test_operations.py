"""Tests of the operations that the scheduling driver requests from the queue."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.framework.events import NODE_ADD, ActionType, EventResource, on
from kschedd.framework.status import Code, unschedulable
from kschedd.queue.entry import QueuedPod, SubQueue
from kschedd.queue.event_handlers import EventHandlers
from kschedd.queue.operations import (
    Activate,
    AssumedPodForgotten,
    AttemptFailed,
    AtThisPoint,
    EventsObserved,
    FlushBackoff,
    FlushLeftover,
    Force,
    GroupAttempted,
    MoveToActive,
    PodDone,
    Pop,
    PopOthersOfGroup,
    QueueOperations,
    Reconfigured,
    TakeNominated,
)
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue
from kschedd.store.objects.log import ADDED, DELETED, WatchEvent
from tests.queue.conftest import Make

FIT, WAIT = frozenset({"Fit"}), frozenset({"Wait"})
ON_NODES = (on(EventResource.NODE, ActionType.ADD), on(EventResource.POD, ActionType.DELETE))
HINTS = {"default-scheduler": {"Fit": ON_NODES, "Wait": ON_NODES}}


def operations(settings: QueueSettings | None = None, **options: Any) -> QueueOperations:
    queue = SchedulingQueue(settings, hints=HINTS, **options)
    return QueueOperations(queue, EventHandlers(queue, {"default-scheduler"}))


def popped(on: QueueOperations, pod: Any) -> QueuedPod:
    on.queue.add(pod, 0)
    entry = on.step(Pop(), 0)
    assert isinstance(entry, QueuedPod)
    return entry


def fail(on: QueueOperations, entry: QueuedPod, **parts: Any) -> SubQueue:
    on.step(AttemptFailed(entry, parts.pop("pod", entry.pod), FIT, parts.pop("pending", frozenset()), **parts), 1)
    return entry.place


def test_a_failed_attempt_returns_the_pod_as_it_is_now_with_its_plugins(make: Make) -> None:
    on = operations()
    entry, newer = popped(on, make.pod()), make.pod(version=2)
    assert fail(on, entry, pod=newer, pending=WAIT) is SubQueue.UNSCHEDULABLE
    assert (entry.pod, entry.unschedulable_plugins, entry.pending_plugins) == (newer, FIT, WAIT)


@pytest.mark.parametrize(
    ("number", "seen", "place"),
    [
        pytest.param({"number": 7}, {"seen": 6}, SubQueue.BACKOFF, id="it-was-not-used"),
        pytest.param({"number": 7}, {"seen": 7}, SubQueue.UNSCHEDULABLE, id="it-was-used"),
        pytest.param({}, {"seen": 7}, SubQueue.BACKOFF, id="it-has-no-number"),
        pytest.param({"number": 1}, {}, SubQueue.BACKOFF, id="the-attempt-used-none"),
    ],
)
def test_an_event_that_the_attempt_has_used_does_not_wake_its_pod(
    make: Make, number: dict[str, int], seen: dict[str, int], place: SubQueue
) -> None:
    on = operations()
    entry = popped(on, make.pod())
    on.step(EventsObserved([WatchEvent(ADDED, None, make.node(), 1)], frozenset(), frozenset(), **number), 0)
    assert fail(on, entry, **seen) is place


def test_other_events_may_not_have_been_used(make: Make) -> None:
    on = operations()
    entry = popped(on, make.pod())
    on.step(EventsObserved([], frozenset(), frozenset(), 7), 0)
    on.queue.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 0)
    assert fail(on, entry, seen=9) is SubQueue.BACKOFF


def test_assumed_and_rejected_pods_are_known_while_events_are_handled(make: Make) -> None:
    on = operations()
    on.step(EventsObserved([], frozenset({"a"}), frozenset({"r"}), 1), 0)
    assert (on.handlers.assumed, on.handlers.rejected) == ({"a"}, {"r"})


def test_a_preemptor_is_evicting_only_while_it_is_requeued(make: Make) -> None:
    asked: list[tuple[bool, bool]] = []
    gate = {"default-scheduler": {"Gate": lambda pod: asked.append((on.evicting("uid-p"), on.evicting("uid-q")))}}
    on = operations(pre_enqueue=gate)
    entry = popped(on, make.pod())
    for evicting in ({"evicting": True}, {}):
        on.step(AttemptFailed(entry, entry.pod, frozenset(), frozenset(), **evicting), 0)
        assert not on.evicting("uid-p")
        on.step(MoveToActive([entry.pod]), 0)
        assert on.step(Pop(), 0) is entry
    assert asked[1] == (True, False)
    assert (True, False) not in asked[2:]


def test_a_preemptor_is_evicting_until_the_deletion_of_its_victims(make: Make) -> None:
    on, victim = operations(), make.pod("v")
    fail(on, popped(on, make.pod()), victims=frozenset({"uid-v"}))
    assert on.evicting("uid-p")
    on.step(EventsObserved([WatchEvent(DELETED, victim, victim, 1)], frozenset(), frozenset()), 2)
    assert not on.evicting("uid-p")


def test_a_group_is_evicting_until_the_deletion_of_its_victims(make: Make) -> None:
    on = operations(QueueSettings(groups_queued=True))
    on.step(GroupAttempted("d/g", Code.UNSCHEDULABLE, "uid-g", frozenset({"uid-v"})), 2)
    assert on.evicting("uid-g")


def test_a_group_is_evicting_only_while_it_is_requeued(make: Make) -> None:
    asked: list[bool] = []
    gate = {"default-scheduler": {"Gate": lambda pod: asked.append(on.evicting("uid-g"))}}
    on = operations(QueueSettings(groups_queued=True), pre_enqueue=gate)
    group = Object.from_raw({"kind": "PodGroup", "metadata": {"name": "g", "namespace": "d"}, "spec": {}})
    on.queue.groups.changed(None, group, 0)
    first = popped(on, make.pod(schedulingGroup={"podGroupName": "g"}))
    assert on.step(PopOthersOfGroup(first), 0) == []
    fail(on, first)
    on.step(GroupAttempted("d/g", Code.UNSCHEDULABLE, "uid-g"), 2)
    assert first.place is SubQueue.ERROR_BACKOFF
    assert asked[-1] is True
    assert not on.evicting("uid-g")
    on.queue.groups.leaving = "d/g"
    assert (on.leaving("d/g"), on.leaving("d/other")) == (True, False)


@pytest.mark.parametrize("for_itself", [False, True])
def test_the_room_of_a_forgotten_pod_is_for_others_and_for_itself_if_so_requested(make: Make, for_itself: bool) -> None:
    on = operations()
    own, other = popped(on, make.pod("own")), popped(on, make.pod("other"))
    for entry in (own, other):
        fail(on, entry)
    on.step(AssumedPodForgotten(own.pod.on_node("n"), for_itself), 2)
    assert other.place is SubQueue.BACKOFF
    assert own.place is (SubQueue.BACKOFF if for_itself else SubQueue.UNSCHEDULABLE)


def test_a_new_configuration_frees_pods_whose_gating_plugin_is_gone(make: Make) -> None:
    on = operations(pre_enqueue={"default-scheduler": {"Gate": lambda pod: unschedulable("no")}})
    assert on.queue.add(make.pod(), 0) is SubQueue.GATED
    given = Reconfigured(False, frozenset({"mine"}), QueueSettings(max_backoff=7), lambda entry: entry.key, {}, HINTS)
    on.step(given, 1)
    entry = on.step(Pop(), 2)
    assert entry.pod.name == "p"
    assert (on.handlers.scheduler_names, on.queue.settings) == ({"mine"}, given.settings)
    assert on.queue.order_of(entry) == (0, "d/p")
    fresh = given.new_operations(given.new_queue())
    assert (fresh.handlers.scheduler_names, fresh.queue.settings) == ({"mine"}, given.settings)


def test_flushes_moves_by_hand_and_nominations(make: Make) -> None:
    on = operations()
    waiting, failed = popped(on, make.pod("waiting")), popped(on, make.pod("failed"))
    fail(on, waiting)
    on.step(AttemptFailed(failed, failed.pod, frozenset(), frozenset()), 1)
    seconds = 10**9
    assert on.step(FlushBackoff(), 400 * seconds) == [failed]
    assert on.step(FlushLeftover(), 400 * seconds) == [waiting]
    assert on.step(Force("d/waiting", SubQueue.UNSCHEDULABLE), 400 * seconds) is True
    assert on.step(Activate([waiting.pod]), 400 * seconds) == [waiting]
    nominated = make.pod("nominated", status={"nominatedNodeName": "n"})
    on.queue.add(nominated, 400 * seconds)
    assert on.step(TakeNominated(), 400 * seconds) == (nominated,)
    assert on.step(TakeNominated(), 400 * seconds) == ()
    called: list[QueueOperations] = []
    on.step(AtThisPoint(called.append), 400 * seconds)
    assert called == [on]
    entry = on.step(Pop(), 400 * seconds)
    on.step(PodDone(entry.uid), 400 * seconds)
    assert on.queue.in_flight(entry.uid) is None


def test_a_listener_runs_each_step(make: Make) -> None:
    class Listener:
        def given(self, given: Any, now: int, step: Any) -> Any:
            seen.append((type(given), now))
            return step(given, now)

    seen: list[Any] = []
    on = operations()
    on.listener = Listener()
    on.queue.add(make.pod(), 0)
    entry = on.step(Pop(), 3)
    assert entry.pod.name == "p"
    assert seen == [(Pop, 3)]
