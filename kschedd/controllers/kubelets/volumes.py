"""Volumes and claims that a pod needs before its containers start, and the kubelet's messages if they are missing.

A kubelet admits a pod and then waits for its volumes and claims. A volume's claim is required only if a container
mounts the volume. Resource claims must exist and be reserved for the pod. By default, ConfigMaps and Secrets are not
required, because most dumps and manifests of simulations do not contain them.

Source: Kubernetes v1.34, pkg/kubelet/volumemanager (volume_manager.go, WaitForAttachAndMount; populator,
getPVCExtractPV, createVolumeSpec), pkg/kubelet/cm/dra/manager.go (prepareResources).
"""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.controllers.kubelets.configuration import mounted, volume_faults
from kschedd.controllers.running.controller import View
from kschedd.devices.claims import ClaimError, claim_name, is_reserved_for

KINDS: Final = frozenset(("PersistentVolumeClaim", "PersistentVolume", "ResourceClaim"))
_FAILED: Final = "FailedMount"


@attrs.frozen
class Unavailable:
    """An Event about volumes or claims for which a pod waits."""

    reason: str
    message: str


def unavailable(pod: Pod, view: View, *, with_configuration: bool) -> tuple[Unavailable, ...]:
    """Return the missing volumes and claims of the pod, or nothing if the pod can start.

    `with_configuration`: require the ConfigMaps and Secrets of volumes as well.
    """
    spec = pod.pod_spec
    missing: list[Unavailable] = []
    if spec.volumes:
        if faults := dict(_volume_faults(pod, view)):
            names = " ".join(sorted(faults))
            why = "; ".join(faults[name] for name in sorted(faults))
            message = (
                f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], "
                f"failed to process volumes=[{names}]: {why}"
            )
            missing.append(Unavailable(_FAILED, message))
        if with_configuration:
            for name, why in volume_faults(pod, view):
                missing.append(Unavailable(_FAILED, f'MountVolume.SetUp failed for volume "{name}" : {why}'))
    if not missing and spec.resource_claims and (why := next(_claim_faults(pod, view), "")):
        missing.append(Unavailable("FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {why}"))
    return tuple(missing)


def _volume_faults(pod: Pod, view: View) -> Iterator[tuple[str, str]]:
    """Yield the name of each volume that cannot be mounted, and the reason."""
    used: set[str] | None = None
    for volume in pod.pod_spec.volumes:
        source = volume.get("persistentVolumeClaim")
        ephemeral = volume.get("ephemeral") is not None
        if source is None and not ephemeral:
            continue
        used = mounted(pod.pod_spec) if used is None else used
        name = volume.get("name") or ""
        if name not in used:
            continue
        claim = f"{pod.name}-{name}" if source is None else source.get("claimName") or ""
        if why := _fault_of(pod, claim, view, ephemeral=ephemeral):
            yield name, f"error processing PVC {pod.namespace}/{claim}: {why}"


def _fault_of(pod: Pod, name: str, view: View, *, ephemeral: bool) -> str:
    claim = view.find("PersistentVolumeClaim", pod.namespace, name)
    if claim is None:
        return f'failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
    if claim.deleting:
        return "PVC is being deleted"
    if claim.status.get("phase") != "Bound":
        return "PVC is not bound"
    volume: Any = claim.spec.get("volumeName")
    if not volume:
        return "PVC has empty pvc.Spec.VolumeName"
    if ephemeral and (claim.owner is None or claim.owner.uid != pod.uid):
        return f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
    if view.find("PersistentVolume", "", volume) is None:
        return f'failed to fetch PV {volume} from API server: persistentvolumes "{volume}" not found'
    return ""


def _claim_faults(pod: Pod, view: View) -> Iterator[str]:
    for entry in pod.pod_spec.resource_claims:
        try:
            name, _ = claim_name(pod, entry)
        except ClaimError as wrong:
            yield f"prepare resource claim: {wrong.why}"
            continue
        if name is None:
            continue
        claim = view.find("ResourceClaim", pod.namespace, name)
        if claim is None:
            missing = f'resourceclaims.resource.k8s.io "{name}" not found'
            yield f"failed to fetch ResourceClaim {name} referenced by pod {pod.name}: {missing}"
        elif not is_reserved_for(claim, pod):
            yield f"pod {pod.name}({pod.uid}) is not allowed to use ResourceClaim {name}({claim.uid})"
