"""Structure of a PKCS #10 certification request in DER.

This module reads only the parts that Go parses before keys, names and extensions. Keys and signatures are not checked,
because this would require cryptography. Source: RFC 2986, section 4; Go 1.24, encoding/asn1 (parseTagAndLength,
parseField), crypto/x509 (certificateRequest). Raises: DerError, with Go's messages.
"""

from typing import Final

import attrs

from kschedd.errors import KscheddError

_INTEGER, _BITS, _OBJECT, _SEQUENCE = 2, 3, 6, 16
_NO_PARAMETERS: Final = (
    "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 "
    "timeType:0 set:false omitEmpty:false}"
)
_LARGEST: Final = 1 << 23


@attrs.define(eq=False)
class DerError(KscheddError):
    """Bytes that are not a certification request."""

    why: str


@attrs.frozen
class _Header:
    """A tag with its length; `start` is the offset of the content."""

    kind: int  # tag class: universal, application, context-specific, private
    tag: int
    compound: bool
    length: int
    start: int

    @property
    def end(self) -> int:
        return self.start + self.length


def check_certification_request(data: bytes) -> None:
    """Raise DerError unless the bytes have the parts of a certification request."""
    whole = _field(data, 0, _SEQUENCE, "certificateRequest", compound=True)
    if whole.end != len(data):
        raise DerError("asn1: syntax error: trailing data")
    inner = data[whole.start : whole.end]
    about = _field(inner, 0, _SEQUENCE, "tbsCertificateRequest", compound=True)
    _check_requested(inner[about.start : about.end])
    algorithm = _check_algorithm(inner, about.end)
    _check_bits(inner, _field(inner, algorithm, _BITS, "BitString"))


def _check_requested(data: bytes) -> None:
    """Check the signed part: version, subject, key and attributes."""
    version = _field(data, 0, _INTEGER, "int")
    if not version.length:
        raise DerError("asn1: structure error: empty integer")
    subject = _any(data, version.end)
    key = _field(data, subject.end, _SEQUENCE, "publicKeyInfo", compound=True)
    inner = data[key.start : key.end]
    _check_bits(inner, _field(inner, _check_algorithm(inner, 0), _BITS, "BitString"))
    attributes = _any(data, key.end)
    if (attributes.kind, attributes.tag, attributes.compound) != (2, 0, True):
        raise DerError("asn1: structure error: tags don't match: the attributes have the context-specific tag 0")
    at, inner = 0, data[attributes.start : attributes.end]
    while at < len(inner):
        at = _any(inner, at).end


def _check_algorithm(data: bytes, at: int) -> int:
    """Check an algorithm with its parameters. Return the offset of the algorithm's end."""
    algorithm = _field(data, at, _SEQUENCE, "AlgorithmIdentifier", compound=True)
    inner = data[algorithm.start : algorithm.end]
    named = _field(inner, 0, _OBJECT, "ObjectIdentifier")
    if not named.length:
        raise DerError("asn1: syntax error: zero length OBJECT IDENTIFIER")
    if named.end < len(inner):
        _any(inner, named.end)
    return algorithm.end


def _check_bits(data: bytes, header: _Header) -> None:
    bits = data[header.start : header.end]
    if not bits:
        raise DerError("asn1: syntax error: zero length BIT STRING")
    padding = bits[0]
    if padding > 7 or (padding and len(bits) == 1) or (len(bits) > 1 and bits[-1] & ((1 << padding) - 1)):
        raise DerError("asn1: syntax error: invalid padding bits in BIT STRING")


def _field(data: bytes, at: int, tag: int, name: str, *, compound: bool = False) -> _Header:
    """Return the header of a part with this universal tag."""
    if at == len(data):
        raise DerError("asn1: syntax error: sequence truncated")
    found = _header(data, at)
    if (found.kind, found.tag, found.compound) != (0, tag, compound):
        shown = f"{{class:{found.kind} tag:{found.tag} length:{found.length} isCompound:{str(found.compound).lower()}}}"
        raise DerError(
            f"asn1: structure error: tags don't match ({tag} vs {shown}) {_NO_PARAMETERS} {name} @{found.start}"
        )
    return _within(data, found)


def _any(data: bytes, at: int) -> _Header:
    if at == len(data):
        raise DerError("asn1: syntax error: sequence truncated")
    return _within(data, _header(data, at))


def _within(data: bytes, header: _Header) -> _Header:
    if header.end > len(data):
        raise DerError("asn1: syntax error: data truncated")
    return header


def _header(data: bytes, at: int) -> _Header:
    first = data[at]
    at, tag = at + 1, first & 0x1F
    if tag == 0x1F:
        tag, at = _long_tag(data, at)
    first_of_length, at = _byte(data, at)
    length = first_of_length
    if first_of_length & 0x80:
        length = 0
        if not first_of_length & 0x7F:
            raise DerError("asn1: syntax error: indefinite length found (not DER)")
        for _ in range(first_of_length & 0x7F):
            byte, at = _byte(data, at)
            if length >= _LARGEST:
                raise DerError("asn1: structure error: length too large")
            length = length << 8 | byte
            if not length:
                raise DerError("asn1: structure error: superfluous leading zeros in length")
        if length < 0x80:
            raise DerError("asn1: structure error: non-minimal length")
    return _Header(first >> 6, tag, bool(first & 0x20), length, at)


def _long_tag(data: bytes, at: int) -> tuple[int, int]:
    tag = 0
    for shifted in range(5):
        if at >= len(data):
            raise DerError("asn1: syntax error: truncated base 128 integer")
        byte, at = data[at], at + 1
        if not shifted and byte == 0x80:
            raise DerError("asn1: syntax error: integer is not minimally encoded")
        tag = tag << 7 | byte & 0x7F
        if byte < 0x80:
            if tag > 0x7FFF_FFFF:
                break
            if tag < 0x1F:
                raise DerError("asn1: syntax error: non-minimal tag")
            return tag, at
    raise DerError("asn1: structure error: base 128 integer too large")


def _byte(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise DerError("asn1: syntax error: truncated tag or length")
    return data[at], at + 1
