"""The kind SimulatedBehavior of kschedd.io/v1alpha1, which clusters with simulated pods serve.

An object selects new pods by namespaces, labels and images; the pods get its settings as annotations
(`kschedd.api.simulation.pod_behavior`).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.simulation.annotations import setting_fault
from kschedd.api.simulation.pod_behavior import API_VERSION, BEHAVIOR, text_of
from kschedd.registry.validation_selectors import validate_label_selector
from kschedd.store.custom_resources.built_in_definitions import TEXT, definition, fields

Raw = Mapping[str, Any]

SIMULATED_BEHAVIORS: Final = "simulated_behaviors"
"""The feature with which the kind is served."""

_TEXTS: Final = {"type": "array", "items": TEXT}
_REQUIREMENT: Final = fields({"key": TEXT, "operator": TEXT, "values": _TEXTS}, "key", "operator")
_SELECTOR: Final = fields(
    {
        "matchLabels": {"type": "object", "additionalProperties": TEXT},
        "matchExpressions": {"type": "array", "items": _REQUIREMENT},
    }
)
_SETTINGS: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}  # numbers, booleans and text

SIMULATED_BEHAVIOR: Final = definition(
    BEHAVIOR,
    "simulatedbehaviors",
    API_VERSION,
    fields(
        {
            "spec": fields(
                {"namespaces": _TEXTS, "selector": _SELECTOR, "images": _TEXTS, "settings": _SETTINGS}, "settings"
            )
        },
        "spec",
    ),
    status=False,
    namespaced=False,
)


def validate_simulated_behavior(spec: Raw, old: Raw | None) -> list[FieldError]:
    """Return the errors in the spec of a SimulatedBehavior."""
    faults: list[FieldError] = []
    validate_label_selector(spec.get("selector") or {}, "spec.selector", faults)
    settings: Raw = spec.get("settings") or {}
    if not settings:
        faults.append(required("spec.settings", "at least one setting is required"))
    for setting, value in settings.items():
        why = setting_fault(setting, text_of(value))
        if why is not None:
            faults.append(invalid(f"spec.settings[{setting}]", value, why))
    return faults
