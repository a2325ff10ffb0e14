"""The Eviction subresource: whether a pod's disruption budget lets it go, and what the budget is worth afterwards.

The budget's status is believed as it stands; working it out is the disruption controller's part.
Source: Kubernetes v1.34, pkg/registry/core/pod/storage/eviction.go.
Raises: TooManyRequests, Forbidden and InternalError, in the API server's words.
"""

from collections.abc import Iterable
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.selectors import SelectorError, parse_label_selector
from kschedd.store.errors import Forbidden, InternalError, TooManyRequests

BUDGET: Final = "PodDisruptionBudget"
_MOST_DISRUPTED: Final = 2000  # pods whose disruption nobody has taken note of yet


def guarding(pod: Pod, budgets: Iterable[Object]) -> Object | None:
    """The budget that has a say in this pod's eviction, of those in its namespace; None if it just may go."""
    if pod.finished or pod.deletion_timestamp or pod.status.get("phase") == "Pending":
        return None
    covering = [budget for budget in budgets if pod.labels and _selects(budget, pod)]
    if len(covering) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise InternalError(why)
    if not covering or _unhealthy_may_go(pod, covering[0]):
        return None
    return covering[0]


def spent(budget: Object, pod: Pod, at: str) -> Raw:
    """The status of the budget once the pod's eviction counts. Raises where it allows none."""
    status = budget.status
    if (status.get("observedGeneration") or 0) < (budget.metadata.get("generation") or 0):
        raise TooManyRequests(f"The disruption budget {budget.name} is still being processed by the server.")
    allowed = status.get("disruptionsAllowed") or 0
    disrupted: dict[str, Any] = dict(status.get("disruptedPods") or {})
    if allowed < 0:
        raise Forbidden(BUDGET, budget.name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        raise Forbidden(
            BUDGET, budget.name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if not allowed:
        needs, has = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        raise TooManyRequests(f"The disruption budget {budget.name} needs {needs} healthy pods and has {has} currently")
    disrupted[pod.name] = at
    return {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}


def with_disruption_target(pod: Pod, at: str) -> list[Raw]:
    """The conditions of a pod that is being evicted."""
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": at,
    }
    others = [each for each in pod.status.get("conditions") or () if each.get("type") != target["type"]]
    return [*others, target]


def _selects(budget: Object, pod: Pod) -> bool:
    selector = budget.spec.get("selector")
    try:
        return selector is not None and parse_label_selector(selector).matches(pod.labels)
    except SelectorError:
        return False


def _unhealthy_may_go(pod: Pod, budget: Object) -> bool:
    conditions = pod.status.get("conditions") or ()
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if budget.spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = budget.status.get("desiredHealthy") or 0
    return 0 < desired <= (budget.status.get("currentHealthy") or 0)
