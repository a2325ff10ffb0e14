"""Tests of JSON patches: the operations of RFC 6902, and the API server's deviations from it."""

from typing import Any

import pytest

from kschedd.store.errors import BadPatch
from kschedd.store.patches.json_patch import MOST_COPIED, json_patch, unknown_members

LIVE = {"labels": {"app": "web", "a/b": "1"}, "list": ["x", "y"], "none": None}


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("operation", "at", "wanted"),
    [
        pytest.param(op("add", "/labels/tier", value="db"), "labels", {**LIVE["labels"], "tier": "db"}, id="add"),
        pytest.param(op("add", "/list/1", value="n"), "list", ["x", "n", "y"], id="insert"),
        pytest.param(op("add", "/list/-", value="n"), "list", ["x", "y", "n"], id="append"),
        pytest.param(op("add", "/labels/a~1b", value="2"), "labels", {"app": "web", "a/b": "2"}, id="escaped"),
        pytest.param(op("remove", "/list/0"), "list", ["y"], id="remove"),
        pytest.param(op("remove", "/list/-1"), "list", ["x"], id="negative-index"),
        pytest.param(op("replace", "/list/01", value="n"), "list", ["x", "n"], id="index-with-a-zero"),
        pytest.param(op("replace", "/labels/new", value="n"), "labels", {**LIVE["labels"], "new": "n"}, id="set"),
        pytest.param(op("move", "/moved", **{"from": "/labels/app"}), "moved", "web", id="move"),
        pytest.param(op("copy", "/copied", **{"from": "/list"}), "copied", ["x", "y"], id="copy"),
        pytest.param(op("test", "/labels", value={"a/b": "1", "app": "web"}), "labels", LIVE["labels"], id="test"),
        pytest.param(op("test", "/nope", value=None), "list", ["x", "y"], id="missing-is-null"),
        pytest.param(op("replace", "", value="x"), "list", ["x", "y"], id="a-scalar-replaces-nothing"),
    ],
)
def test_an_operation(operation: dict[str, Any], at: str, wanted: Any) -> None:
    assert json_patch(LIVE, [operation])[at] == wanted
    assert LIVE["list"] == ["x", "y"]


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        pytest.param(op("remove", "/labels/nope"), "the path does not exist", id="remove-what-is-not-there"),
        pytest.param(op("replace", "/nope/deeper", value=1), '"nope" in the path is not a map or list', id="no-way"),
        pytest.param(
            op("add", "/list/3", value=1), "index 3 is out of range; the list has 3 items", id="beyond-the-end"
        ),
        pytest.param(op("add", "/list/x", value=1), '"x" is not a list index', id="no-index"),
        pytest.param(op("test", "/labels/app", value="db"), "the value differs", id="test-fails"),
        pytest.param(op("test", "/labels/app", value=True), "the value differs", id="test-of-another-type"),
        pytest.param(op("move", "/x"), "from is missing", id="move-from-nowhere"),
        pytest.param(op("frob", "/x"), "unknown operation 'frob'", id="unknown-operation"),
        pytest.param(op("remove", ""), 'the path must begin with "/" and name a member', id="remove-all"),
    ],
)
def test_an_operation_that_does_not_apply(operation: dict[str, Any], why: str) -> None:
    with pytest.raises(BadPatch) as refusal:
        json_patch(LIVE, [op("test", "/list/0", value="x"), operation])
    rejected = "the server rejected our request due to an error in our request"
    assert str(refusal.value) == f"{rejected}: [1] {operation['op']} {operation['path']}: {why}"


def test_all_or_nothing() -> None:
    with pytest.raises(BadPatch):
        json_patch(LIVE, [op("remove", "/list"), op("remove", "/list")])
    assert LIVE["list"] == ["x", "y"]


def test_members_that_an_operation_does_not_have_are_named() -> None:
    assert unknown_members([op("add", "/x", value=1, extra=True)]) == ['json patch unknown field "[0].extra"']


def test_no_more_than_ten_thousand_operations() -> None:
    with pytest.raises(BadPatch, match="maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({}, [op("add", "/x", value=1)] * 10_001)


def nested(levels: int) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(op("add", "/deep" + "/a" * 59, value=nested(41)), id="add"),
        pytest.param(op("replace", "/deep" + "/a" * 60, value=nested(40)), id="replace"),
        pytest.param(op("copy", "/deep" + "/a" * 60, **{"from": "/deep"}), id="copy"),
        pytest.param(op("move", "/deep" + "/a" * 60, **{"from": "/other"}), id="move"),
        pytest.param(op("replace", "", value=nested(101)), id="whole"),
    ],
)
def test_no_patch_nests_deeper_than_a_manifest_may(operation: dict[str, Any]) -> None:
    live = {"deep": nested(60), "other": nested(40)}
    with pytest.raises(BadPatch, match="nested more than 100 levels deep"):
        json_patch(live, [operation])
    assert json_patch(live, [op("add", "/deep" + "/a" * 60, value=nested(39))])["deep"] == nested(99)


def test_copies_of_copies_are_bounded() -> None:
    doubling = [op("copy", "/list/-", **{"from": "/list"})] * 30
    with pytest.raises(BadPatch, match=rf"this patch copies \d+ bytes or more; at most {MOST_COPIED} bytes"):
        json_patch({"list": ["x" * 100]}, doubling)
