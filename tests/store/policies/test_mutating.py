"""MutatingAdmissionPolicies change writes, with kube-apiserver 1.37.2's results and messages."""

from typing import Any

import pytest

from kschedd.store.errors import Invalid, PolicyDenied
from kschedd.store.store import Store
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock, pod
from tests.store.policies.made import API, config_map

RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}
BEGIN = "policy 'p' with binding 'b' denied request: "


def policy(*mutations: str, name: str = "p", **spec: Any) -> dict[str, Any]:
    patches = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        if text.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        for text in mutations
    ]
    spec = {
        "matchConstraints": {"resourceRules": [RULE]},
        "mutations": patches,
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
        **spec,
    }
    return {"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def binding(name: str = "b", of: str = "p", **spec: Any) -> dict[str, Any]:
    spec = {"policyName": of, **spec}
    return {"apiVersion": API, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec}


def made(*mutations: str, **spec: Any) -> Store:
    store = Store(now=Clock())
    store.create(policy(*mutations, **spec))
    store.create(binding())
    return store


LABEL = "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}"


@pytest.mark.parametrize(
    ("mutations", "part", "value"),
    [
        pytest.param([LABEL], "labels", {"a": "b", "added": "yes"}, id="apply"),
        pytest.param(
            ["[JSONPatch{op: 'add', path: '/metadata/labels/x', value: object.metadata.name}]"],
            "labels",
            {"a": "b", "x": "c"},
            id="json-patch",
        ),
        pytest.param(
            ["[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, JSONPatch{op: 'add', "
             "path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b'), value: '1'}]"],
            "annotations",
            {"a/b": "1"},
            id="escaped-key",
        ),
        pytest.param(
            [
                "Object{metadata: Object.metadata{annotations: {'one': '1'}}}",
                "Object{metadata: Object.metadata{annotations: {'two': object.metadata.annotations['one'] + '2'}}}",
            ],
            "annotations",
            {"one": "1", "two": "12"},
            id="mutations-in-order",
        ),
        pytest.param(
            ["[JSONPatch{op: 'test', path: '/kind', value: 'X'}, JSONPatch{op: 'remove', path: '/metadata/labels'}]"],
            "labels",
            {"a": "b"},
            id="a-failed-test-changes-nothing",
        ),
    ],
)  # fmt: skip
def test_mutation(mutations: list[str], part: str, value: dict[str, str]) -> None:
    made_of = made(*mutations).create(config_map(labels={"a": "b"}, data={"k": "v"}))
    assert made_of.metadata[part] == value


@pytest.mark.parametrize(
    ("mutation", "spec", "why"),
    [
        pytest.param(
            "Object{metadata: Object.spec{labels: {'a': 'b'}}}",
            {},
            'type mismatch: unexpected type name "Object.spec", expected "Object.metadata", which matches field '
            "name path from root Object type",
            id="type-name",
        ),
        pytest.param(
            "Object{nope: 'a'}",
            {},
            "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema",
            id="unknown-field",
        ),
        pytest.param(
            "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}",
            {},
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            ".spec.nodeSelector",
            id="atomic",
        ),
        pytest.param(
            "[JSONPatch{op: 'remove', path: '/metadata/annotations/foo'}]",
            {},
            "JSON Patch: remove operation does not apply: doc is missing path: "
            '"/metadata/annotations/foo": missing value',
            id="json-patch",
        ),
        pytest.param(
            LABEL,
            {"matchConditions": [{"name": "c", "expression": "object.zz == ''"}]},
            "expression 'object.zz == ''' resulted in error: no such key: zz",
            id="condition",
        ),
    ],
)
def test_failure(mutation: str, spec: dict[str, Any], why: str) -> None:
    with pytest.raises(PolicyDenied) as denied:
        made(mutation, **spec).create(pod())
    assert str(denied.value) == BEGIN + why
    assert (denied.value.policy_code, denied.value.policy_reason) == (403, "Invalid")
    assert made(mutation, failurePolicy="Ignore", **spec).create(pod()).name == "web"


def test_a_pod_gets_its_defaults_after_the_mutation() -> None:
    sidecar = (
        "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'side', image: 'proxy:1', "
        "restartPolicy: 'Always'}]}}"
    )
    store = made(sidecar, matchConstraints={"resourceRules": [{**RULE, "resources": ["pods"]}]})
    created = store.create(pod())
    assert [each["name"] for each in created.spec["initContainers"]] == ["side"]
    assert created.spec["initContainers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert created.spec["containers"][0]["name"] == "app"


@pytest.mark.parametrize("spec", [{}, {"spec": {}}, {"spec": None}])
def test_a_pod_without_a_spec_is_rejected_in_words(spec: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="containers: Required value"):
        made(LABEL).create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **spec})


