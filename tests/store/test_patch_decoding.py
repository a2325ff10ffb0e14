"""Tests of the messages about patched objects that cannot be decoded."""

from typing import Any

import pytest

from kschedd.api.schemas.decoding import FieldValidation
from kschedd.store.errors import BadPatch, Invalid
from kschedd.store.patch_decoding import decode_patched
from kschedd.store.patches.patching import PatchType, patched

LIVE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": "d", "name": "c", "labels": {"b": "1", "a": "<"}},
    "data": {"k": "v"},
}
_META = (
    '\\"metadata\\":{\\"name\\":\\"c\\",\\"namespace\\":\\"d\\",\\"labels\\":{\\"a\\":\\"\\\\u003c\\",\\"b\\":\\"1\\"}}'
)
_HEAD = '\\"apiVersion\\":\\"v1\\"'
_KIND = '\\"kind\\":\\"ConfigMap\\"'


def tried(
    patch: Any, patch_type: PatchType, validation: FieldValidation = "Strict", *duplicates: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    whole = patched(LIVE, patch, patch_type, validation)
    return decode_patched(LIVE, whole, patch, patch_type, validation, duplicates)


def replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


@pytest.mark.parametrize(
    ("patch_type", "patch", "shown", "why"),
    [
        pytest.param(
            "merge",
            {"data": 5},
            f'{{{_HEAD},\\"data\\":5,{_KIND},{_META}}}',
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string",
            id="what-is-not-merged-keeps-the-order-of-its-type",
        ),
        pytest.param(
            "merge",
            {"metadata": {"generation": "x"}, "data": None},
            f'{{{_HEAD},{_KIND},\\"metadata\\":{{\\"generation\\":\\"x\\",\\"labels\\":'
            '{\\"a\\":\\"\\\\u003c\\",\\"b\\":\\"1\\"},\\"name\\":\\"c\\",\\"namespace\\":\\"d\\"}}',
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.generation of type int64",
            id="what-is-merged-is-sorted",
        ),
        pytest.param(
            "json",
            replace("/kind", "Foo"),
            f'{{{_HEAD},\\"data\\":{{\\"k\\":\\"v\\"}},\\"kind\\":\\"Foo\\",{_META}}}',
            'no kind "Foo" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
            id="another-kind",
        ),
        pytest.param(
            "json",
            replace("/kind", "Secret"),
            f'{{{_HEAD},\\"data\\":{{\\"k\\":\\"v\\"}},\\"kind\\":\\"Secret\\",{_META}}}',
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
            id="a-known-kind",
        ),
        pytest.param(
            "json",
            replace("/apiVersion", 5),
            f'{{\\"apiVersion\\":5,\\"data\\":{{\\"k\\":\\"v\\"}},{_KIND},{_META}}}',
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field "
            ".apiVersion of type string",
            id="a-version-that-is-no-text",
        ),
        pytest.param(
            "json",
            [*replace("/data/k", 5), {"op": "test", "path": "/metadata", "value": LIVE["metadata"]}],
            f'{{{_HEAD},\\"data\\":{{\\"k\\":5}},{_KIND},\\"metadata\\":{{\\"labels\\":'
            '{\\"a\\":\\"\\\\u003c\\",\\"b\\":\\"1\\"},\\"name\\":\\"c\\",\\"namespace\\":\\"d\\"}}',
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            id="what-was-compared-is-sorted",
        ),
        pytest.param(
            "strategic", {"data": {"k": 5}}, "map[data:map[k:5]]", "cannot convert int64 to string", id="strategic"
        ),
        pytest.param(
            "strategic",
            {"spec": {"x": 1}, "foo": "y"},
            "map[foo:y spec:map[x:1]]",
            'strict decoding error: unknown field "foo", unknown field "spec"',
            id="unknown-fields-in-order",
        ),
    ],
)
def test_what_is_refused(patch_type: PatchType, patch: Any, shown: str, why: str) -> None:
    with pytest.raises(Invalid) as refusal:
        tried(patch, patch_type)
    assert str(refusal.value) == f' "" is invalid: patch: Invalid value: "{shown}": {why}'


def test_duplicate_fields_are_warned_of_first() -> None:
    whole, reported = tried({"foo": 1, "data": {"k": "2"}}, "merge", "Warn", "data.k")
    assert reported == ('duplicate field "data.k"', 'unknown field "foo"')
    assert whole["data"] == {"k": "2"}
    assert "foo" not in whole


def test_a_json_patch_names_itself() -> None:
    _, reported = tried([{"op": "add", "path": "/data/x", "value": "1", "extra": 1}], "json", "Warn", "[0].op")
    assert reported == ('json patch duplicate field "[0].op"', 'json patch unknown field "[0].extra"')


def test_without_a_version_it_is_decoded_as_the_internal_type() -> None:
    _, reported = tried({"apiVersion": None}, "merge", "Warn")
    assert reported == ('unknown field "data"', 'unknown field "metadata"')


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
def test_a_strategic_patch_keeps_the_type_whatever_it_says(field: str) -> None:
    whole, reported = tried({field: "Other"}, "strategic")
    assert whole == LIVE
    assert reported == ()


@pytest.mark.parametrize(
    ("patch", "patch_type", "why"),
    [
        ([], "merge", "Invalid JSON Patch"),
        ("x", "json", "json: cannot unmarshal string into Go value of type jsonpatch.Patch"),
    ],
)
def test_a_patch_of_a_wrong_type_whose_fields_nobody_checks(patch: Any, patch_type: PatchType, why: str) -> None:
    with pytest.raises(BadPatch) as refusal:
        tried(patch, patch_type, "Ignore")
    assert str(refusal.value) == why


@pytest.mark.parametrize(
    ("given", "held"),
    [(2.0, 2), (1e3, 1000), (2**31, -(2**31)), (2**32 + 5, 5), (-(2**31) - 1, 2**31 - 1), (1e19, 0)],
)
def test_integers_of_a_strategic_patch_are_cut_to_their_field(given: float, held: int) -> None:
    live = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1}}
    patch = {"spec": {"replicas": given}}
    whole = patched(live, patch, "strategic", "Strict")
    assert decode_patched(live, whole, patch, "strategic", "Strict")[0]["spec"]["replicas"] == held
