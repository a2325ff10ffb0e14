"""The pods of a disruption budget: their counts, and the required number of healthy pods.

Source: Kubernetes v1.34, pkg/controller/disruption/disruption.go (getExpectedPodCount, countHealthyPods).
"""

from typing import Any

import attrs

from kschedd.api.conditions import is_true
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import NOTHING, LabelSelector, SelectorError, parse_label_selector
from kschedd.controllers.running.controller import View
from kschedd.controllers.scale import ScaleError, scale_of_owner
from kschedd.controllers.templates import controller_uid


@attrs.frozen
class CountedPod:
    """The parts of a pod's state on which the budget's counts depend."""

    healthy: bool
    deleting: bool
    controller: str  # uid of the pod's controller, or ""


class BudgetPods:
    """A budget's pods and their counts."""

    def __init__(self, spec_selector: Any) -> None:
        self.spec_selector = spec_selector
        self.fault: str | None = None  # reason why the selector cannot be parsed
        self.selector: LabelSelector = NOTHING
        try:
            self.selector = parse_label_selector(spec_selector)
        except SelectorError as fault:
            self.fault = str(fault)
        self.pods: dict[str, CountedPod] = {}
        self.healthy = 0
        self.by_controller: dict[str, dict[str, None]] = {}  # controller uid -> names of its pods, in order of arrival

    def put(self, name: str, pod: CountedPod | None) -> bool:
        """Count a pod in its current state; None removes a pod that no longer belongs to the budget.

        Return whether the counts changed.
        """
        before = self.pods.get(name)
        if before == pod:
            return False
        if before is not None:
            self.healthy -= before.healthy
            del self.pods[name]
            if pod is None or pod.controller != before.controller:
                names = self.by_controller[before.controller]
                del names[name]
                if not names:
                    del self.by_controller[before.controller]
        if pod is not None:
            self.pods[name] = pod
            self.healthy += pod.healthy
            self.by_controller.setdefault(pod.controller, {})[name] = None
        return True


def counted(pod: Pod) -> CountedPod:
    deleting = bool(pod.deletion_timestamp)
    return CountedPod(not deleting and is_true(pod.status, "Ready"), deleting, controller_uid(pod))


def expected_counts(budget: Object, index: BudgetPods, view: View) -> tuple[int, int]:
    """Return the expected number of pods, and the required number of healthy pods. Raises ScaleError."""
    at_most, at_least = budget.spec.get("maxUnavailable"), budget.spec.get("minAvailable")
    if at_most is not None:
        expected = _expected_scale(budget, index, view)
        return expected, max(0, expected - share_of(at_most, expected))
    if isinstance(at_least, str):
        expected = _expected_scale(budget, index, view)
        return expected, share_of(at_least, expected)
    return (len(index.pods), at_least) if at_least is not None else (0, 0)


def share_of(value: int | str, total: int) -> int:
    """Return an int-or-percent value of the total, rounded up if it is a percentage."""
    if isinstance(value, int):
        return value
    percentage = int(value.removesuffix("%"))
    return -(-total * percentage // 100)


def _expected_scale(budget: Object, index: BudgetPods, view: View) -> int:
    """Return the total scale of the pods' controllers, ignoring pods without a controller."""
    scales: dict[str, int] = {}
    for uid, names in index.by_controller.items():
        if not uid:
            continue
        name = next(iter(names))
        pod = view.find("Pod", budget.namespace, name)
        if not isinstance(pod, Pod):
            continue  # the controller was deleted, but the deletion event has not arrived yet
        found = scale_of_owner(pod, view)
        if found is None:
            raise ScaleError(f'found no controllers for pod "{name}"')
        scales[found.uid] = found.replicas
    return sum(scales.values())


def by_scale(budget: Object) -> bool:
    return budget.spec.get("maxUnavailable") is not None or isinstance(budget.spec.get("minAvailable"), str)


def unmanaged_text(budget: Object) -> str:
    selector = budget.spec.get("selector") or {}
    labels = "".join(f"{name}: {value}," for name, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key')},Operator:{each.get('operator')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    shown = (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be unmanaged. As a result, the "
        "status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for "
        'these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
