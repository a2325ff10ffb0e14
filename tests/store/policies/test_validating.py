"""ValidatingAdmissionPolicies decide about writes, with kube-apiserver 1.37.2's messages."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from kschedd.config.versions.kube_versions import kube_version
from kschedd.store.admission.chain import Admission
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import ApiError, PolicyDenied
from kschedd.store.store import Store
from kschedd.store.writes import Bind
from tests.store.authorization.policies import binding as role_binding
from tests.store.manifests import Clock, pod
from tests.store.policies.made import BAD, CONFIG_MAPS, ONLY_GOOD, binding, config_map, policy

BEGIN = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
PARAM_KIND = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
ALL_PARAMS = {"selector": {"matchLabels": {"is": "param"}}, "namespace": "default", "parameterNotFoundAction": "Deny"}
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def made(spec: dict[str, Any] | None = None, bound: dict[str, Any] | None = None) -> Store:
    store = Store(now=Clock())
    store.create(policy(**(spec or {})))
    store.create(binding(**(bound or {})))
    return store


def refusal(store: Store, raw: dict[str, Any]) -> str:
    """Return why the object is rejected; "" if it is created."""
    try:
        store.create(raw, dry_run=True)
    except PolicyDenied as denied:
        return denied.why.removeprefix(BEGIN)
    return ""


@pytest.mark.parametrize(
    ("spec", "raw", "why"),
    [
        pytest.param({}, config_map(data={"a": "1"}), "", id="admitted"),
        pytest.param({}, config_map(**BAD), "no bad data", id="message"),
        pytest.param(
            {"validations": [{"expression": "false "}]}, config_map(), "failed expression: false", id="default"
        ),
        pytest.param(
            {"validations": [{"expression": "false", "messageExpression": "'by ' + request.userInfo.username"}]},
            config_map(),
            "by system:kube-controller-manager",
            id="message-expression",
        ),
        pytest.param(
            {"validations": [{"expression": "false", "messageExpression": "'a\\nb'", "message": "plain"}]},
            config_map(),
            "plain",
            id="message-of-two-lines-is-not-used",
        ),
        pytest.param(
            {"validations": [{"expression": "object.data.x == '1'"}]},
            config_map(**BAD),
            "expression 'object.data.x == '1'' resulted in error: no such key: x",
            id="error-fails",
        ),
        pytest.param(
            {"validations": [{"expression": "object.data.x == '1'"}], "failurePolicy": "Ignore"},
            config_map(**BAD),
            "",
            id="error-is-ignored",
        ),
        pytest.param(
            {
                "variables": [
                    {"name": "d", "expression": "object.data"},
                    {"name": "n", "expression": "size(variables.d)"},
                ],
                "validations": [{"expression": "variables.n > 1", "messageExpression": "string(variables.n)"}],
            },
            config_map(**BAD),
            "1",
            id="variables",
        ),
        pytest.param(
            {
                "variables": [{"name": "d", "expression": "object.data.x"}],
                "validations": [{"expression": "variables.d == '1'"}],
            },
            config_map(**BAD),
            "expression 'variables.d == '1'' resulted in error: composited variable \"d\" fails to evaluate: "
            "no such key: x",
            id="failing-variable",
        ),
        pytest.param(
            {"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'x'"}]},
            config_map(**BAD),
            "",
            id="condition-not-met",
        ),
        pytest.param(
            {"matchConditions": [{"name": "c", "expression": "object.data.x == '1'"}]},
            config_map(**BAD),
            "expression 'object.data.x == '1'' resulted in error: no such key: x",
            id="condition-fails",
        ),
        pytest.param(
            {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.data.x)"}], "validations": []},
            config_map(**BAD),
            "expression 'string(object.data.x)' resulted in error: no such key: x",
            id="annotation-fails",
        ),
        pytest.param(
            {"validations": [{"expression": "authorizer.requestResource.check('create').allowed() && false"}]},
            config_map(),
            "failed expression: authorizer.requestResource.check('create').allowed() && false",
            id="authorizer",
        ),
        pytest.param(
            {
                "validations": [
                    {
                        "expression": "".join(f"[0,1,2,3,4,5,6,7,8,9].all(v{n}, " for n in range(7)) + "true" + ")" * 7,
                    },
                ]
            },
            config_map(),
            "expression '"
            + "".join(f"[0,1,2,3,4,5,6,7,8,9].all(v{n}, " for n in range(7))
            + "true"
            + ")" * 7
            + "' resulted in error: operation cancelled: actual cost limit exceeded",
            id="cost-limit",
        ),
        pytest.param(
            {
                "validations": [
                    {
                        "expression": "namespaceObject.metadata.name == 'x'",
                        "messageExpression": "namespaceObject.metadata.name + ' ' + namespaceObject.status.phase",
                    }
                ]
            },
            config_map(),
            "default Active",
            id="namespace-object",
        ),
        pytest.param(
            {"validations": [{"expression": "has(object.metadata.uid) && !has(object.metadata.resourceVersion)"}]},
            config_map(),
            "",
            id="a-new-object-has-a-uid-but-no-version",
        ),
    ],
)
def test_decision(spec: dict[str, Any], raw: dict[str, Any], why: str) -> None:
    assert refusal(made(spec), raw) == why


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413), ("", 422)]
)
def test_reason_and_status(reason: str, code: int) -> None:
    validation = {"expression": "false", "message": "no", **({"reason": reason} if reason else {})}
    store = made({"validations": [validation]})
    with pytest.raises(PolicyDenied) as denied:
        store.create(config_map())
    assert (denied.value.policy_code, denied.value.policy_reason) == (code, reason or "Invalid")
    assert str(denied.value) == f'configmaps "c" is forbidden: {BEGIN}no'


@pytest.mark.parametrize(
    ("bound", "raw", "matches"),
    [
        pytest.param({}, config_map(**BAD), True, id="everything"),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, config_map(**BAD), False, id="other-labels"),
        pytest.param(
            {"objectSelector": {"matchLabels": {"a": "b"}}}, config_map(labels={"a": "b"}, **BAD), True, id="labels"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},
            config_map(**BAD),
            False,
            id="other-namespace",
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},
            config_map(namespace="kube-system", **BAD),
            True,
            id="namespace",
        ),
        pytest.param({"resourceRules": [{**CONFIG_MAPS, "operations": ["UPDATE"]}]}, config_map(**BAD), False, id="op"),
        pytest.param({"resourceRules": [{**CONFIG_MAPS, "resources": ["*/*"]}]}, config_map(**BAD), True, id="any"),
        pytest.param({"resourceRules": [{**CONFIG_MAPS, "scope": "Cluster"}]}, config_map(**BAD), False, id="scope"),
        pytest.param(
            {"resourceRules": [{**CONFIG_MAPS, "resourceNames": ["d"]}]}, config_map(**BAD), False, id="other-name"
        ),
        pytest.param(
            {"excludeResourceRules": [{**CONFIG_MAPS, "resourceNames": ["c"]}]}, config_map(**BAD), False, id="excluded"
        ),
    ],
)
def test_a_binding_selects_requests(bound: dict[str, Any], raw: dict[str, Any], matches: bool) -> None:
    assert refusal(made({}, {"matchResources": bound}), raw) == ("no bad data" if matches else "")


@pytest.mark.parametrize(("match_policy", "matches"), [("Equivalent", True), ("Exact", False)])
def test_another_kube_version_the_resource(match_policy: str, matches: bool) -> None:
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}
    constraints = {"resourceRules": [rule], "matchPolicy": match_policy}
    spec = {
        "matchConstraints": constraints,
        "validations": [{"expression": "false", "messageExpression": "string(object.apiVersion)"}],
    }
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "default"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
    }
    assert refusal(made(spec), scaler) == ("autoscaling/v1" if matches else "")


PARAMS = {"validations": [{"expression": "false", "messageExpression": "'max ' + params.data.max"}], **PARAM_KIND}


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        pytest.param({"name": "p1"}, "max 1", id="name-in-the-request's-namespace"),
        pytest.param({"name": "p2", "namespace": "kube-system"}, "max 2", id="name"),
        pytest.param({"selector": {"matchLabels": {"n": "2"}}, "namespace": "kube-system"}, "max 2", id="selector"),
        pytest.param({"name": "p3", "parameterNotFoundAction": "Allow"}, "", id="not-found-is-allowed"),
        pytest.param(
            {"name": "p3"},
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            id="not-found-is-denied",
        ),
    ],
)
def test_parameters(reference: dict[str, Any], why: str) -> None:
    store = Store(now=Clock())
    store.create(config_map("p1", data={"max": "1"}))
    store.create(config_map("p2", "kube-system", data={"max": "2"}, labels={"n": "2"}))
    store.create(policy(**PARAMS))
    store.create(binding(paramRef={"parameterNotFoundAction": "Deny", **reference}))
    assert refusal(store, config_map()) == why


def test_an_unknown_kind_of_parameters_fails_the_policy() -> None:
    store = made({**PARAMS, "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Limit"}})
    assert refusal(store, config_map()) == (
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: "
        "failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'"
    )


def test_warn_admits_and_warns_once() -> None:
    store = made({}, {"validationActions": ["Warn", "Audit"]})
    with store.on_behalf_of(UserInfo("alice", ("dev",))) as remarks:
        store.create(config_map(**BAD))
    assert remarks.warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no bad data"]


def remarked(store: Store, raw: dict[str, Any]) -> Mapping[str, str]:
    """Return the annotations of the audit event of a creation, which may be rejected."""
    with store.on_behalf_of(UserInfo("alice")) as remarks, suppress(PolicyDenied):
        store.create(raw, dry_run=True)
    return remarks.annotations


FAILURES = "validation.policy.admission.k8s.io/validation_failure"


def test_failures_are_audited() -> None:
    first = {"expression": "true"}
    store = made({"validations": [first, {"expression": "false", "message": "a < b"}, ONLY_GOOD]})
    store.create(binding("c", validationActions=["Warn", "Audit"]))
    (text,) = remarked(store, config_map(**BAD)).values()
    failure = {
        "message": "a < b",
        "policy": "p",
        "binding": "c",
        "expressionIndex": 1,
        "validationActions": ["Warn", "Audit"],
    }
    assert json.loads(text) == [failure, {**failure, "message": "no bad data", "expressionIndex": 2}]
    assert text.startswith('[{"message":"a \\u003c b","policy":"p","binding":"c","expressionIndex":1,')


@pytest.mark.parametrize(("version", "count"), [("1.36", 1), ("1.37", 50)])
def test_the_number_of_audited_failures_is_limited(version: str, count: int) -> None:
    store = Store(now=Clock(), rules=kube_version(version).default_rules)
    store.create(policy(validations=[{"expression": "false"}] * 60))
    store.create(binding(validationActions=["Audit"]))
    assert len(json.loads(remarked(store, config_map())[FAILURES])) == count


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'name ' + object.metadata.name", "name c"),
        ("'  '", None),
        ("null", None),
        ("string(object.data.none)", None),
    ],
)
def test_an_audit_annotation(expression: str, value: str | None) -> None:
    stated = {"key": "seen", "valueExpression": expression}
    store = made({"auditAnnotations": [stated], "failurePolicy": "Ignore"})
    store.create(binding("c"))
    assert remarked(store, config_map()).get("p/seen") == value


def test_audit_annotations_of_rejected_writes_with_the_values_of_all_parameters() -> None:
    stated = [
        {"key": "limit", "valueExpression": "string(params.data.limit)"},
        {"key": "long", "valueExpression": "string(params.data.long)"},
    ]
    store = Store(now=Clock())
    for name, limit in (("one", "1"), ("two", "2"), ("three", "1")):
        store.create(config_map(name, labels={"is": "param"}, data={"limit": limit, "long": "x" * 20_000}))
    store.create(policy(**PARAM_KIND, auditAnnotations=stated))
    store.create(binding(paramRef=ALL_PARAMS))
    annotations = remarked(store, config_map(**BAD))
    assert sorted(annotations["p/limit"].split(", ")) == ["1", "2"]
    assert len(annotations["p/long"]) == 10 * 1024


@pytest.mark.parametrize(
    ("operation", "expression"),
    [
        ("DELETE", "object == null && oldObject.metadata.name == 'c' && request.operation == 'DELETE' && false"),
        ("UPDATE", "oldObject.metadata.name == object.metadata.name && object.data.a != '2'"),
    ],
)
def test_updates_and_deletions_are_judged(operation: str, expression: str) -> None:
    rules = {"resourceRules": [{**CONFIG_MAPS, "operations": [operation]}]}
    store = made({"matchConstraints": rules, "validations": [{"expression": expression}]})
    store.create(config_map(data={"a": "1"}))
    changes = {
        "DELETE": lambda: store.delete("ConfigMap", "default", "c"),
        "UPDATE": lambda: store.merge_patch("ConfigMap", "default", "c", {"data": {"a": "2"}}),
    }
    with pytest.raises(PolicyDenied):
        changes[operation]()
    assert store.get("ConfigMap", "default", "c").raw["data"] == {"a": "1"}


def test_subresources_are_judged() -> None:
    rule = {**PODS, "operations": ["*"], "resources": ["pods/binding", "pods/eviction", "pods/status"]}
    validation = {"expression": "false", "messageExpression": "request.kind.kind + ' ' + request.subResource"}
    store = Store(now=Clock())
    store.create(pod())
    store.create(policy(matchConstraints={"resourceRules": [rule]}, validations=[validation]))
    store.create(binding())
    with pytest.raises(PolicyDenied, match="Binding binding"):
        store.bind("default", "web", "n1")
    (failure,) = store.bind_many([Bind("default", "web", "n1", "")])
    assert isinstance(failure, PolicyDenied)
    with pytest.raises(PolicyDenied, match="Eviction eviction"):
        store.evict("default", "web")
    with pytest.raises(PolicyDenied, match="Pod status"):
        store.patch_status("Pod", "default", "web", {"phase": "Running"})


def test_each_pod_of_a_batch_is_judged_by_its_name() -> None:
    validation = {"expression": "object.metadata.name != 'w3'", "message": "no w3"}
    spec = {"matchConstraints": {"resourceRules": [PODS]}, "validations": [validation]}
    same = pod()["spec"]
    raws = [{**pod(f"w{number}"), "spec": same} for number in range(6)]
    store = made(spec)
    answers = store.create_many(raws)
    assert [place for place, answer in enumerate(answers) if isinstance(answer, ApiError)] == [3]


def test_a_policy_holds_from_the_next_pod_of_a_batch_on() -> None:
    validation = {"expression": "false"}
    spec = {"matchConstraints": {"resourceRules": [PODS]}, "validations": [validation]}
    same = pod()["spec"]
    pods = [{**pod(f"w{number}"), "spec": same} for number in range(4)]
    store = Store(now=Clock())
    store.create(policy(**spec))
    answers = store.create_many([*pods[:2], binding(), *pods[2:]])
    assert [isinstance(answer, ApiError) for answer in answers] == [False, False, False, True, True]


def test_a_fork_has_the_policies_of_its_original() -> None:
    assert refusal(made().fork(), config_map(**BAD)) == "no bad data"


def test_a_changed_or_deleted_policy_takes_effect() -> None:
    store = made()
    store.merge_patch(
        "ValidatingAdmissionPolicy", "", "p", {"spec": {"validations": [{**ONLY_GOOD, "message": "new"}]}}
    )
    assert refusal(store, config_map(**BAD)) == "new"
    store.delete("ValidatingAdmissionPolicy", "", "p")
    assert refusal(store, config_map(**BAD)) == ""


def test_the_plugin_can_be_disabled() -> None:
    store = Store(now=Clock(), admission=Admission({"ValidatingAdmissionPolicy": False}))
    store.create(policy())
    store.create(binding())
    assert refusal(store, config_map(**BAD)) == ""


def test_without_a_binding_cel_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(now=Clock())
    monkeypatch.setitem(__import__("sys").modules, "kschedd.store.admission.reviewing", None)
    store.create(policy())
    store.create(config_map(**BAD))
    store.create(binding())
    with pytest.raises(ImportError):
        store.create(config_map("d", **BAD))


def test_the_authorizer_judges_a_user_whose_requests_roles_judge() -> None:
    store = Store(now=Clock())
    expression = "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"
    store.create(policy(validations=[{"expression": expression, "message": "may not read secrets"}]))
    store.create(binding())
    alice = UserInfo("alice", ("dev",), judged=True)
    with store.on_behalf_of(alice), pytest.raises(PolicyDenied, match="may not read secrets"):
        store.create(config_map())
    store.create(role_binding("dev", "ClusterRole/edit", [{"kind": "Group", "name": "dev"}], "default"))
    with store.on_behalf_of(alice):
        store.create(config_map())
    with store.on_behalf_of(UserInfo("bob")):
        store.create(config_map("d"))
