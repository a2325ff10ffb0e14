"""Shapes: of which type each field is that anything here reads, as an API server's decoding would insist.

What passes `check_shape` may be walked without looking at types again: mappings are dicts with text keys, lists
are lists, quantities can be read.  Fields that are not in the tables are of no interest and pass as they are.
A null stands for an absent field: `without_nulls` takes them away, as a typed decoder does.
Source: Kubernetes v1.34, api/core/v1/types.go and its sisters in apps, batch, policy, storage and resource.
"""

from typing import Any, Final

from kschedd.api.fields import FieldError, child, invalid
from kschedd.api.kinds import kind_of
from kschedd.api.quantity import ALLOWED, QuantityError, nanos, shown

STR: Final = "a string"
INT: Final = "an integer"
INT32: Final = "a 32-bit integer"
BOOL: Final = "true or false"
QUANTITY: Final = "a quantity"
INT_OR_STR: Final = "an integer or a string"
_INT32_MAX: Final = 2**31 - 1

Shape = Any
"""A leaf (one of the words above), a dict of fields, [item shape] or ("map", value shape)."""


def _map(of: Shape) -> Shape:
    return ("map", of)


LABELS: Final = _map(STR)
_RESOURCES: Final = _map(QUANTITY)
_SELECTOR: Final = {"matchLabels": LABELS, "matchExpressions": [{"key": STR, "operator": STR, "values": [STR]}]}
_NODE_TERM: Final = {
    "matchExpressions": [{"key": STR, "operator": STR, "values": [STR]}],
    "matchFields": [{"key": STR, "operator": STR, "values": [STR]}],
}
NODE_SELECTOR: Final = {"nodeSelectorTerms": [_NODE_TERM]}
_POD_TERM: Final = {
    "labelSelector": _SELECTOR,
    "namespaceSelector": _SELECTOR,
    "namespaces": [STR],
    "topologyKey": STR,
    "matchLabelKeys": [STR],
    "mismatchLabelKeys": [STR],
}
_POD_TERMS: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": INT32, "podAffinityTerm": _POD_TERM}],
}
_AFFINITY: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": NODE_SELECTOR,
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": INT32, "preference": _NODE_TERM}],
    },
    "podAffinity": _POD_TERMS,
    "podAntiAffinity": _POD_TERMS,
}
_TOLERATION: Final = {"key": STR, "operator": STR, "value": STR, "effect": STR, "tolerationSeconds": INT}
_SPREAD: Final = {
    "maxSkew": INT32,
    "topologyKey": STR,
    "whenUnsatisfiable": STR,
    "labelSelector": _SELECTOR,
    "minDomains": INT32,
    "nodeAffinityPolicy": STR,
    "nodeTaintsPolicy": STR,
    "matchLabelKeys": [STR],
}
_REQUIREMENTS: Final = {
    "requests": _RESOURCES,
    "limits": _RESOURCES,
    "claims": [{"name": STR, "request": STR}],
}
_CONTAINER: Final = {
    "name": STR,
    "image": STR,
    "imagePullPolicy": STR,
    "terminationMessagePath": STR,
    "terminationMessagePolicy": STR,
    "restartPolicy": STR,
    "resources": _REQUIREMENTS,
    "ports": [{"name": STR, "containerPort": INT32, "hostPort": INT32, "protocol": STR, "hostIP": STR}],
    "volumeMounts": [{"name": STR, "mountPath": STR, "readOnly": BOOL}],
    "volumeDevices": [{"name": STR, "devicePath": STR}],
    "env": [{"name": STR, "value": STR}],
    "command": [STR],
    "args": [STR],
}
_CLAIM_SPEC: Final = {
    "accessModes": [STR],
    "resources": _REQUIREMENTS,
    "storageClassName": STR,
    "volumeMode": STR,
    "volumeName": STR,
    "selector": _SELECTOR,
}
_META: Final = {
    "name": STR,
    "generateName": STR,
    "namespace": STR,
    "uid": STR,
    "resourceVersion": STR,
    "generation": INT,
    "creationTimestamp": STR,
    "deletionTimestamp": STR,
    "deletionGracePeriodSeconds": INT,
    "labels": LABELS,
    "annotations": LABELS,
    "finalizers": [STR],
    "ownerReferences": [
        {"apiVersion": STR, "kind": STR, "name": STR, "uid": STR, "controller": BOOL, "blockOwnerDeletion": BOOL}
    ],
}
_VOLUME: Final = {
    "name": STR,
    "persistentVolumeClaim": {"claimName": STR, "readOnly": BOOL},
    "ephemeral": {"volumeClaimTemplate": {"metadata": _META, "spec": _CLAIM_SPEC}},
    "emptyDir": {"medium": STR, "sizeLimit": QUANTITY},
    "hostPath": {"path": STR, "type": STR},
    "secret": {"secretName": STR, "defaultMode": INT32},
    "configMap": {"name": STR, "defaultMode": INT32},
    "projected": {"defaultMode": INT32},
    "downwardAPI": {"defaultMode": INT32},
    "csi": {"driver": STR},
    "gcePersistentDisk": {"pdName": STR, "readOnly": BOOL},
    "awsElasticBlockStore": {"volumeID": STR, "readOnly": BOOL},
    "azureDisk": {"diskName": STR, "diskURI": STR},
    "cinder": {"volumeID": STR},
    "iscsi": {"targetPortal": STR, "iqn": STR, "lun": INT32, "iscsiInterface": STR, "readOnly": BOOL},
    "rbd": {"monitors": [STR], "image": STR, "pool": STR, "user": STR, "keyring": STR, "readOnly": BOOL},
    "image": {"reference": STR, "pullPolicy": STR},
}
POD_SPEC: Final = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "ephemeralContainers": [_CONTAINER],
    "restartPolicy": STR,
    "terminationGracePeriodSeconds": INT,
    "activeDeadlineSeconds": INT,
    "dnsPolicy": STR,
    "nodeSelector": LABELS,
    "nodeName": STR,
    "hostNetwork": BOOL,
    "hostname": STR,
    "subdomain": STR,
    "serviceAccountName": STR,
    "schedulerName": STR,
    "priority": INT32,
    "priorityClassName": STR,
    "preemptionPolicy": STR,
    "runtimeClassName": STR,
    "overhead": _RESOURCES,
    "resources": _REQUIREMENTS,
    "affinity": _AFFINITY,
    "tolerations": [_TOLERATION],
    "topologySpreadConstraints": [_SPREAD],
    "schedulingGates": [{"name": STR}],
    "readinessGates": [{"conditionType": STR}],
    "volumes": [_VOLUME],
    "resourceClaims": [{"name": STR, "resourceClaimName": STR, "resourceClaimTemplateName": STR}],
    "enableServiceLinks": BOOL,
    "securityContext": {},
    "os": {"name": STR},
}
_CONDITION: Final = {"type": STR, "status": STR, "reason": STR, "message": STR, "lastTransitionTime": STR}
_CONTAINER_STATUS: Final = {
    "name": STR,
    "allocatedResources": _RESOURCES,
    "resources": _REQUIREMENTS,
}
_POD_STATUS: Final = {
    "phase": STR,
    "conditions": [_CONDITION],
    "nominatedNodeName": STR,
    "startTime": STR,
    "reason": STR,
    "message": STR,
    "containerStatuses": [_CONTAINER_STATUS],
    "initContainerStatuses": [_CONTAINER_STATUS],
    "resourceClaimStatuses": [{"name": STR, "resourceClaimName": STR}],
}
_TEMPLATE: Final = {"metadata": _META, "spec": POD_SPEC}
_CLAIM_STATUS: Final = {"phase": STR, "capacity": _RESOURCES, "allocatedResources": _RESOURCES, "accessModes": [STR]}
_CLAIM: Final = {"metadata": _META, "spec": _CLAIM_SPEC, "status": _CLAIM_STATUS}
_WORKLOAD: Final = {
    "replicas": INT32,
    "selector": _SELECTOR,
    "template": _TEMPLATE,
    "minReadySeconds": INT32,
    "revisionHistoryLimit": INT32,
}
_ROLLING: Final = {
    "type": STR,
    "rollingUpdate": {"maxUnavailable": INT_OR_STR, "maxSurge": INT_OR_STR, "partition": INT32},
}
_DEVICE_SELECTORS: Final = [{"cel": {"expression": STR}}]
_EXACT_REQUEST: Final = {
    "deviceClassName": STR,
    "allocationMode": STR,
    "count": INT,
    "adminAccess": BOOL,
    "selectors": _DEVICE_SELECTORS,
}
_CLAIM_DEVICES: Final = {
    "devices": {
        "requests": [{"name": STR, "exactly": _EXACT_REQUEST, "firstAvailable": [{"name": STR, **_EXACT_REQUEST}]}],
        "constraints": [{"requests": [STR], "matchAttribute": STR}],
    }
}
_TOPOLOGY_TERMS: Final = [{"matchLabelExpressions": [{"key": STR, "values": [STR]}]}]

