"""Objects to which a dump refers but which it does not contain, made up from the objects that refer to them.

namespaces               of objects
priority classes         with the value and the preemption policy that the pods state
nodes that pods name     with capacity for exactly those pods, cordoned
claims of bound pods, and volumes of bound claims     with the requested size
ReplicaSets and StatefulSets that own pods, Deployments that own ReplicaSets
                         with as many replicas as objects they own, and the template of these; a ReplicaSet of a
                         Deployment whose rollout is complete has the Deployment's template
ControllerRevisions      of StatefulSets and DaemonSets (module `revisions`)

Without these objects, a simulation could not replace a deleted pod. Nothing is made up for a pending pod, because a
missing claim or class may be the reason why it is pending.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.amounts import amount
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.resources import pod_requests
from kschedd.api.schemas.kinds import kind_of
from kschedd.api.token_volumes import without_tokens
from kschedd.dumps.assumptions import Assumptions
from kschedd.dumps.revisions import POD_HASH, is_observed, revisions

Raw = dict[str, Any]
Key = tuple[str, str, str]  # kind, namespace, name

_UIDS: Final = uuid.UUID("6f1d6c5e-3a52-5c59-9c1c-2f6b6a1f3d10")
_HASH: Final = "pod-template-hash"
_PER_POD: Final = ("nodeName", "hostname", "subdomain", "priority")
_POD_OWNERS: Final = ("ReplicaSet", "StatefulSet")


def completed(
    objects: Sequence[Object],
    is_there: Callable[[Key], bool],
    assumptions: Assumptions,
    manifests: Iterable[Raw] = (),
) -> Iterator[Raw]:
    """Yield the objects to add, and note each as an assumption.

    `is_there` returns whether an object exists in the cluster that loads the dump. `manifests` are applied after the
    objects: no object in the manifests is made up, but missing namespaces of the manifests are.
    """
    applied = [_key_of(raw) for raw in manifests]
    known = {*((obj.kind, obj.namespace, obj.name) for obj in objects), *applied}

    def missing(key: Key) -> bool:
        return key not in known and not is_there(key)

    def made(kind: str, namespace: str, name: str, api_version: str, uid: str = "", **fields: Any) -> Raw:
        known.add((kind, namespace, name))
        where = f"{namespace}/{name}" if namespace else name
        assumptions.note(f"{_TEXTS[kind]}", where)
        meta: Raw = {"name": name, "annotations": {MADE_UP: "true"}}
        if namespace:
            meta["namespace"] = namespace
        meta["uid"] = uid or str(uuid.uuid5(_UIDS, f"{kind}/{namespace}/{name}"))
        more = fields.pop("metadata", {})
        return {"apiVersion": api_version, "kind": kind, "metadata": {**meta, **more}, **fields}

    pods = [obj for obj in objects if isinstance(obj, Pod)]
    namespaces = [*(obj.namespace for obj in objects), *(namespace for _, namespace, _ in applied)]
    for namespace in dict.fromkeys(namespaces):
        if namespace and missing(("Namespace", "", namespace)):
            yield made("Namespace", "", namespace, "v1")
    for pod in pods:
        spec = pod.pod_spec.raw
        name = spec.get("priorityClassName")
        if name and missing(("PriorityClass", "", name)):
            policy = spec.get("preemptionPolicy") or "PreemptLowerPriority"
            value = spec.get("priority") or 0
            yield made("PriorityClass", "", name, "scheduling.k8s.io/v1", value=value, preemptionPolicy=policy)
    yield from _nodes(pods, missing, made)
    yield from _volumes(objects, pods, missing, made)
    sets: list[Raw] = []
    deployments = _of_complete_rollouts(objects, pods)
    for owner, owned in _owners(pods, _POD_OWNERS).items():
        kind, namespace, name, uid = owner
        if missing((kind, namespace, name)):
            deployment = deployments.get((namespace, name)) if kind == "ReplicaSet" else None
            spec = _workload_spec(kind, name, owned, deployment)
            meta = {"labels": spec["template"]["metadata"]["labels"]}
            meta |= {} if deployment is None else _owned_by(deployment)
            sets.append(made(kind, namespace, name, "apps/v1", uid, spec=spec, metadata=meta))
    yield from sets
    of_uid: dict[str, list[Pod]] = {}
    for (_, _, _, uid), owned in _owners(pods, ("StatefulSet", "DaemonSet")).items():
        of_uid.setdefault(uid, []).extend(pod for pod in owned if isinstance(pod, Pod))
    yield from revisions(objects, of_uid, _template, missing, made)
    replica_sets = [obj for obj in objects if obj.kind == "ReplicaSet"]
    for (kind, namespace, name, uid), owned in _owners(replica_sets, ("Deployment",)).items():
        if missing((kind, namespace, name)):
            yield made(kind, namespace, name, "apps/v1", uid, spec=_deployment_spec(owned))


def _key_of(raw: Raw) -> Key:
    """Return the key of a manifest that has a kind, a group and metadata."""
    meta, kind = raw["metadata"], kind_of(raw)
    return kind.name, (meta.get("namespace") or "default") if kind.namespaced else "", meta.get("name") or ""


Missing = Callable[[Key], bool]
Made = Callable[..., Raw]

_TEXTS: Final[Mapping[str, str]] = {
    "Namespace": "missing namespaces were added",
    "PriorityClass": "missing priority classes were added, with the priority of their pods",
    "Node": "missing nodes were added, with room for their pods only, and cordoned",
    "PersistentVolumeClaim": "missing claims of pods with a node were added",
    "PersistentVolume": "missing volumes of bound claims were added",
    "ReplicaSet": "missing ReplicaSets were added from their pods",
    "StatefulSet": "missing StatefulSets were added from their pods",
    "Deployment": "missing Deployments were added from their ReplicaSets",
    "ControllerRevision": "missing revisions of StatefulSets and DaemonSets were added from their status and pods",
}


def _nodes(pods: Iterable[Pod], missing: Missing, made: Made) -> Iterator[Raw]:
    on: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name:
            on.setdefault(pod.node_name, []).append(pod)
    for name, here in on.items():
        if not missing(("Node", "", name)):
            continue
        total: dict[str, int] = {"pods": len(here)}
        for pod in here:
            if not pod.finished:
                for resource, units in pod_requests(pod.pod_spec.raw).items():
                    total[resource] = total.get(resource, 0) + units
        room = {resource: amount(resource, units) for resource, units in total.items()}
        status = {"capacity": room, "allocatable": room}
        yield made("Node", "", name, "v1", spec={"unschedulable": True}, status=status)


def _volumes(objects: Iterable[Object], pods: Iterable[Pod], missing: Missing, made: Made) -> Iterator[Raw]:
    claims = [obj for obj in objects if obj.kind == "PersistentVolumeClaim"]
    for pod in pods:
        if not pod.node_name or pod.finished:
            continue
        for volume in pod.pod_spec.raw.get("volumes") or ():
            source = volume.get("persistentVolumeClaim") or {}
            name = source.get("claimName")
            if not name or not missing(("PersistentVolumeClaim", pod.namespace, name)):
                continue
            asks = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": f"made-up-{pod.namespace}-{name}",
            }
            bound = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
            raw = made("PersistentVolumeClaim", pod.namespace, name, "v1", spec=asks, status=bound)
            yield raw
            yield _volume_of(raw, made)
    for claim in claims:
        volume = claim.spec.get("volumeName")
        if volume and missing(("PersistentVolume", "", volume)):
            yield _volume_of(claim.raw, made)


def _volume_of(claim: Mapping[str, Any], made: Made) -> Raw:
    meta, spec = claim["metadata"], claim["spec"]
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage") or "1Gi"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": meta["name"]}
    reference.update(namespace=meta["namespace"], uid=meta.get("uid") or "")
    volume: Raw = {
        "capacity": {"storage": size},
        "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
        "claimRef": reference,
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": f"/made-up/{spec['volumeName']}"},
        "storageClassName": spec.get("storageClassName") or "",
    }
    return made("PersistentVolume", "", spec["volumeName"], "v1", spec=volume, status={"phase": "Bound"})


def _owners(objects: Iterable[Object], kinds: Sequence[str]) -> dict[tuple[str, str, str, str], list[Object]]:
    """Return the objects that owners of these kinds control, by kind, namespace, name and UID of the owner."""
    owned: dict[tuple[str, str, str, str], list[Object]] = {}
    for obj in objects:
        for reference in obj.metadata.get("ownerReferences") or ():
            if reference.get("controller") and reference.get("kind") in kinds:
                key = (reference["kind"], obj.namespace, reference.get("name") or "", reference.get("uid") or "")
                owned.setdefault(key, []).append(obj)
    return owned


def _of_complete_rollouts(objects: Iterable[Object], pods: Iterable[Pod]) -> dict[tuple[str, str], Object]:
    """Return the Deployments whose pods all have the current template, by namespace and name of their ReplicaSet."""
    found: dict[tuple[str, str], Object] = {}
    hashes: dict[str, set[str]] = {}
    for pod in pods:
        hashes.setdefault(pod.namespace, set()).add(pod.labels.get(_HASH) or "")
    for obj in objects:
        status = obj.status
        if obj.kind == "Deployment" and is_observed(obj) and status.get("updatedReplicas") == status.get("replicas"):
            found |= {(obj.namespace, f"{obj.name}-{each}"): obj for each in hashes.get(obj.namespace, ()) if each}
    return found


def _owned_by(deployment: Object) -> Raw:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.name, "uid": deployment.uid}
    revision = {name: value for name, value in deployment.annotations.items() if name == _REVISION}
    return {
        "annotations": {MADE_UP: "true", **revision},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }


def _template(pod: Pod) -> Raw:
    labels = {key: value for key, value in pod.labels.items() if key not in (POD_HASH, _INDEX, _POD_NAME)}
    return {"metadata": {"labels": labels}, "spec": _template_spec(pod)}


def _workload_spec(kind: str, name: str, pods: Sequence[Object], deployment: Object | None = None) -> Raw:
    alive = [pod for pod in pods if isinstance(pod, Pod) and not pod.finished and not pod.deletion_timestamp]
    pod = (alive or pods)[0]
    labels = {key: value for key, value in pod.labels.items() if not key.startswith("statefulset.kubernetes.io/")}
    labels = {key: value for key, value in labels.items() if key not in (POD_HASH, _INDEX)}
    chosen = {_HASH: labels[_HASH]} if _HASH in labels else labels
    spec: Raw = {
        "replicas": len(alive),
        "selector": {"matchLabels": {**labels, **chosen} or {"kschedd.io/owner": name}},
        "template": {"metadata": {"labels": labels or {"kschedd.io/owner": name}}, "spec": _template_spec(pod)},
    }
    if deployment is not None:
        template = deployment.spec.get("template") or {}
        meta = template.get("metadata") or {}
        spec["template"] = {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **chosen}}}
    if kind == "StatefulSet":
        spec["serviceName"] = pod.spec.get("subdomain") or name
        # the made-up template may differ from the real one, and no pod may be replaced because of that
        spec["updateStrategy"] = {"type": "OnDelete"}
    return spec


_INDEX: Final = "apps.kubernetes.io/pod-index"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_REVISION: Final = "deployment.kubernetes.io/revision"


def _template_spec(pod: Object) -> Raw:
    """Return the pod's spec without fields that apply only to this pod or were set after its creation."""
    spec = {name: value for name, value in pod.spec.items() if name not in _PER_POD}
    if "volumes" in spec:
        spec["volumes"] = without_tokens(spec["volumes"])
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [_without_token(container) for container in spec[kind]]
    return spec


