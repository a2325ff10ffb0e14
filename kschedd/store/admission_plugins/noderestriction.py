"""NodeRestriction: a kubelet (user `system:node:NAME`, group `system:nodes`) may change only its own Node and pods.

A kubelet may create only mirror pods, which represent static pods. The kubelet's Node must own the mirror pod, and the
pod must not refer to other objects. Among the labels reserved for the system, a kubelet may set only the labels that
are reserved for kubelets, on its own Node. A kubelet may not change the taints of an existing Node.
Source: Kubernetes v1.34, plugin/pkg/admission/noderestriction/admission.go;
k8s.io/kubelet/pkg/apis/well_known_labels.go. Raises: Forbidden, NotFound.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.errors import Forbidden, NotFound

_USER: Final = "system:node:"
GROUP: Final = "system:nodes"
_MIRROR: Final = "kubernetes.io/config.mirror"
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_LEASES: Final = "kube-node-lease"
_KUBELET_LABELS: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/windows-build",
    )
)
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_NOTHING: Mapping[str, Any] = {}


def authorize(attributes: Attributes, raw: Raw | None, old: Raw | None, classes: Classes) -> None:
    """Reject a request that this node may not make. `raw` is the new object, or None for a deletion."""
    user = attributes.user
    if user is None or GROUP not in user.groups:
        return
    if not user.name.startswith(_USER):
        return
    node = user.name.removeprefix(_USER)
    if not node:
        raise Forbidden(attributes.kind, attributes.name, f'could not determine node from user "{user.name}"')
    check = _CHECKS.get(attributes.kind)
    why = check(attributes, node, raw or _NOTHING, old or _NOTHING, classes) if check is not None else None
    if why is not None:
        raise Forbidden(attributes.kind, attributes.name, why)


def _pod(attributes: Attributes, node: str, raw: Raw, old: Raw, classes: Classes) -> str | None:
    on = (old.get("spec") or {}).get("nodeName") or ""
    match attributes.subresource, attributes.operation:
        case "", "CREATE":
            return _mirror(attributes, node, raw, classes)
        case "", "DELETE":
            return None if on == node else f'node "{node}" can only delete pods with spec.nodeName set to itself'
        case "", _:
            return (
                f'unexpected operation "{attributes.operation}", node "{node}" can only create and delete mirror pods'
            )
        case "status", _:
            return _pod_status(node, on, raw, old)
        case "eviction", _:
            return None if on == node else f"node {node} can only evict pods with spec.nodeName set to itself"
    return f"unexpected pod subresource \"{attributes.subresource}\", only 'status' and 'eviction' are allowed"


def _mirror(attributes: Attributes, node: str, raw: Raw, classes: Classes) -> str | None:
    meta, spec = raw.get("metadata") or {}, raw.get("spec") or {}
    if _MIRROR not in (meta.get("annotations") or {}):
        return f'pod does not have "{_MIRROR}" annotation, node "{node}" can only create mirror pods'
    if (spec.get("nodeName") or "") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    owners = meta.get("ownerReferences") or []
    if len(owners) > 1:
        return f'node "{node}" can only create pods with a single owner reference set to itself'
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        return f'node "{node}" can only create pods with an owner reference set to itself'
    if not owner.get("controller"):
        return f'node "{node}" can only create pods with a controller owner reference set to itself'
    if owner.get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    there = classes.find("Node", "", node)
    if there is None:
        raise NotFound("Node", node)
    if owner.get("uid") != there.uid:
        return f"node {node} UID mismatch: expected {owner.get('uid')} got {there.uid}"
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        return f'node "{node}" can not create pods that reference a service account'
    for field, what in _REFERENCES:
        if field in _referenced(spec):
            return f'node "{node}" can not create pods that reference {what}'
    return None


_REFERENCES: Final = (
    ("secret", "secrets"),
    ("configMap", "configmaps"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
)


def _referenced(spec: Raw) -> set[str]:
    """Return the objects of these kinds to which a pod refers."""
    found = {"secret"} if spec.get("imagePullSecrets") else set()
    for source in _sources(spec):
        found |= source.keys()
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            for each in container.get("envFrom") or ():
                found |= {name.removesuffix("Ref") for name in each}
            for each in container.get("env") or ():
                found |= {name.removesuffix("KeyRef") for name in each.get("valueFrom") or ()}
    return found


def _sources(spec: Raw) -> Iterator[Raw]:
    for volume in spec.get("volumes") or ():
        yield volume
        yield from (volume.get("projected") or {}).get("sources") or ()
        if any(isinstance(source, Mapping) and _refers(source) for source in volume.values()):
            yield {"secret": True}


def _refers(source: Raw) -> bool:
    """Return whether a volume source, such as CephFS or CSI, refers to a Secret."""
    return any(name in source for name in ("secretRef", "nodePublishSecretRef")) or "secretName" in source


def _pod_status(node: str, on: str, raw: Raw, old: Raw) -> str | None:
    if on != node:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if (_meta(raw).get("labels") or {}) != (_meta(old).get("labels") or {}):
        return f'node "{node}" cannot update labels through pod status'
    if _claims(raw) != _claims(old):
        return f'node "{node}" cannot update resource claim statues'
    return None


def _claims(raw: Raw) -> Any:
    return (raw.get("status") or {}).get("resourceClaimStatuses") or []


def _node(attributes: Attributes, node: str, raw: Raw, old: Raw, classes: Classes) -> str | None:
    if attributes.name != node:
        return f'node "{node}" is not allowed to modify node "{attributes.name}"'
    if attributes.operation == "DELETE":
        return None
    spec, before = raw.get("spec") or {}, old.get("spec") or {}
    if attributes.creates:
        if spec.get("configSource") is not None:
            return f'node "{node}" is not allowed to create pods with a non-nil configSource'
        if labels := _forbidden_labels(raw, _NOTHING):
            return f'node "{node}" is not allowed to set the following labels: {labels}'
        return None
    if spec.get("configSource") not in (None, before.get("configSource")):
        return f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
    if (spec.get("taints") or []) != (before.get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    if labels := _forbidden_labels(raw, old):
        return f"is not allowed to modify labels: {labels}"
    return None


def _forbidden_labels(raw: Raw, old: Raw) -> str:
    new, before = _meta(raw).get("labels") or {}, _meta(old).get("labels") or {}
    changed = {key for key in new.keys() | before.keys() if new.get(key) != before.get(key)}
    return ", ".join(sorted(filter(_is_forbidden, changed)))


def _is_forbidden(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    if not slash:
        return False
    if _within(domain, _RESTRICTED):
        return True
    if label in _KUBELET_LABELS or any(_within(domain, known) for known in _KUBELET_DOMAINS):
        return False
    return _within(domain, "kubernetes.io") or _within(domain, "k8s.io")


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _claim(attributes: Attributes, node: str, raw: Raw, old: Raw, classes: Classes) -> str | None:
    if attributes.subresource != "status":
        return "may only update PVC status"
    if _fixed(raw) != _fixed(old):
        return f'node "{node}" is not allowed to update fields other than status.capacity and status.conditions'
    return None


def _fixed(claim: Raw) -> Any:
    """Return the fields of a claim that a kubelet may not change."""
    own = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
    status = {name: value for name, value in (claim.get("status") or {}).items() if name not in own}
    meta = {name: value for name, value in _meta(claim).items() if name not in ("resourceVersion", "managedFields")}
    return {**claim, "metadata": meta, "status": status}


def _lease(attributes: Attributes, node: str, raw: Raw, old: Raw, classes: Classes) -> str | None:
    if attributes.namespace != _LEASES:
        return f'can only access leases in the "{_LEASES}" system namespace'
    if attributes.name != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _csi_node(attributes: Attributes, node: str, raw: Raw, old: Raw, classes: Classes) -> str | None:
    return None if attributes.name == node else "can only access CSINode with the same name as the requesting node"


def _slice(attributes: Attributes, node: str, raw: Raw, old: Raw, classes: Classes) -> str | None:
    own = ((raw or old).get("spec") or {}).get("nodeName") or ""
    if own == node:
        return None
    if attributes.creates:
        return "can only create ResourceSlice with the same NodeName as the requesting node"
    return "can only update or delete ResourceSlice with the same NodeName as the requesting node"


def _meta(raw: Raw) -> Raw:
    found: Raw = raw.get("metadata") or _NOTHING
    return found


_Check = Callable[[Attributes, str, Raw, Raw, Classes], str | None]
_CHECKS: Final[Mapping[str, _Check]] = {
    "Pod": _pod,
    "Node": _node,
    "PersistentVolumeClaim": _claim,
    "Lease": _lease,
    "CSINode": _csi_node,
    "ResourceSlice": _slice,
}
KINDS: Final = frozenset(_CHECKS)
