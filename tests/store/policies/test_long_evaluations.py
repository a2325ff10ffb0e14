"""Expressions that cost much are compiled and evaluated outside the store, with the same result."""

from collections.abc import Callable
from copy import deepcopy
from itertools import count
from typing import Any

import pytest

from kschedd.store.awaited import EVALUATED_AT_ONCE, LongEvaluation, WebhookAnswer, WebhookAnswers, WebhooksNeeded
from kschedd.store.errors import ApiError, PolicyDenied
from kschedd.store.store import Store
from tests.store.authorization.policies import binding as role_binding
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock
from tests.store.policies.made import API, CONFIG_MAPS, binding, config_map, policy

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


def loop(levels: int, last: str) -> str:
    """Return an expression that evaluates `last` ten times for each level."""
    for level in range(levels):
        last = f"{TEN}.all(v{level}, {last})"
    return last


def conditions(*texts: str) -> list[dict[str, Any]]:
    return [{"name": f"c{number}", "expression": text} for number, text in enumerate(texts)]


def webhook(name: str = "w", **more: Any) -> dict[str, Any]:
    hook = {
        "name": f"{name}.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [CONFIG_MAPS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        **more,
    }
    meta = {"name": name}
    return {"apiVersion": API, "kind": "ValidatingWebhookConfiguration", "metadata": meta, "webhooks": [hook]}


def written(store: Store, raw: dict[str, Any]) -> tuple[str, int]:
    """Create an object as a client does. Return its refusal, and the number of evaluations outside the store."""
    answers, evaluations = WebhookAnswers(), 0
    while True:
        before = store.version
        try:
            with store.calling_webhooks(answers):
                store.create(raw)
            return "", evaluations
        except WebhooksNeeded as needed:
            assert store.version == before
            for call in needed.calls:
                assert isinstance(call, LongEvaluation)
                answers.add_result(call, call.run())
                evaluations += 1
        except ApiError as refused:
            return str(refused), evaluations


@pytest.mark.parametrize(
    ("levels", "last", "evaluations", "why"),
    [
        pytest.param(2, "v0 < 10", 0, "", id="cheap"),
        pytest.param(4, "v0 < 10", 1, "", id="admitted"),
        pytest.param(4, "v0 + v1 + v2 + v3 < 36", 1, "failed expression", id="denied"),
        pytest.param(6, "v0 < 10", 1, "operation cancelled: actual cost limit exceeded", id="over-the-limit"),
    ],
)
def test_a_long_evaluation_runs_once_outside_the_store(levels: int, last: str, evaluations: int, why: str) -> None:
    store = Store(now=Clock())
    store.create(policy(validations=[{"expression": loop(levels, last)}]))
    store.create(binding())
    refusal, outside = written(store, config_map())
    assert why in refusal
    assert bool(refusal) is bool(why)
    assert outside == evaluations
    inside = Store(now=Clock())
    inside.create(policy(validations=[{"expression": loop(levels, last)}]))
    inside.create(binding())
    if why:
        with pytest.raises(PolicyDenied) as denied:
            inside.create(config_map())
        assert str(denied.value) == refusal
    else:
        inside.create(config_map())


def test_the_policies_of_one_write_share_the_cost_that_the_store_spends_itself() -> None:
    store = Store(now=Clock())
    for number in range(12):
        store.create(policy(f"p{number:02}", validations=[{"expression": loop(3, "v0 < 10")}]))
        store.create(binding(f"b{number:02}", f"p{number:02}"))
    refusal, outside = written(store, config_map())
    assert refusal == ""
    assert 0 < outside < 12, f"some cost less than {EVALUATED_AT_ONCE} together"


def test_long_mutations_and_conditions_are_evaluated_outside_the_store() -> None:
    store = Store(now=Clock())
    changed = f"Object{{data: {{'sum': {loop(4, 'v0 < 10')} ? '1' : '2'}}}}"
    spec = {
        "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
        "matchConditions": [{"name": "long", "expression": loop(4, "v1 < 10")}],
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": changed}}],
    }
    store.create({"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"}, "spec": spec})
    bound = {"apiVersion": API, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "m"}}
    store.create({**bound, "spec": {"policyName": "m"}})
    assert written(store, config_map()) == ("", 2)
    found = store.get("ConfigMap", "default", "c")
    assert found.raw["data"] == {"sum": "1"}


