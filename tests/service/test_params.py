from typing import Any

import pytest

from kschedd.api.text.similar import similar_names
from kschedd.service.errors import BadParamsError
from kschedd.service.params import Param, bind

GET = (
    Param("kind", "string", doc="which kind"),
    Param("namespace", "string", required=False, default="default"),
    Param("output", "string", required=False, choices=("json", "yaml")),
    Param("limit", "integer", required=False, default=500),
)
APPLY = (Param("manifests", "map|map[]"), Param("atomic", "boolean", required=False, default=False))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(["Pod"], id="by-position"),
        pytest.param([{"kind": "Pod"}], id="by-name"),
        pytest.param(["Pod", "default", None, None], id="null-means-not-given"),
        pytest.param([{"kind": "Pod", "limit": None}], id="null-by-name-too"),
    ],
)
def test_parameters_by_position_or_by_name(given: list[Any]) -> None:
    assert bind("get", GET, given) == {"kind": "Pod", "namespace": "default", "output": None, "limit": 500}


@pytest.mark.parametrize(
    ("given", "manifests"),
    [
        pytest.param([{"manifests": {"kind": "Pod"}}], {"kind": "Pod"}, id="a-map-of-parameter-names-is-names"),
        pytest.param([{"kind": "Pod"}], {"kind": "Pod"}, id="any-other-map-is-the-first-parameter"),
        pytest.param(
            [{"manifests": {"kind": "Pod"}}, True], {"manifests": {"kind": "Pod"}}, id="not-alone-is-position"
        ),
        pytest.param([[{"kind": "Pod"}]], [{"kind": "Pod"}], id="array-of-maps"),
    ],
)
def test_a_map_alone_where_the_first_parameter_may_be_one(given: list[Any], manifests: Any) -> None:
    assert bind("apply", APPLY, given)["manifests"] == manifests


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param([], 'get: "kind" (parameter 1): got nothing, allowed: string', id="missing"),
        pytest.param([{}], 'get: "kind" (parameter 1): got nothing, allowed: string', id="missing-by-name"),
        pytest.param([5], 'get: "kind" (parameter 1): got integer 5, allowed: string', id="wrong-type"),
        pytest.param([None], 'get: "kind" (parameter 1): got null, allowed: string', id="null-where-required"),
        pytest.param(
            [{"kind": True}], 'get: "kind" (parameter 1): got boolean true, allowed: string', id="wrong-type-by-name"
        ),
        pytest.param(
            ["Pod", "a", "toml"],
            'get: "output" (parameter 3): got string "toml", allowed: string: "json", "yaml"',
            id="not-among-the-choices",
        ),
        pytest.param(
            ["Pod", "a", "json", True],
            'get: "limit" (parameter 4): got boolean true, allowed: integer',
            id="a-boolean-is-no-integer",
        ),
        pytest.param(
            ["Pod", "a", "json", 1, 2],
            "get: parameter after the first 4: got 1 more, allowed: kind, namespace, output, limit",
            id="too-many",
        ),
        pytest.param(
            [{"kind": "Pod", "namspace": "a"}],
            'get: "namspace": got a parameter of no such name, allowed: kind, namespace, output, limit '
            '(did you mean "namespace"?)',
            id="unknown-name",
        ),
        pytest.param(
            [{"limit": "x", "output": 1}],
            'get: "kind" (parameter 1): got nothing, allowed: string; '
            '"output" (parameter 3): got integer 1, allowed: string: "json", "yaml"; '
            '"limit" (parameter 4): got string "x", allowed: integer',
            id="all-faults-at-once",
        ),
    ],
)
def test_what_is_wrong_is_said(given: list[Any], message: str) -> None:
    with pytest.raises(BadParamsError) as caught:
        bind("get", GET, given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("type_name", "good", "bad"),
    [
        ("any", [None, 1, "x", {}], []),
        ("array", [[], [1]], ["x", {}]),
        ("boolean", [True], [1, 0, "true"]),
        ("bytes", [b""], ["x"]),
        ("integer", [1, -5], [1.0, True, "1"]),
        ("number", [1, 1.5], [True, "1"]),
        ("string", ["", "x"], [b"x", 1]),
        ("string[]", [[], ["a"]], ["a", [1], ["a", None]]),
        ("string|map", ["a", {}], [[], 1]),
        ("integer|null", [1, None], ["a"]),
    ],
)
def test_types(type_name: str, good: list[Any], bad: list[Any]) -> None:
    param = Param("p", type_name)
    assert [value for value in good if not param.allows(value)] == []
    assert [value for value in bad if param.allows(value)] == []


def test_an_element_of_the_wrong_type_is_pointed_at() -> None:
    with pytest.raises(BadParamsError, match="got array with integer 3 at index 1, allowed: string\\[\\]"):
        bind("m", (Param("names", "string[]"),), [["a", 3]])


def test_choices_of_an_array_hold_for_each_element() -> None:
    param = Param("verbs", "string[]", choices=("get", "list"))
    assert param.allows(["get", "list"])
    assert not param.allows(["get", "drop"])


def test_a_type_that_is_none_is_refused_where_the_table_is_made() -> None:
    with pytest.raises(ValueError, match='"strng" is no parameter type'):
        Param("p", "strng")


def test_near_names_ignore_case() -> None:
    assert similar_names("GetPods", ["getpods", "apply"]) == ("getpods",)
    assert similar_names("zzz", ["getpods", "apply"]) == ()
