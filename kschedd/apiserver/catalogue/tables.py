"""Objects as a Table: what `get` of every kubectl prints, with the columns that kube-apiserver has for each kind.

`columns.json` beside this module has the column definitions by kind (name, type, format, description, priority), and
under "" those of a kind without columns of its own. Cells are those of our own `get` where the columns are alike.
Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go; apiextensions-apiserver tableconvertor for CRDs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from kschedd.api.objects import Raw
from kschedd.apiserver.catalogue.resources import Resource
from kschedd.printing.columns.ages import age, seconds_of, span
from kschedd.printing.columns.by_kind import RowContext, labels_text, meta, spec, status
from kschedd.printing.columns.kind_tables import columns_of
from kschedd.printing.columns.workloads import selector_text
from kschedd.printing.templates.jsonpath import JsonPathError, find
from kschedd.printing.terminal.tables import NONE
from kschedd.store.custom_resources.rule_kinds import rule_kind

Cell = Callable[[Raw, RowContext], Any]

_COUNTS: Final = frozenset(
    (
        ("Deployment", "Up-to-date"),
        ("Deployment", "Available"),
        ("ConfigMap", "Data"),
        ("Secret", "Data"),
        ("Event", "Count"),
    )
)
_BOOLEAN: Final = {"true": True, "false": False}


class TableColumns:
    """The columns of one resource, and the cells of an object."""

    def __init__(self, definitions: Sequence[Mapping[str, Any]], cells: Sequence[Cell]) -> None:
        self.definitions = definitions
        self._cells = cells

    def row(self, raw: Raw, now: float) -> list[Any]:
        around = RowContext(now)
        return [cell(raw, around) for cell in self._cells]


def row_conditions(pod: Raw) -> list[dict[str, str]]:
    """What a row says beside its cells: that a pod has ended, so that a client may leave it out."""
    ended = {
        "Succeeded": ("Succeeded", "The pod has completed successfully."),
        "Failed": ("Failed", "The pod failed."),
    }.get(str(status(pod).get("phase")))
    if ended is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": ended[0], "message": ended[1]}]


def table_columns(resource: Resource) -> TableColumns:
    if resource.definition is not None and rule_kind(resource.definition) is None:
        return _defined(resource)
    return _built_in(resource.stored)


@cache
def _columns() -> Mapping[str, Sequence[Sequence[Any]]]:
    found: Mapping[str, Sequence[Sequence[Any]]] = json.loads(
        Path(__file__).with_name("columns.json").read_text(encoding="utf-8")
    )
    return found


@cache
def _built_in(kind: str) -> TableColumns:
    listed = _columns().get(kind) or _columns()[""]
    own = {column.header: column.cell for column in columns_of(kind)}
    definitions = [_definition(*column) for column in listed]
    return TableColumns(definitions, [_cell(kind, column[0], column[1], own) for column in listed])


def _definition(name: str, kind: str, form: str, description: str, priority: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "format": form, "description": description, "priority": priority}


def _cell(kind: str, name: str, typed: str, own: Mapping[str, Callable[[Raw, RowContext], str]]) -> Cell:
    found = _CELLS.get((kind, name)) or _ANY.get(name)
    if found is not None:
        return found
    text = own.get(name.upper())
    if text is None:
        return lambda raw, around: ""
    if typed == "integer" or (kind, name) in _COUNTS:
        return lambda raw, around: _number(text(raw, around))
    if typed == "boolean":
        return lambda raw, around: _BOOLEAN.get(text(raw, around), text(raw, around))
    return text


def _number(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


# Cells that our own `get` has not, or has otherwise


def _name(raw: Raw, around: RowContext) -> str:
    return str(meta(raw).get("name", ""))


def _created(raw: Raw, around: RowContext) -> Any:
    return meta(raw).get("creationTimestamp")


def _address(kind: str) -> Cell:
    def cell(node: Raw, around: RowContext) -> str:
        for address in status(node).get("addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address"))
        return NONE

    return cell


def _node_info(field: str) -> Cell:
    def cell(node: Raw, around: RowContext) -> str:
        return str((status(node).get("nodeInfo") or {}).get(field) or "<unknown>")

    return cell


def _restarts(pod: Raw, around: RowContext) -> str:
    """How often the containers were restarted, and when the last one was."""
    restarts, last = 0, None
    sidecars = {each.get("name") for each in spec(pod).get("initContainers") or () if each.get("restartPolicy")}
    for where in ("containerStatuses", "initContainerStatuses"):
        for each in status(pod).get(where) or ():
            if where == "initContainerStatuses" and each.get("name") not in sidecars:
                continue
            restarts += each.get("restartCount") or 0
            ended = seconds_of(((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
            if ended is not None and (last is None or ended > last):
                last = ended
    return str(restarts) if not restarts or last is None else f"{restarts} ({span(around.now - last)} ago)"


def _event_object(event: Raw, around: RowContext) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    kind, name = str(about.get("kind", "")).lower(), about.get("name")
    return f"{kind}/{name}" if name else kind


def _event_subobject(event: Raw, around: RowContext) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return str(about.get("fieldPath") or "")


def _event_source(event: Raw, around: RowContext) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController")
    host = source.get("host") or event.get("reportingInstance")
    return ", ".join(str(part) for part in (component, host) if part)


def _event_first(event: Raw, around: RowContext) -> str:
    times = (event.get("firstTimestamp"), event.get("deprecatedFirstTimestamp"), event.get("eventTime"))
    return age(next((time for time in times if time), None), around.now)


def _event_last(event: Raw, around: RowContext) -> str:
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
    )
    found = next((time for time in times if time), None)
    return age(found, around.now) if found else _event_first(event, around)


def _event_count(event: Raw, around: RowContext) -> int:
    count = (event.get("series") or {}).get("count") or event.get("count") or event.get("deprecatedCount")
    return int(count or 1)


def _event_message(event: Raw, around: RowContext) -> str:
    return str(event.get("message") or event.get("note") or "").strip()


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


def _cron_containers(field: str) -> Cell:
    def cell(job: Raw, around: RowContext) -> str:
        template = (spec(spec(job).get("jobTemplate") or {}).get("template") or {}).get("spec") or {}
        return ",".join(str(each.get(field, "")) for each in template.get("containers") or ())

    return cell


def _cron_selector(job: Raw, around: RowContext) -> str:
    return selector_text(spec(spec(job).get("jobTemplate") or {}).get("selector"))


def _reference(autoscaler: Raw, around: RowContext) -> str:
    target = spec(autoscaler).get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(autoscaler: Raw, around: RowContext) -> str:
    """What each metric is and should be: `cpu: <unknown>/80%`."""
    percent = spec(autoscaler).get("targetCPUUtilizationPercentage")
    metrics = spec(autoscaler).get("metrics") or ()
    if percent is not None:
        now = status(autoscaler).get("currentCPUUtilizationPercentage")
        return f"cpu: {'<unknown>' if now is None else f'{now}%'}/{percent}%"
    words = []
    current = status(autoscaler).get("currentMetrics") or ()
    for place, metric in enumerate(metrics):
        resource = metric.get("resource") or metric.get("containerResource") or {}
        target = resource.get("target") or {}
        seen = (current[place].get("resource") or {}).get("current") or {} if place < len(current) else {}
        if target.get("averageUtilization") is not None:
            now = seen.get("averageUtilization")
            shown = "<unknown>" if now is None else f"{now}%"
            words.append(f"{resource.get('name', '')}: {shown}/{target['averageUtilization']}%")
        elif resource:
            shown = seen.get("averageValue") or "<unknown>"
            words.append(f"{resource.get('name', '')}: {shown}/{target.get('averageValue', '')}")
        else:
            words.append(f"<unknown>/<{str(metric.get('type', '')).lower()}>")
    most = 2
    more = f" + {len(words) - most} more..." if len(words) > most else ""
    return ", ".join(words[:most]) + more if words else NONE


def _ingress_hosts(ingress: Raw, around: RowContext) -> str:
    hosts = [str(rule["host"]) for rule in spec(ingress).get("rules") or () if rule.get("host")]
    if not hosts:
        return "*"
    return ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")


def _ingress_address(ingress: Raw, around: RowContext) -> str:
    points = (status(ingress).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(str(point.get("ip") or point.get("hostname") or "") for point in points)


def _subjects(kind: str) -> Cell:
    def cell(binding: Raw, around: RowContext) -> str:
        named = []
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == kind:
                space = f"{subject.get('namespace')}/" if kind == "ServiceAccount" else ""
                named.append(f"{space}{subject.get('name', '')}")
        return ", ".join(named)

    return cell


def _role(binding: Raw, around: RowContext) -> str:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _template_part(field: str) -> Cell:
    def cell(raw: Raw, around: RowContext) -> str:
        containers = ((raw.get("template") or {}).get("spec") or {}).get("containers") or ()
        return ",".join(str(each.get(field, "")) for each in containers)

    return cell


def _endpoints(raw: Raw, around: RowContext) -> str:
    found = []
    for subset in raw.get("subsets") or ():
        for port in subset.get("ports") or ():
            found += [f"{each.get('ip')}:{port.get('port')}" for each in subset.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more if found else NONE


def _slice_ports(raw: Raw, around: RowContext) -> str:
    return ",".join(str(each.get("port", "*")) for each in raw.get("ports") or ()) or "<unset>"


def _slice_endpoints(raw: Raw, around: RowContext) -> str:
    found = [str(address) for each in raw.get("endpoints") or () for address in each.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more if found else "<unset>"


def _claim_phase(raw: Raw, around: RowContext) -> str:
    return "Terminating" if meta(raw).get("deletionTimestamp") else str(status(raw).get("phase") or "")


def _driver(field: str, absent: Any) -> Cell:
    return lambda raw, around: spec(raw).get(field, absent)


def _controller(raw: Raw, around: RowContext) -> str:
    for ref in meta(raw).get("ownerReferences") or ():
        if ref.get("controller"):
            group = str(ref.get("apiVersion", "")).rpartition("/")[0]
            return f"{str(ref.get('kind', '')).lower()}{'.' + group if group else ''}/{ref.get('name', '')}"
    return NONE


_ANY: Final[Mapping[str, Cell]] = {"Created At": _created}
_CELLS: Final[Mapping[tuple[str, str], Cell]] = {
    ("", "Name"): _name,
    ("Node", "Internal-IP"): _address("InternalIP"),
    ("Node", "External-IP"): _address("ExternalIP"),
    ("Node", "OS-Image"): _node_info("osImage"),
    ("Node", "Kernel-Version"): _node_info("kernelVersion"),
    ("Node", "Container-Runtime"): _node_info("containerRuntimeVersion"),
    ("Pod", "Restarts"): _restarts,
    ("Event", "Last Seen"): _event_last,
    ("Event", "First Seen"): _event_first,
    ("Event", "Object"): _event_object,
    ("Event", "Subobject"): _event_subobject,
    ("Event", "Source"): _event_source,
    ("Event", "Message"): _event_message,
    ("Event", "Count"): _event_count,
    ("ServiceAccount", "Secrets"): lambda raw, around: len(raw.get("secrets") or ()),
    ("CronJob", "Schedule"): _cron("schedule", ""),
    ("CronJob", "Timezone"): _cron("timeZone", NONE),
    ("CronJob", "Suspend"): _cron_suspend,
    ("CronJob", "Active"): lambda raw, around: len(status(raw).get("active") or ()),
    ("CronJob", "Last Schedule"): _cron_last,
    ("CronJob", "Containers"): _cron_containers("name"),
    ("CronJob", "Images"): _cron_containers("image"),
    ("CronJob", "Selector"): _cron_selector,
    ("HorizontalPodAutoscaler", "Reference"): _reference,
    ("HorizontalPodAutoscaler", "Targets"): _targets,
    ("HorizontalPodAutoscaler", "MinPods"): lambda raw, around: str(spec(raw).get("minReplicas", "<unset>")),
    ("HorizontalPodAutoscaler", "MaxPods"): lambda raw, around: spec(raw).get("maxReplicas", 0),
    ("HorizontalPodAutoscaler", "Replicas"): lambda raw, around: status(raw).get("currentReplicas") or 0,
    ("Ingress", "Class"): lambda raw, around: spec(raw).get("ingressClassName") or NONE,
    ("Ingress", "Hosts"): _ingress_hosts,
    ("Ingress", "Address"): _ingress_address,
    ("Ingress", "Ports"): lambda raw, around: "80, 443" if spec(raw).get("tls") else "80",
    ("RoleBinding", "Role"): _role,
    ("RoleBinding", "Users"): _subjects("User"),
    ("RoleBinding", "Groups"): _subjects("Group"),
    ("RoleBinding", "ServiceAccounts"): _subjects("ServiceAccount"),
    ("ClusterRoleBinding", "Role"): _role,
    ("ClusterRoleBinding", "Users"): _subjects("User"),
    ("ClusterRoleBinding", "Groups"): _subjects("Group"),
    ("ClusterRoleBinding", "ServiceAccounts"): _subjects("ServiceAccount"),
    ("Endpoints", "Endpoints"): _endpoints,
    ("EndpointSlice", "AddressType"): lambda raw, around: raw.get("addressType", ""),
    ("EndpointSlice", "Ports"): _slice_ports,
    ("EndpointSlice", "Endpoints"): _slice_endpoints,
    ("PodTemplate", "Containers"): _template_part("name"),
    ("PodTemplate", "Images"): _template_part("image"),
    ("PodTemplate", "Pod Labels"): lambda raw, around: labels_text(meta(raw.get("template") or {}).get("labels")),
    ("PersistentVolumeClaim", "Status"): _claim_phase,
    ("PersistentVolume", "Status"): _claim_phase,
    ("NetworkPolicy", "Pod-Selector"): lambda raw, around: selector_text(spec(raw).get("podSelector")),
    ("ControllerRevision", "Controller"): _controller,
    ("ControllerRevision", "Revision"): lambda raw, around: raw.get("revision", 0),
    ("IngressClass", "Controller"): lambda raw, around: spec(raw).get("controller", ""),
    ("IngressClass", "Parameters"): lambda raw, around: NONE if not spec(raw).get("parameters") else "<set>",
    ("StorageClass", "AllowVolumeExpansion"): lambda raw, around: bool(raw.get("allowVolumeExpansion")),
    ("CSIDriver", "AttachRequired"): _driver("attachRequired", True),
    ("CSIDriver", "PodInfoOnMount"): _driver("podInfoOnMount", False),
    ("CSIDriver", "StorageCapacity"): _driver("storageCapacity", False),
    ("CSIDriver", "TokenRequests"): lambda raw, around: "<unset>" if not spec(raw).get("tokenRequests") else "<set>",
    ("CSIDriver", "RequiresRepublish"): _driver("requiresRepublish", False),
}


# Custom resources


def _defined(resource: Resource) -> TableColumns:
    assert resource.definition is not None, "only custom resources have a definition"
    versions = resource.definition.spec.get("versions") or ()
    version: Raw = next((each for each in versions if each.get("name") == resource.version), {})
    wanted = version.get("additionalPrinterColumns") or ()
    name = _definition(*_columns()[""][0])
    if not wanted:
        wanted = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)
    definitions, cells = [name], [_name]
    for column in wanted:
        definitions.append(
            _definition(
                str(column.get("name", "")),
                str(column.get("type", "string")),
                str(column.get("format", "")),
                str(column.get("description", "")) or _described(column),
                int(column.get("priority") or 0),
            )
        )
        cells.append(_by_path(str(column.get("jsonPath", "")), str(column.get("type", "string"))))
    return TableColumns(definitions, cells)


def _described(column: Mapping[str, Any]) -> str:
    return f"Custom resource definition column (in JSONPath format): {column.get('jsonPath', '')}"


def _by_path(path: str, typed: str) -> Any:
    def cell(raw: Raw, around: RowContext) -> Any:
        try:
            found = find(path, raw) if path else []
        except JsonPathError:
            found = []
        value = found[0] if found else None
        if value is None:
            return "<unknown>" if typed == "date" else None
        return age(value, around.now) if typed == "date" else value

    return cell


def scale_table(scale: Raw, now: float, version: str) -> dict[str, Any]:
    """A Scale, which is no object of its own."""
    own = meta(scale)
    counts = [(spec(scale).get("replicas") or 0), (status(scale).get("replicas") or 0)]
    cells = [own.get("name"), *counts, age(own.get("creationTimestamp"), now)]
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": own}
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {"resourceVersion": own.get("resourceVersion")},
        "columnDefinitions": [_definition(*column) for column in _columns()["Scale"]],
        "rows": [{"cells": cells, "object": partial}],
    }


def component_table(components: Sequence[Raw], version: str) -> dict[str, Any]:
    """ComponentStatuses, which no store has."""
    definitions = [_definition(*column) for column in _columns()["ComponentStatus"]]
    rows = [
        {
            "cells": [str(meta(each).get("name", "")), "Healthy", "ok", ""],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta(each)},
        }
        for each in components
    ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    }
