"""The fields of a kind that are encoded even if the object does not set them, as in a bookmark.

Source: Kubernetes v1.34, the Go types with fields that have no `omitempty`.
"""

from typing import Any, Final

from kschedd.apiserver.catalogue.resources import Resource

_OBJECT: Final[dict[str, Any]] = {"spec": {}, "status": {}}
_TEMPLATE: Final[dict[str, Any]] = {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}}
_SKELETONS: Final[dict[str, dict[str, Any]]] = {
    "Pod": {"spec": {"containers": None}, "status": {}},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "Node": {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(
                (
                    "machineID",
                    "systemUUID",
                    "bootID",
                    "kernelVersion",
                    "osImage",
                    "containerRuntimeVersion",
                    "kubeletVersion",
                    "kubeProxyVersion",
                    "operatingSystem",
                    "architecture",
                ),
                "",
            ),
        },
    },
    "ReplicationController": {"spec": {}, "status": {"replicas": 0}},
    "Deployment": {"spec": {"replicas": 0, "selector": None, "template": _TEMPLATE, "strategy": {}}, "status": {}},
    "ReplicaSet": {"spec": {"replicas": 0, "selector": None}, "status": {"replicas": 0}},
    "StatefulSet": {
        "spec": {"replicas": 0, "selector": None, "template": _TEMPLATE, "serviceName": "", "updateStrategy": {}},
        "status": {"replicas": 0, "availableReplicas": 0},
    },
    "DaemonSet": {
        "metadata": {"annotations": {"deprecated.daemonset.template.generation": "0"}},
        "spec": {"selector": None, "template": _TEMPLATE, "updateStrategy": {}},
        "status": {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
    },
    "Job": {"spec": {"template": _TEMPLATE}, "status": {}},
    "CronJob": {
        "spec": {"schedule": "", "jobTemplate": {"metadata": {}, "spec": {"template": _TEMPLATE}}},
        "status": {},
    },
    "PodDisruptionBudget": {
        "spec": {},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    },
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "ConfigMap": {},
    "Secret": {},
    "Lease": {"spec": {}},
    "PriorityClass": {"value": 0},
    "ResourceClaim": {"spec": {"devices": {}}, "status": {}},
    "ServiceAccount": {},
    "Event": {"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None},
}


def skeleton(resource: Resource) -> dict[str, Any]:
    """Return the fields that are always encoded. The fields include `metadata` if conversion adds an annotation."""
    if resource.definition is not None:
        return {}
    return _SKELETONS.get(resource.stored, _OBJECT)
