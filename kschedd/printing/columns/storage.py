"""Columns of PersistentVolumes and claims, StorageClasses, CSI objects and dynamic resources.

Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Mapping
from typing import Any

from kschedd.printing.columns.ages import age
from kschedd.printing.columns.by_kind import AGE, NAME, Column, Raw, RowContext, field, meta, spec, status
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


def _phase(raw: Raw, around: RowContext) -> str:
    return "Terminating" if _terminating(raw) else str(status(raw).get("phase") or "Pending")


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
    """The value of a ResourceClaim's STATE column: `pending`, `allocated,reserved`."""
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
    """The required node affinity of a PersistentVolume: `zone=a|b`, terms joined by " or "."""
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


_VOLUME_MODE = Column("VOLUMEMODE", field(spec, "volumeMode", "Filesystem"), wide=True)

STORAGE: Mapping[str, tuple[Column, ...]] = {
    "PersistentVolume": (
        NAME,
        Column("CAPACITY", lambda raw, around: str((spec(raw).get("capacity") or {}).get("storage", ""))),
        Column("ACCESS MODES", lambda raw, around: modes_text(spec(raw).get("accessModes"))),
        Column("RECLAIM POLICY", field(spec, "persistentVolumeReclaimPolicy", "Retain")),
        Column("STATUS", _phase),
        Column("CLAIM", _volume_claim),
        Column("STORAGECLASS", field(spec, "storageClassName")),
        Column("VOLUMEATTRIBUTESCLASS", field(spec, "volumeAttributesClassName", "<unset>")),
        Column("REASON", field(status, "reason")),
        AGE,
        _VOLUME_MODE,
        Column("NODE AFFINITY", _volume_nodes, wide=True),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("STATUS", _phase),
        Column("VOLUME", field(spec, "volumeName")),
        Column("CAPACITY", _claim_capacity),
        Column("ACCESS MODES", _claim_modes),
        Column("STORAGECLASS", field(spec, "storageClassName")),
        Column("VOLUMEATTRIBUTESCLASS", field(spec, "volumeAttributesClassName", "<unset>")),
        AGE,
        _VOLUME_MODE,
    ),
    "StorageClass": (
        Column("NAME", _class_name),
        Column("PROVISIONER", field(_of, "provisioner")),
        Column("RECLAIMPOLICY", field(_of, "reclaimPolicy", "Delete")),
        Column("VOLUMEBINDINGMODE", field(_of, "volumeBindingMode", "Immediate")),
        Column("ALLOWVOLUMEEXPANSION", field(_of, "allowVolumeExpansion", "false")),
        AGE,
    ),
    "CSINode": (NAME, Column("DRIVERS", lambda raw, around: str(len(spec(raw).get("drivers") or ()))), AGE),
    "CSIDriver": (
        NAME,
        Column("ATTACHREQUIRED", field(spec, "attachRequired", "true")),
        Column("STORAGECAPACITY", field(spec, "storageCapacity", "false")),
        Column("MODES", lambda raw, around: ",".join(spec(raw).get("volumeLifecycleModes") or ("Persistent",))),
        AGE,
    ),
    "CSIStorageCapacity": (
        NAME,
        Column("STORAGECLASSNAME", field(_of, "storageClassName")),
        Column("CAPACITY", field(_of, "capacity")),
        AGE,
    ),
    "VolumeAttachment": (
        NAME,
        Column("ATTACHER", field(spec, "attacher")),
        Column("PV", _source),
        Column("NODE", field(spec, "nodeName")),
        Column("ATTACHED", field(status, "attached", "false")),
        AGE,
    ),
    "ResourceClaim": (
        NAME,
        Column("STATE", lambda raw, around: claim_state(raw)),
        AGE,
        Column("DEVICES", _claim_devices, wide=True),
        Column("RESERVED FOR", _claim_users, wide=True),
    ),
    "ResourceSlice": (
        NAME,
        Column("NODE", _slice_node),
        Column("DRIVER", field(spec, "driver")),
        Column("POOL", lambda raw, around: str((spec(raw).get("pool") or {}).get("name", ""))),
        Column("DEVICES", lambda raw, around: str(len(spec(raw).get("devices") or ())), wide=True),
        AGE,
    ),
    "DeviceTaintRule": (
        NAME,
        Column("KEY", field(_taint, "key")),
        Column("VALUE", field(_taint, "value")),
        Column("EFFECT", field(_taint, "effect")),
        Column("TIMEADDED", _added),
        AGE,
    ),
}
