"""Tests of ValidatingAdmissionPolicies with one missing or invalid field."""

import pytest

from kschedd.api.schemas.fields import FieldError
from kschedd.registry.policy.admission_policies import validate_policy
from tests.api.objects import Raw
from tests.registry.test_validation_kept_kinds import ABSENT, DNS1035, SUBDOMAIN, changed

RULE = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
POLICY: Raw = {
    "metadata": {"name": "p"},
    "spec": {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Limit"},
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [{**RULE, "resourceNames": ["a", "b"]}],
            "excludeResourceRules": [RULE],
        },
        "matchConditions": [{"name": "a", "expression": "true"}],
        "variables": [{"name": "v", "expression": "1"}],
        "validations": [{"expression": "true", "message": "no", "messageExpression": "'no'", "reason": "Invalid"}],
    },
}
_MATCH, _PARAM, _VALIDATION = "spec.matchConstraints", "spec.paramKind", "spec.validations[0]"
NEITHER = "Required value: validations or auditAnnotations must contain at least one item"


@pytest.mark.parametrize(
    ("path", "value", "faults"),
    [
        ("metadata.name", "x", []),
        ("spec.failurePolicy", ABSENT, ["spec.failurePolicy: Required value"]),
        (
            "spec.failurePolicy",
            "Try",
            ['spec.failurePolicy: Unsupported value: "Try": supported values: "Fail", "Ignore"'],
        ),
        ("spec.paramKind", ABSENT, []),
        (f"{_PARAM}.apiVersion", ABSENT, [f"{_PARAM}.apiVersion: Required value"]),
        (f"{_PARAM}.apiVersion", "v1", []),
        (
            f"{_PARAM}.apiVersion",
            "a/b/c",
            [f'{_PARAM}.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (f"{_PARAM}.apiVersion", "A/v1", [f'{_PARAM}.apiVersion: Invalid value: "A": {SUBDOMAIN}']),
        (f"{_PARAM}.apiVersion", "a/", [f'{_PARAM}.apiVersion: Invalid value: "a/": version must be specified']),
        (f"{_PARAM}.apiVersion", "a/1", [f'{_PARAM}.apiVersion: Invalid value: "1": {DNS1035}']),
        (f"{_PARAM}.kind", ABSENT, [f"{_PARAM}.kind: Required value"]),
        (
            f"{_PARAM}.kind",
            "1A",
            [
                f'{_PARAM}.kind: Invalid value: "1A": may have mixed case, but should otherwise match: {DNS1035}',
            ],
        ),
        (_MATCH, ABSENT, [f"{_MATCH}: Required value"]),
        (f"{_MATCH}.resourceRules", ABSENT, [f"{_MATCH}.resourceRules: Required value"]),
        (f"{_MATCH}.matchPolicy", ABSENT, [f"{_MATCH}.matchPolicy: Required value"]),
        (
            f"{_MATCH}.matchPolicy",
            "Any",
            [f'{_MATCH}.matchPolicy: Unsupported value: "Any": supported values: "Equivalent", "Exact"'],
        ),
        (f"{_MATCH}.namespaceSelector", ABSENT, [f"{_MATCH}.namespaceSelector: Required value"]),
        (f"{_MATCH}.objectSelector", ABSENT, [f"{_MATCH}.objectSelector: Required value"]),
        (
            f"{_MATCH}.resourceRules[0].resourceNames[1]",
            "a",
            [f'{_MATCH}.resourceRules[0].resourceNames[1]: Duplicate value: "a"'],
        ),
        (
            f"{_MATCH}.resourceRules[0].resourceNames[0]",
            "a/b",
            [f"{_MATCH}.resourceRules[0].resourceNames[0]: Invalid value: \"a/b\": may not contain '/'"],
        ),
        (
            f"{_MATCH}.excludeResourceRules[0].operations",
            ABSENT,
            [f"{_MATCH}.excludeResourceRules[0].operations: Required value"],
        ),
        ("spec.matchConditions[0].name", ABSENT, ["spec.matchConditions[0].name: Required value"]),
        ("spec.variables[0].name", " ", ["spec.variables[0].name: Required value: name is not specified"]),
        (
            "spec.variables[0].expression",
            ABSENT,
            ["spec.variables[0].expression: Required value: expression is not specified"],
        ),
        ("spec.validations", ABSENT, [f"spec.validations: {NEITHER}", f"spec.auditAnnotations: {NEITHER}"]),
        (
            f"{_VALIDATION}.expression",
            " ",
            [f"{_VALIDATION}.expression: Required value: expression is not specified"],
        ),
        (
            f"{_VALIDATION}.message",
            " ",
            [f'{_VALIDATION}.message: Invalid value: " ": message must be non-empty if specified'],
        ),
        (
            f"{_VALIDATION}.message",
            "a\nb",
            [f'{_VALIDATION}.message: Invalid value: "a\\nb": message must not contain line breaks'],
        ),
        (
            f"{_VALIDATION}.messageExpression",
            " ",
            [f'{_VALIDATION}.messageExpression: Invalid value: " ": must be non-empty if specified'],
        ),
        (
            f"{_VALIDATION}.reason",
            "No",
            [
                f'{_VALIDATION}.reason: Unsupported value: "No": supported values: "Forbidden", "Invalid", '
                '"RequestEntityTooLarge"'
            ],
        ),
    ],
)
def test_each_field_by_itself(path: str, value: object, faults: list[str]) -> None:
    found: list[FieldError] = []
    validate_policy(changed(POLICY, path, value), found)
    assert [str(fault) for fault in found] == faults
