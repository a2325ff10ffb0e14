"""Tests of the REST API, verb by verb: responses by user and format, with their status codes."""

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from kschedd.config.versions.kube_versions import V1_34, V1_36
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.parts import without_parts
from tests.apiserver.asking import JSON, MERGE, PODS, STRATEGIC, TABLE, Asker, asking, node, pod


@pytest.fixture
async def api() -> AsyncIterator[Asker]:
    async with asking(version=V1_34) as asker:
        yield asker


LONG = "9" * 5_000


async def test_an_object_is_created_read_changed_and_deleted(api: Asker) -> None:
    made = await api.create(PODS, pod("a"))
    assert made["metadata"]["namespace"] == "default"
    assert await api.get(f"{PODS}/a") == made
    patched = await api.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)
    assert patched.json["metadata"]["labels"] == {"x": "1"}
    changed = {**patched.json, "metadata": {**patched.json["metadata"], "labels": {"x": "2"}}}
    replaced = await api.ask("PUT", f"{PODS}/a", changed)
    assert (replaced.status, replaced.json["metadata"]["labels"]) == (200, {"x": "2"})
    deleted = await api.ask("DELETE", f"{PODS}/a")
    assert (deleted.status, deleted.json["kind"]) == (200, "Pod")
    assert (await api.ask("GET", f"{PODS}/a")).status == 404


async def test_what_is_not_there_is_told_in_a_status(api: Asker) -> None:
    answered = await api.ask("GET", f"{PODS}/nope")
    assert answered.status == 404
    assert answered.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "nope" not found',
        "reason": "NotFound",
        "details": {"name": "nope", "kind": "pods"},
        "code": 404,
    }


async def test_a_stale_version_is_a_conflict(api: Asker) -> None:
    made = await api.create(PODS, pod("a"))
    await api.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)
    answered = await api.ask("PUT", f"{PODS}/a", made)
    assert (answered.status, answered.json["reason"]) == (409, "Conflict")


async def test_an_invalid_object_names_each_field(api: Asker) -> None:
    answered = await api.ask("POST", PODS, {**pod("a"), "spec": {"containers": []}})
    assert (answered.status, answered.json["reason"]) == (422, "Invalid")
    causes = answered.json["details"]["causes"]
    assert causes == [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}]


@pytest.mark.parametrize(
    ("method", "target", "body", "how", "status"),
    [
        pytest.param("GET", "/api/v1/nopes", None, {}, 404, id="an-unknown-resource"),
        pytest.param("GET", "/apis/nope/v1/x", None, {}, 404, id="an-unknown-group"),
        pytest.param("GET", "/nope", None, {}, 404, id="an-unknown-path"),
        pytest.param("GET", "/api/v1/pods/a", None, {}, 404, id="an-object-without-its-namespace"),
        pytest.param("GET", f"{PODS}/a/nope", None, {}, 404, id="an-unknown-subresource"),
        pytest.param("HEAD", f"{PODS}/a", None, {}, 405, id="head"),
        pytest.param("OPTIONS", PODS, None, {}, 405, id="options"),
        pytest.param("POST", f"{PODS}/a", {}, {}, 405, id="a-post-to-an-object"),
        pytest.param("PUT", PODS, {}, {}, 405, id="a-put-to-a-collection"),
        pytest.param("POST", PODS, b"x", {"content_type": "text/plain"}, 415, id="an-unknown-content-type"),
        pytest.param("PATCH", f"{PODS}/a", {}, {"content_type": "application/nonsense"}, 415, id="an-unknown-patch"),
        pytest.param("GET", f"{PODS}/a", None, {"accept": "text/html"}, 406, id="a-form-there-is-not"),
        pytest.param("POST", PODS, b"{", {}, 400, id="half-an-object"),
        pytest.param("POST", PODS, [], {}, 400, id="a-list"),
        pytest.param("POST", PODS, {"apiVersion": "v1", "kind": "Node"}, {}, 400, id="another-kind"),
        pytest.param("POST", PODS, {**pod("a"), "metadata": 5}, {}, 400, id="metadata-that-is-none"),
        pytest.param("POST", PODS, pod("a", namespace="other"), {}, 400, id="another-namespace"),
        pytest.param("GET", f"{PODS}?limit=abc", None, {}, 400, id="a-limit-that-is-no-number"),
        pytest.param("GET", f"{PODS}?resourceVersion=abc", None, {}, 400, id="a-version-that-is-none"),
        pytest.param("GET", f"{PODS}?watch=true&resourceVersion=abc", None, {}, 500, id="and-of-a-watch"),
        pytest.param("GET", f"{PODS}?continue=abc", None, {}, 400, id="a-continue-token-that-is-none"),
        pytest.param("GET", f"{PODS}?fieldSelector=spec.foo=1", None, {}, 400, id="a-field-nobody-selects-by"),
        pytest.param("GET", f"{PODS}?labelSelector=a=b=c", None, {}, 400, id="a-selector-that-is-none"),
        pytest.param("GET", f"{PODS}?resourceVersion={LONG}", None, {}, 400, id="a-version-of-5000-digits"),
        pytest.param("GET", f"{PODS}?watch=true&resourceVersion={LONG}", None, {}, 500, id="and-of-a-watch-5000"),
        pytest.param("GET", f"{PODS}/a?resourceVersion={LONG}", None, {}, 404, id="and-of-one-object"),
        pytest.param("GET", f"{PODS}/a?resourceVersion=%C2%B2", None, {}, 404, id="a-version-in-superscript"),
        pytest.param(
            "DELETE", f"{PODS}/a", {"preconditions": {"resourceVersion": "²"}}, {}, 404, id="and-of-a-precondition"
        ),
        *(
            pytest.param("DELETE", f"{PODS}/a", {field: wrong}, {}, 500, id=f"{field}-that-is-none")
            for field, wrong in (
                ("preconditions", 5),
                ("propagationPolicy", []),
                ("dryRun", 5),
                ("gracePeriodSeconds", True),
                ("gracePeriodSeconds", 10**30),
                ("orphanDependents", "maybe"),
            )
        ),
        pytest.param("DELETE", f"{PODS}/a?gracePeriodSeconds={LONG}", None, {}, 400, id="a-grace-of-5000-digits"),
        pytest.param("POST", PODS, b'{"a":' * 101 + b"1" + b"}" * 101, {}, 400, id="deep"),
        pytest.param("POST", PODS, b"[" * 900 + b"]" * 900, {}, 400, id="too-deep-for-recursion"),
        pytest.param("POST", PODS, b'{"spec": {"priority": 1e999}}', {}, 400, id="a-number-beyond-all"),
        pytest.param("GET", f"{PODS}?resourceVersionMatch=Exact", None, {}, 422, id="a-match-without-a-version"),
        pytest.param("GET", f"{PODS}?resourceVersion=99999999", None, {}, 504, id="a-version-still-to-come"),
        pytest.param("GET", f"{PODS}/%ff", None, {}, 400, id="a-path-that-is-no-text"),
        pytest.param("PATCH", PODS, {}, {"content_type": MERGE}, 405, id="a-patch-of-a-collection"),
        pytest.param("DELETE", "/api/v1/namespaces", None, {}, 405, id="all-namespaces"),
        pytest.param("DELETE", f"{PODS}/a?propagationPolicy=Nope", None, {}, 422, id="a-propagation-there-is-not"),
    ],
)
async def test_what_is_refused(
    api: Asker, method: str, target: str, body: Any, how: dict[str, str], status: int
) -> None:
    answered = await api.ask(method, target, body, **how)
    assert answered.status == status, answered.body


