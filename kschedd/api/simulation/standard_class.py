"""The default StorageClass of a new cluster, for claims without a class; local clusters have one of this name.

A manifest may replace the class as long as it has the simulated provisioner, and a dump that is loaded removes it.
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
    """Return whether the object is the default StorageClass of a new cluster, and not one of a user."""
    if raw.get("kind") != "StorageClass" or raw.get("provisioner") != _PROVISIONER:
        return False
    return bool(raw["metadata"].get("name") == STANDARD_CLASS["metadata"]["name"])
