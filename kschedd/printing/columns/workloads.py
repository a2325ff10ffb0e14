"""Cells of the tables of workloads, Services, autoscalers, PodDisruptionBudgets, ResourceQuotas and PriorityClasses.

Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any

from kschedd.api.quantity import QuantityError, canonical
from kschedd.printing.columns.ages import age, seconds_of, span
from kschedd.printing.columns.by_kind import (
    Cell,
    Cells,
    Raw,
    RowContext,
    field,
    joined,
    labels_text,
    meta,
    spec,
    status,
)
from kschedd.printing.terminal.tables import NONE

_UNKNOWN = "<unknown>"


def _itself(raw: Raw) -> Raw:
    return raw


def _data(raw: Raw, around: RowContext) -> int:
    return len(raw.get("data") or ())


def _count(where: Callable[[Raw], Raw], name: str, absent: int = 0) -> Cell:
    return field(where, name, str(absent))


def containers_cell(template: Callable[[Raw], Raw | None], name: str, absent: str = "") -> Cell:
    """Return a cell function that prints one field of each container of a pod template."""

    def cell(raw: Raw, around: RowContext) -> str:
        containers = spec(template(raw) or {}).get("containers") or ()
        return joined((container.get(name, "") for container in containers), absent=absent)

    return cell


def template_of(raw: Raw) -> Raw:
    """Return the pod template of a workload."""
    template: Raw = spec(raw).get("template") or {}
    return template


def _job_template(cron_job: Raw) -> Raw:
    template: Raw = spec(cron_job).get("jobTemplate") or {}
    return template


def selector_text(selector: Any) -> str:
    """Return a label selector, or a plain map of labels, in kubectl's notation."""
    if not isinstance(selector, Mapping) or not selector:
        return NONE
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return labels_text(selector)
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key", ""), expression.get("operator", "")
        values = ",".join(map(str, expression.get("values") or ()))
        words = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})"}
        parts.append(words.get(operator, f"{key} {operator.lower()} ({values})"))
    return ",".join(parts) or NONE


def selector_cell(raw: Raw, around: RowContext) -> str:
    return selector_text(spec(raw).get("selector"))


def _ready(raw: Raw, around: RowContext) -> str:
    wanted = spec(raw).get("replicas")
    return f"{status(raw).get('readyReplicas') or 0}/{1 if wanted is None else wanted}"