async def test_a_number_of_too_many_digits_is_the_reason(api: Asker) -> None:
    answered = await api.ask("POST", PODS, b'{"spec": {"priority": %s}}' % (b"9" * 5000))
    assert answered.status == 400
    assert b"json parse error: a number has more than 4300 digits (" in answered.body


async def test_a_list_names_its_kind_once_and_its_version(api: Asker) -> None:
    await api.create(PODS, pod("b"))
    await api.create(PODS, pod("a"))
    listed = await api.get(PODS)
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert "kind" not in listed["items"][0]
    assert int(listed["metadata"]["resourceVersion"]) > 0


async def test_pages_are_those_of_the_first_whatever_is_written_meanwhile(api: Asker) -> None:
    for name in "abcde":
        await api.create(PODS, pod(name))
    first = await api.get(f"{PODS}?limit=2")
    assert first["metadata"]["remainingItemCount"] == 3
    await api.ask("DELETE", f"{PODS}/c")
    await api.create(PODS, pod("bb"))
    names = [item["metadata"]["name"] for item in first["items"]]
    page = first
    while "continue" in page["metadata"]:
        page = await api.get(f"{PODS}?limit=2&continue={page['metadata']['continue']}")
        names += [item["metadata"]["name"] for item in page["items"]]
    assert names == ["a", "b", "c", "d", "e"]


