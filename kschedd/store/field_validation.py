"""Decoding of submitted objects: values of a wrong type, and fieldValidation of unknown fields.

What fields there are the types of the API say, and of a custom resource the schema of its definition. In functions
that take it, `definition` is that definition, and None for kinds that are built in.
Source: Kubernetes v1.34, apiextensions-apiserver/pkg/apiserver/customresource_handler.go (schemaCoercingDecoder).
Raises: StrictDecodingError, and BadRequest in the words of the API server's decoder.
"""

from typing import Any

from kschedd.api.objects import Object
from kschedd.api.schemas.check import check_schema, schema_for, without_nulls
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
from kschedd.api.schemas.schema import NO_RULES
from kschedd.api.schemas.unmarshal_errors import unmarshal_error
from kschedd.store.custom_resources.kinds import Cluster, definition_of, schema_of, version_of
from kschedd.store.custom_resources.structural_schema import pruned
from kschedd.store.errors import BadRequest, StrictDecodingError


def decoded(raw: dict[str, Any], rules: frozenset[str], definition: Object | None) -> Decoded:
    """The object without unknown fields. `rules`: those of the version that hold."""
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
    raw: dict[str, Any], validation: FieldValidation, cluster: Cluster
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object without unknown fields, and the warnings. `cluster`: where it is to be.

    If values have a wrong type, unknown fields are not reported as an error here: type errors take precedence, and the
    validation that follows reports them.
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
    """The object of a request's body as the API server decodes it, and the warnings of it.

    `duplicates` are the fields that the body has twice.
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
