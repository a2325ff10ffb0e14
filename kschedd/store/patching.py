"""Applying a patch of any type to an object, and handling unknown fields in the result.

A patch of type `strategic` merges lists by their merge keys, `merge` is RFC 7386 (lists are replaced), `json` is a list
of RFC 6902 operations. Custom resources have no merge keys, so strategic patches of them are refused, as upstream.
Raises: BadPatch, Invalid.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from kschedd.api.decoding import FieldValidation, StrictFault, decode
from kschedd.api.fields import FieldError
from kschedd.api.schema_check import check_schema, schema_for, without_nulls
from kschedd.store.errors import BadPatch, Invalid
from kschedd.store.json_patch import json_patch, unknown_members
from kschedd.store.patches import merge_patch
from kschedd.store.strategic_merge import go_text, strategic_merge

Raw = Mapping[str, Any]

PatchType = Literal["strategic", "merge", "json"]
PATCH_TYPES: Final[tuple[PatchType, ...]] = ("strategic", "merge", "json")

_LONGEST_SHOWN: Final = 1000


def patched(live: Raw, patch: Any, patch_type: PatchType) -> dict[str, Any]:
    """`live` with the patch applied; the types of the result's fields are not validated. Raises BadPatch."""
    if patch_type == "json":
        if not isinstance(patch, list):
            sort = _json_type(patch)
            why = f"error decoding patch: json: cannot unmarshal {sort} into Go value of type []handlers.jsonPatchOp"
            raise BadPatch(why)
        whole = json_patch(live, patch)
        if not isinstance(whole, dict):
            raise BadPatch(
                f"json: cannot unmarshal {_json_type(whole)} into Go value of type map[string]interface {{}}"
            )
        return whole
    if not isinstance(patch, Mapping):
        if patch is None:
            if patch_type == "strategic":
                return dict(live)
            raise BadPatch("Invalid JSON Patch")
        begin = "error decoding patch: " if patch_type == "merge" else ""
        why = f"{begin}json: cannot unmarshal {_json_type(patch)} into Go value of type map[string]interface {{}}"
        raise BadPatch(why)
    if patch_type == "merge":
        merged: dict[str, Any] = merge_patch(live, patch)
        return merged
    schema = schema_for(dict(live))
    if schema is None:
        raise BadPatch(
            "strategic merge patches are for built-in kinds only: the lists of a custom resource have no merge keys; "
            "use --type=merge or --type=json"
        )
    merged_by_keys = strategic_merge(live, patch, schema)
    if merged_by_keys:
        # Upstream merges a decoded object, which keeps its type even if the patch removes apiVersion or kind.
        for field in ("apiVersion", "kind"):
            if not merged_by_keys.get(field):
                merged_by_keys[field] = live[field]
    return merged_by_keys


def known_patched_fields(
    whole: dict[str, Any], patch: Any, patch_type: PatchType, validation: FieldValidation
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The patched object without unknown fields, and the warnings. Raises Invalid if `validation` is Strict."""
    decoded = decode(whole)
    faults = decoded.faults
    if patch_type == "json":
        faults = (*(StrictFault("patch", text) for text in unknown_members(patch)), *faults)
    if not faults or validation == "Ignore":
        return decoded.raw, ()
    if validation == "Warn":
        return decoded.raw, tuple(map(str, faults))
    if check_schema(without_nulls(whole)):
        return decoded.raw, ()  # refused later for its type errors, which take precedence
    shown = go_text(patch) if patch_type == "strategic" else json.dumps(whole, default=str, separators=(",", ":"))
    text = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
    found = ", ".join(map(str, faults))
    why = f"Invalid value: {json.dumps(text)}: strict decoding error: {found}"
    raise Invalid("", "", (FieldError("patch", None, why),))


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
