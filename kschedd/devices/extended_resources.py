"""Extended resources provided by a DeviceClass: a pod requests `example.com/gpu: 2`, and devices are allocated for it.

A class provides two resources: the resource that it names (`extendedResourceName`), and
`deviceclass.resource.kubernetes.io/` followed by the name of the class. If an extended resource is in a node's
allocatable, a device plugin provides it. If the resource is not in a node's allocatable, an internal claim is
allocated. The internal claim exists only in memory while nodes are searched, is created before the pod is bound, and is
deleted if the binding fails.

If two classes name the same resource, the newer class provides it (for equal ages, the first class by name), as in
1.36.3. If the other class was created second, it does not provide its implicit resource either.

Source: Kubernetes v1.36, scheduler plugins/dynamicresources/extendeddynamicresources.go;
dynamic-resource-allocation/deviceclass/extendedresourcecache.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.quantity import value
from kschedd.api.selecting.resource_names import is_extended
from kschedd.cache.scheduler_cache import SchedulerCache

IN_MEMORY: Final = "<extended-resources>"
"""Name of a claim that is not created yet; no object can have it."""
ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def may_be_devices(resource: str) -> bool:
    """Return whether a DeviceClass can provide a resource of this name."""
    return is_extended(resource) or resource.startswith(IMPLICIT)


class DeviceClassResolver:
    """Finds the DeviceClass that provides an extended resource."""

    def __init__(self, cluster: SchedulerCache) -> None:
        self._cluster = cluster
        self._stamp = -1
        self._classes: dict[str, Object] = {}

    def classes(self) -> Mapping[str, Object]:
        """Return every resource that a class provides, with this class."""
        versions = self._cluster.table.versions
        if self._stamp < versions.at.get("DeviceClass", 0):  # this code runs several times for each pod
            self._classes = _by_resource(self._cluster.of_kind("DeviceClass").values())
            self._stamp = versions.now
        return self._classes


def _by_resource(classes: Iterable[Object]) -> dict[str, Object]:
    """Return the classes by resource; `classes` are in the order in which they were observed."""
    found: dict[str, Object] = {}
    for one in classes:
        resource = one.spec.get("extendedResourceName")
        rival = None if resource is None else found.get(resource)
        if rival is not None and not _goes_before(one, rival):
            continue
        if resource is not None:
            found[resource] = one
        found[IMPLICIT + one.name] = one
    return found


def _goes_before(one: Object, other: Object) -> bool:
    mine, theirs = (each.metadata.get("creationTimestamp") or "" for each in (one, other))
    return mine > theirs if mine != theirs else one.name < other.name


# the claim of a pod


@attrs.frozen
class RequestMapping:
    """The request for the devices of a container's resource."""

    container: str
    resource: str
    request: str

    def written(self) -> Raw:
        return {"containerName": self.container, "resourceName": self.resource, "requestName": self.request}


@attrs.frozen(eq=False)
class NodeClaim:
    """A claim for one node, with requests for the resources that the node's device plugins do not provide."""

    obj: Object
    mappings: tuple[RequestMapping, ...]


@attrs.frozen(eq=False)
class ExtendedResourceClaim:
    """A pod's claim for extended resources.

    `obj` exists only in memory, or is the claim of an earlier attempt whose binding failed.
    """

    obj: Object
    resources: Mapping[str, int]  # the pod's requests for resources that a class may provide

    @property
    def stale(self) -> bool:
        return bool((self.obj.spec.get("devices") or {}).get("requests"))


def extended_resource_claim(
    pod: Pod, resolver: DeviceClassResolver, find: Callable[[Pod], Object | None]
) -> ExtendedResourceClaim | None:
    """Return the pod's claim for its extended resources; None if no class provides any of them.

    `find` returns the existing claim of a pod.
    """
    classes = resolver.classes()
    if not classes:
        return None
    requested = {name: amount for name, amount in pod.pod_spec.requests.items() if amount and may_be_devices(name)}
    if not any(name in classes for name in requested):
        return None
    return ExtendedResourceClaim(find(pod) or _in_memory(pod), requested)


