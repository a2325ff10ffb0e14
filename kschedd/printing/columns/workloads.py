"""Columns of workloads, Services, PodDisruptionBudgets, ResourceQuotas and PriorityClasses.

Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kschedd.api.quantity import QuantityError, canonical
from kschedd.api.schemas.kinds import kind_of
from kschedd.printing.columns.ages import seconds_of, span
from kschedd.printing.columns.by_kind import (
    AGE,
    NAME,
    Column,
    Raw,
    RowContext,
    field,
    labels_text,
    meta,
    spec,
    status,
)
from kschedd.printing.terminal.tables import NONE


def _count(where: Callable[[Raw], Raw], name: str, absent: int = 0) -> Callable[[Raw, RowContext], str]:
    return field(where, name, str(absent))


def _containers(raw: Raw) -> list[Raw]:
    template = spec(raw).get("template") or {}
    return list((template.get("spec") or {}).get("containers") or ())


def _container_names(raw: Raw, around: RowContext) -> str:
    return ",".join(str(container.get("name", "")) for container in _containers(raw)) or NONE


def _images(raw: Raw, around: RowContext) -> str:
    return ",".join(str(container.get("image", "")) for container in _containers(raw)) or NONE


def selector_text(selector: Any) -> str:
    """A label selector, or a plain map of labels, in kubectl's notation."""
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


def _selector(raw: Raw, around: RowContext) -> str:
    return selector_text(spec(raw).get("selector"))


_CONTAINERS = Column("CONTAINERS", _container_names, wide=True)
_IMAGES = Column("IMAGES", _images, wide=True)
_SELECTOR = Column("SELECTOR", _selector, wide=True)


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


def _last_schedule(cron_job: Raw, around: RowContext) -> str:
    at = seconds_of(status(cron_job).get("lastScheduleTime"))
    return NONE if at is None else span(around.now - at)


def _of_job_template(cell: Callable[[Raw, RowContext], str]) -> Callable[[Raw, RowContext], str]:
    """A cell about the Jobs that a CronJob makes."""
    return lambda raw, around: cell(spec(raw).get("jobTemplate") or {}, around)


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
    template = (spec(raw).get("template") or {}).get("spec") or {}
    return labels_text(template.get("nodeSelector"))


def _quota(part: str) -> Callable[[Raw, RowContext], str]:
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


def _controller(revision: Raw, around: RowContext) -> str:
    """Who controls a ControllerRevision, as kubectl names it: statefulset.apps/db."""
    owner = next((o for o in meta(revision).get("ownerReferences") or () if o.get("controller")), None)
    return f"{kind_of(owner).resource}/{owner.get('name', '')}" if owner else NONE


def _scaled(autoscaler: Raw, around: RowContext) -> str:
    target = spec(autoscaler).get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(autoscaler: Raw, around: RowContext) -> str:
    """What is measured, of which nothing is known here, and what is aimed at; two of them are shown."""
    metrics = spec(autoscaler).get("metrics") or ()
    if not metrics:
        percent = spec(autoscaler).get("targetCPUUtilizationPercentage")
        return f"cpu: <unknown>/{percent}%" if percent is not None else NONE
    shown = ", ".join(map(_target, metrics[:2]))
    return f"{shown} + {len(metrics) - 2} more..." if len(metrics) > 2 else shown


def _target(metric: Raw) -> str:
    kind = str(metric.get("type") or "")
    source = metric.get(kind[:1].lower() + kind[1:]) or {}
    target = source.get("target") or {}
    if kind in ("Resource", "ContainerResource"):
        percent = target.get("averageUtilization")
        aim = target.get("averageValue") or (f"{percent}%" if percent is not None else "<auto>")
        return f"{source.get('name', '')}: <unknown>/{aim}"
    average = target.get("averageValue")
    return f"<unknown>/{average or target.get('value', '')}{' (avg)' if average and kind != 'Pods' else ''}"


def top(name: str, absent: str = "") -> Column:
    """A column for a top-level field of the object; the header is the field's name in capitals."""
    return Column(name.upper(), field(lambda raw: raw, name, absent))


def _group_policy(raw: Raw, around: RowContext) -> str:
    return "Basic" if (spec(raw).get("schedulingPolicy") or {}).get("gang") is None else "Gang"


def _group_workload(raw: Raw, around: RowContext) -> str:
    referred = spec(raw).get("workloadRef") or (spec(raw).get("podGroupTemplateRef") or {}).get("workload") or {}
    return str(referred.get("workloadName") or NONE)


