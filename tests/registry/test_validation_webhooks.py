"""Tests of webhook configurations and EndpointSlices with one missing or invalid field."""

from collections.abc import Callable
from typing import Any

import pytest

from kschedd.api.schemas.fields import FieldError
from kschedd.registry.networking.endpoints import validate_endpoint_slice
from kschedd.registry.policy.webhooks import validate_updated_webhooks, validate_webhooks
from tests.api.objects import Raw
from tests.registry.test_validation_kept_kinds import ABSENT, RANGE, SUBDOMAIN, changed

Validate = Callable[[Raw, list[FieldError]], None]
FORM = "; desired format: https://host[/path]"

RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "pods/status"]}
HOOK: Raw = {
    "name": "a.example.com",
    "admissionReviewVersions": ["v1", "v1beta1"],
    "sideEffects": "None",
    "failurePolicy": "Fail",
    "matchPolicy": "Exact",
    "reinvocationPolicy": "Never",
    "timeoutSeconds": 10,
    "rules": [{**RULE, "scope": "*"}],
    "namespaceSelector": {"matchLabels": {"a": "b"}},
    "objectSelector": {},
    "clientConfig": {"service": {"name": "s", "namespace": "default", "port": 443, "path": "/a/b"}},
    "matchConditions": [{"name": "a.b/c", "expression": "true"}],
}
HOOKS: Raw = {"metadata": {"name": "w"}, "webhooks": [HOOK, {**HOOK, "name": "b.example.com"}]}
_HOOK = "webhooks[0]"
_RULE, _SERVICE = f"{_HOOK}.rules[0]", f"{_HOOK}.clientConfig.service"

