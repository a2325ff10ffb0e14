"""The storage plugins: default class, protection of objects in use, and expansion of claims.

Source: Kubernetes v1.34, plugin/pkg/admission/storage/{storageclass/setdefault,storageobjectinuseprotection,
persistentvolume/resize}; pkg/volume/util/storageclass.go.
"""

from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.quantity import nanos
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.errors import Forbidden

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_FINALIZERS: Final = {
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
    "PersistentVolume": "kubernetes.io/pv-protection",
    "VolumeAttributesClass": "kubernetes.io/vac-protection",
}
PROTECTED: Final = frozenset(_FINALIZERS)
_NO_RESIZE: Final = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def class_of(claim: Raw) -> Any:
    """Return the class of the claim, or None if the claim does not set a class."""
    annotations = (claim.get("metadata") or {}).get("annotations") or {}
    return annotations.get(CLASS_ANNOTATION, (claim.get("spec") or {}).get("storageClassName"))


def _is_default(found: Object) -> bool:
    annotations = found.metadata.get("annotations") or {}
    return any(annotations.get(key) == "true" for key in _DEFAULT)


def set_default(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    """Implement DefaultStorageClass: set the StorageClass that is marked as default.

    If several classes are marked, use the youngest; if several are equally young, use the first by name.
    """
    if not attributes.creates or class_of(raw) is not None:
        return raw
    marked = sorted(filter(_is_default, classes.list("StorageClass")), key=lambda c: c.name)
    if not marked:
        return raw
    youngest = max(marked, key=lambda c: str(c.metadata.get("creationTimestamp") or ""))
    return {**raw, "spec": {**(raw.get("spec") or {}), "storageClassName": youngest.name}}


def protect(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    """Implement StorageObjectInUseProtection: add a finalizer, which a controller removes when the object is unused."""
    finalizer = _FINALIZERS[attributes.kind]
    meta = raw["metadata"]
    present = meta.get("finalizers") or []
    if not attributes.creates or finalizer in present:
        return raw
    return {**raw, "metadata": {**meta, "finalizers": [*present, finalizer]}}


def _size(claim: Raw) -> int:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return nanos(requests.get("storage", 0))


def validate_resize(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> None:
    """Implement PersistentVolumeClaimResize: only a bound claim with a class that allows expansion may grow."""
    if old is None or attributes.subresource or _size(raw) <= _size(old):
        return
    if (old.get("status") or {}).get("phase") != "Bound":
        raise Forbidden(attributes.kind, attributes.name, "Only bound persistent volume claims can be expanded")
    name = class_of(raw)
    found = classes.find("StorageClass", "", name) if name and name == class_of(old) else None
    if found is None or not found.raw.get("allowVolumeExpansion"):
        raise Forbidden(attributes.kind, attributes.name, _NO_RESIZE)