def _group_status(raw: Raw, around: RowContext) -> str:
    told = {one.get("type"): one for one in status(raw).get("conditions") or ()}
    if disrupted := told.get("DisruptionTarget"):
        return str(disrupted.get("reason", ""))
    scheduled = told.get("PodGroupInitiallyScheduled") or told.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


WORKLOADS: Mapping[str, tuple[Column, ...]] = {
    "Deployment": (
        NAME,
        Column("READY", _ready),
        Column("UP-TO-DATE", _count(status, "updatedReplicas")),
        Column("AVAILABLE", _count(status, "availableReplicas")),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    **dict.fromkeys(
        ("ReplicaSet", "ReplicationController"),
        (
            NAME,
            Column("DESIRED", _count(spec, "replicas", 1)),
            Column("CURRENT", _count(status, "replicas")),
            Column("READY", _count(status, "readyReplicas")),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ),
    ),
    "StatefulSet": (NAME, Column("READY", _ready), AGE, _CONTAINERS, _IMAGES),
    "DaemonSet": (
        NAME,
        Column("DESIRED", _count(status, "desiredNumberScheduled")),
        Column("CURRENT", _count(status, "currentNumberScheduled")),
        Column("READY", _count(status, "numberReady")),
        Column("UP-TO-DATE", _count(status, "updatedNumberScheduled")),
        Column("AVAILABLE", _count(status, "numberAvailable")),
        Column("NODE SELECTOR", _node_selector),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    "Job": (
        NAME,
        Column("STATUS", _job_status),
        Column("COMPLETIONS", _completions),
        Column("DURATION", _duration),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    "CronJob": (
        NAME,
        Column("SCHEDULE", field(spec, "schedule")),
        Column("TIMEZONE", field(spec, "timeZone", NONE)),
        Column("SUSPEND", lambda raw, around: str(bool(spec(raw).get("suspend")))),
        Column("ACTIVE", lambda raw, around: str(len(status(raw).get("active") or ()))),
        Column("LAST SCHEDULE", _last_schedule),
        AGE,
        Column("CONTAINERS", _of_job_template(_container_names), wide=True),
        Column("IMAGES", _of_job_template(_images), wide=True),
        Column("SELECTOR", _of_job_template(_selector), wide=True),
    ),
    "Service": (
        NAME,
        Column("TYPE", field(spec, "type", "ClusterIP")),
        Column("CLUSTER-IP", field(spec, "clusterIP", NONE)),
        Column("EXTERNAL-IP", _external),
        Column("PORT(S)", _ports),
        AGE,
        _SELECTOR,
    ),
    "PodDisruptionBudget": (
        NAME,
        Column("MIN AVAILABLE", field(spec, "minAvailable", "N/A")),
        Column("MAX UNAVAILABLE", field(spec, "maxUnavailable", "N/A")),
        Column("ALLOWED DISRUPTIONS", _count(status, "disruptionsAllowed")),
        AGE,
    ),
    "PriorityClass": (
        NAME,
        top("value", "0"),
        Column("GLOBAL-DEFAULT", field(lambda raw: raw, "globalDefault", "false")),
        AGE,
        Column("PREEMPTIONPOLICY", field(lambda raw: raw, "preemptionPolicy", "PreemptLowerPriority")),
    ),
    "PodGroup.scheduling.k8s.io": (
        NAME,
        Column("POLICY", _group_policy),
        Column("WORKLOAD", _group_workload),
        Column("STATUS", _group_status),
        AGE,
    ),
    "RuntimeClass": (NAME, top("handler"), AGE),
    "ResourceQuota": (NAME, Column("REQUEST", _quota("requests")), Column("LIMIT", _quota("limits")), AGE),
    "ConfigMap": (NAME, Column("DATA", lambda raw, around: str(len(raw.get("data") or ()))), AGE),
    "Secret": (
        NAME,
        top("type", "Opaque"),
        Column("DATA", lambda raw, around: str(len(raw.get("data") or ()))),
        AGE,
    ),
    "ControllerRevision": (
        NAME,
        Column("CONTROLLER", _controller),
        Column("REVISION", field(lambda raw: raw, "revision", "0")),
        AGE,
    ),
    "HorizontalPodAutoscaler": (
        NAME,
        Column("REFERENCE", _scaled),
        Column("TARGETS", _targets),
        Column("MINPODS", field(spec, "minReplicas", "<unset>")),
        Column("MAXPODS", _count(spec, "maxReplicas")),
        Column("REPLICAS", _count(status, "currentReplicas")),
        AGE,
    ),
    "Lease": (NAME, Column("HOLDER", field(spec, "holderIdentity")), AGE),
}
