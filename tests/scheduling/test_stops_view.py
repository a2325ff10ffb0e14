"""Tests of the state of a stop as clients see it: the stop, the breakpoints, and the stopped attempt."""

from types import MappingProxyType
from typing import Any

import pytest

from kschedd.answers import plain
from kschedd.scheduling.debug.breakpoints import BreakpointSpec
from kschedd.scheduling.debug.debugger import Until
from kschedd.scheduling.inputs import PodsPopped
from kschedd.scheduling.stops import interventions
from kschedd.scheduling.stops.view import (
    BreakpointTargets,
    debugger_state,
    described_breakpoint,
    stopped_at,
    where,
)
from kschedd.simulation.engine import Engine
from tests.scheduling.driven import Driven, node, pod
from tests.scheduling.test_stepping import cluster, new, stopped

NOTHING = {"breakpoint": None, "pod": None, "point": None, "plugin": None, "outcome": None, "node": None}


def attempt_at(engine: Engine, most: int = 10) -> dict[str, Any]:
    """Return the stopped attempt with at most this many nodes and pods in each list."""
    found: dict[str, Any] = plain(where(engine.driver, most))["attempt"]
    return found


def two_nodes(**web: Any) -> Engine:
    return cluster(node("big", cpu="8"), node("small", cpu="1"), new("web", cpu="500m", **web))


def test_while_scheduling_runs_nothing_is_stopped() -> None:
    engine = two_nodes()
    assert stopped_at(engine.driver) is None
    assert plain(debugger_state(engine.driver)) == {
        "stopped": None,
        "running_until": None,
        "holder": None,
        "keep": False,
        "breakpoints": 0,
    }
    found = plain(where(engine.driver, 10))
    assert (found["attempt"], found["group"]) == (None, None)


def test_the_client_its_breakpoints_and_its_condition_are_shown() -> None:
    engine = two_nodes()
    debugger = engine.driver.debugger
    debugger.attach("me", keep=True)
    debugger.add(BreakpointSpec(point="filter"))
    debugger.run_until(Until("until 3 pods are scheduled", scheduled=3))
    assert plain(debugger_state(engine.driver)) == {
        "stopped": None,
        "running_until": "until 3 pods are scheduled",
        "holder": "me",
        "keep": True,
        "breakpoints": 1,
    }


def test_a_stop_between_two_attempts_names_the_next_pod_if_it_is_known() -> None:
    engine = two_nodes()
    engine.driver.debugger.pause(0.0)
    begin = {"why": "paused", "since": "1970-01-01T00:00:00Z"}
    assert plain(stopped_at(engine.driver)) == {**NOTHING, **begin}
    assert plain(where(engine.driver, 10))["attempt"] is None
    run = Driven()
    run.see(node(), pod("p"))
    run.driver.step(PodsPopped([run.entry("p")]))
    run.driver.debugger.pause(0.0)
    assert plain(stopped_at(run.driver)) == {**NOTHING, **begin, "pod": "default/p"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"point": "filter"}, {"point": "filter", "plugin": "NodeName"}, id="a-filter"),
        pytest.param({"outcome": "scheduled"}, {"outcome": "scheduled", "node": "big"}, id="the-outcome"),
        pytest.param({"point": "bind"}, {"point": "bind", "plugin": "DefaultBinder", "node": "big"}, id="the-binding"),
    ],
)
def test_a_stop_within_an_attempt_names_its_place(spec: dict[str, str], expected: dict[str, str]) -> None:
    engine = two_nodes()
    stopped(engine, **spec)
    at = plain(stopped_at(engine.driver))
    assert at.pop("since")
    assert at == {**NOTHING, "why": "breakpoint 1", "breakpoint": 1, "pod": "default/web", **expected}


def test_a_breakpoint_is_described_with_what_is_set() -> None:
    engine = two_nodes()
    engine.run_until_idle()
    debugger, targets = engine.driver.debugger, BreakpointTargets(engine.driver)
    all_set = BreakpointSpec(
        pod="default/web", selector="app=web", node="big", plugin="NodeName", point="filter", condition="attempt > 1"
    )
    debugger.add(all_set, once=True, ignore=2)
    debugger.add(BreakpointSpec(outcome="scheduled"))
    debugger.breakpoints[2].hits = 3
    debugger.breakpoints[2].disable("of no use")
    first, second = (plain(described_breakpoint(each, targets)) for each in debugger.breakpoints.values())
    assert first == {
        **{"id": 1, "pod": "default/web", "selector": "app=web", "node": "big", "plugin": "NodeName"},
        **{"point": "filter", "outcome": None, "condition": "attempt > 1", "enabled": True, "disabled_because": ""},
        **{"hits": 0, "ignore": 2, "once": True, "warnings": ['no pod "default/web" is pending now']},
    }
    unset = dict.fromkeys(("pod", "selector", "node", "plugin", "point", "condition"))
    assert second == {
        **unset,
        **{"id": 2, "outcome": "scheduled", "enabled": False, "disabled_because": "of no use"},
        **{"hits": 3, "ignore": 0, "once": False, "warnings": []},
    }


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param({"node": "big", "plugin": "NodeName", "pod": "default/web"}, [], id="all-exist"),
        pytest.param({"node": "gone"}, ['there is no node "gone" now'], id="a-node"),
        pytest.param({"plugin": "Gone"}, ['no profile has a plugin "Gone"'], id="a-plugin"),
        pytest.param({"pod": "default/gone"}, ['no pod "default/gone" is pending now'], id="a-pod"),
        pytest.param({"pod": "default/gone*"}, [], id="a-pattern"),
        pytest.param({"pod": "default/gon?"}, [], id="a-pattern-of-one-character"),
        pytest.param({"pod": "default/gon[ef]"}, [], id="a-pattern-of-several-characters"),
    ],
)
def test_names_that_do_not_exist_are_warnings(spec: dict[str, str], warnings: list[str]) -> None:
    engine = two_nodes()
    stopped(engine, point="filter")
    debugger = engine.driver.debugger
    debugger.add(BreakpointSpec(**spec))
    [*_, added] = debugger.breakpoints.values()
    assert plain(described_breakpoint(added, BreakpointTargets(engine.driver)))["warnings"] == warnings


