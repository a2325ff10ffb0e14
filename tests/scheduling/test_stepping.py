"""Tests of attempts step by step: the same results as without stops, and the effects of changes at a stop."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kschedd.answers import plain
from kschedd.conformance.records import read_records
from kschedd.conformance.report import RecordOutcome
from kschedd.conformance.verify import check
from kschedd.controllers.embedded import embedded_controllers
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.debug.breakpoints import BreakpointSpec, StopPoint
from kschedd.scheduling.debug.debugger import Debugger, NotStopped
from kschedd.scheduling.debug.stepper import VETOED, Stepper
from kschedd.scheduling.stops import interventions
from kschedd.scheduling.stops.view import stopped_at, where
from kschedd.simulation.engine import Engine
from tests.conftest import SharedPart
from tests.scheduling.driven import node, pod

_SAMPLE = 60  # records of each family


@pytest.fixture
def stepping(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stop every attempt at every plugin from now on; return the list of stops."""
    stops: list[str] = []
    plain = Scheduler.attempt

    def attempt(self: Scheduler, pod: Any, nominated: Any, **options: Any) -> Iterator[Any]:
        if options:
            return (yield from plain(self, pod, nominated, **options))
        debugger = Debugger(dict)
        debugger.add(BreakpointSpec(outcome="rejected"))
        debugger.next()
        debugger.began(pod)
        work = plain(self, pod, nominated, stepper=Stepper(debugger, pod, 1, self.cluster.table, 1))
        answers: Any = None
        while True:
            try:
                requests = work.send(answers)
            except StopIteration as end:
                return end.value
            if isinstance(requests, StopPoint):
                stops.append(requests.point)
                debugger.next()
                answers = []
            else:
                answers = yield requests

    monkeypatch.setattr(Scheduler, "attempt", attempt)
    return stops


@pytest.mark.parametrize("family", ["corners", "defaultpreemption", "dynamicresources", "mixed", "volumebinding"])
def test_stopped_at_each_plugin_golden_records_come_out_the_same(
    shared_part: SharedPart, stepping: list[str], family: str
) -> None:
    golden: Path = shared_part("conformance") / f"{family}.jsonl.gz"
    for _, record in zip(range(_SAMPLE), read_records(golden), strict=False):
        verdict = check(record, remembered=False)
        assert verdict.outcome is RecordOutcome.PASSED, (record.id, verdict.differences)
    assert {"preFilter", "filter"} <= set(stepping)


def cluster(*objects: Any) -> Engine:
    engine = Engine(seed=3, controllers=embedded_controllers())
    for raw in objects:
        engine.store.create(raw)
    return engine


def log(step: bool) -> tuple[list[Any], int]:
    """Return the decisions about some pods, with or without a stop at every plugin, and the number of stops."""
    decided: list[Any] = []
    engine = Engine(seed=3, controllers=embedded_controllers(), on_decision=lambda each: decided.append(each.line()))
    stops = 0
    if step:
        engine.driver.debugger.next()
    for number in range(4):
        engine.store.create(node(f"n{number}", cpu=str(1 + number % 2)))
    for number in range(9):
        engine.store.create(new(f"p{number}", cpu=f"{300 + 170 * number}m", priority=number % 3))
    engine.run_until_idle()
    while engine.driver.debugger.stop is not None:
        stops += 1
        engine.driver.debugger.next()
        engine.run_until_idle()
    engine.driver.debugger.resume()
    engine.advance(engine.now + 60)
    return decided, stops


def new(name: str, **options: Any) -> dict[str, Any]:
    """Return a pod as a user creates it."""
    raw = pod(name, **options)
    raw["metadata"] = {"name": name, "namespace": "default"}
    raw["spec"].pop("priority", None)
    return raw


def test_the_decision_log_is_the_same_with_a_stop_at_every_plugin() -> None:
    plain, none = log(step=False)
    stepped, stops = log(step=True)
    assert none == 0
    assert stops > 9 * 5
    assert stepped == plain


