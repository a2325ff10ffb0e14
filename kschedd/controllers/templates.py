"""Pod templates and owner references, shared by the workload controllers."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.schema import Fields, ListOf, MapOf, Schema, type_named
from kschedd.store.cluster_api import ClusterReader

TEMPLATE_HASH: Final = "pod-template-hash"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_POINTERS: Final = frozenset(
    "activeDeadlineSeconds allowPrivilegeEscalation automountServiceAccountToken enableServiceLinks expirationSeconds"
    " fsGroup fsGroupChangePolicy hostProcess hostUsers minDomains mode defaultMode optional preemptionPolicy priority"
    " privileged procMount readOnlyRootFilesystem recursiveReadOnly runAsGroup runAsNonRoot runAsUser runAsUserName"
    " runtimeClassName service setHostnameAsFQDN shareProcessNamespace storageClassName supplementalGroupsPolicy"
    " terminationGracePeriodSeconds tolerationSeconds volumeAttributesClassName volumeMode".split()
)
"""Fields of a pod template that are pointers upstream: set to false, 0 or "" they differ from being absent."""
_NOTHING: Mapping[str, Any] = {}


def template_hash(template: Raw, collisions: int) -> str:
    """Return a short hash of a template in upstream's format (FNV-1a, encoded without vowels).

    The hashes differ from those in a real cluster, because upstream hashes Go's dump of its struct, which kschedd
    cannot reproduce. Different hashes are harmless, because templates are compared in full.
    """
    text = json.dumps(canonical_template(template), sort_keys=True, separators=(",", ":"), default=str)
    number = 2166136261
    for byte in f"{text}{collisions or ''}".encode():
        number = ((number ^ byte) * 16777619) & 0xFFFFFFFF
    return safe_encoded(number)


def safe_encoded(number: int) -> str:
    """Return the number's decimal digits encoded as letters and digits that form no words (SafeEncodeString)."""
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def canonical_template(template: Raw) -> Raw:
    """Return the template without fields whose value equals the default; no API server stores such fields.

    A manifest with `hostNetwork: false` and the stored object therefore have equal templates.
    """
    found: Raw = _canonical(template, type_named("PodTemplateSpec"))
    return found


def _canonical(value: Any, schema: Schema) -> Any:
    if isinstance(schema, Fields) and isinstance(value, Mapping):
        return {
            name: kept
            for name, stated in value.items()
            if (kept := _canonical(stated, schema.get(name))) or _means_something(name, stated, schema.get(name))
        }
    if isinstance(schema, ListOf) and isinstance(value, list):
        return [_canonical(item, schema.item) for item in value]
    return value


def _means_something(name: str, stated: Any, schema: Schema) -> bool:
    """Return whether an empty value of this field differs from a missing one."""
    if isinstance(schema, ListOf | MapOf) or stated is None or name == "creationTimestamp":
        return False
    return isinstance(stated, Mapping) or name in _POINTERS


def without_hash(template: Raw) -> Raw:
    """Return the template without pod-template-hash label and creationTimestamp, for comparison with a Deployment's."""
    meta = template.get("metadata") or _NOTHING
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != TEMPLATE_HASH}
    bare = {name: value for name, value in meta.items() if name not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**bare, "labels": labels} if labels else bare}


def controller_reference(owner: Object) -> dict[str, Any]:
    return {
        "apiVersion": owner.raw.get("apiVersion") or "v1",
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: Object) -> Raw | None:
    """Return the reference to the object's controller; None if it has none."""
    references = (obj.raw.get("metadata") or _NOTHING).get("ownerReferences")
    if references:  # most objects have no owner, and this function runs for every event
        for reference in references:
            if reference.get("controller"):
                found: Raw = reference
                return found
    return None


def controller_uid(obj: Object) -> str:
    """Return the uid of the object's controller; "" if it has none."""
    reference = controller_of(obj)
    return "" if reference is None else reference.get("uid") or ""


def controller_in(view: ClusterReader, obj: Object) -> Object | None:
    """Return the object's controller; None if it has none, or its controller does not exist any more."""
    reference = controller_of(obj)
    if reference is None:
        return None
    found = view.find(reference["kind"], obj.namespace, reference["name"])
    return found if found is not None and found.uid == reference["uid"] else None


def pod_from_template(owner: Object, template: Raw) -> dict[str, Any]:
    """Return the manifest of a new pod from the owner's template, with generateName and the owner reference."""
    meta = template.get("metadata") or _NOTHING
    wanted: dict[str, Any] = {
        "generateName": f"{owner.name}-",
        "namespace": owner.namespace,
        "ownerReferences": [controller_reference(owner)],
    }
    for name in ("labels", "annotations", "finalizers"):
        if meta.get(name):
            wanted[name] = meta[name]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": wanted, "spec": template.get("spec") or {}}