def _completions(job: Raw, around: RowContext) -> str:
    wanted, done = spec(job).get("completions"), status(job).get("succeeded") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = spec(job).get("parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_status(job: Raw, around: RowContext) -> str:
    held = {c.get("type") for c in status(job).get("conditions") or () if c.get("status") == "True"}
    if "Complete" in held:
        return "Complete"
    if "Failed" in held:
        return "Failed"
    if meta(job).get("deletionTimestamp"):
        return "Terminating"
    for condition, word in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget")):
        if condition in held:
            return word
    return "SuccessCriteriaMet" if "SuccessCriteriaMet" in held else "Running"


def _duration(job: Raw, around: RowContext) -> str:
    began = seconds_of(status(job).get("startTime"))
    if began is None:
        return ""
    ended = seconds_of(status(job).get("completionTime"))
    return span((around.now if ended is None else ended) - began)


def _ports(service: Raw, around: RowContext) -> str:
    ports = []
    for port in spec(service).get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port', '')}{node_port}/{port.get('protocol') or 'TCP'}")
    return ",".join(ports) or NONE


def _external(service: Raw, around: RowContext) -> str:
    addresses: Iterable[str] = spec(service).get("externalIPs") or ()
    kind = spec(service).get("type") or "ClusterIP"
    if kind == "ExternalName":
        return str(spec(service).get("externalName") or NONE)
    if kind == "LoadBalancer":
        ingress = (status(service).get("loadBalancer") or {}).get("ingress") or ()
        given = [str(point.get("ip") or point.get("hostname") or "") for point in ingress]
        return ",".join([*given, *addresses]) or "<pending>"
    return ",".join(addresses) or NONE


def _node_selector(raw: Raw, around: RowContext) -> str:
    return labels_text(spec(template_of(raw)).get("nodeSelector"))


def _healthy(raw: Raw) -> Raw:
    """Return the condition Healthy of a ComponentStatus."""
    found: Raw = next((each for each in raw.get("conditions") or () if each.get("type") == "Healthy"), {})
    return found


def _quota(part: str) -> Cell:
    def cell(quota: Raw, around: RowContext) -> str:
        hard, used = (
            status(quota).get("hard") or spec(quota).get("hard") or {},
            status(quota).get("used") or {},
        )
        pairs = []
        for name in sorted(hard):
            if name.startswith("limits.") == (part == "limits"):
                pairs.append(f"{name}: {_amount(used.get(name, '0'))}/{_amount(hard[name])}")
        return ", ".join(pairs)

    return cell


def _amount(quantity: Any) -> str:
    try:
        return canonical(quantity)
    except QuantityError:
        return str(quantity)


def _group_policy(raw: Raw, around: RowContext) -> str:
    return "Basic" if (spec(raw).get("schedulingPolicy") or {}).get("gang") is None else "Gang"


def _group_workload(raw: Raw, around: RowContext) -> str:
    referred = spec(raw).get("workloadRef") or (spec(raw).get("podGroupTemplateRef") or {}).get("workload") or {}
    return str(referred.get("workloadName") or NONE)


def _group_status(raw: Raw, around: RowContext) -> str:
    conditions = {one.get("type"): one for one in status(raw).get("conditions") or ()}
    if disrupted := conditions.get("DisruptionTarget"):
        return str(disrupted.get("reason", ""))
    scheduled = conditions.get("PodGroupInitiallyScheduled") or conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


def _cron(field: str, absent: Any) -> Cell:
    def cell(job: Raw, around: RowContext) -> Any:
        value = spec(job).get(field)
        return absent if value is None or value == "" else value

    return cell


def _cron_suspend(job: Raw, around: RowContext) -> str:
    suspended = spec(job).get("suspend")
    return "<unset>" if suspended is None else str(bool(suspended))


def _cron_last(job: Raw, around: RowContext) -> str:
    last = status(job).get("lastScheduleTime")
    return age(last, around.now) if last else NONE


def _reference(autoscaler: Raw, around: RowContext) -> str:
    target = spec(autoscaler).get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(autoscaler: Raw, around: RowContext) -> str:
    """Return the value and the target of the first two metrics: `cpu: <unknown>/80%`."""
    percent = spec(autoscaler).get("targetCPUUtilizationPercentage")
    if percent is not None:
        now = status(autoscaler).get("currentCPUUtilizationPercentage")
        return f"cpu: {_UNKNOWN if now is None else f'{now}%'}/{percent}%"
    metrics, current = spec(autoscaler).get("metrics") or (), status(autoscaler).get("currentMetrics") or ()
    words = [_target(metric, seen or {}) for metric, seen in zip_longest(metrics, current[: len(metrics)])]
    more = f" + {len(words) - 2} more..." if len(words) > 2 else ""
    return ", ".join(words[:2]) + more if words else NONE


def _target(metric: Raw, seen: Raw) -> str:
    kind = str(metric.get("type") or "")
    source, measured = ((each.get(kind[:1].lower() + kind[1:]) or {}) for each in (metric, seen))
    target, now = source.get("target") or {}, measured.get("current") or {}
    by = "averageValue" if target.get("averageValue") else "value"
    if kind not in ("Resource", "ContainerResource"):
        return f"{now.get(by) or _UNKNOWN}/{target.get(by, '')}{' (avg)' * (by != 'value' and kind != 'Pods')}"
    if by == "averageValue":
        return f"{source.get('name', '')}: {now.get(by) or _UNKNOWN}/{target[by]}"
    used, aim = (each.get("averageUtilization") for each in (now, target))
    shown = _UNKNOWN if used is None else f"{used}%"
    return f"{source.get('name', '')}: {shown}/{'<auto>' if aim is None else f'{aim}%'}"


def _controller(raw: Raw, around: RowContext) -> str:
    for ref in meta(raw).get("ownerReferences") or ():
        if ref.get("controller"):
            group = str(ref.get("apiVersion", "")).rpartition("/")[0]
            return f"{str(ref.get('kind', '')).lower()}{'.' + group if group else ''}/{ref.get('name', '')}"
    return NONE


_REPLICAS: Cells = {
    "Desired": _count(spec, "replicas", 1),
    "Current": _count(status, "replicas"),
    "Ready": _count(status, "readyReplicas"),
}
WORKLOADS: Mapping[str, Cells] = {
    "Deployment": {
        "Ready": _ready,
        "Up-to-date": _count(status, "updatedReplicas"),
        "Available": _count(status, "availableReplicas"),
    },
    "ReplicaSet": _REPLICAS,
    "ReplicationController": _REPLICAS,
    "StatefulSet": {"Ready": _ready},
    "DaemonSet": {
        "Desired": _count(status, "desiredNumberScheduled"),
        "Current": _count(status, "currentNumberScheduled"),
        "Ready": _count(status, "numberReady"),
        "Up-to-date": _count(status, "updatedNumberScheduled"),
        "Available": _count(status, "numberAvailable"),
        "Node Selector": _node_selector,
    },
    "Job": {"Status": _job_status, "Completions": _completions, "Duration": _duration},
    "CronJob": {
        "Schedule": _cron("schedule", ""),
        "Timezone": _cron("timeZone", NONE),
        "Suspend": _cron_suspend,
        "Active": lambda raw, around: len(status(raw).get("active") or ()),
        "Last Schedule": _cron_last,
        "Containers": containers_cell(lambda raw: template_of(_job_template(raw)), "name"),
        "Images": containers_cell(lambda raw: template_of(_job_template(raw)), "image"),
        "Selector": lambda raw, around: selector_cell(_job_template(raw), around),
    },
    "Service": {
        "Type": field(spec, "type", "ClusterIP"),
        "Cluster-IP": field(spec, "clusterIP", NONE),
        "External-IP": _external,
        "Port(s)": _ports,
    },
    "PodDisruptionBudget": {
        "Min Available": field(spec, "minAvailable", "N/A"),
        "Max Unavailable": field(spec, "maxUnavailable", "N/A"),
        "Allowed Disruptions": _count(status, "disruptionsAllowed"),
    },
    "PriorityClass": {
        "Value": field(_itself, "value", "0"),
        "Global-Default": field(_itself, "globalDefault", "false"),
        "PreemptionPolicy": field(_itself, "preemptionPolicy", "PreemptLowerPriority"),
    },
    "PodGroup.scheduling.k8s.io": {"Policy": _group_policy, "Workload": _group_workload, "Status": _group_status},
    "PodTemplate": {
        "Containers": containers_cell(lambda raw: raw.get("template"), "name"),
        "Images": containers_cell(lambda raw: raw.get("template"), "image"),
        "Pod Labels": lambda raw, around: labels_text(meta(raw.get("template") or {}).get("labels")),
    },
    "RuntimeClass": {"Handler": field(_itself, "handler")},
    "ResourceQuota": {"Request": _quota("requests"), "Limit": _quota("limits")},
    "ConfigMap": {"Data": _data},
    "Secret": {"Type": field(_itself, "type", "Opaque"), "Data": _data},
    "ControllerRevision": {"Controller": _controller, "Revision": lambda raw, around: raw.get("revision", 0)},
    "HorizontalPodAutoscaler": {
        "Reference": _reference,
        "Targets": _targets,
        "MinPods": lambda raw, around: str(spec(raw).get("minReplicas", "<unset>")),
        "MaxPods": lambda raw, around: spec(raw).get("maxReplicas", 0),
        "Replicas": lambda raw, around: status(raw).get("currentReplicas") or 0,
    },
    "Lease": {"Holder": field(spec, "holderIdentity")},
    "ComponentStatus": {
        "Status": lambda raw, around: "Healthy" if _healthy(raw).get("status") == "True" else "Unhealthy",
        "Message": lambda raw, around: _healthy(raw).get("message") or "",
        "Error": lambda raw, around: _healthy(raw).get("error") or "",
    },
}