def stopped(engine: Engine, **spec: str) -> None:
    """Run to this breakpoint."""
    engine.driver.debugger.add(BreakpointSpec(**spec), once=True)
    engine.run_until_idle()
    assert engine.driver.debugger.stop is not None


def ended(engine: Engine) -> str:
    """Continue to the end; return the node of the pod `web`."""
    engine.driver.debugger.resume()
    engine.run_until_idle()
    found = engine.current_pod("default/web")
    assert found is not None
    return found.node_name


def two_nodes() -> Engine:
    return cluster(node("big", cpu="8"), node("small", cpu="1"), new("web", cpu="500m"))


def test_what_is_known_at_a_stop() -> None:
    engine = cluster(node("big", cpu="8"), node("tiny", cpu="100m"), node("small", cpu="1"), new("web", cpu="500m"))
    stopped(engine, point="score", plugin="NodeResourcesBalancedAllocation")
    at = plain(stopped_at(engine.driver))
    assert at is not None
    assert (at["pod"], at["point"], at["plugin"]) == ("default/web", "score", "NodeResourcesBalancedAllocation")
    attempt = plain(where(engine.driver, 10))["attempt"]
    assert attempt["left"] == {"count": 2, "nodes": ["big", "small"]}
    assert attempt["rejected"] == {
        "count": 1,
        "nodes": [{"node": "tiny", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}],
    }
    assert [each["node"] for each in attempt["scores"]] == ["big", "small"]
    assert "NodeResourcesFit" in attempt["scores"][0]["plugins"]
    assert ended(engine) == "big"


