"""ComponentStatuses, which are deprecated and not stored: a component of this process is healthy while it responds.

Source: Kubernetes v1.34, pkg/registry/core/componentstatus.
"""

from typing import Final

from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import Kind

COMPONENT_STATUS: Final = Kind(
    "ComponentStatus", "componentstatuses", "componentstatus", ("cs",), ("v1",), namespaced=False, known=False
)


def component_statuses() -> list[Object]:
    return [_component(name) for name in ("controller-manager", "scheduler")]


def _component(name: str) -> Object:
    condition = {"type": "Healthy", "status": "True", "message": "ok"}
    return Object.from_raw(
        {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition]}
    )