async def test_a_page_too_old_comes_with_a_token_that_goes_on_with_what_is_there_now(api: Asker) -> None:
    for name in "abcd":
        await api.create(PODS, pod(name))
    first = await api.get(f"{PODS}?limit=2")
    await api.ask("DELETE", f"{PODS}/c")
    await api.cluster.store.do(lambda store: _forget(store))
    refused = await api.ask("GET", f"{PODS}?limit=1&continue={first['metadata']['continue']}")
    assert (refused.status, refused.json["reason"]) == (410, "Expired")
    assert "or use the continue token in this response" in refused.json["message"]
    await api.create(PODS, pod("e"))
    page = await api.get(f"{PODS}?limit=1&continue={refused.json['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in page["items"]] == ["d"]
    page = await api.get(f"{PODS}?limit=1&continue={page['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in page["items"]] == ["e"]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("continue=abc!", "illegal base64 data at input byte 3"),
        ("continue=garbage", "invalid character '\\x81' looking for beginning of value"),
        ("continue=e30", "server does not recognize this encoded version "),
        (
            "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJwIn0",
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi9hL2IifQ",
            "continue key is not valid: ../a/b",
        ),
        ("resourceVersion=99999999999999999999", 'parsing "99999999999999999999": value out of range'),
        ("limit=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("limit=abc&labelSelector=(", 'strconv.ParseInt: parsing "abc": invalid syntax'),
    ],
)
async def test_what_is_wrong_with_the_options_of_a_list_is_said(api: Asker, query: str, why: str) -> None:
    answered = await api.ask("GET", f"{PODS}?{query}")
    assert answered.status == 400
    assert answered.json["message"].endswith(why)


async def test_an_option_without_a_value_is_true(api: Asker) -> None:
    answered = await api.ask("GET", f"{PODS}?sendInitialEvents=")
    assert (answered.status, answered.json["details"]["causes"][0]["field"]) == (422, "sendInitialEvents")


async def test_a_page_of_one_named_object_is_the_last(api: Asker) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    listed = await api.get(f"{PODS}?fieldSelector=metadata.name%3Da&limit=1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    assert "continue" not in listed["metadata"]
    everywhere = await api.get("/api/v1/pods?fieldSelector=metadata.name%3Da&limit=1")
    assert "continue" in everywhere["metadata"]  # in a list of all namespaces, a name is not unique


async def test_only_who_would_have_waited_for_a_version_may_try_again(api: Asker) -> None:
    waiting = await api.ask("GET", f"{PODS}?resourceVersion=99999999")
    exact = await api.ask("GET", f"{PODS}?resourceVersion=99999999&resourceVersionMatch=Exact")
    assert (waiting.status, waiting.json["details"]["retryAfterSeconds"]) == (504, 1)
    assert (exact.status, "retryAfterSeconds" in exact.json["details"]) == (504, False)


async def test_a_list_of_an_older_version_shows_what_was(api: Asker) -> None:
    await api.create(PODS, pod("a"))
    version = (await api.get(PODS))["metadata"]["resourceVersion"]
    await api.ask("DELETE", f"{PODS}/a")
    listed = await api.get(f"{PODS}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]


async def test_a_long_list_comes_in_pieces_and_whole(api: Asker) -> None:
    for number in range(250):
        await api.create(PODS, pod(f"p{number:03}"))
    answered = await api.ask("GET", PODS)
    assert len(answered.json["items"]) == 250
    packed = await api.ask("GET", PODS, headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.body)) == answered.json
    assert len(packed.body) < len(answered.body) / 5


async def test_a_table_has_columns_and_cells(api: Asker) -> None:
    await api.create(PODS, pod("a"))
    table = await api.get(PODS, accept=TABLE)
    assert table["kind"] == "Table"
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names[:4] == ["Name", "Ready", "Status", "Restarts"]
    assert table["rows"][0]["cells"][:4] == ["a", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_metadata_only(api: Asker) -> None:
    await api.create(PODS, pod("a"))
    one = await api.get(f"{PODS}/a", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    assert (one["kind"], set(one)) == ("PartialObjectMetadata", {"kind", "apiVersion", "metadata"})
    many = await api.get(PODS, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    assert many["kind"] == "PartialObjectMetadataList"


async def test_yaml_in_and_out(api: Asker) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"
    target = "/api/v1/namespaces/default/configmaps"
    answered = await api.ask("POST", target, text, content_type="application/yaml", accept="application/yaml")
    assert answered.status == 201
    assert b"kind: ConfigMap" in answered.body


async def test_unknown_fields_are_dropped_with_a_warning_unless_refused(api: Asker) -> None:
    odd = {**pod("a"), "spec": {**pod("a")["spec"], "nonsense": 1}}
    strict = await api.ask("POST", f"{PODS}?fieldValidation=Strict", odd)
    assert strict.status == 400
    assert strict.json["message"].endswith('strict decoding error: unknown field "spec.nonsense"')
    warned = await api.ask("POST", PODS, odd)
    assert warned.status == 201
    assert warned.headers["warning"] == '299 - "unknown field \\"spec.nonsense\\""'


async def test_features_without_effect_are_reported_once(api: Asker) -> None:
    odd = pod("a")
    odd["metadata"]["annotations"] = {"kschedd.io/run-seconds": "soon"}
    made = await api.ask("POST", PODS, odd)
    assert made.status == 201
    assert made.headers["warning"].startswith('299 - "Pod a: annotation kschedd.io/run-seconds')
    change = {"metadata": {"annotations": {"kschedd.io/exit-code": "none"}}}
    changed = await api.ask("PATCH", f"{PODS}/a", change, content_type="application/merge-patch+json")
    assert changed.headers["warning"].count("Pod a: annotation kschedd.io/") == 1
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (
        "warning"
        not in (await api.ask("PATCH", f"{PODS}/a", labels, content_type="application/merge-patch+json")).headers
    )


async def test_whoever_asks_for_endpoints_is_told_of_slices(api: Asker) -> None:
    reported = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    target = "/api/v1/namespaces/default/endpoints"
    made = await api.ask("POST", target, {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"}})
    answers = [made, await api.ask("GET", target), await api.ask("GET", f"{target}/none")]
    assert [answer.status for answer in answers] == [201, 200, 404]
    assert {answer.headers.get("warning") for answer in answers} == {reported}
    watch = await api.respond("GET", f"{target}?watch=true&timeoutSeconds=1")
    assert dict(watch.headers)["Warning"] == reported


async def test_a_dry_run_changes_nothing(api: Asker) -> None:
    answered = await api.ask("POST", f"{PODS}?dryRun=All", pod("a"))
    assert answered.status == 201
    assert (await api.ask("GET", f"{PODS}/a")).status == 404


async def test_a_collection_is_deleted_and_shown(api: Asker) -> None:
    await api.create(PODS, pod("a", labels={"x": "1"}))
    await api.create(PODS, pod("b"))
    answered = await api.ask("DELETE", f"{PODS}?labelSelector=x=1")
    assert [item["metadata"]["name"] for item in answered.json["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in (await api.get(PODS))["items"]] == ["b"]


# Watches


async def test_a_watch_tells_of_each_change_after_its_version(api: Asker, autojump_clock: Any) -> None:
    version = (await api.get(PODS))["metadata"]["resourceVersion"]
    watch = await api.watch(f"{PODS}?watch=true&resourceVersion={version}&timeoutSeconds=5")
    await api.create(PODS, pod("a"))
    await api.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)
    events = await watch.rest()
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED"]
    assert events[1]["object"]["kind"] == "Pod"


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Asker, autojump_clock: Any) -> None:
    await api.create(PODS, pod("a"))
    watch = await api.watch(f"{PODS}?watch=1&timeoutSeconds=5")
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in await watch.rest()] == [("ADDED", "a")]


async def test_leaving_a_selection_is_a_deletion_with_the_version_of_now(api: Asker, autojump_clock: Any) -> None:
    await api.create(PODS, pod("a", labels={"color": "red"}))
    watch = await api.watch(f"{PODS}?watch=true&labelSelector=color=red&timeoutSeconds=5")
    change = {"metadata": {"labels": {"color": "blue"}}}
    patched = await api.ask("PATCH", f"{PODS}/a", change, content_type=STRATEGIC)
    events = await watch.rest()
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]
    meta = events[1]["object"]["metadata"]
    assert meta["labels"] == {"color": "red"}
    assert meta["resourceVersion"] == patched.json["metadata"]["resourceVersion"]


async def test_a_list_as_a_stream_ends_its_beginning_with_a_bookmark(api: Asker, autojump_clock: Any) -> None:
    await api.create(PODS, pod("a"))
    options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3"
    watch = await api.watch(f"{PODS}?watch=true&{options}")
    events = await watch.rest()
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_bookmarks_come_each_minute_and_before_the_end(api: Asker, autojump_clock: Any) -> None:
    began = trio.current_time()
    watch = await api.watch(f"{PODS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=130")
    events = await watch.rest()
    assert [event["type"] for event in events] == ["BOOKMARK"] * 3
    assert trio.current_time() - began == pytest.approx(130)


async def test_a_version_still_to_come_is_waited_for(api: Asker, autojump_clock: Any) -> None:
    version = int((await api.get(PODS))["metadata"]["resourceVersion"])
    watch = await api.watch(f"{PODS}?watch=true&resourceVersion={version + 1}&timeoutSeconds=5")
    await api.create(PODS, pod("a"))
    await api.create(PODS, pod("b"))
    assert [event["object"]["metadata"]["name"] for event in await watch.rest()] == ["b"]


async def test_bookmarks_are_never_older_than_the_version_that_was_asked_for(api: Asker, autojump_clock: Any) -> None:
    watch = await api.watch(f"{PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=99999&timeoutSeconds=130")
    assert await watch.rest() == []


async def test_a_watch_with_no_time_left_ends_at_once(api: Asker, autojump_clock: Any) -> None:
    began = trio.current_time()
    watch = await api.watch(f"{PODS}?watch=true&timeoutSeconds=-1")
    assert await watch.rest() == []
    assert trio.current_time() == began


async def test_a_watch_goes_on_with_no_page(api: Asker, autojump_clock: Any) -> None:
    options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1&continue=x"
    refused = await api.ask("GET", f"{PODS}?watch=true&{options}")
    assert refused.status == 422
    assert refused.json["message"].endswith("resourceVersionMatch is forbidden when continue is provided")


async def test_a_version_that_is_not_kept_any_more_is_one_error_event(api: Asker, autojump_clock: Any) -> None:
    await api.cluster.store.do(lambda store: _forget(store))
    watch = await api.watch(f"{PODS}?watch=true&resourceVersion=1&timeoutSeconds=5")
    events = await watch.rest()
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]


def _forget(store: Any) -> None:
    """Remove all events from the log."""
    log = store.log
    log._oldest = log.version
    log._events.clear()


async def test_only_the_first_table_of_a_watch_names_the_columns(api: Asker, autojump_clock: Any) -> None:
    watch = await api.watch(f"{PODS}?watch=true&timeoutSeconds=3", accept=TABLE)
    await api.create(PODS, pod("a"))
    await api.create(PODS, pod("b"))
    events = await watch.rest()
    assert [bool(event["object"]["columnDefinitions"]) for event in events] == [True, False]


# Subresources


async def test_a_pod_is_bound_once(api: Asker) -> None:
    await api.create(PODS, pod("a"))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n1"}}
    assert (await api.ask("POST", f"{PODS}/a/binding", binding)).json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    assert (await api.get(f"{PODS}/a"))["spec"]["nodeName"] == "n1"
    again = await api.ask("POST", f"{PODS}/a/binding", binding)
    assert again.status == 409
    assert again.json["details"] == {"name": "a", "kind": "pods/binding"}


@pytest.mark.parametrize(
    ("options", "faults"),
    [
        ({"dryRun": ["x"]}, ['dryRun: Unsupported value: ["x"]: supported values: "All"']),
        (
            {"propagationPolicy": "X", "orphanDependents": True, "dryRun": ["All", ""]},
            [
                'propagationPolicy: Invalid value: "X": orphanDependents and deletionPropagation cannot be both set',
                'propagationPolicy: Unsupported value: "X": supported values: '
                '"Foreground", "Background", "Orphan", "nil"',
                'dryRun: Unsupported value: ["All",""]: supported values: "All"',
            ],
        ),
    ],
)
async def test_options_of_a_deletion_are_refused_all_at_once(
    api: Asker, options: dict[str, Any], faults: list[str]
) -> None:
    answer = await api.ask("DELETE", f"{PODS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", **options})
    assert answer.status == 422
    assert [f"{each['field']}: {each['message']}" for each in answer.json["details"]["causes"]] == faults


@pytest.mark.parametrize(
    ("field", "named", "given"),
    [
        *(("resourceVersion", "ResourceVersion", version) for version in ("1", "", "abc")),
        *(("uid", "UID", uid) for uid in ("", "another")),
    ],
)
async def test_a_deletion_of_another_object_or_version_is_refused(
    api: Asker, field: str, named: str, given: str
) -> None:
    await api.create(PODS, pod("a"))
    requests = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {field: given}}
    answer = await api.ask("DELETE", f"{PODS}/a", requests)
    assert answer.status == 409
    assert f"the {named} in the precondition ({given}) does not match" in answer.json["message"]
    assert (await api.ask("GET", f"{PODS}/a")).status == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"[]", "couldn't get version/kind; json parse error: json: cannot unmarshal array", id="a-list"),
        pytest.param(b"5", "couldn't get version/kind; json parse error: json: cannot unmarshal number", id="a-number"),
        pytest.param(b" ", "couldn't get version/kind; json parse error: unexpected end of JSON input", id="blank"),
        pytest.param(
            b'{"kind": true}',
            "couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go struct field .kind of "
            "type string",
            id="a-kind-that-is-no-text",
        ),
        pytest.param(
            b'{"kind": "fixed"}',
            'no kind "fixed" is registered for version "meta.k8s.io/v1" in scheme '
            '"pkg/apis/meta/internalversion/scheme/register.go:27"',
            id="another-kind",
        ),
        pytest.param(
            b'{"gracePeriodSeconds": "5"}',
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            id="a-grace-that-is-text",
        ),
        pytest.param(
            b'{"dryRun": "All"}',
            "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string",
            id="a-dry-run-that-is-no-list",
        ),
        pytest.param(
            b'{"preconditions": {"uid": 5}}',
            "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
            id="a-uid-that-is-no-text",
        ),
    ],
)
@pytest.mark.parametrize("path", [f"{PODS}/a", PODS], ids=["one", "all"])
async def test_a_body_that_is_no_delete_options_deletes_nothing(api: Asker, path: str, body: bytes, words: str) -> None:
    await api.create(PODS, pod("a"))
    answer = await api.ask("DELETE", path, body)
    assert (answer.status, answer.json.get("reason")) == (500, None)
    assert answer.json["message"].startswith(words)
    assert (await api.ask("GET", f"{PODS}/a")).status == 200


