"""Tests of disruption budgets in preemption: which victims violate one (filterPodsWithPDBViolation)."""

from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.scheduling.preemption.budgets import Budgets


def budget(
    name: str, allowed: int | None = 0, selector: Any = None, namespace: str = "d", disrupted: tuple[str, ...] = ()
) -> Object:
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    meta = {"name": name, "namespace": namespace}
    raw = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "status": status}
    return parse({**raw, "spec": {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector}})


def pod(name: str, namespace: str = "d", **labels: str) -> Pod:
    meta = {"name": name, "namespace": namespace, "uid": name, "labels": labels}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {}})


def split(pods: list[Pod], *there: Object, first_only: bool = False) -> tuple[str, str, set[str]]:
    cluster = SchedulerCache()
    cluster.load(there)
    budgets = Budgets(cluster, first_only)
    budgets.refresh()
    found = budgets.split(pods)
    violating, others = ("".join(each.name for each in some) for some in (found.violating, found.others))
    return violating, others, set(found.covering)


WEB = [pod(name, app="web") for name in "abc"]


@pytest.mark.parametrize(
    ("there", "result"),
    [
        pytest.param([], ("", "abc", set()), id="without-a-budget-none"),
        pytest.param([budget("x", 1)], ("bc", "a", {"d/x"}), id="those-after-the-allowed-number"),
        pytest.param([budget("x", None)], ("abc", "", {"d/x"}), id="without-a-number-all"),
        pytest.param([budget("x", 0, disrupted=("b",))], ("ac", "b", {"d/x"}), id="but-those-already-disrupted"),
        pytest.param([budget("x", namespace="e")], ("", "abc", set()), id="none-of-another-namespace"),
        pytest.param([budget("x", 0, {})], ("", "abc", set()), id="none-by-an-empty-selector"),
        pytest.param(
            [budget("x", 0, {"matchExpressions": [{"key": "a", "operator": "Bad"}]})],
            ("", "abc", set()),
            id="none-by-an-unreadable-selector",
        ),
        pytest.param([budget("x", 3), budget("y", 1)], ("bc", "a", {"d/x", "d/y"}), id="any-of-two-budgets"),
    ],
)
def test_the_pods_that_violate_a_budget(there: list[Object], result: tuple[str, str, set[str]]) -> None:
    assert split(WEB, *there) == result


def test_a_pod_without_labels_is_in_no_budget() -> None:
    every = {"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]}
    assert split([pod("a"), pod("b", app="db")], budget("x", 0, every)) == ("b", "a", {"d/x"})


@pytest.mark.parametrize(("first_only", "violating"), [(False, "ab"), (True, "a")])
def test_by_1_37_a_pod_is_charged_up_to_the_first_budget_that_it_violates(first_only: bool, violating: str) -> None:
    pods = [pod("a", app="web", tier="front"), pod("b", tier="front")]
    there = budget("x", 0), budget("y", 1, {"matchLabels": {"tier": "front"}})
    assert split(pods, *there, first_only=first_only)[0] == violating
    assert split(pods, budget("x", 1), there[1], first_only=first_only)[0] == "b", "none is violated by the first pod"


def test_only_budgets_that_changed_are_read_again() -> None:
    cluster = SchedulerCache()
    cluster.load([budget("x", 0), budget("y", 0, namespace="e")])
    budgets = Budgets(cluster)
    budgets.refresh()
    before = budgets.all
    budgets.refresh()
    assert budgets.all is before
    cluster.put(budget("z", 5))
    cluster.remove(budget("y", 0, namespace="e"))
    budgets.refresh()
    assert budgets.all.keys() == {"d/x", "d/z"}
    assert budgets.all["d/x"] is before["d/x"]
    assert budgets.split([pod("p", "e", app="web")]).violating == []
    cluster.remove(budget("x", 0))
    budgets.refresh()
    assert budgets.split(WEB).violating == []
