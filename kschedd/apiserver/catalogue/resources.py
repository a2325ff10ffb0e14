"""The served resources: kube-apiserver's resources, those of CustomResourceDefinitions, and metrics.

`resources.json` beside this module contains the built-in resources with their verbs and subresources. For most
resources the store has a kind with its own rules. Objects of all other resources are stored unchanged.

Source: Kubernetes v1.34, the discovery documents of kube-apiserver.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import BY_NAME, Kind, kind_of
from kschedd.store.custom_resources.kinds import defined_kind

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
METRICS_GROUP: Final = "metrics.k8s.io"

# The group and version in which upstream stores a kind, if it differs from the requested version.
_STORED_AS: Final = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("apiextensions.k8s.io", "v1beta1"),
    ("autoscaling", "HorizontalPodAutoscaler"): ("autoscaling", "v2"),
    ("events.k8s.io", "Event"): ("", "v1"),
    ("resource.k8s.io", "DeviceClass"): ("resource.k8s.io", "v1beta2"),
    ("resource.k8s.io", "ResourceClaim"): ("resource.k8s.io", "v1beta2"),
    ("resource.k8s.io", "ResourceClaimTemplate"): ("resource.k8s.io", "v1beta2"),
    ("resource.k8s.io", "ResourceSlice"): ("resource.k8s.io", "v1beta2"),
    ("storage.k8s.io", "VolumeAttributesClass"): ("storage.k8s.io", "v1beta1"),
}


@attrs.frozen
class Subresource:
    name: str
    kind: str
    api_version: str  # version of the kind; "" for the resource's version
    verbs: tuple[str, ...]


@attrs.frozen(eq=False)
class Resource:
    """A resource in one version of its group.

    `stored` is the kind under which the store contains the resource's objects.
    """

    group: str
    version: str
    name: str  # for example pods
    kind: str  # for example Pod
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    stored: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = attrs.field(factory=dict)
    response: tuple[str, str] | None = None  # group, version of `kind` if other than the resource's
    definition: Object | None = None  # the CustomResourceDefinition of a custom resource

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_version(self) -> tuple[str, str] | None:
        """The group and version in which kube-apiserver stores the objects; None if it does not store such objects."""
        if "watch" not in self.verbs:
            return None
        if self.definition is None:
            return _STORED_AS.get((self.group, self.kind), (self.group, self.version))
        versions = self.definition.spec["versions"]
        stored = [each["name"] for each in versions if each.get("storage") and each.get("served")]
        return (self.group, str(stored[0])) if stored else None

    @property
    def stored_kind(self) -> Kind | None:
        """The kind of the resource's objects; None if no objects are stored."""
        return BY_NAME.get(self.stored) if self.definition is None else defined_kind(self.definition)

    @property
    def qualified(self) -> str:
        """The resource's name in error messages: `pods`, `deployments.apps`."""
        return f"{self.name}.{self.group}" if self.group else self.name


@attrs.frozen(eq=False)
class GroupVersion:
    group: str
    version: str
    resources: tuple[Resource, ...]

    @property
    def name(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Catalogue:
    """The resources by group, version and name. Within a group, the preferred version comes first."""

    def __init__(self, versions: Sequence[GroupVersion]) -> None:
        versions = self.versions = _merged(versions)
        self._by_path = {(each.group, each.version, res.name): res for each in versions for res in each.resources}
        self._names = {each.name: each for each in versions}

    def find(self, group: str, version: str, name: str) -> Resource | None:
        return self._by_path.get((group, version, name))

    def version(self, name: str) -> GroupVersion | None:
        """Return a version by name, such as `apps/v1`, or `v1` for the core group."""
        return self._names.get(name)

    def groups(self) -> list[str]:
        return list(dict.fromkeys(each.group for each in self.versions))

    def of_group(self, group: str) -> list[GroupVersion]:
        return [each for each in self.versions if each.group == group]


def _merged(versions: Sequence[GroupVersion]) -> Sequence[GroupVersion]:
    """Return the versions with unique names. A repeated version adds its resources to the first one of its name."""
    found: dict[str, GroupVersion] = {}
    for each in versions:
        first = found.get(each.name)
        found[each.name] = each if first is None else attrs.evolve(first, resources=first.resources + each.resources)
    return list(found.values())


@cache
def built_in() -> tuple[GroupVersion, ...]:
    listed = json.loads(Path(__file__).with_name("resources.json").read_text(encoding="utf-8"))
    return tuple(_group_version(each) for each in listed)


def _group_version(listed: Mapping[str, Any]) -> GroupVersion:
    group, version = listed["group"], listed["version"]
    return GroupVersion(group, version, tuple(_resource(group, version, each) for each in listed["resources"]))


def _resource(group: str, version: str, listed: Mapping[str, Any]) -> Resource:
    api_version = f"{group}/{version}" if group else version
    named = listed.get("response")
    subresources = {
        name: Subresource(name, sub["kind"], sub.get("in", ""), tuple(sub["verbs"]))
        for name, sub in listed.get("subresources", {}).items()
    }
    return Resource(
        group,
        version,
        listed["name"],
        listed["kind"],
        listed["singular"],
        not listed.get("cluster", False),
        tuple(listed.get("verbs", ALL_VERBS)),
        kind_of({"apiVersion": api_version, "kind": listed["kind"]}).name,
        tuple(listed.get("short", ())),
        tuple(listed.get("categories", ())),
        subresources,
        None if named is None else (named["group"], named["version"]),
    )


def metrics_version() -> GroupVersion:
    verbs = ("get", "list")
    return GroupVersion(
        METRICS_GROUP,
        "v1beta1",
        (
            Resource(METRICS_GROUP, "v1beta1", "nodes", "NodeMetrics", "", False, verbs, "Node"),
            Resource(METRICS_GROUP, "v1beta1", "pods", "PodMetrics", "", True, verbs, "Pod"),
        ),
    )


def defined_versions(definitions: Iterable[Object]) -> list[GroupVersion]:
    """Return the group versions of custom resources with existing definitions that are not being deleted."""
    found: dict[tuple[str, str], list[Resource]] = {}
    for definition in definitions:
        for resource in _defined(definition):
            found.setdefault((resource.group, resource.version), []).append(resource)
    return [GroupVersion(group, version, tuple(each)) for (group, version), each in found.items()]


def _defined(definition: Object) -> list[Resource]:
    spec = definition.spec
    names, group = spec.get("names") or {}, str(spec.get("group") or "")
    kind = str(names.get("kind") or "")
    if not kind or not group or not names.get("plural"):
        return []
    resources = []
    for version in spec.get("versions") or ():
        if not version.get("served"):
            continue
        own = version.get("subresources") or {}
        subresources = {}
        if "status" in own:
            subresources["status"] = Subresource("status", kind, "", ("get", "patch", "update"))
        if "scale" in own:
            subresources["scale"] = Subresource("scale", "Scale", "autoscaling/v1", ("get", "patch", "update"))
        name = str(version.get("name") or "")
        resources.append(
            Resource(
                group,
                name,
                str(names["plural"]),
                kind,
                str(names.get("singular") or kind.lower()),
                spec.get("scope") != "Cluster",
                ALL_VERBS,
                kind_of({"apiVersion": f"{group}/{name}", "kind": kind}).name,
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                subresources,
                definition=definition,
            )
        )
    return resources
