"""The kind SimulatedBehavior of kschedd.io/v1alpha1, which clusters with simulated pods serve.

An object selects new pods by namespaces, labels and images; the pods get its settings as annotations
(`kschedd.api.simulation.pod_behavior`).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.selecting.names import dns_label
from kschedd.api.simulation.annotations import POD_SETTINGS, setting_fault
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


def _described(schema: Raw, description: str) -> Raw:
    return {**schema, "description": description}


_NAMESPACES: Final = _described(_TEXTS, "Namespaces of the selected pods. Without this field, pods of all namespaces.")
_IMAGES: Final = _described(
    _TEXTS,
    "Images of the containers to which the settings apply; * and ? are wildcards. Without this field, the settings "
    "apply to all containers of the selected pods.",
)
_PODS: Final = _described(_SELECTOR, "Labels of the selected pods. Without this field, all pods.")
_SETTINGS: Final = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,  # numbers, booleans and text
    "description": "Annotations of kschedd.io for the selected new pods, without the prefix: "
    f"{', '.join(sorted(POD_SETTINGS))}. A name may end with the name of a container, as in run-seconds.app. An "
    "annotation in the manifest of a pod takes precedence.",
}
_SPEC: Final = fields(
    {"namespaces": _NAMESPACES, "selector": _PODS, "images": _IMAGES, "settings": _SETTINGS}, "settings"
)
_BEHAVIOR: Final = fields({"spec": _described(_SPEC, "The selected pods, and their settings.")}, "spec")

SIMULATED_BEHAVIOR: Final = definition(
    BEHAVIOR,
    "simulatedbehaviors",
    API_VERSION,
    {**_BEHAVIOR, "description": "SimulatedBehavior describes how the containers of new pods behave."},
    status=False,
    namespaced=False,
)


def validate_simulated_behavior(spec: Raw, old: Raw | None) -> list[FieldError]:
    """Return the errors in the spec of a SimulatedBehavior."""
    faults: list[FieldError] = []
    validate_label_selector(spec.get("selector") or {}, "spec.selector", faults)
    for place, namespace in enumerate(spec.get("namespaces") or ()):
        faults += [invalid(f"spec.namespaces[{place}]", namespace, each) for each in dns_label(namespace)]
    settings: Raw = spec.get("settings") or {}
    if not settings:
        faults.append(required("spec.settings", "at least one setting is required"))
    for setting, value in settings.items():
        why = setting_fault(setting, text_of(value))
        if why is not None:
            faults.append(invalid(f"spec.settings[{setting}]", value, why))
    return faults
