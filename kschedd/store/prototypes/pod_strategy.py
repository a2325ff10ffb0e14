"""Pod creation and update: defaulting, validation, admission and interning, cached per spec.

A cluster has many pods with few distinct specs. The result for a spec depends only on the spec, the pod's labels, the
keys of its annotations, its ownerReferences and finalizers, and the PriorityClasses and RuntimeClasses of the cluster.
The cache key is the packed bytes of these parts of the pod. The cache is cleared when a PriorityClass or RuntimeClass
changes. The pod's name is checked each time. A cached result takes about 10 KB of memory, including data that is
derived later from the spec. If every pod has its own labels or spec, the cache fills up to its limit.

Specs that differ only in amounts and weights have the same spec without amounts (`spec_without_amounts`). If a spec is
not in the cache, its spec without amounts is looked up in a second cache.

Two fields of a spec, nodeName and node affinity, are validated separately and do not influence other fields. The pods
of a DaemonSet, or of a loaded cluster, often differ only in these two fields, so the cache key omits them.

Source of the pod rules: Kubernetes v1.34, pkg/registry/core/pod/strategy.go.
Raises: Invalid, Forbidden.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Object, Raw, version_of
from kschedd.api.pods import Pod, PodSignature, PodSpec, intern_signature, intern_spec, intern_with_node_affinity
from kschedd.api.qos import qos_of_spec
from kschedd.api.schemas.check import (
    check_meta_schema,
)
from kschedd.api.schemas.codec import encoded
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.api.schemas.schema import type_named
from kschedd.api.selecting.names import dns_subdomain, is_dns_subdomain, without_last_dash
from kschedd.api.selecting.requirements import IN
from kschedd.api.selecting.selectors import NODE_NAME
from kschedd.registry.defaults import merge_label_keys
from kschedd.registry.disabled_fields import NO_FEATURES, drop_disabled
from kschedd.registry.pods.annotations import (
    is_about_spec,
    validate_claims_by_name,
    validate_pod_annotations,
    validate_profiles_match,
    with_app_armor_fields,
)
from kschedd.registry.pods.defaults import with_positive_grace
from kschedd.registry.pods.validation import validate_new_pod, validate_tokens
from kschedd.registry.validation import (
    default_and_validate_meta,
    default_and_validate_node_affinity,
    default_and_validate_pod_status,
    defaulted_pod_spec,
    validate_pod_spec,
)
from kschedd.registry.validation_times import updated_faults
from kschedd.store.admission.cache import AdmissionCache
from kschedd.store.admission.chain import Admission
from kschedd.store.admission_plugins.attributes import Attributes, Classes
from kschedd.store.errors import ApiError, Invalid, Undecodable
from kschedd.store.field_validation import accepted
from kschedd.store.prototypes.spec_without_amounts import without_amounts
from kschedd.values import fast_frozen

_POD_SPEC: Final = type_named("PodSpec")
_POD_STATUS: Final = type_named("PodStatus")
_META: Final = type_named("meta.ObjectMeta")
_NODE_AFFINITY: Final = type_named("NodeAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_IN_ORDER: Final = ["key", "operator", "values"]  # fields that keep their order
_NOTHING: Mapping[str, Any] = {}
MOST_ADMITTED: Final = 8192
# maximum number of node affinities for all specs together; a DaemonSet needs one for each node
MOST_NODE_AFFINITIES: Final = 8192
_REMEMBERED_NODE_AFFINITIES: Final = 1 << 10
_REMEMBERED_STATUSES: Final = 1 << 8
SHARED_META: Final[Sequence[str]] = ("labels", "ownerReferences", "finalizers")
_JUDGED: Final = frozenset((*SHARED_META, "annotations", "namespace", "name", "generateName"))
_LONG: Final = 1 << 16  # pods whose annotations have this many characters are not cached
_pack = msgpack.Packer(autoreset=True).pack

GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
    "lastProbeTime": None,
    "lastTransitionTime": None,
}


@fast_frozen(eq=False)
class InternedPod:
    """The parts of a pod that pods with equal spec and metadata (labels, owners, finalizers) share."""

    spec: PodSpec
    labels: Mapping[str, str]
    meta: Mapping[str, Any]  # labels, owners and finalizers as stored
    _status: Mapping[str, Any]  # initial status of a pod with these parts, without the time of its condition
    size: int  # bytes of the spec
    annotations: Mapping[str, str] = _NOTHING  # added by admission
    warnings: Sequence[str] = ()  # from admission
    stated_spec: Raw | None = None  # spec before admission, if an annotation contains the spec as the user wrote it
    unpinned: "InternedPod | None" = None  # the same pod without node affinity
    without_amounts: "InternedPod | None" = None  # result for the spec without amounts, if it was looked up
    _signatures: dict[str, PodSignature] = attrs.field(factory=dict, init=False)  # by namespace

    def status_at(self, at: str) -> Mapping[str, Any]:
        """Return the initial status of a pod with these parts, created at this time."""
        if "conditions" not in self._status:
            return self._status
        return {**self._status, "conditions": [{**GATED, "lastTransitionTime": at}]}

    def signature_in(self, namespace: str) -> PodSignature:
        signature = self._signatures.get(namespace)
        if signature is None:
            signature = self._signatures[namespace] = intern_signature(namespace, self.labels, self.spec)
            if self.unpinned is not None:
                signature.differs_in_node_affinity(self.unpinned.signature_in(namespace))
            elif self.without_amounts is not None:
                signature.set_without_amounts(self.without_amounts.signature_in(namespace))
        return signature


def packed(kind: str, name: str, raw: Any) -> bytes:
    """Return the msgpack bytes of a manifest, or of a part of one.

    Raises Invalid for values that cannot be serialized.
    """
    try:
        data: bytes = _pack(raw)
    except (OverflowError, ValueError, TypeError) as error:
        why = "a number is beyond 64 bits" if isinstance(error, OverflowError) else str(error)
        raise Invalid(kind, name, (FieldError("", None, f"the object cannot be stored: {why}"),)) from None
    return data


class PodStrategy:
    def __init__(
        self, admission: Admission, classes: Classes, features: Callable[[], frozenset[str]] = lambda: NO_FEATURES
    ) -> None:
        self._admission = admission
        self._features = features  # the enabled features
        self._classes = classes
        self.remembered: AdmissionCache[bytes, InternedPod] = AdmissionCache(MOST_ADMITTED)
        self.remembered_without_amounts: AdmissionCache[bytes, InternedPod] = AdmissionCache(MOST_ADMITTED)
        # key: id of the result without node affinity (which the other caches contain), and pinned node or packed node
        # affinity Storing both results together would create a reference cycle.
        self.remembered_with_node_affinity: AdmissionCache[tuple[int, str | bytes], InternedPod]
        self.remembered_with_node_affinity = AdmissionCache(MOST_NODE_AFFINITIES)
        # key: packed node affinity; value: affinity in stored form, and its packed form
        self._node_affinities: AdmissionCache[bytes, tuple[Raw, bytes]] = AdmissionCache(_REMEMBERED_NODE_AFFINITIES)
        self._statuses: dict[bytes, Raw] = {}
        self._scopes: dict[str, Sequence[Any] | None] = {}  # by namespace

    def forget_scopes(self) -> None:
        """Drop the cached scopes, because a Namespace, LimitRange or ServiceAccount was changed."""
        self._scopes.clear()

    def forget(self) -> None:
        """Clear the cache after a change of a PriorityClass or RuntimeClass, which may change admission results."""
        self.remembered.clear()
        self.remembered_without_amounts.clear()
        self.remembered_with_node_affinity.clear()

    def admit(self, raw: Raw, meta: dict[str, Any], name: str, *, restored: bool = False) -> InternedPod:
        """Admit a new pod with this manifest. `meta` is the pod's metadata with its final name and namespace.

        A `restored` pod comes from another API server, so that it may have ephemeral containers. Raises Invalid and
        Forbidden.
        """
        spec = raw.get("spec")
        if restored and isinstance(spec, Mapping) and spec.get("ephemeralContainers"):
            return self._admit(spec, meta, name, restored=True)
        if not is_dns_subdomain(name) or not _is_usual(meta) or has_claims_by_name(spec):
            return self._admit(spec, meta, name)  # this call raises an error that includes the faults of the spec
        annotations = meta.get("annotations")
        if annotations is not None and (not are_plain(annotations) or any(map(is_about_spec, annotations))):
            return self._admit(spec, meta, name)
        spec_without_node_affinity, node_affinity = _parted(spec)
        own = list(annotations) if annotations else None, meta.get("ownerReferences"), meta.get("finalizers")
        namespace = meta["namespace"]
        try:
            scope = self._scopes[namespace]
        except KeyError:
            scope = self._scopes[namespace] = self._admission.scope(namespace, self._classes)
        key = packed("Pod", name, (spec_without_node_affinity, meta.get("labels"), own, scope))
        try:
            found = self.remembered.get(key)
            if found is None:
                if scope is None and type(spec_without_node_affinity) is dict:
                    found = self._by_spec_without_amounts(spec_without_node_affinity, meta, own, name)
                found = found or self._admit(spec_without_node_affinity, meta, name)
                self.remembered.add(key, found)
            return found if node_affinity is None else self.with_node_affinity(found, node_affinity, name)
        except ApiError:
            if spec_without_node_affinity is not spec:
                # the error contains the faults of the whole spec, not only of `spec_without_node_affinity`
                self._admit(spec, meta, name)
            raise

    def _by_spec_without_amounts(self, spec: Raw, meta: dict[str, Any], own: object, name: str) -> InternedPod | None:
        """Derive the result for this spec from the cached result of its spec without amounts; None if there is none.

        Never raises an exception, because errors must be reported for the original spec.
        """
        plain = without_amounts(spec)
        if plain is None:
            return None
        key = packed("Pod", name, (plain.spec, meta.get("labels"), own))
        known = self.remembered_without_amounts.get(key)
        if known is None:
            try:
                known = self._admit(plain.spec, meta, name)
            except ApiError:
                return None
            self.remembered_without_amounts.add(key, known)
        if known.stated_spec is not None:
            return None
        interned = intern_spec(plain.fill(known.spec.raw))
        interned.set_without_amounts(known.spec)
        return InternedPod(
            interned,
            known.labels,
            known.meta,
            known._status,
            len(interned.key),
            warnings=known.warnings,
            without_amounts=known,
        )

    def with_node_affinity(self, without: InternedPod, node_affinity: Raw, name: str) -> InternedPod:
        """Return the result for pods that differ from those of `without` only in this node affinity.

        Raises Invalid.
        """
        node_name = node_of_pinned(node_affinity)
        if node_name is not None:
            return self.pinned(without, node_name)
        stated = packed("Pod", name, node_affinity)
        key = id(without), stated
        found = self.remembered_with_node_affinity.get(key)
        if found is None:
            admitted = self._node_affinities.get(stated)
            if admitted is None:
                decoded, faults = default_and_validate_node_affinity(node_affinity, "spec.affinity.nodeAffinity")
                if faults:
                    raise Invalid("Pod", name, tuple(faults))
                text = packed("Pod", name, encoded(decoded, _NODE_AFFINITY))
                admitted = msgpack.unpackb(text), text  # the copy contains no references to the client's data
                self._node_affinities.add(stated, admitted)
            clean, text = admitted
            found = _with(without, intern_with_node_affinity(without.spec, clean, text), len(text))
            self.remembered_with_node_affinity.add(key, found)
        return found

    def pinned(self, without: InternedPod, node_name: str) -> InternedPod:
        """Return the result for the node affinity of a DaemonSet's pod for this node (`node_of_pinned`)."""
        key = id(without), node_name
        found = self.remembered_with_node_affinity.get(key)
        if found is None:
            node_affinity = pinned_to(node_name)
            text: bytes = _pack(node_affinity)
            spec = intern_with_node_affinity(without.spec, node_affinity, text, node_name)
            found = _with(without, spec, len(text))
            self.remembered_with_node_affinity.add(key, found)
        return found

    def _admit(self, spec: Any, meta: dict[str, Any], name: str, *, restored: bool = False) -> InternedPod:
        kind = BY_NAME["Pod"]
        clean, faults = default_and_validate_meta(meta, kind)
        done, mistyped = defaulted_pod_spec(spec)
        if mistyped or check_meta_schema(meta):
            accepted("Pod", name, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
            raise AssertionError(f"the fast path rejects a spec that validation of the pod accepts: {mistyped}")
        if "annotations" in clean:
            meta["annotations"] = clean["annotations"]
        attributes = Attributes("CREATE", "Pod", meta["namespace"], name)
        pod = self._admission.admit(
            attributes, {"metadata": {"labels": clean.get("labels")}, "spec": done}, self._classes
        )
        prepared = with_positive_grace(drop_disabled(dict(pod["spec"]), None, self._features()))
        noted = meta.get("annotations") or _NOTHING
        merged = merge_label_keys(prepared, clean.get("labels") or _NOTHING)
        admitted, deprecated = with_app_armor_fields(merged, noted)
        validate_pod_annotations(noted, admitted, "metadata.annotations", faults)
        faults += validate_pod_spec(admitted)
        validate_claims_by_name(name, admitted, faults)
        validate_tokens(admitted, faults)
        if not restored:
            validate_new_pod(admitted, faults)
        validate_profiles_match(noted, admitted, "spec", faults)
        if faults:
            raise Invalid("Pod", name, tuple(faults))
        warnings = [*deprecated, *self._admission.validate(attributes, {**pod, "spec": admitted}, None, self._classes)]
        interned = intern_spec(encoded(admitted, _POD_SPEC))
        status: dict[str, Any] = {"phase": "Pending", "qosClass": qos_of_spec(admitted)}
        if interned.scheduling_gates:
            status["conditions"] = [GATED]
        shared: dict[str, Any] = {field: clean[field] for field in SHARED_META if field in clean}
        notes = pod["metadata"].get("annotations") or _NOTHING
        stated = encoded(done, _POD_SPEC) if notes else None
        labels = clean.get("labels") or _NOTHING
        return InternedPod(interned, labels, shared, status, len(interned.key), notes, warnings, stated)

    def restored_status(self, born: Raw, raw: Raw, meta: Raw, name: str) -> Raw:
        """Return the status of a pod that is restored with the status in its manifest; equal statuses are shared.

        Raises Invalid.
        """
        key = packed("Pod", name, (raw["status"], born))
        found = self._statuses.get(key)
        if found is None:
            status, faults = default_and_validate_pod_status(raw["status"])
            if faults:
                accepted("Pod", name, {**raw, "metadata": meta})
                raise AssertionError(f"the fast path rejects a status that validation of the pod accepts: {faults}")
            found = encoded({**born, **status}, _POD_STATUS)
            if len(self._statuses) >= _REMEMBERED_STATUSES:
                self._statuses.clear()
            self._statuses[key] = found
        return found

    def admit_update(
        self,
        raw: Raw,
        old: Object,
        subresource: str,
        check: Callable[[Raw], list[FieldError]],
        changes: list[FieldError],
        warn: Callable[[str], None],
    ) -> dict[str, Any]:
        """Return the manifest of the updated pod with defaults and admission; its spec is not interned yet.

        `check` returns the errors of the change, `changes` are the errors of the metadata, and `warn` is called with
        warnings. Raises Invalid with all errors, and Forbidden.
        """
        name = old.name
        # matchLabelKeys were merged at creation, and must not be merged with the current labels.
        spec, mistyped = defaulted_pod_spec(raw.get("spec"))
        meta, faults = default_and_validate_meta(raw.get("metadata"), BY_NAME["Pod"])
        if mistyped or check_meta_schema(raw.get("metadata")):
            raise Undecodable("Pod", name, (*(faults if not mistyped else ()), *mistyped))
        attributes = Attributes("UPDATE", "Pod", old.namespace, name, subresource)
        pod = self._admission.admit(attributes, {**raw, "metadata": meta, "spec": spec}, self._classes)
        spec = with_positive_grace(drop_disabled(dict(pod["spec"]), old.raw["spec"], self._features()))
        admitted = {**raw, "metadata": encoded(meta, _META), "spec": encoded(spec, _POD_SPEC)}
        of_spec = validate_pod_spec(spec)
        validate_claims_by_name(name, spec, of_spec)
        validate_tokens(spec, of_spec)
        if faults := [*updated_faults("Pod", faults, changes, of_spec), *check(admitted)]:
            raise Invalid("Pod", name, tuple(faults))
        for warning in self._admission.validate(attributes, admitted, old.raw, self._classes):
            warn(warning)
        return admitted


def _is_usual(meta: dict[str, Any]) -> bool:
    """Return whether a pod's metadata is valid, except for names and the fields in the cache key."""
    generate_name = meta.get("generateName")
    if generate_name and (type(generate_name) is not str or dns_subdomain(without_last_dash(generate_name))):
        return False
    return _JUDGED.issuperset(meta) or not check_meta_schema(
        {field: value for field, value in meta.items() if field not in _JUDGED}
    )


def _parted(spec: Any) -> tuple[Any, Raw | None]:
    """Return the spec without nodeName and node affinity, and the node affinity (None if the spec has none)."""
    if type(spec) is not dict:
        return spec, None
    node_name = spec.get("nodeName")
    if type(node_name) is str and not dns_subdomain(node_name) and not spec.get("schedulingGates"):
        spec = {field: value for field, value in spec.items() if field != "nodeName"}
    affinity = spec.get("affinity")
    node_affinity = affinity.get("nodeAffinity") if type(affinity) is dict else None
    if not node_affinity:
        return spec, None
    return {**spec, "affinity": {**affinity, "nodeAffinity": {}}}, node_affinity


def has_claims_by_name(spec: Any) -> bool:
    """Return whether the pod has ephemeral volumes, for which the names of the claims contain the pod's name."""
    volumes = spec.get("volumes") if type(spec) is dict else None
    return type(volumes) is list and any(type(volume) is dict and "ephemeral" in volume for volume in volumes)


def _with(without: InternedPod, spec: PodSpec, longer: int) -> InternedPod:
    """Return the result with this node affinity in the spec; `longer` is the number of additional bytes."""
    return InternedPod(
        spec,
        without.labels,
        without.meta,
        without._status,
        without.size + longer,
        without.annotations,
        without.warnings,
        without.stated_spec,
        without,
    )


def node_of_pinned(node_affinity: Any) -> str | None:
    """Return the node to which an affinity from `pinned_to` pins the pod; None for any other affinity."""
    try:
        (required,) = node_affinity.values()
        (term,) = required["nodeSelectorTerms"]
        (field,) = term["matchFields"]
        (name,) = field["values"]
        if (
            _REQUIRED in node_affinity
            and len(required) == len(term) == 1
            and list(field) == _IN_ORDER
            and field["key"] == NODE_NAME
            and field["operator"] == IN
            and type(name) is str
            and not dns_subdomain(name)
        ):
            return name
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    return None


def pinned_to(node_name: str) -> Raw:
    """Return the node affinity that pins a DaemonSet's pod to this node."""
    fields = [{"key": NODE_NAME, "operator": IN, "values": [node_name]}]
    return {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}


def are_plain(annotations: Any) -> bool:
    """Return whether only the keys of the annotations need validation."""
    if not isinstance(annotations, dict) or not all(type(text) is str for text in annotations.values()):
        return False
    return sum(map(len, annotations.values())) < _LONG


def new_pod(raw: Raw, meta: Raw, admitted: InternedPod, node_name: str, status: Raw) -> Pod:
    """Return the typed pod of an admitted manifest; it contains the interned spec, which equal pods share."""
    signature = admitted.signature_in(meta["namespace"])
    spec = admitted.spec.raw
    stored = {
        "apiVersion": raw.get("apiVersion") or "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**spec, "nodeName": node_name} if node_name else spec,
        "status": status,
    }
    return typed_pod(stored, signature, node_name)


def typed_pod(raw: Raw, signature: PodSignature, node_name: str) -> Pod:
    """Build a pod like `Pod.from_raw`, with a signature that was computed before."""
    meta = raw["metadata"]
    status = raw.get("status") or _NOTHING
    return Pod(
        "Pod",
        meta["name"],
        signature.namespace,
        meta["uid"],
        version_of(meta["resourceVersion"]),
        signature.labels,
        raw,
        signature,
        node_name,
        status.get("nominatedNodeName") or "",
        status.get("phase") or "",
        status.get("startTime") or "",
        meta.get("deletionTimestamp") or "",
    )


def rebuild_pod(raw: Raw, old: Pod) -> Pod:
    """Return the typed pod of a changed manifest, with an interned spec.

    The old signature is reused if it is still valid.
    """
    meta = raw["metadata"]
    if raw["spec"] is old.raw["spec"] and (meta.get("labels") or _NOTHING) == old.labels:
        return typed_pod(raw, old.signature, old.node_name)
    node_name = raw["spec"].get("nodeName") or ""
    spec = intern_spec(raw["spec"])
    signature = intern_signature(old.namespace, meta.get("labels") or _NOTHING, spec)
    raw = {**raw, "spec": {**spec.raw, "nodeName": node_name} if node_name else spec.raw}
    return typed_pod(raw, signature, node_name)


def intern_pod(pod: Pod) -> Pod:
    """Return a parsed pod with interned spec and labels in its manifest, so that equal pods share them."""
    spec: Raw = pod.pod_spec.raw
    if pod.node_name:
        spec = {**spec, "nodeName": pod.node_name}
    meta = pod.raw["metadata"]
    if "labels" in meta:
        meta = {**meta, "labels": pod.labels}
    return typed_pod({**pod.raw, "metadata": meta, "spec": spec}, pod.signature, pod.node_name)
