"""Tests of when pods are evicted from nodes with NoExecute taints.

Expected results are from upstream's taint_eviction.go and its tests.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from kschedd.api.selecting.terms import Taint, parse_toleration
from kschedd.api.text.times import stamp
from kschedd.controllers.nodes.tainteviction import DISRUPTION_TARGET, TaintEviction
from kschedd.controllers.nodes.tolerance import FOR_EVER, NOT_TOLERATED, tolerated_s
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.errors import NotFound
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod

ONE, TWO = "one", "two"
START = 1_700_000_000.0


def tolerates(key: str | None, seconds: int | None = None, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"operator": "Exists", "effect": "NoExecute", **fields}
    if key is not None:
        made["key"] = key
    return made if seconds is None else {**made, "tolerationSeconds": seconds}


def taint(key: str, effect: str = "NoExecute", **fields: Any) -> dict[str, Any]:
    return {"key": key, "effect": effect, **fields}


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([], [], FOR_EVER, id="no-taint"),
        pytest.param([ONE], [], NOT_TOLERATED, id="nothing-tolerates-it"),
        pytest.param([ONE], [tolerates(TWO)], NOT_TOLERATED, id="another-key"),
        pytest.param([ONE], [tolerates(ONE)], FOR_EVER, id="without-seconds-for-ever"),
        pytest.param([ONE], [tolerates(ONE, 1)], 1, id="for-its-seconds"),
        pytest.param([ONE], [tolerates(ONE, 0)], 0, id="zero-is-at-once"),
        pytest.param([ONE], [tolerates(ONE, -5)], 0, id="negative-is-at-once"),
        pytest.param([ONE, TWO], [tolerates(ONE, 1), tolerates(TWO, 2)], 1, id="smallest-of-two"),
        pytest.param([ONE, TWO], [tolerates(ONE, 2), tolerates(TWO, 1)], 1, id="smallest-is-the-second"),
        pytest.param([ONE, TWO], [tolerates(ONE, 1), tolerates(TWO)], 1, id="one-for-ever-one-limited"),
        pytest.param([ONE, TWO], [tolerates(ONE), tolerates(TWO, 1)], 1, id="one-limited-one-for-ever"),
        pytest.param([ONE, TWO], [tolerates(ONE), tolerates(TWO)], FOR_EVER, id="both-for-ever"),
        pytest.param([ONE, TWO], [tolerates(ONE, 100)], NOT_TOLERATED, id="only-one-of-two-tolerated"),
        pytest.param([ONE, TWO], [tolerates(None)], FOR_EVER, id="all-keys"),
        pytest.param([ONE, TWO], [tolerates(None, 7)], 7, id="all-keys-for-a-while"),
        pytest.param([ONE], [tolerates(ONE, 9), tolerates(ONE, 3)], 9, id="first-match-counts-not-the-smallest"),
        pytest.param([ONE], [tolerates(ONE, 9), tolerates(ONE)], 9, id="first-match-counts-not-the-longest"),
        pytest.param([ONE], [tolerates(ONE), tolerates(ONE, 3)], FOR_EVER, id="first-match-for-ever"),
        pytest.param([ONE], [tolerates(ONE, effect="NoSchedule")], NOT_TOLERATED, id="another-effect"),
        pytest.param([ONE], [tolerates(ONE, effect="")], FOR_EVER, id="any-effect"),
        pytest.param([ONE], [tolerates(ONE, 5, operator="Equal", value="x")], NOT_TOLERATED, id="another-value"),
        pytest.param([ONE], [tolerates(ONE, 5, operator="Equal", value="")], 5, id="equal-values"),
        pytest.param([ONE], [tolerates(TWO, 3), tolerates(ONE, 300)], 300, id="seconds-of-others-do-not-count"),
    ],
)
def test_how_long_taints_are_tolerated(
    taints: Sequence[str], tolerations: Sequence[dict[str, Any]], expected: float | None
) -> None:
    found = [Taint(key, "", "NoExecute") for key in taints]
    assert tolerated_s(found, [parse_toleration(each) for each in tolerations]) == expected


class Cluster:
    """A node with one pod, in virtual time."""

    def __init__(self, tolerations: Iterable[dict[str, Any]], **spec: Any) -> None:
        self.clock = Clock(START)
        self.store = Store(now=self.clock)
        self.store.create(node())
        self.restart()
        # Without this, admission would add tolerations for 300 s.
        self.store.create(pod(nodeName="node-1", tolerations=list(tolerations), **spec), restore=True)
        self.runner.run_until_idle()
        self.gone_at: float | None = None

    def restart(self) -> None:
        self.controller = TaintEviction()
        self.runner = ControllerRunner(self.store, [self.controller])

    def taint(self, taints: Sequence[dict[str, Any]]) -> None:
        self.store.merge_patch("Node", "", "node-1", {"spec": {"taints": list(taints) or None}})

    def run_to(self, elapsed_s: float) -> None:
        """Advance to this time, in seconds since the start; record the time of the pod's deletion."""
        while True:
            self.runner.run_until_idle()
            found = self.store.find("Pod", "default", "web")
            if self.gone_at is None and (found is None or found.deleting):
                self.gone_at = self.clock.now - START
            due = self.runner.next_deadline
            if due is None or due > START + elapsed_s:
                break
            self.clock.now = due
        self.clock.now = START + elapsed_s

    def events(self) -> list[str]:
        return [str(event.raw["message"]) for event in self.store.list("Event")]


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("tolerations", "steps", "gone_at"),
    [
        pytest.param([], [(10, [])], None, id="no-taint-no-eviction"),
        pytest.param([], [(10, [ONE])], 10, id="not-tolerated-at-once"),
        pytest.param([tolerates(ONE, 100)], [(10, [ONE])], 110, id="after-its-seconds"),
        pytest.param([tolerates(ONE)], [(10, [ONE])], None, id="for-ever"),
        pytest.param([tolerates(TWO)], [(10, [ONE])], 10, id="tolerates-another-taint"),
        pytest.param([tolerates(ONE, 0)], [(10, [ONE])], 10, id="zero-seconds"),
        pytest.param([tolerates(ONE, -1)], [(10, [ONE])], 10, id="negative-seconds"),
        pytest.param([tolerates(ONE, 100)], [(10, [ONE, TWO])], 10, id="only-one-of-two-tolerated"),
        pytest.param([tolerates(ONE, 100)], [(10, [ONE]), (50, [ONE, TWO])], 50, id="second-taint-not-tolerated"),
        pytest.param([tolerates(ONE, 100)], [(10, [ONE]), (109, [])], None, id="taint-gone-just-in-time"),
        pytest.param([tolerates(ONE, 100)], [(10, [ONE]), (111, [])], 110, id="taint-gone-too-late"),
        pytest.param([tolerates(ONE, 100)], [(10, [ONE]), (60, []), (80, [ONE])], 180, id="taint-comes-back-anew"),
        pytest.param(
            [tolerates(ONE, 100), tolerates(TWO, 20)], [(10, [ONE, TWO])], 30, id="two-at-once-the-smallest-counts"
        ),
        pytest.param(
            [tolerates(ONE, 100), tolerates(TWO, 20)],
            [(10, [ONE]), (20, [ONE, TWO])],
            110,
            id="a-later-taint-does-not-shorten-the-timer",
        ),
        pytest.param(
            [tolerates(ONE, 20), tolerates(TWO, 100)],
            [(10, [ONE, TWO]), (15, [TWO])],
            30,
            id="the-timer-stays-when-the-shorter-taint-goes",
        ),
        pytest.param(
            [tolerates(ONE), tolerates(TWO, 60)], [(10, [ONE]), (20, [ONE, TWO])], 80, id="for-ever-then-limited"
        ),
        pytest.param(
            [tolerates(ONE), tolerates(TWO, 60)],
            [(10, [ONE, TWO]), (20, [ONE])],
            None,
            id="limited-then-for-ever-cancels",
        ),
        pytest.param(
            [tolerates(NOT_READY, 300), tolerates(UNREACHABLE, 300)],
            [(10, [NOT_READY]), (100, [UNREACHABLE])],
            310,
            id="one-condition-taint-in-place-of-the-other-keeps-the-timer",
        ),
        pytest.param(
            [tolerates(UNREACHABLE, 6000)], [(0, [UNREACHABLE]), (5999, [])], None, id="long-toleration-back-in-time"
        ),
        pytest.param([tolerates(UNREACHABLE, 3600)], [(0, [UNREACHABLE])], 3600, id="an-hour"),
    ],
)
def test_when_a_pod_leaves(
    tolerations: list[dict[str, Any]], steps: Sequence[tuple[float, list[str]]], gone_at: float | None
) -> None:
    cluster = Cluster(tolerations)
    for at, taints in steps:
        cluster.run_to(at)
        cluster.taint([taint(key) for key in taints])
    cluster.run_to(10_000)
    assert cluster.gone_at == gone_at
    assert cluster.controller.next_deadline is None


