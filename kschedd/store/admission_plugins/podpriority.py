"""Priority: a pod's priority and preemptionPolicy come from its PriorityClass; at most one class is the default.

Since v1.37 (scheduling.k8s.io/v1beta1), PodGroups also have a priority.

Source: Kubernetes v1.34 and v1.37, plugin/pkg/admission/priority/admission.go.
"""

from collections.abc import Mapping
from typing import Final

from kschedd.api.objects import Object
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.errors import Forbidden

PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
POD_GROUP: Final = "PodGroup.scheduling.k8s.io"
_GROUPS_WITHOUT_PRIORITY: Final = "scheduling.k8s.io/v1alpha2"
SYSTEM_CLASSES: Final[Mapping[str, int]] = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


def default_priority_class(classes: Classes) -> Object | None:
    """Return the PriorityClass marked globalDefault; if several are marked, the one with the lowest value."""
    marked = [c for c in classes.list("PriorityClass") if c.raw.get("globalDefault")]
    return min(marked, key=lambda c: (c.raw.get("value") or 0, c.name), default=None)


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    """Set priority, class name and preemptionPolicy from the PriorityClass; reject a pod with different values."""
    if not attributes.creates:
        return raw
    if attributes.kind == POD_GROUP:
        return raw if raw.get("apiVersion") == _GROUPS_WITHOUT_PRIORITY else _with_priority(attributes, raw, classes)
    spec = raw["spec"]
    class_name, value, policy = _priority(attributes, spec, classes)
    computed = "must not be provided in pod spec; priority admission controller computed"
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) {computed} {value} from the given PriorityClass name"
        raise Forbidden("Pod", attributes.name, why)
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        why = f"the string value of PreemptionPolicy ({given}) {computed} {policy} from the given PriorityClass name"
        raise Forbidden("Pod", attributes.name, why)
    admitted = {**spec, "priority": value, "preemptionPolicy": policy}
    if class_name:
        admitted["priorityClassName"] = class_name
    return {**raw, "spec": admitted}


def _with_priority(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    """Set the priority and class name of a PodGroup; reject a group with another priority."""
    spec = raw.get("spec") or {}
    class_name, value, _ = _priority(attributes, spec, classes)
    given = spec.get("priority")
    if given is not None and given != value:
        computed = f"must match the priority computed ({value}) based on the priority class set in the spec"
        raise Forbidden(attributes.kind, attributes.name, f"priority set in the pod group ({given}) {computed}")
    named = {"priorityClassName": class_name} if class_name else {}
    return {**raw, "spec": {**spec, "priority": value, **named}}


def _priority(attributes: Attributes, spec: Raw, classes: Classes) -> tuple[str, int, str]:
    """Return the name, the value and the preemptionPolicy of a spec's PriorityClass. Raises Forbidden."""
    class_name = spec.get("priorityClassName") or ""
    if class_name:
        found = classes.find("PriorityClass", "", class_name)
        if found is None and class_name not in SYSTEM_CLASSES:
            raise Forbidden(attributes.kind, attributes.name, f"no PriorityClass with name {class_name} was found")
    else:
        found = default_priority_class(classes)
        class_name = found.name if found is not None else ""
    value = (found.raw.get("value") or 0) if found is not None else SYSTEM_CLASSES.get(class_name, 0)
    policy = (found.raw.get("preemptionPolicy") if found is not None else None) or PREEMPT_LOWER_PRIORITY
    return class_name, value, policy


def validate(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> None:
    """Reject a second PriorityClass that is marked globalDefault."""
    if not raw.get("globalDefault"):
        return
    present = default_priority_class(classes)
    if present is not None and (attributes.creates or present.name != attributes.name):
        why = f"PriorityClass {present.name} is already marked as default. Only one default can exist"
        raise Forbidden("PriorityClass", attributes.name, why)
