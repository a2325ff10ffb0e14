"""Tests of the lockstep runner: the rules of its environment, and its detection of differing steps."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37, KubernetesVersion
from kschedd.conformance.environment import TraceEnvironment
from kschedd.conformance.records import GoldenRecord
from kschedd.conformance.traces import Lockstep, trace_differences
from kschedd.framework.writes import Bind, Delete, MergePatch
from tests.conformance.golden_records import Raw, node, pod, trace


def record(raw: Raw) -> GoldenRecord:
    return GoldenRecord(raw["id"], raw["family"], raw["config"], raw["objects"], raw)


def steps(*ops: Raw, **fields: Any) -> list[Raw]:
    """Return the scheduler's actions for each of these operations."""
    run = Lockstep(record(trace(list(ops), [], **fields)))
    return [run.step(op, ()) for op in ops]


def create(raw: Raw) -> Raw:
    return {"op": "create", "object": raw}


RUN: Raw = {"op": "run"}
MILLISECONDS_BEFORE_OP = 1


def test_the_clock_moves_before_every_operation_and_after_every_cycle() -> None:
    created, ran = steps(create(pod("p")), RUN)
    assert created["now_ms"] == MILLISECONDS_BEFORE_OP
    assert created["queues"]["active"] == ["default/p"]
    assert ran["attempts"] == [
        {"pod": "default/p", "at_ms": 2, "attempt": 1, "result": "scheduled", "node": "a", "best": ["a"]}
    ]
    assert ran["bound"] == [["default/p", "a"]]
    assert ran["conditions"] == {"default/p": {"status": "True", "reason": "", "message": ""}}
    assert ran["now_ms"] == 3


def test_a_run_may_end_after_some_cycles() -> None:
    *_, ran = steps(create(pod("p")), create(pod("q")), {"op": "run", "cycles": 1})
    assert [attempt["pod"] for attempt in ran["attempts"]] == ["default/p"]
    assert ran["queues"]["active"] == ["default/q"]


def test_with_autorun_the_scheduler_runs_after_every_operation_and_tick() -> None:
    big, small = pod("p", cpu="9"), pod("q")
    first, second, ticked = steps(
        create(big), create(small), {"op": "advance", "seconds": 331}, autorun=True, objects=[node("a")]
    )
    assert first["attempts"][0]["result"] == "unschedulable"
    assert second["bound"] == [["default/q", "a"]]
    # The timeout is checked every 30 s, for pods that have waited for more than 300 s.
    assert [attempt["at_ms"] for attempt in ticked["attempts"]] == [330_000]
    assert ticked["now_ms"] == second["now_ms"] + 1 + 331_000


def test_events_of_during_find_the_pod_in_flight() -> None:
    ops = (create(pod("p")), {"op": "run", "during": [create(node("a"))]})
    *_, ran = steps(*ops, objects=[node("b", cpu="100m")])
    assert ran["attempts"][0]["result"] == "unschedulable"
    # The node was added while the pod was in flight, so the pod was retried immediately.
    assert [attempt["result"] for attempt in ran["attempts"]] == ["unschedulable", "scheduled"]
    assert ran["attempts"][1]["at_ms"] == 2 + 1 + 1 + 1


def test_operations_of_during_wait_for_a_pod_that_is_not_passed_over() -> None:
    mark = {"metadata": {"deletionTimestamp": "2025-01-01T00:00:01Z"}}
    going = {"op": "patch", "kind": "Pod", "namespace": "default", "name": "p", "patch": mark}
    wide = {"op": "run", "cycles": 1, "during": [create(pod("q"))]}
    *_, alone = steps(create(pod("p")), going, wide)
    assert [attempt["result"] for attempt in alone["attempts"]] == ["skipped"]
    assert alone["queues"]["active"] == []
    *_, both = steps(create(pod("p", priority=5)), going, create(pod("r")), {**wide, "cycles": 2})
    assert [attempt["result"] for attempt in both["attempts"]] == ["skipped", "scheduled"]
    assert both["queues"]["active"] == ["default/q"]