def test_a_condition_that_fails_outside_the_store_rejects_the_write_as_inside() -> None:
    spec = {
        "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
        "matchConditions": [{"name": "long", "expression": loop(6, "v0 < 10")}],
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
    }
    store = Store(now=Clock())
    store.create({"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"}, "spec": spec})
    bound = {"apiVersion": API, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "m"}}
    store.create({**bound, "spec": {"policyName": "m"}})
    refusal, outside = written(store, config_map())
    assert outside == 1
    assert "operation cancelled: actual cost limit exceeded" in refusal
    with pytest.raises(PolicyDenied) as denied:
        store.create(config_map())
    assert str(denied.value) == refusal


def test_conditions_of_two_webhooks_with_one_name_are_told_apart() -> None:
    store = Store(now=Clock())
    for name, last in (("a", "v0 < 10"), ("b", "v0 > 10")):
        url, same = {"url": f"https://{name}.example.com/"}, [{"name": "same", "expression": loop(4, last)}]
        store.create(webhook(name, clientConfig=url, matchConditions=same, failurePolicy="Fail"))
    answers, called, done = WebhookAnswers(), list[str](), False
    while not done:
        try:
            with store.calling_webhooks(answers):
                store.create(config_map())
            done = True
        except WebhooksNeeded as needed:
            for call in needed.calls:
                if isinstance(call, LongEvaluation):
                    answers.add_result(call, call.run())
                else:
                    called.append(call.webhook)
                    answers.add(call, WebhookAnswer({"allowed": True}))
    assert called == ["a.example.com"]


def test_costly_rules_of_a_custom_resource_are_evaluated_outside_the_store() -> None:
    store = Store(now=Clock())
    defined = definition()
    rule = {"rule": loop(4, "v0 < 10") + " && self.metadata.name != 'bad'"}
    schema = {"type": "object", "x-kubernetes-validations": [rule]}
    for version in defined["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": schema}
    store.create(defined)
    assert written(store, widget("good")) == ("", 1)
    refusal, outside = written(store, widget("bad"))
    assert (outside, "failed rule" in refusal) == (1, True)


def test_an_authorizer_of_a_long_evaluation_judges_the_objects_of_its_moment() -> None:
    store = Store(now=Clock())
    check = "authorizer.serviceAccount('default', 'sa').group('').resource('pods').namespace('default')"
    store.create(policy(validations=[{"expression": f"{check}.check('get').allowed()"}]))
    store.create(binding())
    subjects = [{"kind": "ServiceAccount", "name": "sa", "namespace": "default"}]
    assert "failed expression" in written(store, config_map())[0]
    store.create(role_binding("sa", "ClusterRole/view", subjects))
    answers = WebhookAnswers()
    with pytest.raises(WebhooksNeeded) as needed, store.calling_webhooks(answers):
        store.create(config_map())
    (call,) = needed.value.calls
    assert isinstance(call, LongEvaluation)
    store.delete("ClusterRoleBinding", "", "sa")
    answers.add_result(call, call.run())
    with store.calling_webhooks(answers):
        store.create(config_map())


# -- compiling --------------------------------------------------------------------------------------------------------

LONG = "object.metadata.name in [" + ", ".join(f"'c{number}'" for number in range(1_000)) + "]"


def mutating_policy() -> dict[str, Any]:
    mutation = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": f"{LONG} ? [JSONPatch{{op: 'test', path: '/kind'}}] : []"},
    }
    spec = {
        "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    }
    return {"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"}, "spec": spec}


def defined_with_rules() -> dict[str, Any]:
    defined = definition()
    rules = [{"rule": LONG.replace("object", "self")}]
    for version in defined["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": rules}}
    return defined


