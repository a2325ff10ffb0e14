"""Decoding and validation of objects in requests: wrong types, unknown fields (fieldValidation), defaults.

The fields are defined by the API types; for a custom resource, they are defined by its definition's schema. The
parameter `definition` is the definition of a custom resource; it is None for built-in kinds.
Source: Kubernetes v1.34, apiextensions-apiserver/pkg/apiserver/customresource_handler.go (schemaCoercingDecoder).
Raises: StrictDecodingError and BadRequest, with the messages of kube-apiserver's decoder.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.check import (
    check_schema,
    schema_for,
    without_nulls,
)
from kschedd.api.schemas.codec import decoded_object
from kschedd.api.schemas.decoding import (
    MOST_FAULTS,
    Decoded,
    FieldValidation,
    StrictFault,
    decode,
    decoding_message,
    strict_message,
    unknown_field,
)
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.api.schemas.schema import ANY, NO_RULES, Fields, field_of
from kschedd.api.schemas.unmarshal_errors import unmarshal_error
from kschedd.registry.defaults import default_typed, with_pod_ips
from kschedd.registry.validation import (
    validate_status,
    validate_typed,
)
from kschedd.registry.validation_meta import validate_custom_kind
from kschedd.store.custom_resources.kinds import DefiningCluster, definition_of, schema_of, version_of
from kschedd.store.custom_resources.structural_schema import pruned
from kschedd.store.errors import BadRequest, Invalid, StrictDecodingError, Undecodable
from kschedd.store.patches.typed_status import typed_status


def decoded(raw: dict[str, Any], rules: frozenset[str], definition: Object | None) -> Decoded:
    """Return the object without unknown fields; `rules` are the enabled features."""
    found = decode(raw, rules)
    schema = None if definition is None else schema_of(version_of(definition, str(raw.get("apiVersion") or "")))
    if schema is None:
        return found
    unknown: list[str] = []
    kept = pruned(schema, found.raw, unknown)
    if not unknown:
        return found
    return Decoded(kept, (*found.faults, *map(unknown_field, sorted(unknown)))[:MOST_FAULTS])


def known_fields(
    raw: dict[str, Any], validation: FieldValidation, cluster: DefiningCluster
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the object without unknown fields, and the warnings; `cluster` is the cluster that gets the write.

    If any value has a wrong type, unknown fields are not reported as errors.
    """
    definition = definition_of(cluster, raw) if schema_for(raw) is None else None
    found = decoded(raw, cluster.features, definition)
    if not found.faults or validation == "Ignore":
        return found.raw, ()
    if validation == "Warn" or check_schema(without_nulls(raw)):
        return found.raw, tuple(map(str, found.faults))
    faults = tuple(fault.field_error() for fault in found.faults)
    raise StrictDecodingError(strict_message(raw, found.faults), faults)


def submitted(
    raw: dict[str, Any],
    validation: FieldValidation,
    duplicates: tuple[StrictFault, ...] = (),
    rules: frozenset[str] = NO_RULES,
    definition: Object | None = None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the object as kube-apiserver decodes it from a request body, and the warnings.

    `duplicates` are the fields that occur twice in the body.
    """
    if check_schema(raw) and (why := unmarshal_error(raw)):
        raise BadRequest(str(raw.get("kind")), "", decoding_message(raw, why))
    found = decoded(raw, rules, definition)
    faults = (*duplicates, *found.faults)
    if not faults or validation == "Ignore":
        return found.raw, ()
    if validation == "Warn":
        return found.raw, tuple(fault.text for fault in faults)
    raise StrictDecodingError(strict_message(raw, faults), tuple(fault.field_error() for fault in faults))


def accepted(
    kind: str,
    name: str,
    raw: Raw,
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda raw: raw,
    check: Callable[[Raw], list[FieldError]] = lambda raw: [],
    validate: Callable[[dict[str, Any]], list[FieldError]] = validate_typed,
) -> dict[str, Any]:
    """Return the manifest with defaults, after `prepare`.

    Raises Undecodable, or Invalid with all errors. Errors found by `check` are last; for some kinds they are first, as
    in upstream.
    """
    if mistyped := check_schema(dict(raw)):
        raise Undecodable(kind, name, tuple(mistyped))
    if kind in BY_NAME and schema_for(dict(raw)) is None:  # the kind is built in, but not in this version
        raise Invalid(kind, name, tuple(validate_custom_kind(raw.get("kind"), raw.get("apiVersion"))))
    done = prepare(default_typed(decoded_object(dict(raw))))
    parts = [validate(done), check(done)]
    if faults := tuple(chain.from_iterable(reversed(parts) if kind in _CHECKED_FIRST else parts)):
        raise Invalid(kind, name, faults)
    return done


_CHECKED_FIRST: Final = frozenset(("IngressClass",))


def checked_status(kind: str, name: str, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the object with its status in stored form; only the status is validated. Raises Invalid."""
    done, faults = status_with_faults(kind, name, raw)
    if faults:
        raise Invalid(kind, name, tuple(faults))
    return done


def status_with_faults(kind: str, name: str, raw: dict[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the result of `checked_status` and the errors in the status. Raises Undecodable."""
    status = raw.get("status")
    fields = None if kind not in BY_NAME else field_of(schema_for({"kind": kind}) or ANY, "status")[0]
    if fields is None or fields is ANY:
        return ({**raw, "status": without_nulls(status)} if status is not None else _without_status(raw)), []
    if status is None:
        status = {}
    assert isinstance(fields, Fields), "a status has fields"
    if kind == "Pod":
        done, printed, faults = typed_status(kind, status, fields, with_pod_ips)
    else:
        done, printed, faults = typed_status(kind, status, fields)
    if faults:
        raise Undecodable(kind, name, tuple(faults))
    return {**raw, "status": printed}, validate_status(kind, done)


def _without_status(raw: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in raw.items() if field != "status"}