def test_a_pod_deleted_during_its_attempt_cannot_be_bound() -> None:
    gone = {"op": "delete", "kind": "Pod", "namespace": "default", "name": "p"}
    *_, ran = steps(create(pod("p")), {"op": "run", "during": [gone]})
    (attempt,) = ran["attempts"]
    assert (attempt["result"], attempt["best"]) == ("error", ["a"])
    assert attempt["message"] == 'running Bind plugin "DefaultBinder": pods "default/p" not found'
    assert ran["bound"] == []
    assert ran["conditions"] == {}


def preemption(graceful: bool) -> Raw:
    *_, ran = steps(
        create(pod("low")),
        RUN,
        create(pod("high", priority=10)),
        RUN,
        objects=[node("a", cpu="1")],
        graceful_deletion=graceful,
    )
    return ran


def test_victims_go_at_once_or_are_marked_as_the_trace_says() -> None:
    at_once, marked = preemption(False), preemption(True)
    assert at_once["deleted"] == marked["deleted"] == ["default/low"]
    assert [attempt["result"] for attempt in at_once["attempts"]] == ["unschedulable", "scheduled"]
    assert [attempt["result"] for attempt in marked["attempts"]] == ["unschedulable"]
    assert marked["nominated"] == {"a": ["default/high"]}
    assert marked["queues"]["unschedulable"] == ["default/high"]


def running(raw: Raw, on: str) -> Raw:
    return {**raw, "spec": {**raw["spec"], "nodeName": on}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("gone", "evicted", "places"),
    [
        pytest.param([], ["default/v", "default/w"], {"backoff": ["default/p"]}, id="both-are-there"),
        pytest.param(["v"], ["default/w"], {"backoff": ["default/p"]}, id="the-first-went-by-itself"),
        pytest.param(["w"], ["default/v"], {"backoff": ["default/p"]}, id="the-last-went-by-itself"),
        pytest.param(["v", "w"], [], {"active": ["default/p"]}, id="both-went-so-nothing-else-would-wake-it"),
    ],
)
def test_victims_that_go_during_the_attempt_are_not_evicted(gone: list[str], evicted: list[str], places: Raw) -> None:
    deletions = [{"op": "delete", "kind": "Pod", "namespace": "default", "name": name} for name in gone]
    *_, ran = steps(
        create(pod("p", cpu="2", priority=10)),
        {"op": "run", "cycles": 1, "during": deletions},
        objects=[node("a"), running(pod("v"), "a"), running(pod("w"), "a")],
    )
    assert ran["deleted"] == evicted
    assert {place: keys for place, keys in ran["queues"].items() if keys} == places


def test_a_nominated_pod_that_was_passed_over_takes_no_room_any_more() -> None:
    going = {"metadata": {"deletionTimestamp": "2025-01-01T00:00:01Z"}}
    mark = {"op": "patch", "kind": "Pod", "namespace": "default", "name": "p", "patch": going}
    _, _, _, skipped, _, ran = steps(
        create(pod("p", priority=10)),
        {"op": "run", "cycles": 1},
        mark,
        RUN,
        create(pod("q", priority=5)),
        RUN,
        objects=[node("a", cpu="1"), running(pod("v"), "a")],
    )
    assert [attempt["result"] for attempt in skipped["attempts"]] == ["skipped"]
    assert skipped["nominated"] == {"a": ["default/p"]}
    assert [attempt["result"] for attempt in ran["attempts"]] == ["scheduled"]


def test_a_nomination_that_ends_during_the_attempt_does_not_hinder_preemption() -> None:
    gone = {"op": "delete", "kind": "Pod", "namespace": "default", "name": "first"}
    hold = {"op": "run", "cycles": 1}
    *_, ran = steps(
        create(pod("first", cpu="2", priority=20)),
        hold,
        create(pod("second", cpu="2", priority=10)),
        {**hold, "during": [gone]},
        objects=[node("a"), running(pod("v"), "a"), running(pod("w"), "a")],
        graceful_deletion=True,
    )
    # The node is reserved for `first` until its deletion; then the same victims are evicted for `second`.
    assert (ran["attempts"][0]["pod"], ran["attempts"][0]["nominated_node"]) == ("default/second", "a")
    assert ran["nominated"] == {"a": ["default/second"]}