KIND_SHAPES: Final[dict[str, dict[str, Shape]]] = {
    "Pod": {"spec": POD_SPEC, "status": _POD_STATUS},
    "Node": {
        "spec": {
            "unschedulable": BOOL,
            "providerID": STR,
            "podCIDR": STR,
            "taints": [{"key": STR, "value": STR, "effect": STR, "timeAdded": STR}],
        },
        "status": {
            "capacity": _RESOURCES,
            "allocatable": _RESOURCES,
            "conditions": [_CONDITION],
            "images": [{"names": [STR], "sizeBytes": INT}],
            "addresses": [{"type": STR, "address": STR}],
            "volumesAttached": [{"name": STR, "devicePath": STR}],
            "volumesInUse": [STR],
        },
    },
    "Namespace": {"status": {"phase": STR}},
    "Service": {
        "spec": {
            "selector": LABELS,
            "type": STR,
            "clusterIP": STR,
            "sessionAffinity": STR,
            "ports": [{"name": STR, "port": INT32, "protocol": STR, "targetPort": INT_OR_STR, "nodePort": INT32}],
        }
    },
    "ReplicationController": {
        "spec": {"replicas": INT32, "selector": LABELS, "template": _TEMPLATE, "minReadySeconds": INT32},
        "status": {"replicas": INT32},
    },
    "ReplicaSet": {"spec": _WORKLOAD, "status": {"replicas": INT32}},
    "Deployment": {
        "spec": {**_WORKLOAD, "strategy": _ROLLING, "paused": BOOL, "progressDeadlineSeconds": INT32},
        "status": {"replicas": INT32},
    },
    "StatefulSet": {
        "spec": {
            **_WORKLOAD,
            "serviceName": STR,
            "podManagementPolicy": STR,
            "updateStrategy": _ROLLING,
            "volumeClaimTemplates": [_CLAIM],
            "ordinals": {"start": INT32},
        },
        "status": {"replicas": INT32},
    },
    "DaemonSet": {"spec": {**_WORKLOAD, "updateStrategy": _ROLLING}},
    "Job": {
        "spec": {
            "parallelism": INT32,
            "completions": INT32,
            "backoffLimit": INT32,
            "activeDeadlineSeconds": INT,
            "ttlSecondsAfterFinished": INT32,
            "completionMode": STR,
            "suspend": BOOL,
            "manualSelector": BOOL,
            "selector": _SELECTOR,
            "template": _TEMPLATE,
        }
    },
    "PodDisruptionBudget": {
        "spec": {
            "minAvailable": INT_OR_STR,
            "maxUnavailable": INT_OR_STR,
            "selector": _SELECTOR,
            "unhealthyPodEvictionPolicy": STR,
        },
        "status": {
            "disruptionsAllowed": INT32,
            "currentHealthy": INT32,
            "desiredHealthy": INT32,
            "expectedPods": INT32,
            "disruptedPods": LABELS,
        },
    },
    "PriorityClass": {"value": INT32, "globalDefault": BOOL, "preemptionPolicy": STR, "description": STR},
    "RuntimeClass": {
        "handler": STR,
        "overhead": {"podFixed": _RESOURCES},
        "scheduling": {"nodeSelector": LABELS, "tolerations": [_TOLERATION]},
    },
    "ResourceQuota": {
        "spec": {
            "hard": _RESOURCES,
            "scopes": [STR],
            "scopeSelector": {"matchExpressions": [{"scopeName": STR, "operator": STR, "values": [STR]}]},
        },
        "status": {"hard": _RESOURCES, "used": _RESOURCES},
    },
    "PersistentVolume": {
        "spec": {
            "capacity": _RESOURCES,
            "accessModes": [STR],
            "persistentVolumeReclaimPolicy": STR,
            "storageClassName": STR,
            "volumeMode": STR,
            "claimRef": {"namespace": STR, "name": STR, "uid": STR, "kind": STR, "apiVersion": STR},
            "nodeAffinity": {"required": NODE_SELECTOR},
            "csi": {"driver": STR, "volumeHandle": STR},
            "local": {"path": STR},
            "hostPath": {"path": STR, "type": STR},
            "nfs": {"server": STR, "path": STR},
            "awsElasticBlockStore": {"volumeID": STR},
            "gcePersistentDisk": {"pdName": STR},
        },
        "status": {"phase": STR},
    },
    "PersistentVolumeClaim": _CLAIM,
    "StorageClass": {
        "provisioner": STR,
        "reclaimPolicy": STR,
        "volumeBindingMode": STR,
        "allowVolumeExpansion": BOOL,
        "parameters": LABELS,
        "allowedTopologies": _TOPOLOGY_TERMS,
    },
    "CSINode": {
        "spec": {"drivers": [{"name": STR, "nodeID": STR, "topologyKeys": [STR], "allocatable": {"count": INT32}}]}
    },
    "CSIDriver": {
        "spec": {
            "attachRequired": BOOL,
            "podInfoOnMount": BOOL,
            "storageCapacity": BOOL,
            "volumeLifecycleModes": [STR],
        }
    },
    "CSIStorageCapacity": {
        "storageClassName": STR,
        "nodeTopology": _SELECTOR,
        "capacity": QUANTITY,
        "maximumVolumeSize": QUANTITY,
    },
    "VolumeAttachment": {
        "spec": {"attacher": STR, "nodeName": STR, "source": {"persistentVolumeName": STR}},
        "status": {"attached": BOOL},
    },
    "Lease": {
        "spec": {
            "holderIdentity": STR,
            "leaseDurationSeconds": INT32,
            "leaseTransitions": INT32,
            "renewTime": STR,
            "acquireTime": STR,
        }
    },
    "ResourceSlice": {
        "spec": {
            "driver": STR,
            "nodeName": STR,
            "nodeSelector": NODE_SELECTOR,
            "allNodes": BOOL,
            "perDeviceNodeSelection": BOOL,
            "pool": {"name": STR, "generation": INT, "resourceSliceCount": INT},
            "devices": [
                {
                    "name": STR,
                    "attributes": _map({"int": INT, "bool": BOOL, "string": STR, "version": STR}),
                    "capacity": _map({"value": QUANTITY}),
                }
            ],
        }
    },
    "ResourceClaim": {
        "spec": _CLAIM_DEVICES,
        "status": {
            "allocation": {
                "devices": {"results": [{"request": STR, "driver": STR, "pool": STR, "device": STR}]},
                "nodeSelector": NODE_SELECTOR,
            },
            "reservedFor": [{"apiGroup": STR, "resource": STR, "name": STR, "uid": STR}],
        },
    },
    "ResourceClaimTemplate": {"spec": {"metadata": _META, "spec": _CLAIM_DEVICES}},
    "DeviceClass": {"spec": {"selectors": _DEVICE_SELECTORS}},
}

