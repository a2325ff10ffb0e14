"""Functions that create a manifest in one line: a field that is not given has a default.

    node("n1", cpu="4", labels={"disk": "ssd"})
    pod("a", cpu="500m", labels={"team": "x"}, spec={"priority": 10})
    deployment("web", 3, cpu="1")

Amounts are quantities in the format of Kubernetes, such as "500m" CPUs and "64Mi" of memory.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

Raw = dict[str, Any]


class PodFields(TypedDict, total=False):
    """The keyword arguments for a workload's pods: the arguments of `pod`, with their defaults.

    * `cpu`, `memory`: the requests of one pod, as quantities.
    * `labels`: labels of the pods and of the workload; the label `app` with the workload's name is added.
    * `annotations`: annotations of the pods.
    * `resources`: the requests of one pod for other resources.
    * `spec`: additional fields of a pod's spec, such as {"nodeSelector": {"disk": "ssd"}}.
    """

    cpu: str
    memory: str
    labels: Mapping[str, str] | None
    annotations: Mapping[str, str] | None
    resources: Mapping[str, str] | None
    spec: Mapping[str, Any] | None


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    resources: Mapping[str, str] | None = None,
) -> Raw:
    """Return a node that is ready, with the label kubernetes.io/hostname.

    `labels`: additional labels, such as {"topology.kubernetes.io/zone": "a"}. `pods`: the maximum number of pods.
    `taints`: maps such as {"key": "gpu", "effect": "NoSchedule"}. `resources`: other resources of the node, such as
    {"nvidia.com/gpu": "8"}.
    """
    has = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    namespace: str = "default",
    node_name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Raw:
    """Return a pod with one container.

    `cpu`, `memory`: the requests of the pod. `node_name`: the node on which the pod already runs. `resources`: the
    pod's requests for other resources. `spec`: additional fields of the pod's spec, such as {"nodeSelector": {"disk":
    "ssd"}}.
    """
    extended = dict(resources or {})
    requests = {"cpu": cpu, "memory": memory, **extended}
    wanted = {"requests": requests, **({"limits": extended} if extended else {})}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": wanted}
    placed = {"nodeName": node_name} if node_name else {}
    meta = {"name": name, "namespace": namespace, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **placed, **(spec or {})},
    }


def deployment(name: str, replicas: int = 1, *, namespace: str = "default", **pods: Unpack[PodFields]) -> Raw:
    """Return a Deployment of pods with one container.

    `pods`: `cpu`, `memory`, `labels`, `annotations`, `resources` and `spec` have the same meaning for each pod as in
    `pod`.
    """
    return _workload("apps/v1", "Deployment", name, namespace, pods, {"replicas": replicas})


def statefulset(name: str, replicas: int = 1, *, namespace: str = "default", **pods: Unpack[PodFields]) -> Raw:
    """Return a StatefulSet of pods with one container and no volumes.

    `pods`: keyword arguments of `pod`, which apply to each pod.
    """
    return _workload("apps/v1", "StatefulSet", name, namespace, pods, {"replicas": replicas, "serviceName": name})


def daemonset(name: str, *, namespace: str = "default", **pods: Unpack[PodFields]) -> Raw:
    """Return a DaemonSet of pods with one container. `pods`: keyword arguments of `pod`, which apply to each pod."""
    return _workload("apps/v1", "DaemonSet", name, namespace, pods, {})


def job(
    name: str,
    completions: int = 1,
    *,
    parallelism: int | None = None,
    run_seconds: float | None = None,
    namespace: str = "default",
    **pods: Unpack[PodFields],
) -> Raw:
    """Return a Job of pods with one container.

    `completions`: the number of pods that must succeed. `parallelism`: the maximum number of pods that run at the same
    time; None: all pods. `run_seconds`: the virtual time in seconds after which a container ends; None: it never ends.
    `pods`: keyword arguments of `pod`, which apply to each pod.
    """
    if run_seconds is not None:
        pods["annotations"] = {**(pods.get("annotations") or {}), "kschedd.io/run-seconds": f"{run_seconds:g}"}
    at_once = completions if parallelism is None else parallelism
    made = _workload("batch/v1", "Job", name, namespace, pods, {"completions": completions, "parallelism": at_once})
    del made["spec"]["selector"]  # the Job controller creates the selector
    made["spec"]["template"]["spec"].setdefault("restartPolicy", "Never")
    return made


def _workload(api_version: str, kind: str, name: str, namespace: str, pods: PodFields, spec: Raw) -> Raw:
    """Return a workload whose pods have the label `app` with its name. Raises TypeError for unknown fields of pods."""
    allowed = PodFields.__annotations__
    if unknown := [field for field in pods if field not in allowed]:
        text = f"{kind.lower()}() got an unexpected argument {unknown[0]!r} (allowed: {', '.join(allowed)})"
        raise TypeError(text)
    labels = {"app": name, **(pods.get("labels") or {})}
    fields: PodFields = {**pods, "labels": labels}
    template = pod(name, **fields)
    meta = {field: template["metadata"][field] for field in ("labels", "annotations")}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            **spec,
            "selector": {"matchLabels": labels},
            "template": {"metadata": meta, "spec": template["spec"]},
        },
    }
