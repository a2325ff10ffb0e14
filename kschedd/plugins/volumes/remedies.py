"""Remedies for volume rejections, shared by the four volume plugins."""

from collections.abc import Iterator
from typing import Any, Final

from kschedd.api.nodes import ZONE_LABEL
from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.framework.changes import Change, create, delete_pods, label_node, wanted_value
from kschedd.framework.remedies import Remedy, RemedyContext, by_pattern
from kschedd.framework.status import Status
from kschedd.storage.attachable import has_attachable
from kschedd.storage.claims import BIND_COMPLETED, claims_named, claims_used, class_of, fully_bound, volume_of
from kschedd.storage.volumes import node_affinity

_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"
_BEFORE_FILTER: Final = (
    (r'persistentvolumeclaim "(.+)" not found', "the PersistentVolumeClaim {} existed"),
    (r'waiting for ephemeral volume controller to create the persistentvolumeclaim "(.+)"', "the claim {} were made"),
    (r'persistentvolumeclaim "(.+)" is being deleted', "the PersistentVolumeClaim {} were not being deleted"),
    (r"pod has unbound immediate PersistentVolumeClaims", "its immediate PersistentVolumeClaims were bound"),
    (r'persistentvolume "(.+)" not found', "the PersistentVolume {} existed"),
    (r'storageclass(?:\.storage\.k8s\.io)? "(.+)" not found', "the StorageClass {} existed"),
)
_ALONE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_VANISHED: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_NONE_FREE: Final = "node(s) didn't find available persistent volumes to bind"
_ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"
_NO_SPACE: Final = "node(s) did not have enough free storage"
_OTHER_ZONE: Final = "node(s) had no available volume zone"
_TOO_MANY: Final = "node(s) exceed max volume count"
_ON_A_NODE: Final = {
    _NONE_FREE: "a free volume for its claims could be had on the node",
    _ELSEWHERE: "the volumes of its claims could be reached from the node",
    _NO_SPACE: "the node had the storage its claims ask for",
    _VANISHED: "the volumes its claims are bound to existed",
    _OTHER_ZONE: "its volumes were in the zone of the node",
    "node(s) had no available disk": "no other pod used its disks on the node",
    _TOO_MANY: "the node could attach more volumes",
    _ALONE: "no other pod used its ReadWriteOncePod claim",
}
_SIZE: Final = "1Gi"  # size of a volume for a missing claim
_PROVISIONER: Final = "csi.example.com"


def volume_remedies(context: RemedyContext, row: int | None, status: Status) -> list[Remedy]:
    """Return remedies for a volume rejection, see `kschedd.framework.remedies.RemedyPlugin`."""
    if row is None:
        found = by_pattern(status, _BEFORE_FILTER)
        return [Remedy(remedy.text, remedy.cost, _before_filter(context, status.message)) for remedy in found]
    if not all(reason in _ON_A_NODE for reason in status.reasons):
        return []
    return [Remedy(_ON_A_NODE[reason], 2, _on_a_node(context, row, reason)) for reason in status.reasons]


def _before_filter(context: RemedyContext, said: str) -> tuple[Change, ...]:
    cluster, pod = context.cluster, context.pod
    if "being deleted" in said:
        return ()
    if said.startswith("storageclass"):
        return tuple(_classes(context))
    if said.startswith('persistentvolume "'):
        return tuple(_vanished(context))
    present = cluster.of_kind(_CLAIM)
    missing = [name for name in claims_named(pod) if f"{pod.namespace}/{name}" not in present]
    if missing:
        return tuple(_with_volume(_new_claim(pod.namespace, name), made=True) for name in missing)
    return tuple(_with_volume(claim.raw, made=False) for claim in _open_claims(context))


def _on_a_node(context: RemedyContext, row: int, reason: str) -> tuple[Change, ...]:
    pod, there = context.pod, context.table.pods[row]
    match reason:
        case str() if reason == _NONE_FREE:
            volumes = [_free_volume(claim.raw) for claim in _open_claims(context)]
            return tuple(create(made, then=({**made, "status": {"phase": "Available"}},)) for made in volumes)
        case str() if reason == _NO_SPACE:
            return tuple(create(_room(claim)) for claim in _open_claims(context))
        case str() if reason == _VANISHED:
            return tuple(_vanished(context))
        case str() if reason in (_ELSEWHERE, _OTHER_ZONE):
            return tuple(_within_reach(context, row, zones=reason == _OTHER_ZONE))
        case str() if reason == _TOO_MANY:
            return delete_pods([other for other in there if has_attachable(other)][:1])
        case str() if reason == _ALONE:
            names = set(claims_named(pod))
            return delete_pods([other for other in _all_pods(context) if names & set(claims_named(other))])
    return ()