@pytest.mark.parametrize(
    ("tolerations", "taints", "restart_at", "gone_at"),
    [
        pytest.param([tolerates(ONE, 100)], {ONE: 10}, 50, 110, id="goes-on"),
        pytest.param([tolerates(ONE, 100)], {ONE: 10}, 500, 500, id="over-while-nobody-watched"),
        pytest.param([tolerates(ONE, 100)], {ONE: None}, 50, 150, id="without-timeAdded-anew-as-upstream"),
        pytest.param([tolerates(ONE)], {ONE: 10}, 50, None, id="for-ever"),
        pytest.param([tolerates(ONE, 100), tolerates(TWO, 20)], {ONE: 10, TWO: 20}, 50, 110, id="later-one-is-shorter"),
        pytest.param(
            [tolerates(ONE), tolerates(TWO, 60)], {ONE: 10, TWO: 40}, 50, 100, id="limited-from-the-second-on"
        ),
        pytest.param([tolerates(ONE, 100)], {ONE: -400}, 50, 100, id="not-before-the-pod-had-its-node"),
    ],
)
def test_timers_go_on_after_a_restart(
    tolerations: list[dict[str, Any]], taints: dict[str, float | None], restart_at: float, gone_at: float | None
) -> None:
    cluster = Cluster(tolerations)
    cluster.runner = ControllerRunner(cluster.store, [])  # no controller evicts pods until the restart
    cluster.taint([taint(key) if at is None else taint(key, timeAdded=stamp(START + at)) for key, at in taints.items()])
    cluster.run_to(restart_at)
    cluster.restart()
    cluster.run_to(10_000)
    assert cluster.gone_at == gone_at


