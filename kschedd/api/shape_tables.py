"""The types of fields, kind by kind: tables that `shapes` checks objects against.

Only fields that anything here reads are listed.
Source: Kubernetes v1.34, api/core/v1/types.go and its sisters in apps, batch, policy, storage and resource.
"""

from typing import Any, Final

STR: Final = "a string"
INT: Final = "an integer"
INT32: Final = "a 32-bit integer"
BOOL: Final = "true or false"
QUANTITY: Final = "a quantity"
INT_OR_STR: Final = "an integer or a string"

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
NODE_AFFINITY: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": NODE_SELECTOR,
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": INT32, "preference": _NODE_TERM}],
}
_AFFINITY: Final = {
    "nodeAffinity": NODE_AFFINITY,
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
META: Final = {
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
    "ephemeral": {"volumeClaimTemplate": {"metadata": META, "spec": _CLAIM_SPEC}},
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
POD_STATUS: Final = {
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
_TEMPLATE: Final = {"metadata": META, "spec": POD_SPEC}
_CLAIM_STATUS: Final = {"phase": STR, "capacity": _RESOURCES, "allocatedResources": _RESOURCES, "accessModes": [STR]}
_CLAIM: Final = {"metadata": META, "spec": _CLAIM_SPEC, "status": _CLAIM_STATUS}
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
    "Pod": {"spec": POD_SPEC, "status": POD_STATUS},
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
    "ResourceClaimTemplate": {"spec": {"metadata": META, "spec": _CLAIM_DEVICES}},
    "DeviceClass": {"spec": {"selectors": _DEVICE_SELECTORS}},
}
