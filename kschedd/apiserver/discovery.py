"""Discovery of the groups, versions and resources, in one document (aggregated v2) or in one document each.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/discovery, staging/src/k8s.io/api/apidiscovery/v2.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from kschedd.apiserver.catalogue.resources import METRICS_GROUP, Catalogue, GroupVersion, Resource
from kschedd.apiserver.codec.negotiation import clauses

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def wants_aggregated(accept: str) -> bool:
    """Return whether the first available form that a client accepts is the aggregated form."""
    for media, params in clauses(accept):
        if media not in ("application/json", "*/*", "application/*"):
            continue
        if "as" not in params:
            return False
        if params["as"] == "APIGroupDiscoveryList" and params.get("v") == "v2":
            return params.get("g") == "apidiscovery.k8s.io"
    return False


def aggregated(catalogue: Catalogue, *, core: bool) -> dict[str, Any]:
    """Return the aggregated document of the core group (`/api`) or of all other groups (`/apis`)."""
    groups = [group for group in catalogue.groups() if (group == "") is core]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_group(group, catalogue.of_group(group)) for group in groups],
    }


def _group(group: str, versions: list[GroupVersion]) -> dict[str, Any]:
    listed = [
        {
            "version": each.version,
            "resources": [_aggregated_resource(resource) for resource in each.resources],
            "freshness": "Current",
        }
        for each in versions
    ]
    return {"metadata": {"name": group} if group else {}, "versions": listed}


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    group, version = resource.response or ("", "")
    if resource.definition is not None or resource.group == METRICS_GROUP:
        group, version = resource.group, resource.version
    shown: dict[str, Any] = {
        "resource": resource.name,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    if resource.subresources:
        shown["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.api_version.rpartition("/")[0],
                    "version": sub.api_version.rpartition("/")[2],
                    "kind": sub.kind,
                },
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources.values()
        ]
    return shown


def versions_document(host: str) -> dict[str, Any]:
    """Return `/api`."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    }


def groups_document(catalogue: Catalogue) -> dict[str, Any]:
    """Return `/apis`."""
    groups = [_plain_group(group, catalogue) for group in catalogue.groups() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_document(group: str, catalogue: Catalogue) -> dict[str, Any]:
    """Return a group's document, such as `/apis/apps`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_plain_group(group, catalogue)}


def _plain_group(group: str, catalogue: Catalogue) -> dict[str, Any]:
    versions = [{"groupVersion": each.name, "version": each.version} for each in catalogue.of_group(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def resources_document(version: GroupVersion) -> dict[str, Any]:
    """Return a version's document, such as `/apis/apps/v1`."""
    listed = []
    for resource in version.resources:
        listed.append(_plain_resource(resource))
        for sub in resource.subresources.values():
            entry: dict[str, Any] = {
                "name": f"{resource.name}/{sub.name}",
                "singularName": "",
                "namespaced": resource.namespaced,
            }
            if sub.api_version:
                group, _, number = sub.api_version.rpartition("/")
                entry |= {"group": group, "version": number}
            listed.append({**entry, "kind": sub.kind, "verbs": list(sub.verbs)})
    api_version = {"apiVersion": "v1"} if version.group else {}  # absent in the core group, as in kube-apiserver
    return {"kind": "APIResourceList", **api_version, "groupVersion": version.name, "resources": listed}


def _plain_resource(resource: Resource) -> Mapping[str, Any]:
    shown: dict[str, Any] = {
        "name": resource.name,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    if stored := resource.storage_version:
        shown["storageVersionHash"] = _version_hash(*stored, resource.kind)
    return shown


def _version_hash(group: str, version: str, kind: str) -> str:
    """Return the storage version hash. Source: apiserver/pkg/endpoints/discovery/storageversionhash.go."""
    return base64.b64encode(hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()
