"""PersistentVolumeClaims: which of them a pod uses, and what the scheduler and the volume controller read in them.

Source: Kubernetes v1.34, component-helpers/storage/volume/helpers.go and pv_helpers.go, storage/ephemeral/ephemeral.go.
Units: storage in nanos (billionths of a byte) where it is compared, in whole bytes where it is added up.
Errors: QuantityError for a claim whose request cannot be read.
"""

from collections.abc import Iterator
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
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
FILESYSTEM: Final = "Filesystem"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


@attrs.frozen
class ClaimUse:
    """One volume of a pod that is a claim: named by the pod, or made for it (`ephemeral`)."""

    name: str
    key: str  # "namespace/name"
    ephemeral: bool


def claims_used(pod: Pod) -> Iterator[ClaimUse]:
    """The claims of a pod in the order of its volumes; one used twice comes twice."""
    for volume in pod.shape.spec.volumes:
        source = volume.get("persistentVolumeClaim")
        if source is not None:
            name = source.get("claimName") or ""
            yield ClaimUse(name, f"{pod.namespace}/{name}", False)
        elif volume.get("ephemeral") is not None:
            name = ephemeral_claim(pod, volume.get("name") or "")
            yield ClaimUse(name, f"{pod.namespace}/{name}", True)


def claims_named(pod: Pod) -> Iterator[str]:
    """The names of the claims a pod uses by name, ephemeral ones left out."""
    for volume in pod.shape.spec.volumes:
        source = volume.get("persistentVolumeClaim")
        if source is not None:
            yield source.get("claimName") or ""


def uses(pod: Pod, claim: Object) -> bool:
    return pod.namespace == claim.namespace and any(use.name == claim.name for use in claims_used(pod))


def ephemeral_claim(pod: Pod, volume: str) -> str:
    """The name of the claim made for an ephemeral volume of the pod."""
    return f"{pod.name}-{volume}"


def not_made_for(pod: Pod, claim: Object) -> str:
    """Why the claim is not the one made for an ephemeral volume of the pod; "" if it is."""
    owner = claim.owner
    if claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def class_of(claim: Object) -> str:
    """The StorageClass of a claim, or of a volume; "" for none."""
    by_annotation = claim.annotations.get(BETA_CLASS)
    return claim.spec.get("storageClassName") or "" if by_annotation is None else by_annotation


def volume_of(claim: Object) -> str:
    """The volume the claim names; "" while it has none."""
    name: str = claim.spec.get("volumeName") or ""
    return name


def fully_bound(claim: Object) -> bool:
    return bool(volume_of(claim)) and BIND_COMPLETED in claim.annotations


def _request(claim: Object) -> str | int | float | None:
    found: str | int | float | None = ((claim.spec.get("resources") or {}).get("requests") or {}).get("storage")
    return found


def requested(claim: Object) -> int:
    """What the claim asks for, in nanos; 0 if it asks for nothing."""
    text = _request(claim)
    return 0 if text is None else nanos(text)


def requested_bytes(claim: Object) -> int | None:
    """What the claim asks for, in whole bytes rounded up; None if it asks for nothing."""
    text = _request(claim)
    return None if text is None else value(text)


_LISTED: Final = {
    "PersistentVolumeClaim": "persistentvolumeclaim",
    "PersistentVolume": "persistentvolume",
    "StorageClass": "storageclass.storage.k8s.io",
}


def missing(kind: str, name: str) -> str:
    """How upstream says that the scheduler knows no such object."""
    return f'{_LISTED[kind]} "{name}" not found'
