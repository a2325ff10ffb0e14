"""The pods and claims of a StatefulSet: identity by ordinal, volumes from claim templates, owners of claims.

Source: Kubernetes v1.34, controller/statefulset/stateful_set_utils.go and stateful_pod_control.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.controllers.templates import controller_reference, pod_from_template
from kschedd.controllers.workloads.revisions import REVISION_HASH
from kschedd.store.writes import Create, Write, patch_of

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_NOTHING: Mapping[str, Any] = {}

FindClaim = Callable[[str], Object | None]
"""Returns the PersistentVolumeClaim of this name in the StatefulSet's namespace, or None."""


def start_ordinal(workload: Object) -> int:
    return int((workload.spec.get("ordinals") or _NOTHING).get("start") or 0)


def replicas_wanted(workload: Object) -> int:
    return int(workload.spec.get("replicas", 1))


def ordinal_of(workload: Object, name: str) -> int:
    """Return the ordinal in a pod's name, or -1 if it is not the name of a pod of the StatefulSet."""
    return ordinal_in(workload.name, name)


def ordinal_in(set_name: str, name: str) -> int:
    """Return the ordinal in a pod's name, or -1 if it is not the name of a pod of the StatefulSet `set_name`."""
    parent, _, number = name.rpartition("-")
    return int(number) if parent == set_name and number.isascii() and number.isdigit() else -1


def in_range(workload: Object, ordinal: int) -> bool:
    start = start_ordinal(workload)
    return start <= ordinal < start + replicas_wanted(workload)


def pod_name(workload: Object, ordinal: int) -> str:
    return f"{workload.name}-{ordinal}"


def claim_name(workload: Object, template: Raw, ordinal: int) -> str:
    return f"{claim_prefix(workload, template)}-{ordinal}"


def claim_prefix(workload: Object, template: Raw) -> str:
    return f"{_name(template)}-{workload.name}"


def pod_of_claim(workload: Object, claim: str) -> str:
    """Return the name of the pod to which a claim with this name belongs, or "" if this StatefulSet has no such pod."""
    for template in claim_templates(workload):
        prefix = f"{claim_prefix(workload, template)}-"
        if claim.startswith(prefix) and claim.removeprefix(prefix).isdigit():
            return f"{workload.name}-{claim.removeprefix(prefix)}"
    return ""


def _name(template: Raw) -> str:
    return (template.get("metadata") or _NOTHING).get("name") or ""


def claim_templates(workload: Object) -> Sequence[Raw]:
    return workload.spec.get("volumeClaimTemplates") or ()


def stateful_pod(workload: Object, template: Raw, revision: str, ordinal: int) -> dict[str, Any]:
    """Return the manifest of the pod with this ordinal, from the template of the named revision."""
    raw = pod_from_template(workload, template)
    name = pod_name(workload, ordinal)
    meta = raw["metadata"]
    del meta["generateName"]
    labels = {**(meta.get("labels") or _NOTHING), **identity_labels(name, ordinal), REVISION_HASH: revision}
    meta.update(name=name, labels=labels)
    claims = [
        {"name": _name(claim), "persistentVolumeClaim": {"claimName": claim_name(workload, claim, ordinal)}}
        for claim in claim_templates(workload)
    ]
    taken = {volume["name"] for volume in claims}
    others = [volume for volume in raw["spec"].get("volumes") or () if volume.get("name") not in taken]
    raw["spec"] = {**raw["spec"], "hostname": name}
    if service := workload.spec.get("serviceName"):
        raw["spec"]["subdomain"] = service
    if claims or others:
        raw["spec"]["volumes"] = [*claims, *others]
    return raw


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def identity_patch(workload: Object, pod: Pod) -> list[Write]:
    """Return the patch of missing labels that identify a pod."""
    ordinal = ordinal_of(workload, pod.name)
    wanted = identity_labels(pod.name, ordinal)
    missing = {name: value for name, value in wanted.items() if pod.labels.get(name) != value}
    return [patch_of(pod, {"metadata": {"labels": missing}})] if missing else []


# --- claims ------------------------------------------------------------------------------------------------------


def is_blocked_by_claim(workload: Object, ordinal: int, find: FindClaim) -> bool:
    """Return whether a claim of the pod will be deleted: it is terminating, or owned by an earlier pod."""
    name = pod_name(workload, ordinal)
    for template in claim_templates(workload):
        claim = find(claim_name(workload, template, ordinal))
        if claim is None:
            continue
        references = claim.metadata.get("ownerReferences") or ()
        if claim.deleting or any(r.get("kind") == "Pod" and r.get("name") == name for r in references):
            return True
    return False


def missing_claims(workload: Object, ordinal: int, find: FindClaim) -> list[Write]:
    labels = (workload.spec.get("selector") or _NOTHING).get("matchLabels") or _NOTHING
    writes: list[Write] = []
    for template in claim_templates(workload):
        name = claim_name(workload, template, ordinal)
        if find(name) is not None:
            continue
        meta: dict[str, Any] = {
            key: value for key, value in (template.get("metadata") or _NOTHING).items() if key in ("annotations",)
        }
        stated = (template.get("metadata") or _NOTHING).get("labels") or _NOTHING
        meta.update(name=name, namespace=workload.namespace, labels={**stated, **labels})
        owners = _owners((), workload, None, ordinal)
        if owners:
            meta["ownerReferences"] = owners
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
        writes.append(Create({**claim, "spec": template.get("spec") or {}}))
    return writes


def claim_owner_patches(workload: Object, ordinal: int, pod: Pod | None, find: FindClaim) -> list[Write]:
    """Return patches that set the owners of the pod's claims as persistentVolumeClaimRetentionPolicy requires.

    Claims owned by the StatefulSet are deleted with the StatefulSet. Claims owned by a pod are deleted with the pod
    when the StatefulSet is scaled down.
    """
    writes: list[Write] = []
    for template in claim_templates(workload):
        claim = find(claim_name(workload, template, ordinal))
        if claim is None or claim.deleting:
            continue
        present = claim.metadata.get("ownerReferences") or []
        wanted = _owners(present, workload, pod, ordinal)
        if [_identity(r) for r in wanted] != [_identity(r) for r in present]:
            patch = {"metadata": {"ownerReferences": wanted or None}}
            writes.append(patch_of(claim, patch, exactly=True))
    return writes


def _identity(reference: Raw) -> tuple[Any, ...]:
    return reference.get("uid"), reference.get("kind"), bool(reference.get("controller"))


def _owners(present: Sequence[Raw], workload: Object, pod: Pod | None, ordinal: int) -> list[Raw]:
    policy = workload.spec.get("persistentVolumeClaimRetentionPolicy") or _NOTHING
    name = pod_name(workload, ordinal)
    left = [
        reference
        for reference in present
        if reference.get("uid") != workload.uid
        and not (reference.get("kind") == "Pod" and reference.get("name") == name)
    ]
    if any(reference.get("controller") for reference in left):
        return left  # the claim is controlled by another owner
    if policy.get("whenScaled") == "Delete" and not in_range(workload, ordinal):
        return [*left, _reference(pod)] if pod is not None else left
    return [*left, _reference(workload)] if policy.get("whenDeleted") == "Delete" else left


def _reference(owner: Object) -> dict[str, Any]:
    return controller_reference(owner)
