"""Webhooks of a write: which are called, and what their responses mean, with kube-apiserver 1.37.2's messages."""

import base64
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.awaited import WebhookAnswer, WebhookAnswers, WebhookCall, WebhooksNeeded
from kschedd.store.errors import Forbidden, WebhookDenied, WebhookFailed
from kschedd.store.store import Store
from kschedd.store.writes import Bind
from tests.store.manifests import Clock, pod
from tests.store.policies.made import API, config_map

RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps", "pods"]}
Answer = Callable[[WebhookCall], WebhookAnswer]


def hook(name: str = "h", kind: str = "Validating", **fields: Any) -> dict[str, Any]:
    raw = {
        "name": f"{name}.example.com",
        "clientConfig": {"url": f"https://hooks.example.com/{name}"},
        "rules": [RULE],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        **fields,
    }
    return {"apiVersion": API, "kind": f"{kind}WebhookConfiguration", "metadata": {"name": name}, "webhooks": [raw]}


def labelled(**labels: str) -> WebhookAnswer:
    patch = [{"op": "add", "path": "/metadata/labels", "value": labels}]
    text = base64.b64encode(json.dumps(patch).encode()).decode()
    return WebhookAnswer({"allowed": True, "patch": text, "patchType": "JSONPatch"})


ALLOWED = WebhookAnswer({"allowed": True})


def called(store: Store, write: Callable[[], Any], answer: Answer) -> tuple[Any, list[WebhookCall]]:
    """Perform a write as the store's clients do; return the result and the calls."""
    answers, calls = WebhookAnswers(), list[WebhookCall]()
    while True:
        try:
            with store.calling_webhooks(answers):
                return write(), calls
        except WebhooksNeeded as needed:
            for call in needed.calls:
                calls.append(call)
                answers.add(call, answer(call))


def created(answer: Answer, *hooks: dict[str, Any], raw: dict[str, Any] | None = None) -> tuple[Any, list[WebhookCall]]:
    store = Store(now=Clock())
    for each in hooks:
        store.create(each)
    return called(store, lambda: store.create(raw or config_map(data={"a": "1"})), answer)


def test_the_review() -> None:
    _, (call,) = created(lambda call: ALLOWED, hook(timeoutSeconds=3))
    assert (call.webhook, call.url) == ("h.example.com", "https://hooks.example.com/h")
    assert (call.address, call.host, call.path) == ("hooks.example.com:443", "hooks.example.com", "/h")
    assert call.timeout_s == 3
    request = call.request
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["operation"], request["name"], request["namespace"]) == ("CREATE", "c", "default")
    assert request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert request["object"]["data"] == {"a": "1"}
    assert request["oldObject"] is None


@pytest.mark.parametrize(
    ("status", "code", "reason", "why"),
    [
        ({"message": "not today"}, 400, "", 'admission webhook "h.example.com" denied the request: not today'),
        (
            {"message": "no", "code": 403, "reason": "Forbidden"},
            403,
            "Forbidden",
            'admission webhook "h.example.com" denied the request: no',
        ),
        ({}, 400, "", 'admission webhook "h.example.com" denied the request without explanation'),
    ],
)
@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_denial(kind: str, status: dict[str, Any], code: int, reason: str, why: str) -> None:
    with pytest.raises(WebhookDenied) as denied:
        created(lambda call: WebhookAnswer({"allowed": False, "status": status}), hook(kind=kind))
    assert (denied.value.webhook_code, denied.value.webhook_reason, str(denied.value)) == (code, reason, why)


