"""Tests of lists and directives in strategic merge patches."""

from collections.abc import Iterable
from typing import Any

import pytest

from kschedd.api.schemas.schema import type_named
from kschedd.store.errors import BadPatch
from kschedd.store.patches.strategic_merge import strategic_merge

POD_SPEC = type_named("PodSpec")
META = type_named("meta.ObjectMeta")
DEPLOYMENT_SPEC = type_named("apps.v1.DeploymentSpec")


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def spec(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"containers": list(containers), **fields}


A, B, C = (container(name, image=f"{name}:1", resources={"requests": {"cpu": "1"}}) for name in "abc")


def test_a_container_keeps_what_the_patch_does_not_name() -> None:
    patched = strategic_merge(spec(A, B), spec(container("b", image="b:2")), POD_SPEC)
    assert patched == spec(A, {**B, "image": "b:2"})


def test_what_was_there_stays_as_it_is() -> None:
    live = spec(A, B)
    strategic_merge(live, spec(container("a", resources=None)), POD_SPEC)
    assert live == spec(A, B)
    assert A["resources"] == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("live", "patch", "schema", "wanted"),
    [
        pytest.param(spec(A), spec(container("n", image="n")), POD_SPEC, ["n", "a"], id="a-new-item-comes-first"),
        pytest.param(spec(A, B, C), spec(container("b", **{"$patch": "delete"})), POD_SPEC, ["a", "c"], id="deleted"),
        pytest.param(spec(A, B), spec(C, {"$patch": "replace"}), POD_SPEC, ["c"], id="replaced"),
        pytest.param(
            spec(A, B, C),
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}]},
            POD_SPEC,
            ["c", "a", "b"],
            id="put-in-order",
        ),
        pytest.param(
            spec(A, B, C),
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], **spec(container("c", image="x"))},
            POD_SPEC,
            ["b", "c", "a"],
            id="those-the-order-leaves-out-keep-their-place",
        ),
    ],
)
def test_items_of_a_list(live: dict[str, Any], patch: dict[str, Any], schema: Any, wanted: list[str]) -> None:
    patched = strategic_merge(live, patch, schema)
    assert [each["name"] for each in patched["containers"]] == wanted


@pytest.mark.parametrize(
    ("live", "patch", "wanted"),
    [
        pytest.param({"finalizers": ["x/a"]}, {"finalizers": ["x/b"]}, ["x/b", "x/a"], id="a-set-grows"),
        pytest.param(
            {"finalizers": ["x/a", "x/b"]},
            {"$deleteFromPrimitiveList/finalizers": ["x/a"]},
            ["x/b"],
            id="shrinks",
        ),
        pytest.param({"finalizers": ["x/a"]}, {"finalizers": None}, None, id="a-set-goes"),
    ],
)
def test_lists_of_plain_values(live: dict[str, Any], patch: dict[str, Any], wanted: list[str] | None) -> None:
    assert strategic_merge(live, patch, META).get("finalizers") == wanted


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        pytest.param({"nodeSelector": {"$patch": "replace", "b": "2"}}, {"b": "2"}, id="replaced"),
        pytest.param({"nodeSelector": {"$patch": "delete"}}, {}, id="emptied"),
        pytest.param({"nodeSelector": {"b": "2"}}, {"a": "1", "b": "2"}, id="merged"),
        pytest.param({"nodeSelector": {"a": None}}, {}, id="null-takes-away"),
    ],
)
def test_maps(patch: dict[str, Any], wanted: dict[str, str]) -> None:
    assert strategic_merge({"nodeSelector": {"a": "1"}}, patch, POD_SPEC)["nodeSelector"] == wanted


def test_lists_that_have_no_key_are_set_as_a_whole() -> None:
    live = {"tolerations": [{"key": "a"}, {"key": "b"}]}
    assert strategic_merge(live, {"tolerations": [{"key": "c"}]}, POD_SPEC) == {"tolerations": [{"key": "c"}]}


class Counted(str):
    """A text that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def _counted(numbers: Iterable[int]) -> list[Counted]:
    return [Counted(f"x{number}") for number in numbers]


def _named(numbers: Iterable[int], **fields: Any) -> list[dict[str, Any]]:
    return [container(name, **fields) for name in _counted(numbers)]


@pytest.mark.parametrize(
    ("live", "patch", "schema"),
    [
        pytest.param(
            {"containers": _named(range(2_000))},
            {"$setElementOrder/containers": _named(reversed(range(2_000)))},
            POD_SPEC,
            id="order",
        ),
        pytest.param(
            {"containers": _named(range(2_000))}, {"containers": _named(range(2_000), image="i")}, POD_SPEC, id="items"
        ),
        pytest.param(
            {"containers": _named(range(2_000))},
            {"containers": _named(range(2_000), **{"$patch": "delete"})},
            POD_SPEC,
            id="deleted-items",
        ),
        pytest.param(
            {"finalizers": _counted(range(2_000))}, {"finalizers": _counted(range(1_000, 3_000))}, META, id="set"
        ),
        pytest.param(
            {"finalizers": _counted(range(2_000))},
            {"$deleteFromPrimitiveList/finalizers": _counted(range(2_000))},
            META,
            id="deleted-values",
        ),
    ],
)
def test_the_work_grows_with_the_lists_and_not_with_their_square(
    live: dict[str, Any], patch: dict[str, Any], schema: Any
) -> None:
    Counted.compared = 0
    strategic_merge(live, patch, schema)
    assert Counted.compared < 20 * 4_000


def test_a_duplicate_is_overwritten_by_the_last_value() -> None:
    live, patch = {"finalizers": ["a", "b", "a", "c"]}, {"finalizers": ["b", "d", "a"]}
    assert strategic_merge(live, patch, META)["finalizers"] == ["b", "d", "a", "c"]


def test_an_item_whose_key_is_null_is_added_without_it() -> None:
    merged = strategic_merge(spec(A), spec({"name": None, "image": "x"}), POD_SPEC)
    assert merged["containers"] == [{"image": "x"}, A]


def test_only_the_retained_keys_stay() -> None:
    live = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert strategic_merge(live, patch, DEPLOYMENT_SPEC) == {"strategy": {"type": "Recreate"}}


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        pytest.param(
            spec({"image": "x"}), "map: map[image:x] does not contain declared merge key: name", id="item-without-key"
        ),
        pytest.param({"nodeSelector": {"$patch": "x"}}, "unknown patch type: x in map: map[$patch:x]", id="directive"),
        pytest.param({"$retainKeys": "a"}, "invalid patch format of retainKeys", id="retain-keys"),
        pytest.param({"$setElementOrder": []}, "invalid patch format of setElementOrder list", id="order-of-nothing"),
        pytest.param(
            {"$setElementOrder/containers": [{"name": "b"}], **spec(container("a"))},
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
            id="item-missing-in-the-order",
        ),
        pytest.param(spec("a"), "list element types are not identical: ", id="mixed-items"),
    ],
)
def test_a_patch_that_is_none_is_refused_in_upstreams_words(patch: dict[str, Any], why: str) -> None:
    with pytest.raises(BadPatch) as refusal:
        strategic_merge(spec(A, nodeSelector={"a": "1"}), patch, POD_SPEC)
    assert str(refusal.value).startswith(why)
