"""What filters that read a Node alone said of pods with the same key holds for pods of any kind with that key.

Every pod that is tried is of a kind of its own, so that no evaluation is cached by its signature; few tolerations and
selectors are drawn, so that most of them find an entry. A scheduler that keeps nothing comes to the same.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling import node_verdicts
from kschedd.scheduling.outcome import ScheduleResult
from kschedd.scheduling.work import drive
from tests.scheduling.test_evaluation_cache import (
    TAINT,
    ZONES,
    Fussy,
    Trial,
    changes,
    node,
    outcome,
    pod,
    scheduler,
)


def of_its_own_kind(pod: Pod) -> Pod:
    return Pod.from_raw({**pod.raw, "metadata": {**pod.raw["metadata"], "labels": {**pod.labels, "pod": pod.name}}})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(changes, st.sampled_from([0, 1, 2, 3, 5])), min_size=6, max_size=30),
    st.sampled_from([(), (Fussy,)]),
)
def test_what_is_kept_by_key_is_what_the_filters_say(script: list[Any], added: tuple[type[Any], ...]) -> None:
    trial = Trial(*added)
    trial.change(0, ("node", 0, 4, "a", [], False))
    for number, (change, shape) in enumerate(script, 1):
        trial.change(number, change)
        for always in (0, 1, 2, shape):
            incoming = of_its_own_kind(pod(f"a{number}-{always}", always))
            result = trial.attempt(incoming)
        if isinstance(result, ScheduleResult) and number % 3 == 0:
            trial.placed.append(trial.cluster.assume(incoming, result.node_name))


@pytest.mark.parametrize("most", [1, 256], ids=["entries-are-dropped", "all-are-kept"])
def test_a_stream_of_pods_of_kinds_of_their_own_is_placed_as_without(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more nodes than a search visits, from one search's end to the next, round the end, until no node is left."""
    monkeypatch.setattr(node_verdicts, "_MOST", most)
    monkeypatch.setattr(node_verdicts, "_FEWEST", 1)

    def run(cached: bool) -> list[Any]:
        cluster = SchedulerCache()
        for number in range(300):
            cluster.put_node(node(number, 2, ZONES[number % 2], [TAINT] if number % 7 == 0 else [], number % 11 == 0))
        machine = scheduler(cluster, cached)
        outcomes = []
        for number in range(700):
            incoming = of_its_own_kind(pod(f"p{number}", (0, 1, 2, 3, 8)[number % 5]))
            result = drive(machine.attempt(incoming, {}))
            outcomes.append((*outcome(result), machine.start.index))
            if isinstance(result, ScheduleResult):
                cluster.assume(incoming, result.node_name)
            if number == 400:
                cluster.put_node(node(1, 8, "a", [TAINT], False))
                cluster.remove_node("n2")
        return outcomes

    found = run(True)
    assert found == run(False)
    assert len({len(one) for one in found}) == 2, "some found a node and some did not"


def test_a_key_has_an_entry_from_its_second_pod_on() -> None:
    cluster = SchedulerCache()
    for number in range(3):
        cluster.put_node(node(number, 4, "a", [TAINT] if number == 1 else [], False))
    machine = scheduler(cluster, True)
    verdicts = node_verdicts.NodeVerdicts(machine.profile, cluster)
    assert [one.name for one in verdicts.filters] == ["NodeUnschedulable", "TaintToleration", "NodeAffinity"]
    first, second, third = (verdicts.of(CycleState(), of_its_own_kind(pod(f"p{number}", 0))) for number in range(3))
    assert first is None
    assert second is third
    assert second is not None
    assert [cluster.table.names[row] for row in second.rows.tolist()] == ["n0", "n2"]


def test_a_filter_after_those_with_a_key_may_reject_pods_that_have_entries() -> None:
    cluster = SchedulerCache()
    for number in range(2):
        cluster.put_node(node(number, 4, "a", [], False))
    verdicts = node_verdicts.NodeVerdicts(scheduler(cluster, True).profile, cluster)

    def on_a_port(name: str) -> Pod:
        raw = pod(name, 0).raw
        port = {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
        containers = [{**container, "ports": [port]} for container in raw["spec"]["containers"]]
        return Pod.from_raw({**raw, "spec": {**raw["spec"], "containers": containers}})

    assert verdicts.of(CycleState(), on_a_port("a")) is None
    assert verdicts.of(CycleState(), on_a_port("b")) is not None
    assert "NodePorts" in [one.name for one in verdicts.others]
