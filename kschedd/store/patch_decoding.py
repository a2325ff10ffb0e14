"""Decoding of a patched object: wrong types, unknown fields, and changes of kind or version.

A JSON patch or merge patch is applied to the object's JSON, and the result is decoded like a client's object. A
strategic merge patch is applied to a map; the map is converted to the object's Go type, whatever kind and version it
names. Errors are reported for the field `patch`, and quote the decoded value: the whole patched object, or the
strategic patch.

JSON patches and merge patches leave parts that they do not visit unparsed. In the quoted object, only the visited maps
are sorted; all other maps have their fields in the order of their types.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers/patch.go (jsonPatcher, strategicPatchObject),
apimachinery/pkg/runtime/serializer/json; github.com/evanphx/json-patch v4 (lazyNode).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.quantity import quoted
from kschedd.api.schemas.check import check_schema, schema_for
from kschedd.api.schemas.decoding import FieldValidation, StrictFault, duplicate_field
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.go_order import go_json, in_go_order, sorted_keys
from kschedd.api.schemas.schema import ALL_RULES, NO_RULES, schema_of, type_named
from kschedd.api.schemas.unmarshal_errors import json_kind, unmarshal_error
from kschedd.api.schemas.unstructured_errors import conversion_error, converted
from kschedd.store.errors import Invalid
from kschedd.store.field_validation import decoded
from kschedd.store.patches.json_patch import json_patch, unknown_members
from kschedd.store.patches.merging import merge_patch
from kschedd.store.patches.patching import PatchType
from kschedd.store.patches.strategic_merge import go_text

Raw = Mapping[str, Any]

_SCHEME: Final = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
_META: Final = type_named("meta.ObjectMeta")


def decode_patched(
    live: Raw,
    whole: dict[str, Any],
    patch: Any,
    patch_type: PatchType,
    validation: FieldValidation,
    duplicates: Sequence[str] = (),
    rules: frozenset[str] = NO_RULES,
    definition: Object | None = None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the patched object without unknown fields, and the warnings. Raises Invalid.

    `whole` is `live` after the patch; `duplicates` are the paths of fields that occur twice in the patch. Fields of
    newer versions that `live` already contains are kept, even if `rules` disables them. Fields of `live` that its
    `definition` no longer contains cause no warning.
    """
    if decoded(dict(live), rules, definition).faults:
        rules, definition = ALL_RULES, None
    if patch_type == "strategic":
        twice = tuple(map(duplicate_field, duplicates))
        return _decoded(whole, twice, validation, lambda: go_text(patch), rules, definition)
    begin = "json patch " if patch_type == "json" else ""
    found = [f'{begin}duplicate field "{path}"' for path in duplicates]
    found += unknown_members(patch) if patch_type == "json" else []
    faults = tuple(StrictFault("patch", text) for text in found)

    def document() -> dict[str, Any]:
        return quoted_document(live, patch, patch_type)

    if schema_for(dict(live)) is not None:
        if why := _kind_fault(live, whole):
            raise _refused(go_json(document()), why)
        if not whole.get("apiVersion"):
            # Decoding uses the internal version, which has the metadata fields at its top level, with their Go names.
            names = [name for name in sorted(whole) if name not in _META and name not in ("kind", "apiVersion")]
            faults += tuple(StrictFault(name, f'unknown field "{name}"') for name in names)
            return whole, _judged(faults, validation, lambda: go_json(document()))
    return _decoded(whole, faults, validation, lambda: go_json(document()), rules, definition, document)


def _decoded(
    whole: dict[str, Any],
    faults: tuple[StrictFault, ...],
    validation: FieldValidation,
    shown: Callable[[], str],
    rules: frozenset[str],
    definition: Object | None,
    document: Callable[[], dict[str, Any]] | None = None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    if check_schema(whole):
        if why := conversion_error(whole) if document is None else unmarshal_error(document()):
            raise _refused(shown(), why)
        whole = converted(whole) if document is None else whole
    found = decoded(whole, rules, definition)
    unknown = found.faults
    if len(unknown) > 1:
        ordered = (
            decoded(document(), rules, definition).faults if document else sorted(unknown, key=lambda fault: fault.text)
        )
        unknown = tuple(ordered)
    return found.raw, _judged((*faults, *unknown), validation, shown)


def _judged(faults: Sequence[StrictFault], validation: FieldValidation, shown: Callable[[], str]) -> tuple[str, ...]:
    """Return the warnings for errors found by strict decoding. Raises Invalid if `validation` is Strict."""
    if not faults or validation == "Ignore":
        return ()
    texts = tuple(map(str, faults))
    if validation == "Warn":
        return texts
    raise _refused(shown(), f"strict decoding error: {', '.join(texts)}")


def _refused(shown: str, why: str) -> Invalid:
    return Invalid("", "", (FieldError("patch", None, f"Invalid value: {quoted(shown)}: {why}"),))


def _kind_fault(live: Raw, whole: Raw) -> str:
    """Return why the patched object cannot be decoded as the live object's kind, or ""."""
    for field in ("apiVersion", "kind"):
        value = whole.get(field)
        if value is not None and not isinstance(value, str):
            why = f"json: cannot unmarshal {json_kind(value)} into Go struct field .{field} of type string"
            return f"couldn't get version/kind; json parse error: {why}"
    api_version, kind = whole.get("apiVersion") or "", whole.get("kind") or live["kind"]
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    if not api_version and kind == live["kind"]:
        return ""
    if schema_of(api_version, kind) is None:
        return f'no kind "{kind}" is registered for version "{api_version}" {_SCHEME}'
    if kind == live["kind"]:
        return ""
    version = api_version.rpartition("/")[2]
    internal = str(live["apiVersion"]).rpartition("/")[0].partition(".")[0] or "core"
    return f"converting ({version}.{kind}) to ({internal}.{live['kind']}): unknown conversion"


def quoted_document(live: Raw, patch: Any, patch_type: PatchType) -> dict[str, Any]:
    """Return the object after a JSON or merge patch, with its fields in the order in which upstream prints them."""
    ordered = in_go_order(dict(live), schema_for(dict(live)))
    if patch_type == "merge":
        found: dict[str, Any] = _as_merged(merge_patch(ordered, patch), ordered, patch)
        return found
    touched: list[dict[str, Any]] = []
    whole = json_patch(ordered, patch, touched)
    seen = {id(each) for each in touched}
    return {name: _sorted_where(whole[name], seen) for name in sorted(whole)}


def _as_merged(merged: Any, live: Any, patch: Any) -> Any:
    """Return the result of a merge patch with sorted maps where it was merged; other maps keep their order."""
    if not isinstance(live, Mapping):
        return sorted_keys(merged)
    if not isinstance(patch, Mapping):
        return merged
    return {
        name: _as_merged(merged[name], live.get(name), patch[name]) if name in patch else merged[name]
        for name in sorted(merged)
    }


def _sorted_where(value: Any, seen: set[int]) -> Any:
    """Return the value with sorted fields in the maps whose id is in `seen`."""
    if isinstance(value, dict):
        names = sorted(value) if id(value) in seen else value
        return {name: _sorted_where(value[name], seen) for name in names}
    return [_sorted_where(each, seen) for each in value] if isinstance(value, list) else value