def test_a_timer_after_a_restart_begins_no_earlier_than_the_pod_was_scheduled() -> None:
    cluster = Cluster([tolerates(ONE)])
    cluster.runner = ControllerRunner(cluster.store, [])
    cluster.taint([taint(ONE, timeAdded=stamp(START + 10))])
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(START + 40)}
    late = pod("late", nodeName="node-1", tolerations=[tolerates(ONE, 100)])
    cluster.store.create({**late, "status": {"phase": "Running", "conditions": [scheduled]}}, restore=True)
    cluster.run_to(50)
    cluster.restart()
    cluster.run_to(139)
    assert not cluster.store.get("Pod", "default", "late").deleting
    cluster.run_to(140)
    assert cluster.store.get("Pod", "default", "late").deleting


def test_taints_of_other_effects_evict_nobody() -> None:
    cluster = Cluster([tolerates(ONE)])
    cluster.taint([taint("new", "NoSchedule"), taint(ONE), taint("soft", "PreferNoSchedule")])
    cluster.run_to(1000)
    assert cluster.gone_at is None
    assert [each.taint.key for each in cluster.controller.taints_of("node-1")] == [ONE]


def test_a_timeAdded_in_the_past_starts_no_timer_in_the_past() -> None:
    cluster = Cluster([tolerates(ONE, 100)])
    cluster.run_to(50)
    cluster.taint([taint(ONE, timeAdded=stamp(START - 1000))])
    cluster.run_to(1000)
    assert cluster.gone_at == 150


