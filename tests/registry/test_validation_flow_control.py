"""Tests of flow control objects with one missing or invalid field."""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate, validate_updated
from kschedd.registry.validation_update import validate_status_update
from tests.api.objects import Raw, named
from tests.registry.test_validation_kept_kinds import ABSENT, SUBDOMAIN, answer, changed

API = "flowcontrol.apiserver.k8s.io/v1"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
VERBS = '"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"'
SCHEMA = named(
    "FlowSchema",
    API,
    spec={
        "priorityLevelConfiguration": {"name": "workload-low"},
        "matchingPrecedence": 500,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [
            {
                "subjects": [
                    {"kind": "User", "user": {"name": "ann"}},
                    {"kind": "Group", "group": {"name": "staff"}},
                    {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "default"}},
                ],
                "resourceRules": [
                    {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]},
                    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True},
                ],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/", "/healthz", "/metrics/*"]}],
            }
        ],
    },
)
RULE, SUBJECTS = "spec.rules[0]", "spec.rules[0].subjects"
RESOURCES, URLS = f"{RULE}.resourceRules[0]", f"{RULE}.nonResourceRules[0]"
LEVEL = named(
    "PriorityLevelConfiguration",
    API,
    spec={
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 10,
            "lendablePercent": 50,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}},
        },
    },
)
LIMITED, QUEUING = "spec.limited", "spec.limited.limitResponse.queuing"
FAULTS: list[tuple[Raw, str, Any, list[str]]] = [
    (SCHEMA, "metadata.name", "a", []),
    (
        SCHEMA,
        "spec.matchingPrecedence",
        -1,
        ["spec.matchingPrecedence: Invalid value: -1: must be a positive value"],
    ),
    (
        SCHEMA,
        "spec.matchingPrecedence",
        10001,
        ["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
    ),
    (
        SCHEMA,
        "spec.matchingPrecedence",
        1,
        ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
    ),
    (SCHEMA, "spec.matchingPrecedence", ABSENT, []),
    (SCHEMA, "spec.distinguisherMethod", ABSENT, []),
    (
        SCHEMA,
        "spec.distinguisherMethod.type",
        "ByTeam",
        [
            'spec.distinguisherMethod.type: Unsupported value: {"Type":"ByTeam"}: supported values: '
            '"ByNamespace", "ByUser"'
        ],
    ),
    (
        SCHEMA,
        "spec.priorityLevelConfiguration",
        ABSENT,
        ["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
    ),
    (
        SCHEMA,
        "spec.priorityLevelConfiguration.name",
        "A",
        [f'spec.priorityLevelConfiguration.name: Invalid value: "A": {SUBDOMAIN}'],
    ),
    (SCHEMA, "spec.rules", [], []),
    (
        SCHEMA,
        RULE,
        {},
        [
            f"{RULE}.subjects: Required value: subjects must contain at least one value",
            f"{RULE}: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
        ],
    ),
    (
        SCHEMA,
        f"{SUBJECTS}[0].kind",
        "Robot",
        [
            f'{SUBJECTS}[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"',
        ],
    ),
    (
        SCHEMA,
        f"{SUBJECTS}[0]",
        {"kind": "User", "group": {"name": "a"}, "serviceAccount": {"name": "a", "namespace": "a"}},
        [
            f"{SUBJECTS}[0].user: Required value: user is required when subject kind is 'User'",
            f"{SUBJECTS}[0].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not "
            "'ServiceAccount'",
            f"{SUBJECTS}[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
        ],
    ),
    (SCHEMA, f"{SUBJECTS}[0].user.name", "", [f"{SUBJECTS}[0].user.name: Required value"]),
    (
        SCHEMA,
        f"{SUBJECTS}[2].serviceAccount",
        {"name": "A"},
        [
            f'{SUBJECTS}[2].serviceAccount.name: Invalid value: "A": {SUBDOMAIN}',
            f"{SUBJECTS}[2].serviceAccount.namespace: Required value: must specify namespace for service account",
        ],
    ),
    (SCHEMA, f"{RESOURCES}.verbs", [], [f"{RESOURCES}.verbs: Required value: verbs must contain at least one value"]),
    (
        SCHEMA,
        f"{RESOURCES}.verbs",
        ["get", "*"],
        [f"""{RESOURCES}.verbs: Invalid value: ["get","*"]: if '*' is present, must not specify other verbs"""],
    ),
    (
        SCHEMA,
        f"{RESOURCES}.verbs",
        ["get", "look"],
        [f'{RESOURCES}.verbs: Unsupported value: ["get","look"]: supported values: {VERBS}'],
    ),
    (
        SCHEMA,
        f"{RESOURCES}.apiGroups",
        [],
        [f"{RESOURCES}.apiGroups: Required value: resource rules must supply at least one api group"],
    ),
    (
        SCHEMA,
        f"{RESOURCES}.resources",
        ["*", "pods"],
        [
            f"{RESOURCES}.resources: Invalid value: "
            """["*","pods"]: if '*' is present, must not specify other resources"""
        ],
    ),
    (
        SCHEMA,
        f"{RESOURCES}.namespaces",
        ABSENT,
        [
            f"{RESOURCES}.namespaces: Required value: resource rules that are not cluster scoped must supply at least "
            "one namespace"
        ],
    ),
    (
        SCHEMA,
        f"{RESOURCES}.namespaces",
        ["default", "A"],
        [
            f"{RESOURCES}.namespaces[1]: Invalid value: \"A\": each member of this list must be '*' or a DNS-1123 "
            f"label; {LABEL}"
        ],
    ),
    (
        SCHEMA,
        f"{URLS}.nonResourceURLs",
        [],
        [f"{URLS}.nonResourceURLs: Required value: nonResourceURLs must contain at least one value"],
    ),
    (
        SCHEMA,
        f"{URLS}.nonResourceURLs",
        ["", "a", "/a b", "//", "/a*", "/*/*"],
        [
            f'{URLS}.nonResourceURLs[0]: Invalid value: "": must not be empty',
            f'{URLS}.nonResourceURLs[1]: Invalid value: "a": must start with slash',
            f'{URLS}.nonResourceURLs[2]: Invalid value: "/a b": must not contain white-space',
            f'{URLS}.nonResourceURLs[3]: Invalid value: "//": must not contain double slash',
            f'{URLS}.nonResourceURLs[4]: Invalid value: "/a*": wildcard can only do suffix matching',
            f'{URLS}.nonResourceURLs[5]: Invalid value: "/*/*": wildcard can only do suffix matching',
        ],
    ),
    (
        LEVEL,
        "spec",
        {"type": "Exempt"},
        ["spec.type: Invalid value: \"Exempt\": type must be 'Exempt' if and only if name is 'exempt'"],
    ),
    (
        LEVEL,
        "spec.type",
        "Free",
        ['spec.type: Unsupported value: "Free": supported values: "Exempt", "Limited"'],
    ),
    (LEVEL, LIMITED, ABSENT, [f"{LIMITED}: Required value: must not be empty when type is Limited"]),
    (LEVEL, "spec.exempt", {}, ["spec.exempt: Forbidden: must be nil if the type is Limited"]),
    (LEVEL, f"{LIMITED}.nominalConcurrencyShares", 0, []),
    (
        LEVEL,
        f"{LIMITED}.nominalConcurrencyShares",
        -1,
        [f"{LIMITED}.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer"],
    ),
    (
        LEVEL,
        f"{LIMITED}.lendablePercent",
        101,
        [f"{LIMITED}.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive"],
    ),
    (
        LEVEL,
        f"{LIMITED}.borrowingLimitPercent",
        -1,
        [f"{LIMITED}.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer"],
    ),
    (
        LEVEL,
        f"{LIMITED}.limitResponse",
        {},
        [f'{LIMITED}.limitResponse.type: Unsupported value: "": supported values: "Queue", "Reject"'],
    ),
    (
        LEVEL,
        QUEUING,
        ABSENT,
        [f"{QUEUING}: Required value: must not be empty if limited.limitResponse.type is Limited"],
    ),
    (
        LEVEL,
        f"{LIMITED}.limitResponse.type",
        "Reject",
        [f"{QUEUING}: Forbidden: must be nil if limited.limitResponse.type is not Limited"],
    ),
    (LEVEL, f"{QUEUING}.queueLengthLimit", -1, [f"{QUEUING}.queueLengthLimit: Invalid value: -1: must be positive"]),
    (
        LEVEL,
        f"{QUEUING}.queues",
        -1,
        [
            f"{QUEUING}.queues: Invalid value: -1: must be positive",
            f"{QUEUING}.handSize: Invalid value: 8: should not be greater than queues (-1)",
        ],
    ),
    (
        LEVEL,
        f"{QUEUING}.queues",
        10_000_001,
        [
            f"{QUEUING}.queues: Invalid value: 10000001: must not be greater than 10000000",
            f"{QUEUING}.handSize: Invalid value: 8: required entropy bits of deckSize 10000001 and handSize 8 should "
            "not be greater than 60",
        ],
    ),
    (LEVEL, f"{QUEUING}.handSize", 10, []),
    (
        LEVEL,
        f"{QUEUING}.handSize",
        11,
        [
            f"{QUEUING}.handSize: Invalid value: 11: required entropy bits of deckSize 64 and handSize 11 should not "
            "be greater than 60"
        ],
    ),
]


