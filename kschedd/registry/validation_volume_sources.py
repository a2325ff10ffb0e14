"""Validation of volume sources that pods and PersistentVolumes have in common.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (validateAzureDisk, validateHostPathType).
"""

from typing import Any, Final

from kschedd.api.fields import FieldError, unsupported

Raw = dict[str, Any]
Faults = list[FieldError]

_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_CACHING: Final = ("None", "ReadOnly", "ReadWrite")
_DISKS: Final = ("Dedicated", "Managed", "Shared")
_MANAGED: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def validate_azure_disk(source: Raw, path: str, faults: Faults) -> None:
    for field, allowed in (("cachingMode", _CACHING), ("kind", _DISKS)):
        if (value := source.get(field)) is not None and value not in allowed:
            faults.append(unsupported(f"{path}.{field}", value, allowed))
    address = source.get("diskURI") or ""
    managed = source.get("kind") == "Managed"
    if managed and not address.startswith("/subscriptions/"):
        faults.append(unsupported(f"{path}.diskURI", address, (_MANAGED,)))
    elif source.get("kind") is not None and not managed and not address.startswith("https://"):
        faults.append(unsupported(f"{path}.diskURI", address, (_BLOB,)))


def validate_host_path_type(source: Raw, path: str, faults: Faults) -> None:
    if (kind := source.get("type")) is not None and kind not in _HOST_PATH_TYPES:
        faults.append(unsupported(f"{path}.type", kind, _HOST_PATH_TYPES))