def test_a_pod_that_comes_to_a_tainted_node_has_its_time_from_then_on() -> None:
    cluster = Cluster([])
    cluster.taint([taint(ONE)])
    cluster.run_to(40)
    late = pod("late", nodeName="node-1", tolerations=[tolerates(ONE, 100)])
    cluster.store.create(late)
    cluster.run_to(139)
    assert not cluster.store.get("Pod", "default", "late").deleting
    cluster.run_to(140)
    assert cluster.store.get("Pod", "default", "late").deleting


def test_a_pod_that_is_bound_to_a_tainted_node_has_its_time_from_then_on() -> None:
    cluster = Cluster([])
    cluster.taint([taint(ONE)])
    cluster.store.create(pod("late", tolerations=[tolerates(ONE, 100)]))
    cluster.run_to(40)
    assert not cluster.controller.timers()
    cluster.store.bind("default", "late", "node-1")
    cluster.run_to(139)
    assert not cluster.store.get("Pod", "default", "late").deleting
    cluster.run_to(140)
    assert cluster.store.get("Pod", "default", "late").deleting


def test_a_pod_that_is_bound_to_a_node_whose_taint_it_does_not_tolerate_leaves_at_once() -> None:
    cluster = Cluster([])
    cluster.taint([taint(ONE)])
    cluster.store.create(pod("late"))
    cluster.run_to(40)
    cluster.store.bind("default", "late", "node-1")
    cluster.run_to(40)
    assert cluster.store.get("Pod", "default", "late").deleting


