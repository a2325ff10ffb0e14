"""Pods on their way in: defaulted, checked, admitted and interned, at the price of one look-up for a spec seen before.

A cluster gets many pods of few specs, and all that happens to a spec on its way in depends on the spec, the pod's
labels, the names of its annotations and the cluster's classes. So the outcome is remembered under the packed bytes of
those and forgotten when a PriorityClass or RuntimeClass changes. What differs from pod to pod (its name) is checked
each time.

Source of the rules on pods: Kubernetes v1.34, pkg/registry/core/pod/strategy.go.
Raises: Invalid, Forbidden.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Raw, _version
from kschedd.api.pods import Pod, PodShape, PodSpec, intern_shape, intern_spec
from kschedd.store.admission import Admission, Classes
from kschedd.store.errors import Invalid
from kschedd.store.qos import qos_class
from kschedd.store.rules import faults_of, name_faults, with_defaults

_NOTHING: Mapping[str, Any] = {}
_REMEMBERED: Final = 1 << 14
_pack = msgpack.Packer(autoreset=True).pack

GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


@attrs.frozen(eq=False)
class Admitted:
    """What pods of one spec and one set of labels share once they are in."""

    spec: PodSpec
    labels: Mapping[str, str]
    status: Mapping[str, Any]  # the status such a pod is born with


def packed(kind: str, name: str, raw: Any) -> bytes:
    """The bytes of a manifest or a part of it; what cannot be written down is invalid input, not a bug."""
    try:
        data: bytes = _pack(raw)
    except (OverflowError, ValueError, TypeError) as error:
        why = "a number is beyond 64 bits" if isinstance(error, OverflowError) else str(error)
        raise Invalid(kind, name, (f"the object cannot be stored: {why}",)) from None
    return data


class PodIntake:
    def __init__(self, admission: Admission, classes: Classes) -> None:
        self._admission = admission
        self._classes = classes
        self._remembered: dict[bytes, Admitted] = {}

    def forget(self) -> None:
        """A class has changed: what was admitted before may be admitted differently now."""
        self._remembered.clear()

    def admit(self, raw: Raw, meta: Raw, name: str) -> Admitted:
        """What a new pod with this manifest gets; `meta` has its final name and namespace."""
        if wrong := name_faults(name):
            raise Invalid("Pod", name, wrong)
        spec = raw.get("spec")
        labels = meta.get("labels") or _NOTHING
        annotations = meta.get("annotations")
        key = packed("Pod", name, (spec, labels, list(annotations) if annotations else None))
        found = self._remembered.get(key)
        if found is None:
            found = self._admit(raw, meta, name)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = found
        return found

    def _admit(self, raw: Raw, meta: Raw, name: str) -> Admitted:
        whole = with_defaults({**raw, "metadata": meta})
        if faults := faults_of(whole):
            raise Invalid("Pod", name, faults)
        spec = self._admission.create_pod(name, whole["spec"], self._classes)
        labels = meta.get("labels") or _NOTHING
        interned = intern_spec(merged_label_keys(spec, labels))
        status: dict[str, Any] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if interned.scheduling_gates:
            status["conditions"] = [GATED]
        return Admitted(interned, labels, status)

    def admit_update(self, raw: Raw, name: str) -> Raw:
        """The manifest an update to a pod leads to, defaulted and admitted; the spec not yet interned."""
        whole = with_defaults(raw)
        if faults := faults_of(whole):
            raise Invalid("Pod", name, faults)
        return {**whole, "spec": self._admission.update_pod(name, whole["spec"], self._classes)}


def merged_label_keys(spec: Raw, labels: Mapping[str, str]) -> Raw:
    """matchLabelKeys and mismatchLabelKeys turned into requirements with the pod's own label values, once, at birth."""
    changed = dict(spec)
    if constraints := spec.get("topologySpreadConstraints"):
        changed["topologySpreadConstraints"] = [_with_own_values(c, labels) for c in constraints]
    affinity = spec.get("affinity")
    if affinity:
        changed["affinity"] = dict(affinity)
        for side in ("podAffinity", "podAntiAffinity"):
            if affinity.get(side):
                changed["affinity"][side] = _merged_affinity(affinity[side], labels)
    return changed if changed != spec else spec


def _merged_affinity(side: Raw, labels: Mapping[str, str]) -> Raw:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    merged = dict(side)
    if side.get(required):
        merged[required] = [_with_own_values(term, labels) for term in side[required]]
    if side.get(preferred):
        merged[preferred] = [
            {**term, "podAffinityTerm": _with_own_values(term["podAffinityTerm"], labels)} for term in side[preferred]
        ]
    return merged


def _with_own_values(term: Raw, labels: Mapping[str, str]) -> Raw:
    selector = term.get("labelSelector")
    if selector is None:  # it matches nothing, whatever is added
        return term
    more = [(key, "In") for key in term.get("matchLabelKeys") or () if key in labels]
    more += [(key, "NotIn") for key in term.get("mismatchLabelKeys") or () if key in labels]
    added = [{"key": key, "operator": operator, "values": [labels[key]]} for key, operator in more]
    present = selector.get("matchExpressions") or []
    added = [requirement for requirement in added if requirement not in present]
    return {**term, "labelSelector": {**selector, "matchExpressions": [*present, *added]}} if added else term


def new_pod(raw: Raw, meta: Raw, admitted: Admitted, node_name: str, status: Raw) -> Pod:
    """The typed pod of an admitted manifest; its spec is the interned one, so equal pods share it."""
    shape = intern_shape(meta["namespace"], admitted.labels, admitted.spec)
    spec = admitted.spec.raw
    stored = {
        "apiVersion": raw.get("apiVersion") or "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**spec, "nodeName": node_name} if node_name else spec,
        "status": status,
    }
    return typed_pod(stored, shape, node_name)


def typed_pod(raw: Raw, shape: PodShape, node_name: str) -> Pod:
    """Pod.from_raw for one whose shape is known already."""
    meta = raw["metadata"]
    status = raw.get("status") or _NOTHING
    return Pod(
        "Pod",
        meta["name"],
        shape.namespace,
        meta["uid"],
        _version(meta["resourceVersion"]),
        shape.labels,
        raw,
        shape,
        node_name,
        status.get("nominatedNodeName") or "",
        status.get("phase") or "",
        status.get("startTime") or "",
        meta.get("deletionTimestamp") or "",
    )


def pod_again(raw: Raw, old: Pod) -> Pod:
    """The typed pod of a changed manifest, its spec shared again; the old pod's shape where it still holds."""
    meta = raw["metadata"]
    if raw["spec"] is old.raw["spec"] and (meta.get("labels") or _NOTHING) == old.labels:
        return typed_pod(raw, old.shape, old.node_name)
    node_name = raw["spec"].get("nodeName") or ""
    spec = intern_spec(raw["spec"])
    shape = intern_shape(old.namespace, meta.get("labels") or _NOTHING, spec)
    raw = {**raw, "spec": {**spec.raw, "nodeName": node_name} if node_name else spec.raw}
    return typed_pod(raw, shape, node_name)