async def test_a_body_that_is_no_delete_options_is_a_bad_request_from_1_35_on() -> None:
    async with asking(version=V1_36) as api:
        answer = await api.ask("DELETE", PODS, b"[]")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("body", [b"null", b"{}", b'{"kind": "DeleteOptions", "apiVersion": "apps/v1", "other": 1}'])
async def test_delete_options_of_any_group_and_without_a_word_are_taken(api: Asker, body: bytes) -> None:
    await api.create(PODS, pod("a"))
    assert (await api.ask("DELETE", f"{PODS}/a", body)).status == 200
    assert (await api.ask("GET", f"{PODS}/a")).status == 404


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", PODS, "CreateOptions"),
        ("PUT", f"{PODS}/a", "UpdateOptions"),
        ("PATCH", f"{PODS}/a", "PatchOptions"),
        ("POST", f"{PODS}/a/binding", "CreateOptions"),
        ("POST", f"{PODS}/a/eviction", "CreateOptions"),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", "UpdateOptions"),
    ],
)
async def test_options_are_refused_all_at_once_before_the_body(api: Asker, method: str, path: str, kind: str) -> None:
    answer = await api.ask(
        method, f"{path}?dryRun=x&fieldValidation=y&fieldManager=%01", {"kind": 3}, content_type=MERGE
    )
    assert answer.status == 422
    assert answer.json["message"].startswith(f'{kind}.meta.k8s.io "" is invalid: [fieldManager: ')
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == [
        "fieldManager",
        "dryRun",
        "fieldValidation",
    ]


