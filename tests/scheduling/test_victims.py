"""Tests of the victims of preemption in a cluster with PodGroups."""

from collections.abc import Sequence
from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND, PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.postfilter import Candidate
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.scheduling.debug.work import Work, drive
from kschedd.scheduling.nominations.counted import NominatedByRow, Nominations
from kschedd.scheduling.preemption.budgets import Budgets
from kschedd.scheduling.preemption.dry_run import NO_VICTIMS, DryRunResult
from kschedd.scheduling.preemption.row_pods import started
from kschedd.scheduling.preemption.victims import TakenOut, Victim, reprieved, select_among_groups, victims_among
from tests.scheduling.driven import node

TOO_FEW_LEFT = unschedulable("Insufficient cpu")


def pod(name: str, on: str = "n", priority: int = 1, group: str = "", start: int = 0, **labels: str) -> Pod:
    spec: dict[str, Any] = {"nodeName": on, "priority": priority, "containers": [{"name": "c"}]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    status = {"startTime": f"2026-01-01T00:00:0{start}Z"}
    meta = {"name": name, "namespace": "d", "uid": name, "labels": labels}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": status})


def group(name: str = "gang", priority: int = 1, whole: bool = True) -> Object:
    spec = {"priority": priority, "disruptionMode": {"all": {}} if whole else {"single": {}}}
    return Object.from_raw({"kind": KIND, "metadata": {"name": name, "namespace": "d"}, "spec": spec})


def budget(allowed: int) -> Object:
    spec, status = {"selector": {"matchLabels": {"app": "web"}}}, {"disruptionsAllowed": allowed}
    meta = {"name": "b", "namespace": "d"}
    return parse(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec, "status": status}
    )


def cluster(*there: Object, nodes: Sequence[str] = ("n", "m")) -> tuple[SchedulerCache, PodGroups]:
    cache = SchedulerCache()
    cache.load([*(Node.from_raw(node(name)) for name in nodes), *there])
    groups = PodGroups(cache)
    for each in there:
        if isinstance(each, Pod):
            groups.put(each)
    return cache, groups


def names(victims: Sequence[Victim] | Status) -> list[str]:
    assert not isinstance(victims, Status)
    return ["+".join(each.name for each in victim.pods) for victim in victims]


def on_node(cache: SchedulerCache, name: str = "n") -> set[str]:
    return {each.name for each in cache.table.pods[cache.table.row_of[name]]}


def test_the_pods_of_a_group_that_is_disrupted_as_a_whole_are_one_victim_on_all_their_nodes() -> None:
    pods = pod("a", group="gang"), pod("alone"), pod("b", group="gang"), pod("c", "m", group="gang")
    _, groups = cluster(group(priority=5), *pods)
    found = victims_among(pods[:3], groups)
    assert names(found) == ["a+b+c", "alone"]
    assert not isinstance(found, Status)
    assert [(victim.priority, victim.of_group) for victim in found] == [(5, True), (1, False)]


def test_the_pods_of_another_group_are_a_victim_each_with_the_priority_of_the_group() -> None:
    pods = pod("a", group="gang"), pod("b", group="gang"), pod("lost", group="deleted", priority=3)
    _, groups = cluster(group(priority=5, whole=False), *pods)
    found = victims_among(pods, groups)
    assert names(found) == ["a", "b", "lost"]
    assert not isinstance(found, Status)
    assert [(victim.priority, victim.of_group) for victim in found] == [(5, True), (5, True), (3, True)]


def test_a_group_with_a_pod_on_an_unknown_node_cannot_be_evicted() -> None:
    pods = pod("a", group="gang"), pod("b", "gone", group="gang")
    _, groups = cluster(group(), *pods)
    assert victims_among(pods[:1], groups) == Status(
        Code.ERROR,
        ('failed to get node info for node "gone" from snapshot: nodeinfo not found for node name "gone"',),
    )


def test_the_importance_of_victims() -> None:
    by_importance = [
        Victim([pod("x")], 2, False),
        Victim([pod("x"), pod("y")], 1, True),
        Victim([pod("x", start=3), pod("y", start=1)], 1, True),
        Victim([pod("x", start=2), pod("y", start=2)], 1, True),
        Victim([pod("x", start=1)], 1, True),
        Victim([pod("x", start=1)], 1, False),
        Victim([pod("x", start=2)], 1, False),
    ]
    assert sorted(reversed(by_importance), key=lambda victim: victim.importance) == by_importance


