"""Tests that the index of waiting pods moves exactly the pods whose own hints return Queue."""

from collections.abc import Collection
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.pods import Pod, PodSignature
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.queue.entry import QueuedPod
from kschedd.queue.hints import HintTable
from kschedd.queue.unschedulable import UnschedulablePods
from tests.full_run import examples

A, R = ActionType, EventResource
PLUGINS = ("Fit", "Affinity", "Gates")
EVENTS = [
    ClusterEvent(R.NODE, A.ADD),
    ClusterEvent(R.NODE, A.UPDATE_NODE_LABEL),
    ClusterEvent(R.ASSIGNED_POD, A.DELETE),
    ClusterEvent(R.UNSCHEDULED_POD, A.UPDATE_POD_LABEL),
    ClusterEvent(R.WILDCARD, A.ALL),
    UNSCHEDULABLE_TIMEOUT,
]


def red(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Return Queue for pods with the color red; return the opposite for the event's own pod."""
    own = isinstance(new, Pod) and new.uid == pod.uid
    return QUEUE if (pod.labels.get("color") == "red") is not own else QUEUE_SKIP


def blue(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if pod.labels.get("color") == "blue" else QUEUE_SKIP


def by_pod(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if pod.name in ("p0", "p3") else QUEUE_SKIP


def those(signature: PodSignature, old: Any, new: Any) -> Collection[str] | None:
    """Return the pods for which `by_pod` may return Queue, or None (unknown) for one color."""
    return None if signature.labels.get("color") == "blue" else ("d/p3", "d/p9", "d/p0")


def broken(pod: Pod, old: Any, new: Any) -> QueueingHint:
    raise RuntimeError("boom")


def test_a_plugin_is_registered_for_events_of_its_resources_only() -> None:
    table = HintTable({"default-scheduler": {"Fit": [on(R.NODE, A.ADD)]}, "other": {"Ports": [on(R.POD, A.ADD)]}})
    of_node, of_volume = ClusterEvent(R.NODE, A.ADD), ClusterEvent(R.PERSISTENT_VOLUME, A.ADD)
    assert [table.is_registered_for("Fit", event) for event in (of_node, of_volume)] == [True, False]
    assert not table.is_registered_for("Ports", of_node)


actions = st.sampled_from([A.ADD | A.UPDATE_NODE_LABEL, A.DELETE | A.UPDATE_POD_LABEL, A.ALL, A.ALL])
registrations = st.builds(
    lambda resource, action, hint: on(resource, action, hint[0], by_signature=hint[1], concerns=hint[2]),
    st.sampled_from([R.NODE, R.POD, R.WILDCARD]),
    actions,
    st.sampled_from(
        [
            (red, True, None),
            (blue, True, None),
            (by_pod, False, None),
            (by_pod, False, those),
            (None, False, None),
            (broken, False, None),
        ]
    ),
)
profiles = st.fixed_dictionaries({plugin: st.lists(registrations, max_size=3) for plugin in PLUGINS})
tables = st.fixed_dictionaries({"default-scheduler": profiles}, optional={"other": profiles})
plugin_sets = st.frozensets(st.sampled_from(PLUGINS[:2]), max_size=2)


def waiting(number: int, color: str, scheduler: str, priority: int) -> QueuedPod:
    pod = Pod.from_raw(
        {
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "d", "uid": f"uid-{number}", "labels": {"color": color}},
            "spec": {"schedulerName": scheduler, "priority": priority, "containers": []},
        }
    )
    return QueuedPod(pod, pod.key, number)


groups = st.tuples(st.sampled_from(["default-scheduler"] * 3 + ["other"]), plugin_sets, plugin_sets, st.booleans())
# Several pods in few groups and with few shapes, so that pods share both.
entries = st.lists(groups, min_size=1, max_size=2).flatmap(
    lambda few: st.lists(
        st.tuples(st.sampled_from(["red", "blue"]), st.sampled_from([0, 0, 7]), st.sampled_from(few)),
        min_size=2,
        max_size=8,
    )
)


@settings(max_examples=examples(400))
@given(
    tables,
    entries,
    st.sampled_from(EVENTS),
    st.sampled_from([None, "p0", "p1", "p9"]),
    st.sampled_from([None, "p0", "p0", "p1", "p9"]),
    st.booleans(),
    st.sets(st.integers(0, 7), max_size=3),
)
def test_the_index_agrees_with_the_plain_rule(
    table: dict[str, dict[str, list[ClusterEventWithHint]]],
    described: list[Any],
    event: ClusterEvent,
    old: str | None,
    new: str | None,
    checked: bool,
    gone: set[int],
) -> None:
    index = UnschedulablePods(HintTable(table))
    for number, (color, priority, (scheduler, unschedulable, pending, gated)) in enumerate(described):
        entry = waiting(number, color, scheduler, priority)
        entry.unschedulable_plugins = unschedulable | ({"Gates"} if gated else set())
        entry.pending_plugins = pending
        entry.gating_plugin = "Gates" if gated else ""
        index.add(entry)
    for number in gone:
        if number < len(described):
            index.remove(f"d/p{number}")
    subjects = [
        None if name is None else waiting(int(name[1:]), "green", "default-scheduler", 0).pod for name in (old, new)
    ]
    pre_check = (lambda pod: pod.priority < 5) if checked else None
    plain = index.decide_each(event, *subjects, pre_check)
    fast = index.decide(event, *subjects, pre_check)
    assert {entry.key: decision for entry, decision in fast} == {entry.key: decision for entry, decision in plain}
    assert len(fast) == len(plain)
    assert len(index) == len(list(index)) == len(described) - len([n for n in gone if n < len(described)])
    assert index.gated == sum(entry.gated for entry in index)


def test_a_hint_that_speaks_for_a_shape_is_asked_once() -> None:
    requests: list[str] = []

    def hint(pod: Pod, old: Any, new: Any) -> QueueingHint:
        requests.append(pod.name)
        return QUEUE_SKIP

    index = UnschedulablePods(HintTable({"default-scheduler": {"Fit": [on(R.NODE, A.ADD, hint, by_signature=True)]}}))
    for number in range(50):
        entry = waiting(number, "red" if number % 2 else "blue", "default-scheduler", 0)
        entry.unschedulable_plugins = frozenset({"Fit"})
        index.add(entry)
    assert index.decide(EVENTS[0], None, None, None) == []
    assert requests == ["p0", "p1"]
    assert index.decide(EVENTS[1], None, None, None) == []
    assert len(requests) == 2


def test_only_the_pods_that_a_hint_names_are_moved_in_the_order_in_which_they_came() -> None:
    named: list[str] = []
    registered = on(R.NODE, A.ADD, lambda pod, old, new: QUEUE, concerns=lambda signature, old, new: named)
    index = UnschedulablePods(HintTable({"default-scheduler": {"Fit": [registered]}}))
    every = [waiting(number, "red", "default-scheduler", 0) for number in range(20)]
    for entry in every:
        entry.unschedulable_plugins = frozenset({"Fit"})
        index.add(entry)
    for names in (["d/p3"], ["d/gone"], *([f"d/p{number + 10}", f"d/p{number}"] for number in range(10))):
        named[:] = names
        moved = [entry.key for entry, _ in index.decide(EVENTS[0], None, None, None)]
        assert moved == [entry.key for entry in every if entry.key in names]


def test_what_a_hint_says_of_the_events_own_pod_is_not_said_of_others_of_its_shape() -> None:
    index = UnschedulablePods(HintTable({"default-scheduler": {"Fit": [on(R.POD, A.ALL, red, by_signature=True)]}}))
    for number in range(3):
        entry = waiting(number, "blue", "default-scheduler", 0)
        entry.unschedulable_plugins = frozenset({"Fit"})
        index.add(entry)
    own = waiting(0, "blue", "default-scheduler", 0).pod
    assert [entry.key for entry, _ in index.decide(EVENTS[3], own, own, None)] == ["d/p0"]


def test_two_hints_that_speak_for_one_shape_are_remembered_apart() -> None:
    registered = [on(R.NODE, A.ADD, hint, by_signature=hint is not by_pod) for hint in (blue, by_pod, red)]
    index = UnschedulablePods(HintTable({"default-scheduler": {"Fit": registered}}))
    for number in (5, 6):
        entry = waiting(number, "red", "default-scheduler", 0)
        entry.unschedulable_plugins = frozenset({"Fit"})
        index.add(entry)
    assert len(index.decide(EVENTS[0], None, None, None)) == 2
