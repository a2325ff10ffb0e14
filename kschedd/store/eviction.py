"""The Eviction subresource: checks a pod's disruption budget, and returns the budget's status after an eviction.

The disruption controller (`kschedd.controllers.disruption`) computes the budget's status; this module only reads it.
Source: Kubernetes v1.34, pkg/registry/core/pod/storage/eviction.go.
Raises: TooManyRequests, Forbidden and MultipleBudgets, with the API server's messages.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import SelectorError, parse_label_selector
from kschedd.store.errors import Forbidden, MultipleBudgets, TooManyRequests

BUDGET: Final = "PodDisruptionBudget"
DISRUPTION_TARGET: Final = "DisruptionTarget"
_MAX_DISRUPTED_PODS: Final = 2000  # maximum number of evictions not yet confirmed by the disruption controller


def guarding(pod: Pod, budgets: Iterable[Object]) -> Object | None:
    """Return the budget that must allow this pod's eviction, or None if no budget covers the pod.

    `budgets` are the budgets of the pod's namespace.
    """
    if pod.finished or pod.deletion_timestamp or pod.status.get("phase") == "Pending":
        return None
    covering = [budget for budget in budgets if covers(budget, pod)]
    if len(covering) > 1:
        raise MultipleBudgets(tuple(budget.name for budget in covering))
    if not covering or may_go_unready(pod, covering[0]):
        return None
    return covering[0]


def spent(budget: Object, pod: Pod, at: str) -> Raw:
    """Return the budget's status after an eviction of the pod.

    Raises an error if the budget does not allow the eviction.
    """
    status = budget.status
    if (status.get("observedGeneration") or 0) < (budget.metadata.get("generation") or 0):
        why = f"The disruption budget {budget.name} is still being processed by the server."
        raise TooManyRequests(budget.name, why, retry_after_s=10)
    allowed = status.get("disruptionsAllowed") or 0
    disrupted: dict[str, Any] = dict(status.get("disruptedPods") or {})
    if allowed < 0:
        raise Forbidden(BUDGET, budget.name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MAX_DISRUPTED_PODS:
        raise Forbidden(
            BUDGET, budget.name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if not allowed:
        needs, has = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        why = f"The disruption budget {budget.name} needs {needs} healthy pods and has {has} currently"
        raise TooManyRequests(budget.name, why)
    disrupted[pod.name] = at
    left: dict[str, Any] = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    if allowed == 1:
        left["conditions"] = with_disruption_allowed(status, 0, status.get("observedGeneration") or 0, at)
    return left


def with_disruption_allowed(status: Raw, allowed: int, observed: int, at: str, failure: str | None = None) -> list[Raw]:
    """Return the budget's conditions with DisruptionAllowed for this number of disruptions.

    `failure` is the reason why the number could not be computed, or None.
    Source: component-helpers/apps/poddisruptionbudget/helpers.go, apimachinery meta.SetStatusCondition.
    """
    state, reason = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    if failure is not None:
        state, reason = "False", "SyncFailed"
    wanted: dict[str, Any] = {"type": "DisruptionAllowed", "status": state}
    if observed:
        wanted["observedGeneration"] = observed
    wanted |= {"lastTransitionTime": at, "reason": reason, "message": failure or ""}
    conditions: Sequence[Raw] = status.get("conditions") or ()
    before = next((each for each in conditions if each.get("type") == wanted["type"]), None)
    if before is None:
        return [*conditions, wanted]
    if before.get("status") == state and before.get("lastTransitionTime"):
        wanted["lastTransitionTime"] = before["lastTransitionTime"]
    return [wanted if each is before else each for each in conditions]


def with_disruption_target(pod: Pod, at: str) -> list[Raw]:
    """Return the pod's conditions with DisruptionTarget set for an eviction."""
    target = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": at,
    }
    conditions: Sequence[Raw] = pod.status.get("conditions") or ()
    before = next((each for each in conditions if each.get("type") == DISRUPTION_TARGET), None)
    if before is None:
        return [*conditions, target]
    if before.get("status") == "True" and before.get("lastTransitionTime"):
        target["lastTransitionTime"] = before["lastTransitionTime"]
    return [target if each is before else each for each in conditions]


def covers(budget: Object, pod: Pod) -> bool:
    """Return whether the budget's selector matches the pod; a selector that cannot be parsed matches no pod."""
    try:
        return parse_label_selector(budget.spec.get("selector")).matches(pod.labels)
    except SelectorError:
        return False


def may_go_unready(pod: Pod, budget: Object) -> bool:
    conditions = pod.status.get("conditions") or ()
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if budget.spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = budget.status.get("desiredHealthy") or 0
    return 0 < desired <= (budget.status.get("currentHealthy") or 0)
