"""Defaults of kinds that kschedd only stores: webhooks, admission policies, endpoint slices, flow control.

The functions modify only the top level of their argument; nested parts are copied.
Source: Kubernetes v1.34, pkg/apis/{admissionregistration,discovery,flowcontrol,networking}/v1/defaults.go,
kube-aggregator/pkg/apis/apiregistration/v1/defaults.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Raw = dict[str, Any]

_HTTPS: Final = 443


def _with(raw: Raw, **defaults: Any) -> Raw:
    """Return a copy of `raw` with `defaults` for absent fields."""
    return {**raw, **{field: value for field, value in defaults.items() if field not in raw}}


def _nonzero(raw: Raw, **defaults: int) -> Raw:
    """Return a copy of `raw` with `defaults` for fields that are absent or 0."""
    return {**raw, **{field: value for field, value in defaults.items() if not raw.get(field)}}


def _rules(rules: list[Raw]) -> list[Raw]:
    return [_with(rule, scope="*") for rule in rules]


def _webhook(hook: Raw, **more: Any) -> Raw:
    new = _with(
        hook,
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
        **more,
    )
    if rules := new.get("rules"):
        new["rules"] = _rules(rules)
    config = new.get("clientConfig") or {}
    if service := config.get("service"):
        new["clientConfig"] = {**config, "service": _with(service, port=_HTTPS)}
    return new


def _validating_webhooks(raw: Raw) -> None:
    if hooks := raw.get("webhooks"):
        raw["webhooks"] = [_webhook(hook) for hook in hooks]


def _mutating_webhooks(raw: Raw) -> None:
    if hooks := raw.get("webhooks"):
        raw["webhooks"] = [_webhook(hook, reinvocationPolicy="Never") for hook in hooks]


def _match(resources: Raw) -> Raw:
    new = _with(resources, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for field in ("resourceRules", "excludeResourceRules"):
        if rules := new.get(field):
            new[field] = _rules(rules)
    return new


def _policy(raw: Raw) -> None:
    spec = _with(raw.get("spec") or {}, failurePolicy="Fail")
    if "matchConstraints" in spec:
        spec["matchConstraints"] = _match(spec["matchConstraints"])
    raw["spec"] = spec


def _policy_binding(raw: Raw) -> None:
    spec = dict(raw.get("spec") or {})
    if "matchResources" in spec:
        spec["matchResources"] = _match(spec["matchResources"])
    raw["spec"] = spec


def _endpoint_slice(raw: Raw) -> None:
    if ports := raw.get("ports"):
        raw["ports"] = [_with(port, name="", protocol="TCP") for port in ports]


def _ingress_class(raw: Raw) -> None:
    spec = raw.get("spec") or {}
    if "parameters" in spec:
        raw["spec"] = {**spec, "parameters": _with(spec["parameters"], scope="Cluster")}


def _flow_schema(raw: Raw) -> None:
    raw["spec"] = _nonzero(raw.get("spec") or {}, matchingPrecedence=1000)


def _priority_level(raw: Raw) -> None:
    spec = dict(raw.get("spec") or {})
    if "exempt" in spec:
        spec["exempt"] = _with(spec["exempt"], nominalConcurrencyShares=0, lendablePercent=0)
    if "limited" in spec:
        limited = _with(spec["limited"], nominalConcurrencyShares=30, lendablePercent=0)
        response = limited.get("limitResponse") or {}
        if "queuing" in response:
            queuing = _nonzero(response["queuing"], queues=64, handSize=8, queueLengthLimit=50)
            limited["limitResponse"] = {**response, "queuing": queuing}
        spec["limited"] = limited
    raw["spec"] = spec


def _api_service(raw: Raw) -> None:
    spec = raw.get("spec") or {}
    if "service" in spec:
        raw["spec"] = {**spec, "service": _with(spec["service"], port=_HTTPS)}


KEPT_DEFAULTS: Final[Mapping[str, Callable[[Raw], None]]] = {
    "ValidatingWebhookConfiguration": _validating_webhooks,
    "MutatingWebhookConfiguration": _mutating_webhooks,
    "ValidatingAdmissionPolicy": _policy,
    "ValidatingAdmissionPolicyBinding": _policy_binding,
    "EndpointSlice": _endpoint_slice,
    "IngressClass": _ingress_class,
    "FlowSchema": _flow_schema,
    "PriorityLevelConfiguration": _priority_level,
    "APIService": _api_service,
}