@pytest.mark.parametrize(
    ("kind", "answer", "why"),
    [
        ("Validating", WebhookAnswer(failure="x"), "failed to call webhook: x"),
        (
            "Validating",
            labelled(a="b"),
            "received invalid webhook response: validating webhook may not return response.patch",
        ),
        (
            "Mutating",
            WebhookAnswer({"allowed": True, "patch": "W10="}),
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
    ],
)  # fmt: skip
def test_a_failed_call_is_ignored_or_fails_the_write(kind: str, answer: WebhookAnswer, why: str) -> None:
    with pytest.raises(WebhookFailed) as failed:
        created(lambda call: answer, hook(kind=kind))
    assert str(failed.value) == f'Internal error occurred: failed calling webhook "h.example.com": {why}'
    assert created(lambda call: answer, hook(kind=kind, failurePolicy="Ignore"))[0].name == "c"


def test_a_patch_changes_the_object_and_a_bad_patch_fails() -> None:
    made, _ = created(lambda call: labelled(hooked="yes"), hook(kind="Mutating"))
    assert made.labels == {"hooked": "yes"}
    bad = base64.b64encode(b'[{"op": "remove", "path": "/metadata/zz"}]').decode()
    answer = WebhookAnswer({"allowed": True, "patch": bad, "patchType": "JSONPatch"})
    with pytest.raises(WebhookFailed, match="Unable to remove nonexistent key: zz: missing value"):
        created(lambda call: answer, hook(kind="Mutating"))


@pytest.mark.parametrize(("again", "times"), [("IfNeeded", 2), ("Never", 1)])
def test_reinvocation(again: str, times: int) -> None:
    def answer(call: WebhookCall) -> WebhookAnswer:
        return labelled(b="1") if call.webhook == "b.example.com" else ALLOWED

    first = hook("a", "Mutating", reinvocationPolicy=again)
    _, calls = created(answer, first, hook("b", "Mutating"))
    assert sum(call.webhook == "a.example.com" for call in calls) == times


def test_warnings_reach_the_user() -> None:
    store = Store(now=Clock())
    store.create(hook())
    with store.on_behalf_of(UserInfo("alice")) as remarks:
        called(
            store, lambda: store.create(config_map()), lambda call: WebhookAnswer({"allowed": True, "warnings": ["a"]})
        )
    assert remarks.warnings == ["a"]


@pytest.mark.parametrize(
    ("fields", "is_called"),
    [
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"rules": [{**RULE, "operations": ["DELETE"]}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'x'"}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'c'"}]}, True),
    ],
)
def test_which_writes_are_sent(fields: dict[str, Any], is_called: bool) -> None:
    _, calls = created(lambda call: ALLOWED, hook(**fields))
    assert bool(calls) is is_called


def test_a_failing_condition_rejects_the_write() -> None:
    conditions = [{"name": "c", "expression": "object.metadata.zz == 'x'"}]
    with pytest.raises(
        Forbidden, match=r'configmaps "c" is forbidden: expression .* resulted in error: no such key: zz'
    ):
        created(lambda call: ALLOWED, hook(matchConditions=conditions))


def test_side_effects_forbid_dry_runs() -> None:
    store = Store(now=Clock())
    raw = hook()
    raw["webhooks"][0]["sideEffects"] = "NoneOnDryRun"
    store.create(raw)
    called(store, lambda: store.create(config_map(), dry_run=True), lambda call: ALLOWED)


def test_webhooks_are_not_called_for_configurations() -> None:
    _, calls = created(lambda call: ALLOWED, hook(rules=[{**RULE, "resources": ["*"]}]), raw=hook("other"))
    assert calls == []


def test_without_a_daemon_webhooks_are_skipped_with_a_warning() -> None:
    store = Store(now=Clock())
    store.create(hook())
    with store.on_behalf_of(UserInfo("alice")) as remarks:
        store.create(config_map())
    assert remarks.warnings == [
        'admission webhook "h.example.com" was not called: webhooks are called only by a running daemon'
    ]


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "hook", "namespace": "default"},
    "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 8443}], "selector": {"app": "hook"}},
}
OF_SERVICE = {"clientConfig": {"service": {"name": "hook", "namespace": "default", "path": "/x"}}}


def slice_of(address: str) -> dict[str, Any]:
    meta = {"name": "hook-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "hook"}}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": meta,
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]}],
        "ports": [{"name": "https", "port": 8443}],
    }


def served(mode: Any, *raws: dict[str, Any]) -> tuple[Store, list[WebhookCall], list[str]]:
    store = Store(now=Clock())
    store.set_webhook_mode(mode)
    for raw in (*raws, hook(**OF_SERVICE)):
        store.create(raw, restore=raw["kind"] == "Pod")
    with store.on_behalf_of(UserInfo("alice")) as remarks:
        _, calls = called(store, lambda: store.create(config_map()), lambda call: ALLOWED)
    return store, calls, remarks.warnings


def test_the_webhooks_of_several_bindings_are_called_together() -> None:
    store = Store(now=Clock())
    for raw in (pod("a"), pod("b"), hook(rules=[{**RULE, "resources": ["pods/binding"]}])):
        store.create(raw)
    bindings = [Bind("default", name, "", "n") for name in ("a", "gone", "b")]
    with pytest.raises(WebhooksNeeded) as needed, store.calling_webhooks(WebhookAnswers()):
        store.bind_many(bindings)
    assert [call.request["name"] for call in needed.value.calls] == ["a", "b"]
    failures, _ = called(store, lambda: store.bind_many(bindings[::2]), lambda call: ALLOWED)
    assert failures == [None, None]
    assert store.get("Pod", "default", "b").spec["nodeName"] == "n"


