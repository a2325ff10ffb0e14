"""Tests of the debugger alone: when scheduling runs, where breakpoints stop it, and which client controls it."""

from typing import Any

import attrs
import numpy as np
import pytest

from kschedd.api.pods import Pod
from kschedd.cel.errors import CelCompileError
from kschedd.cel.program import compile_condition
from kschedd.framework import interface
from kschedd.scheduling.debug.breakpoints import POINTS, BreakpointSpec, StopPoint
from kschedd.scheduling.debug.debugger import (
    MOST_BREAKPOINTS,
    STATE_VARIABLES,
    BreakpointRefused,
    Debugger,
    DebuggerHeld,
    Reentry,
    SchedulingStop,
    Until,
    compile_state_condition,
)
from tests.scheduling.driven import pod

STATE = dict.fromkeys(STATE_VARIABLES, 0)


def debugger(**state: int) -> Debugger:
    return Debugger(lambda: {**STATE, **state})


def web(name: str = "web", **labels: str) -> Pod:
    return Pod.from_raw(pod(name, labels=labels))


def at(point: str = "filter", plugin: str = "NodeName", *, cycle: int = 1, **fields: Any) -> StopPoint:
    return StopPoint(cycle, fields.pop("pod", web()), 1, point, plugin, **fields)


def test_nothing_is_asked_while_nothing_is_set() -> None:
    assert not debugger().engaged


def test_nobody_controls_a_new_debugger_and_it_has_counted_nothing() -> None:
    one = debugger()
    assert (one.holder, one.keep, one.cycle, one.stops, one.most_set) == ("", False, 0, 0, 0)
    one.began(web())
    assert one.cycle == 1


def test_stops_and_the_largest_number_of_breakpoints_are_counted() -> None:
    one = debugger()
    for plugin in "AB":
        one.add(BreakpointSpec(plugin=plugin))
    one.delete(1)
    one.add(BreakpointSpec(plugin="C"))
    assert one.most_set == 2
    for place in "BXC":
        if one.arrives(at(plugin=place)):
            one.resume()
    assert one.stops == 2


def test_a_fork_stops_where_the_original_has_stopped_and_no_client_controls_it() -> None:
    one = debugger()
    one.attach("a", keep=True)
    one.began(web())
    one.add(BreakpointSpec(plugin="A"), ignore=1)
    one.pause(5.0)
    between = one.copy(None)
    assert (between.holder, between.keep, between.stop) == ("", False, one.stop)
    between.arrives(at(plugin="A"))
    assert (between.breakpoints[1].hits, one.breakpoints[1].hits) == (1, 0)
    stop = SchedulingStop("next", 4.0, at(cycle=1))
    within = debugger().copy(Reentry(web().uid, 3, {}, stop))
    assert within.engaged, "the repeated attempt must stop"
    assert (within.stop, within.cycle) == (None, -1)
    assert within.enters(web())
    assert not within.enters(web("other"))
    within.reentered(at(plugin="F"))
    assert within.stop is not None
    assert (within.stop.why, within.stop.since_s, within.reentry) == ("next", 4.0, None)
    assert within.stop.point is not None
    assert within.stop.point.plugin == "F"


def test_a_pause_stops_before_the_next_attempt() -> None:
    one = debugger()
    one.pause(5.0)
    assert one.stop is not None
    assert (one.stop.why, one.stop.point) == ("paused", None)
    assert not one.lets_begin(6.0)
    one.resume()
    assert one.lets_begin(7.0)
    assert not one.engaged


def test_a_pause_within_an_attempt_waits_for_its_end() -> None:
    one = debugger()
    one.pause(5.0, attempting=True)
    assert one.stop is None
    assert not one.lets_begin(6.0)
    assert one.stop is not None


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_step_lets_so_many_attempts_begin(attempts: int) -> None:
    one = debugger()
    one.pause(0.0)
    one.step(attempts)
    begun = 0
    while one.lets_begin(1.0):
        one.began(web())
        begun += 1
    assert begun == attempts
    assert one.stop is not None
    assert one.stop.why == "step"


def test_a_step_within_an_attempt_ends_with_that_attempt() -> None:
    one = debugger()
    one.next()
    assert one.began(web())
    assert one.arrives(at())
    one.step(1)
    assert not one.arrives(at(plugin="NodePorts"))
    assert not one.lets_begin(1.0)