@pytest.mark.parametrize(("raw", "path", "value", "faults"), FAULTS)
def test_each_fault_is_told_in_the_words_of_the_server(raw: Raw, path: str, value: object, faults: list[str]) -> None:
    new = changed(raw, path, value) if value is not ABSENT or "." in path else raw
    assert answer(new) == faults


def test_what_is_whole_has_no_fault() -> None:
    assert answer(SCHEMA) == answer(LEVEL) == []


@pytest.mark.parametrize(
    ("kind", "name", "spec", "faults"),
    [
        ("PriorityLevelConfiguration", "exempt", {"type": "Exempt", "exempt": {"lendablePercent": 10}}, []),
        (
            "PriorityLevelConfiguration",
            "catch-all",
            {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}},
            [],
        ),
        (
            "PriorityLevelConfiguration",
            "catch-all",
            {"type": "Limited", "limited": {"nominalConcurrencyShares": 6, "limitResponse": {"type": "Reject"}}},
            [
                'spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":6,'
                '"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},'
                "\"Exempt\":null}: spec of 'catch-all' must equal the fixed value"
            ],
        ),
        (
            "FlowSchema",
            "exempt",
            {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1},
            [
                'spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"exempt"},"MatchingPrecedence":1,'
                '"DistinguisherMethod":null,"Rules":null}: spec of \'exempt\' must equal the fixed value'
            ],
        ),
    ],
)
def test_what_the_server_itself_needs_is_fixed(kind: str, name: str, spec: Raw, faults: list[str]) -> None:
    raw = named(kind, API, spec=spec)
    assert answer(changed(raw, "metadata.name", name)) == faults


def test_a_condition_is_there_once_and_has_a_type() -> None:
    stored = default_and_validate(LEVEL).raw
    new = {**stored, "status": {"conditions": [{"type": "A"}, {"type": "A"}, {}]}}
    assert [str(fault) for fault in validate_updated(new, [], stored)] == [
        'status.conditions[1].type: Duplicate value: "A"',
        "status.conditions[2].type: Required value",
    ]
    assert validate_status_update(stored, new) == validate_updated(new, [], stored)