def test_what_plugins_keep_is_shown_without_addresses_that_are_others_in_each_run() -> None:
    raw = new("web", cpu="500m")
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    raw["spec"]["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"a": "b"}}}]
    engine = cluster(node("big", cpu="8"), node("small", cpu="1"), raw)
    stopped(engine, point="score")
    kept = plain(where(engine.driver, 10))["attempt"]["cycle_state"]["data"]["PodTopologySpread"]
    assert "NodeTable object>" in kept
    ended(engine)


@pytest.mark.parametrize("point", ["preFilter", "filter", "preScore", "score"])
def test_a_forced_node_is_chosen_wherever_it_is_forced(point: str) -> None:
    engine = two_nodes()
    stopped(engine, point=point)
    assert interventions.force(engine.driver, "small") == []
    assert ended(engine) == "small"


def test_at_its_outcome_an_attempt_can_still_be_turned() -> None:
    engine = two_nodes()
    stopped(engine, outcome="scheduled")
    interventions.force(engine.driver, "small")
    assert ended(engine) == "small"


def test_a_node_that_does_not_fit_is_forced_only_by_who_knows_it() -> None:
    engine = cluster(node("big", cpu="8"), node("tiny", cpu="100m"), new("web", cpu="500m"))
    stopped(engine, point="filter")
    with pytest.raises(interventions.DoesNotFit) as refused:
        interventions.force(engine.driver, "tiny")
    assert refused.value.reasons == ["NodeResourcesFit: Insufficient cpu"]
    assert interventions.force(engine.driver, "tiny", even_if_unfit=True) == ["NodeResourcesFit: Insufficient cpu"]
    with pytest.raises(interventions.UnknownNode):
        interventions.force(engine.driver, "nowhere")
    assert ended(engine) == "tiny"


@pytest.mark.parametrize("where_", [{"point": "filter"}, {"point": "score"}, {"outcome": "scheduled"}])
def test_a_vetoed_node_is_not_chosen(where_: dict[str, str]) -> None:
    engine = two_nodes()
    stopped(engine, **where_)
    interventions.veto(engine.driver, "big")
    assert ended(engine) == "small"


def test_with_every_node_vetoed_the_pod_goes_back_to_the_queue() -> None:
    engine = two_nodes()
    stopped(engine, outcome="scheduled")
    for name in ("big", "small"):
        interventions.veto(engine.driver, name)
    assert ended(engine) == ""
    entry = engine.queue.entry("default/web")
    assert entry is not None
    engine.advance(engine.now + 15)
    assert ended(engine) == "big"


def test_a_pod_is_told_which_nodes_were_vetoed() -> None:
    engine = two_nodes()
    stopped(engine, point="filter")
    for name in ("big", "small"):
        interventions.veto(engine.driver, name)
    assert ended(engine) == ""
    found = engine.current_pod("default/web")
    assert found is not None
    [condition] = found.status["conditions"]
    assert condition["message"].startswith(f"0/2 nodes are available: 2 {VETOED}.")


def test_a_replaced_score_counts() -> None:
    engine = two_nodes()
    stopped(engine, point="score")
    for plugin in ("TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation"):
        interventions.score(engine.driver, "big", plugin, 0)
        interventions.score(engine.driver, "small", plugin, 100)
    with pytest.raises(interventions.CannotReplace, match="from 0 to 100"):
        interventions.score(engine.driver, "big", "NodeResourcesFit", 101)
    with pytest.raises(interventions.CannotReplace, match="scores no nodes"):
        interventions.score(engine.driver, "big", "NodeName", 1)
    assert ended(engine) == "small"


@pytest.mark.parametrize("where_", [{"point": "filter"}, {"outcome": "scheduled"}, {"point": "reserve"}])
def test_a_dropped_attempt_leaves_nothing_and_its_pod_is_tried_again(where_: dict[str, str]) -> None:
    engine = two_nodes()
    stopped(engine, **where_)
    interventions.drop(engine.driver)
    assert ended(engine) == ""
    assert engine.machine.cluster.pod_count == 0
    engine.advance(engine.now + 15)
    assert ended(engine) == "big"


def test_what_makes_no_sense_is_refused() -> None:
    engine = two_nodes()
    with pytest.raises(NotStopped, match="not paused"):
        interventions.drop(engine.driver)
    engine.driver.debugger.pause(engine.now)
    with pytest.raises(NotStopped, match="`debug next` begins one"):
        interventions.force(engine.driver, "big")
    engine.driver.debugger.resume()
    stopped(engine, point="bind")
    with pytest.raises(NotStopped, match="is chosen for default/web already"):
        interventions.veto(engine.driver, "big")
    with pytest.raises(NotStopped, match="is being bound"):
        interventions.drop(engine.driver)
    assert ended(engine) == "big"


def test_the_cluster_does_not_change_within_a_stopped_attempt_and_everything_else_goes_on() -> None:
    engine = two_nodes()
    stopped(engine, point="filter")
    engine.store.create(node("later", cpu="64"))
    engine.store.create(new("other", cpu="100m"))
    engine.run_until_idle()
    assert engine.machine.cluster.table.node_count == 2
    assert ended(engine) == "big"
    assert engine.machine.cluster.table.node_count == 3
    other = engine.current_pod("default/other")
    assert other is not None
    assert other.node_name == "later"


def test_victims_are_shown_before_they_are_evicted() -> None:
    vip = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "vip"}, "value": 1000}
    engine = cluster(node("one", cpu="1"), new("old", cpu="800m"), vip)
    engine.run_until_idle()
    raw = new("web", cpu="800m")
    raw["spec"]["priorityClassName"] = "vip"
    engine.store.create(raw)
    stopped(engine, outcome="preempting")
    attempt = plain(where(engine.driver, 10))["attempt"]
    assert attempt["victims"] == [{"pod": "default/old", "node": "one", "priority": 0}]
    assert attempt["nominated_node"] == "one"
    old = engine.current_pod("default/old")
    assert old is not None
    assert not old.deletion_timestamp
    ended(engine)
    old = engine.current_pod("default/old")
    assert old is None or old.deletion_timestamp