def test_lists_are_cut_off_but_numbers_are_those_of_all_nodes() -> None:
    tiny = [node(f"tiny-{number}", cpu="100m") for number in range(3)]
    engine = cluster(node("big", cpu="8"), node("small", cpu="1"), *tiny, new("web", cpu="500m"))
    stopped(engine, outcome="scheduled")
    attempt = attempt_at(engine, most=1)
    assert (attempt["number"], attempt["nodes"]) == (1, 5)
    assert (attempt["left"]["count"], len(attempt["left"]["nodes"])) == (2, 1)
    rejected = {"node": "tiny-0", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}
    assert attempt["rejected"] == {"count": 3, "nodes": [rejected]}
    [best] = attempt["scores"]
    assert best["node"] == "big"
    assert best["total"] == sum(each["score"] * each["weight"] for each in best["plugins"].values())
    assert all(each["raw"] >= 0 for each in best["plugins"].values())


def test_before_the_first_filter_no_verdict_and_no_score_is_known() -> None:
    engine = two_nodes()
    stopped(engine, point="preFilter")
    attempt = attempt_at(engine)
    assert (attempt["left"], attempt["rejected"], attempt["scores"], attempt["victims"]) == (None, None, [], [])
    assert (attempt["narrowed_to"], attempt["pre_filter"], attempt["nominated_node"]) == (None, None, None)
    assert (attempt["forced"], attempt["vetoed"], attempt["replaced"]) == (None, [], [])


def test_nodes_to_which_pre_filter_narrows_and_its_rejection_are_shown() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in ("big", "n")]
    raw = new("web", cpu="500m")
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    raw["spec"]["affinity"] = {"nodeAffinity": required}
    engine = cluster(node("big", cpu="8"), raw)
    stopped(engine, point="filter")
    assert attempt_at(engine)["narrowed_to"] == ["big", "n"]
    assert attempt_at(engine, most=1)["narrowed_to"] == ["big"]

    raw = new("web", cpu="500m")
    raw["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    engine = cluster(node("big", cpu="8"), raw)
    stopped(engine, outcome="rejected")
    assert attempt_at(engine)["pre_filter"] == {
        "plugin": "VolumeRestrictions",
        "reasons": ['persistentvolumeclaim "missing" not found'],
    }


def test_changes_of_the_user_are_shown() -> None:
    engine = two_nodes()
    stopped(engine, point="score", plugin="NodeResourcesBalancedAllocation")
    interventions.score(engine.driver, "small", "NodeResourcesFit", 100)
    interventions.score(engine.driver, "big", "NodeResourcesFit", 7)
    interventions.veto(engine.driver, "big")
    interventions.force(engine.driver, "small")
    attempt = attempt_at(engine)
    assert (attempt["forced"], attempt["vetoed"]) == ("small", ["big"])
    assert attempt["replaced"] == [
        {"node": "big", "plugin": "NodeResourcesFit", "score": 7},
        {"node": "small", "plugin": "NodeResourcesFit", "score": 100},
    ]
    scores = {each["node"]: each["plugins"]["NodeResourcesFit"]["score"] for each in attempt["scores"]}
    assert scores == {"small": 100, "big": 7}


class Broken:
    def __repr__(self) -> str:
        raise ValueError("no idea")


def test_the_cycle_state_is_shown_as_text_that_is_neither_long_nor_fails() -> None:
    engine = two_nodes()
    stopped(engine, point="score")
    stepper = engine.driver.attempts.stepper
    assert stepper is not None
    assert stepper.state is not None
    stepper.state.data |= {"Broken": Broken(), "Long": "x" * 10_000, "A": MappingProxyType({"b": 1})}
    shown = attempt_at(engine)["cycle_state"]
    assert shown["data"]["Broken"] == "(cannot be shown: ValueError)"
    assert shown["data"]["A"] == "{'b': 1}"
    long = shown["data"]["Long"]
    assert (long[:3], long[-2:], len(long)) == ("'xx", "x…", 200)
    assert list(shown["data"]) == sorted(shown["data"])
    assert shown["skip_filter"] == sorted(stepper.state.skip_filter) != []
    assert shown["skip_score"] == sorted(stepper.state.skip_score) != []
