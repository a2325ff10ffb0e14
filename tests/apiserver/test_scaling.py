"""Tests of the scale subresource of custom resources; for workloads, see the conversations."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.apiserver.asking import JSON, MERGE, TABLE, Asker, asking
from tests.store.definitions import definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SCALE = f"{WIDGETS}/w/scale"
PATHS = {
    "specReplicasPath": ".spec.pool.size",
    "statusReplicasPath": ".status.pool.size",
    "labelSelectorPath": ".status.pool.selector",
}


@pytest.fixture
async def api() -> AsyncIterator[Asker]:
    async with asking() as asker:
        yield asker


def scaled_definition(paths: dict[str, str] = PATHS) -> dict[str, Any]:
    made = copy.deepcopy(definition())
    for version in made["spec"]["versions"]:
        version["subresources"] = {"scale": paths}
    return made


def widget(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, **parts}


async def with_widget(api: Asker, **parts: Any) -> dict[str, Any]:
    await api.create(DEFINITIONS, scaled_definition())
    return await api.create(WIDGETS, widget(**parts))


async def test_the_parts_are_where_the_definition_says(api: Asker) -> None:
    await with_widget(
        api,
        spec={"pool": {"size": 3}, "replicas": 7},
        status={"pool": {"size": 2, "selector": "a=b"}},
    )
    found = await api.get(SCALE)
    assert found["spec"] == {"replicas": 3}
    assert found["status"] == {"replicas": 2, "selector": "a=b"}
    assert (await api.get(SCALE, accept=TABLE))["rows"][0]["cells"][:3] == ["w", 3, 2]


@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
async def test_a_write_changes_that_field_and_is_noted_for_it(api: Asker, verb: str) -> None:
    made = await with_widget(api, spec={"pool": {"size": 3}, "replicas": 7})
    if verb == "PUT":
        wanted = {**await api.get(SCALE), "spec": {"replicas": 5}}
        answer = await api.ask("PUT", f"{SCALE}?fieldManager=me", wanted)
    else:
        answer = await api.ask("PATCH", f"{SCALE}?fieldManager=me", {"spec": {"replicas": 5}}, content_type=MERGE)
    assert (answer.status, answer.json["spec"]) == (200, {"replicas": 5})
    now = await api.get(f"{WIDGETS}/w")
    assert now["spec"] == {"pool": {"size": 5}, "replicas": 7}
    assert now["metadata"]["generation"] == made["metadata"]["generation"] + 1
    entry = next(entry for entry in now["metadata"]["managedFields"] if entry["manager"] == "me")
    assert entry["subresource"] == "scale"
    assert entry["fieldsV1"] == {"f:spec": {"f:pool": {"f:size": {}}}}


async def test_an_apply_owns_that_field(api: Asker) -> None:
    await with_widget(api, spec={"pool": {"size": 3}})
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": 4}}
    answer = await api.ask(
        "PATCH", f"{SCALE}?fieldManager=me&force=true", scale, content_type="application/apply-patch+yaml"
    )
    assert (answer.status, answer.json["spec"]) == (200, {"replicas": 4})
    entries = (await api.get(f"{WIDGETS}/w"))["metadata"]["managedFields"]
    assert [(each["operation"], each["fieldsV1"]) for each in entries if each["manager"] == "me"] == [
        ("Apply", {"f:spec": {"f:pool": {"f:size": {}}}})
    ]


async def test_replicas_that_are_not_there_are_an_internal_error_until_somebody_sets_them(api: Asker) -> None:
    await with_widget(api, spec={})
    answer = await api.ask("GET", SCALE)
    why = 'the spec replicas field ".spec.pool.size" does not exist'
    assert (answer.status, answer.json["reason"]) == (500, "InternalError")
    assert answer.json["message"] == f"Internal error occurred: {why}"
    assert answer.json["details"] == {"causes": [{"message": why}]}
    empty = await api.ask("PATCH", SCALE, {"metadata": {}}, content_type=MERGE)
    assert (empty.status, empty.json["message"]) == (400, 'the spec replicas field ".spec.pool.size" cannot be empty')
    answer = await api.ask("PATCH", SCALE, {"spec": {"replicas": 2}}, content_type=MERGE)
    assert (answer.status, answer.json["spec"]) == (200, {"replicas": 2})


async def test_too_few_replicas_are_a_fault_of_the_object(api: Asker) -> None:
    await with_widget(api, spec={"pool": {"size": 3}})
    answer = await api.ask("PATCH", SCALE, {"spec": {"replicas": -1}}, content_type=MERGE)
    assert answer.status == 422
    assert answer.json["message"] == (
        'Widget.example.com "w" is invalid: .spec.pool.size: Invalid value: -1: should be a non-negative integer'
    )


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        (
            {"spec": {"pool": {"size": "x"}}},
            ".spec.pool.size: Invalid value: 0: .spec.pool.size accessor error: x is of the type string, "
            "expected int64",
        ),
        (
            {"spec": {"pool": 5}},
            ".spec.pool.size: Invalid value: 0: .spec.pool.size accessor error: 5 is of the type int64, "
            "expected map[string]interface{}",
        ),
        (
            {"spec": {"pool": {"size": 2**31}}},
            ".spec.pool.size: Invalid value: 2147483648: should be less than or equal to 2147483647",
        ),
        (
            {"spec": {}, "status": {"pool": {"selector": {"a": "b"}}}},
            '.status.pool.selector: Invalid value: "": .status.pool.selector accessor error: map[a:b] is of the type '
            "map[string]interface {}, expected string",
        ),
    ],
)
async def test_an_object_that_can_have_no_scale_is_refused(api: Asker, parts: dict[str, Any], fault: str) -> None:
    await api.create(DEFINITIONS, scaled_definition())
    answer = await api.ask("POST", WIDGETS, widget(**parts), content_type=JSON)
    assert answer.status == 422
    assert answer.json["message"] == f'Widget.example.com "w" is invalid: {fault}'


async def test_objects_from_before_the_definition_gave_them_a_scale(api: Asker) -> None:
    plain = definition()
    await api.create(DEFINITIONS, plain)
    await api.create(WIDGETS, widget(spec={"pool": {"size": "many"}}))
    versions = scaled_definition()["spec"]["versions"]
    path = f"{DEFINITIONS}/{plain['metadata']['name']}"
    assert (await api.ask("PATCH", path, {"spec": {"versions": versions}}, content_type=MERGE)).status == 200
    answer = await api.ask("GET", SCALE)
    assert answer.status == 500
    assert answer.json["message"] == ".spec.pool.size accessor error: many is of the type string, expected int64"


@pytest.mark.parametrize(
    ("paths", "faults"),
    [
        ({}, ["specReplicasPath: Required value", "statusReplicasPath: Required value"]),
        (
            {**PATHS, "specReplicasPath": "spec.size"},
            ['specReplicasPath: Invalid value: "spec.size": must be a simple json path starting with .'],
        ),
        (
            {**PATHS, "specReplicasPath": ".status.size"},
            ['specReplicasPath: Invalid value: ".status.size": should be a json path under .spec'],
        ),
        (
            {**PATHS, "statusReplicasPath": ".spec.size"},
            ['statusReplicasPath: Invalid value: ".spec.size": should be a json path under .status'],
        ),
        (
            {**PATHS, "labelSelectorPath": ".metadata.labels"},
            [
                'labelSelectorPath: Invalid value: ".metadata.labels": should be a json path under either .spec or '
                ".status"
            ],
        ),
    ],
)
async def test_paths_that_a_scale_cannot_have(api: Asker, paths: dict[str, str], faults: list[str]) -> None:
    answer = await api.ask("POST", DEFINITIONS, scaled_definition(paths))
    assert answer.status == 422
    found = [f"{cause['field'].rpartition('.')[2]}: {cause['message']}" for cause in answer.json["details"]["causes"]]
    assert found == faults
    assert answer.json["details"]["causes"][0]["field"].startswith("spec.subresources.scale.")


async def test_a_scale_of_an_object_that_is_there_no_more_does_not_change_its_successor(api: Asker) -> None:
    await with_widget(api, spec={"pool": {"size": 3}})
    scale = await api.get(SCALE)
    await api.ask("DELETE", f"{WIDGETS}/w")
    await api.create(WIDGETS, widget(spec={"pool": {"size": 3}}))
    scale["metadata"].pop("resourceVersion")
    refused = await api.ask("PUT", SCALE, {**scale, "spec": {"replicas": 0}})
    assert (refused.status, refused.json["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in refused.json["message"]
    assert (await api.get(SCALE))["spec"] == {"replicas": 3}


async def test_a_version_that_is_none_is_no_conflict(api: Asker) -> None:
    await with_widget(api, spec={"pool": {"size": 3}})
    scale = await api.get(SCALE)
    scale["metadata"]["resourceVersion"] = "abc"
    refused = await api.ask("PUT", SCALE, scale)
    assert (refused.status, refused.json["message"]) == (500, 'strconv.ParseUint: parsing "abc": invalid syntax')