def _all_pods(context: RemedyContext) -> Iterator[Pod]:
    for row in context.table.order.tolist():
        yield from context.table.pods[row]


def _claims(context: RemedyContext) -> Iterator[Object]:
    """Yield the pod's existing claims."""
    present = context.cluster.of_kind(_CLAIM)
    for use in claims_used(context.pod):
        if use.key in present:
            yield present[use.key]


def _open_claims(context: RemedyContext) -> list[Object]:
    return [claim for claim in _claims(context) if not fully_bound(claim)]


# objects to create


def _new_claim(namespace: str, name: str) -> Raw:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": _SIZE}}}
    return {"apiVersion": "v1", "kind": _CLAIM, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _free_volume(claim: Raw, name: str = "") -> dict[str, Any]:
    meta, spec = claim["metadata"], claim["spec"]
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage") or _SIZE
    made: dict[str, Any] = {
        "capacity": {"storage": storage},
        "accessModes": list(spec.get("accessModes") or ("ReadWriteOnce",)),
        "storageClassName": class_of(Object.from_raw(claim)),
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": f"/volumes/{meta['name']}"},
    }
    if spec.get("volumeMode"):
        made["volumeMode"] = spec["volumeMode"]
    return {
        "apiVersion": "v1",
        "kind": _VOLUME,
        "metadata": {"name": name or f"for-{meta['namespace']}-{meta['name']}"},
        "spec": made,
    }


def _with_volume(claim: Raw, *, made: bool, name: str = "") -> Change:
    """Return a new volume pre-bound to the claim; `made`: the claim is created as well.

    The volume controller completes the binding.
    """
    volume = _free_volume(claim, name)
    meta = claim["metadata"]
    ref = {"kind": _CLAIM, "apiVersion": "v1", "namespace": meta["namespace"], "name": meta["name"]}
    if meta.get("uid") and not made:
        ref["uid"] = meta["uid"]
    volume["spec"]["claimRef"] = ref
    named = {**claim, "spec": {**claim["spec"], "volumeName": volume["metadata"]["name"]}}
    annotations = {**(meta.get("annotations") or {}), BIND_COMPLETED: "yes"}
    bound = {**named, "metadata": {**meta, "annotations": annotations}, "status": {"phase": "Bound"}}
    written = (volume, named) if made else (volume,)
    return create(*written, then=({**volume, "status": {"phase": "Bound"}}, bound))


def _vanished(context: RemedyContext) -> Iterator[Change]:
    volumes = context.cluster.of_kind(_VOLUME)
    for claim in _claims(context):
        name = volume_of(claim)
        if name and name not in volumes:
            yield _with_volume(claim.raw, made=False, name=name)


def _classes(context: RemedyContext) -> Iterator[Change]:
    present = context.cluster.of_kind("StorageClass")
    for name in dict.fromkeys(class_of(claim) for claim in _open_claims(context)):
        if name and name not in present:
            yield create(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": name},
                    "provisioner": next((str(c.raw.get("provisioner")) for c in present.values()), _PROVISIONER),
                    "volumeBindingMode": "WaitForFirstConsumer",
                }
            )


def _room(claim: Object) -> Raw:
    requested = ((claim.spec.get("resources") or {}).get("requests") or {}).get("storage") or _SIZE
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": f"room-for-{claim.name}", "namespace": claim.namespace},
        "storageClassName": class_of(claim),
        "nodeTopology": {},
        "capacity": requested,
    }


def _within_reach(context: RemedyContext, row: int, *, zones: bool) -> Iterator[Change]:
    """Yield labels with which the node could access the volumes."""
    labels, node = context.labels(row), context.name(row)
    for claim in _claims(context):
        volume = context.cluster.of_kind(_VOLUME).get(volume_of(claim))
        if volume is None:
            continue
        if zones:
            zone = str(volume.labels.get(ZONE_LABEL) or "").split("__")[0]
            if zone:
                yield label_node(node, ZONE_LABEL, zone)
            continue
        affinity = node_affinity(volume.spec.get("nodeAffinity"))
        if affinity is None or not affinity.terms or affinity.matches(labels, node):
            continue
        for requirement in affinity.terms[0].match_expressions:
            known, value = wanted_value(requirement, labels.get(requirement.key))
            if known and not requirement.matches(labels):
                yield label_node(node, requirement.key, value)
