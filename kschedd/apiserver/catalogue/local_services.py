"""The APIServices of the API server's own groups, which kube-apiserver's aggregator registers in a real cluster.

These APIServices are computed from the catalogue at each read, and cannot be written. A stored APIService with the same
name replaces the computed APIService. Source: Kubernetes v1.37, cmd/kube-apiserver/app/aggregator.go,
pkg/controlplane/apiserver/aggregator.go, pkg/controlplane/controller/crdregistration.
"""

import uuid
from collections.abc import Iterator
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.apiserver.catalogue.resources import Catalogue, GroupVersion

API_SERVICE: Final = "APIService"
_AUTOMATIC: Final = "kube-aggregator.kubernetes.io/automanaged"
_NAMES: Final = uuid.UUID("8c6a4f0e-41f5-4d4c-9d5c-0a2f3b1d6c7e")  # namespace of the UIDs
_OF_DEFINITIONS: Final = (1000, 100)
# for each group: the priority of the group, and the priority of each version
_PRIORITIES: Final[dict[str, tuple[int, dict[str, int]]]] = {
    "": (18000, {"v1": 1}),
    "apps": (17800, {"v1": 15}),
    "events.k8s.io": (17750, {"v1": 15}),
    "authentication.k8s.io": (17700, {"v1": 15}),
    "authorization.k8s.io": (17600, {"v1": 15}),
    "autoscaling": (17500, {"v1": 15, "v2": 30}),
    "batch": (17400, {"v1": 15}),
    "certificates.k8s.io": (17300, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "networking.k8s.io": (17200, {"v1": 15, "v1beta1": 9}),
    "policy": (17100, {"v1": 15}),
    "rbac.authorization.k8s.io": (17000, {"v1": 15}),
    "storage.k8s.io": (16800, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "apiextensions.k8s.io": (16700, {"v1": 15}),
    "admissionregistration.k8s.io": (16700, {"v1": 15, "v1beta1": 12, "v1alpha1": 9}),
    "scheduling.k8s.io": (16600, {"v1": 15, "v1beta1": 9, "v1alpha3": 3}),
    "coordination.k8s.io": (16500, {"v1": 15, "v1beta1": 13, "v1alpha2": 12}),
    "node.k8s.io": (16300, {"v1": 15}),
    "discovery.k8s.io": (16200, {"v1": 15}),
    "resource.k8s.io": (16200, {"v1": 21, "v1beta2": 15, "v1beta1": 9, "v1alpha3": 1}),
    "flowcontrol.apiserver.k8s.io": (16100, {"v1": 21}),
    "internal.apiserver.k8s.io": (16000, {"v1alpha1": 9}),
    "storagemigration.k8s.io": (15800, {"v1": 15, "v1beta1": 9, "v1alpha1": 9}),
}


def local_services(catalogue: Catalogue, since: str) -> Iterator[Object]:
    """Yield an APIService for each group and version; `since` is the time at which the APIServices became available."""
    for version in catalogue.versions:
        priorities = _priorities(version)
        if priorities is not None:
            yield _service(version, *priorities, since)


def _priorities(version: GroupVersion) -> tuple[int, int] | None:
    if version.group in _PRIORITIES:
        group, of_versions = _PRIORITIES[version.group]
        priority = of_versions.get(version.version)
        return None if priority is None else (group, priority)
    return _OF_DEFINITIONS if any(resource.definition is not None for resource in version.resources) else None


def _service(version: GroupVersion, group_priority: int, version_priority: int, since: str) -> Object:
    name = f"{version.version}.{version.group}"
    available = {"type": "Available", "status": "True", "lastTransitionTime": since, "reason": "Local"}
    spec: dict[str, Any] = {"group": version.group} if version.group else {}
    spec |= {
        "version": version.version,
        "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority,
    }
    return Object.from_raw(
        {
            "kind": API_SERVICE,
            "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {
                "name": name,
                "uid": str(uuid.uuid5(_NAMES, name)),
                "creationTimestamp": since,
                "labels": {_AUTOMATIC: "true" if group_priority == _OF_DEFINITIONS[0] else "onstart"},
            },
            "spec": spec,
            "status": {"conditions": [{**available, "message": "Local APIServices are always available"}]},
        }
    )
