"""Patches of mutating policies: apply configurations and JSON patches that CEL expressions build.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/policy/mutating/patch/{smd,json_patch}.go,
apiserver/pkg/cel/mutation.
Errors: PatchFault.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.schema import Schema
from kschedd.cel.values import Duration, Optional, Struct, Timestamp, kind
from kschedd.errors import KscheddError
from kschedd.managed_fields.merging import merge
from kschedd.managed_fields.typed import (
    TypedErrors,
    atomic,
    declares,
    field_schema,
    item_schema,
    sort_of,
    validate,
)
from kschedd.store.errors import BadPatch
from kschedd.store.patches.json_patch import REJECTED, json_patch

Raw = Mapping[str, Any]
_FAILED: Final = re.compile(r"\[(\d+)\] ")
_FAILED_TEST: Final = re.compile(r"\[\d+\] test .*: (the value differs|the path does not exist)", re.DOTALL)


@attrs.define(eq=False)
class PatchFault(KscheddError):
    """A patch that cannot be built or applied."""

    why: str


def applied_configuration(whole: Raw, configuration: Any, schema: Schema) -> dict[str, Any]:
    """Return the object merged with an apply configuration, which may not contain atomic values."""
    if mismatches := list(_mismatches(configuration, "Object")):
        joined = "\n".join(mismatches)
        raise PatchFault(f"type mismatch: {joined}")
    patch = {**_native(configuration), "apiVersion": whole.get("apiVersion"), "kind": whole.get("kind")}
    try:
        validate(patch, schema)
    except TypedErrors as wrong:
        why = f"error applying patch: failed to convert patch object to typed object: {wrong}"
        raise PatchFault(why) from None
    if atomics := list(_atomics(patch, schema, "")):
        listed = ", ".join(atomics)
        raise PatchFault(
            f"error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {listed}"
        )
    merged: dict[str, Any] = merge(dict(whole), patch, schema)
    return merged


def _atomics(value: Any, schema: Schema, path: str) -> Iterator[str]:
    """Yield the paths of atomic values in a configuration."""
    sort = sort_of(schema, value)
    if sort == "map" and isinstance(value, Mapping):
        if atomic(schema, "map"):
            yield path
        for name, inner in value.items():
            if declares(schema, name):
                yield from _atomics(inner, field_schema(schema, name), f"{path}.{name}")
    elif sort == "list" and isinstance(value, list):
        if atomic(schema, "list"):
            yield path
        for index, item in enumerate(value):
            yield from _atomics(item, item_schema(schema), f"{path}[{index}]")


def patched_by_json(whole: Raw, operations: Any) -> Raw:
    """Return the object after a JSON patch; unchanged if one of its tests fails."""
    listed = []
    for operation in operations:
        made = {"op": operation.get("op") or "", "path": operation.get("path") or ""}
        if operation.get("from"):
            made["from"] = operation["from"]
        if "value" in operation:
            value = operation["value"]
            if isinstance(value, Struct) and (mismatches := list(_mismatches(value, value.type_name))):
                raise PatchFault("type mismatch: " + "\n".join(mismatches))
            made["value"] = _native(value)
        listed.append(made)
    try:
        patched: Raw = json_patch(dict(whole), listed)
    except BadPatch as fault:
        why = fault.why.removeprefix(f"{REJECTED}: ")
        if _FAILED_TEST.fullmatch(why):
            return whole
        raise PatchFault(f"JSON Patch: {patch_failure(fault.why, listed)}") from None
    return patched


def patch_failure(why: str, operations: Sequence[Any]) -> str:
    """Return the message of Go's JSON patch library for an operation that cannot be applied."""
    why = why.removeprefix(f"{REJECTED}: ")
    number = _FAILED.match(why)
    if number is None:
        return why
    operation = operations[int(number[1])]
    action, path = operation.get("op"), str(operation.get("path") or "")
    if action not in ("add", "remove", "replace"):
        return why
    if action == "remove" and why.endswith("the path does not exist"):
        key = path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        return f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
    return f'{action} operation does not apply: doc is missing path: "{path}": missing value'


def _mismatches(value: Any, expected: str) -> Iterator[str]:
    """Yield a message for each struct whose type name is not the path of its field."""
    if isinstance(value, Struct):
        if value.type_name != expected:
            yield (
                f'unexpected type name "{value.type_name}", expected "{expected}", which matches field name path from '
                "root Object type"
            )
        for name, inner in value.items():
            yield from _mismatches(inner, f"{expected}.{name}")
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _mismatches(inner, expected)
    elif isinstance(value, list):
        for inner in value:
            yield from _mismatches(inner, expected)


def _native(value: Any) -> Any:
    """Return a CEL value as JSON."""
    if isinstance(value, dict):
        return {str(name): _native(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_native(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Optional):
        return _native(value.values[0]) if value.values else None
    if isinstance(value, Timestamp | Duration):
        return str(value)
    raise PatchFault(f"value of type {kind(value)} cannot be converted to JSON")