_TOP: Final = {"apiVersion": STR, "kind": STR, "metadata": _META}
_WHOLE: Final = {kind: {**_TOP, **fields} for kind, fields in KIND_SHAPES.items()}


def check_shape(raw: dict[str, Any]) -> list[FieldError]:
    """What in an object is of a type its kind does not have there."""
    faults: list[FieldError] = []
    # A kind of another group may bear the same name, with fields of its own.
    kind = kind_of(raw)
    _check(raw, _WHOLE.get(kind.name, _TOP) if kind.known else _TOP, "", faults)
    return faults


def check_pod_spec_shape(spec: object, path: str = "spec") -> list[FieldError]:
    """The same for a pod's spec alone."""
    faults: list[FieldError] = []
    if isinstance(spec, dict):
        _check(spec, POD_SPEC, path, faults)
    else:
        faults.append(invalid(path, spec, "must be a mapping"))
    return faults


def check_meta_shape(meta: object, path: str = "metadata") -> list[FieldError]:
    """The same for metadata alone."""
    faults: list[FieldError] = []
    if isinstance(meta, dict):
        _check(meta, _META, path, faults)
    else:
        faults.append(invalid(path, meta, "must be a mapping"))
    return faults


def _check(value: dict[str, Any], fields: dict[str, Shape], path: str, faults: list[FieldError]) -> None:
    for key, item in value.items():
        shape = fields.get(key)
        if shape is None or item is None:
            continue
        sort = type(shape)
        if sort is str:
            if not _is_leaf(item, shape):
                faults.append(_mistyped(item, shape, child(path, key)))
        elif sort is dict:
            if type(item) is dict:
                _check(item, shape, child(path, key), faults)
            else:
                faults.append(invalid(child(path, key), item, "must be a mapping"))
        elif sort is list:
            _check_list(item, shape[0], child(path, key), faults)
        else:
            _check_map(item, shape[1], child(path, key), faults)