def test_next_stops_at_each_plugin_and_at_each_point() -> None:
    one = debugger()
    way = [at("filter", "A"), at("filter", "B"), at("score", "A"), at("score", "B"), at("", "", outcome="scheduled")]
    stops = []
    for here in way:
        one.next()
        stops.append(one.arrives(here))
    assert stops == [True] * 5
    one.next()
    assert one.arrives(at("filter", "A", cycle=2))
    passed = []
    for here in way:
        one.next(point=True)
        passed.append(one.arrives(attrs.evolve(here, cycle=2)))
    assert passed == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("spec", "stops"),
    [
        pytest.param({"pod": "default/web"}, [0], id="a-pod-once-for-each-attempt"),
        pytest.param({"pod": "default/w*"}, [0], id="a-pattern"),
        pytest.param({"pod": "default/other"}, [], id="another-pod"),
        pytest.param({"selector": "app=web"}, [0], id="labels"),
        pytest.param({"selector": "app!=web"}, [], id="other-labels"),
        pytest.param({"point": "filter"}, [1], id="an-extension-point-once"),
        pytest.param({"plugin": "B"}, [2, 4], id="a-plugin-at-each-of-its-points"),
        pytest.param({"plugin": "B", "point": "score"}, [4], id="a-plugin-at-one-point"),
        pytest.param({"outcome": "rejected"}, [3], id="an-outcome"),
        pytest.param({"outcome": "rejected", "plugin": "A"}, [], id="an-outcome-of-another-plugin"),
        pytest.param({"outcome": "scheduled"}, [5], id="the-outcome-of-the-attempt"),
        pytest.param({"node": "n1", "outcome": "scheduled"}, [5], id="the-chosen-node"),
        pytest.param({"node": "n2", "outcome": "scheduled"}, [], id="another-node"),
        pytest.param({"condition": "plugin == 'B' && attempt == 1"}, [2], id="a-condition"),
        pytest.param({"condition": "pod.metadata.name.startsWith('x')"}, [], id="a-condition-that-never-holds"),
    ],
)
def test_a_breakpoint_stops_where_all_that_it_names_is_so(spec: dict[str, str], stops: list[int]) -> None:
    one = debugger()
    one.add(BreakpointSpec(**spec))
    named = web(app="web")
    way = [
        at("preFilter", "A", pod=named),
        at("filter", "A", pod=named),
        at("filter", "B", pod=named),
        at("filter", "B", outcome="rejected", pod=named),
        at("score", "B", pod=named),
        at("", "", outcome="scheduled", node="n1", pod=named),
    ]
    found = []
    for place, here in enumerate(way):
        if one.arrives(here):
            found.append(place)
            one.resume()
    assert found == stops


def test_a_breakpoint_can_name_each_extension_point_that_an_attempt_or_a_binding_calls() -> None:
    def in_camel_case(name: str) -> str:
        first, *others = name.split("_")
        return first + "".join(map(str.title, others))

    elsewhere = {"preEnqueue", "queueSort", "placementGenerate", "placementScore"}
    assert set(POINTS) == set(map(in_camel_case, interface.POINTS)) - elsewhere


def test_a_breakpoint_without_a_point_stops_once_and_with_a_point_at_each_of_its_attempts() -> None:
    of_pod, of_point = debugger(), debugger()
    of_pod.add(BreakpointSpec(pod="default/web"))
    of_point.add(BreakpointSpec(point="filter"))
    way = [at("filter", "A"), at("score", "B"), at("filter", "C"), at("filter", "A", cycle=2)]
    for one, stops in ((of_pod, [True, False, False, True]), (of_point, [True, False, False, True])):
        found = []
        for here in way:
            found.append(one.arrives(here))
            one.resume()
        assert found == stops


def test_a_breakpoint_of_an_outcome_stops_at_each_rejection_of_an_attempt() -> None:
    one = debugger()
    one.add(BreakpointSpec(outcome="rejected"))
    stops = []
    for plugin in "AB":
        stops.append(one.arrives(at("preFilter", plugin, outcome="rejected")))
        one.resume()
    assert stops == [True, True]


@pytest.mark.parametrize("field", [each.name for each in attrs.fields(BreakpointSpec)])
def test_a_breakpoint_needs_any_one_criterion(field: str) -> None:
    assert not BreakpointSpec()
    assert BreakpointSpec(**{field: "x"})


def test_a_condition_can_use_the_number_of_nodes() -> None:
    one = debugger()
    one.add(BreakpointSpec(condition="nodes == 2"))
    assert [one.arrives(at(rows=rows)) for rows in (None, np.arange(1), np.arange(2))] == [False, False, True]


def test_a_breakpoint_is_passed_as_often_as_it_is_to_be_ignored() -> None:
    one = debugger()
    made = one.add(BreakpointSpec(plugin="A"), ignore=2)
    assert [one.arrives(at(plugin="A", cycle=cycle)) for cycle in (1, 2, 3)] == [False, False, True]
    assert (made.hits, made.ignore) == (3, 0)


def test_a_breakpoint_for_once_is_gone_when_it_has_stopped_somebody() -> None:
    one = debugger()
    one.add(BreakpointSpec(plugin="A"), once=True)
    assert one.arrives(at(plugin="A"))
    assert one.breakpoints == {}


def test_a_condition_that_fails_disables_its_breakpoint_and_scheduling_goes_on() -> None:
    one = debugger()
    made = one.add(BreakpointSpec(condition="pod.spec.nonsense == 3"))
    assert not one.arrives(at())
    assert not made.enabled
    assert "no such key: nonsense" in made.disabled_because
    assert not one.engaged


