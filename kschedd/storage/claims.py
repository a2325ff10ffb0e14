"""PersistentVolumeClaims: the claims that a pod uses, and the fields that the scheduler and the volume controller read.

Source: Kubernetes v1.34, component-helpers/storage/volume/helpers.go and pv_helpers.go, storage/ephemeral/ephemeral.go.
Units: storage in nanos (billionths of a byte) for comparisons, in whole bytes for sums.
Errors: QuantityError if the storage request of a claim cannot be parsed.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.quantity import nanos, value

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
FILESYSTEM: Final = "Filesystem"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


@attrs.frozen
class PodClaimRef:
    """A claim that a volume of a pod uses: named in the pod, or generated for an ephemeral volume (`ephemeral`)."""

    name: str
    key: str  # "namespace/name"
    ephemeral: bool


def claims_used(pod: Pod) -> Iterator[PodClaimRef]:
    """Yield the claims of a pod in the order of its volumes; a claim that is used twice is yielded twice."""
    for volume in pod.signature.spec.restricting_volumes:
        source = volume.get("persistentVolumeClaim")
        if source is not None:
            name = source.get("claimName") or ""
            yield PodClaimRef(name, f"{pod.namespace}/{name}", False)
        elif volume.get("ephemeral") is not None:
            name = ephemeral_claim(pod, volume.get("name") or "")
            yield PodClaimRef(name, f"{pod.namespace}/{name}", True)


def claims_named(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims to which the pod refers by name, without the claims of ephemeral volumes."""
    for volume in pod.signature.spec.restricting_volumes:
        source = volume.get("persistentVolumeClaim")
        if source is not None:
            yield source.get("claimName") or ""


def uses(pod: Pod, claim: Object) -> bool:
    return pod.namespace == claim.namespace and any(use.name == claim.name for use in claims_used(pod))


def ephemeral_claim(pod: Pod, volume: str) -> str:
    """Return the name of the claim generated for an ephemeral volume of the pod."""
    return f"{pod.name}-{volume}"


def not_made_for(pod: Pod, claim: Object) -> str:
    """Return the reason why the claim was not generated for an ephemeral volume of the pod; "" if it was."""
    owner = claim.owner
    if claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def is_default_class(storage_class: Object) -> bool:
    return any(storage_class.annotations.get(name) == "true" for name in (DEFAULT_CLASS, BETA_DEFAULT_CLASS))


def default_class(classes: Iterable[Object]) -> Object | None:
    """Return the class for claims without one: the newest default class; among equally new ones the first by name."""
    marked = sorted((c for c in classes if is_default_class(c)), key=lambda c: c.name)
    return max(marked, key=lambda c: c.metadata.get("creationTimestamp") or "", default=None)


def asks_for_no_class(claim: Object) -> bool:
    """Return whether a claim has no class field; a claim with the class "" explicitly requests no class."""
    return claim.spec.get("storageClassName") is None and BETA_CLASS not in claim.annotations


def class_of(claim: Object) -> str:
    """Return the StorageClass of a claim or of a volume; "" without one."""
    by_annotation = claim.annotations.get(BETA_CLASS)
    return claim.spec.get("storageClassName") or "" if by_annotation is None else by_annotation


def volume_of(claim: Object) -> str:
    """Return the claim's volumeName; "" as long as it has none."""
    name: str = claim.spec.get("volumeName") or ""
    return name


def fully_bound(claim: Object) -> bool:
    return bool(volume_of(claim)) and BIND_COMPLETED in claim.annotations


def _request(claim: Object) -> str | int | float | None:
    found: str | int | float | None = ((claim.spec.get("resources") or {}).get("requests") or {}).get("storage")
    return found


def requested(claim: Object) -> int:
    """Return the claim's storage request in nanos; 0 without a request."""
    text = _request(claim)
    return 0 if text is None else nanos(text)


def requested_bytes(claim: Object) -> int | None:
    """Return the claim's storage request in whole bytes, rounded up; None without a request."""
    text = _request(claim)
    return None if text is None else value(text)


_LISTED: Final = {
    "PersistentVolumeClaim": "persistentvolumeclaim",
    "PersistentVolume": "persistentvolume",
    "StorageClass": "storageclass.storage.k8s.io",
}


def missing(kind: str, name: str) -> str:
    """Return the message of Kubernetes' lister that an object does not exist."""
    return f'{_LISTED[kind]} "{name}" not found'
