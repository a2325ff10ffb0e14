"""Pods, with the fields that scheduling reads.

A cluster runs many pods with few distinct specs, so common parts are interned: a `PodSpec` for all pods with equal
specs (without nodeName), and a signature (`PodSignature`) for all pods with equal spec, namespace and labels. Two pods
with the same signature get the same result and score from every plugin that reads no other part of a pod, so
evaluations can be cached by signature. Interning is weak: a signature is freed together with its last pod.

Source: Kubernetes v1.34, api/core/v1/types.go (PodSpec, PodStatus). Units: CPU in millicores, other resources in
whole units; priorities and seconds are ints; times are RFC 3339 strings.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Final, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

import attrs
import msgpack

from kschedd.api.base import Object, version_of
from kschedd.api.cached import cached
from kschedd.api.resources import (
    PLAIN_AMOUNT,
    ResizeRules,
    Resources,
    pod_fit_score_requests,
    pod_nonzero_requests,
    pod_requests,
    resizes,
    states_cpu_and_memory,
    why_resize_pends,
)
from kschedd.api.selecting.selectors import (
    IN,
    NODE_NAME,
    NodeSelector,
    NodeSelectorTerm,
    parse_node_selector,
    parse_preferred_terms,
)
from kschedd.api.selecting.terms import (
    PodAffinityTerm,
    SpreadConstraint,
    Toleration,
    WeightedPodAffinityTerm,
    parse_pod_affinity_term,
    parse_spread_constraint,
    parse_toleration,
)
from kschedd.values import FrozenDict, fast_frozen

Raw = Mapping[str, Any]
T = TypeVar("T")
_NOTHING: Mapping[str, Any] = FrozenDict()  # shared by all objects without such a map
_numbers = count(1)
FINISHED: Final = ("Succeeded", "Failed")  # phases

HIGHEST_USER_PRIORITY = 1_000_000_000
_MOST_REQUESTS: Final = 2048
# fields of volumes that affect no plugin, and `name`
_ON_EACH_NODE: Final = frozenset(("name", "configMap", "downwardAPI", "emptyDir", "hostPath", "projected", "secret"))
_ASKING: Final = ("resources", "restartPolicy")  # container fields on which a pod's requests depend


def image_name(name: str) -> str:
    """Return the image name with its default tag, in the form that ImageLocality compares."""
    if name.rfind(":") <= name.rfind("/"):
        return name + ":latest"
    return name


class _Shared(cached[T]):
    """A cached property whose value may be read from a more general object.

    The more general object is an attribute in `unaffected_by`; it may be None. The general object lacks the parts on
    which the property does not depend. The property is therefore computed once for all objects with this more general
    object.
    """

    def __init__(self, compute: Callable[[Any], T], unaffected_by: tuple[str, ...]) -> None:
        super().__init__(self._in_common)
        self._compute_once = compute
        self.unaffected_by = unaffected_by
        self.__doc__ = compute.__doc__

    def _in_common(self, instance: Any) -> T:
        name, common = self._name, instance
        for without in self.unaffected_by:
            while (other := getattr(common, without)) is not None:
                common = other
        known = common.__dict__
        if name not in known:
            known[name] = self._compute_once(instance)
        value: T = known[name]
        return value


def _unaffected_by(*without: str) -> Callable[[Callable[[Any], T]], cached[T]]:
    return lambda compute: _Shared(compute, without)


_unaffected_by_node_affinity = _unaffected_by("spec_without_node_affinity")
_unaffected_by_amounts = _unaffected_by("spec_without_amounts")
_unaffected = _unaffected_by("spec_without_node_affinity", "spec_without_amounts")
_of_signatures_alike = _unaffected_by("_alike")


@attrs.define(eq=False, slots=False)
class PodSpec:
    """An interned pod spec. `raw` has no nodeName. All other attributes are computed on first access."""

    raw: Raw
    key: bytes  # packed `spec_without_node_affinity`, or packed `raw` if the spec has no node affinity
    # this spec with an empty node affinity; None if the spec has no node affinity
    spec_without_node_affinity: "PodSpec | None" = None
    # The common spec of all specs that differ only in amounts of cpu and memory and in weights of pod affinity.
    # None without such a spec, or if `set_without_amounts` was not called.
    spec_without_amounts: "PodSpec | None" = None

    def set_without_amounts(self, other: "PodSpec") -> None:
        """Set `spec_without_amounts`, from which this spec copies cached values that do not depend on amounts."""
        if self.spec_without_amounts is None and other is not self:
            self.spec_without_amounts = other
            _take_over(self, other, _AFFECTED_BY_AMOUNTS)

    @_unaffected_by_node_affinity
    def resource_requests(self) -> "ResourceRequests":
        """Return the resource requests, shared by all specs with equal containers, pod-level resources and overhead."""
        raw = self.raw
        init_containers = raw.get("initContainers")
        containers = _stating(raw.get("containers"))
        others = _stating(init_containers) if init_containers else None
        stated = _pack((containers, others, raw.get("resources"), raw.get("overhead")))
        found = _requests.get(stated)
        if found is None:
            if len(_requests) >= _MOST_REQUESTS:
                _requests.clear()
            found = _requests[stated] = ResourceRequests.of_spec(raw)
        return found

    @_unaffected_by_node_affinity
    def requests(self) -> Resources:
        return self.resource_requests.requests

    @_unaffected_by_node_affinity
    def nonzero_requests(self) -> tuple[int, int]:
        return self.resource_requests.nonzero

    @_unaffected_by_node_affinity
    def fit_score_requests(self) -> Resources:
        return self.resource_requests.fit_score

    @_unaffected
    def scheduler_name(self) -> str:
        return self.raw.get("schedulerName") or "default-scheduler"

    @_unaffected
    def priority(self) -> int:
        return self.raw.get("priority") or 0

    @_unaffected
    def preemption_policy(self) -> str:
        return self.raw.get("preemptionPolicy") or "PreemptLowerPriority"

    @_unaffected
    def scheduling_gates(self) -> tuple[str, ...]:
        return tuple(gate.get("name", "") for gate in self.raw.get("schedulingGates") or ())

    @_unaffected
    def pod_group_name(self) -> str:
        """Return the name of the pod's PodGroup in its namespace, or "" if it has none."""
        return (self.raw.get("schedulingGroup") or _NOTHING).get("podGroupName") or ""

    @_unaffected
    def tolerations(self) -> tuple[Toleration, ...]:
        tolerations = self.raw.get("tolerations")
        return _tolerations(_pack(tolerations)) if tolerations else ()

    @_unaffected
    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """Return (host IP, protocol, port) of every host port of containers and sidecars."""
        wanted = []
        containers = list(self.raw.get("containers") or ())
        containers += [c for c in self.raw.get("initContainers") or () if c.get("restartPolicy") == "Always"]
        for container in containers:
            for port in container.get("ports") or ():
                if port.get("hostPort"):
                    wanted.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]))
        return tuple(wanted)

    @_unaffected
    def images(self) -> tuple[str, ...]:
        """Return the normalized image names of init containers and containers, including duplicates."""
        containers = [*(self.raw.get("initContainers") or ()), *(self.raw.get("containers") or ())]
        return tuple(image_name(container.get("image") or "") for container in containers)

    @_unaffected
    def volume_images(self) -> tuple[str, ...]:
        """Return the normalized names of images that are mounted as volumes."""
        return tuple(
            image_name(volume["image"].get("reference") or "")
            for volume in self.volumes
            if volume.get("image") is not None
        )

    @_unaffected
    def node_selector(self) -> Mapping[str, str]:
        return self.raw.get("nodeSelector") or {}

    @cached
    def _affinity(self) -> Raw:
        return self.raw.get("affinity") or _NOTHING

    @_unaffected_by_amounts
    def required_node_affinity(self) -> NodeSelector | None:
        """Return the required node affinity without nodeSelector, or None."""
        affinity = self._affinity.get("nodeAffinity") or _NOTHING
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        return None if required is None else parse_node_selector(required)

    @_unaffected_by_amounts
    def required_node(self) -> str | None:
        """Return the node that the required node affinity names if it contains nothing else, as for a DaemonSet's pods.

        Else None.
        """
        affinity = self._affinity.get("nodeAffinity") or _NOTHING
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or _NOTHING
        terms: Sequence[Raw] = required.get("nodeSelectorTerms") or ()
        if len(terms) != 1 or terms[0].get("matchExpressions"):
            return None
        fields: Sequence[Raw] = terms[0].get("matchFields") or ()
        if len(fields) != 1 or fields[0].get("key") != NODE_NAME or fields[0].get("operator") != IN:
            return None
        values: Sequence[str] = fields[0].get("values") or ()
        return values[0] if len(values) == 1 else None

    @_unaffected_by_amounts
    def preferred_node_affinity(self) -> tuple[tuple[int, NodeSelectorTerm], ...]:
        """Return the preferred terms as (weight, term) pairs. Raises SelectorError for an invalid term."""
        affinity = self._affinity.get("nodeAffinity") or _NOTHING
        return parse_preferred_terms(affinity.get("preferredDuringSchedulingIgnoredDuringExecution"))

    @_unaffected
    def has_pod_affinity(self) -> bool:
        """Return whether the spec has pod affinity or anti-affinity of any kind (upstream's podWithAffinity)."""
        return bool(self._affinity.get("podAffinity") or self._affinity.get("podAntiAffinity"))

    @_unaffected
    def volumes(self) -> tuple[Raw, ...]:
        return tuple(self.raw.get("volumes") or ())

    @_unaffected
    def restricting_volumes(self) -> tuple[Raw, ...]:
        """Return the volumes that may restrict the choice of nodes: all except those that each node can provide.

        Almost every pod of a real cluster has a projected volume for the token of its service account.
        """
        return tuple(volume for volume in self.volumes if not _ON_EACH_NODE.issuperset(volume))

    @_unaffected
    def resource_claims(self) -> tuple[Raw, ...]:
        return tuple(self.raw.get("resourceClaims") or ())


