"""Validation of CertificateSigningRequests: what a certificate is wanted for, who is to sign it, for how long.

The request itself must be armored as one; the request inside and its signature are not looked at, as that takes
cryptography.
Source: Kubernetes v1.34, pkg/apis/certificates/validation/validation.go, pkg/apis/certificates/helpers.go,
pkg/apis/core/validation/names.go (ValidateSignerName).
Takes objects that match the schema and have their defaults; appends to `faults`.
"""

import base64
import re
from typing import Any, Final

from kschedd.api.fields import FieldError, duplicate, invalid, required, unsupported
from kschedd.api.validation_names import dns_label, dns_subdomain

Raw = dict[str, Any]
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
_SHORTEST: Final = 600
_LONGEST_DOMAIN: Final = 253
_LONGEST_SIGNER: Final = _LONGEST_DOMAIN + 1 + 253 + 63 + 1
_ARMOR: Final = re.compile(rb"(?:\A|\n)-----BEGIN ([^\n]*?)-----[ \t\r]*\n(.*?)-----END \1-----", re.DOTALL)
_TYPE: Final = b"CERTIFICATE REQUEST"


def validate_signing_request(item: Raw, faults: Faults) -> None:
    """Append the faults of a CertificateSigningRequest."""
    spec = item.get("spec") or {}
    request = spec.get("request") or ""
    block = _ARMOR.search(base64.b64decode(request))
    if block is None or block.group(1) != _TYPE:
        faults.append(invalid("spec.request", request, "PEM block type must be CERTIFICATE REQUEST"))
    usages = spec.get("usages") or ()
    if not usages:
        faults.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            faults.append(unsupported(f"spec.usages[{index}]", usage, _USAGES))
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            faults.append(duplicate(f"spec.usages[{index}]", usage))
    signer = spec.get("signerName") or ""
    if signer == _LEGACY_SIGNER:
        why = "the legacy signerName is not allowed via this API version"
        faults.append(invalid("spec.signerName", signer, why))
    else:
        _signer(signer, "spec.signerName", faults)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        faults.append(invalid("spec.expirationSeconds", seconds, why))


def _signer(signer: str, path: str, faults: Faults) -> None:
    if not signer:
        faults.append(required(path))
        return
    domain, *rest = signer.split("/")
    if len(rest) != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        faults.append(invalid(path, signer, why))
        return
    if len(domain) > _LONGEST_DOMAIN:
        faults.append(_too_long(path, _LONGEST_DOMAIN))
    labels = domain.split(".")
    for part, of_each in ((domain, dns_label), (rest[0], dns_subdomain)):
        wrong = next((label for label in part.split(".") if of_each(label)), None)
        if wrong is not None:
            faults += [invalid(path, part, f'validating label "{wrong}": {why}') for why in of_each(wrong)]
        if of_each is dns_label and len(labels) < 2:
            faults.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    if len(signer) > _LONGEST_SIGNER:
        faults.append(_too_long(path, _LONGEST_SIGNER))


def _too_long(path: str, most: int) -> FieldError:
    return FieldError(path, None, f"Too long: may not be more than {most} bytes")
