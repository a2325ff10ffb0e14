"""PodPrototype: a pod from which later pods of the same request are copied.

A client, or a controller in one sync, creates many pods from one template in one request. Kube-apiserver uses the name
of a pod in three ways: the name must be valid, it must not be in use, and the claims of the pod's ephemeral volumes
contain it. A manifest therefore creates a copy of an earlier pod if it differs only in `metadata.name` (and in a UID,
which is ignored for a new pod), or if its name is generated from the same `generateName`. The copy gets its own name,
UID, creation time and resourceVersion. Defaulting, validation and admission, which `pod_strategy` implements, are not
repeated. The pods of a DaemonSet also differ in the node to which they are pinned, which `pod_strategy` validates
separately. A simulation that replays a trace is one request with thousands of pods from some hundred templates.

The prototypes are dropped at the end of the request, and when the request creates an object other than a pod, which may
change the rules. Manifests are compared by identity, so the caller must not change them during the request.
"""

from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.selecting.names import is_dns_subdomain
from kschedd.store.prototypes.pod_strategy import InternedPod, PodStrategy, has_claims_by_name, node_of_pinned

_OWN: Final = frozenset(("name", "uid"))
_KNOWN: Final = _OWN | {"namespace", "labels", "annotations", "ownerReferences", "finalizers", "generateName"}
# maximum difference in size between copies in bytes, because pod and node names have at most 253 characters
_LONGER: Final = 1024
_ABSENT: Final = object()
_MOST: Final = 1024  # prototypes per request
_pack = msgpack.Packer(autoreset=True).pack


@attrs.define(eq=False)
class PodPrototype:
    pod: Pod
    _raw: Raw  # manifest from which the pod was created
    _strategy: PodStrategy
    _max_bytes: int  # maximum size of an object
    _born: str = attrs.field(init=False)  # its creationTimestamp
    _spec: Any = attrs.field(init=False)  # of the manifest
    # None: not determined yet, and the following fields have no values
    _copyable: bool | None = attrs.field(default=None, init=False)
    _admitted: InternedPod = attrs.field(init=False)
    # for a DaemonSet's pod: the result without the node, which all nodes share
    _unpinned: InternedPod | None = attrs.field(init=False)
    _unaffected: list[tuple[str, Any]] = attrs.field(init=False)  # spec fields that are equal for every node
    _fields: list[str] = attrs.field(init=False)  # fields of the manifest's metadata, in order
    _shared: list[tuple[str, Any]] = attrs.field(init=False)  # metadata fields that all copies share, with their values
    _with_uid: bool = attrs.field(init=False)  # True if the manifest's metadata contains a uid
    generates: bool = attrs.field(init=False)  # True if the name was generated from its generateName
    indexed: bool = attrs.field(init=False)  # True if the copies have a node or owners, and must be indexed

    def __attrs_post_init__(self) -> None:
        self._born = self.pod.raw["metadata"]["creationTimestamp"]
        self._spec = self._raw.get("spec")

    def _look(self) -> bool:
        """Return whether copies of this pod can be made."""
        given, pod = self._raw.get("metadata"), self.pod
        if type(given) is not dict or self._raw.get("apiVersion") != "v1" or has_claims_by_name(self._spec):
            return False
        if not _KNOWN.issuperset(given):
            return False
        self.generates = not given.get("name")
        self._admitted = self._strategy.admit(self._raw, {**given, "namespace": pod.namespace}, pod.name)
        self._unpinned = self._admitted.unpinned if _node_of(self._spec) is not None else None
        self._unaffected = [(field, value) for field, value in self._spec.items() if field != "affinity"]
        self._fields = list(given)
        self._shared = [(field, value) for field, value in given.items() if field not in _OWN]
        self._with_uid = bool(given.get("uid"))
        self.indexed = bool(pod.node_name) or "ownerReferences" in pod.raw["metadata"]
        return len(_pack(pod.raw)) + _LONGER <= self._max_bytes

    def admitted(self, raw: Raw) -> InternedPod | None:
        """Return the admission result for this manifest's spec if its pod can be a copy of this pod."""
        spec: Any = raw.get("spec")
        if self._copyable is None:
            if spec is not self._spec and not _looks_like(spec, self._spec):
                return None
            self._copyable = self._look()
        if not self._copyable:
            return None
        if spec is self._spec:
            return self._admitted
        if self._unpinned is None:
            return self._admitted if _same(spec, self._spec) else None
        node_name = _node_of(spec)
        if node_name is None or len(spec) != len(self._unaffected) + 1:
            return None
        for field, value in self._unaffected:
            other = spec.get(field, _ABSENT)
            if other is not value and not _same(other, value):
                return None
        return self._strategy.pinned(self._unpinned, node_name)

    def name_of_copy(self, raw: Raw) -> str | None:
        """Return the name of this manifest's pod ("" if generated); None if it is invalid or the pod is no copy."""
        if raw.get("kind") != "Pod" or raw.get("apiVersion") != "v1":
            return None
        given = raw.get("metadata")
        if type(given) is not dict or list(given) != self._fields or bool(given.get("uid")) is not self._with_uid:
            return None
        for field, value in self._shared:
            if given[field] is not value and not _same(given[field], value):
                return None
        name = given.get("name")
        if self.generates:
            return None if name else ""
        return name if type(name) is str and is_dns_subdomain(name) else None

    def may_copy_at(self, at: str) -> bool:
        """Return whether a copy may be created at this time.

        The first condition of some pods contains their creation time.
        """
        return at == self._born or "conditions" not in self.pod.raw["status"]

    def copy(self, admitted: InternedPod, name: str, uid: str, version: int, at: str) -> Pod:
        """Return a copy of the pod, created at the time `at`."""
        pod = self.pod
        raw = pod.raw
        own = {"name": name, "uid": uid, "creationTimestamp": at, "resourceVersion": str(version)}
        meta = {**raw["metadata"], **own}
        if admitted is self._admitted:
            stored, signature = {**raw, "metadata": meta}, pod.signature
        else:
            spec = admitted.spec.raw
            if pod.node_name:
                spec = {**spec, "nodeName": pod.node_name}
            stored, signature = {**raw, "metadata": meta, "spec": spec}, admitted.signature_in(pod.namespace)
        return Pod(
            "Pod",
            name,
            pod.namespace,
            uid,
            version,
            signature.labels,
            stored,
            signature,
            pod.node_name,
            pod.nominated_node_name,
            pod.phase,
            pod.start_time,
            pod.deletion_timestamp,
        )


