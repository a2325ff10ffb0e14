"""Objects that every new cluster contains: four namespaces, and the priority classes of system pods.

Source: Kubernetes v1.34, pkg/controlplane/controller/systemnamespaces, pkg/registry/scheduling/rest.
"""

from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.store.admission_plugins.podpriority import SYSTEM_CLASSES


def built_in() -> list[dict[str, Any]]:
    """Return the manifests of the built-in objects."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in BUILT_IN_NAMESPACES]
    return [*namespaces, *(_priority_class(name, value) for name, value in SYSTEM_CLASSES.items())]


def _priority_class(name: str, value: int) -> dict[str, Any]:
    wording = "nodes" if "node" in name else "clusters"
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": f"Used for system critical pods without which {wording} cannot work.",
    }


def is_built_in(obj: Object) -> bool:
    if obj.kind == "Namespace":
        return obj.name in BUILT_IN_NAMESPACES
    return obj.kind == "PriorityClass" and obj.name in SYSTEM_CLASSES


BUILT_IN_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
UNDELETABLE: Final = frozenset(("default", "kube-public", "kube-system"))
