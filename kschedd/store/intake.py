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

from kschedd.api.fields import FieldError, invalid
from kschedd.api.kinds import BY_NAME
from kschedd.api.objects import Raw, _version
from kschedd.api.pods import Pod, PodShape, PodSpec, intern_shape, intern_spec
from kschedd.api.qos import qos_of_spec
from kschedd.api.shapes import check_shape
from kschedd.api.validation import accept, accept_meta, accept_pod_spec
from kschedd.api.validation_names import dns_subdomain
from kschedd.api.validation_pod import validate_pod_status
from kschedd.store.admission import Admission, Classes
from kschedd.store.errors import Invalid

_NOTHING: Mapping[str, Any] = {}
_REMEMBERED: Final = 1 << 14
_SHARED: Final = ("labels", "ownerReferences", "finalizers")
_LONG: Final = 1 << 16  # annotations of this size are looked at each time
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
    meta: Mapping[str, Any]  # labels, owners and finalizers as stored, where there are any
    status: Mapping[str, Any]  # the status such a pod is born with


def packed(kind: str, name: str, raw: Any) -> bytes:
    """The bytes of a manifest or a part of it; what cannot be written down is invalid input, not a bug."""
    try:
        data: bytes = _pack(raw)
    except (OverflowError, ValueError, TypeError) as error:
        why = "a number is beyond 64 bits" if isinstance(error, OverflowError) else str(error)
        raise Invalid(kind, name, (FieldError("", None, f"the object cannot be stored: {why}"),)) from None
    return data


class PodIntake:
    def __init__(self, admission: Admission, classes: Classes) -> None:
        self._admission = admission
        self._classes = classes
        self._remembered: dict[bytes, Admitted] = {}

    def forget(self) -> None:
        """A class has changed: what was admitted before may be admitted differently now."""
        self._remembered.clear()

    def admit(self, raw: Raw, meta: dict[str, Any], name: str) -> Admitted:
        """What a new pod with this manifest gets. `meta` is its metadata with its final name and namespace.

        Raises Invalid and Forbidden.
        """
        if wrong := dns_subdomain(name):
            raise Invalid("Pod", name, tuple(invalid("metadata.name", name, why) for why in wrong))
        spec = raw.get("spec")
        annotations = meta.get("annotations")
        if annotations is not None and not _plain(annotations):
            return self._admit(spec, meta, name)
        named = list(annotations) if annotations else None
        key = packed(
            "Pod", name, (spec, meta.get("labels"), named, meta.get("ownerReferences"), meta.get("finalizers"))
        )
        found = self._remembered.get(key)
        if found is None:
            found = self._admit(spec, meta, name)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = found
        return found

    def _admit(self, spec: Any, meta: dict[str, Any], name: str) -> Admitted:
        whole = accepted("Pod", name, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        clean = whole["metadata"]
        if "annotations" in clean:
            meta["annotations"] = clean["annotations"]
        spec = self._admission.create_pod(name, whole["spec"], self._classes)
        interned = intern_spec(spec)
        status: dict[str, Any] = {"phase": "Pending", "qosClass": qos_of_spec(spec)}
        if interned.scheduling_gates:
            status["conditions"] = [GATED]
        shared = {field: clean[field] for field in _SHARED if field in clean}
        return Admitted(interned, clean.get("labels") or _NOTHING, shared, status)

    def admit_update(self, raw: Raw, name: str) -> dict[str, Any]:
        """The manifest an update to a pod leads to, defaulted and admitted; the spec not yet interned."""
        # matchLabelKeys were merged with the labels the pod was born with; labels it has now must not be.
        spec, faults = accept_pod_spec(raw.get("spec"))
        meta, more = accept_meta(raw.get("metadata"), BY_NAME["Pod"])
        if faults := [*more, *faults]:
            raise Invalid("Pod", name, tuple(faults))
        return {**raw, "metadata": meta, "spec": self._admission.update_pod(name, spec, self._classes)}


def _plain(annotations: Any) -> bool:
    """Whether all there is to check about annotations are their names."""
    if not isinstance(annotations, dict) or not all(type(text) is str for text in annotations.values()):
        return False
    return sum(map(len, annotations.values())) < _LONG


def accepted(kind: str, name: str, raw: Raw) -> dict[str, Any]:
    """The manifest with its defaults; raises Invalid with every fault it has."""
    done = accept(dict(raw))
    if done.faults:
        raise Invalid(kind, name, done.faults)
    return done.raw


def check_status(kind: str, name: str, raw: Raw) -> None:
    """Raise Invalid for a status that is not one, looking at nothing else of the object."""
    status = raw.get("status")
    if status is None:
        return
    faults = check_shape({"kind": kind, "status": status})
    if not faults and kind == "Pod":
        faults = validate_pod_status(status)
    if faults:
        raise Invalid(kind, name, tuple(faults))
    packed(kind, name, status)


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


def sharing(pod: Pod) -> Pod:
    """A pod that was read from somewhere, its spec and labels held once with all equal ones."""
    spec: Raw = pod.pod_spec.raw
    if pod.node_name:
        spec = {**spec, "nodeName": pod.node_name}
    meta = pod.raw["metadata"]
    if "labels" in meta:
        meta = {**meta, "labels": pod.labels}
    return typed_pod({**pod.raw, "metadata": meta, "spec": spec}, pod.shape, pod.node_name)