def device_class() -> dict[str, Any]:
    selector = {"cel": {"expression": "device.driver in [" + ", ".join(["'gpu.example.com'"] * 300) + "]"}}
    spec = {"selectors": [selector]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(policy(validations=[{"expression": LONG}]), id="policy"),
        pytest.param(policy(matchConditions=conditions("true", LONG)), id="match-condition"),
        pytest.param(mutating_policy(), id="mutating-policy"),
        pytest.param(webhook(matchConditions=conditions(LONG)), id="webhook"),
        pytest.param(defined_with_rules(), id="definition"),
        pytest.param(device_class(), id="device-class"),
    ],
)
def test_long_expressions_are_compiled_outside_the_store(raw: dict[str, Any]) -> None:
    store = Store(now=Clock())
    assert written(store, raw) == ("", 1)
    assert store.find(raw["kind"], "", raw["metadata"]["name"]) is not None


@pytest.mark.parametrize("make", [defined_with_rules, mutating_policy, webhook], ids=lambda make: make.__name__)
def test_a_repeated_write_with_a_later_time_and_another_generated_name_is_not_compiled_again(
    make: Callable[[], dict[str, Any]],
) -> None:
    numbers = count()
    store, raw = Store(now=lambda: float(next(numbers))), make()
    for hook in raw.get("webhooks", ()):
        hook["matchConditions"] = conditions(LONG)
    if raw["kind"] != "CustomResourceDefinition":
        raw["metadata"] = {"generateName": "a-"}
    answers = WebhookAnswers()
    with pytest.raises(WebhooksNeeded) as needed, store.calling_webhooks(answers):
        store.create(deepcopy(raw))
    (call,) = needed.value.calls
    assert isinstance(call, LongEvaluation)
    answers.add_result(call, call.run())
    store.create(config_map("between"))
    with store.calling_webhooks(answers):
        store.create(deepcopy(raw))


def test_a_fault_in_a_long_expression_is_told_as_in_a_short_one() -> None:
    refusal, outside = written(Store(now=Clock()), policy(validations=[{"expression": f"{LONG} && nothing"}]))
    assert outside == 1
    assert "undeclared reference to 'nothing'" in refusal


def test_the_first_write_that_a_long_policy_judges_waits_for_its_compilation_and_later_ones_do_not() -> None:
    store = Store(now=Clock())
    store.create(policy(validations=[{"expression": LONG}]))
    store.create(binding())
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    assert written(store, secret) == ("", 0), "the policy does not match it"
    assert written(store, config_map("c1")) == ("", 1)
    assert written(store, config_map("c2")) == ("", 0)
    refusal, outside = written(store, config_map("other"))
    assert ("failed expression" in refusal, outside) == (True, 0)


def test_long_conditions_of_a_webhook_are_compiled_outside_the_store_once() -> None:
    store = Store(now=Clock())
    store.create(webhook(matchConditions=conditions(LONG)))
    assert written(store, config_map("other")) == ("", 1)
    assert written(store, config_map("another")) == ("", 0)


def test_writes_that_wait_for_one_policy_compile_it_once() -> None:
    store = Store(now=Clock())
    store.create(policy(validations=[{"expression": LONG}]))
    store.create(binding())
    calls = []
    for name in ("c1", "c2"):
        with pytest.raises(WebhooksNeeded) as needed, store.calling_webhooks(WebhookAnswers()):
            store.create(config_map(name))
        calls += needed.value.calls
    first, second = (call.run().value for call in calls)
    assert first is second


def test_patterns_are_compiled_outside_the_store_if_there_are_several() -> None:
    texts = [f"object.metadata.name.matches('^c{number}[a-z]{{1,60}}$')" for number in range(9)]
    assert written(Store(now=Clock()), policy(validations=[{"expression": text} for text in texts])) == ("", 1)
    assert written(Store(now=Clock()), policy(validations=[{"expression": texts[0]}])) == ("", 0)


def test_a_pattern_that_takes_long_is_too_large() -> None:
    long = r"object.metadata.name.matches('\\pL{1,300}')"
    refusal, _ = written(Store(now=Clock()), policy(validations=[{"expression": long}]))
    assert "invalid matches argument" in refusal


def test_variables_whose_types_nest_without_end_are_refused() -> None:
    variables = [{"name": "v0", "expression": "[1]"}]
    variables += [{"name": f"v{n}", "expression": f"[variables.v{n - 1}]"} for n in range(1, 300)]
    refusal, _ = written(Store(now=Clock()), policy(variables=variables))
    assert "spec.variables[64].expression" in refusal
    assert "nested more than 64 levels deep" in refusal