async def test_status_is_changed_by_itself(api: Asker) -> None:
    await api.create(PODS, pod("a"))
    change = {"status": {"phase": "Running"}, "spec": {"nodeName": "x"}}
    answered = await api.ask("PATCH", f"{PODS}/a/status", change, content_type=MERGE)
    assert answered.json["status"]["phase"] == "Running"
    assert "nodeName" not in answered.json["spec"]


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]},
    },
}


async def test_who_applies_a_scale_manages_the_replicas(api: Asker) -> None:
    await api.create(f"{DEPLOYMENTS}?fieldManager=maker", DEPLOYMENT)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 5}}
    path, apply = f"{DEPLOYMENTS}/web/scale", "application/apply-patch+yaml"
    refused = await api.ask("PATCH", f"{path}?fieldManager=auto", scale, content_type=apply)
    assert refused.status == 409
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == [".spec.replicas"]
    applied = await api.ask("PATCH", f"{path}?fieldManager=auto&force=true", scale, content_type=apply)
    assert (applied.status, applied.json["kind"], applied.json["spec"]) == (200, "Scale", {"replicas": 5})
    by_hand = await api.ask("PATCH", f"{path}?fieldManager=hand", {"spec": {"replicas": 6}}, content_type=MERGE)
    assert by_hand.json["spec"] == {"replicas": 6}
    entries = (await api.get(f"{DEPLOYMENTS}/web"))["metadata"]["managedFields"]
    named = [(each["manager"], each["operation"], each["fieldsV1"]) for each in entries if each.get("subresource")]
    assert named == [("hand", "Update", {"f:spec": {"f:replicas": {}}})]
    wrong = await api.ask("PATCH", f"{path}?fieldManager=auto", {**scale, "kind": "Pod"}, content_type=apply)
    assert wrong.status == 400