def _without_token(container: Mapping[str, Any]) -> Raw:
    found = dict(container)
    if "volumeMounts" in found:
        found["volumeMounts"] = without_tokens(found["volumeMounts"])
    return found


def _deployment_spec(sets: Sequence[Object]) -> Raw:
    newest = max(sets, key=lambda each: (each.spec.get("replicas") or 0, each.metadata.get("creationTimestamp") or ""))

    def without_hash(labels: Any) -> Raw:
        return {key: value for key, value in (labels or {}).items() if key != _HASH}

    selector = newest.spec.get("selector") or {}
    template = newest.spec.get("template") or {}
    meta = template.get("metadata") or {}
    return {
        "replicas": sum(each.spec.get("replicas") or 0 for each in sets),
        "selector": {**selector, "matchLabels": without_hash(selector.get("matchLabels"))},
        "template": {**template, "metadata": {**meta, "labels": without_hash(meta.get("labels"))}},
    }


MADE_UP: Final = "kschedd.io/made-up"
"""Annotation of a made-up object, to which other objects refer and which the dump lacks; such objects are not saved."""

KUBELET: Final = "kschedd.io/kubelet"
"""Annotation of a node without heartbeats: `stopped`."""

SECRET_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "Secret": ("data", "stringData"),
    "ConfigMap": ("data", "binaryData"),
}
"""The fields that are dropped by default, by kind."""
