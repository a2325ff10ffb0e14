"""Usage of a ResourceQuota by an object, and the quota scopes that match the object.

Source: Kubernetes v1.34, pkg/quota/v1/evaluator/core (pods.go, services.go, persistent_volume_claims.go,
resource_claims.go) and staging/src/k8s.io/apiserver/pkg/quota/v1/generic.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kschedd.api.qos import qos_of_spec
from kschedd.api.quantity import format_value, nanos, style, value
from kschedd.api.selecting.resource_names import is_extended
from kschedd.api.text.times import seconds
from kschedd.store.admission_plugins.attributes import Raw
from kschedd.store.admission_plugins.quantities import ResourceList, add, pod_total
from kschedd.store.admission_plugins.storage import class_of
from kschedd.store.errors import resource_of

_STATED: Final = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = frozenset(
    ("pods", "count/pods", *_COMPUTE, *(f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE))
)
_OF_SERVICES: Final = ("count/services", "services", "services.nodeports", "services.loadbalancers")
_OF_CLAIMS: Final = ("count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage")
_BY_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_BY_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_UNPREFIXED: Final = frozenset(
    # kinds that are also counted without the prefix `count/`
    ("configmaps", "secrets", "resourcequotas", "replicationcontrollers")
)
_COUNTED_ON_UPDATE: Final = frozenset(("Service", "PersistentVolumeClaim", "ResourceClaim"))


def handles(kind: str, operation: str, subresource: str) -> bool:
    if subresource:
        return kind == "Pod" and subresource == "resize"
    return operation == "CREATE" or kind in _COUNTED_ON_UPDATE


def matching(kind: str, names: Iterable[str]) -> set[str]:
    """Return the resource names of the quota under which objects of this kind are counted."""
    return {name for name in names if _counts(kind, name)}


def _counts(kind: str, name: str) -> bool:
    resource = resource_of(kind)
    match kind:
        case "Pod":
            if name.startswith("requests.") and is_extended(name.removeprefix("requests.")):
                return True
            return name in _OF_PODS or name.startswith(("hugepages-", "requests.hugepages-"))
        case "Service":
            return name in _OF_SERVICES
        case "PersistentVolumeClaim":
            return name in _OF_CLAIMS or any(name.endswith(_BY_STORAGE_CLASS + each) for each in _OF_CLAIMS)
        case "ResourceClaim":
            return name == f"count/{resource}" or name.endswith(_BY_DEVICE_CLASS)
    return name == f"count/{resource}" or (name == resource and resource in _UNPREFIXED)


def charged_until(pod: Raw) -> float:
    """Return the time until which a quota counts a pod's resources; afterwards, only the number of pods is counted.

    For a pod that is being deleted, this is the end of its grace period plus another grace period. For all
    other pods the time is infinite.
    """
    meta = pod.get("metadata") or {}
    grace_s = meta.get("deletionGracePeriodSeconds")
    if not meta.get("deletionTimestamp") or grace_s is None:
        return math.inf
    return seconds(meta["deletionTimestamp"]) + float(grace_s)


def usage(kind: str, raw: Raw, *, overdue: bool = False) -> ResourceList:
    """Return the quota usage of the object; an `overdue` pod (see `charged_until`) uses only object counts."""
    spec = raw.get("spec") or {}
    counted: ResourceList = {f"count/{resource_of(kind)}": "1"}
    match kind:
        case "Pod":
            if (raw.get("status") or {}).get("phase") not in ("Succeeded", "Failed") and not overdue:
                total = pod_total(spec, "requests", overhead=True), pod_total(spec, "limits", overhead=True)
                counted |= _compute(*total)
        case "Service":
            counted |= _service(spec)
        case "PersistentVolumeClaim":
            counted |= _claim(raw)
        case "ResourceClaim":
            _devices(counted, spec)
        case _:
            if (resource := resource_of(kind)) in _UNPREFIXED:
                counted[resource] = "1"
    return counted


def _compute(requests: Mapping[str, Any], limits: Mapping[str, Any]) -> ResourceList:
    counted: ResourceList = {"pods": "1"}
    for name, quantity in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            counted[name] = counted[f"requests.{name}"] = quantity
        elif is_extended(name):
            counted[f"requests.{name}"] = quantity
    counted |= {f"limits.{name}": quantity for name, quantity in limits.items() if name in _COMPUTE}
    return counted


def _service(spec: Raw) -> ResourceList:
    ports = spec.get("ports") or ()
    node_ports = balancers = 0
    match spec.get("type"):
        case "NodePort":
            node_ports = len(ports)
        case "LoadBalancer":
            balancers = 1
            given = spec.get("allocateLoadBalancerNodePorts")
            node_ports = sum(bool(port.get("nodePort")) for port in ports) if given is False else len(ports)
    return {"services": "1", "services.nodeports": str(node_ports), "services.loadbalancers": str(balancers)}


def _claim(raw: Raw) -> ResourceList:
    counted: ResourceList = {"persistentvolumeclaims": "1"}
    requests = ((raw.get("spec") or {}).get("resources") or {}).get("requests") or {}
    size = requests.get("storage")
    if size is not None:
        counted["requests.storage"] = size if nanos(size) % 10**9 == 0 else format_value(value(size), style(size))
    if name := class_of(raw):
        counted |= {f"{name}{_BY_STORAGE_CLASS}{what}": quantity for what, quantity in tuple(counted.items())}
    return counted


def _devices(counted: ResourceList, spec: Raw) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        alternatives = [request["exactly"]] if request.get("exactly") else request.get("firstAvailable") or ()
        most: dict[str, int] = {}
        for each in alternatives:
            count = each.get("count") or 1 if each.get("allocationMode") != "All" else 32
            name = f"{each.get('deviceClassName')}{_BY_DEVICE_CLASS}"
            most[name] = max(most.get(name, 0), count)
        add(counted, {name: str(count) for name, count in most.items()})


def unstated(kind: str, raw: Raw, names: set[str]) -> str:
    """Return the containers that do not specify a resource with a quota: `cpu for: a,b`; "" if none."""
    spec = raw.get("spec") or {}
    if kind != "Pod" or (wanted := names & _STATED) == set() or _states_its_own(spec):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        there = _compute(resources.get("requests") or {}, resources.get("limits") or {})
        for name in wanted - there.keys():
            missing.setdefault(name, set()).add(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _states_its_own(spec: Raw) -> bool:
    resources = spec.get("resources") or {}
    return any(
        name in ("cpu", "memory") or name.startswith("hugepages-")
        for part in ("requests", "limits")
        for name in resources.get(part) or ()
    )


def in_scope(kind: str, raw: Raw, quota: Raw) -> bool:
    """Return whether the object matches all scopes of the quota.

    Only pods have scopes, except that PersistentVolumeClaims have the scope VolumeAttributesClass.
    """
    selectors = [{"scopeName": scope, "operator": "Exists"} for scope in quota.get("scopes") or ()]
    selectors += (quota.get("scopeSelector") or {}).get("matchExpressions") or []
    if kind == "PersistentVolumeClaim":
        name = (raw.get("spec") or {}).get("volumeAttributesClassName")
        return all(s.get("scopeName") == "VolumeAttributesClass" and _selects(s, name) for s in selectors)
    return not selectors if kind != "Pod" else all(_pod_in_scope(raw["spec"], selector) for selector in selectors)


def _pod_in_scope(spec: Raw, selector: Raw) -> bool:
    match selector.get("scopeName"):
        case "Terminating":
            return (spec.get("activeDeadlineSeconds") or -1) >= 0 or spec.get("activeDeadlineSeconds") == 0
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_of_spec(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_of_spec(spec) != "BestEffort"
        case "PriorityClass":
            return _selects(selector, spec.get("priorityClassName"))
        case "CrossNamespacePodAffinity":
            return _across_namespaces(spec)
    return False


def _selects(selector: Raw, name: Any) -> bool:
    values = selector.get("values") or ()
    match selector.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return bool(name) and name in values
        case "NotIn":
            return not name or name not in values
    return False


def _across_namespaces(spec: Raw) -> bool:
    affinity = spec.get("affinity") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(side) or {}
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*required, *(each.get("podAffinityTerm") or {} for each in preferred)):
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False