def test_victims_are_back_on_their_nodes_at_the_end_in_any_case() -> None:
    pods = pod("a"), pod("b", "m")
    cache, _ = cluster(*pods)

    def fails() -> None:
        with TakenOut(cache) as taken:
            taken.take(Victim(pods, 1, True))
            taken.take(Victim([pod("unknown")], 1, False))
            assert (on_node(cache), on_node(cache, "m")) == (set(), set())
            taken.put_back(Victim(pods[:1], 1, True))
            assert (on_node(cache), on_node(cache, "m")) == ({"a"}, set())
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert (on_node(cache), on_node(cache, "m")) == ({"a"}, {"b"})


def room_for(cache: SchedulerCache, most: int) -> Any:
    """Return a check that the node has at most this number of pods."""

    def fits() -> Work[bool]:
        yield from ()
        return len(on_node(cache)) <= most

    return fits


def reprieve(most: int, *there: Object) -> tuple[list[str], int]:
    """Return the victims on a node if it must keep at most `most` pods, and the number of violations."""
    cache, groups = cluster(*there)
    victims = victims_among([each for each in there if isinstance(each, Pod)], groups)
    assert not isinstance(victims, Status)
    with TakenOut(cache) as taken:
        for victim in victims:
            taken.take(victim)
        gone, violations = drive(reprieved(victims, Budgets(cache), taken, room_for(cache, most)))
        assert len(on_node(cache)) <= most, "the others are taken out again"
    return names(gone), violations


def test_the_most_important_victims_are_reprieved() -> None:
    pods = pod("low", priority=1), pod("high", priority=3), pod("middle", priority=2)
    assert reprieve(1, *pods) == (["middle", "low"], 0)
    assert reprieve(3, *pods) == ([], 0)


def test_victims_that_a_budget_protects_are_reprieved_first() -> None:
    pods = pod("high", priority=3), pod("web", priority=1, app="web"), pod("middle", priority=2)
    assert reprieve(1, budget(0), *pods) == (["high", "middle"], 0)
    assert reprieve(1, budget(1), *pods) == (["middle", "web"], 0)


def test_each_pod_of_a_victim_that_violates_a_budget_counts() -> None:
    gang = pod("a", group="gang", app="web"), pod("b", group="gang", app="web"), pod("c", group="gang")
    assert reprieve(0, budget(0), group(), *gang) == (["a+b+c"], 2)
    assert reprieve(0, budget(1), group(), *gang) == (["a+b+c"], 1)


def preempt(judged: Any, *there: Object, priority: int = 10) -> DryRunResult:
    cache, groups = cluster(*there)
    incoming = pod("incoming", "", priority)
    counted = Nominations().counted(cache.table, incoming)

    def judged_on(pod: Pod, name: str, nominated: NominatedByRow) -> Work[Status | None]:
        yield from ()
        assert (pod, nominated) == (incoming, counted)
        answer: Status | None = judged(on_node(cache, name))
        return answer

    before = on_node(cache)
    result = select_among_groups(groups, incoming, cache.table.row_of["n"], Budgets(cache), counted, judged_on)
    assert on_node(cache) == before
    return result


def test_only_victims_of_a_lower_priority_are_evicted() -> None:
    equal, gang = pod("equal", priority=10), (pod("a", group="gang"), pod("b", "m", group="gang"))
    needs_all = preempt(lambda left: TOO_FEW_LEFT if left - {"equal"} else None, group(priority=9), equal, *gang)
    assert isinstance(needs_all.outcome, Candidate)
    assert [each.name for each in needs_all.outcome.victims] == ["a", "b"]
    assert preempt(lambda left: None, equal).outcome == NO_VICTIMS
    assert preempt(lambda left: None, group(priority=10), *gang).outcome == NO_VICTIMS


def test_a_node_that_the_pod_does_not_fit_without_all_victims_is_no_candidate() -> None:
    assert preempt(lambda left: TOO_FEW_LEFT, pod("a")).outcome == TOO_FEW_LEFT


def test_a_candidate_without_victims_is_an_error() -> None:
    outcome = preempt(lambda left: None, pod("a")).outcome
    assert outcome == Status(Code.ERROR, ('expected at least one victim pod on node "n"',))


def test_a_candidate_has_the_figures_by_which_candidates_are_compared() -> None:
    pods = pod("a", priority=4, start=2), pod("b", priority=6, start=1), pod("c", priority=7, start=3)
    found = preempt(lambda left: TOO_FEW_LEFT if left else None, *pods)
    assert isinstance(found.outcome, Candidate)
    assert [each.name for each in found.outcome.victims] == ["c", "b", "a"]
    assert (found.highest, found.priorities, found.earliest) == (7, 17, started(pods[2]))


def test_a_group_with_a_pod_on_an_unknown_node_makes_the_node_no_candidate() -> None:
    found = preempt(lambda left: None, group(), pod("a", group="gang"), pod("b", "gone", group="gang")).outcome
    assert isinstance(found, Status)
    assert found.message.startswith('failed to get node info for node "gone" from snapshot')
