"""Manifests of the nodes and pods of the benchmark workloads.

A `PodTemplate` consists of labels and a spec. Pods of one template share the spec dict object. Bound pods share only
the parts of a spec, because their nodeName differs. Source: the benchmark's description, sections 1 and 2.
"""

from collections.abc import Mapping, Sequence

import attrs

from kschedd.bench.series import Raw

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SETUP_NAMESPACE = "sched-0"
MEASURED_NAMESPACE = "sched-1"
BOTH_NAMESPACES = [MEASURED_NAMESPACE, SETUP_NAMESPACE]

RUNNING: Raw = {"phase": "Running"}
READY: Raw = {"conditions": [{"type": "Ready", "status": "True"}]}
_PORTS: list[Raw] = [{"containerPort": 80, "protocol": "TCP"}]


@attrs.frozen
class PodTemplate:
    """A pod template; `labels` may be empty."""

    labels: Raw
    spec: Raw


def capacity(cpu: str, memory: str) -> Raw:
    """Return the status of a ready node: allocatable equals capacity, and at most 110 pods."""
    resources = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {"capacity": resources, "allocatable": resources, **READY}


STANDARD_STATUS: Raw = capacity("4", "32Gi")


def node(name: str, labels: Mapping[str, str], status: Raw, taints: Sequence[Raw] = ()) -> Raw:
    """Return a schedulable node; the hostname label is added to `labels`."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}},
        "spec": {"taints": taints} if taints else {},
        "status": status,
    }


def namespace(name: str) -> Raw:
    """Return a namespace object without labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def resources(cpu: str, memory: str) -> Raw:
    """Return resource requirements with requests equal to limits."""
    amounts = {"cpu": cpu, "memory": memory}
    return {"requests": amounts, "limits": amounts}


def spec(amounts: Raw, **more: object) -> Raw:
    """Return the standard pod spec with these resources (from `resources`) and these additional fields."""
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "ports": _PORTS,
        "resources": amounts,
    }
    return {
        "containers": [container],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 0,
        **more,
    }


def pod(name: str, namespace: str, template: PodTemplate) -> Raw:
    """Return a pending pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace, template),
        "spec": template.spec,
    }


def bound(name: str, namespace: str, template: PodTemplate, node: str, status: Raw = RUNNING) -> Raw:
    """Return a pod bound to `node`; its phase is Running by default."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace, template),
        "spec": {**template.spec, "nodeName": node},
        "status": status,
    }


def _metadata(name: str, namespace: str, template: PodTemplate) -> Raw:
    metadata: Raw = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    if template.labels:
        metadata["labels"] = template.labels
    return metadata


def taint(key: str, value: str, effect: str) -> Raw:
    return {"key": key, "value": value, "effect": effect}


def spread(max_skew: int, key: str, when: str, labels: Raw) -> Raw:
    """Return a topology spread constraint that selects the pods with these labels."""
    return {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": labels},
    }


def affinity_term(labels: Raw, key: str, namespaces: list[str] | None = None) -> Raw:
    """Return a term of pod affinity or anti-affinity. A term without namespaces selects the pod's own namespace."""
    term: Raw = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    if namespaces is not None:
        term["namespaces"] = namespaces
    return term


def required(kind: str, term: Raw) -> Raw:
    """Return the affinity field with one required term; kind is podAffinity or podAntiAffinity."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def preferred(kind: str, weight: int, term: Raw) -> Raw:
    """Return the affinity field with one preferred term; kind is podAffinity or podAntiAffinity."""
    weighted = {"weight": weight, "podAffinityTerm": term}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def required_nodes(term: Raw) -> Raw:
    """Return the affinity field with one required node selector term."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


STANDARD_RESOURCES = resources("100m", "500Mi")


def _shape(color: str | None = None, **more: object) -> PodTemplate:
    return PodTemplate({"color": color} if color else {}, spec(STANDARD_RESOURCES, **more))


def _across_namespaces(color: str, key: str) -> Raw:
    return affinity_term({"color": color}, key, BOTH_NAMESPACES)


DEFAULT = _shape()
NODE_AFFINITY = _shape(
    affinity=required_nodes({"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]})
)
SPREAD_HARD = _shape("blue", topologySpreadConstraints=[spread(5, ZONE, "DoNotSchedule", {"color": "blue"})])
SPREAD_SOFT = _shape("blue", topologySpreadConstraints=[spread(5, ZONE, "ScheduleAnyway", {"color": "blue"})])
POD_AFFINITY = _shape("blue", affinity=required("podAffinity", _across_namespaces("blue", ZONE)))
POD_ANTI_AFFINITY = _shape("green", affinity=required("podAntiAffinity", _across_namespaces("green", HOSTNAME)))
PREF_POD_AFFINITY = _shape("red", affinity=preferred("podAffinity", 1, _across_namespaces("red", HOSTNAME)))
PREF_POD_ANTI_AFFINITY = _shape(
    "yellow", affinity=preferred("podAntiAffinity", 1, _across_namespaces("yellow", HOSTNAME))
)
TOLERANT = _shape(tolerations=[{"key": "dedicated", "operator": "Equal", "value": "special", "effect": "NoSchedule"}])
VICTIM = PodTemplate({}, spec(resources("900m", "500Mi")))
PREEMPTOR = PodTemplate({}, spec(resources("3000m", "500Mi"), priority=10))
TOO_BIG = PodTemplate({}, spec(resources("9000m", "500Mi")))

_DAEMON_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]


def daemon(node: str) -> PodTemplate:
    """Return the template of a DaemonSet's pod for this node: affinity by metadata.name, and tolerations."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = required_nodes({"matchFields": [field]})
    return PodTemplate({}, {**DEFAULT.spec, "affinity": affinity, "tolerations": _DAEMON_TOLERATIONS})
