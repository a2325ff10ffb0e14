"""Validation of HorizontalPodAutoscalers: replicas, the scaled object, metrics and behavior.

An autoscaling/v1 object is converted to autoscaling/v2 before its validation, so the paths in messages are v2 paths.
Source: Kubernetes v1.34, pkg/apis/autoscaling/validation/validation.go. The functions require objects that match the
schema and have their defaults, and append errors to `faults`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.quantity import nanos
from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import dns_label, path_segment
from kschedd.registry.validation_resources import container_resource_faults

Raw = dict[str, Any]
Faults = list[FieldError]

_LONGEST_WINDOW_S: Final = 3600
_LONGEST_PERIOD_S: Final = 1800
_SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
_POLICY_TYPES: Final = ("Percent", "Pods")
_TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")
# field of each type of metric, in upstream's order of validation
_SOURCES: Final[Mapping[str, str]] = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_METRIC_TYPES: Final = tuple(sorted(_SOURCES))


def validate_autoscaler(autoscaler: Raw, faults: Faults) -> None:
    """Append the errors of a new HorizontalPodAutoscaler."""
    validate_updated_autoscaler(autoscaler, {}, faults)


def validate_updated_autoscaler(autoscaler: Raw, old: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors of a changed HorizontalPodAutoscaler.

    If the old autoscaler could scale to zero, the new one may do so, too. API versions of the old autoscaler are
    accepted even if they are invalid.
    """
    spec, before = autoscaler.get("spec") or {}, old.get("spec") or {}
    least = 0 if before.get("minReplicas") == 0 else 1
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < least:
        faults.append(invalid("spec.minReplicas", low, f"must be greater than or equal to {least}"))
    if high < 1:
        faults.append(invalid("spec.maxReplicas", high, "must be greater than 0"))
    if low is not None and high < low:
        faults.append(invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    target, then = spec.get("scaleTargetRef") or {}, before.get("scaleTargetRef") or {}
    _validate_reference(target, "spec.scaleTargetRef", faults)
    if not old or any((target.get(field) or "") != (then.get(field) or "") for field in ("apiVersion", "kind")):
        core = target.get("kind") == "ReplicationController"
        _validate_api_version(target, "spec.scaleTargetRef", faults, core=core)
    tolerated = any(_version_fault(_described(metric), core=True) for metric in _metrics(before))
    metrics = _metrics(spec)
    for index, metric in enumerate(metrics):
        _validate_metric(metric, f"spec.metrics[{index}]", faults, any_version=tolerated)
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        faults.append(forbidden("spec.metrics", why))
    behavior = spec.get("behavior") or {}
    for field in ("scaleUp", "scaleDown"):
        if (rules := behavior.get(field)) is not None:
            _validate_scaling_rules(rules, f"spec.behavior.{field}", faults)


def validate_autoscaler_status(autoscaler: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors of the status of a HorizontalPodAutoscaler."""
    status = autoscaler.get("status") or {}
    for field in ("currentReplicas", "desiredReplicas"):
        if (count := status.get(field) or 0) < 0:
            faults.append(invalid(f"status.{field}", count, "must be greater than or equal to 0"))


def _metrics(spec: Raw) -> list[Raw]:
    """Return the metrics; for autoscaling/v1, the metric to which its target is converted."""
    percent = spec.get("targetCPUUtilizationPercentage")
    if percent is None:
        return spec.get("metrics") or []
    target = {"type": "Utilization", "averageUtilization": percent}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _validate_reference(reference: Raw, path: str, faults: Faults) -> None:
    for field in ("kind", "name"):
        text = reference.get(field) or ""
        if not text:
            faults.append(required(f"{path}.{field}"))
        faults += [invalid(f"{path}.{field}", text, why) for why in path_segment(text)]


def _described(metric: Raw) -> Raw:
    """Return the object that a metric describes, or an empty map."""
    source = (metric.get("object") or {}) if metric.get("type") == "Object" else {}
    described: Raw = source.get("describedObject") or {}
    return described


def _version_fault(reference: Raw, *, core: bool) -> str:
    """Return the error in the version of a reference, or "". `core` allows the core group."""
    stated = reference.get("apiVersion") or ""
    if stated.count("/") > 1:
        return f"unexpected GroupVersion string: {stated}"
    return "" if core or (stated.partition("/")[1] and stated[0] != "/") else "apiVersion must specify API group"


def _validate_api_version(reference: Raw, path: str, faults: Faults, *, core: bool) -> None:
    if why := _version_fault(reference, core=core):
        faults.append(invalid(f"{path}.apiVersion", reference.get("apiVersion") or "", why))


def _validate_scaling_rules(rules: Raw, path: str, faults: Faults) -> None:
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None and window < 0:
        faults.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW_S:
        why = f"must be less than or equal to {_LONGEST_WINDOW_S}"
        faults.append(invalid(f"{path}.stabilizationWindowSeconds", window, why))
    if select is not None and select not in _SELECT_POLICIES:
        faults.append(unsupported(f"{path}.selectPolicy", select, _SELECT_POLICIES))
    policies = rules.get("policies") or ()
    if not policies:
        faults.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        here, kind = f"{path}.policies[{index}]", policy.get("type") or ""
        period = policy.get("periodSeconds") or 0
        if kind not in _POLICY_TYPES:
            faults.append(unsupported(f"{here}.type", kind, _POLICY_TYPES))
        for field in ("value", "periodSeconds"):
            if (amount := policy.get(field) or 0) <= 0:
                faults.append(invalid(f"{here}.{field}", amount, "must be greater than zero"))
        if period > _LONGEST_PERIOD_S:
            why = f"must be less than or equal to {_LONGEST_PERIOD_S}"
            faults.append(invalid(f"{here}.periodSeconds", period, why))


# -- metrics ----------------------------------------------------------------------------------------------------------


def _validate_metric(metric: Raw, path: str, faults: Faults, *, any_version: bool) -> None:
    kind = metric.get("type") or ""
    if not kind:
        faults.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        faults.append(unsupported(f"{path}.type", kind, _METRIC_TYPES))
    present = [field for field in _SOURCES.values() if metric.get(field) is not None]
    for field in present[:1]:
        _validate_source(field, metric[field], f"{path}.{field}", faults, any_version=any_version)
    expected = _SOURCES.get(kind)
    if expected is None:
        faults.append(unsupported(f"{path}.type", kind, _METRIC_TYPES))
    elif expected not in present:
        faults.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        why = "must populate the given metric source only"
        faults += [forbidden(f"{path}.{field}", why) for field in present if field != expected]


def _validate_source(field: str, source: Raw, path: str, faults: Faults, *, any_version: bool) -> None:
    target = source.get("target") or {}
    if field == "object":
        described = source.get("describedObject") or {}
        _validate_reference(described, f"{path}.describedObject", faults)
        if not any_version:
            _validate_api_version(described, f"{path}.describedObject", faults, core=True)
    if field in ("resource", "containerResource"):
        _validate_resource_name(field, source, path, faults)
    else:
        name = (source.get("metric") or {}).get("name") or ""
        if not name:
            faults.append(required(f"{path}.metric.name", "must specify a metric name"))
        faults += [invalid(f"{path}.metric.name", name, why) for why in path_segment(name)]
    _validate_target(target, f"{path}.target", faults)
    has_value, has_average, has_share = (
        target.get(each) is not None for each in ("value", "averageValue", "averageUtilization")
    )
    match field:
        case "object" if not has_value and not has_average:
            why = "must set either a target value or averageValue"
            faults.append(required(f"{path}.target.averageValue", why))
        case "external" if has_value == has_average:
            if has_value:
                why = "may not set both a target value for metric and a per-pod target"
                faults.append(forbidden(f"{path}.target.value", why))
            else:
                why = "must set either a target value for metric or a per-pod target"
                faults.append(required(f"{path}.target.averageValue", why))
        case "pods" if not has_average:
            faults.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
        case "resource" | "containerResource" if has_share == has_average:
            if has_share:
                why = "may not set both a target raw value and a target utilization"
                faults.append(forbidden(f"{path}.target.averageValue", why))
            else:
                why = "must set either a target raw value or a target utilization"
                faults.append(required(f"{path}.target.averageUtilization", why))


def _validate_resource_name(field: str, source: Raw, path: str, faults: Faults) -> None:
    name = source.get("name") or ""
    if not name:
        faults.append(required(f"{path}.name", "must specify a resource name"))
    if field != "containerResource":
        return
    if name:
        faults += [invalid(f"{path}.name", name, why) for why in container_resource_faults(name)]
    container = source.get("container") or ""
    if not container:
        faults.append(required(f"{path}.container", "must specify a container"))
    else:
        faults += [invalid(f"{path}.container", container, why) for why in dns_label(container)]


def _validate_target(target: Raw, path: str, faults: Faults) -> None:
    kind = target.get("type") or ""
    if not kind:
        faults.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in _TARGET_TYPES:
        faults.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and nanos(amount) <= 0:
            faults.append(invalid(f"{path}.{field}", amount, "must be positive"))
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        faults.append(invalid(f"{path}.averageUtilization", percent, "must be greater than 0"))
