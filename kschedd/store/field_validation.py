"""fieldValidation of the API server: how unknown and duplicate fields of a submitted object are handled.

Raises: StrictDecodingError.
"""

from typing import Any

from kschedd.api.decoding import FieldValidation, decode, strict_message
from kschedd.api.schema_check import check_schema, without_nulls
from kschedd.store.errors import StrictDecodingError


def known_fields(raw: dict[str, Any], validation: FieldValidation) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object without unknown fields, and the warnings.

    If values have a wrong type, unknown fields are not reported as an error here: type errors take precedence, and the
    validation that follows reports them.
    """
    decoded = decode(raw)
    if not decoded.faults or validation == "Ignore":
        return decoded.raw, ()
    if validation == "Warn" or check_schema(without_nulls(raw)):
        return decoded.raw, tuple(map(str, decoded.faults))
    faults = tuple(fault.field_error() for fault in decoded.faults)
    raise StrictDecodingError(strict_message(raw, decoded.faults), faults)
