"""Cells of the tables of PersistentVolumes, their claims, StorageClasses, CSI objects and dynamic resources.

Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Mapping
from typing import Any

from kschedd.printing.columns.ages import age
from kschedd.printing.columns.by_kind import Cell, Cells, Raw, RowContext, field, meta, spec, status
from kschedd.printing.terminal.tables import NONE

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def modes_text(modes: Any) -> str:
    return ",".join(_MODES.get(mode, str(mode)) for mode in modes or ())


def _terminating(raw: Raw) -> bool:
    return bool(meta(raw).get("deletionTimestamp"))


def _taint(rule: Raw) -> Raw:
    return spec(rule).get("taint") or {}


def _added(rule: Raw, around: RowContext) -> str:
    at = _taint(rule).get("timeAdded")
    return age(at, around.now) if at else ""


def _volume_claim(volume: Raw, around: RowContext) -> str:
    claim = spec(volume).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _claim_capacity(claim: Raw, around: RowContext) -> str:
    return str((status(claim).get("capacity") or {}).get("storage", "")) if spec(claim).get("volumeName") else ""


def _claim_modes(claim: Raw, around: RowContext) -> str:
    return modes_text(status(claim).get("accessModes")) if spec(claim).get("volumeName") else ""


def _class_name(raw: Raw, around: RowContext) -> str:
    default = (meta(raw).get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return str(meta(raw).get("name", "")) + (" (default)" if default else "")


def claim_state(claim: Raw) -> str:
    """Return the value of a ResourceClaim's STATE column: `pending`, `allocated,reserved`."""
    words = []
    if _terminating(claim):
        words.append("deleted")
    if status(claim).get("allocation"):
        words.append("allocated")
        if status(claim).get("reservedFor"):
            words.append("reserved")
    elif not words:
        words.append("pending")
    return ",".join(words)


def _slice_node(raw: Raw, around: RowContext) -> str:
    if spec(raw).get("allNodes"):
        return "<all>"
    return str(spec(raw).get("nodeName") or ("<selector>" if spec(raw).get("nodeSelector") else NONE))


def _source(attachment: Raw, around: RowContext) -> str:
    return str((spec(attachment).get("source") or {}).get("persistentVolumeName") or "")


def _of(raw: Raw) -> Raw:
    return raw


def _volume_nodes(volume: Raw, around: RowContext) -> str:
    """Return the required node affinity of a PersistentVolume as text: `zone=a|b`, terms joined by " or "."""
    required = (spec(volume).get("nodeAffinity") or {}).get("required") or {}
    terms = []
    for term in required.get("nodeSelectorTerms") or ():
        wanted = (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
        terms.append(",".join(_requirement(each) for each in wanted))
    return " or ".join(terms) or NONE


def _requirement(wanted: Raw) -> str:
    key, operator, values = (
        wanted.get("key", ""),
        wanted.get("operator"),
        "|".join(map(str, wanted.get("values") or ())),
    )
    return f"{key}={values}" if operator == "In" else f"{key} {operator} {values}".rstrip()


def _claim_devices(claim: Raw, around: RowContext) -> str:
    devices = ((status(claim).get("allocation") or {}).get("devices") or {}).get("results") or ()
    return ",".join(f"{device.get('pool')}/{device.get('device')}" for device in devices) or NONE


def _claim_users(claim: Raw, around: RowContext) -> str:
    return ",".join(str(user.get("name", "")) for user in status(claim).get("reservedFor") or ()) or NONE


def _phase(raw: Raw, around: RowContext) -> str:
    return "Terminating" if meta(raw).get("deletionTimestamp") else str(status(raw).get("phase") or "")


def _driver(name: str, absent: Any) -> Cell:
    return lambda raw, around: spec(raw).get(name, absent)


STORAGE: Mapping[str, Cells] = {
    "PersistentVolume": {
        "Capacity": lambda raw, around: str((spec(raw).get("capacity") or {}).get("storage", "")),
        "Access Modes": lambda raw, around: modes_text(spec(raw).get("accessModes")),
        "Reclaim Policy": field(spec, "persistentVolumeReclaimPolicy", "Retain"),
        "Status": _phase,
        "Claim": _volume_claim,
        "StorageClass": field(spec, "storageClassName"),
        "VolumeAttributesClass": field(spec, "volumeAttributesClassName", "<unset>"),
        "Reason": field(status, "reason"),
        "VolumeMode": field(spec, "volumeMode", "Filesystem"),
    },
    "PersistentVolumeClaim": {
        "Status": _phase,
        "Volume": field(spec, "volumeName"),
        "Capacity": _claim_capacity,
        "Access Modes": _claim_modes,
        "StorageClass": field(spec, "storageClassName"),
        "VolumeAttributesClass": field(spec, "volumeAttributesClassName", "<unset>"),
        "VolumeMode": field(spec, "volumeMode", "Filesystem"),
    },
    "StorageClass": {
        "Name": _class_name,
        "Provisioner": field(_of, "provisioner"),
        "ReclaimPolicy": field(_of, "reclaimPolicy", "Delete"),
        "VolumeBindingMode": field(_of, "volumeBindingMode", "Immediate"),
        "AllowVolumeExpansion": lambda raw, around: bool(raw.get("allowVolumeExpansion")),
    },
    "CSINode": {"Drivers": lambda raw, around: str(len(spec(raw).get("drivers") or ()))},
    "CSIDriver": {
        "AttachRequired": _driver("attachRequired", True),
        "PodInfoOnMount": _driver("podInfoOnMount", False),
        "StorageCapacity": _driver("storageCapacity", False),
        "TokenRequests": lambda raw, around: "<unset>" if not spec(raw).get("tokenRequests") else "<set>",
        "RequiresRepublish": _driver("requiresRepublish", False),
        "Modes": lambda raw, around: ",".join(spec(raw).get("volumeLifecycleModes") or ("Persistent",)),
    },
    "CSIStorageCapacity": {"StorageClassName": field(_of, "storageClassName"), "Capacity": field(_of, "capacity")},
    "VolumeAttachment": {
        "Attacher": field(spec, "attacher"),
        "PV": _source,
        "Node": field(spec, "nodeName"),
        "Attached": field(status, "attached", "false"),
    },
    "ResourceClaim": {"State": lambda raw, around: claim_state(raw)},
    "ResourceSlice": {
        "Node": _slice_node,
        "Driver": field(spec, "driver"),
        "Pool": lambda raw, around: str((spec(raw).get("pool") or {}).get("name", "")),
    },
    "DeviceTaintRule": {
        "Key": field(_taint, "key"),
        "Value": field(_taint, "value"),
        "Effect": field(_taint, "effect"),
        "TimeAdded": _added,
    },
}
STORAGE_WIDE: Mapping[str, Cells] = {
    "PersistentVolume": {"NODE AFFINITY": _volume_nodes},
    "ResourceClaim": {"DEVICES": _claim_devices, "RESERVED FOR": _claim_users},
    "ResourceSlice": {"DEVICES": lambda raw, around: str(len(spec(raw).get("devices") or ()))},
}
"""Columns of `-o wide` in addition to kubectl's."""
