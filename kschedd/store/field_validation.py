"""What becomes of an object handed in with fields that its kind does not have: fieldValidation of the API server.

Raises: StrictDecodingError.
"""

from typing import Any

from kschedd.api.decoding import FieldValidation, decode, strict_message
from kschedd.api.shapes import check_shape, without_nulls
from kschedd.store.errors import StrictDecodingError


def known_fields(raw: dict[str, Any], validation: FieldValidation) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object with the fields that its kind has, and what to warn of.

    An object with values of the wrong type passes: those count for more, and whoever looks at the object next says so.
    """
    decoded = decode(raw)
    if not decoded.faults or validation == "Ignore":
        return decoded.raw, ()
    if validation == "Warn" or check_shape(without_nulls(raw)):
        return decoded.raw, tuple(map(str, decoded.faults))
    faults = tuple(fault.field_error() for fault in decoded.faults)
    raise StrictDecodingError(strict_message(raw, decoded.faults), faults)
