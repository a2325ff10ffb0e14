"""Comparison of kschedd's schema with upstream's OpenAPI definitions from the package kubernetes-validate.

Both are converted to the same form, in which each type is a word ("string", "[int32]", "{quantity}"). They are compared
for every known kind and version. Recursive definitions are compared once for each pair of types.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import pytest

from kschedd.api.schemas.kinds import KINDS
from kschedd.api.schemas.schema import (
    ANY,
    BOOL,
    BYTES,
    INT,
    INT32,
    INT_OR_STR,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    STR,
    TIME,
    Fields,
    ListOf,
    MapOf,
    schema_of,
)

pytest.importorskip("kubernetes_validate", reason="upstream's schemas need kubernetes-validate (in the dev group)")

_LOCAL = "#/$defs/"
_MACHINERY = "io.k8s.apimachinery.pkg."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_WHOLE: Mapping[str, str] = {
    f"{_MACHINERY}api.resource.Quantity": QUANTITY,
    f"{_MACHINERY}util.intstr.IntOrString": INT_OR_STR,
    f"{_MACHINERY}apis.meta.v1.Time": TIME,
    f"{_MACHINERY}apis.meta.v1.MicroTime": MICRO_TIME,
    f"{_MACHINERY}apis.meta.v1.FieldsV1": ANY,
    f"{_MACHINERY}runtime.RawExtension": ANY,
    f"{_EXTENSIONS}JSON": ANY,
    # These have one of two types, which the OpenAPI definition leaves open.
    f"{_EXTENSIONS}JSONSchemaPropsOrBool": ANY,
    f"{_EXTENSIONS}JSONSchemaPropsOrArray": ANY,
    f"{_EXTENSIONS}JSONSchemaPropsOrStringArray": ANY,
}
_LEAVES: Mapping[tuple[str, str], str] = {
    ("string", ""): STR,
    ("string", "byte"): BYTES,
    ("string", "date-time"): TIME,
    ("integer", "int32"): INT32,
    ("integer", "int64"): INT,
    ("boolean", ""): BOOL,
    ("number", "double"): NUMBER,
    ("object", ""): ANY,
}


class Upstream:
    """The OpenAPI definitions of one release."""

    def __init__(self, version: str) -> None:
        file = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{version}-local" / "_definitions.json"
        self.definitions: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))["$defs"]
        self.of_kind = {
            (f"{of['group']}/{of['version']}".removeprefix("/"), of["kind"]): name
            for name, definition in self.definitions.items()
            for of in definition.get("x-kubernetes-group-version-kind", ())
        }

    def whole(self, schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the name of the definition to which a schema refers (or ""), and the definition."""
        name = schema.get("$ref", "").removeprefix(_LOCAL)
        return name, self.definitions[name] if name else schema


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return Upstream("1.34.0")


def differences(upstream: Upstream, ours: Any, theirs: Mapping[str, Any], path: str, seen: set[Any]) -> list[str]:
    name, answer = upstream.whole(theirs)
    if leaf := _WHOLE.get(name):
        return [] if ours == leaf else [f"{path}: upstream has {leaf}, we have {ours}"]
    if isinstance(ours, Fields):
        fields = answer.get("properties")
        if fields is None:
            return [f"{path}: upstream has no fields here, we have {ours.name}"]
        if (ours.name, name) in seen:
            return []
        seen.add((ours.name, name))
        found = [f"{path}.{field}: not upstream's" for field in ours if field not in fields and field not in ours.rules]
        found += [f"{path}.{field}: upstream has it, we do not" for field in fields if field not in ours]
        for field in ours.keys() & fields.keys():
            found += differences(upstream, ours[field], fields[field], f"{path}.{field}", seen)
        return found
    if isinstance(ours, ListOf):
        items = answer.get("items")
        return (
            [f"{path}: upstream has no list here"]
            if items is None
            else differences(upstream, ours.item, items, f"{path}[]", seen)
        )
    if isinstance(ours, MapOf):
        values = answer.get("additionalProperties")
        return (
            [f"{path}: upstream has no map here"]
            if not isinstance(values, Mapping)
            else differences(upstream, ours.item, values, f"{path}{{}}", seen)
        )
    stated = answer.get("type", ())
    kinds = [stated] if isinstance(stated, str) else [kind for kind in stated if kind != "null"]
    open_ended = "properties" not in answer and "items" not in answer and "additionalProperties" not in answer
    expected = _LEAVES.get((kinds[0], answer.get("format", ""))) if len(kinds) == 1 and open_ended else None
    return [] if ours == expected else [f"{path}: upstream has {kinds} {answer.get('format', '')}, we have {ours}"]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [pytest.param(version, kind.name, id=f"{version}-{kind.name}") for kind in KINDS for version in kind.api_versions],
)
def test_a_kind_has_upstreams_fields_and_no_others_each_of_its_type(
    upstream: Upstream, api_version: str, kind: str
) -> None:
    definition = upstream.of_kind[api_version, kind]
    found = differences(
        upstream, schema_of(api_version, kind), {"$ref": f"{_LOCAL}{definition}"}, f"{api_version} {kind}", set()
    )
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("ours", "theirs", "answer"),
    [
        pytest.param(STR, {"type": ["integer", "null"], "format": "int32"}, "we have a string", id="another-leaf"),
        pytest.param(ListOf(STR), {"type": "object"}, "no list", id="a-list-for-a-map"),
        pytest.param(MapOf(STR), {"type": "string"}, "no map", id="a-map-for-a-leaf"),
        pytest.param(ANY, {"type": "object", "properties": {"a": {}}}, "we have anything", id="anything-for-fields"),
        pytest.param(STR, {"$ref": f"{_LOCAL}{_MACHINERY}api.resource.Quantity"}, "a quantity", id="not-a-quantity"),
    ],
)
def test_the_comparison_sees_a_wrong_type(upstream: Upstream, ours: Any, theirs: Any, answer: str) -> None:
    (found,) = differences(upstream, ours, theirs, "it", set())
    assert answer in found


def test_the_comparison_sees_stray_and_missing_fields(upstream: Upstream) -> None:
    ours = Fields("Some")
    ours["stray"] = STR
    found = differences(upstream, ours, {"type": "object", "properties": {"missing": {"type": "string"}}}, "it", set())
    assert found == ["it.stray: not upstream's", "it.missing: upstream has it, we do not"]
