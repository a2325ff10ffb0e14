"""Defaults: the fields that kube-apiserver sets for each kind when an object is created.

Source: Kubernetes v1.34, pkg/apis/{core,apps,batch,storage,scheduling,resource}/v1/defaults.go and the strategies in
pkg/registry. `default` receives an object as submitted and returns a new object; nothing is modified in place. An
object with fields of a wrong type is returned unchanged: `validate` reports its errors. Fields that admission plugins
set (priority, tolerations, RuntimeClass, a claim's StorageClass) are not set here.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.schemas.check import check_schema
from kschedd.api.schemas.codec import decoded_object
from kschedd.api.schemas.kinds import kind_of
from kschedd.registry.networking.services import default_service
from kschedd.registry.pods.defaults import (
    SOURCE_DEFAULTS,
    Raw,
    default_claim_spec,
    default_pod_spec,
    merge_label_keys,
    stored_resources,
)
from kschedd.registry.policy.defaults import (
    default_autoscaler,
    default_endpoints,
    default_network_policy,
    default_role_binding,
)
from kschedd.registry.policy.kept_defaults import KEPT_DEFAULTS

__all__ = [
    "default",
    "default_meta",
    "default_pod_spec",
    "default_pod_status",
    "default_typed",
    "merge_label_keys",
    "with_hostname",
    "with_pod_ips",
]

HOSTNAME: Final = "kubernetes.io/hostname"


def default(raw: Raw) -> Raw:
    """Return the object with its defaults, or unchanged if fields have a wrong type."""
    return raw if check_schema(raw) else default_typed(decoded_object(raw))


def default_typed(raw: Raw) -> Raw:
    """Return the object with its defaults. The object must have passed `check_schema` and contain no nulls."""
    kind = kind_of(raw)
    new = dict(raw)
    new["metadata"] = default_meta(raw.get("metadata") or {}, namespaced=kind.namespaced)
    if kind.known and (fill := _BY_KIND.get(kind.name)):
        fill(new)
    return new


def default_meta(meta: Raw, *, namespaced: bool) -> Raw:
    """Return metadata with a namespace if the kind is namespaced; the store generates names and UIDs."""
    owners = meta.get("ownerReferences")
    if owners and len(owners) > 1:
        meta = {
            **meta,
            "ownerReferences": [*{frozenset(each.items()): each for each in reversed(owners)}.values()][::-1],
        }
    if namespaced and not meta.get("namespace"):
        return {**meta, "namespace": "default"}
    return meta


def with_hostname(node: Raw) -> Raw:
    """Return the Node with its hostname label, which the kubelet sets at registration (kube-apiserver does not)."""
    meta = node.get("metadata") or {}
    labels = meta.get("labels") or {}
    if HOSTNAME in labels or not meta.get("name"):
        return node
    return {**node, "metadata": {**meta, "labels": {**labels, HOSTNAME: meta["name"]}}}


def _missing(raw: Raw, **defaults: Any) -> Raw:
    """Return a copy of `raw` with `defaults` for absent fields.

    A decoded object contains "" only in fields where "" differs from an absent value: in pointers, and in fields that
    are always encoded.
    """
    return {**raw, **{field: value for field, value in defaults.items() if field not in raw}}


def _pod(pod: Raw) -> None:
    if "spec" not in pod:
        return
    spec = default_pod_spec(pod["spec"])
    pod["spec"] = merge_label_keys(spec, pod["metadata"].get("labels") or {})
    pod["status"] = default_pod_status(pod.get("status") or {})


def default_pod_status(status: Raw) -> Raw:
    return with_pod_ips(_missing(status, phase="Pending"))


def with_pod_ips(status: Raw) -> Raw:
    """Return a pod's status with equal podIP and podIPs[0]."""
    one, more = status.get("podIP"), status.get("podIPs")
    if one and not more:
        return {**status, "podIPs": [{"ip": one}]}
    if more and more[0].get("ip") != one:
        return {**status, "podIP": more[0].get("ip") or ""}
    return status


def _template(spec: Raw) -> None:
    """Set defaults in the pod template of a workload's spec. The function modifies `spec`, which is already a copy."""
    template = spec.get("template")
    if template is not None:
        spec["template"] = {**template, "spec": default_pod_spec(template.get("spec") or {}, template=True)}


def _node(node: Raw) -> None:
    status = dict(node.get("status") or {})
    # Upstream sets an empty value only when it reads the object from storage.
    if not status.get("allocatable") and "capacity" in status:
        status["allocatable"] = status["capacity"]
    for field in ("capacity", "allocatable"):
        if field in status:
            status[field] = stored_resources(status[field])
    node["status"] = status
    node.setdefault("spec", {})