async def test_a_workload_is_scaled(api: Asker) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    scale = await api.get(f"{DEPLOYMENTS}/web/scale")
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    changed = await api.ask("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 5}}, content_type=MERGE)
    assert changed.json["spec"] == {"replicas": 5}
    assert (await api.get(f"{DEPLOYMENTS}/web"))["spec"]["replicas"] == 5
    refused = await api.ask("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": -1}}, content_type=MERGE)
    assert refused.json["message"] == (
        'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )


async def test_a_log_is_the_text_of_the_annotation(api: Asker) -> None:
    made = {**pod("a"), "spec": {**pod("a")["spec"], "nodeName": "n1"}}
    await api.create(PODS, made)
    assert (await api.ask("GET", f"{PODS}/a/log")).body == b""
    assert (await api.ask("GET", f"{PODS}/a/log?container=nope")).status == 400
    made["metadata"] = {"name": "b", "annotations": {"kschedd.io/logs": "one\ntwo"}}
    await api.create(PODS, made)
    assert (await api.ask("GET", f"{PODS}/b/log")).body == b"one\ntwo\n"
    assert (await api.ask("GET", f"{PODS}/b/log?tailLines=1&follow=true")).body == b"two\n"
    before = await api.ask("GET", f"{PODS}/b/log?previous=true")
    assert (before.status, before.json["message"]) == (
        400,
        'previous terminated container "main" in pod "b" not found',
    )
    waiting = [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    await api.ask("PATCH", f"{PODS}/b/status", {"status": {"containerStatuses": waiting}}, content_type=MERGE)
    assert (await api.ask("GET", f"{PODS}/b/log")).json["message"] == (
        'container "main" in pod "b" is waiting to start: trying and failing to pull image'
    )


# Discovery and the rest


async def test_discovery_in_one_document_and_page_by_page(api: Asker) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    whole = await api.get("/apis", accept=accept)
    assert whole["kind"] == "APIGroupDiscoveryList"
    plain = await api.get("/apis")
    assert [group["name"] for group in plain["groups"]] == [item["metadata"]["name"] for item in whole["items"]]
    names = [resource["name"] for resource in (await api.get("/apis/apps/v1"))["resources"]]
    assert "deployments" in names
    assert "deployments/scale" in names


async def test_a_document_that_did_not_change_is_not_sent_again(api: Asker) -> None:
    first = await api.ask("GET", "/openapi/v3")
    again = await api.ask("GET", "/openapi/v3", headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


async def test_openapi_says_that_patch_takes_field_validation(api: Asker) -> None:
    document = await api.get("/openapi/v3/apis/apps/v1")
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "fieldValidation" in [each["name"] for each in patch["parameters"]]
    schemas = document["components"]["schemas"]
    assert "replicas" in schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }
        ],
    },
}
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


async def test_a_custom_resource_is_served_as_soon_as_it_is_defined(api: Asker) -> None:
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    await api.create(WIDGETS, widget)
    table = await api.get(WIDGETS, accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 3]
    listed = await api.get(WIDGETS)
    assert (listed["kind"], listed["items"][0]["kind"]) == ("WidgetList", "Widget")
    names = [resource["name"] for resource in (await api.get("/apis/example.com/v1"))["resources"]]
    assert names == ["widgets"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
async def test_health(api: Asker, path: str) -> None:
    answered = await api.ask("GET", path)
    assert (answered.status, answered.body) == (200, b"ok")
    assert (await api.ask("GET", "/readyz/nope")).status == 404


async def test_health_lists_its_checks(api: Asker) -> None:
    ready = b"[+]ping ok\n[+]log ok\n[+]journal ok\n[+]informer-sync ok\n[+]shutdown ok\nreadyz check passed\n"
    assert (await api.ask("GET", "/readyz?verbose")).body == ready
    assert (await api.ask("GET", "/livez?verbose=true&exclude=log")).body == (
        b"[+]ping ok\n[+]journal ok\nlivez check passed\n"
    )


async def test_the_issuer_of_tokens_has_documents(api: Asker) -> None:
    found = await api.get("/.well-known/openid-configuration")
    assert found["issuer"] == "https://kubernetes.default.svc.cluster.local"
    assert found["jwks_uri"] == "https://localhost/openid/v1/jwks"
    keys = await api.ask("GET", "/openid/v1/jwks")
    assert keys.json == {"keys": []}


async def test_who_is_let_in_may_do_everything(api: Asker) -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    review["spec"] = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    target = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await api.create(target, review))["status"] == {"allowed": True}


async def test_usage_is_served_from_annotations_and_requests(api: Asker) -> None:
    groups = [group["name"] for group in (await api.get("/apis"))["groups"]]
    assert "metrics.k8s.io" not in groups  # no pods are simulated here
    used = {"kschedd.io/cpu-usage": "250m", "kschedd.io/memory-usage": "64Mi"}
    await api.create("/api/v1/nodes", node("n1"))
    await api.create(PODS, {**pod("a", annotations=used), "spec": {**pod("a")["spec"], "nodeName": "n1"}})
    listed = await api.get("/apis/metrics.k8s.io/v1beta1/nodes")
    assert listed["items"][0]["usage"] == {"cpu": "250m", "memory": "64Mi"}
    own = await api.get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/a")
    assert own["containers"] == [{"name": "main", "usage": {"cpu": "250m", "memory": "64Mi"}}]
    by_requests = {**pod("b"), "spec": {**pod("b")["spec"], "nodeName": "n1"}}
    by_requests["spec"]["containers"] = [
        {**by_requests["spec"]["containers"][0], "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    ]
    await api.create(PODS, by_requests)
    assert (await api.ask("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/b")).status == 404
    await api.ask("PATCH", f"{PODS}/b/status", {"status": {"phase": "Running"}}, content_type=MERGE)
    own = await api.get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/b")
    assert own["containers"] == [{"name": "main", "usage": {"cpu": "1", "memory": "1Gi"}}]
    listed = await api.get("/apis/metrics.k8s.io/v1beta1/nodes")
    assert listed["items"][0]["usage"] == {"cpu": "1250m", "memory": "1088Mi"}


async def test_metrics_are_prometheus_text() -> None:
    """Check the metrics after an attempt that found no node."""
    async with asking(scheduler=True) as api:
        await api.create("/api/v1/nodes", node("n1"))
        watch = await api.watch(f"{PODS}?watch=true")
        large = pod("large")
        large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "99"}, "limits": {"cpu": "99"}}
        await api.create(PODS, large)
        while not (await watch.event())["object"]["status"].get("conditions"):
            pass
        answered = await api.ask("GET", "/metrics")
        assert "version=0.0.4" in answered.headers["content-type"]
        lines = answered.body.decode().splitlines()
        assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0' in lines
        assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in lines
        resources = (await api.ask("GET", "/metrics/resources")).body.decode().splitlines()
        of_pod = 'namespace="default",node="",pod="large",priority="0",resource="cpu"'
        labels = f'{of_pod},scheduler="default-scheduler",unit="cores"'
        for metric in ("request", "limit"):
            assert f"kube_pod_resource_{metric}{{{labels}}} 99.0" in resources


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"host": "127.0.0.1:8001"}, 200, id="an-address-of-loopback"),
        pytest.param({"host": "[::1]:8001"}, 200, id="and-of-version-6"),
        pytest.param({"host": "evil.example"}, 403, id="a-name-that-points-here"),
        pytest.param({"origin": "http://evil.example"}, 403, id="a-page-from-elsewhere"),
        pytest.param({"origin": "http://localhost:3000"}, 200, id="a-page-from-here"),
    ],
)
async def test_a_page_in_a_browser_cannot_ask_for_its_user(api: Asker, headers: dict[str, str], status: int) -> None:
    assert (await api.ask("GET", PODS, headers=headers)).status == status


