"""Defaults of HorizontalPodAutoscalers, NetworkPolicies, role bindings and Endpoints.

Source: Kubernetes v1.34, pkg/apis/autoscaling/v1/defaults.go, autoscaling/v2, networking/v1, rbac/v1, core/v1. Takes
decoded objects. The functions receive decoded objects. The functions modify the given object, but copy nested parts
before changing them.
"""

from typing import Any, Final

from kschedd.registry.policy.rbac import RBAC_GROUP

Raw = dict[str, Any]

_CPU_METRIC: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_SCALE_UP: Final = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def default_autoscaler(autoscaler: Raw) -> None:
    """Set the minimum number of replicas, and for autoscaling/v2 also the metric and the scaling rules."""
    spec = {"minReplicas": 1, **(autoscaler.get("spec") or {})}
    if autoscaler.get("apiVersion") != "autoscaling/v1":
        if not spec.get("metrics"):
            spec["metrics"] = [_CPU_METRIC]
        if (behavior := spec.get("behavior")) is not None:
            spec["behavior"] = {
                "scaleUp": {**_SCALE_UP, **(behavior.get("scaleUp") or {})},
                "scaleDown": {**_SCALE_DOWN, **(behavior.get("scaleDown") or {})},
            }
    autoscaler["spec"] = spec


def default_network_policy(policy: Raw) -> None:
    """Set the policy's types, and the protocol of each port."""
    spec = dict(policy.get("spec") or {})
    for direction in ("ingress", "egress"):
        if direction in spec:
            spec[direction] = [_with_protocols(rule) for rule in spec[direction]]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    policy["spec"] = spec


def _with_protocols(rule: Raw) -> Raw:
    if not rule.get("ports"):
        return rule
    return {**rule, "ports": [{"protocol": "TCP", **port} for port in rule["ports"]]}


def default_role_binding(binding: Raw) -> None:
    """Set the API groups of the role and of the subjects."""
    role = binding.get("roleRef") or {}
    if not role.get("apiGroup"):
        binding["roleRef"] = {**role, "apiGroup": RBAC_GROUP}
    if binding.get("subjects"):
        binding["subjects"] = [_with_group(subject) for subject in binding["subjects"]]


def _with_group(subject: Raw) -> Raw:
    if subject.get("apiGroup") or subject.get("kind") not in ("User", "Group"):
        return subject
    return {**subject, "apiGroup": RBAC_GROUP}


def default_endpoints(endpoints: Raw) -> None:
    """Set the protocol of each port."""
    if endpoints.get("subsets"):
        endpoints["subsets"] = [_with_protocols(subset) for subset in endpoints["subsets"]]
