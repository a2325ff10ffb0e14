"""The manifests of a benchmark: nodes, pods, volumes and devices, from templates or with defaults.

Manifests share parts, and must not be modified. Where upstream completes names at random (a node's generateName),
numbers are appended here, so that a run can be repeated.

Source: Kubernetes v1.34, test/integration/scheduler_perf/{scheduler_perf,util,node_util,dra}.go, test/utils/runners.go
(NodeAllocatableStrategy, LabelNodePrepareStrategy, MakePodSpec, CreatePodWithPersistentVolume).
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.bench.pod_templates import HOSTNAME, READY, namespace, resources
from kschedd.bench.scheduler_perf.operations import CreateNodes, CreatePods
from kschedd.bench.scheduler_perf.templates import ObjectTemplate, TemplateFolder
from kschedd.bench.series import Raw

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

_CAPACITY: Final[Raw] = {"cpu": "4", "memory": "32Gi", "pods": "110"}
_NODE: Final[Raw] = {"apiVersion": "v1", "kind": "Node", "status": {"capacity": _CAPACITY, **READY}}
_POD: Final[Raw] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "ports": [{"containerPort": 80}],
                "resources": resources("100m", "500Mi"),
            }
        ]
    },
}


def nodes(step: CreateNodes, templates: TemplateFolder, step_number: int, first: int) -> Iterator[Raw]:
    """Yield the nodes, each followed by its CSINode if it has one. `first` is the number of existing nodes."""
    template = templates.get(step.node_template_path, typed=True) if step.node_template_path else None
    for index in range(step.count):
        node = _NODE if template is None else template.rendered(_values(step.template_params, index, step.count))
        meta = node.get("metadata") or {"generateName": f"node-{step_number}-"}
        name = meta.get("name") or f"{meta.get('generateName', '')}{first + index}"
        labels = {**(meta.get("labels") or {}), HOSTNAME: name}
        status = node.get("status") or {}
        if (labelled := step.label_node_prepare_strategy) is not None and labelled.label_values:
            labels[labelled.label_key] = labelled.label_values[index % len(labelled.label_values)]
        if (unique := step.unique_node_label_strategy) is not None:
            labels[unique.label_key] = f"{name}-{index}"
        allocated = step.node_allocatable_strategy
        if allocated is not None:
            allocatable = {**(status.get("allocatable") or status.get("capacity") or {}), **allocated.node_allocatable}
            status = {**status, "allocatable": allocatable}
        kept = {key: value for key, value in meta.items() if key != "generateName"}
        yield {**node, "metadata": {**kept, "name": name, "labels": labels}, "status": status}
        if allocated is not None:
            drivers = allocated.csi_node_allocatable
            yield csi_node(name, drivers, allocated.migrated_plugins)


def csi_node(name: str, drivers: Mapping[str, Any], migrated: tuple[str, ...]) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": {MIGRATED_PLUGINS: ",".join(migrated)}},
        "spec": {
            "drivers": [{"name": driver, "nodeID": name, "allocatable": most} for driver, most in drivers.items()]
        },
    }


def namespaces(prefix: str, count: int, template: ObjectTemplate | None) -> Iterator[Raw]:
    for number in range(count):
        name = f"{prefix}-{number}"
        raw = namespace(name) if template is None else template.rendered({})
        yield in_namespace(raw, "", name)


def pods(step: CreatePods, templates: TemplateFolder, default_template: str) -> Iterator[Raw]:
    """Yield the pods of a step; a pod's claim and volume precede it."""
    path = step.pod_template_path or default_template
    template = templates.get(path, typed=True) if path else None
    volume = step.persistent_volume_template_path
    for index in range(step.count):
        pod = _POD if template is None else template.rendered(_values(step.template_params, index, step.count))
        if step.signature_batch_size:
            meta = pod["metadata"]
            labels = {
                **(meta.get("labels") or {}),
                "signature": f"signature-label-{index // step.signature_batch_size}",
            }
            pod = {**pod, "metadata": {**meta, "labels": labels}}
        pod = in_namespace(pod, step.namespace)
        if volume:
            claim = f"pvc-{index}"
            claim_template = templates.get(step.persistent_volume_claim_template_path, typed=True).rendered({})
            yield from _bound_pair(
                templates.get(volume, typed=True).rendered({}), claim_template, claim, step.namespace, index
            )
            volumes = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim}}]
            pod = {**pod, "spec": {**pod["spec"], "volumes": volumes}}
        yield pod


def _bound_pair(volume: Raw, claim: Raw, claim_name: str, namespace: str, index: int) -> tuple[Raw, Raw]:
    """Return a claim and a volume that are bound to each other."""
    name = f"{namespace}-vol-{index}"
    spec = dict(volume["spec"])
    if "csi" in spec:
        spec["csi"] = {**spec["csi"], "volumeHandle": name}
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": f"vol-{index}"}
    # Without the claim's uid, the volume controller would assume that the volume is bound to another claim.
    uid = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{namespace}/{claim_name}"))
    reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim_name, "apiVersion": "v1"}
    spec["claimRef"] = {**reference, "uid": uid}
    named = in_namespace(claim, namespace, claim_name)
    bound_claim = {
        **named,
        "metadata": {**named["metadata"], "uid": uid},
        "spec": {**claim["spec"], "volumeName": name},
        "status": {"phase": "Bound"},
    }
    bound_volume = {**in_namespace(volume, "", name), "spec": spec, "status": {"phase": "Bound"}}
    return bound_claim, bound_volume


def any_object(template: ObjectTemplate, namespace: str, params: Mapping[str, Any], index: int, count: int) -> Raw:
    raw = template.rendered(_values(params, index, count))
    return in_namespace(raw, namespace) if namespace else raw


def resource_slice(driver: str, node: str, devices: int) -> Raw:
    """Return a ResourceSlice with the devices of one node, as upstream's test driver publishes them."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 0, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"instance-{number}",
                    "attributes": {
                        "model": {"string": "A100"},
                        "family": {"string": "GPU"},
                        "driverVersion": {"version": "1.2.3"},
                        "dra.example.com/numa": {"int": number},
                    },
                    "capacity": {"memory": {"value": "1Gi"}},
                }
                for number in range(devices)
            ],
        },
    }


def in_namespace(raw: Raw, namespace: str, name: str = "") -> Raw:
    meta = {**(raw.get("metadata") or {}), **({"namespace": namespace} if namespace else {})}
    if name:
        meta = {**meta, "name": name}
    return {**raw, "metadata": meta}


def _values(params: Mapping[str, Any], index: int, count: int) -> dict[str, Any]:
    return {**params, "Index": index, "Count": count}