def test_a_condition_on_what_is_no_variable_is_refused_with_those_there_are() -> None:
    with pytest.raises(CelCompileError) as unknown:
        debugger().add(BreakpointSpec(condition="nodez > 3"))
    assert "undeclared reference to 'nodez'" in unknown.value.why
    assert unknown.value.why.endswith("\na condition is CEL on pod, attempt, point, plugin, outcome, node, nodes, time")
    with pytest.raises(CelCompileError) as no_condition:
        compile_state_condition("pending")
    assert no_condition.value.why.startswith("must evaluate to bool or the unknown type, not int\na condition is ")


@pytest.mark.parametrize(
    ("until", "state", "reached"),
    [
        pytest.param({"time_s": 10.0}, {}, True, id="a-time"),
        pytest.param({"time_s": 11.0}, {}, False, id="a-later-time"),
        pytest.param({"scheduled": 3}, {"scheduled": 3}, True, id="so-many-pods"),
        pytest.param({"scheduled": 4}, {"scheduled": 3}, False, id="more-pods"),
        pytest.param({"condition": "pending == 0 && nodes > 1"}, {"nodes": 2}, True, id="a-condition"),
        pytest.param({"condition": "pending == 1"}, {}, False, id="a-condition-not-yet"),
        pytest.param({"condition": "1 / pending == 1"}, {}, True, id="a-condition-that-fails-stops"),
    ],
)
def test_a_run_ends_when_what_it_is_to_end_with_has_come(
    until: dict[str, Any], state: dict[str, int], reached: bool
) -> None:
    one = debugger(**state)
    if "condition" in until:
        until = {"condition": compile_condition(until["condition"], STATE_VARIABLES)}
    one.run_until(Until("until then", **until))
    assert one.lets_begin(10.0) is not reached


def test_one_client_decides_at_a_time() -> None:
    one = debugger()
    one.attach("a")
    with pytest.raises(DebuggerHeld, match="client a holds the debugger"):
        one.attach("b")
    one.attach("b", take=True)
    assert one.holder == "b"


@pytest.mark.parametrize("keep", [False, True])
def test_when_the_client_goes_scheduling_goes_on_unless_it_said_keep(keep: bool) -> None:
    one = debugger()
    one.attach("a", keep=keep)
    made = one.add(BreakpointSpec(plugin="A"), by="a")
    one.pause(0.0)
    one.detach("somebody else")
    assert one.stop is not None
    one.detach("a")
    assert one.holder == ""
    assert (one.stop is not None) is keep
    assert made.enabled is keep


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"pod": "*a" * 500_000}, "pod: 1000000 characters are too long: at most 507"),
        ({"node": "n" * 254}, "node: 254 characters are too long: at most 253"),
        ({"plugin": "P" * 254}, "plugin: 254 characters are too long: at most 253"),
        ({"selector": "a=b," * 10_000}, "selector: 40000 characters are too long: at most 10240"),
    ],
)
def test_what_is_longer_than_anything_it_could_match_is_refused(spec: dict[str, str], why: str) -> None:
    one = debugger()
    with pytest.raises(BreakpointRefused) as refused:
        one.add(BreakpointSpec(**spec))
    assert (str(refused.value), one.breakpoints) == (why, {})


def test_there_is_a_limit_to_breakpoints_since_every_attempt_looks_at_each() -> None:
    one = debugger()
    for _ in range(MOST_BREAKPOINTS):
        one.add(BreakpointSpec(pod="*"))
    with pytest.raises(BreakpointRefused, match="100 breakpoints, the maximum"):
        one.add(BreakpointSpec(pod="*"))
    one.delete(1)
    assert one.add(BreakpointSpec(pod="*")).number == MOST_BREAKPOINTS + 1


def _nested(levels: int) -> str:
    text = "true"
    for level in range(levels):
        text = f"[0,1,2,3,4,5,6,7,8,9].all(x{level}, {text})"
    return text


def test_a_condition_that_costs_too_much_is_given_up_long_before_others_feel_it() -> None:
    one = debugger()
    made = one.add(BreakpointSpec(condition=_nested(4)))
    assert not one.arrives(at())
    assert "cost limit" in made.disabled_because
    one.run_until(Until("until it is so", condition=compile_state_condition(_nested(4))))
    one.tick(1.0)
    assert one.stop is not None
    assert "cost limit" in one.stop.why
    assert compile_state_condition(_nested(2)).holds({**STATE, "time": 0.0})


@pytest.mark.parametrize("ends", ["pause", "resume", "step", "next", "another until", "reached"])
def test_a_breakpoint_of_an_until_goes_with_it(ends: str) -> None:
    one = debugger()
    mine = one.add(BreakpointSpec(pod="mine"))
    for_now = one.add(BreakpointSpec(pod="default/other"), once=True)
    one.run_until(Until("until pod other", 5.0, breakpoint=for_now.number))
    match ends:
        case "pause":
            one.pause(1.0)
        case "resume":
            one.resume()
        case "step":
            one.step(1)
        case "next":
            one.next()
        case "another until":
            one.run_until(Until("until t", 9.0))
        case _:
            one.tick(5.0)
    assert list(one.breakpoints) == [mine.number]
