"""Validation of APIServices: group and version, and the Service that serves the API.

Source: Kubernetes v1.34, kube-aggregator/pkg/apis/apiregistration/validation/validation.go.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required, unsupported
from kschedd.api.selecting.names import between, dns1035_label, dns_subdomain, path_segment

Raw = Mapping[str, Any]
Faults = list[FieldError]

_MOST_OF_GROUP: Final = 20_000
_MOST_OF_VERSION: Final = 1_000
_STATUSES: Final = ("False", "True", "Unknown")


def validate_api_service(item: Raw, faults: Faults) -> None:
    """Append the errors of an APIService."""
    spec = item.get("spec") or {}
    group, version = spec.get("group") or "", spec.get("version") or ""
    name, wanted = (item.get("metadata") or {}).get("name") or "", f"{version}.{group}"
    if name and name != wanted and not path_segment(name):
        faults.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"'))
    if group:
        faults += [invalid("spec.group", group, why) for why in dns_subdomain(group)]
    elif version != "v1":
        faults.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    faults += [invalid("spec.version", version, why) for why in dns1035_label(version)]
    for field, most in (("groupPriorityMinimum", _MOST_OF_GROUP), ("versionPriority", _MOST_OF_VERSION)):
        if not 0 < (number := spec.get(field) or 0) <= most:
            faults.append(invalid(f"spec.{field}", number, f"must be positive and less than {most}"))
    bundle, insecure = spec.get("caBundle") or "", spec.get("insecureSkipTLSVerify") or False
    service = spec.get("service")
    if service is None:
        if bundle:
            size = len(bundle) * 3 // 4 - bundle.count("=")
            faults.append(invalid("spec.caBundle", f"{size} bytes", "local APIServices may not have a caBundle"))
        if insecure:
            why = "local APIServices may not have insecureSkipTLSVerify"
            faults.append(invalid("spec.insecureSkipTLSVerify", insecure, why))
        return
    faults += [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    port = service.get("port") or 0
    if not 0 < port < 1 << 16:
        faults.append(invalid("spec.service.port", port, f"port is not valid: {between(1, 65535)}"))
    if insecure and bundle:
        faults.append(invalid("spec.insecureSkipTLSVerify", insecure, "may not be true if caBundle is present"))


def validate_api_service_status(item: Raw, faults: Faults) -> None:
    """Append the errors of an APIService's status."""
    for index, condition in enumerate((item.get("status") or {}).get("conditions") or ()):
        if (status := condition.get("status") or "") not in _STATUSES:
            faults.append(unsupported(f"status.conditions[{index}].status", status, _STATUSES))
