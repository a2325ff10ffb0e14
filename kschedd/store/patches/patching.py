"""Application of a patch of any type to an object, and parsing of server-side apply requests.

A `strategic` patch merges lists by their merge keys, a `merge` patch (RFC 7386) replaces lists, and a `json` patch is a
list of RFC 6902 operations. Custom resources have no merge keys, so strategic patches of them are rejected, as in
kube-apiserver. Raises: BadPatch.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import yaml

from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required
from kschedd.api.schemas.schema import Schema
from kschedd.api.text.documents import composed, read_documents
from kschedd.store.errors import BadPatch, InvalidOptions
from kschedd.store.patches.json_patch import json_patch
from kschedd.store.patches.merging import merge_patch
from kschedd.store.patches.strategic_merge import strategic_merge

Raw = Mapping[str, Any]

PatchType = Literal["strategic", "merge", "json"]
PATCH_TYPES: Final[tuple[PatchType, ...]] = ("strategic", "merge", "json")

_DECODING: Final = "error decoding patch: "


def patched(
    live: Raw,
    patch: Any,
    patch_type: PatchType,
    validation: FieldValidation = "Strict",
    schema: Schema | None = None,
) -> dict[str, Any]:
    """Return `live` with the patch applied; the types of the result's fields are not validated.

    `schema` is the schema of a kind that not all versions serve. Raises BadPatch. With `validation` Ignore, a patch
    of the wrong JSON type is detected later, as in kube-apiserver.
    """
    if patch_type == "json":
        if not isinstance(patch, list):
            begin, into = ("", "jsonpatch.Patch") if validation == "Ignore" else (_DECODING, "[]handlers.jsonPatchOp")
            raise BadPatch(f"{begin}json: cannot unmarshal {_json_type(patch)} into Go value of type {into}")
        whole = json_patch(live, patch)
        if not isinstance(whole, dict):
            raise BadPatch(
                f"json: cannot unmarshal {_json_type(whole)} into Go value of type map[string]interface {{}}"
            )
        return whole
    if not isinstance(patch, Mapping):
        if patch is None and patch_type == "strategic":
            return dict(live)
        if patch is None or (patch_type == "merge" and validation == "Ignore"):
            raise BadPatch("Invalid JSON Patch")
        begin = _DECODING if patch_type == "merge" else ""
        why = f"{begin}json: cannot unmarshal {_json_type(patch)} into Go value of type map[string]interface {{}}"
        raise BadPatch(why)
    if patch_type == "merge":
        merged: dict[str, Any] = merge_patch(live, patch)
        return merged
    schema = schema or schema_for(dict(live))
    if schema is None:
        raise BadPatch(
            "strategic merge patches are for built-in kinds only: the lists of a custom resource have no merge keys; "
            "use --type=merge or --type=json"
        )
    merged_by_keys = strategic_merge(live, patch, schema)
    if merged_by_keys:
        # Upstream converts the patch to the type of the object, whatever apiVersion and kind the patch names.
        for field in ("apiVersion", "kind"):
            if isinstance(merged_by_keys.get(field) or "", str):
                merged_by_keys[field] = live[field]
    return merged_by_keys


def read_configuration(text: str, validation: FieldValidation = "Warn") -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the configuration of a server-side apply, in YAML or JSON, and warnings about repeated keys.

    As in kube-apiserver, only the first document is read, and the last value of a repeated key is used. Raises
    BadPatch.
    """
    first = next(iter(read_documents(text, last_wins=True)), None)
    if first is None:
        return {}, ()
    if first.faults:
        why = yaml_error(text) or first.faults[0].why
        raise BadPatch(f"error decoding YAML: error converting YAML to JSON: yaml: {why}")
    value, twice = first.value, ""
    if first.repeated:
        lines = [f'  line {each.line}: key "{each.path[-1]}" already set in map' for each in first.repeated]
        twice = "error converting YAML to JSON: yaml: unmarshal errors:\n" + "\n".join(lines)
    if value is not None and not isinstance(value, dict):
        why = f"json: cannot unmarshal {_json_type(value)} into Go value of type map[string]interface {{}}"
        raise BadPatch(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    if twice and validation == "Strict":
        raise BadPatch(f"error strict decoding YAML: {twice}")
    return value or {}, (twice,) if twice and validation == "Warn" else ()


def yaml_error(text: str) -> str:
    """Return Go's error message for a YAML syntax error; "" without an error."""
    try:
        composed(text)
    except yaml.MarkedYAMLError as error:
        mark, context = error.problem_mark, error.context_mark
        line = mark.line if mark is not None else 0
        if line and isinstance(error, yaml.scanner.ScannerError):
            line += 1
        if not line and context is not None:
            line = context.line
        where = f"line {line}: " if line else ""
        return f"{where}{error.problem or 'unknown problem parsing YAML content'}"
    except yaml.YAMLError as error:
        return str(error).splitlines()[0]
    return ""


_LONGEST_MANAGER: Final = 128  # bytes


def check_patch_options(manager: str, force: bool | None, *, applied: bool) -> None:
    """Raise InvalidOptions if an apply has no field manager or a patch has a forbidden option."""
    if faults := patch_faults(manager, force, applied=applied):
        raise InvalidOptions("PatchOptions", "", tuple(faults))


def patch_faults(manager: str, force: bool | None, *, applied: bool) -> list[FieldError]:
    faults = []
    if applied and not manager:
        faults.append(required("fieldManager", "is required for apply patch"))
    if not applied and force is not None:
        faults.append(forbidden("force", "may not be specified for non-apply patch"))
    return faults + manager_faults(manager)


def manager_faults(manager: str) -> list[FieldError]:
    """Return the errors in a field manager's name."""
    faults = []
    if len(manager.encode()) > _LONGEST_MANAGER:
        faults.append(FieldError("fieldManager", None, f"Too long: may not be more than {_LONGEST_MANAGER} bytes"))
    for place, character in enumerate(manager):
        if not character.isprintable():
            named = f"U+{ord(character):04X}"
            why = f"invalid character {named} (at position {len(manager[:place].encode())})"
            faults.append(invalid("fieldManager", manager, why))
    return faults


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