def _affected(without: str) -> tuple[str, ...]:
    """Return the names of the cached attributes that a spec does not share with its more general spec."""
    computed = [(name, field) for name, field in vars(PodSpec).items() if isinstance(field, cached)]
    own = [name for name, field in computed if not isinstance(field, _Shared) or without not in field.unaffected_by]
    return (*own, "_read_only")


_AFFECTED_BY_NODE_AFFINITY = _affected("spec_without_node_affinity")
_AFFECTED_BY_AMOUNTS = _affected("spec_without_amounts")


def _take_over(spec: PodSpec, other: PodSpec, affected: tuple[str, ...]) -> None:
    """Copy the other spec's cached values, except those that depend on the difference."""
    computed = {**other.__dict__, **spec.__dict__}
    for name in affected:
        if name not in spec.__dict__:
            computed.pop(name, None)
    spec.__dict__ = computed


@attrs.frozen(eq=False, slots=False)
class ResourceRequests:
    requests: Resources
    nonzero: tuple[int, int]
    fit_score: Resources

    @classmethod
    def of_spec(cls, spec: Raw) -> Self:
        requests = FrozenDict(pod_requests(spec))
        if states_cpu_and_memory(spec):
            return cls(requests, (requests.get("cpu", 0), requests.get("memory", 0)), requests)
        return cls(requests, pod_nonzero_requests(spec), FrozenDict(pod_fit_score_requests(spec)))

    @cached
    def wraps(self) -> bool:
        """Return whether an amount is negative, or so large that arithmetic with it may overflow int64."""
        amounts = (*self.requests.values(), *self.nonzero, *self.fit_score.values())
        return min(amounts) < 0 or max(amounts) > PLAIN_AMOUNT


