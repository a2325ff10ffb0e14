"""Tests of APIServices, VolumeAttributesClasses, ServiceCIDRs, IPAddresses and policy bindings with one fault each.

The expected texts are those of kube-apiserver 1.34.9.
"""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate, validate_updated
from kschedd.registry.validation_update import validate_status_update, validate_update
from tests.api.objects import Raw
from tests.registry.test_validation_kept_kinds import ABSENT, CIDR, DNS1035, SUBDOMAIN, answer, changed

QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIXED = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
TWICE = "(repeating the same validation failure information in the API response and headers serves no purpose)"
NAMED = 'must be `spec.version+"."+spec.group`'
FAMILIES = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
FIXED = "field is immutable"


def made(api_version: str, kind: str, name: str, **fields: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


SERVICE = made(
    "apiregistration.k8s.io/v1",
    "APIService",
    "v1.ex.com",
    spec={
        "group": "ex.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"name": "s", "namespace": "default", "port": 443},
    },
)
CLASS = made("storage.k8s.io/v1", "VolumeAttributesClass", "gold", driverName="d.example.com", parameters={"a": "b"})
RANGE = made("networking.k8s.io/v1", "ServiceCIDR", "a", spec={"cidrs": ["10.5.0.0/24", "fd00:5::/112"]})
ADDRESS = made(
    "networking.k8s.io/v1",
    "IPAddress",
    "10.0.8.8",
    spec={"parentRef": {"group": "g.com", "resource": "services", "namespace": "default", "name": "x"}},
)
RULE = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
BINDING = made(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding",
    "a",
    spec={
        "policyName": "p1",
        "paramRef": {"name": "n", "namespace": "default", "parameterNotFoundAction": "Deny"},
        "matchResources": {"resourceRules": [RULE], "excludeResourceRules": [RULE]},
        "validationActions": ["Deny", "Audit"],
    },
)
FAULTS: list[tuple[Raw, str, Any, list[str]]] = [
    (SERVICE, "metadata.name", "v1.other", [f'metadata.name: Invalid value: "v1.other": {NAMED}: "v1.ex.com"']),
    (SERVICE, "metadata.name", "a/b", ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]),
    (SERVICE, "spec.group", ABSENT, [f'metadata.name: Invalid value: "v1.ex.com": {NAMED}: "v1."']),
    (
        SERVICE,
        "spec.group",
        "Ex",
        [
            f'metadata.name: Invalid value: "v1.ex.com": {NAMED}: "v1.Ex"',
            f'spec.group: Invalid value: "Ex": {SUBDOMAIN}',
        ],
    ),
    (
        SERVICE,
        "spec.version",
        ABSENT,
        [
            f'metadata.name: Invalid value: "v1.ex.com": {NAMED}: ".ex.com"',
            f'spec.version: Invalid value: "": {DNS1035}',
        ],
    ),
    (
        SERVICE,
        "spec.version",
        "1",
        [
            f'metadata.name: Invalid value: "v1.ex.com": {NAMED}: "1.ex.com"',
            f'spec.version: Invalid value: "1": {DNS1035}',
        ],
    ),
    (
        SERVICE,
        "spec.groupPriorityMinimum",
        ABSENT,
        ["spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000"],
    ),
    (
        SERVICE,
        "spec.groupPriorityMinimum",
        20001,
        ["spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000"],
    ),
    (SERVICE, "spec.groupPriorityMinimum", 20000, []),
    (
        SERVICE,
        "spec.versionPriority",
        -1,
        ["spec.versionPriority: Invalid value: -1: must be positive and less than 1000"],
    ),
    (
        SERVICE,
        "spec.versionPriority",
        1001,
        ["spec.versionPriority: Invalid value: 1001: must be positive and less than 1000"],
    ),
    (
        SERVICE,
        "spec.caBundle",
        "YQ==",
        ["spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"],
    ),
    (
        SERVICE,
        "spec.service",
        ABSENT,
        ["spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify"],
    ),
    (SERVICE, "spec.service.namespace", ABSENT, ["spec.service.namespace: Required value"]),
    (SERVICE, "spec.service.name", "", ["spec.service.name: Required value"]),
    (
        SERVICE,
        "spec.service.port",
        0,
        ["spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"],
    ),
    (
        SERVICE,
        "spec.service.port",
        65536,
        ["spec.service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive"],
    ),
    (SERVICE, "spec.service.port", ABSENT, []),
    (CLASS, "driverName", ABSENT, ["driverName: Required value"]),
    (
        CLASS,
        "driverName",
        "a/b/c",
        [f'driverName: Invalid value: "a/b/c": a qualified name {QUALIFIED} {PREFIXED}'],
    ),
    (CLASS, "driverName", "Ex.com/d!", [f'driverName: Invalid value: "ex.com/d!": name part {QUALIFIED}']),
    (CLASS, "driverName", "EBS.csi", []),
    (CLASS, "parameters", ABSENT, ["parameters: Required value: must contain at least one key/value pair"]),
    (CLASS, "parameters", {}, ["parameters: Required value: must contain at least one key/value pair"]),
    (CLASS, "parameters", {"": "x"}, ['parameters: Invalid value: "": field can not be empty.']),
    (CLASS, "parameters", {"a": "x" * 262_144}, ["parameters: Too long: may not be more than 262144 bytes"]),
    (
        CLASS,
        "parameters",
        {f"k{number}": "" for number in range(513)},
        ["parameters: Too long: may not be more than 512 bytes"],
    ),
    (RANGE, "spec.cidrs", ABSENT, ["spec.cidrs: Required value: at least one CIDR required"]),
    (RANGE, "spec.cidrs", [], ["spec.cidrs: Required value: at least one CIDR required"]),
    (
        RANGE,
        "spec.cidrs",
        ["10.0.0.0/24", "fd00::/112", "10.1.0.0/24"],
        [
            'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","fd00::/112","10.1.0.0/24"]}: '
            "may only hold up to 2 values"
        ],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["10.0.0.0/24", "10.1.0.0/24"],
        [f'spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: {FAMILIES}'],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["fd00::/112", "fd01::/112"],
        [f'spec.cidrs: Invalid value: ["fd00::/112","fd01::/112"]: {FAMILIES}'],
    ),
    (RANGE, "spec.cidrs", ["10.0.0.0"], [f'spec.cidrs[0]: Invalid value: "10.0.0.0": {CIDR}']),
    (
        RANGE,
        "spec.cidrs",
        ["x", "y"],
        [f'spec.cidrs[0]: Invalid value: "x": {CIDR}', f'spec.cidrs[1]: Invalid value: "y": {CIDR}'],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["10.0.0.1/24"],
        ['spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length'],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["10.00.0.0/24"],
        ['spec.cidrs[0]: Invalid value: "10.00.0.0/24": must not have leading 0s in IP or prefix length'],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["10.0.0.0/024"],
        ['spec.cidrs[0]: Invalid value: "10.0.0.0/024": must not have leading 0s in IP or prefix length'],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["::ffff:10.0.0.0/120"],
        ['spec.cidrs[0]: Invalid value: "::ffff:10.0.0.0/120": must not have an IPv4-mapped IPv6 address'],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["FD00::/112"],
        ['spec.cidrs[0]: Invalid value: "FD00::/112": must be in canonical form ("fd00::/112")'],
    ),
    (
        RANGE,
        "spec.cidrs",
        ["fd00:0::/112"],
        ['spec.cidrs[0]: Invalid value: "fd00:0::/112": must be in canonical form ("fd00::/112")'],
    ),
    (RANGE, "spec.cidrs", ["::/0"], []),
    (
        ADDRESS,
        "metadata.name",
        "10.0.0.300",
        ['metadata.name: Invalid value: "10.0.0.300": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ),
    (ADDRESS, "metadata.name", "010.0.0.1", ['metadata.name: Invalid value: "010.0.0.1": must not have leading 0s']),
    (
        ADDRESS,
        "metadata.name",
        "FD00::1",
        ['metadata.name: Invalid value: "FD00::1": must be in canonical form ("fd00::1")'],
    ),
    (
        ADDRESS,
        "metadata.name",
        "fd00:0::1",
        ['metadata.name: Invalid value: "fd00:0::1": must be in canonical form ("fd00::1")'],
    ),
    (
        ADDRESS,
        "metadata.name",
        "::ffff:10.0.0.1",
        ['metadata.name: Invalid value: "::ffff:10.0.0.1": must not be an IPv4-mapped IPv6 address'],
    ),
    (ADDRESS, "metadata.name", "fd00::1", []),
    (ADDRESS, "spec.parentRef", ABSENT, ["spec.parentRef: Required value"]),
    (ADDRESS, "spec.parentRef.group", ABSENT, []),
    (ADDRESS, "spec.parentRef.group", "Ex", [f'spec.parentRef.group: Invalid value: "Ex": {SUBDOMAIN}']),
    (ADDRESS, "spec.parentRef.resource", ABSENT, ["spec.parentRef.resource: Required value"]),
    (
        ADDRESS,
        "spec.parentRef.resource",
        "a/b",
        ["spec.parentRef.resource: Invalid value: \"a/b\": may not contain '/'"],
    ),
    (ADDRESS, "spec.parentRef.namespace", ABSENT, []),
    (ADDRESS, "spec.parentRef.namespace", "..", ["spec.parentRef.namespace: Invalid value: \"..\": may not be '..'"]),
    (ADDRESS, "spec.parentRef.name", "", ["spec.parentRef.name: Required value"]),
    (ADDRESS, "spec.parentRef.name", "a%b", ["spec.parentRef.name: Invalid value: \"a%b\": may not contain '%'"]),
    (BINDING, "spec.policyName", ABSENT, ["spec.policyName: Required value"]),
    (BINDING, "spec.policyName", "P", [f'spec.policyName: Invalid value: "P": {SUBDOMAIN}']),
    (BINDING, "spec.paramRef", ABSENT, []),
    (
        BINDING,
        "spec.paramRef.name",
        ABSENT,
        ["spec.paramRef: Required value: one of name or selector must be specified"],
    ),
    (BINDING, "spec.paramRef.name", "a/b", ["spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'"]),
    (
        BINDING,
        "spec.paramRef.selector",
        {},
        [
            "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
            "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
        ],
    ),
    (
        BINDING,
        "spec.paramRef.parameterNotFoundAction",
        ABSENT,
        ["spec.paramRef.parameterNotFoundAction: Required value"],
    ),
    (
        BINDING,
        "spec.paramRef.parameterNotFoundAction",
        "Ask",
        ['spec.paramRef.parameterNotFoundAction: Unsupported value: "Ask": supported values: "Deny", "Allow"'],
    ),
    (BINDING, "spec.matchResources", ABSENT, []),
    (
        BINDING,
        "spec.matchResources.matchPolicy",
        "Some",
        ['spec.matchResources.matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"'],
    ),
    (
        BINDING,
        "spec.matchResources.resourceRules[0].operations",
        ABSENT,
        ["spec.matchResources.resourceRules[0].operations: Required value"],
    ),
    (
        BINDING,
        "spec.matchResources.excludeResourceRules[0].resources",
        [],
        ["spec.matchResources.excludeResourceRules[0].resources: Required value"],
    ),
    (
        BINDING,
        "spec.validationActions",
        ABSENT,
        ["spec.validationActions: Required value: at least one validation action is required"],
    ),
    (
        BINDING,
        "spec.validationActions",
        [],
        ["spec.validationActions: Required value: at least one validation action is required"],
    ),
    (BINDING, "spec.validationActions", ["Deny", "Deny"], ['spec.validationActions[1]: Duplicate value: "Deny"']),
    (
        BINDING,
        "spec.validationActions",
        ["Warn", "Deny"],
        ['spec.validationActions: Invalid value: ["Warn","Deny"]: must not contain both Deny and Warn ' + TWICE],
    ),
    (
        BINDING,
        "spec.validationActions[1]",
        "Report",
        ['spec.validationActions[1]: Unsupported value: "Report": supported values: "Audit", "Deny", "Warn"'],
    ),
]


@pytest.mark.parametrize(("raw", "path", "value", "faults"), FAULTS)
def test_each_fault_is_reported_in_the_words_of_the_server(
    raw: Raw, path: str, value: object, faults: list[str]
) -> None:
    assert answer(raw) == []
    assert answer(changed(raw, path, value)) == faults


def updated(raw: Raw, path: str, value: object) -> list[str]:
    old, new = default_and_validate(raw).raw, default_and_validate(changed(raw, path, value)).raw
    return [str(fault) for fault in (*validate_updated(new, [], old), *validate_update(old, new))]


@pytest.mark.parametrize(
    ("raw", "path", "value", "faults"),
    [
        (CLASS, "driverName", "e.example.com", ["driverName: Forbidden: updates to driverName are forbidden."]),
        (CLASS, "parameters.a", "c", ["parameters: Forbidden: updates to parameters are forbidden."]),
        (CLASS, "metadata.labels", {"a": "b"}, []),
        (RANGE, "spec.cidrs[1]", "fd00:6::/112", [f'spec.cidrs[1]: Invalid value: "fd00:6::/112": {FIXED}']),
        (RANGE, "spec.cidrs", ["10.5.0.0/24"], [f'spec.cidrs: Invalid value: ["10.5.0.0/24"]: {FIXED}']),
        (RANGE, "spec.cidrs", [], [f"spec.cidrs: Invalid value: []: {FIXED}"]),
        (RANGE, "spec.cidrs", ABSENT, [f"spec.cidrs: Invalid value: null: {FIXED}"]),
        (changed(RANGE, "spec.cidrs", ["10.5.0.0/24"]), "spec.cidrs", ["10.5.0.0/24", "fd00::/112"], []),
        (
            changed(RANGE, "spec.cidrs", ["10.5.0.0/24"]),
            "spec.cidrs",
            ["10.6.0.0/24", "10.7.0.0/24"],
            [
                f'spec.cidrs[0]: Invalid value: "10.6.0.0/24": {FIXED}',
                f'spec.cidrs: Invalid value: ["10.6.0.0/24","10.7.0.0/24"]: {FAMILIES}',
            ],
        ),
        (
            ADDRESS,
            "spec.parentRef.group",
            ABSENT,
            [
                'spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"default","Name":"x"}: '
                + FIXED
            ],
        ),
        (
            ADDRESS,
            "spec.parentRef",
            ABSENT,
            ["spec.parentRef: Required value", f"spec.parentRef: Invalid value: null: {FIXED}"],
        ),
    ],
)
def test_what_an_update_may_not_change(raw: Raw, path: str, value: object, faults: list[str]) -> None:
    assert updated(raw, path, value) == faults


def test_conditions_of_an_api_service_are_true_false_or_unknown() -> None:
    new = {**SERVICE, "status": {"conditions": [{"type": "Available", "status": status} for status in ("True", "x")]}}
    assert [str(fault) for fault in validate_status_update(SERVICE, new)] == [
        'status.conditions[1].status: Unsupported value: "x": supported values: "False", "True", "Unknown"'
    ]