# With a scheduler


async def test_two_schedulers_see_each_others_pods() -> None:
    """One scheduler is kschedd's; the other binds the pods with its scheduler name through the REST API."""
    async with asking(scheduler=True, controllers=without_parts(embedded_controllers(), {"controllers"})) as api:
        await api.create("/api/v1/nodes", node("n1"))
        theirs = {**pod("theirs"), "spec": {**pod("theirs")["spec"], "schedulerName": "other"}}
        theirs["spec"]["containers"][0] = {
            "name": "main",
            "image": "example/app",
            "resources": {"requests": {"cpu": "6"}},
        }
        await api.create(PODS, theirs)
        watch = await api.watch(f"{PODS}?watch=true&fieldSelector=metadata.name=ours")
        binding = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "theirs"}, "target": {"name": "n1"}}
        assert (await api.ask("POST", f"{PODS}/theirs/binding", binding)).status == 201
        ours = pod("ours")
        ours["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
        await api.create(PODS, ours)
        while True:
            status = (await watch.event())["object"]["status"]
            scheduled = [each for each in status.get("conditions") or () if each["type"] == "PodScheduled"]
            if scheduled:
                break
        assert scheduled[0]["reason"] == "Unschedulable"
        uid = (await api.get(f"{PODS}/ours"))["metadata"]["uid"]
        events = await api.get(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid={uid}")
        assert [event["reason"] for event in events["items"]] == ["FailedScheduling"]
        assert "Insufficient cpu" in scheduled[0]["message"]
        assert (await api.ask("DELETE", f"{PODS}/theirs?gracePeriodSeconds=0")).status == 200
        while "nodeName" not in (await watch.event())["object"]["spec"]:
            pass


async def test_what_an_answer_says_is_json(api: Asker) -> None:
    answered = await api.ask("GET", PODS)
    assert answered.headers["content-type"] == JSON


async def test_an_order_of_elements_that_are_none_is_refused(api: Asker) -> None:
    await api.create(PODS, pod("a"))
    order = {"spec": {"$setElementOrder/containers": [5]}}
    answered = await api.ask("PATCH", f"{PODS}/a", order, content_type="application/strategic-merge-patch+json")
    assert (answered.status, answered.json["reason"]) == (422, "Invalid")


AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        *(
            pytest.param(f"{review}", {"spec": 5}, "Go struct field ", id=review.rpartition("/")[2])
            for review in (
                f"{AUTHORIZATION}/selfsubjectaccessreviews",
                f"{AUTHORIZATION}/subjectaccessreviews",
                f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews",
                f"{AUTHORIZATION}/selfsubjectrulesreviews",
                f"{AUTHENTICATION}/tokenreviews",
                f"{ACCOUNTS}/sa/token",
            )
        ),
        pytest.param(
            f"{AUTHORIZATION}/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": 5}}},
            'SelfSubjectAccessReview in version "v1" cannot be handled as a SelfSubjectAccessReview: json: cannot '
            "unmarshal number into Go struct field ResourceAttributes.spec.resourceAttributes.verb of type string",
            id="a-verb-that-is-no-text",
        ),
        pytest.param(
            f"{ACCOUNTS}/sa/token",
            {"spec": {"expirationSeconds": "x"}},
            'TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal string into Go '
            "struct field TokenRequestSpec.spec.expirationSeconds of type int64",
            id="a-lifetime-that-is-no-number",
        ),
    ],
)
async def test_a_review_or_token_request_of_wrong_types_is_refused(
    api: Asker, path: str, body: dict[str, Any], words: str
) -> None:
    await api.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    answer = await api.ask("POST", path, body)
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert words in answer.json["message"]


@pytest.mark.parametrize(
    ("seconds", "why"), [(599, "less than 10 minutes"), (-5, "less than 10 minutes"), (2**32 + 1, "larger than 2^32")]
)
async def test_a_token_lasts_ten_minutes_at_least(api: Asker, seconds: int, why: str) -> None:
    await api.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    answer = await api.ask("POST", f"{ACCOUNTS}/sa/token", {"spec": {"expirationSeconds": seconds}})
    assert answer.status == 422
    assert answer.json["message"].startswith(
        f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: {seconds}: may not '
        f"specify a duration {why}"
    )


