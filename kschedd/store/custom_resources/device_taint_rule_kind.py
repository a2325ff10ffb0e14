"""The kind DeviceTaintRule of resource.k8s.io/v1, which is served in versions with the feature `device_taint_rules`.

Source: Kubernetes v1.37, api/resource/v1/types.go.
"""

from typing import Final

from kschedd.store.custom_resources.built_in_definitions import CONDITIONS, TEXT, definition, fields

_SELECTOR: Final = fields({"driver": TEXT, "pool": TEXT, "device": TEXT})
_TAINT: Final = fields(
    {"key": TEXT, "value": TEXT, "effect": TEXT, "timeAdded": {"type": "string", "format": "date-time"}}
)
_SCHEMA: Final = fields(
    {
        "spec": fields({"deviceSelector": _SELECTOR, "taint": _TAINT}),
        "status": fields({"conditions": CONDITIONS}),
    }
)

DEVICE_TAINT_RULE: Final = definition(
    "DeviceTaintRule",
    "devicetaintrules",
    "resource.k8s.io/v1",
    _SCHEMA,
    status=True,
    namespaced=False,
)