def _node_of(spec: Any) -> str | None:
    """Return the node to which a DaemonSet's pod is pinned; None if it has another affinity."""
    affinity = spec.get("affinity") if type(spec) is dict else None
    if type(affinity) is not dict or len(affinity) != 1 or "nodeAffinity" not in affinity:
        return None
    return node_of_pinned(affinity["nodeAffinity"])


def _looks_like(spec: Any, other: Any) -> bool:
    """Return whether two specs may be equal except for the node; a fast test before the exact one."""
    if type(spec) is not dict or type(other) is not dict or len(spec) != len(other):
        return False
    return bool(spec.get("containers") == other.get("containers"))


def _same(one: Any, other: Any) -> bool:
    """Return whether two parts of manifests are equal and have equal types, because in Python 1 equals 1.0 and True."""
    try:
        return bool(one == other and _pack(one) == _pack(other))
    except (OverflowError, ValueError, TypeError):  # raised for values that cannot be stored
        return False


@attrs.define(eq=False)
class PodPrototypes:
    """The pod prototypes of one request: the latest pod of each template."""

    _latest: PodPrototype | None = None
    # prototypes by the identity of the spec, which manifests share
    _by_spec: dict[int, PodPrototype] = attrs.field(factory=dict)

    def of(self, raw: Raw) -> PodPrototype | None:
        """Return the prototype from which the pod of this manifest may be copied."""
        return self._by_spec.get(id(raw.get("spec")), self._latest)

    def add(self, prototype: PodPrototype, raw: Raw) -> None:
        """Add the pod that was created from this manifest, which must not change during the request."""
        if len(self._by_spec) >= _MOST:
            self._by_spec.clear()
        self._by_spec[id(raw.get("spec"))] = self._latest = prototype

    def clear(self) -> None:
        """Drop all prototypes, because an object other than a pod was created, which may change the rules."""
        self._latest = None
        self._by_spec.clear()
