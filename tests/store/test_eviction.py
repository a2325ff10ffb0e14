"""Tests of evictions: the budget that guards a pod, the budget's status afterwards, and the conditions."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.store.errors import Forbidden, MultipleBudgets, TooManyRequests
from kschedd.store.eviction import guarding, spent, with_disruption_allowed, with_disruption_target

BEFORE, NOW = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
READY = [{"type": "PodScheduled", "status": "False"}, {"type": "Ready", "status": "True"}]
UNREADY = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]


def budget(
    name: str = "b", *, app: str = "web", generation: int | None = None, policy: str = "", **status: Any
) -> Object:
    meta = {"name": name, "namespace": "default", "resourceVersion": "1"}
    if generation is not None:
        meta |= {"generation": generation}
    spec = {"selector": {"matchLabels": {"app": app}}, **({"unhealthyPodEvictionPolicy": policy} if policy else {})}
    return Object.from_raw({"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec, "status": status})


def pod(phase: str = "Running", conditions: Any = READY, **meta: Any) -> Pod:
    meta = {"name": "web-1", "namespace": "default", "uid": "u", "labels": {"app": "web"}, **meta}
    status = {"phase": phase, "conditions": conditions}
    return Pod.from_raw(
        {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "n", "containers": []}, "status": status}
    )


# -- the budget of a pod -----------------------------------------------------------------------------------------------


def test_a_budget_guards_the_pods_that_its_selector_matches() -> None:
    guards, other = budget(), budget("other", app="db")
    assert guarding(pod(), [other, guards]) is guards
    assert guarding(pod(), [other]) is None
    broken = Object.from_raw(
        {**guards.raw, "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}}
    )
    assert guarding(pod(), [broken]) is None, "a selector that cannot be parsed"


@pytest.mark.parametrize(
    "free",
    [
        pytest.param(pod("Pending"), id="pending"),
        pytest.param(pod("Succeeded"), id="succeeded"),
        pytest.param(pod("Failed"), id="failed"),
        pytest.param(pod(deletionTimestamp=BEFORE), id="being-deleted"),
    ],
)
def test_a_pod_that_does_not_run_is_evicted_whatever_its_budgets_are(free: Pod) -> None:
    assert guarding(free, [budget(), budget("second")]) is None


def test_a_pod_with_two_budgets_is_not_evicted() -> None:
    with pytest.raises(MultipleBudgets) as refused:
        guarding(pod(), [budget("a"), budget("b")])
    assert refused.value.budgets == ("a", "b")


@pytest.mark.parametrize(
    ("of", "conditions", "is_guarded"),
    [
        pytest.param(budget(policy="AlwaysAllow"), UNREADY, False, id="policy-always-allow"),
        pytest.param(budget(policy="AlwaysAllow"), READY, True, id="policy-always-allow-and-ready"),
        pytest.param(budget(policy="IfHealthyBudget"), UNREADY, True, id="another-policy"),
        pytest.param(budget(desiredHealthy=2, currentHealthy=2), UNREADY, False, id="enough-healthy-pods"),
        pytest.param(budget(desiredHealthy=2, currentHealthy=2), None, False, id="without-conditions"),
        pytest.param(budget(desiredHealthy=2, currentHealthy=2), READY, True, id="enough-healthy-pods-and-ready"),
        pytest.param(budget(desiredHealthy=2, currentHealthy=1), UNREADY, True, id="too-few-healthy-pods"),
        pytest.param(budget(desiredHealthy=2), UNREADY, True, id="no-healthy-pods"),
        pytest.param(budget(desiredHealthy=0, currentHealthy=2), UNREADY, True, id="no-pods-required"),
        pytest.param(budget(currentHealthy=2), UNREADY, True, id="status-not-computed"),
    ],
)
def test_an_unready_pod_is_evicted_if_its_budget_is_healthy(of: Object, conditions: Any, is_guarded: bool) -> None:
    assert guarding(pod(conditions=conditions), [of]) is (of if is_guarded else None)


# -- the status of the budget ------------------------------------------------------------------------------------------


def test_an_eviction_spends_one_disruption() -> None:
    of = budget(generation=2, observedGeneration=2, disruptionsAllowed=2, disruptedPods={"web-0": BEFORE})
    assert spent(of, pod(), NOW) == {
        "observedGeneration": 2,
        "disruptionsAllowed": 1,
        "disruptedPods": {"web-0": BEFORE, "web-1": NOW},
    }
    assert of.status["disruptedPods"] == {"web-0": BEFORE}
    assert spent(budget(disruptionsAllowed=3), pod(), NOW)["disruptionsAllowed"] == 2, "without generations"


def test_the_last_disruption_changes_the_condition() -> None:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": 3,
        "lastTransitionTime": NOW,
        "reason": "InsufficientPods",
        "message": "",
    }
    left = spent(budget(generation=2, observedGeneration=3, disruptionsAllowed=1), pod(), NOW)
    assert (left["disruptionsAllowed"], left["conditions"]) == (0, [condition])
    [without] = spent(budget(disruptionsAllowed=1), pod(), NOW)["conditions"]
    assert without == {key: value for key, value in condition.items() if key != "observedGeneration"}


@pytest.mark.parametrize(
    ("of", "error", "why"),
    [
        pytest.param(
            budget(generation=1, disruptionsAllowed=1),
            TooManyRequests,
            "The disruption budget b is still being processed by the server.",
            id="status-of-an-earlier-generation",
        ),
        pytest.param(
            budget(desiredHealthy=2, currentHealthy=1),
            TooManyRequests,
            "The disruption budget b needs 2 healthy pods and has 1 currently",
            id="none-allowed",
        ),
        pytest.param(
            budget(disruptionsAllowed=0),
            TooManyRequests,
            "The disruption budget b needs 0 healthy pods and has 0 currently",
            id="status-not-computed",
        ),
        pytest.param(budget(disruptionsAllowed=-1), Forbidden, "pdb disruptions allowed is negative", id="negative"),
        pytest.param(
            budget(disruptionsAllowed=1, disruptedPods={f"p{number}": BEFORE for number in range(2001)}),
            Forbidden,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            id="too-many-unconfirmed",
        ),
    ],
)
def test_a_budget_may_refuse_an_eviction(of: Object, error: type[Any], why: str) -> None:
    with pytest.raises(error) as refused:
        spent(of, pod(), NOW)
    assert refused.value.why == why
    if error is TooManyRequests:
        assert refused.value.retry_after_s == (10 if "processed" in why else 0)


def test_2000_evictions_may_be_unconfirmed() -> None:
    of = budget(disruptionsAllowed=1, disruptedPods={f"p{number}": BEFORE for number in range(2000)})
    assert len(spent(of, pod(), NOW)["disruptedPods"]) == 2001


# -- conditions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "allowed", "failure", "after"),
    [
        pytest.param(None, 1, None, ("True", "SufficientPods", "", NOW), id="new"),
        pytest.param("True", 1, None, ("True", "SufficientPods", "", BEFORE), id="unchanged"),
        pytest.param("True", 0, None, ("False", "InsufficientPods", "", NOW), id="changed"),
        pytest.param("False", 5, "no scale", ("False", "SyncFailed", "no scale", BEFORE), id="failed"),
    ],
)
def test_the_condition_of_a_budget_changes_in_its_place(
    before: str | None, allowed: int, failure: str | None, after: tuple[str, ...]
) -> None:
    first, last = {"type": "First"}, {"type": "Last"}
    own = {"type": "DisruptionAllowed", "status": before, "lastTransitionTime": BEFORE, "reason": "x"}
    conditions = [first, own, last] if before else [first, last]
    found = with_disruption_allowed({"conditions": conditions}, allowed, 7, NOW, failure)
    status, reason, message, at = after
    wanted = {
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": 7,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }
    assert found == ([first, wanted, last] if before else [first, last, wanted])


@pytest.mark.parametrize(
    ("before", "at"),
    [
        pytest.param(None, NOW, id="new"),
        pytest.param({"status": "True", "lastTransitionTime": BEFORE}, BEFORE, id="unchanged"),
        pytest.param({"status": "True"}, NOW, id="unchanged-without-a-time"),
        pytest.param({"status": "False", "lastTransitionTime": BEFORE}, NOW, id="changed"),
    ],
)
def test_the_condition_of_an_evicted_pod_changes_in_its_place(before: Any, at: str) -> None:
    own = [{"type": "DisruptionTarget", **before}] if before else []
    found = with_disruption_target(pod(conditions=[*own, *READY]), NOW)
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": at,
    }
    assert found == ([target, *READY] if before else [*READY, target])
    assert with_disruption_target(pod(conditions=None), NOW) == [{**target, "lastTransitionTime": NOW}]