# different specs often have equal requests and tolerations These are cached here.
_requests: dict[bytes, ResourceRequests] = {}  # requests by the packed parts of the spec on which they depend


def _stating(containers: Sequence[Raw] | None) -> list[Raw]:
    return [{name: container[name] for name in _ASKING if name in container} for container in containers or ()]


@lru_cache(256)
def _tolerations(packed: bytes) -> tuple[Toleration, ...]:
    return tuple(parse_toleration(raw) for raw in msgpack.unpackb(packed))


@attrs.define(eq=False, slots=False)
class PodSignature:
    """A signature: the same object for all pods with equal spec, namespace and labels.

    `id` is unique in this process and is never reused.
    """

    namespace: str
    labels: Mapping[str, str]
    spec: PodSpec
    id: int

    @cached
    def _ignoring_node(self) -> "PodSignature | None":
        spec = self.spec
        if spec.required_node is None:
            return None
        assert spec.spec_without_node_affinity is not None, "a pod with a node name in its affinity has node affinity"
        return intern_signature(self.namespace, self.labels, spec.spec_without_node_affinity)

    @cached
    def _without_amounts(self) -> "PodSignature | None":
        return None  # not set

    @cached
    def _alike(self) -> "PodSignature | None":
        """Return a signature that differs only in node affinity, amounts or weights, and shares other cached values."""
        return self._ignoring_node

    def differs_in_node_affinity(self, other: "PodSignature") -> None:
        """Set the signature without node affinity, so that it need not be looked up."""
        self.__dict__.setdefault("_ignoring_node", None if self.spec.required_node is None else other)
        self.__dict__.setdefault("_alike", other)

    def set_without_amounts(self, other: "PodSignature") -> None:
        """Set the signature with `spec_without_amounts`."""
        if other is not self:
            self.__dict__.setdefault("_without_amounts", other)
            self.__dict__.setdefault("_alike", other)

    @property
    def signature_ignoring_node(self) -> int:
        """The signature id that ignores the node named by the required node affinity."""
        return self.id if self._ignoring_node is None else -self._ignoring_node.id

    @cached
    def signature_ignoring_amounts(self) -> int:
        """Return the signature id that ignores amounts of cpu and memory, and weights of pod affinity.

        If `set_without_amounts` was not called, this is the signature's own id.
        """
        return self.id if self._without_amounts is None else self._without_amounts.id

    @_of_signatures_alike
    def group_key(self) -> tuple[str, frozenset[tuple[str, str]]]:
        """Return namespace and labels, which are all that label selectors read."""
        return self.namespace, frozenset(self.labels.items())

    def _terms(self, which: str, strength: str) -> list[Raw]:
        return (self.spec._affinity.get(which) or _NOTHING).get(
            strength + "DuringSchedulingIgnoredDuringExecution"
        ) or []

    def _required(self, which: str) -> tuple[PodAffinityTerm, ...]:
        return tuple(parse_pod_affinity_term(raw, self.namespace) for raw in self._terms(which, "required"))

    def _preferred(self, which: str) -> tuple[WeightedPodAffinityTerm, ...]:
        return tuple(
            WeightedPodAffinityTerm(raw["weight"], parse_pod_affinity_term(raw["podAffinityTerm"], self.namespace))
            for raw in self._terms(which, "preferred")
        )

    def _with_own_weights(
        self, which: str, known: tuple[WeightedPodAffinityTerm, ...]
    ) -> tuple[WeightedPodAffinityTerm, ...]:
        raws = self._terms(which, "preferred") if known else ()
        return tuple([WeightedPodAffinityTerm(raw["weight"], of.term) for raw, of in zip(raws, known, strict=True)])

    @_of_signatures_alike
    def required_affinity(self) -> tuple[PodAffinityTerm, ...]:
        return self._required("podAffinity")

    @_of_signatures_alike
    def required_anti_affinity(self) -> tuple[PodAffinityTerm, ...]:
        return self._required("podAntiAffinity")

    @cached
    def preferred_affinity(self) -> tuple[WeightedPodAffinityTerm, ...]:
        if self._alike is not None:
            return self._with_own_weights("podAffinity", self._alike.preferred_affinity)
        return self._preferred("podAffinity")

    @cached
    def preferred_anti_affinity(self) -> tuple[WeightedPodAffinityTerm, ...]:
        if self._alike is not None:
            return self._with_own_weights("podAntiAffinity", self._alike.preferred_anti_affinity)
        return self._preferred("podAntiAffinity")

    @_of_signatures_alike
    def spread_constraints(self) -> tuple[SpreadConstraint, ...]:
        raw = self.spec.raw.get("topologySpreadConstraints") or ()
        return tuple(parse_spread_constraint(constraint, self.labels) for constraint in raw)