def _namespace(namespace: Raw) -> None:
    meta = namespace["metadata"]
    if name := meta.get("name"):
        labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": name}
        namespace["metadata"] = {**meta, "labels": labels}
    namespace["status"] = _missing(namespace.get("status") or {}, phase="Active")
    namespace.setdefault("spec", {"finalizers": ["kubernetes"]})


def _replication_controller(controller: Raw) -> None:
    spec = _missing(controller.get("spec") or {}, replicas=1)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = labels
        if not controller["metadata"].get("labels"):
            controller["metadata"] = {**controller["metadata"], "labels": labels}
    _template(spec)
    controller["spec"] = spec


def _replica_set(workload: Raw) -> None:
    spec = _missing(workload.get("spec") or {}, replicas=1)
    _template(spec)
    workload["spec"] = spec


def _rolling(update: Raw | None, **defaults: Any) -> Raw:
    """Return an update strategy; if its type is RollingUpdate, with the defaults of `rollingUpdate`."""
    update = _missing(update or {}, type="RollingUpdate")
    if update["type"] == "RollingUpdate":
        update["rollingUpdate"] = _missing(update.get("rollingUpdate") or {}, **defaults)
    return update


def _deployment(workload: Raw) -> None:
    spec = _missing(workload.get("spec") or {}, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    spec["strategy"] = _rolling(spec.get("strategy"), maxUnavailable="25%", maxSurge="25%")
    _template(spec)
    workload["spec"] = spec


def _stateful_set(workload: Raw) -> None:
    spec = _missing(
        workload.get("spec") or {},
        replicas=1,
        podManagementPolicy="OrderedReady",
        revisionHistoryLimit=10,
    )
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    spec["persistentVolumeClaimRetentionPolicy"] = _missing(retention, whenDeleted="Retain", whenScaled="Retain")
    update = spec.get("updateStrategy") or {}
    if not update.get("type") or "rollingUpdate" in update:
        update = _rolling(update, partition=0)
    spec["updateStrategy"] = update
    if claims := spec.get("volumeClaimTemplates"):
        api = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        spec["volumeClaimTemplates"] = [
            {
                **claim,
                **api,
                "spec": default_claim_spec(claim.get("spec") or {}),
                "status": _missing(claim.get("status") or {}, phase="Pending"),
            }
            for claim in claims
        ]
    _template(spec)
    workload["spec"] = spec


def _daemon_set(workload: Raw) -> None:
    spec = _missing(workload.get("spec") or {}, revisionHistoryLimit=10)
    spec["updateStrategy"] = _rolling(spec.get("updateStrategy"), maxUnavailable=1, maxSurge=0)
    _template(spec)
    workload["spec"] = spec


def _job(job: Raw) -> None:
    spec = _job_spec(job.get("spec") or {})
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"] = {**job["metadata"], "labels": labels}
    job["spec"] = spec


def _job_spec(spec: Raw) -> Raw:
    limit = 2**31 - 1 if "backoffLimitPerIndex" in spec else 6
    spec = _missing(spec, backoffLimit=limit, completionMode="NonIndexed", suspend=False, manualSelector=False)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    _failure_policy(spec)
    _template(spec)
    return spec


def _failure_policy(spec: Raw) -> None:
    if rules := (spec.get("podFailurePolicy") or {}).get("rules"):
        spec["podFailurePolicy"] = {**spec["podFailurePolicy"], "rules": [_failure_rule(rule) for rule in rules]}


def _cron_job(job: Raw) -> None:
    spec = _missing(
        job.get("spec") or {},
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    template = spec.get("jobTemplate") or {}
    spec["jobTemplate"] = {**template, "spec": _job_template_spec(template.get("spec") or {})}
    job["spec"] = spec


def _job_template_spec(spec: Raw) -> Raw:
    """Return a Job template's spec with the defaults of its parts, but without the defaults of Jobs."""
    spec = dict(spec)
    spec.setdefault("template", {})
    _failure_policy(spec)
    _template(spec)
    return spec


def _failure_rule(rule: Raw) -> Raw:
    if not (patterns := rule.get("onPodConditions")):
        return rule
    return {**rule, "onPodConditions": [{**each, "status": each.get("status") or "True"} for each in patterns]}


def _priority_class(item: Raw) -> None:
    item.setdefault("preemptionPolicy", "PreemptLowerPriority")
    item.setdefault("value", 0)


def _runtime_class(item: Raw) -> None:
    fixed = (item.get("overhead") or {}).get("podFixed")
    if fixed:
        item["overhead"] = {**item["overhead"], "podFixed": stored_resources(fixed)}


def _resource_quota(quota: Raw) -> None:
    for part in ("spec", "status"):
        if stated := quota.get(part):
            lists = {f: stored_resources(stated[f]) for f in ("hard", "used") if f in stated}
            quota[part] = {**stated, **lists}


def _volume(volume: Raw) -> None:
    spec = _missing(volume.get("spec") or {}, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if capacity := spec.get("capacity"):
        spec["capacity"] = stored_resources(capacity)
    for source, defaults in SOURCE_DEFAULTS.items():
        if (stated := spec.get(source)) is not None:
            spec[source] = _missing(stated, **defaults)
    volume["spec"] = spec
    volume["status"] = _missing(volume.get("status") or {}, phase="Pending")


def _claim(claim: Raw) -> None:
    claim["spec"] = default_claim_spec(claim.get("spec") or {})
    status = _missing(claim.get("status") or {}, phase="Pending")
    for field in ("capacity", "allocatedResources"):
        if field in status:
            status[field] = stored_resources(status[field])
    claim["status"] = status


def _storage_class(item: Raw) -> None:
    item.setdefault("reclaimPolicy", "Delete")
    item.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(driver: Raw) -> None:
    spec = _missing(
        driver.get("spec") or {},
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        requiresRepublish=False,
        seLinuxMount=False,
    )
    if spec.get("fsGroupPolicy") is None:
        spec["fsGroupPolicy"] = "ReadWriteOnceWithFSType"
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    driver["spec"] = spec


def _secret(secret: Raw) -> None:
    secret.update(_missing(secret, type="Opaque"))
    if texts := secret.pop("stringData", None):
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _limit_range(item: Raw) -> None:
    if limits := (item.get("spec") or {}).get("limits"):
        item["spec"] = {**item["spec"], "limits": [_limits(each) for each in limits]}


def _limits(item: Raw) -> Raw:
    """Return a LimitRange item with its defaults.

    For containers the default limit is the maximum. The default request is the default limit, or the minimum if there
    is no default limit.
    """
    new = {field: stored_resources(value) if isinstance(value, dict) else value for field, value in item.items()}
    if new.get("type") != "Container":
        return new
    default = {**new.get("max", {}), **new.get("default", {})}
    request = {**new.get("min", {}), **default, **new.get("defaultRequest", {})}
    for field, resources in (("default", default), ("defaultRequest", request)):
        if resources:
            new[field] = resources
    return new


def _claim_devices(spec: Raw) -> Raw:
    """Return a ResourceClaim's spec with its defaults; for example, a request is for exactly one device."""
    devices = spec.get("devices")
    if not devices or not devices.get("requests"):
        return spec
    requests = []
    for request in devices["requests"]:
        if "exactly" in request:
            request = {**request, "exactly": _exact(request["exactly"])}
        if "firstAvailable" in request:
            request = {**request, "firstAvailable": [_exact(each) for each in request["firstAvailable"]]}
        requests.append(request)
    return {**spec, "devices": {**devices, "requests": requests}}


def _exact(request: Raw) -> Raw:
    new = _missing(request, allocationMode="ExactCount")
    if new.get("tolerations"):
        new["tolerations"] = [_missing(each, operator="Equal") for each in new["tolerations"]]
    if new["allocationMode"] == "ExactCount" and not new.get("count"):
        new["count"] = 1
    return new


def _resource_claim(claim: Raw) -> None:
    claim["spec"] = _claim_devices(claim.get("spec") or {})


def _claim_template(template: Raw) -> None:
    spec = template.get("spec") or {}
    template["spec"] = {**spec, "spec": _claim_devices(spec.get("spec") or {})}


def _definition(definition: Raw) -> None:
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    names = _missing(names, singular=kind.lower(), listKind=f"{kind}List" if kind else "")
    definition["spec"] = {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}


_BY_KIND: Final[Mapping[str, Callable[[Raw], None]]] = {
    "Pod": _pod,
    "Node": _node,
    "Namespace": _namespace,
    "Service": default_service,
    "ReplicationController": _replication_controller,
    "ReplicaSet": _replica_set,
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "PriorityClass": _priority_class,
    "RuntimeClass": _runtime_class,
    "ResourceQuota": _resource_quota,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass": _storage_class,
    "CSIDriver": _csi_driver,
    "LimitRange": _limit_range,
    "Secret": _secret,
    "PodTemplate": _template,
    "ResourceClaim": _resource_claim,
    "ResourceClaimTemplate": _claim_template,
    "CustomResourceDefinition": _definition,
    "HorizontalPodAutoscaler": default_autoscaler,
    "NetworkPolicy": default_network_policy,
    "RoleBinding": default_role_binding,
    "ClusterRoleBinding": default_role_binding,
    "Endpoints": default_endpoints,
    **KEPT_DEFAULTS,
}
