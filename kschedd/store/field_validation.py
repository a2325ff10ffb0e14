"""Decoding of submitted objects: values of a wrong type, and fieldValidation of unknown fields.

Raises: StrictDecodingError, and BadRequest in the words of the API server's decoder.
"""

from typing import Any

from kschedd.api.decoding import FieldValidation, StrictFault, decode, decoding_message, strict_message
from kschedd.api.schema import NO_RULES
from kschedd.api.schema_check import check_schema, without_nulls
from kschedd.api.unmarshal_errors import unmarshal_error
from kschedd.store.errors import BadRequest, StrictDecodingError


def known_fields(
    raw: dict[str, Any], validation: FieldValidation, rules: frozenset[str] = NO_RULES
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object without unknown fields, and the warnings. `rules`: those of the version that hold.

    If values have a wrong type, unknown fields are not reported as an error here: type errors take precedence, and the
    validation that follows reports them.
    """
    decoded = decode(raw, rules)
    if not decoded.faults or validation == "Ignore":
        return decoded.raw, ()
    if validation == "Warn" or check_schema(without_nulls(raw)):
        return decoded.raw, tuple(map(str, decoded.faults))
    faults = tuple(fault.field_error() for fault in decoded.faults)
    raise StrictDecodingError(strict_message(raw, decoded.faults), faults)


def submitted(
    raw: dict[str, Any],
    validation: FieldValidation,
    duplicates: tuple[StrictFault, ...] = (),
    rules: frozenset[str] = NO_RULES,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object of a request's body as the API server decodes it, and the warnings of it.

    `duplicates` are the fields that the body has twice.
    """
    if check_schema(raw) and (why := unmarshal_error(raw)):
        raise BadRequest(str(raw.get("kind")), "", decoding_message(raw, why))
    decoded = decode(raw, rules)
    faults = (*duplicates, *decoded.faults)
    if not faults or validation == "Ignore":
        return decoded.raw, ()
    if validation == "Warn":
        return decoded.raw, tuple(fault.text for fault in faults)
    raise StrictDecodingError(strict_message(raw, faults), tuple(fault.field_error() for fault in faults))