def test_several_equal_candidates_of_preemption_are_told() -> None:
    victims = [running(pod(f"on-{name}"), name) for name in "ab"]
    started = [{**v, "status": {**v["status"], "startTime": "2024-12-31T00:00:00Z"}} for v in victims]
    *_, ran = steps(create(pod("p", priority=10)), RUN, objects=[node("a", cpu="1"), node("b", cpu="1"), *started])
    (attempt, *_) = ran["attempts"]
    assert (attempt["nominated_node"], attempt["nominated_ties"]) == ("a", ["a", "b"])


def test_a_condition_that_changes_back_within_a_step_has_not_changed() -> None:
    world = TraceEnvironment(False)
    world.load([pod("p")])

    def say(message: str) -> None:
        answer = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        world.apply(
            {
                "op": "patch",
                "kind": "Pod",
                "namespace": "default",
                "name": "p",
                "patch": {"status": {"conditions": [answer]}},
            }
        )

    say("no room")
    assert world.conditions["default/p"]["message"] == "no room"
    world.begin_step()
    say("no ports")
    say("no room")
    assert world.conditions == {}
    say("no ports")
    assert world.conditions["default/p"]["message"] == "no ports"


def test_the_recorded_choice_is_taken_if_it_is_among_our_best() -> None:
    ops = [create(pod("p")), RUN]
    run = Lockstep(record(trace(ops, [], objects=[node("a"), node("b"), node("c", cpu="100m")])))
    run.step(ops[0], ())
    step = run.step(ops[1], [{"node": "b"}])
    assert (step["attempts"][0]["node"], step["attempts"][0]["best"]) == ("b", ["a", "b"])

    run = Lockstep(record(trace(ops, [], objects=[node("a"), node("b"), node("c", cpu="100m")])))
    run.step(ops[0], ())
    assert run.step(ops[1], [{"node": "c"}])["attempts"][0]["node"] == "a"


def test_the_first_step_that_differs_is_told_and_ends_the_run() -> None:
    ops = [create(pod("p")), RUN, RUN]
    want = steps(*ops)
    assert not list(trace_differences(record(trace(ops, want))))
    want[1]["now_ms"] += 5
    want[2]["now_ms"] += 7
    assert list(trace_differences(record(trace(ops, want)))) == ["steps[1].now_ms: want 8, got 3"]


def test_the_api_gives_bound_pods_their_start_in_the_order_of_bindings() -> None:
    api = TraceEnvironment(graceful_deletion=False)
    api.load([pod("p"), pod("q")])
    assert api.write(Bind("default", "q", "uid-q", "a")) is None
    assert api.write(Bind("default", "p", "uid-p", "a")) is None
    starts = [api.objects["Pod", f"default/{name}"].status["startTime"] for name in "pq"]
    assert starts == ["2025-01-01T00:00:02Z", "2025-01-01T00:00:01Z"]
    assert [(event.type, event.new.key) for event in api.take_events()][2:] == [
        ("MODIFIED", "default/q"),
        ("MODIFIED", "default/p"),
    ]


def test_writes_to_what_is_gone_or_another_are_refused() -> None:
    api = TraceEnvironment(graceful_deletion=False)
    api.load([pod("p")])
    for write, why in (
        (Bind("default", "p", "uid-of-another", "a"), "UID in object meta: uid-p"),
        (MergePatch("Pod", "default", "away", {"status": {}}, "status"), "not found"),
        (Delete("Pod", "default", "away", ""), "not found"),
    ):
        refusal = api.write(write)
        assert refusal is not None
        assert refusal.message.endswith(why)
    assert api.bound == api.deleted == []