def test_a_service_with_a_foreign_address_is_called_there() -> None:
    _, (call,), warnings = served("skip", SERVICE, slice_of("192.0.2.1"))
    assert (call.url, call.address) == ("https://hook.default.svc:443/x", "192.0.2.1:8443")
    assert (call.host, call.path, warnings) == ("hook.default.svc", "/x", [])


def test_a_service_of_simulated_pods_is_skipped_fails_or_is_called() -> None:
    simulated = {**pod("hook-1"), "status": {"podIP": "10.1.2.3", "phase": "Running"}}
    raws = (simulated, SERVICE, slice_of("10.1.2.3"))
    _, calls, warnings = served("skip", *raws)
    assert (calls, warnings) == (
        [],
        ['admission webhook "h.example.com" was not called: only simulated pods back its Service'],
    )
    with pytest.raises(WebhookFailed, match='no endpoints available for service "hook"'):
        served("fail", *raws)
    store, (call,), _ = served("call", *raws)
    assert call.address == f"{store.get('Service', 'default', 'hook').spec['clusterIP']}:443"


def test_a_missing_service_fails_the_write() -> None:
    with pytest.raises(
        WebhookFailed, match=r'Post "https://hook.default.svc:443/x\?timeout=10s": service "hook" not found'
    ):
        served("skip")


def test_a_deletion_is_judged() -> None:
    store = Store(now=Clock())
    store.create(config_map())
    store.create(hook())
    _, (call,) = called(store, lambda: store.delete("ConfigMap", "default", "c"), lambda call: ALLOWED)
    assert (call.request["operation"], call.request["object"]) == ("DELETE", None)
    assert call.request["oldObject"]["metadata"]["name"] == "c"


def annotated(answer: Answer, *hooks: dict[str, Any]) -> Mapping[str, str]:
    """Return the annotations of the audit event of a creation, which may be rejected."""
    store, annotations = Store(now=Clock()), dict[str, str]()
    for each in hooks:
        store.create(each)

    def write() -> None:
        with store.on_behalf_of(UserInfo("ann")) as remarks:
            try:
                store.create(config_map(data={"a": "1"}))
            finally:
                annotations.update(remarks.annotations)

    with suppress(WebhookDenied, WebhookFailed):
        called(store, write, answer)
    return annotations


NOTED = {"auditAnnotations": {"why": "so", "bad key": "x", "a/b": "x"}}


def test_annotations_of_responses_even_if_the_write_is_denied() -> None:
    refused = WebhookAnswer({"allowed": False, "status": {}, **NOTED})
    noted = annotated(lambda call: refused, hook("a"), hook("b"))
    assert noted == {"a.example.com/why": "so", "b.example.com/why": "so"}


def test_annotations_of_mutating_webhooks() -> None:
    def answer(call: WebhookCall) -> WebhookAnswer:
        return labelled(b="1") if call.webhook == "b.example.com" else ALLOWED

    unmatched = hook("a", "Mutating", rules=[{**RULE, "resources": ["nodes"]}])
    others = (hook("b", "Mutating"), hook("c", "Mutating"), hook("d", "Mutating", reinvocationPolicy="IfNeeded"))
    before = hook("aa", "Mutating", reinvocationPolicy="IfNeeded")
    assert annotated(answer, unmatched, before, *others) == {
        "mutation.webhook.admission.k8s.io/round_0_index_1": invocation("aa", "false"),
        "mutation.webhook.admission.k8s.io/round_0_index_2": invocation("b", "true"),
        "mutation.webhook.admission.k8s.io/round_0_index_3": invocation("c", "false"),
        "mutation.webhook.admission.k8s.io/round_0_index_4": invocation("d", "false"),
        "mutation.webhook.admission.k8s.io/round_1_index_1": invocation("aa", "false"),
    }


def invocation(name: str, mutated: str) -> str:
    return f'{{"configuration":"{name}","webhook":"{name}.example.com","mutated":{mutated}}}'


def test_annotations_of_failed_webhooks() -> None:
    hooks = (
        hook("a", "Mutating", failurePolicy="Ignore"),
        hook("b", failurePolicy="Ignore"),
        hook("c", failurePolicy="Ignore"),
    )
    failed = WebhookAnswer(failure="x")
    assert annotated(lambda call: failed if call.webhook != "b.example.com" else ALLOWED, *hooks) == {
        "mutation.webhook.admission.k8s.io/round_0_index_0": invocation("a", "false"),
        "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "a.example.com",
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "c.example.com",
    }
    assert annotated(lambda call: failed, hook("a", "Mutating")) == {
        "mutation.webhook.admission.k8s.io/round_0_index_0": invocation("a", "false")
    }