def _check_list(value: Any, shape: Shape, path: str, faults: list[FieldError]) -> None:
    if type(value) is not list:
        faults.append(invalid(path, value, "must be a list"))
        return
    if type(shape) is dict:
        for index, item in enumerate(value):
            if type(item) is dict:
                _check(item, shape, f"{path}[{index}]", faults)
            else:
                faults.append(invalid(f"{path}[{index}]", item, "must be a mapping"))
        return
    for index, item in enumerate(value):
        if not _is_leaf(item, shape):
            faults.append(_mistyped(item, shape, f"{path}[{index}]"))


def _check_map(value: Any, shape: Shape, path: str, faults: list[FieldError]) -> None:
    if type(value) is not dict:
        faults.append(invalid(path, value, "must be a mapping"))
        return
    for key, item in value.items():
        if type(key) is not str:
            faults.append(invalid(path, key, "a key must be a string"))
        elif item is None:
            continue
        elif type(shape) is dict:
            if type(item) is dict:
                _check(item, shape, child(path, key), faults)
            else:
                faults.append(invalid(child(path, key), item, "must be a mapping"))
        elif not _is_leaf(item, shape):
            faults.append(_mistyped(item, shape, child(path, key)))


def _is_leaf(value: Any, shape: str) -> bool:
    sort = type(value)
    if shape is STR:
        return sort is str
    if shape is QUANTITY:
        if sort is not str and sort is not int and sort is not float:
            return False
        try:
            nanos(value)
        except QuantityError:
            return False
        return True
    if shape is BOOL:
        return sort is bool
    if shape is INT_OR_STR:
        return sort is str or (sort is int and -_INT32_MAX - 1 <= value <= _INT32_MAX)
    if sort is not int:
        return False
    limit = _INT32_MAX if shape is INT32 else 2**63 - 1
    return bool(-limit - 1 <= value <= limit)