_specs: WeakValueDictionary[tuple[bytes, bytes], PodSpec] = WeakValueDictionary()
_signatures: WeakValueDictionary[tuple[int, str, bytes], PodSignature] = WeakValueDictionary()
_pack = msgpack.Packer(autoreset=True).pack


def intern_spec(raw: Raw) -> PodSpec:
    """Return the PodSpec that is shared by all specs equal to `raw`, ignoring nodeName."""
    if "nodeName" in raw:
        raw = {name: field for name, field in raw.items() if name != "nodeName"}
    affinity = raw.get("affinity") or _NOTHING
    if node_affinity := affinity.get("nodeAffinity"):
        spec_without_node_affinity = intern_spec({**raw, "affinity": {**affinity, "nodeAffinity": {}}})
        return intern_with_node_affinity(spec_without_node_affinity, node_affinity)
    key: bytes = _pack(raw)
    spec = _specs.get((key, b""))
    if spec is None:
        spec = _specs[key, b""] = PodSpec(raw, key)
    return spec


def intern_with_node_affinity(
    spec_without_node_affinity: PodSpec, node_affinity: Raw, packed: bytes | None = None, required_node: str = ""
) -> PodSpec:
    """Return the interned PodSpec with this node affinity in place of its own.

    A DaemonSet's pods share `spec_without_node_affinity`. Pass `packed` and `required_node` if they are already
    computed.
    """
    key = spec_without_node_affinity.key, packed or _pack(node_affinity)
    spec = _specs.get(key)
    if spec is None:
        raw = {
            **spec_without_node_affinity.raw,
            "affinity": {**spec_without_node_affinity.raw["affinity"], "nodeAffinity": node_affinity},
        }
        spec = _specs[key] = PodSpec(raw, spec_without_node_affinity.key, spec_without_node_affinity)
        _take_over(spec, spec_without_node_affinity, _AFFECTED_BY_NODE_AFFINITY)
        if required_node:
            spec.__dict__["required_node"] = required_node
    return spec


