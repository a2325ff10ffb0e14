"""Server-side defaults of a container's probes, lifecycle hooks and environment variables.

The scheduler does not read these fields. However, writing an object back with its server-side defaults must not be a
change.
Source: Kubernetes v1.34, pkg/apis/core/v1/defaults.go (SetDefaults_Probe, SetDefaults_HTTPGetAction,
SetDefaults_ObjectFieldSelector); the encoding of core/v1 types omits a variable's empty value.
"""

from collections.abc import Mapping
from typing import Any, Final

Raw = dict[str, Any]

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_details(container: Raw) -> None:
    """Set the defaults of probes, hooks and environment.

    The function modifies `container`.
    """
    for field in _PROBES:
        if (probe := container.get(field)) is not None:
            container[field] = _filled(_action(probe), _PROBE)
    if lifecycle := container.get("lifecycle"):
        container["lifecycle"] = {name: _action(hook) if _map(hook) else hook for name, hook in lifecycle.items()}
    if variables := container.get("env"):
        container["env"] = [_variable(variable) for variable in variables]


def default_field_sources(items: list[Raw]) -> list[Raw]:
    """Return downwardAPI volume items with their defaults: fieldRef apiVersion and resourceFieldRef divisor."""
    return [_source(item) for item in items]


def _map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _filled(raw: Raw, defaults: Mapping[str, Any]) -> Raw:
    missing = {field: value for field, value in defaults.items() if not raw.get(field)}
    return {**raw, **missing} if missing else raw


def _action(handler: Raw) -> Raw:
    """Return a probe or lifecycle hook with the defaults of its httpGet or grpc action."""
    if (http := handler.get("httpGet")) is not None:
        return {**handler, "httpGet": _filled(http, {"path": "/", "scheme": "HTTP"})}
    grpc = handler.get("grpc")
    return handler if grpc is None or "service" in grpc else {**handler, "grpc": {**grpc, "service": ""}}


def _variable(variable: Raw) -> Raw:
    if variable.get("value") == "":
        variable = {name: value for name, value in variable.items() if name != "value"}
    source = variable.get("valueFrom")
    return {**variable, "valueFrom": _source(source)} if source else variable


def _source(source: Raw) -> Raw:
    if (field := source.get("fieldRef")) is not None:
        return {**source, "fieldRef": _filled(field, {"apiVersion": "v1"})}
    if (resource := source.get("resourceFieldRef")) is not None:
        return {**source, "resourceFieldRef": _filled(resource, {"divisor": "0"})}
    return source