def test_each_pod_of_a_batch_is_mutated_by_its_name() -> None:
    store = made("Object{metadata: Object.metadata{labels: {'n': object.metadata.name}}}")
    same = pod()["spec"]
    store.create_many([{**pod(f"w{number}"), "spec": same} for number in range(4)])
    assert [each.labels["n"] for each in store.list("Pod")] == ["w0", "w1", "w2", "w3"]


def test_a_generated_name_is_not_known_yet() -> None:
    store = made("Object{metadata: Object.metadata{labels: {'n': object.metadata.?name.orValue('none')}}}")
    raw = config_map()
    raw["metadata"] = {"generateName": "gen-", "namespace": "default"}
    created = store.create(raw)
    assert created.labels == {"n": "none"}
    assert created.name.startswith("gen-")


def test_updates_and_custom_resources_are_mutated() -> None:
    store = made("Object{metadata: Object.metadata{labels: {'op': request.operation}}}")
    store.create(definition())
    assert store.create(widget("w")).labels["op"] == "CREATE"
    store.create(config_map())
    assert store.merge_patch("ConfigMap", "default", "c", {"data": {"a": "b"}}).labels["op"] == "UPDATE"


@pytest.mark.parametrize(("again", "labels"), [("IfNeeded", {"a": "2", "b": "1"}), ("Never", {"a": "1", "b": "1"})])
def test_reinvocation_after_a_later_change(again: str, labels: dict[str, str]) -> None:
    store = Store(now=Clock())
    count = "Object{metadata: Object.metadata{labels: {'a': string(size(object.metadata.?labels.orValue({})) + 1)}}}"
    only = {"matchConstraints": {"resourceRules": [{**RULE, "resources": ["configmaps"]}]}}
    first = policy(
        "object.metadata.?labels.?a.hasValue() && object.metadata.?labels.?b.hasValue() ? "
        "Object{metadata: Object.metadata{labels: {'a': '2'}}} : " + count,
        name="p1",
        reinvocationPolicy=again,
        **only,
    )
    second = policy("Object{metadata: Object.metadata{labels: {'b': '1'}}}", name="p2", **only)
    for raw in (first, second, binding("b1", "p1"), binding("b2", "p2")):
        store.create(raw)
    assert store.create(config_map()).labels == labels


def test_parameters_and_variables() -> None:
    store = Store(now=Clock())
    store.create(config_map("limits", data={"zone": "a"}))
    text = "Object{metadata: Object.metadata{labels: variables.l}}"
    variables = [{"name": "l", "expression": "{'zone': params.data.zone}"}]
    store.create(policy(text, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, variables=variables))
    store.create(binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}))
    assert store.create(config_map()).labels == {"zone": "a"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{'a': 'b'}", "must evaluate to Object but got map(string, string)"),
        ("[1]", "must evaluate to list(JSONPatch) but got list(int)"),
        ("Object{metadata: foo}", "undeclared reference to 'foo'"),
        ("[JSONPatch{op: 1}]", "expected type of field 'op' is 'string' but provided type is 'int'"),
    ],
)
def test_expressions_are_compiled_when_a_policy_is_written(text: str, why: str) -> None:
    with pytest.raises(Invalid) as invalid:
        Store(now=Clock()).create(policy(text))
    assert why in str(invalid.value)