def test_a_toleration_that_has_no_end_any_more_cancels_the_timer() -> None:
    cluster = Cluster([tolerates(ONE, 100)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    cluster.store.merge_patch("Pod", "default", "web", {"spec": {"tolerations": [tolerates(ONE)]}})
    cluster.run_to(1000)
    assert cluster.gone_at is None
    assert cluster.events() == [CANCELLING]


def test_another_change_of_a_pod_leaves_its_timer_as_it_is() -> None:
    cluster = Cluster([tolerates(ONE, 100)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    cluster.store.merge_patch("Pod", "default", "web", {"metadata": {"labels": {"app": "web"}}})
    assert cluster.controller.next_deadline == START + 100, "nothing to look at before"
    cluster.run_to(1000)
    assert cluster.gone_at == 100


def test_another_toleration_does_not_move_the_end_of_a_running_timer() -> None:
    cluster = Cluster([tolerates(ONE, 100)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    added = [tolerates(ONE, 100), tolerates(TWO, 1000)]
    cluster.store.merge_patch("Pod", "default", "web", {"spec": {"tolerations": added}})
    cluster.run_to(1000)
    assert cluster.gone_at == 100


def test_an_evicted_pod_has_the_condition_and_the_event_of_upstream() -> None:
    cluster = Cluster([tolerates(ONE, 5)])
    cluster.taint([taint(ONE)])
    cluster.run_to(100)
    left = cluster.store.get("Pod", "default", "web")
    (condition,) = [each for each in left.status["conditions"] if each["type"] == "DisruptionTarget"]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "lastProbeTime": None,
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": stamp(START + 5),
    }
    assert left.metadata["deletionGracePeriodSeconds"] == 30, "with its own grace period"
    (event,) = cluster.store.list("Event")
    assert (event.raw["type"], event.raw["reason"]) == ("Normal", "TaintManagerEviction")
    assert event.raw["message"] == "Marking for deletion Pod default/web"
    assert event.raw["source"] == {"component": "taint-eviction-controller"}


MARKING, CANCELLING = "Marking for deletion Pod default/web", "Cancelling deletion of Pod default/web"


def test_a_pod_that_leaves_is_marked_once_whatever_becomes_of_its_node_meanwhile() -> None:
    cluster = Cluster([tolerates(ONE, 5)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    assert not cluster.controller.timers()
    cluster.store.merge_patch("Node", "", "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.run_to(20)
    cluster.taint([])
    cluster.run_to(1000)
    assert cluster.events() == [MARKING], "it is Terminating: without a kubelet it stays"


def test_another_taint_that_is_not_tolerated_ends_the_timer_that_runs() -> None:
    cluster = Cluster([tolerates(ONE, 100)])
    cluster.taint([taint(ONE)])
    cluster.run_to(50)
    cluster.taint([taint(ONE), taint(TWO)])
    cluster.run_to(50)
    assert cluster.gone_at == 50
    assert not cluster.controller.timers()
    cluster.run_to(1000)
    assert sorted(cluster.events()) == [CANCELLING, MARKING]


def test_a_change_of_a_node_without_a_change_of_its_taints_marks_no_pod_again() -> None:
    cluster = Cluster([])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    cluster.store.merge_patch("Node", "", "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.run_to(1000)
    assert cluster.events() == [MARKING]


def test_the_timers_of_a_deleted_nodes_pods_run_on() -> None:
    cluster = Cluster([tolerates(ONE, 100)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    cluster.store.delete("Node", "", "node-1")
    cluster.run_to(1000)
    assert cluster.gone_at == 100


def test_the_taints_of_a_deleted_node_are_forgotten() -> None:
    cluster = Cluster([tolerates(ONE)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    cluster.store.delete("Node", "", "node-1")
    cluster.run_to(20)
    cluster.store.create(pod("late", nodeName="node-1"), restore=True)
    cluster.run_to(1000)
    assert not cluster.store.get("Pod", "default", "late").deleting
    assert cluster.controller.taints_of("node-1") == ()


@pytest.mark.parametrize(
    ("changes", "written"),
    [
        pytest.param({}, False, id="the-same"),
        pytest.param({"reason": "EvictionByEvictionAPI"}, True, id="another-reason"),
        pytest.param({"status": "False"}, True, id="not-true"),
    ],
)
def test_a_condition_that_a_pod_has_already_is_written_again_only_if_it_differs(
    changes: dict[str, str], written: bool
) -> None:
    cluster = Cluster([])
    before = {**DISRUPTION_TARGET, "lastTransitionTime": stamp(START - 1000), "lastProbeTime": None, **changes}
    cluster.store.patch_status("Pod", "default", "web", {"conditions": [before]})
    cluster.runner.run_until_idle()
    since = cluster.store.version
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    found = cluster.store.get("Pod", "default", "web")
    [after] = found.status["conditions"]
    assert {field: after[field] for field in DISRUPTION_TARGET} == DISRUPTION_TARGET
    statuses = [
        event
        for event in cluster.store.watch(("Pod",), since).take()
        if not event.new.metadata.get("deletionTimestamp")
    ]
    assert len(statuses) == written


def test_a_pod_leaves_though_its_namespace_takes_no_event() -> None:
    cluster = Cluster([tolerates(ONE)])
    cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    cluster.store.create(pod("late", namespace="going", nodeName="node-1", tolerations=[tolerates(ONE, 5)]))
    cluster.store.delete("Namespace", "", "going")
    cluster.taint([taint(ONE)])
    cluster.run_to(5)
    assert cluster.store.get("Pod", "going", "late").deleting
    assert cluster.events() == []


def test_a_cancelled_timer_is_told_once() -> None:
    cluster = Cluster([tolerates(ONE, 50)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    assert [(timer.since_s - START, timer.at_s - START) for timer in cluster.controller.timers().values()] == [(0, 50)]
    cluster.taint([])
    cluster.run_to(20)
    cluster.taint([taint("soft", "NoSchedule")])
    cluster.run_to(1000)
    assert cluster.events() == [CANCELLING]
    assert cluster.gone_at is None


def test_a_pod_deleted_meanwhile_cancels_its_timer() -> None:
    cluster = Cluster([tolerates(ONE, 50)])
    cluster.taint([taint(ONE)])
    cluster.run_to(10)
    cluster.store.delete("Pod", "default", "web", grace_period_s=0)
    cluster.run_to(1000)
    assert cluster.events() == [CANCELLING]
    with pytest.raises(NotFound):
        cluster.store.get("Pod", "default", "web")


def test_many_pods_leave_in_turns() -> None:
    cluster = Cluster([])
    for number in range(120):
        cluster.store.create(pod(f"pod-{number}", nodeName="node-1", tolerations=[tolerates(ONE, 30)]))
    cluster.taint([taint(ONE)])
    cluster.run_to(29)
    assert sum(each.deleting for each in cluster.store.list("Pod")) == 1, "the one without a toleration"
    cluster.run_to(30)
    assert all(each.deleting for each in cluster.store.list("Pod"))
