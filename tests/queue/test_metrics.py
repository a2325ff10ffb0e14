"""Tests of the queue's metrics: counted moves and numbers of waiting pods."""

from typing import Any

from kschedd.api.objects import Object
from kschedd.framework.events import NODE_ADD, ActionType, EventResource, on
from kschedd.metrics.instruments import MOST_UNSORTED, Distribution
from kschedd.queue.entry import SECOND, Move, SubQueue
from kschedd.queue.metrics import MoveMetrics, queue_metrics
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue
from tests.queue.conftest import Make


def shown(moves: list[Move], queue: SchedulingQueue) -> dict[str, Any]:
    metrics = MoveMetrics()
    metrics.moved(moves)
    return {
        family.metric.name: {
            labels: (each.count, each.sum) if isinstance(each, Distribution) else each
            for labels, each in family.samples.items()
        }
        for family in (*queue_metrics(queue), *metrics.families())
    }


def test_a_pod_is_counted_on_its_way(make: Make) -> None:
    record: list[Move] = []
    queue = SchedulingQueue(recorder=record.append)
    queue.add(make.pod("p"), 1 * SECOND)
    queue.add(make.pod("q"), 1 * SECOND)
    entry = queue.pop(3 * SECOND)
    assert entry is not None
    entry.unschedulable_plugins = frozenset({"NodeResourcesFit", "TaintToleration"})
    queue.add_unschedulable_if_not_present(entry, 4 * SECOND)
    found = shown(record, queue)
    assert found["scheduler_pending_pods"] == {
        ("active",): 1,
        ("backoff",): 0,
        ("unschedulable",): 1,
        ("gated",): 0,
    }
    assert found["scheduler_queued_entities"] == {
        (place, "pod"): count for (place,), count in found["scheduler_pending_pods"].items()
    }
    assert found["scheduler_queue_incoming_pods_total"] == {
        ("active", "UnschedulablePodAdd"): 2,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
    }
    # Upstream does not count the pod if it enters the queue that the decision names.
    assert found["scheduler_queue_incoming_entities_total"] == {("active", "UnschedulablePodAdd", "pod"): 2}
    assert found["scheduler_unschedulable_pods"] == {
        ("NodeResourcesFit", "default-scheduler"): 1,
        ("TaintToleration", "default-scheduler"): 1,
    }
    assert found["kschedd_queue_wait_seconds"] == {("active",): (1, 2.0)}


def test_a_wake_up_that_did_not_help_is_told_by_what_woke(make: Make) -> None:
    record: list[Move] = []
    queue = SchedulingQueue(recorder=record.append)
    pod = make.pod("p")
    queue.add(pod, 1 * SECOND)
    for at in (2, 4):
        entry = queue.pop(at * SECOND)
        assert entry is not None
        entry.unschedulable_plugins = frozenset({"NodeResourcesFit"})
        queue.add_unschedulable_if_not_present(entry, (at + 1) * SECOND)
        queue.activate([pod], (at + 1) * SECOND)
    assert shown(record, queue)["kschedd_requeued_pods_total"] == {
        ("", "ForceActivate", "scheduled"): 0,
        ("", "ForceActivate", "unschedulable"): 1,
    }


def test_none_of_many_moves_is_lost(make: Make) -> None:
    record: list[Move] = []
    queue = SchedulingQueue(recorder=record.append)
    many = MOST_UNSORTED + 10
    for number in range(many):
        pod = make.pod(f"p{number}")
        queue.add(pod, number * SECOND)
        queue.delete(pod, (number + 2) * SECOND)
    found = shown(record, queue)
    assert found["scheduler_queue_incoming_pods_total"] == {("active", "UnschedulablePodAdd"): many}
    assert found["kschedd_queue_wait_seconds"] == {("active",): (many, 2.0 * many)}


def test_a_pod_that_is_popped_early_counts_as_active(make: Make) -> None:
    queue = SchedulingQueue()
    early = Move(SECOND, "default/p", "u", SubQueue.BACKOFF, SubQueue.IN_FLIGHT, "PopFromBackoffQ", entity="pod")
    found = shown([early], queue)
    assert found["scheduler_queue_incoming_pods_total"] == {("active", "PopFromBackoffQ"): 1}
    assert found["scheduler_queue_incoming_entities_total"] == {("active", "PopFromBackoffQ", "pod"): 1}


def test_moves_within_upstreams_unschedulable_pods_are_not_counted() -> None:
    queue = SchedulingQueue()
    apart = (SubQueue.UNSCHEDULABLE, SubQueue.GATED)
    moves = [Move(1, "d/p", "u", source, target, "X", entity="pod") for source in apart for target in apart]
    assert shown(moves, queue)["scheduler_queue_incoming_pods_total"] == {}
    moves = [Move(1, "d/p", "u", SubQueue.ACTIVE, target, "X", entity="pod") for target in apart]
    assert shown(moves, queue)["scheduler_queue_incoming_pods_total"] == {("unschedulable", "X"): 2}


def test_a_group_is_one_entity_and_its_pods_are_none(make: Make) -> None:
    queue = SchedulingQueue(QueueSettings(groups_queued=True))
    spec = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "d"}}
    queue.groups.changed(None, Object.from_raw(spec), 0)
    for name in "abc":
        queue.add(make.pod(name, schedulingGroup={"podGroupName": "g"}), 1)
    queue.add(make.pod("unknown", schedulingGroup={"podGroupName": "other"}), 1)
    queue.add(make.pod("single"), 1)
    found = shown([], queue)
    assert found["scheduler_pending_pods"] == {
        ("active",): 4,
        ("backoff",): 0,
        ("unschedulable",): 0,
        ("gated",): 0,
        ("pending",): 0,
        ("incomplete",): 1,
    }
    entities = {labels: count for labels, count in found["scheduler_queued_entities"].items() if count}
    assert entities == {("active", "pod"): 1, ("active", "podgroup"): 1}


def test_stored_events_are_counted_with_the_pops(make: Make) -> None:
    queue = SchedulingQueue(hints={"default-scheduler": {"Any": (on(EventResource.NODE, ActionType.ADD),)}})
    queue.add(make.pod("p"), 1)
    queue.pop(1)
    for name in "nm":
        queue.move_all_to_active_or_backoff(NODE_ADD, None, make.node(name), 1)
    assert shown([], queue)["scheduler_inflight_events"] == {("NodeAdd",): 2, ("PodPopped",): 1}
