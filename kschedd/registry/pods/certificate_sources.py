"""Validation of certificates in projected volumes: trust bundles, and the pod's own certificate (since 1.37).

Source: Kubernetes v1.37, pkg/apis/core/validation/validation.go (validateProjectionSources, ValidateUserAnnotations),
pkg/apis/certificates/types.go.
"""

from collections.abc import Callable
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required, unsupported
from kschedd.api.selecting.names import qualified_name
from kschedd.registry.go_structs import go_struct
from kschedd.registry.signers import is_of_kubernetes, validate_bundle_name, validate_signer
from kschedd.registry.storage.volume_sources import validate_not_reserved
from kschedd.registry.validation_meta import validate_annotations_size
from kschedd.registry.validation_selectors import validate_label_selector

Raw = dict[str, Any]
Faults = list[FieldError]
Place = Callable[[str, str], None]
"""Records the path of a file, and its text for the message if another source has the same path."""

_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_PATHS: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST: Final = 3600
_LONGEST: Final = 91 * 24 * 3600
_LONGEST_OF_KUBERNETES: Final = 24 * 3600


def validate_trust_bundle(bundle: Raw, here: str, place: Place, faults: Faults) -> None:
    name, signer = bundle.get("name"), bundle.get("signerName")
    if name is not None and signer is not None:
        shown = go_struct("ClusterTrustBundleProjection", bundle)
        faults.append(invalid(here, shown, "only one of name and signerName may be used"))
    elif name is not None:
        if not name:
            faults.append(required(f"{here}.name", "must be a valid object name"))
        validate_bundle_name(name, f"{here}.name", faults)
        if (selector := bundle.get("labelSelector")) is not None:
            why = "labelSelector must be unset if name is specified"
            faults.append(invalid(f"{here}.labelSelector", selector, why))
    elif signer is not None:
        if not signer:
            faults.append(required(f"{here}.signerName", "must be a valid signer name"))
        validate_signer(signer, f"{here}.signerName", faults)
        validate_label_selector(bundle.get("labelSelector"), f"{here}.labelSelector", faults)
    else:
        faults.append(required(here, "either name or signerName must be specified"))
    path = bundle.get("path") or ""
    if not path:
        faults.append(required(f"{here}.path"))
    validate_not_reserved(path, f"{here}.path", faults)
    place(path, path)


def validate_pod_certificate(certificate: Raw, here: str, place: Place, faults: Faults) -> None:
    signer = certificate.get("signerName") or ""
    validate_signer(signer, f"{here}.signerName", faults)
    if annotations := certificate.get("userAnnotations"):
        _validate_user_annotations(annotations, f"{here}.userAnnotations", faults)
    if (key_type := certificate.get("keyType") or "") not in _KEY_TYPES:
        faults.append(unsupported(f"{here}.keyType", key_type, _KEY_TYPES))
    if (seconds := certificate.get("maxExpirationSeconds")) is not None:
        at, most = f"{here}.maxExpirationSeconds", _LONGEST_OF_KUBERNETES if is_of_kubernetes(signer) else _LONGEST
        if seconds < _SHORTEST:
            faults.append(invalid(at, seconds, f"if provided, maxExpirationSeconds must be >= {_SHORTEST}"))
        if seconds > most:
            faults.append(invalid(at, seconds, f"if provided, maxExpirationSeconds must be <= {most}"))
    stated = [(field, path) for field in _PATHS if (path := certificate.get(field))]
    for field, path in stated:
        validate_not_reserved(path, f"{here}.{field}", faults)
        place(path, path)
    if not stated:
        why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        faults.append(required(here, why))


def _validate_user_annotations(annotations: dict[str, str], path: str, faults: Faults) -> None:
    for key in map(str.lower, annotations):
        if not key:
            faults.append(required(path))
        elif wrong := qualified_name(key):
            faults += [invalid(path, key, why) for why in wrong]
        elif "/" not in key:
            faults.append(invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")'))
    validate_annotations_size(annotations, path, faults)