HOOK_FAULTS: list[tuple[str, object, list[str]]] = [
    ("webhooks", ABSENT, []),
    (f"{_HOOK}.name", ABSENT, [f"{_HOOK}.name: Required value"]),
    (f"{_HOOK}.name", "A", [f'{_HOOK}.name: Invalid value: "A": {SUBDOMAIN}']),
    (
        f"{_HOOK}.name",
        "example.com",
        [
            f'{_HOOK}.name: Invalid value: "example.com": should be a domain with at least three segments separated by '
            "dots"
        ],
    ),
    ("webhooks[1].name", "a.example.com", ['webhooks[1].name: Duplicate value: "a.example.com"']),
    (
        f"{_HOOK}.admissionReviewVersions",
        ABSENT,
        [f"{_HOOK}.admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
    ),
    (
        f"{_HOOK}.admissionReviewVersions",
        ["v2"],
        [
            f'{_HOOK}.admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
        ],
    ),
    (
        f"{_HOOK}.admissionReviewVersions",
        ["v1", "v1"],
        [f'{_HOOK}.admissionReviewVersions[1]: Invalid value: "v1": duplicate version'],
    ),
    (
        f"{_HOOK}.sideEffects",
        ABSENT,
        [f"{_HOOK}.sideEffects: Required value: must specify one of None, NoneOnDryRun"],
    ),
    (
        f"{_HOOK}.sideEffects",
        "Some",
        [f'{_HOOK}.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
    ),
    (f"{_HOOK}.failurePolicy", ABSENT, []),
    (
        f"{_HOOK}.failurePolicy",
        "Retry",
        [f'{_HOOK}.failurePolicy: Unsupported value: "Retry": supported values: "Fail", "Ignore"'],
    ),
    (
        f"{_HOOK}.matchPolicy",
        "Any",
        [f'{_HOOK}.matchPolicy: Unsupported value: "Any": supported values: "Equivalent", "Exact"'],
    ),
    (
        f"{_HOOK}.reinvocationPolicy",
        "Always",
        [f'{_HOOK}.reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"'],
    ),
    (
        f"{_HOOK}.timeoutSeconds",
        31,
        [f"{_HOOK}.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
    ),
    (
        f"{_HOOK}.timeoutSeconds",
        0,
        [f"{_HOOK}.timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"],
    ),
    (
        f"{_HOOK}.namespaceSelector",
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
        [
            f'{_HOOK}.namespaceSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector '
            "operator"
        ],
    ),
    (f"{_RULE}.operations", ABSENT, [f"{_RULE}.operations: Required value"]),
    (
        f"{_RULE}.operations",
        ["*", "CREATE"],
        [f'{_RULE}.operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations'],
    ),
    (
        f"{_RULE}.operations[0]",
        "GET",
        [
            f'{_RULE}.operations[0]: Unsupported value: "GET": supported values: "*", "CONNECT", "CREATE", "DELETE", '
            '"UPDATE"'
        ],
    ),
    (f"{_RULE}.apiGroups", ABSENT, [f"{_RULE}.apiGroups: Required value"]),
    (
        f"{_RULE}.apiGroups",
        ["*", ""],
        [f'{_RULE}.apiGroups: Invalid value: ["*",""]: if \'*\' is present, must not specify other API groups'],
    ),
    (f"{_RULE}.apiVersions", ABSENT, [f"{_RULE}.apiVersions: Required value"]),
    (f"{_RULE}.apiVersions[0]", "", [f"{_RULE}.apiVersions[0]: Required value"]),
    (f"{_RULE}.resources", ABSENT, [f"{_RULE}.resources: Required value"]),
    (f"{_RULE}.resources[0]", "", [f"{_RULE}.resources[0]: Required value"]),
    (f"{_RULE}.resources", ["*", "pods/log"], []),
    (
        f"{_RULE}.resources",
        ["*", "pods"],
        [
            f'{_RULE}.resources: Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources '
            "without subresources"
        ],
    ),
    (
        f"{_RULE}.resources",
        ["*/*", "pods"],
        [f'{_RULE}.resources: Invalid value: ["*/*","pods"]: if \'*/*\' is present, must not specify other resources'],
    ),
    (
        f"{_RULE}.resources",
        ["pods/*", "pods/log"],
        [
            f"{_RULE}.resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify pods/log",
        ],
    ),
    (
        f"{_RULE}.resources",
        ["*/scale", "pods/scale"],
        [
            f"{_RULE}.resources[1]: Invalid value: \"pods/scale\": if '*/scale' is present, must not specify "
            "pods/scale",
        ],
    ),
    (
        f"{_RULE}.scope",
        "All",
        [f'{_RULE}.scope: Unsupported value: "All": supported values: "*", "Cluster", "Namespaced"'],
    ),
    (
        f"{_HOOK}.clientConfig",
        ABSENT,
        [f"{_HOOK}.clientConfig: Required value: exactly one of url or service is required"],
    ),
    (
        f"{_HOOK}.clientConfig.url",
        "https://a",
        [f"{_HOOK}.clientConfig: Required value: exactly one of url or service is required"],
    ),
    (f"{_HOOK}.clientConfig", {"url": "https://a.example.com/b"}, []),
    (
        f"{_HOOK}.clientConfig",
        {"url": "http://u@a/b?c=d#e"},
        [
            f"{_HOOK}.clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}",
            f'{_HOOK}.clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
            f'{_HOOK}.clientConfig.url: Invalid value: "e": fragments are not permitted in the URL',
            f'{_HOOK}.clientConfig.url: Invalid value: "c=d": query parameters are not permitted in the URL',
        ],
    ),
    (
        f"{_HOOK}.clientConfig",
        {"url": "https:///b"},
        [f'{_HOOK}.clientConfig.url: Invalid value: "": host must be specified{FORM}'],
    ),
    (f"{_SERVICE}.name", ABSENT, [f"{_SERVICE}.namespace: Required value"]),
    (f"{_SERVICE}.namespace", ABSENT, [f"{_SERVICE}.name: Required value"]),
    (f"{_SERVICE}.port", ABSENT, []),
    (f"{_SERVICE}.port", 0, [f"{_SERVICE}.port: Invalid value: 0: port is not valid: {RANGE}"]),
    (f"{_SERVICE}.path", "/", []),
    (f"{_SERVICE}.path", "//", [f'{_SERVICE}.path: Invalid value: "//": segment[0] may not be empty']),
    (f"{_SERVICE}.path", "/a//b/", [f'{_SERVICE}.path: Invalid value: "/a//b/": segment[1] may not be empty']),
    (f"{_SERVICE}.path", "xa", [f"{_SERVICE}.path: Invalid value: \"xa\": must start with a '/'"]),
    (f"{_SERVICE}.path", "/A", [f'{_SERVICE}.path: Invalid value: "/A": segment[0]: {SUBDOMAIN}']),
    (f"{_HOOK}.matchConditions[0].name", ABSENT, [f"{_HOOK}.matchConditions[0].name: Required value"]),
    (f"{_HOOK}.matchConditions[0].expression", " ", [f"{_HOOK}.matchConditions[0].expression: Required value"]),
    (
        f"{_HOOK}.matchConditions",
        [{"name": "a", "expression": "true"}] * 2,
        [f'{_HOOK}.matchConditions[1].name: Duplicate value: "a"'],
    ),
]

SLICE: Raw = {
    "metadata": {"name": "s"},
    "addressType": "IPv4",
    "endpoints": [
        {
            "addresses": ["10.0.0.1"],
            "nodeName": "n",
            "hostname": "h",
            "hints": {"forZones": [{"name": "a"}, {"name": "b"}]},
            "deprecatedTopology": {"kubernetes.io/hostname": "n"},
        }
    ],
    "ports": [{"name": "", "port": 80, "protocol": "TCP"}, {"name": "dns", "protocol": "UDP", "appProtocol": "a.io/b"}],
}
_ENDPOINT = "endpoints[0]"
_ADDRESS = f"{_ENDPOINT}.addresses[0]"
SLICE_FAULTS: list[tuple[str, object, list[str]]] = [
    ("addressType", ABSENT, ["addressType: Required value"]),
    ("addressType", "IP", ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"']),
    ("addressType", "IPv6", [f'{_ENDPOINT}.addresses: Invalid value: "10.0.0.1": must be an IPv6 address']),
    ("endpoints", [], []),
    ("endpoints", [{"addresses": ["10.0.0.1"]}] * 1001, ["endpoints: Too many: 1001: must have at most 1000 items"]),
    (f"{_ENDPOINT}.addresses", [], [f"{_ENDPOINT}.addresses: Required value: must contain at least 1 address"]),
    (
        f"{_ENDPOINT}.addresses",
        ["10.0.0.1"] * 101,
        [f"{_ENDPOINT}.addresses: Too many: 101: must have at most 100 items"],
    ),
    (
        _ADDRESS,
        "a",
        [
            f'{_ADDRESS}: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ],
    ),
    (
        _ADDRESS,
        "127.0.0.1",
        [f'{_ADDRESS}: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'],
    ),
    (f"{_ENDPOINT}.nodeName", "N", [f'{_ENDPOINT}.nodeName: Invalid value: "N": {SUBDOMAIN}']),
    (f"{_ENDPOINT}.hostname", "a.b", [f'{_ENDPOINT}.hostname: Invalid value: "a.b": must not contain dots']),
    (
        f"{_ENDPOINT}.hints.forZones[1].name",
        "a",
        [f'{_ENDPOINT}.hints.forZones[1].name: Duplicate value: "a"'],
    ),
    (
        f"{_ENDPOINT}.hints.forZones",
        [{"name": f"z{number}"} for number in range(9)],
        [f"{_ENDPOINT}.hints.forZones: Too many: 9: must have at most 8 items"],
    ),
    (f"{_ENDPOINT}.deprecatedTopology", {"a b": "c d"}, []),
    ("ports[1].name", "", ['ports[1].name: Duplicate value: ""']),
    ("ports[1].name", "a.b", ['ports[1].name: Invalid value: "a.b": must not contain dots']),
    ("ports[0].protocol", ABSENT, ["ports[0].protocol: Required value"]),
    (
        "ports[0].protocol",
        "ICMP",
        ['ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"'],
    ),
    ("ports[0].port", ABSENT, []),
]
FQDN = {**SLICE, "addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com."]}]}
FQDN_FAULTS: list[tuple[str, object, list[str]]] = [
    (_ADDRESS, "", [f"{_ADDRESS}: Required value"]),
    (_ADDRESS, "A", [f'{_ADDRESS}: Invalid value: "A": {SUBDOMAIN}']),
    (
        _ADDRESS,
        "a",
        [f'{_ADDRESS}: Invalid value: "a": should be a domain with at least two segments separated by dots'],
    ),
    (
        _ADDRESS,
        f"a.{'b' * 64}",
        [f'{_ADDRESS}: Invalid value: "{"b" * 64}": must be no more than 63 characters'],
    ),
]


@pytest.mark.parametrize(
    ("validate", "raw", "path", "value", "faults"),
    [
        pytest.param(validate, raw, path, value, faults, id=f"{kind}-{path}-{number}")
        for kind, validate, raw, cases in (
            ("webhook", validate_webhooks, HOOKS, HOOK_FAULTS),
            ("slice", validate_endpoint_slice, SLICE, SLICE_FAULTS),
            ("names", validate_endpoint_slice, FQDN, FQDN_FAULTS),
        )
        for number, (path, value, faults) in enumerate([("metadata.name", "x", []), *cases])
    ],
)
def test_each_field_by_itself(validate: Validate, raw: Raw, path: str, value: object, faults: list[str]) -> None:
    found: list[FieldError] = []
    validate(changed(raw, path, value), found)
    assert [str(fault) for fault in found] == faults


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(f"{_HOOK}.sideEffects", "Unknown", id="side-effects"),
        pytest.param(f"{_HOOK}.admissionReviewVersions", ["v2"], id="versions"),
        pytest.param("webhooks[1].name", "a.example.com", id="names"),
    ],
)
def test_what_was_allowed_once_may_stay(path: str, value: Any) -> None:
    of_creation: list[FieldError] = []
    of_update: list[FieldError] = []
    raw = changed(HOOKS, path, value)
    validate_webhooks(raw, of_creation)
    validate_updated_webhooks(raw, raw, of_update)
    assert len(of_creation) == 1
    assert of_update == []
    validate_updated_webhooks(raw, HOOKS, of_update)
    assert of_update == of_creation


def test_a_value_beyond_every_rule_is_no_side_effect() -> None:
    old, found = changed(HOOKS, f"{_HOOK}.sideEffects", "Some"), list[FieldError]()
    validate_updated_webhooks(changed(HOOKS, f"{_HOOK}.sideEffects", "Many"), old, found)
    [fault] = found
    assert str(fault) == (
        f'{_HOOK}.sideEffects: Unsupported value: "Many": supported values: "None", "NoneOnDryRun", "Some", "Unknown"'
    )
