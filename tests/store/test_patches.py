from typing import Any

import pytest

from kschedd.api.schemas.schema import type_named
from kschedd.store.patches.merging import merge_patch, three_way


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="replaces"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null-takes-away"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="maps-merge"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists-are-replaced"),
        pytest.param({"a": 1}, {"b": {"c": None, "d": 1}}, {"a": 1, "b": {"d": 1}}, id="nulls-of-new-maps-vanish"),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="a-map-replaces-a-list"),
        pytest.param({"a": 1}, ["x"], ["x"], id="a-patch-that-is-no-map-replaces-all"),
    ],
)
def test_merge_patch_as_rfc_7386_has_it(target: Any, patch: Any, result: Any) -> None:
    before = repr(target)
    assert merge_patch(target, patch) == result
    assert repr(target) == before


@pytest.mark.parametrize(
    ("last", "wanted", "live", "result"),
    [
        pytest.param(
            {"a": 1, "b": 1}, {"a": 1}, {"a": 1, "b": 1, "c": 1}, {"a": 1, "c": 1}, id="once-ours-now-unnamed"
        ),
        pytest.param({}, {"a": 1}, {"a": 2}, {"a": 1}, id="ours-wins"),
        pytest.param({"m": {"x": 1}}, {"m": {"y": 2}}, {"m": {"x": 1, "z": 3}}, {"m": {"y": 2, "z": 3}}, id="deep"),
        pytest.param({"l": [1]}, {"l": [2]}, {"l": [1, 9]}, {"l": [2]}, id="plain-lists-are-replaced"),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "old"}]},
            {"containers": [{"name": "a", "image": "2"}]},
            {"containers": [{"name": "a", "image": "1", "x": 1}, {"name": "old"}, {"name": "injected"}]},
            {"containers": [{"name": "a", "image": "2", "x": 1}, {"name": "injected"}]},
            id="named-lists-merge-by-name",
        ),
        pytest.param({"a": 1}, {"a": None}, {"a": 1, "b": 2}, {"b": 2}, id="null-takes-away"),
    ],
)
def test_three_way_merge(last: Any, wanted: Any, live: Any, result: Any) -> None:
    assert three_way(last, wanted, live, type_named("PodSpec")) == result


@pytest.mark.parametrize(
    ("of", "field", "last", "wanted", "live", "result"),
    [
        pytest.param(
            "ServiceSpec",
            "ports",
            [{"port": 80}],
            [{"port": 80, "name": "http"}],
            [{"port": 80, "nodePort": 30000}],
            [{"port": 80, "nodePort": 30000, "name": "http"}],
            id="a-service's-ports-by-port",
        ),
        pytest.param(
            "meta.ObjectMeta",
            "finalizers",
            ["x/a"],
            ["x/b"],
            ["x/a", "x/z"],
            ["x/b", "x/z"],
            id="plain-values-as-a-set",
        ),
        pytest.param(
            "NodeSpec",
            "taints",
            [],
            [{"key": "a"}],
            [{"key": "a"}, {"key": "b"}],
            [{"key": "a"}],
            id="lists-without-a-key-as-a-whole",
        ),
    ],
)
def test_lists_merge_as_the_schema_says(of: str, field: str, last: Any, wanted: Any, live: Any, result: Any) -> None:
    assert three_way({field: last}, {field: wanted}, {field: live}, type_named(of)) == {field: result}
