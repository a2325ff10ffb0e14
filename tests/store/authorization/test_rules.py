"""Tests of rules: what they allow and cover. The facts come from kube-apiserver 1.37."""

from typing import Any

import pytest

from kschedd.access.requests import AccessRequest
from kschedd.access.users import User
from kschedd.store.authorization.rules import missing_rules, rule_allows

ANN = User("ann", ())
PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log", "*/scale"]}
NAMED = {**PODS, "resourceNames": ["a"]}
PATHS = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api/*"]}


@pytest.mark.parametrize(
    ("rule", "request_", "allowed"),
    [
        pytest.param(PODS, AccessRequest(ANN, "get", "", "pods"), True, id="verb-group-and-resource"),
        pytest.param(PODS, AccessRequest(ANN, "delete", "", "pods"), False, id="another-verb"),
        pytest.param(PODS, AccessRequest(ANN, "get", "apps", "pods"), False, id="another-group"),
        pytest.param(PODS, AccessRequest(ANN, "get", "", "nodes"), False, id="another-resource"),
        pytest.param(PODS, AccessRequest(ANN, "get", "", "pods", "log"), True, id="a-subresource"),
        pytest.param(PODS, AccessRequest(ANN, "get", "", "pods", "exec"), False, id="another-subresource"),
        pytest.param(PODS, AccessRequest(ANN, "get", "", "things", "scale"), True, id="a-subresource-of-all"),
        pytest.param(PODS, AccessRequest(ANN, "get", path="/healthz"), False, id="no-path"),
        pytest.param(NAMED, AccessRequest(ANN, "get", "", "pods", name="a"), True, id="a-name"),
        pytest.param(NAMED, AccessRequest(ANN, "get", "", "pods", name="b"), False, id="another-name"),
        pytest.param(NAMED, AccessRequest(ANN, "list", "", "pods"), False, id="a-list-has-no-name"),
        pytest.param(PATHS, AccessRequest(ANN, "get", path="/healthz"), True, id="a-path"),
        pytest.param(PATHS, AccessRequest(ANN, "get", path="/healthz/etcd"), False, id="a-longer-path"),
        pytest.param(PATHS, AccessRequest(ANN, "get", path="/api/v1"), True, id="a-path-below"),
        pytest.param(PATHS, AccessRequest(ANN, "get", "", "pods"), False, id="no-resource"),
        pytest.param(
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            AccessRequest(ANN, "x", "y", "z", "s"),
            True,
            id="everything",
        ),
    ],
)
def test_what_a_rule_allows(rule: dict[str, Any], request_: AccessRequest, allowed: bool) -> None:
    assert rule_allows(rule, request_) is allowed


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        pytest.param(PODS, [], id="the-same"),
        pytest.param(NAMED, [], id="less"),
        pytest.param(
            {**PODS, "verbs": ["get", "delete", "create"], "resources": ["pods"]},
            ['{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create"]}'],
            id="verbs-of-one-resource-are-one-line",
        ),
        pytest.param(
            {**PODS, "resources": ["nodes"], "resourceNames": ["a"]},
            ['{APIGroups:[""], Resources:["nodes"], ResourceNames:["a"], Verbs:["get" "list"]}'],
            id="names",
        ),
        pytest.param(
            {"verbs": ["get", "post"], "nonResourceURLs": ["/x"]},
            ['{NonResourceURLs:["/x"], Verbs:["get"]}', '{NonResourceURLs:["/x"], Verbs:["post"]}'],
            id="paths",
        ),
        pytest.param({**PODS, "resources": ["deployments/scale"]}, [], id="a-subresource-of-all"),
    ],
)
def test_what_is_missing(wanted: dict[str, Any], missing: list[str]) -> None:
    assert missing_rules([PODS], [wanted]) == missing


def test_a_rule_for_names_does_not_cover_all_names() -> None:
    assert missing_rules([NAMED], [{**PODS, "resources": ["pods"], "verbs": ["get"]}]) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
    ]