@pytest.mark.parametrize("spec", [5, "x", True, 1.5, []])
async def test_a_kind_that_is_only_kept_has_a_spec_of_its_own_type(api: Asker, spec: Any) -> None:
    path = "/apis/networking.k8s.io/v1/ingressclasses"
    made = await api.ask("POST", path, {"metadata": {"name": "a"}, "spec": spec})
    assert (made.status, made.json["reason"]) == (400, "BadRequest")
    assert "IngressClass.spec of type v1.IngressClassSpec" in made.json["message"]


async def _with_widgets(api: Asker, definition: dict[str, Any] = CRD) -> None:
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)


async def test_metadata_of_a_custom_resource_has_the_fields_of_metadata_and_no_others(api: Asker) -> None:
    await _with_widgets(api)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "size": {"a": 1}}}
    answer = await api.ask("POST", WIDGETS, widget)
    assert answer.status == 201
    assert "size" not in answer.json["metadata"]
    assert answer.headers["warning"] == '299 - "unknown field \\"metadata.size\\""'
    assert (await api.ask("POST", f"{WIDGETS}?fieldValidation=Strict", widget)).status == 400


@pytest.mark.parametrize("patch", [{"spec": 5}, {"metadata": "x"}, {"spec": {"replicas": "x"}}])
async def test_a_patch_that_leaves_no_scale_is_refused(api: Asker, patch: Any) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    answer = await api.ask("PATCH", f"{DEPLOYMENTS}/web/scale", patch, content_type=MERGE)
    assert answer.status == 422
    assert "json: cannot unmarshal" in answer.json["message"]


SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
CLOSED = {
    **CRD,
    "spec": {**CRD["spec"], "versions": [{**CRD["spec"]["versions"][0], "schema": {"openAPIV3Schema": SCHEMA}}]},
}


async def test_fields_that_a_definition_does_not_know_are_refused_or_warned_of(api: Asker) -> None:
    await _with_widgets(api, CLOSED)
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 1, "siez": 2},
    }
    refused = await api.ask("POST", f"{WIDGETS}?fieldValidation=Strict", widget)
    assert (refused.status, refused.json["reason"]) == (400, "BadRequest")
    why = 'strict decoding error: unknown field "spec.siez"'
    assert refused.json["message"] == f'Widget in version "v1" cannot be handled as a Widget: {why}'
    made = await api.ask("POST", WIDGETS, widget)
    assert made.json["spec"] == {"size": 1}
    assert made.headers["warning"] == '299 - "unknown field \\"spec.siez\\""'
    assert "warning" not in (await api.ask("PUT", f"{WIDGETS}/w?fieldValidation=Ignore", made.json)).headers
    for validation, status in (("Strict", 422), ("Warn", 200)):
        target = f"{WIDGETS}/w?fieldValidation={validation}"
        answer = await api.ask("PATCH", target, {"spec": {"siez": 2}}, content_type=MERGE)
        assert answer.status == status
        assert 'unknown field "spec.siez"' in (answer.json["message"] if status == 422 else "") + str(
            answer.headers.get("warning")
        ).replace("\\", "")


async def test_what_a_definition_does_not_know_any_more_is_not_held_against_a_patch(api: Asker) -> None:
    await _with_widgets(api)
    await api.create(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 1, "old": 2}})
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    assert (await api.ask("PATCH", definition, {"spec": CLOSED["spec"]}, content_type=MERGE)).status == 200
    answer = await api.ask("PATCH", f"{WIDGETS}/w?fieldValidation=Strict", {"spec": {"size": 3}}, content_type=MERGE)
    assert (answer.status, answer.json["spec"]) == (200, {"size": 3})


async def test_the_last_objects_of_a_definition_can_be_let_go_while_it_waits_for_them(api: Asker) -> None:
    await _with_widgets(api)
    await api.create(WIDGETS, {"metadata": {"name": "w", "finalizers": ["example.com/f"]}})
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    assert (await api.ask("DELETE", definition)).status == 200
    assert "deletionTimestamp" in (await api.get(f"{WIDGETS}/w"))["metadata"]
    refused = await api.ask("POST", WIDGETS, {"metadata": {"name": "x"}})
    assert (refused.status, refused.json["reason"]) == (405, "MethodNotAllowed")
    assert refused.json["message"] == "create not allowed while custom resource definition is terminating"
    freed = await api.ask("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert freed.status == 200
    assert (await api.ask("GET", definition)).status == 404


async def test_objects_of_a_definition_are_selected_by_the_fields_that_it_names(api: Asker) -> None:
    version = {**CLOSED["spec"]["versions"][0], "selectableFields": [{"jsonPath": ".spec.size"}]}
    await _with_widgets(api, {**CLOSED, "spec": {**CLOSED["spec"], "versions": [version]}})
    for size in (1, 2):
        await api.create(WIDGETS, {"metadata": {"name": f"w{size}"}, "spec": {"size": size}})
    found = await api.get(f"{WIDGETS}?fieldSelector=spec.size=2")
    assert [item["metadata"]["name"] for item in found["items"]] == ["w2"]
    for watching in ("", "&watch=true"):
        refused = await api.ask("GET", f"{WIDGETS}?fieldSelector=spec.color=red{watching}")
        assert (refused.status, refused.json["message"]) == (400, "field label not supported: spec.color")


async def test_a_list_waits_for_a_place_among_those_of_all_clients(api: Asker) -> None:
    shares = api.face.services.shares
    for other in range(4):
        await shares.large.acquire(f"socket {other}")
    answers = []

    async def ask() -> None:
        answers.append(await api.ask("GET", PODS))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert (shares.large.waiting, answers) == (1, [])
        shares.large.release("socket 0")
    assert [answer.status for answer in answers] == [200]
