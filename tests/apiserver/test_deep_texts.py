"""Tests of JSON texts that are nested too deeply, or contain numbers beyond the range of floats."""

import json
from typing import Any

import pytest

from kschedd.dumps.dumped_condition import ANNOTATION, dumped_condition
from kschedd.plugins.older.nodepreferavoidpods import avoided
from kschedd.store.patches.apply import applied
from kschedd.store.patches.merging import LAST_APPLIED
from kschedd.store.store import Store
from tests.apiserver.asking import asking, node, pod

DEEP = [
    pytest.param("[" * 50_000, id="without-end"),
    pytest.param("[" * 5_000 + "]" * 5_000, id="more-than-python-reads"),
    pytest.param("[" * 800 + "]" * 800, id="more-than-an-object-has"),
    pytest.param("[" + "9" * 5_000 + "]", id="a-long-number"),
]
HUGE = "1" + "0" * 400


def config_map(**meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **meta}, "data": {"a": "b"}}


@pytest.mark.parametrize("text", DEEP)
async def test_deep_texts_in_managed_fields_and_annotations_are_no_bug(text: str) -> None:
    async with asking() as client:
        space = "/api/v1/namespaces/default/configmaps"
        made = await client.ask("POST", space, config_map(annotations={LAST_APPLIED: text}))
        assert made.status == 201
        for step in (f"v:{text}", f"k:{text}", f'k:{{"a":{text}}}'):
            entry = {
                "manager": "m",
                "operation": "Update",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {step: {}}},
            }
            answered = await client.ask("PUT", f"{space}/a", config_map(managedFields=[entry]))
            assert answered.status == 200, step[:10]


@pytest.mark.parametrize("text", DEEP)
async def test_deep_texts_in_annotations_of_nodes_and_namespaces_are_refused(text: str) -> None:
    async with asking() as client:
        for name in ("scheduler.alpha.kubernetes.io/preferAvoidPods", "scheduler.alpha.kubernetes.io/taints"):
            odd = node("n1")
            odd["metadata"]["annotations"] = {name: text}
            answered = await client.ask("POST", "/api/v1/nodes", odd)
            assert answered.status < 500
        assert avoided(text) == frozenset()


async def test_a_deep_token_to_go_on_from_is_refused() -> None:
    async with asking() as client:
        answered = await client.ask("GET", "/api/v1/pods?limit=1&continue=" + "W1tb" * 10_000)
        assert answered.status == 400
        assert "invalid continue token" in answered.json["message"]


@pytest.mark.parametrize("text", DEEP)
def test_what_was_applied_last_and_cannot_be_read_counts_for_nothing(text: str) -> None:
    store = Store(now=lambda: 0.0)
    live = store.create({**config_map(annotations={LAST_APPLIED: text}), "kind": "ConfigMap"})
    assert applied(live, config_map() | {"data": {"c": "d"}})["data"] == {"a": "b", "c": "d"}


@pytest.mark.parametrize(
    "kept",
    [
        *[pytest.param(param.values[0], id=param.id) for param in DEEP],
        pytest.param(f'{{"reason":"r","message":"m","since":{HUGE},"dumped":1}}', id="since-ever"),
        pytest.param(f'{{"reason":"r","message":"m","since":1,"dumped":{HUGE}}}', id="dumped-never"),
        pytest.param('{"reason":"r","message":"m","since":NaN,"dumped":1}', id="no-number"),
        pytest.param('{"reason":"r","message":"m","since":1,"dumped":Infinity}', id="infinity"),
    ],
)
def test_a_dumped_condition_that_somebody_has_changed_to_nonsense_is_none(kept: str) -> None:
    store = Store(now=lambda: 0.0)
    made: Any = store.create({**pod("a", annotations={ANNOTATION: kept}), "kind": "Pod"})
    assert dumped_condition(made) is None
    good = json.dumps({"reason": "r", "message": "m", "since": 1, "dumped": None})
    there: Any = store.create({**pod("b", annotations={ANNOTATION: good}), "kind": "Pod"})
    assert dumped_condition(there) is not None