@pytest.mark.parametrize(
    ("version", "code", "requests"),
    [(V1_36, 500, [500]), (V1_37, 500, [500, 500, 0]), (V1_37, 409, [409])],
)
def test_a_binding_that_fails_is_told_and_by_1_37_sent_again(
    version: KubernetesVersion, code: int, requests: list[int]
) -> None:
    ops: list[Raw] = [{"op": "fail", "verb": "bind", "code": code, "times": 2}, create(pod("p")), RUN]
    run = Lockstep(record(trace(ops, [])), version)
    made = [run.step(op, ()) for op in ops][-1]
    bindings = [write for write in run.environment.writes if write["verb"] == "bind"]
    assert [write.get("code", 0) for write in bindings] == requests
    assert made["bound"] == ([["default/p", "a"]] if requests[-1] == 0 else [])


def test_a_pod_may_be_preempted_while_its_binding_is_held() -> None:
    held = {"op": "run", "hold": True, "during": [create(pod("high", priority=10, cpu="2"))]}
    ops: list[Raw] = [create(pod("low", cpu="2")), held, {"op": "run"}]
    run = Lockstep(record({**trace(ops, []), "autorun": False}), V1_37)
    _, during, after = [run.step(op, ()) for op in ops]
    assert [(each["pod"], each["result"]) for each in during["attempts"]] == [
        ("default/low", "scheduled"),
        ("default/high", "unschedulable"),
        ("default/high", "scheduled"),
    ]
    assert during["deleted"] == ["default/low"]
    assert during["bound"] == [["default/high", "a"]]
    assert after["attempts"] == []


@pytest.mark.parametrize(
    ("version", "code", "requests"),
    [
        (V1_34, 503, [503, 503, 0]),
        (V1_34, 409, [409]),
        (V1_36, 409, [409, 409, 0]),
        (V1_37, 500, [500, 500, 0]),
        (V1_37, 403, [403]),
    ],
)
def test_a_status_that_is_not_written_is_sent_again(version: KubernetesVersion, code: int, requests: list[int]) -> None:
    ops: list[Raw] = [{"op": "fail", "verb": "patch", "code": code, "times": 2}, create(pod("p", cpu="64")), RUN]
    run = Lockstep(record(trace(ops, [])), version)
    made = [run.step(op, ()) for op in ops][-1]
    assert [write.get("code", 0) for write in run.environment.writes] == requests
    assert set(made["conditions"]) == ({"default/p"} if requests[-1] == 0 else set())


def test_writes_are_told_as_requests_with_what_they_change() -> None:
    run = Lockstep(record(trace([], [])))
    world = run.environment
    world.apply(create(pod("p")))
    world.begin_step()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
    for status in (
        {"conditions": [condition], "nominatedNodeName": "a"},
        {"conditions": [{**condition, "message": "n"}]},
    ):
        world.write(MergePatch("Pod", "default", "p", {"status": status}, "status"))
    world.write(MergePatch("Pod", "default", "p", {"status": {"nominatedNodeName": None}}, "status"))
    world.write(Delete("Pod", "default", "p", "another"))
    target = {"object": "Pod default/p"}
    assert world.writes == [
        {"verb": "patch", **target, "what": ["PodScheduled False Unschedulable", "nominatedNodeName a"]},
        {"verb": "patch", **target, "what": ["PodScheduled"]},
        {"verb": "patch", **target, "what": ["nominatedNodeName -"]},
        {"verb": "delete", **target, "code": 404},
    ]


def test_a_patch_that_changes_nothing_is_no_write() -> None:
    api = TraceEnvironment(graceful_deletion=False)
    api.load([node("a")])
    api.take_events()
    api.apply({"op": "patch", "kind": "Node", "name": "a", "patch": {"spec": None}})
    api.apply({"op": "delete", "kind": "Pod", "namespace": "default", "name": "none"})
    assert api.take_events() == []
