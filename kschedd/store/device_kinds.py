"""DeviceTaintRule of resource.k8s.io/v1: a kind that is served where the rule `device_taint_rules` holds.

As Workload and PodGroup are (`workload_kinds`), it is a definition that nobody made. The time at which the taint was
added is not stated where the object leaves it out: nothing here evicts by it.

Source: Kubernetes v1.37, api/resource/v1/types.go; pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.fields import FieldError
from kschedd.api.objects import Object
from kschedd.registry.validation_devices import validate_taint_rule
from kschedd.store.workload_kinds import AGE, CONDITION, definition_of

_TEXT: Final = {"type": "string"}
_SELECTOR: Final = {"driver": _TEXT, "pool": _TEXT, "device": _TEXT}
_TAINT: Final = {"key": _TEXT, "value": _TEXT, "effect": _TEXT, "timeAdded": {"type": "string", "format": "date-time"}}
_SPEC: Final = {
    "deviceSelector": {"type": "object", "properties": _SELECTOR},
    "taint": {"type": "object", "properties": _TAINT},
}
_STATUS: Final = {
    "conditions": {
        "type": "array",
        "items": CONDITION,
        "maxItems": 8,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
}
_RULE: Final = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": _SPEC},
        "status": {"type": "object", "properties": _STATUS},
    },
    "required": ["spec"],
}

TAINT_RULE: Final = definition_of(
    "DeviceTaintRule",
    "devicetaintrules",
    _RULE,
    [
        {"name": "Key", "type": "string", "jsonPath": ".spec.taint.key"},
        {"name": "Value", "type": "string", "jsonPath": ".spec.taint.value"},
        {"name": "Effect", "type": "string", "jsonPath": ".spec.taint.effect"},
        {"name": "TimeAdded", "type": "date", "jsonPath": ".spec.taint.timeAdded"},
        AGE,
    ],
    status=True,
    group_version=("resource.k8s.io", "v1"),
    scope="Cluster",
)
"""Its definition, that nobody made."""


def taint_rule_faults(definition: Object, raw: Mapping[str, Any]) -> list[FieldError]:
    """What is wrong with the spec of a DeviceTaintRule; nothing of an object of another definition."""
    return validate_taint_rule(raw.get("spec") or {}) if definition is TAINT_RULE else []
