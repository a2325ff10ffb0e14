"""Validation of volume sources that both pods and PersistentVolumes support.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (validate*VolumeSource and
validate*PersistentVolumeSource).
Each check receives a source, its path in messages, and whether it belongs to a PersistentVolume.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required, unsupported
from kschedd.api.selecting.names import between, dns_label

Raw = dict[str, Any]
Faults = list[FieldError]
Check = Callable[[Raw, str, Faults, bool], None]

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
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "nfs": ("server", "path"),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "azureDisk": ("diskName", "diskURI"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
}


def validate_common_source(kind: str, source: Raw, path: str, faults: Faults, persistent: bool = False) -> None:
    """Validate a source of a type that both pods and PersistentVolumes support."""
    faults += [required(f"{path}.{field}") for field in _NEEDED.get(kind, ()) if not source.get(field)]
    if (check := _CHECKS.get(kind)) is not None:
        check(source, path, faults, persistent)


def _host_path(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    if not source.get("path"):
        faults.append(required(f"{path}.path"))
        return
    validate_no_backsteps(source["path"], f"{path}.path", faults)
    if (kind := source.get("type")) is not None and kind not in _HOST_PATH_TYPES:
        faults.append(unsupported(f"{path}.type", kind, _HOST_PATH_TYPES))


def _partition(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    number = source.get("partition") or 0
    if not 0 <= number <= 255:
        faults.append(invalid(f"{path}.partition", number, between(1, 255)))


def _nfs(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    if not (source.get("path") or "").startswith("/"):
        faults.append(invalid(f"{path}.path", source.get("path") or "", "must be an absolute path"))


_INITIATORS: Final = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+\Z"),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}


def _initiator(name: str, path: str, faults: Faults, persistent: bool) -> None:
    expression = _INITIATORS.get(name[:3])
    if expression is None:
        why = "must be valid format" if persistent else "must be valid format starting with iqn, eui, or naa"
        faults.append(invalid(path, name, why))
    elif not expression.search(name):
        faults.append(invalid(path, name, "must be valid format"))


def _iscsi(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    if not source.get("targetPortal"):
        faults.append(required(f"{path}.targetPortal"))
    if not (name := source.get("iqn") or ""):
        faults.append(required(f"{path}.iqn"))
    else:
        _initiator(name, f"{path}.iqn", faults, persistent)
    lun = source.get("lun") or 0
    if not 0 <= lun <= 255:
        faults.append(invalid(f"{path}.lun", lun, between(0, 255)))
    secret = source.get("secretRef")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and secret is None:
        faults.append(required(f"{path}.secretRef"))
    if persistent and secret is not None and not secret.get("name"):
        faults.append(required(f"{path}.secretRef.name"))
    if (initiator := source.get("initiatorName")) is not None:
        _initiator(initiator, f"{path}.initiatorname", faults, persistent)


def initiator_too_long(source: Raw, name: str) -> str:
    """Return the reason why this iSCSI source is not allowed in a volume of this name, or None."""
    if source.get("initiatorName") is None or len(f"{name}:{source.get('targetPortal') or ''}".encode()) <= 64:
        return ""
    whole = "Total length of <volume name>:<iscsi.targetPortal>"
    return f"{whole} must be under 64 characters if iscsi.initiatorName is specified."


def _glusterfs(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    space = source.get("endpointsNamespace") if persistent else None
    if space == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        faults.append(invalid(f"{path}.endpointsNamespace", space, why))
    elif space is not None:
        faults += [invalid(f"{path}.endpointsNamespace", space, why) for why in dns_label(space)]


def _flocker(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    stated = [field for field in ("datasetName", "datasetUUID") if source.get(field)]
    if not stated:
        faults.append(required(path, "one of datasetName and datasetUUID is required"))
    elif len(stated) > 1:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        faults.append(invalid(path, "resource", why))
    if "/" in (name := source.get("datasetName") or ""):
        faults.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))


def _secret(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    """Validate a secret reference, which requires a namespace only in a PersistentVolume."""
    if (secret := source.get("secretRef")) is None:
        return
    for field in ("name", "namespace") if persistent else ("name",):
        if not secret.get(field):
            faults.append(required(f"{path}.secretRef.{field}"))


_PAIRS: Final = "must be a host:port pair or multiple pairs separated by commas"


def _quobyte(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    registry = source.get("registry") or ""
    if not registry:
        faults.append(required(f"{path}.registry", _PAIRS))
    elif len((source.get("tenant") or "").encode()) >= 65:
        faults.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        wrong = [pair for pair in registry.split(",") if not _is_host_port(pair)]
        faults += [invalid(f"{path}.registry", registry, _PAIRS) for _ in wrong]
    if not source.get("volume"):
        faults.append(required(f"{path}.volume"))


def _is_host_port(text: str) -> bool:
    """Return whether Go's net.SplitHostPort accepts the text."""
    last, end = text.rfind(":"), 0
    if last < 0:
        return False
    if text.startswith("["):
        end = text.find("]")
        if end < 0 or end + 1 != last:
            return False
        end += 1
    elif ":" in text[:last]:
        return False
    return "[" not in text[1 if end else 0 :] and "]" not in text[end:]