def intern_signature(namespace: str, labels: Mapping[str, str], spec: PodSpec) -> PodSignature:
    key = (id(spec), namespace, _pack(labels))
    signature = _signatures.get(key)
    # A freed spec's id may be reused for another spec, so the specs are compared by identity.
    if signature is None or signature.spec is not spec:
        signature = _signatures[key] = PodSignature(namespace, labels, spec, next(_numbers))
    return signature


class Counted(Protocol):
    """A pod's requests as they are counted on a node."""

    @property
    def requests(self) -> Resources: ...

    @property
    def nonzero_requests(self) -> tuple[int, int]: ...


@attrs.frozen
class CountedRequests:
    requests: Resources
    nonzero_requests: tuple[int, int]


@fast_frozen(eq=False)
class Pod(Object):
    """A pod: its `name`, `namespace`, `labels` and `uid`, and its manifest `raw`, which must not be changed."""

    signature: PodSignature
    node_name: str  # "" while unassigned
    nominated_node_name: str
    phase: str
    start_time: str  # "" until the kubelet admits the pod
    deletion_timestamp: str  # "" unless the pod is terminating

    @classmethod
    def from_raw(cls, raw: Raw) -> Self:
        meta = raw["metadata"]
        spec_raw = raw["spec"]
        status = raw.get("status") or _NOTHING
        namespace = meta.get("namespace") or ""
        spec = intern_spec(spec_raw)
        signature = intern_signature(namespace, meta.get("labels") or _NOTHING, spec)
        return cls(
            "Pod",
            meta.get("name", ""),
            namespace,
            meta.get("uid") or "",
            version_of(meta.get("resourceVersion")),
            signature.labels,
            raw,
            signature,
            spec_raw.get("nodeName") or "",
            status.get("nominatedNodeName") or "",
            status.get("phase") or "",
            status.get("startTime") or "",
            meta.get("deletionTimestamp") or "",
        )

    @property
    def pod_group(self) -> str:
        """The key of the pod's PodGroup (`namespace/name`); "" if it has none."""
        name = self.pod_spec.pod_group_name
        return f"{self.namespace}/{name}" if name else ""

    @property
    def pod_spec(self) -> PodSpec:
        return self.signature.spec

    @property
    def priority(self) -> int:
        return self.signature.spec.priority

    @property
    def scheduler_name(self) -> str:
        return self.signature.spec.scheduler_name

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp != ""

    @property
    def finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def _shared_status(self) -> Raw | None:
        """The status without a copy; callers must not return it to others."""
        return self.raw.get("status")

    @property
    def requests(self) -> Resources:
        """The pod's current resource requests on its node: `cpu` in thousandths of a core, `memory` in bytes.

        During an in-place resize, these requests may exceed those in the spec.
        """
        status = self._shared_status
        if resizes(self.signature.spec.raw, status):
            return pod_requests(self.signature.spec.raw, status)
        return self.signature.spec.requests

    @property
    def nonzero_requests(self) -> tuple[int, int]:
        status = self._shared_status
        if resizes(self.signature.spec.raw, status):
            return pod_nonzero_requests(self.signature.spec.raw, status)
        return self.signature.spec.nonzero_requests

    @property
    def reports_resources(self) -> bool:
        """True if the pod's requests may differ from the requests of the spec."""
        return resizes(self.signature.spec.raw, self._shared_status)

    @property
    def resize_deferred(self) -> bool:
        """True if the pod's node currently has too few free resources to resize the pod."""
        return why_resize_pends(self._shared_status or {}) == "Deferred"

    def counted(self, rules: ResizeRules) -> "Counted":
        """Return the pod's requests as they are counted on its node under these rules."""
        spec, status = self.signature.spec, self._shared_status
        if not resizes(spec.raw, status):
            return spec
        return CountedRequests(pod_requests(spec.raw, status, rules), pod_nonzero_requests(spec.raw, status, rules))

    def at_version(self, version: int) -> Self:
        # several times faster than `attrs.evolve`
        return type(self)(
            self.kind,
            self.name,
            self.namespace,
            self.uid,
            version,
            self.labels,
            {**self.raw, "metadata": {**self.raw["metadata"], "resourceVersion": str(version)}},
            self.signature,
            self.node_name,
            self.nominated_node_name,
            self.phase,
            self.start_time,
            self.deletion_timestamp,
        )

    def on_node(self, node_name: str) -> "Pod":
        """Return the pod with this node in `spec.nodeName`, with the same signature."""
        raw = dict(self.raw)
        spec = dict(raw["spec"])
        spec["nodeName"] = node_name
        raw["spec"] = spec
        return Pod(
            self.kind,
            self.name,
            self.namespace,
            self.uid,
            self.resource_version,
            self.labels,
            raw,
            self.signature,
            node_name,
            self.nominated_node_name,
            self.phase,
            self.start_time,
            self.deletion_timestamp,
        )
