"""Tests of evictions and deletions with preconditions against a real kube-apiserver's answers, step by step."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from kschedd.api.schemas.kinds import lookup
from kschedd.store.admission.chain import Admission
from kschedd.store.errors import ApiError, Conflict, MultipleBudgets, NotFound, TooManyRequests
from kschedd.store.store import Store
from tests.store.recorded import NOW_S, bare, differences, records

_EVICTION = re.compile(r"/api/v1/namespaces/default/pods/(\w+)/eviction")
_OBJECT = re.compile(r"/apis?/(?:v1|[\w.]+/v1)/namespaces/default/(\w+)/([\w-]+)")
_CODES = ((NotFound, 404), (TooManyRequests, 429), (MultipleBudgets, 500), (Conflict, 409))
# Zero values that a server's encoding always writes.
_WRITTEN_OUT = re.compile(r"\.status\.conditions\[\d+\]\.last(Probe|Transition)Time: want None.*")


def made(store: Store, manifest: Mapping[str, Any]) -> None:
    raw = dict(manifest)
    kind = lookup(raw["kind"])
    status = raw.pop("status", None)
    created = store.create({"apiVersion": kind.api_version, **raw})
    if status is not None:
        whole = {**created.raw, "status": {**(created.raw.get("status") or {}), **status}}
        store.update(whole, subresource="status")


def filled(text: str, store: Store) -> str:
    found = re.fullmatch(r"<uid:([\w-]+)>", text)
    return store.get("Pod", "default", found[1]).uid if found else text


def code_of(error: ApiError) -> int:
    return next(code for kind, code in _CODES if isinstance(error, kind))


def evict(store: Store, name: str, options: Mapping[str, Any]) -> None:
    preconditions = options.get("preconditions") or {}
    version = preconditions.get("resourceVersion")
    store.evict(
        "default",
        name,
        uid=filled(preconditions["uid"], store) if "uid" in preconditions else None,
        resource_version=None if version is None else int(version),
        grace_period_s=options.get("gracePeriodSeconds"),
        dry_run=bool(options.get("dryRun")),
    )


def run(record: Mapping[str, Any]) -> list[str]:
    """Return the differences from the real server, as "step: path: want ..., got ..."."""
    store = Store(now=lambda: NOW_S, admission=Admission())
    for manifest in record["setup"]:
        made(store, manifest)
    wrong = []
    for number, step in enumerate(record["steps"]):
        want = step["want"]
        body = step.get("body") or {}
        eviction = _EVICTION.fullmatch(step["path"])
        named = _OBJECT.fullmatch(step["path"])
        try:
            if eviction:
                if want["code"] == 400:
                    continue  # of the body, which the store does not get
                evict(store, eviction[1], body.get("deleteOptions") or {})
                code, message = 201, ""
            elif step["method"] == "DELETE":
                assert named is not None
                store.delete(lookup(named[1]).name, "default", named[2])
                continue
            else:
                assert named is not None
                assert step["method"] == "GET"
                found = store.get(lookup(named[1]).name, "default", named[2])
                wrong += [
                    f"{number}: {each}"
                    for each in differences(bare(want.get("object") or {}), bare(found.raw))
                    if not _WRITTEN_OUT.fullmatch(each)
                ]
                continue
        except ApiError as error:
            code, message = code_of(error), str(error)
            if isinstance(error, TooManyRequests):
                answer = [
                    [cause["message"] for cause in want["status"]["causes"]],
                    want["status"].get("retryAfterSeconds", 0),
                ]
                if answer != [[error.why], error.retry_after_s]:
                    wrong.append(f"{number}: want {answer}, got {error}")
        if code != want["code"]:
            wrong.append(f"{number}: want {want['code']}, got {code} {message}")
        elif code >= 300:
            expected = (
                re.escape(want["status"]["message"]).replace("<resourceVersion>", r"\d+").replace("<uid>", "[-0-9a-f]+")
            )
            if not re.fullmatch(expected, message):
                wrong.append(f"{number}: want {want['status']['message']!r}, got {message!r}")
    return wrong


def test_evictions_come_to_what_they_come_to_at_a_real_server() -> None:
    seen = 0
    wrong = []
    for record in records("delete-and-bind"):
        if record["topic"] == "eviction":
            seen += 1
            wrong += [f"{record['id']}: {text}" for text in run(record)]
    assert seen >= 30
    assert not wrong, "\n".join(wrong)


def test_a_deletion_whose_precondition_fails_is_refused_in_the_words_of_a_real_server() -> None:
    seen = 0
    for record in records("delete-and-bind"):
        for step in record["steps"] if record["topic"] == "delete" else ():
            preconditions = (step.get("body") or {}).get("preconditions") or {}
            if step["method"] != "DELETE" or step["want"]["code"] != 409:
                continue
            store = Store(now=lambda: NOW_S)
            for manifest in record["setup"]:
                made(store, manifest)
            _, _, plural, name = step["path"].partition("?")[0].rsplit("/", 3)
            kind = lookup(plural)
            version = preconditions.get("resourceVersion")
            with pytest.raises(Conflict) as refusal:
                store.delete(
                    kind.name,
                    "default" if kind.namespaced else "",
                    name,
                    uid=preconditions.get("uid"),
                    resource_version=None if version is None else int(version),
                )
            expected = re.escape(step["want"]["status"]["message"]).replace("<resourceVersion>", r"\d+")
            assert re.fullmatch(expected.replace("<uid>", "[-0-9a-f]+"), str(refusal.value)), record["id"]
            seen += 1
    assert seen >= 5


def test_a_dry_run_asks_the_budget_and_changes_nothing() -> None:
    store = Store(now=lambda: NOW_S)
    pod = {"containers": [{"name": "c", "image": "x"}], "nodeName": "n1"}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    made(store, {"kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": pod, "status": ready})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    status = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    made(store, {**budget, "status": {**status, "observedGeneration": 1}})
    version = store.version
    store.evict("default", "p", dry_run=True)
    assert store.version == version
    store.patch_status("PodDisruptionBudget", "default", "b", {"disruptionsAllowed": 0})
    with pytest.raises(TooManyRequests) as refusal:
        store.evict("default", "p", dry_run=True)
    assert (refusal.value.budget, refusal.value.retry_after_s) == ("b", 0)


def test_an_eviction_of_a_pod_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match='pods "nope" not found'):
        Store().evict("default", "nope")


@pytest.mark.parametrize(
    ("selector", "covered"),
    [
        pytest.param({}, True, id="an-empty-selector-covers-every-pod"),
        pytest.param(None, False, id="no-selector-covers-none"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, True, id="a-label-that-is-absent"
        ),
    ],
)
def test_a_pod_without_labels_is_covered_by_what_selects_it(selector: Any, covered: bool) -> None:
    store = Store(now=lambda: NOW_S)
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeName": "n1"}
    made(store, {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Running"}})
    stated = {"minAvailable": 1} if selector is None else {"minAvailable": 1, "selector": selector}
    made(store, {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": stated})
    if covered:
        with pytest.raises(TooManyRequests):
            store.evict("default", "p")
    else:
        assert store.evict("default", "p").deleting
