"""Names of certificate signers, and of their trust bundles.

Source: Kubernetes v1.37, pkg/apis/core/validation/names.go (ValidateSignerName, ValidateClusterTrustBundleName).
"""

from typing import Final

from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.selecting.names import dns_label, dns_subdomain

_LONGEST_DOMAIN: Final = 253
_LONGEST_SIGNER: Final = _LONGEST_DOMAIN + 1 + 253 + 63 + 1


def validate_signer(signer: str, path: str, faults: list[FieldError]) -> None:
    """Append the errors of a signer's name to `faults`."""
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


def is_of_kubernetes(signer: str) -> bool:
    """Return whether this is the name of a signer of Kubernetes."""
    domain = signer.partition("/")[0]
    return domain == "kubernetes.io" or domain.endswith(".kubernetes.io")


def validate_bundle_name(name: str, path: str, faults: list[FieldError]) -> None:
    """Append the errors of a ClusterTrustBundle's name to `faults`; the name may be prefixed by a signer's name."""
    own = name.rpartition(":")[2]
    faults += [invalid(path, name, f"not a valid clustertrustbundlename: {why}") for why in dns_subdomain(own)]


def _too_long(path: str, most: int) -> FieldError:
    return FieldError(path, None, f"Too long: may not be more than {most} bytes")