def _fc(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    names, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not names and not ids:
        faults.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if names and ids:
        faults.append(invalid(f"{path}.targetWWNs", names, "targetWWNs and wwids can not be specified simultaneously"))
    if names and lun is None:
        faults.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif names and not 0 <= (lun or 0) <= 255:
        faults.append(invalid(f"{path}.lun", lun, between(0, 255)))


def _flex(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    for key in source.get("options") or ():
        domain = "." + key.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            faults.append(invalid(f"{path}.options[{key}]", key, why))


def _azure_file(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    if persistent and source.get("secretNamespace") == "":
        faults.append(required(f"{path}.secretNamespace"))


_CACHING: Final = ("None", "ReadOnly", "ReadWrite")
_DISKS: Final = ("Dedicated", "Managed", "Shared")
_MANAGED: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _azure_disk(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    for field, allowed in (("cachingMode", _CACHING), ("kind", _DISKS)):
        if (value := source.get(field)) is not None and value not in allowed:
            faults.append(unsupported(f"{path}.{field}", value, allowed))
    address = source.get("diskURI") or ""
    managed = source.get("kind") == "Managed"
    if managed and not address.startswith("/subscriptions/"):
        faults.append(unsupported(f"{path}.diskURI", address, (_MANAGED,)))
    elif source.get("kind") is not None and not managed and not address.startswith("https://"):
        faults.append(unsupported(f"{path}.diskURI", address, (_BLOB,)))


def _storage_os(source: Raw, path: str, faults: Faults, persistent: bool) -> None:
    if not (name := source.get("volumeName") or ""):
        faults.append(required(f"{path}.volumeName"))
    else:
        faults += [invalid(f"{path}.volumeName", name, why) for why in dns_label(name)]
    if space := source.get("volumeNamespace"):
        faults += [invalid(f"{path}.volumeNamespace", space, why) for why in dns_label(space)]
    _secret(source, path, faults, persistent)


_CHECKS: Final[Mapping[str, Check]] = {
    "hostPath": _host_path,
    "gcePersistentDisk": _partition,
    "awsElasticBlockStore": _partition,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _glusterfs,
    "flocker": _flocker,
    "cinder": _secret,
    "quobyte": _quobyte,
    "fc": _fc,
    "flexVolume": _flex,
    "azureFile": _azure_file,
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
}


def with_backsteps(path: str) -> bool:
    return ".." in path.split("/")


def validate_no_backsteps(path: str, where: str, faults: Faults) -> None:
    if with_backsteps(path):
        faults.append(invalid(where, path, "must not contain '..'"))


def validate_descending(path: str, where: str, faults: Faults) -> None:
    if path.startswith("/"):
        faults.append(invalid(where, path, "must be a relative path"))
    validate_no_backsteps(path, where, faults)


def validate_not_reserved(path: str, where: str, faults: Faults) -> None:
    """Check that a relative path does not begin with two dots, a prefix of the kubelet's own files."""
    validate_descending(path, where, faults)
    if path.startswith("..") and not path.startswith("../"):
        faults.append(invalid(where, path, "must not start with '..'"))
