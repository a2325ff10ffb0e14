"""Validation of Nodes: taints, pod address ranges, and legacy annotations.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateNode, ValidateNodeSpecificAnnotations),
pkg/apis/core/helper (GetTaintsFromNodeAnnotations); v1.37, apis/core/v1/zz_generated.validations.go.
The functions require Nodes that match the schema, and append errors to `faults`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.quantity import quoted
from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required, too_many
from kschedd.api.schemas.unmarshal_errors import json_kind
from kschedd.api.selecting.names import qualified_name
from kschedd.api.text.ip_addresses import cidr_family
from kschedd.api.text.json_errors import json_error
from kschedd.api.text.json_text import json_value
from kschedd.registry.pods.annotated_lists import annotated_list
from kschedd.registry.validation_selectors import validate_taints
from kschedd.registry.validation_status import validate_status_alone

Raw = dict[str, Any]
Faults = list[FieldError]

_TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
_MOST_OWNERS: Final = 20
_AVOID: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def validate_node(node: Raw, faults: Faults) -> None:
    spec = node.get("spec") or {}
    validate_node_annotations((node.get("metadata") or {}).get("annotations") or {}, faults)
    if taints := spec.get("taints"):
        validate_taints(taints, "metadata.taints", faults)
    validate_status_alone("Node", node.get("status") or {}, faults)
    validate_preemption_policy(spec, faults)
    _validate_pod_ranges(spec.get("podCIDRs") or [], faults)


def validate_node_annotations(annotations: Mapping[str, str], faults: Faults) -> None:
    """Validate the annotations that older Kubernetes versions used instead of fields."""
    path = "metadata.annotations"
    taints, wrong = annotated_list(annotations.get(_TAINTS) or "null", "Taint")
    if wrong:
        faults.append(invalid(path, _TAINTS, wrong))
    validate_taints(taints, f"{path}.{_TAINTS}", faults)
    _validate_avoided_pods(annotations, faults)


def validate_preemption_policy(spec: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors of `podPreemptionPolicy` (since 1.37, with a gate) to `faults`."""
    path = "spec.podPreemptionPolicy.disableResizePreemption"
    owners = (spec.get("podPreemptionPolicy") or {}).get("disableResizePreemption") or ()
    if len(owners) > _MOST_OWNERS:
        faults.append(too_many(path, len(owners), _MOST_OWNERS))
        return
    for index, owner in enumerate(owners):
        faults += [invalid(f"{path}[{index}]", owner, why) for why in qualified_name(owner)]
    faults += [duplicate(f"{path}[{index}]", owner) for index, owner in enumerate(owners) if owner in owners[:index]]


def _validate_pod_ranges(ranges: list[str], faults: Faults) -> None:
    """Validate the pod address ranges of a node; each address family may occur only once."""
    path = "spec.podCIDRs"
    families = [cidr_family(text) for text in ranges]
    for index, (text, family) in enumerate(zip(ranges, families, strict=True)):
        if not family:
            why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            faults.append(invalid(f"{path}[{index}]", text, why))
    if len(ranges) > 1:
        if 0 in families:
            wrong = quoted(ranges[families.index(0)])
            why = f"failed to parse cidr value:{wrong} with error:invalid CIDR address: {ranges[families.index(0)]}"
            message = f"Internal error: invalid PodCIDRs. failed to check with dual stack with error:{why}"
            faults.append(FieldError(path, None, message))
        if set(families) != {4, 6} or len(ranges) > 2:
            faults.append(invalid(path, ranges, "may specify no more than one CIDR for each IP family"))


def _validate_avoided_pods(annotations: Mapping[str, str], faults: Faults) -> None:
    """Validate the annotation that lists controllers whose pods should avoid the node."""
    text = annotations.get(_AVOID)
    if not text:
        return
    path = "metadata.annotations.AvoidPods"
    if wrong := json_error(text):
        faults.append(invalid(path, _AVOID, wrong))
        return
    try:
        avoided = json_value(text)
    except ValueError as refusal:  # raised if an integer is too long for Python's parser
        faults.append(invalid(path, _AVOID, str(refusal)))
        return
    if wrong := _mistyped(avoided):
        faults.append(invalid(path, _AVOID, wrong))
        return
    for index, entry in enumerate((avoided or {}).get("preferAvoidPods") or ()):
        here = f"{path}.{_AVOID}[{index}].PodSignature"
        controller = ((entry or {}).get("podSignature") or {}).get("podController")
        if controller is None:
            faults.append(required(here))
        elif not controller.get("controller"):
            why = "must point to a controller"
            faults.append(invalid(f"{here}.PodController.Controller", controller.get("controller"), why))


# path of each value, and its Go type
_AVOIDED: Final = (
    ("preferAvoidPods", "[]v1.PreferAvoidPodsEntry"),
    ("preferAvoidPods", "v1.PreferAvoidPodsEntry"),
    ("preferAvoidPods.podSignature", "v1.PodSignature"),
    ("preferAvoidPods.podSignature.podController", "v1.OwnerReference"),
)


def _mistyped(avoided: Any) -> str:
    """Return Go's message for the first value of a wrong type; only the fields that kschedd reads are checked."""
    if avoided is not None and not isinstance(avoided, dict):
        return f"json: cannot unmarshal {json_kind(avoided)} into Go value of type v1.AvoidPods"
    found: list[Any] = [avoided or {}]
    for path, named in _AVOIDED:
        if named == "v1.PreferAvoidPodsEntry":
            found = [entry for entries in found for entry in entries]
        else:
            found = [each.get(path.rpartition(".")[2]) for each in found]
        found = [each for each in found if each is not None]
        for each in found:
            if not isinstance(each, list if named.startswith("[]") else dict):
                return f"json: cannot unmarshal {json_kind(each)} into Go struct field AvoidPods.{path} of type {named}"
    return ""
