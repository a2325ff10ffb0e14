"""Tests of the changes that are rejected at a stop, and of the reasons why a node cannot be forced."""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.scheduling.debug.debugger import NotStopped
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.stops import interventions
from kschedd.scheduling.stops.interventions import CannotReplace, DoesNotFit, UnknownNode
from kschedd.simulation.engine import Engine
from tests.scheduling.driven import node, pod
from tests.scheduling.test_stepping import cluster, ended, new, stopped


def at(point: str, **web: Any) -> Engine:
    """Return a cluster that is stopped before the first plugin of this extension point."""
    raw = new("web", cpu="500m")
    raw["spec"] |= web
    engine = cluster(node("big", cpu="8"), node("small", cpu="1"), node("tiny", cpu="100m"), raw)
    stopped(engine, point=point)
    return engine


def stepper(engine: Engine) -> Stepper:
    found = engine.driver.attempts.stepper
    assert found is not None
    return found


def reasons(engine: Engine, name: str) -> list[str]:
    """Return why the node cannot be forced."""
    return interventions.why_not(engine.driver, stepper(engine), stepper(engine).table.row_of[name])


def test_a_node_that_fits_has_no_reason() -> None:
    engine = at("filter")
    assert (reasons(engine, "big"), reasons(engine, "tiny")) == ([], ["NodeResourcesFit: Insufficient cpu"])
    with pytest.raises(DoesNotFit, match=r"^pod default/web does not fit on tiny: NodeResourcesFit: Insufficient cpu$"):
        interventions.force(engine.driver, "tiny")


def test_a_rejection_by_pre_filter_is_the_reason_for_each_node() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}
    engine = at("preFilter", volumes=[claim])
    assert reasons(engine, "big") == ['VolumeRestrictions: persistentvolumeclaim "missing" not found']


def test_nodes_that_pre_filter_excludes_have_this_reason() -> None:
    only_big = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["big"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only_big]}}
    engine = at("filter", affinity={"nodeAffinity": required})
    assert reasons(engine, "big") == []
    assert reasons(engine, "small") == ["a PreFilter plugin leaves other nodes only"]


def test_pods_that_are_nominated_to_the_node_are_counted() -> None:
    engine = at("filter")
    other = Pod.from_raw(pod("other", cpu="800m", priority=10))
    engine.driver.pending.put(other)
    engine.driver.nominator.add(other, "small")
    assert reasons(engine, "small") == ["NodeResourcesFit: Insufficient cpu"]


@pytest.mark.parametrize(
    ("point", "name", "plugin", "value", "why"),
    [
        pytest.param("score", "big", "NodeResourcesFit", -1, "a score is from 0 to 100, not -1", id="too-low"),
        pytest.param("score", "big", "NodeResourcesFit", 101, "a score is from 0 to 100, not 101", id="too-high"),
        pytest.param("score", "big", "NodeName", 1, "NodeName scores no nodes in this profile: ", id="no-score-plugin"),
        pytest.param(
            "score",
            "big",
            "InterPodAffinity",
            1,
            "InterPodAffinity does not score this pod: its PreScore returned Skip",
            id="skipped",
        ),
        pytest.param("score", "tiny", "NodeResourcesFit", 1, "tiny is not one of the remaining nodes", id="rejected"),
    ],
)
def test_scores_that_cannot_be_replaced(point: str, name: str, plugin: str, value: int, why: str) -> None:
    engine = at(point)
    with pytest.raises(CannotReplace, match=rf"^{why}"):
        interventions.score(engine.driver, name, plugin, value)
    assert stepper(engine).replaced == {}


@pytest.mark.parametrize("value", [0, 100])
@pytest.mark.parametrize("point", ["preFilter", "filter", "score"])
def test_a_score_may_be_replaced_before_and_while_nodes_are_scored(point: str, value: int) -> None:
    engine = at(point)
    interventions.score(engine.driver, "big", "NodeResourcesFit", value)
    assert stepper(engine).replaced == {("NodeResourcesFit", "big"): value}


@pytest.mark.parametrize(
    "change",
    [
        lambda driver: interventions.force(driver, "gone"),
        lambda driver: interventions.veto(driver, "gone"),
        lambda driver: interventions.score(driver, "gone", "NodeResourcesFit", 1),
    ],
    ids=["force", "veto", "score"],
)
def test_a_node_that_does_not_exist_is_rejected(change: Any) -> None:
    with pytest.raises(UnknownNode, match=r'^there is no node "gone"$'):
        change(at("filter").driver)


@pytest.mark.parametrize("point", ["reserve", "preBind", "bind"])
def test_the_node_of_an_attempt_that_has_one_cannot_be_changed(point: str) -> None:
    engine = cluster(node("n1"), node("n2"), new("web", cpu="500m"))
    stopped(engine, point=point)
    for change in (interventions.force, interventions.veto):
        with pytest.raises(NotStopped, match=r"^n\d is chosen for default/web already: `debug drop` ends the attempt$"):
            change(engine.driver, "n1")


def test_an_attempt_can_be_dropped_until_its_pod_is_bound() -> None:
    engine = at("reserve")
    interventions.drop(engine.driver)
    assert ended(engine) == ""
    engine = at("bind")
    with pytest.raises(NotStopped, match=r"^pod default/web is being bound: the attempt is over$"):
        interventions.drop(engine.driver)


def test_the_attempt_of_an_earlier_stop_cannot_be_changed() -> None:
    engine = at("filter")
    ended(engine)
    engine.driver.debugger.pause(engine.now)
    with pytest.raises(NotStopped, match=r"^no attempt is in progress at this stop: `debug next` begins one$"):
        interventions.veto(engine.driver, "big")