class CreatedClaims:
    """The claims created for pods' extended resources."""

    def __init__(self) -> None:
        self._by_owner: dict[str, dict[str, Object]] = {}  # UID of the pod -> its claims by key
        self._owners: dict[str, str] = {}  # by the claim's key

    def take(self, key: str, claim: Object | None) -> None:
        """Record the current version of a claim; None: the claim was deleted."""
        owner = None
        if claim is not None and (claim.metadata.get("annotations") or {}).get(ANNOTATION) == "true":
            owner = claim.owner
        before, now = self._owners.get(key), None if owner is None else owner.uid
        if before is not None and before != now:
            del self._owners[key], self._by_owner[before][key]
            if not self._by_owner[before]:
                del self._by_owner[before]
        if claim is not None and now is not None:
            self._owners[key] = now
            self._by_owner.setdefault(now, {})[key] = claim

    def take_all(self, claims: Mapping[str, Object]) -> None:
        """Replace all claims; the keys of the mapping are claim keys."""
        self._by_owner.clear()
        self._owners.clear()
        for key, claim in claims.items():
            self.take(key, claim)

    def of(self, pod: Pod) -> Object | None:
        """Return the pod's claim; if another program has created several, the first one."""
        return next(iter(self._by_owner.get(pod.uid, {}).values()), None)


def _in_memory(pod: Pod) -> Object:
    return Object.from_raw(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": IN_MEMORY,
                "generateName": f"{pod.name}-extended-resources-",
                "namespace": pod.namespace,
                "uid": f"extended-resources-of-{pod.uid}",
                "annotations": {ANNOTATION: "true"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
                ],
            },
            "spec": {},
        }
    )


def node_claim(
    claim: ExtendedResourceClaim, pod: Pod, resources: Sequence[str], classes: Mapping[str, Object]
) -> NodeClaim:
    """Return the claim with requests for these resources."""
    containers: list[Raw] = [*(pod.pod_spec.raw.get("initContainers") or ())]
    init = len(containers)
    containers += pod.pod_spec.raw.get("containers") or ()
    requests: list[_Request] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        wanted = _OfResource(resource, classes[resource].name, containers, init)
        requests += wanted.requests()
        mappings += wanted.mappings
    ordered = [request.written() for request in sorted(requests, key=lambda request: request.name)]
    raw = {**claim.obj.raw, "spec": {"devices": {"requests": ordered}} if ordered else {}}
    return NodeClaim(Object.from_raw(raw), tuple(mappings))


@attrs.frozen
class _Request:
    name: str
    device_class: str
    count: int

    def written(self) -> Raw:
        exactly = {"deviceClassName": self.device_class, "allocationMode": "ExactCount", "count": self.count}
        return {"name": self.name, "exactly": exactly}


@attrs.define(eq=False)
class _OfResource:
    """The requests for one resource, container by container.

    Each regular container and each sidecar has a request. Init containers that end before other containers start may
    use devices of these containers. If init containers need more devices than the other containers, only the init
    container that needs most has a request; all init containers use its devices.
    """

    resource: str
    device_class: str
    containers: Sequence[Raw]
    init: int
    mappings: list[RequestMapping] = attrs.field(factory=list)

    def requests(self) -> Iterator[_Request]:
        ends_early = [
            place < self.init and one.get("restartPolicy") != "Always" for place, one in enumerate(self.containers)
        ]
        lasting = [None if early else self._request(place, ()) for place, early in enumerate(ends_early)]
        of_lasting, self.mappings = self.mappings, []
        early_requests = [
            request
            for place, early in enumerate(ends_early)
            if early and (request := self._request(place, lasting[place:])) is not None
        ]
        largest = max(early_requests, key=lambda request: request.count, default=None)
        if largest is not None:
            others = {request.name for request in early_requests}
            self.mappings = [
                attrs.evolve(mapping, request=largest.name) if mapping.request in others else mapping
                for mapping in self.mappings
            ]
            yield largest
        self.mappings = of_lasting + self.mappings
        yield from (request for request in lasting if request is not None)

    def _request(self, place: int, reusable: Sequence[_Request | None]) -> _Request | None:
        """Return the request for those of the container's devices that no `reusable` request covers."""
        container = self.containers[place]
        requests: Mapping[str, Any] = (container.get("resources") or {}).get("requests") or {}
        missing = value(requests.get(self.resource, 0))
        if not missing:
            return None
        name = str(container.get("name") or "")
        for other in reusable:
            if other is not None:
                missing -= other.count
                self.mappings.append(RequestMapping(name, self.resource, other.name))
                if missing <= 0:
                    return None
        request = f"container-{place}-request-{sorted(requests).index(self.resource)}"
        self.mappings.append(RequestMapping(name, self.resource, request))
        return _Request(request, self.device_class, missing)
