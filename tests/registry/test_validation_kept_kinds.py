"""Tests of kinds that the scheduler does not read, with one missing or invalid field."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kschedd.api.schemas.fields import FieldError, steps
from kschedd.registry.networking.validation import validate_ingress_class
from kschedd.registry.validation import default_and_validate, validate_updated
from kschedd.registry.validation_update import validate_status_update, validate_update
from tests.api.objects import Raw, named

ABSENT = object()
RANGE = "must be between 1 and 65535, inclusive"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    "regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
GROUP = "rbac.authorization.k8s.io"
EITHER = "either `defaultBackend` or `rules` must be specified"
SOURCE = "must populate information for the given metric source"


def changed(raw: Raw, path: str, value: object) -> Raw:
    """Return the object with another value at this path, or without the field."""
    new: Raw = json.loads(json.dumps(raw))  # a deep copy would share objects that occur twice
    *inner, last = steps(path)
    at: Any = new
    for step in inner:
        at = at[step]
    if value is ABSENT:
        del at[last]
    else:
        at[last] = value
    return new


def answer(raw: Raw) -> list[str]:
    return [str(fault) for fault in default_and_validate(raw).faults]


INGRESS = named(
    "Ingress",
    "networking.k8s.io/v1",
    spec={
        "ingressClassName": "nginx",
        "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
        "rules": [
            {
                "host": "a.example.com",
                "http": {
                    "paths": [
                        {
                            "path": "/",
                            "pathType": "Prefix",
                            "backend": {"service": {"name": "web", "port": {"name": "http"}}},
                        },
                        {
                            "path": "/b",
                            "pathType": "ImplementationSpecific",
                            "backend": {"resource": {"apiGroup": "b.io", "kind": "Bucket", "name": "b"}},
                        },
                    ]
                },
            },
            {"host": "*.example.com"},
        ],
        "tls": [{"hosts": ["a.example.com", "*.example.com"], "secretName": "cert"}],
    },
)
_PATHS = "spec.rules[0].http.paths"
INGRESS_FAULTS: list[tuple[str, object, list[str]]] = [
    ("spec", {}, [f"spec: Invalid value: null: {EITHER}"]),
    ("spec.ingressClassName", "N_", [f'spec.ingressClassName: Invalid value: "N_": {SUBDOMAIN}']),
    (
        "spec.defaultBackend",
        {},
        ['spec.defaultBackend: Invalid value: "": resource or service backend is required'],
    ),
    ("spec.defaultBackend.service.name", ABSENT, ["spec.defaultBackend.service.name: Required value"]),
    ("spec.defaultBackend.service.name", "1a", [f'spec.defaultBackend.service.name: Invalid value: "1a": {DNS1035}']),
    (
        "spec.defaultBackend.service.port",
        ABSENT,
        ["spec.defaultBackend: Required value: port name or number is required"],
    ),
    (
        "spec.defaultBackend.service.port.number",
        65536,
        [f"spec.defaultBackend.service.port.number: Invalid value: 65536: {RANGE}"],
    ),
    (
        "spec.defaultBackend.service.port.name",
        "http",
        ['spec.defaultBackend: Invalid value: "": cannot set both port name & port number'],
    ),
    (
        "spec.defaultBackend.resource",
        {"kind": "A", "name": "a"},
        ['spec.defaultBackend: Invalid value: "": cannot set both resource and service backends'],
    ),
    ("spec.rules[0].host", "A", [f'spec.rules[0].host: Invalid value: "A": {SUBDOMAIN}']),
    (
        "spec.rules[0].host",
        "10.0.0.1",
        ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'],
    ),
    ("spec.rules[1].host", "a.*", [f'spec.rules[1].host: Invalid value: "a.*": {WILDCARD}']),
    (_PATHS, [], [f"{_PATHS}: Required value"]),
    (f"{_PATHS}[0].pathType", ABSENT, [f"{_PATHS}[0].pathType: Required value: pathType must be specified"]),
    (
        f"{_PATHS}[0].pathType",
        "Regex",
        [
            f'{_PATHS}[0].pathType: Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", '
            '"Prefix"'
        ],
    ),
    (f"{_PATHS}[0].path", ABSENT, [f'{_PATHS}[0].path: Invalid value: "": must be an absolute path']),
    (f"{_PATHS}[0].path", "a", [f'{_PATHS}[0].path: Invalid value: "a": must be an absolute path']),
    (f"{_PATHS}[0].path", "/a//b", [f"{_PATHS}[0].path: Invalid value: \"/a//b\": must not contain '//'"]),
    (f"{_PATHS}[0].path", "/a/..", [f"{_PATHS}[0].path: Invalid value: \"/a/..\": cannot end with '/..'"]),
    (f"{_PATHS}[1].path", "b", [f'{_PATHS}[1].path: Invalid value: "b": must be an absolute path']),
    (f"{_PATHS}[1].path", ABSENT, []),
    (f"{_PATHS}[1].path", "/a//b", []),
    (
        f"{_PATHS}[0].backend.service.port.name",
        "a--b",
        [
            f'{_PATHS}[0].backend.service.port.name: Invalid value: "a--b": must not contain consecutive hyphens',
        ],
    ),
    (f"{_PATHS}[1].backend.resource.kind", ABSENT, [f"{_PATHS}[1].backend.resource.kind: Required value"]),
    (f"{_PATHS}[1].backend.resource.name", ABSENT, [f"{_PATHS}[1].backend.resource.name: Required value"]),
    (
        f"{_PATHS}[1].backend.resource.name",
        "a/b",
        [f"{_PATHS}[1].backend.resource.name: Invalid value: \"a/b\": may not contain '/'"],
    ),
    (
        f"{_PATHS}[1].backend.resource.apiGroup",
        "B",
        [f'{_PATHS}[1].backend.resource.apiGroup: Invalid value: "B": {SUBDOMAIN}'],
    ),
    ("spec.tls[0].hosts[0]", "A", [f'spec.tls[0].hosts[0]: Invalid value: "A": {SUBDOMAIN}']),
    ("spec.tls[0].hosts[1]", "*", [f'spec.tls[0].hosts[1]: Invalid value: "*": {WILDCARD}']),
    ("spec.tls[0].secretName", "S", [f'spec.tls[0].secretName: Invalid value: "S": {SUBDOMAIN}']),
    (
        "metadata.annotations",
        {"kubernetes.io/ingress.class": "other"},
        [
            'annotations.kubernetes.io/ingress.class: Invalid value: "other": must match `ingressClassName` when both '
            "are specified"
        ],
    ),
]

POLICY = named(
    "NetworkPolicy",
    "networking.k8s.io/v1",
    spec={
        "podSelector": {"matchLabels": {"app": "web"}},
        "ingress": [
            {
                "ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}, {"port": "http"}, {}],
                "from": [
                    {"podSelector": {}},
                    {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "db"}}},
                    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
                ],
            },
            {},
        ],
        "egress": [{"to": [{"ipBlock": {"cidr": "fd00::/8"}}], "ports": [{"port": 53, "protocol": "UDP"}]}],
        "policyTypes": ["Ingress", "Egress"],
    },
)
_FROM = "spec.ingress[0].from"
_PORTS = "spec.ingress[0].ports"
POLICY_FAULTS: list[tuple[str, object, list[str]]] = [
    ("spec.podSelector", ABSENT, []),
    (
        "spec.podSelector",
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        [
            "spec.podSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or "
            "'NotIn'"
        ],
    ),
    ("spec.policyTypes", ABSENT, []),
    (
        "spec.policyTypes[0]",
        "Both",
        ['spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"'],
    ),
    (
        "spec.policyTypes",
        ["Ingress", "Egress", "Ingress"],
        ['spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes'],
    ),
    (
        f"{_PORTS}[0].protocol",
        "ICMP",
        [f'{_PORTS}[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"'],
    ),
    (f"{_PORTS}[0].port", 0, [f"{_PORTS}[0].port: Invalid value: 0: {RANGE}"]),
    (
        f"{_PORTS}[0].endPort",
        79,
        [f"{_PORTS}[0].endPort: Invalid value: 80: must be greater than or equal to `port`"],
    ),
    (f"{_PORTS}[0].endPort", 70000, [f"{_PORTS}[0].endPort: Invalid value: 70000: {RANGE}"]),
    (
        f"{_PORTS}[0].port",
        ABSENT,
        [f"{_PORTS}[0].endPort: Invalid value: 90: may not be specified when `port` is not specified"],
    ),
    (
        f"{_PORTS}[0].port",
        "http",
        [f"{_PORTS}[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric"],
    ),
    (
        f"{_PORTS}[1].port",
        "-http",
        [f'{_PORTS}[1].port: Invalid value: "-http": must not begin or end with a hyphen'],
    ),
    (f"{_FROM}[0]", {}, [f"{_FROM}[0]: Required value: must specify a peer"]),
    (
        f"{_FROM}[2].podSelector",
        {},
        [f"{_FROM}[2]: Forbidden: may not specify both ipBlock and another peer"],
    ),
    (f"{_FROM}[2].ipBlock.cidr", ABSENT, [f"{_FROM}[2].ipBlock.cidr: Required value"]),
    (f"{_FROM}[2].ipBlock.cidr", "10.0.0.0", [f'{_FROM}[2].ipBlock.cidr: Invalid value: "10.0.0.0": {CIDR}']),
    (
        f"{_FROM}[2].ipBlock.except[0]",
        "10.0.0.0/8",
        [f'{_FROM}[2].ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`'],
    ),
    (
        f"{_FROM}[2].ipBlock.except[0]",
        "11.0.0.0/16",
        [f'{_FROM}[2].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`'],
    ),
    (f"{_FROM}[2].ipBlock.except[0]", "x", [f'{_FROM}[2].ipBlock.except[0]: Invalid value: "x": {CIDR}']),
    (
        "spec.egress[0].to[0].ipBlock.except",
        ["10.0.0.0/8"],
        ['spec.egress[0].to[0].ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`'],
    ),
]

_UTILIZATION = {"type": "Utilization", "averageUtilization": 60}
AUTOSCALER = named(
    "HorizontalPodAutoscaler",
    "autoscaling/v2",
    spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 5,
        "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {**_UTILIZATION}}},
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "app", "target": {**_UTILIZATION}},
            },
            {
                "type": "Pods",
                "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}},
            },
            {
                "type": "Object",
                "object": {
                    "describedObject": {"kind": "Ingress", "name": "i"},
                    "metric": {"name": "q"},
                    "target": {"type": "Value", "value": "1"},
                },
            },
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}},
        ],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 60,
                "selectPolicy": "Min",
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
            }
        },
    },
)
_UP, _METRICS = "spec.behavior.scaleUp", "spec.metrics"
_METRIC_TYPES = '"ContainerResource", "External", "Object", "Pods", "Resource"'
AUTOSCALER_FAULTS: list[tuple[str, object, list[str]]] = [
    ("spec.minReplicas", ABSENT, []),
    (
        "spec.minReplicas",
        0,
        [
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
        ],
    ),
    (
        "spec.maxReplicas",
        ABSENT,
        [
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ],
    ),
    ("spec.maxReplicas", 1, ["spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`"]),
    (
        "spec.scaleTargetRef",
        ABSENT,
        [
            "spec.scaleTargetRef.kind: Required value",
            "spec.scaleTargetRef.name: Required value",
            'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
        ],
    ),
    ("spec.scaleTargetRef.kind", ABSENT, ["spec.scaleTargetRef.kind: Required value"]),
    (
        "spec.scaleTargetRef.apiVersion",
        "v1",
        ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'],
    ),
    (
        "spec.scaleTargetRef.apiVersion",
        "a/b/c",
        ['spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
    ),
    ("spec.scaleTargetRef.name", "..", ["spec.scaleTargetRef.name: Invalid value: \"..\": may not be '..'"]),
    ("spec.metrics", ABSENT, []),
    (
        f"{_METRICS}[0].type",
        ABSENT,
        [
            f"{_METRICS}[0].type: Required value: must specify a metric source type",
            *[f'{_METRICS}[0].type: Unsupported value: "": supported values: {_METRIC_TYPES}'] * 2,
        ],
    ),
    (f"{_METRICS}[0].resource", ABSENT, [f"{_METRICS}[0].resource: Required value: {SOURCE}"]),
    (
        f"{_METRICS}[0].type",
        "Pods",
        [
            f"{_METRICS}[0].pods: Required value: {SOURCE}",
        ],
    ),
    (
        f"{_METRICS}[0].pods",
        {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}},
        [
            f"{_METRICS}[0].pods: Forbidden: must populate the given metric source only",
        ],
    ),
    (
        f"{_METRICS}[0].resource.name",
        ABSENT,
        [
            f"{_METRICS}[0].resource.name: Required value: must specify a resource name",
        ],
    ),
    (
        f"{_METRICS}[0].resource.target.type",
        ABSENT,
        [
            f"{_METRICS}[0].resource.target.type: Required value: must specify a metric target type",
            f'{_METRICS}[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or '
            "AverageValue",
        ],
    ),
    (
        f"{_METRICS}[0].resource.target.averageUtilization",
        ABSENT,
        [
            f"{_METRICS}[0].resource.target.averageUtilization: Required value: must set either a target raw value or "
            "a target utilization",
        ],
    ),
    (
        f"{_METRICS}[0].resource.target.averageUtilization",
        0,
        [
            f"{_METRICS}[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
        ],
    ),
    (
        f"{_METRICS}[0].resource.target.averageValue",
        "1",
        [
            f"{_METRICS}[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target "
            "utilization",
        ],
    ),
    (
        f"{_METRICS}[1].containerResource.container",
        ABSENT,
        [
            f"{_METRICS}[1].containerResource.container: Required value: must specify a container",
        ],
    ),
    (
        f"{_METRICS}[1].containerResource.name",
        "disk",
        [
            f'{_METRICS}[1].containerResource.name: Invalid value: "disk": must be a standard resource type or fully '
            "qualified",
            f'{_METRICS}[1].containerResource.name: Invalid value: "disk": must be a standard resource for containers',
        ],
    ),
    (
        f"{_METRICS}[2].pods.metric.name",
        ABSENT,
        [
            f"{_METRICS}[2].pods.metric.name: Required value: must specify a metric name",
        ],
    ),
    (
        f"{_METRICS}[2].pods.metric.name",
        "a/b",
        [
            f"{_METRICS}[2].pods.metric.name: Invalid value: \"a/b\": may not contain '/'",
        ],
    ),
    (
        f"{_METRICS}[2].pods.target.averageValue",
        ABSENT,
        [
            f"{_METRICS}[2].pods.target.averageValue: Required value: must specify a positive target averageValue",
        ],
    ),
    (
        f"{_METRICS}[2].pods.target.averageValue",
        "-1",
        [
            f'{_METRICS}[2].pods.target.averageValue: Invalid value: "-1": must be positive',
        ],
    ),
    (
        f"{_METRICS}[3].object.describedObject.name",
        ABSENT,
        [
            f"{_METRICS}[3].object.describedObject.name: Required value",
        ],
    ),
    (
        f"{_METRICS}[3].object.target.value",
        ABSENT,
        [
            f"{_METRICS}[3].object.target.averageValue: Required value: must set either a target value or averageValue",
        ],
    ),
    (
        f"{_METRICS}[4].external.target.value",
        ABSENT,
        [
            f"{_METRICS}[4].external.target.averageValue: Required value: must set either a target value for metric or "
            "a per-pod target",
        ],
    ),
    (
        f"{_METRICS}[4].external.target.averageValue",
        "1",
        [
            f"{_METRICS}[4].external.target.value: Forbidden: may not set both a target value for metric and a per-pod "
            "target",
        ],
    ),
    (f"{_UP}.policies", ABSENT, []),
    (
        f"{_UP}.selectPolicy",
        "Most",
        [
            f'{_UP}.selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"',
        ],
    ),
    (
        f"{_UP}.stabilizationWindowSeconds",
        -1,
        [
            f"{_UP}.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero",
        ],
    ),
    (
        f"{_UP}.stabilizationWindowSeconds",
        3601,
        [
            f"{_UP}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
        ],
    ),
    (
        f"{_UP}.policies[0].type",
        "Nodes",
        [
            f'{_UP}.policies[0].type: Unsupported value: "Nodes": supported values: "Percent", "Pods"',
        ],
    ),
    (f"{_UP}.policies[0].value", 0, [f"{_UP}.policies[0].value: Invalid value: 0: must be greater than zero"]),
    (
        f"{_UP}.policies[0].periodSeconds",
        ABSENT,
        [
            f"{_UP}.policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
        ],
    ),
    (
        f"{_UP}.policies[0].periodSeconds",
        1801,
        [
            f"{_UP}.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
        ],
    ),
]

RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE = named("Role", f"{GROUP}/v1", rules=[RULE, {**RULE, "resourceNames": ["a"]}])
CLUSTER_ROLE = named(
    "ClusterRole",
    f"{GROUP}/v1",
    rules=[RULE, {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}],
    aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
)
BINDING = named(
    "RoleBinding",
    f"{GROUP}/v1",
    roleRef={"kind": "Role", "name": "reader"},
    subjects=[
        {"kind": "ServiceAccount", "name": "default"},
        {"kind": "User", "name": "jane"},
        {"kind": "Group", "name": "dev", "apiGroup": GROUP},
    ],
)
CLUSTER_BINDING = named(
    "ClusterRoleBinding",
    f"{GROUP}/v1",
    roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": "admin"},
    subjects=[{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
)
BOTH_RULES = "rules cannot apply to both regular resources and non-resource URLs"
ROLE_FAULTS: list[tuple[str, object, list[str]]] = [
    ("rules", ABSENT, []),
    ("rules[0].verbs", ABSENT, ["rules[0].verbs: Required value: verbs must contain at least one value"]),
    (
        "rules[0].apiGroups",
        ABSENT,
        [
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        ],
    ),
    (
        "rules[0].resources",
        ABSENT,
        [
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ],
    ),
    (
        "rules[0]",
        {"nonResourceURLs": ["/a"], "verbs": ["get"]},
        [
            'rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs',
        ],
    ),
]
CLUSTER_ROLE_FAULTS: list[tuple[str, object, list[str]]] = [
    ("rules[1].verbs", ABSENT, ["rules[1].verbs: Required value: verbs must contain at least one value"]),
    ("rules[1].resources", ["pods"], [f'rules[1].nonResourceURLs: Invalid value: ["/healthz"]: {BOTH_RULES}']),
    (
        "aggregationRule",
        {},
        [
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
            "aggregationRule is non-nil",
        ],
    ),
    (
        "aggregationRule.clusterRoleSelectors[0]",
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
        [
            'aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Near": not a valid '
            "selector operator",
            "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
        ],
    ),
]
BINDING_FAULTS: list[tuple[str, object, list[str]]] = [
    ("subjects", ABSENT, []),
    ("roleRef.apiGroup", "apps", [f'roleRef.apiGroup: Unsupported value: "apps": supported values: "{GROUP}"']),
    ("roleRef.kind", ABSENT, ['roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole"']),
    ("roleRef.kind", "Pod", ['roleRef.kind: Unsupported value: "Pod": supported values: "Role", "ClusterRole"']),
    ("roleRef.name", ABSENT, ["roleRef.name: Required value"]),
    ("roleRef.name", "a%b", ["roleRef.name: Invalid value: \"a%b\": may not contain '%'"]),
    ("subjects[0].name", ABSENT, ["subjects[0].name: Required value"]),
    ("subjects[0].name", "A", [f'subjects[0].name: Invalid value: "A": {SUBDOMAIN}']),
    ("subjects[0].apiGroup", GROUP, [f'subjects[0].apiGroup: Unsupported value: "{GROUP}": supported values: ""']),
    (
        "subjects[0].kind",
        "Robot",
        [
            'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
        ],
    ),
    (
        "subjects[1].name",
        ABSENT,
        ["subjects[1].name: Required value"],
    ),
    (
        "subjects[2].apiGroup",
        "apps",
        [
            f'subjects[2].apiGroup: Unsupported value: "apps": supported values: "{GROUP}"',
        ],
    ),
]
CLUSTER_BINDING_FAULTS: list[tuple[str, object, list[str]]] = [
    ("roleRef.kind", "Role", ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"']),
    ("subjects[0].namespace", ABSENT, ["subjects[0].namespace: Required value"]),
]

ENDPOINTS = named(
    "Endpoints",
    subsets=[
        {
            "addresses": [{"ip": "10.0.0.1", "hostname": "a", "nodeName": "n"}],
            "notReadyAddresses": [{"ip": "fd00::1"}],
            "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}],
        }
    ],
)
_ADDRESS = "subsets[0].addresses[0].ip"
ENDPOINTS_FAULTS: list[tuple[str, object, list[str]]] = [
    ("subsets[0]", {}, ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]),
    (
        _ADDRESS,
        "a",
        [
            f'{_ADDRESS}: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
            f'{_ADDRESS}: Invalid value: "a": must be a valid IP address',
        ],
    ),
    (_ADDRESS, "0.0.0.0", [f'{_ADDRESS}: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)']),
    (
        _ADDRESS,
        "127.0.0.1",
        [
            f'{_ADDRESS}: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        ],
    ),
    (
        _ADDRESS,
        "169.254.1.1",
        [
            f'{_ADDRESS}: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
        ],
    ),
    (
        _ADDRESS,
        "224.0.0.5",
        [
            f'{_ADDRESS}: Invalid value: "224.0.0.5": may not be in the link-local multicast range '
            "(224.0.0.0/24, ff02::/10)",
        ],
    ),
    (_ADDRESS, "224.0.1.5", []),
    (
        "subsets[0].addresses[0].nodeName",
        "N",
        [
            f'subsets[0].addresses[0].nodeName: Invalid value: "N": {SUBDOMAIN}',
        ],
    ),
    (
        "subsets[0].addresses[0].hostname",
        "a.b",
        [
            'subsets[0].addresses[0].hostname: Invalid value: "a.b": must not contain dots',
        ],
    ),
    ("subsets[0].ports[0].name", ABSENT, ["subsets[0].ports[0].name: Required value"]),
    ("subsets[0].ports[0].port", ABSENT, [f"subsets[0].ports[0].port: Invalid value: 0: {RANGE}"]),
    (
        "subsets[0].ports[0].protocol",
        "ICMP",
        [
            'subsets[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        ],
    ),
    ("subsets[0].ports", [{"port": 80}], []),
]

_ALL: Mapping[str, tuple[Raw, list[tuple[str, object, list[str]]]]] = {
    "Ingress": (INGRESS, INGRESS_FAULTS),
    "NetworkPolicy": (POLICY, POLICY_FAULTS),
    "HorizontalPodAutoscaler": (AUTOSCALER, AUTOSCALER_FAULTS),
    "Role": (ROLE, ROLE_FAULTS),
    "ClusterRole": (CLUSTER_ROLE, CLUSTER_ROLE_FAULTS),
    "RoleBinding": (BINDING, BINDING_FAULTS),
    "ClusterRoleBinding": (CLUSTER_BINDING, CLUSTER_BINDING_FAULTS),
    "Endpoints": (ENDPOINTS, ENDPOINTS_FAULTS),
}


@pytest.mark.parametrize("kind", list(_ALL))
def test_a_complete_object_has_no_fault(kind: str) -> None:
    assert answer(_ALL[kind][0]) == []


@pytest.mark.parametrize(
    ("raw", "path", "value", "faults"),
    [
        pytest.param(raw, path, value, faults, id=f"{kind}-{path}-{'absent' if value is ABSENT else value}")
        for kind, (raw, cases) in _ALL.items()
        for path, value, faults in cases
    ],
)
def test_each_field_by_itself(raw: Raw, path: str, value: object, faults: list[str]) -> None:
    assert answer(changed(raw, path, value)) == faults


INGRESS_CLASS: Raw = {
    "metadata": {"name": "nginx"},
    "spec": {
        "controller": "k8s.io/ingress-nginx",
        "parameters": {"apiGroup": "a.io", "kind": "P", "name": "p", "scope": "Namespace", "namespace": "default"},
    },
}
_PARAMETERS = "spec.parameters"


@pytest.mark.parametrize(
    ("path", "value", "faults"),
    [
        ("metadata.name", "nginx", []),
        ("spec.parameters", ABSENT, []),
        ("spec.controller", ABSENT, ["spec.controller: Required value"]),
        (
            "spec.controller",
            "nginx",
            ['spec.controller: Invalid value: "nginx": must be a domain-prefixed path (such as "acme.io/foo")'],
        ),
        ("spec.controller", "A/b", [f'spec.controller: Invalid value: "A": {SUBDOMAIN}']),
        (
            "spec.controller",
            "a.io/b c",
            [
                'spec.controller: Invalid value: "b c": Invalid path (regex used for validation is '
                "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
            ],
        ),
        ("spec.controller", "a.io/" + "b" * 246, ["spec.controller: Too long: may not be more than 250 bytes"]),
        (f"{_PARAMETERS}.kind", ABSENT, [f"{_PARAMETERS}.kind: Required value"]),
        (f"{_PARAMETERS}.name", "a/b", [f"{_PARAMETERS}.name: Invalid value: \"a/b\": may not contain '/'"]),
        (f"{_PARAMETERS}.scope", ABSENT, [f"{_PARAMETERS}.scope: Required value"]),
        (
            f"{_PARAMETERS}.scope",
            "Zone",
            [f'{_PARAMETERS}.scope: Unsupported value: "Zone": supported values: "Cluster", "Namespace"'],
        ),
        (
            f"{_PARAMETERS}.scope",
            "Cluster",
            [f"{_PARAMETERS}.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
        ),
        (
            f"{_PARAMETERS}.namespace",
            ABSENT,
            [f"{_PARAMETERS}.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
        ),
        (f"{_PARAMETERS}.namespace", "a.b", [f'{_PARAMETERS}.namespace: Invalid value: "a.b": must not contain dots']),
    ],
)
def test_each_field_of_an_ingress_class(path: str, value: object, faults: list[str]) -> None:
    found: list[FieldError] = []
    validate_ingress_class(changed(INGRESS_CLASS, path, value), found)
    assert [str(fault) for fault in found] == faults


# -- updates and statuses ---------------------------------------------------------------------------------------------


def test_a_binding_keeps_its_role() -> None:
    old = default_and_validate(BINDING).raw
    for path, value in (("roleRef.name", "writer"), ("roleRef.kind", "ClusterRole")):
        new = changed(old, path, value)
        shown = f'{{"APIGroup":"{GROUP}","Kind":"{new["roleRef"]["kind"]}","Name":"{new["roleRef"]["name"]}"}}'
        [fault] = validate_update(old, new)
        assert str(fault) == f"roleRef: Invalid value: {shown}: cannot change roleRef"
    assert validate_update(old, changed(old, "subjects", ABSENT)) == []


@pytest.mark.parametrize(("before", "allowed"), [(0, True), (1, False)])
def test_an_autoscaler_that_scaled_to_zero_may_go_on_doing_so(before: int, allowed: bool) -> None:
    stored = default_and_validate(AUTOSCALER).raw
    old, new = (changed(stored, "spec.minReplicas", count) for count in (before, 0))
    faults = [str(fault) for fault in validate_updated(new, [], old)]
    assert faults == ([] if allowed else ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"])


def test_scaling_to_zero_needs_a_metric_that_does_not_come_from_the_pods() -> None:
    stored = default_and_validate(changed(AUTOSCALER, "spec.metrics", AUTOSCALER["spec"]["metrics"][:2])).raw
    old = changed(stored, "spec.minReplicas", 0)
    [fault] = validate_updated(old, [], old)
    assert str(fault) == (
        "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero "
        "replicas"
    )


def test_the_class_annotation_of_an_ingress_is_compared_only_when_it_is_created() -> None:
    stored = default_and_validate(INGRESS).raw
    new = changed(stored, "metadata.annotations", {"kubernetes.io/ingress.class": "other"})
    assert validate_updated(new, [], stored) == []


@pytest.mark.parametrize(
    ("raw", "status", "faults"),
    [
        (
            INGRESS,
            {"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "hostname": "a.example.com"}, {"ip": "a"}]}},
            [
                'status.loadBalancer.ingress[1].ip: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or '
                "2001:db8::ffff)"
            ],
        ),
        (
            INGRESS,
            {"loadBalancer": {"ingress": [{"hostname": "10.0.0.1"}]}},
            [
                'status.loadBalancer.ingress[0].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP '
                "address"
            ],
        ),
        (
            AUTOSCALER,
            {"currentReplicas": -1, "desiredReplicas": -2},
            [
                "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
                "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0",
            ],
        ),
    ],
)
def test_statuses(raw: Raw, status: Raw, faults: list[str]) -> None:
    assert [str(fault) for fault in validate_status_update(raw, {**raw, "status": status})] == faults


# -- defaults ---------------------------------------------------------------------------------------------------------


def test_groups_of_bindings_are_filled_in() -> None:
    done = default_and_validate(BINDING).raw
    assert done["roleRef"]["apiGroup"] == GROUP
    assert [subject.get("apiGroup") for subject in done["subjects"]] == [None, GROUP, GROUP]


@pytest.mark.parametrize(
    ("spec", "types"),
    [({}, ["Ingress"]), ({"egress": [{}]}, ["Ingress", "Egress"]), ({"policyTypes": ["Egress"]}, ["Egress"])],
)
def test_types_of_a_policy_are_filled_in(spec: Raw, types: list[str]) -> None:
    raw = named("NetworkPolicy", "networking.k8s.io/v1", spec={"podSelector": {}, **spec})
    assert default_and_validate(raw).raw["spec"]["policyTypes"] == types


def test_protocols_of_ports_are_filled_in() -> None:
    policy = default_and_validate(POLICY).raw
    assert [port["protocol"] for port in policy["spec"]["ingress"][0]["ports"]] == ["TCP"] * 3
    endpoints = default_and_validate(ENDPOINTS).raw
    assert [port["protocol"] for port in endpoints["subsets"][0]["ports"]] == ["TCP", "UDP"]


def test_an_autoscaler_gets_its_metric_and_its_rules() -> None:
    target = {"kind": "Deployment", "name": "web"}
    raw = named("HorizontalPodAutoscaler", "autoscaling/v2", spec={"scaleTargetRef": target, "maxReplicas": 3})
    spec = default_and_validate(raw).raw["spec"]
    assert spec["minReplicas"] == 1
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    assert spec["metrics"] == [{"type": "Resource", "resource": cpu}]
    assert "behavior" not in spec
    behavior = default_and_validate(changed(raw, "spec.behavior", {"scaleDown": {"selectPolicy": "Min"}})).raw
    assert behavior["spec"]["behavior"] == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ],
        },
        "scaleDown": {"selectPolicy": "Min", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
    }


def test_an_autoscaler_of_v1_is_validated_by_the_metric_that_it_stands_for() -> None:
    target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    raw = named("HorizontalPodAutoscaler", "autoscaling/v1", spec=spec)
    assert default_and_validate(raw).raw["spec"] == {**spec, "minReplicas": 1}
    assert answer(raw) == []
    assert answer(changed(raw, "spec.targetCPUUtilizationPercentage", 0)) == [
        "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"
    ]
