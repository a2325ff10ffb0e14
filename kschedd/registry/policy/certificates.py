"""Validation of CertificateSigningRequests: usages, signer name, expiration, and the encoded request.

The request must have the form of a PKCS #10 request (`certification_requests`). Keys and signatures are not checked,
because this would require cryptography. An update may retain errors of the old object.
Source: Kubernetes v1.34, pkg/apis/certificates/validation/validation.go, pkg/apis/certificates/helpers.go. The
functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, repeats, required, unsupported
from kschedd.registry.policy.certification_requests import DerError, check_certification_request
from kschedd.registry.signers import validate_signer

Item = Mapping[str, Any]
Faults = list[FieldError]

_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_VERDICTS: Final = ("Approved", "Denied")
_CONDITIONS: Final = "status.conditions"
_SHORTEST: Final = 600
_ARMOR: Final = re.compile(rb"(?:\A|\n)-----BEGIN ([^\n]*?)-----[ \t\r]*\n(.*?)-----END \1-----", re.DOTALL)
_TYPE: Final = b"CERTIFICATE REQUEST"


@attrs.frozen
class _Tolerated:
    """Errors that an update may retain, because the old object also has them."""

    unknown_usages: bool = False
    equal_usages: bool = False
    legacy_signer: bool = False
    both_verdicts: bool = False
    equal_types: bool = False
    empty_types: bool = False
    any_certificate: bool = False

    @classmethod
    def of(cls, old: Item, new: Item) -> "_Tolerated":
        spec, status = old.get("spec") or {}, old.get("status") or {}
        usages, types = spec.get("usages") or (), [one.get("type") or "" for one in status.get("conditions") or ()]
        certificate = status.get("certificate") or ""
        return cls(
            unknown_usages=any(usage not in _USAGES for usage in usages),
            equal_usages=len(set(usages)) < len(usages),
            legacy_signer=spec.get("signerName") == _LEGACY_SIGNER,
            both_verdicts=set(_VERDICTS) <= set(types),
            equal_types=len(set(types)) < len(types),
            empty_types="" in types,
            any_certificate=certificate == ((new.get("status") or {}).get("certificate") or "")
            or _certificate_fault(certificate) != "",
        )


_NOTHING_TOLERATED: Final = _Tolerated()


def validate_signing_request(item: Item, faults: Faults) -> None:
    """Append the errors of a CertificateSigningRequest."""
    _validate(item, _NOTHING_TOLERATED, faults)


def validate_updated_signing_request(item: Item, old: Item, faults: Faults) -> None:
    """Append the new errors of an updated CertificateSigningRequest."""
    _validate(item, _Tolerated.of(old, item), faults)


def validate_signing_status(old: Item, new: Item, faults: Faults) -> None:
    """Append the errors of a status update; a signer may add a certificate but may not approve the request."""
    validate_updated_signing_request(new, old, faults)
    _removed(old, new, faults)
    for verdict in _VERDICTS:
        before, after = (_of_type(each, verdict) for each in (old, new))
        if len(after) > len(before):
            faults.append(forbidden(_CONDITIONS, f'updates may not add a condition of type "{verdict}"'))
    if (issued := _certificate(old)) and issued != _certificate(new):
        faults.append(forbidden("status.certificate", "updates may not modify existing certificate content"))


def validate_approval(old: Item, new: Item, faults: Faults) -> None:
    """Append the errors of an approval update, which adds conditions."""
    validate_updated_signing_request(new, old, faults)
    _removed(old, new, faults)


def _removed(old: Item, new: Item, faults: Faults) -> None:
    for kind in (*_VERDICTS, "Failed"):
        if len(_of_type(new, kind)) < len(_of_type(old, kind)):
            faults.append(forbidden(_CONDITIONS, f'updates may not remove a condition of type "{kind}"'))


def _of_type(item: Item, kind: str) -> list[Any]:
    return [one for one in (item.get("status") or {}).get("conditions") or () if one.get("type") == kind]


def _certificate(item: Item) -> str:
    return (item.get("status") or {}).get("certificate") or ""


def _validate(item: Item, tolerated: _Tolerated, faults: Faults) -> None:
    spec = item.get("spec") or {}
    request = spec.get("request") or ""
    if why := _request_fault(request):
        faults.append(invalid("spec.request", spec.get("request"), why))
    usages = spec.get("usages") or ()
    if not usages:
        faults.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in _USAGES and not tolerated.unknown_usages:
            faults.append(unsupported(f"spec.usages[{index}]", usage, _USAGES))
    if not tolerated.equal_usages:
        faults += [duplicate(f"spec.usages[{index}]", usage) for index, usage in repeats(usages)]
    signer = spec.get("signerName") or ""
    if signer == _LEGACY_SIGNER and not tolerated.legacy_signer:
        why = "the legacy signerName is not allowed via this API version"
        faults.append(invalid("spec.signerName", signer, why))
    else:
        validate_signer(signer, "spec.signerName", faults)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        faults.append(invalid("spec.expirationSeconds", seconds, why))
    _conditions((item.get("status") or {}).get("conditions") or (), tolerated, faults)
    if not tolerated.any_certificate and (why := _certificate_fault(_certificate(item))):
        faults.append(invalid("status.certificate", "<certificate data>", why))


def _conditions(conditions: Sequence[Item], tolerated: _Tolerated, faults: Faults) -> None:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind, status, here = condition.get("type") or "", condition.get("status") or "", f"{_CONDITIONS}[{index}]"
        if not kind and not tolerated.empty_types:
            faults.append(required(f"{here}.type"))
        allowed = ("True",) if kind in (*_VERDICTS, "Failed") else ("False", "True", "Unknown")
        if not status:
            faults.append(required(f"{here}.status"))
        elif status not in allowed:
            faults.append(unsupported(f"{here}.status", status, allowed))
        if kind in _VERDICTS and not tolerated.both_verdicts and seen & (set(_VERDICTS) - {kind}):
            faults.append(invalid(_CONDITIONS, kind, "Approved and Denied conditions are mutually exclusive"))
        if kind in seen and not tolerated.equal_types:
            faults.append(duplicate(f"{here}.type", kind))
        seen.add(kind)


def _request_fault(request: str) -> str:
    """Return the error in a PEM request, or ""."""
    block = _ARMOR.search(base64.b64decode(request))
    if block is None or block.group(1) != _TYPE:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        check_certification_request(_bytes_of(block.group(2)))
    except DerError as wrong:
        return wrong.why
    return ""


def _certificate_fault(certificate: str) -> str:
    """Return the error in PEM certificates, or ""."""
    if not certificate:
        return ""
    blocks = list(_ARMOR.finditer(base64.b64decode(certificate)))
    for block in blocks:
        if block.group(1) != b"CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{block.group(1).decode(errors="replace")}"'
        if b":" in block.group(2):
            return "no PEM block headers are permitted"
        if not _bytes_of(block.group(2)).startswith(b"\x30"):
            return "x509: malformed certificate"
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _bytes_of(armored: bytes) -> bytes:
    """Return the content of a PEM block, without its headers."""
    _, _, body = armored.rpartition(b"\n\n")
    return base64.b64decode(b"".join((body or armored).split()))