def _mistyped(value: Any, shape: str, path: str) -> FieldError:
    if shape is QUANTITY:
        return FieldError(path, value, f"Invalid value: {shown(value)}: {ALLOWED}")
    if shape is STR and type(value) in (bool, int, float):
        meant = str(value).lower() if type(value) is bool else str(value)
        return invalid(path, value, f'must be a string: write it in quotes, "{meant[:40]}"')
    return invalid(path, value, f"must be {shape}")


def slimmed(raw: dict[str, Any]) -> dict[str, Any]:
    """An object without nulls; of one whose kind we do not know, only the metadata is ours to touch."""
    if kind_of(raw).known:
        slim: dict[str, Any] = without_nulls(raw)
        return slim
    meta = raw.get("metadata")
    slim_meta = without_nulls(meta)
    return raw if slim_meta is meta else {**raw, "metadata": slim_meta}


def without_nulls(value: Any) -> Any:
    """The same without fields and items that are null; what holds none of them is not copied."""
    if type(value) is dict:
        slim = {key: without_nulls(item) for key, item in value.items() if item is not None}
        same = len(slim) == len(value) and all(slim[key] is item for key, item in value.items())
        return value if same else slim
    if type(value) is list:
        items = [without_nulls(item) for item in value if item is not None]
        same = len(items) == len(value) and all(new is old for new, old in zip(items, value, strict=True))
        return value if same else items
    return value
