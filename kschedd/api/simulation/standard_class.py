"""The default StorageClass `standard` of a new cluster; kind and minikube have a class with this name as well.

A StorageClass of this name from a manifest replaces the class, but must keep the simulated provisioner. Loading a dump
removes the class.
"""

from collections.abc import Mapping
from typing import Any, Final

_PROVISIONER: Final = "kschedd.io/simulated"
STANDARD_CLASS: Final[Mapping[str, Any]] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": _PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}


def is_standard_class(raw: Mapping[str, Any]) -> bool:
    """Return whether the object is the default StorageClass of a new cluster and not a user's StorageClass."""
    if raw.get("kind") != "StorageClass" or raw.get("provisioner") != _PROVISIONER:
        return False
    return bool(raw["metadata"].get("name") == STANDARD_CLASS["metadata"]["name"])
