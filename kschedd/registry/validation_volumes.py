"""Validation of storage: pod volumes, PersistentVolumes and claims, StorageClasses and CSI objects.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go and pkg/apis/storage/validation/validation.go.
Takes values that match the schema and have their defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.quantity import nanos
from kschedd.api.validation_names import dns_label, dns_subdomain, qualified_name
from kschedd.registry.validation_resources import NOT_NEGATIVE
from kschedd.registry.validation_selectors import validate_label_selector, validate_node_selector

Raw = dict[str, Any]
Faults = list[FieldError]

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "persistentVolumeClaim": ("claimName",),
    "ephemeral": ("volumeClaimTemplate",),
    "hostPath": ("path",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "csi": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "cinder": ("volumeID",),
    "iscsi": ("targetPortal", "iqn"),
    "rbd": ("monitors", "image"),
    "nfs": ("server", "path"),
    "image": ("reference",),
}


def validate_volumes(volumes: Sequence[Raw], path: str, faults: Faults) -> frozenset[str]:
    """Validate the volumes of a pod and return their names."""
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        here = f"{path}[{index}]"
        name = volume.get("name") or ""
        if not name:
            faults.append(required(f"{here}.name"))
        elif name in names:
            faults.append(duplicate(f"{here}.name", name))
        else:
            faults += [invalid(f"{here}.name", name, why) for why in dns_label(name)]
        names.add(name)
        sources = [field for field in volume if field != "name"]
        if not sources:
            faults.append(required(here, "must specify a volume type"))
        for extra in sources[1:]:
            faults.append(forbidden(f"{here}.{extra}", "may not specify more than 1 volume type"))
        _validate_source(volume, here, faults)
    return frozenset(names)


def _validate_source(volume: Raw, path: str, faults: Faults) -> None:
    for source, needed in _NEEDED.items():
        stated = volume.get(source)
        if stated is None:
            continue
        for field in needed:
            if not stated.get(field):
                faults.append(required(f"{path}.{source}.{field}"))
    if (disk := volume.get("iscsi")) and not 0 <= (disk.get("lun") or 0) <= 255:
        faults.append(invalid(f"{path}.iscsi.lun", disk["lun"], "must be between 0 and 255, inclusive"))
    if (limit := (volume.get("emptyDir") or {}).get("sizeLimit")) is not None and nanos(limit) < 0:
        why = "SizeLimit field must be a valid resource quantity"
        faults.append(forbidden(f"{path}.emptyDir.sizeLimit", why))
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template:
        here = f"{path}.ephemeral.volumeClaimTemplate"
        validate_claim_spec(template.get("spec") or {}, f"{here}.spec", faults)


def _validate_access_modes(modes: Sequence[str], path: str, faults: Faults) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            faults.append(unsupported(path, mode, ACCESS_MODES))
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        faults.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def validate_claim_spec(spec: Raw, path: str, faults: Faults) -> None:
    """The spec of a PersistentVolumeClaim."""
    modes = spec.get("accessModes") or ()
    if not modes:
        faults.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    _validate_access_modes(modes, f"{path}.accessModes", faults)
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        faults.append(required(f"{path}.resources[storage]"))
    elif nanos(requests["storage"]) <= 0:
        faults.append(invalid(f"{path}.resources[storage]", requests["storage"], "must be greater than zero"))
    if name := spec.get("storageClassName"):
        faults += [invalid(f"{path}.storageClassName", name, why) for why in dns_subdomain(name)]
    mode = spec.get("volumeMode")
    if mode and mode not in VOLUME_MODES:
        faults.append(unsupported(f"{path}.volumeMode", mode, VOLUME_MODES))
    for field in ("dataSource", "dataSourceRef"):
        if field in spec:
            _validate_data_source(spec[field], f"{path}.{field}", faults)
    validate_label_selector(spec.get("selector"), f"{path}.selector", faults)


def _validate_data_source(source: Raw, path: str, faults: Faults) -> None:
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    faults += [required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    if not group and kind != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        faults.append(invalid(path, kind, why))
    if group:
        faults += [invalid(f"{path}.apiGroup", group, why) for why in dns_subdomain(group)]


def validate_claim(claim: Raw, faults: Faults) -> None:
    validate_claim_spec(claim.get("spec") or {}, "spec", faults)


_NOT_SOURCES: Final = frozenset(
    (
        "capacity",
        "accessModes",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeMode",
        "claimRef",
        "nodeAffinity",
        "mountOptions",
        "volumeAttributesClassName",
    )
)


def validate_volume(volume: Raw, faults: Faults) -> None:
    """A PersistentVolume."""
    spec = volume.get("spec") or {}
    modes = spec.get("accessModes") or ()
    if not modes:
        faults.append(required("spec.accessModes"))
    _validate_access_modes(modes, "spec.accessModes", faults)
    stated = spec.get("capacity")
    capacity = stated or {}
    if not capacity:
        faults.append(required("spec.capacity"))
    if list(capacity) != ["storage"]:
        faults.append(unsupported("spec.capacity", stated and dict(sorted(stated.items())), ("storage",)))
    for name, quantity in capacity.items():
        if nanos(quantity) <= 0:
            faults.append(invalid(f"spec.capacity[{name}]", quantity, "must be greater than zero"))
    sources = [field for field in spec if field not in _NOT_SOURCES]
    if not sources:
        faults.append(required("spec", "must specify a volume type"))
    for extra in sources[1:]:
        faults.append(forbidden(f"spec.{extra}", "may not specify more than 1 volume type"))
    for source, needed in (("csi", ("driver", "volumeHandle")), ("local", ("path",)), ("hostPath", ("path",))):
        if (stated := spec.get(source)) is not None:
            faults += [required(f"spec.{source}.{field}") for field in needed if not stated.get(field)]
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in ("Delete", "Recycle", "Retain"):
        faults.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain")))
    if name := spec.get("storageClassName"):
        faults += [invalid("spec.storageClassName", name, why) for why in dns_subdomain(name)]
    mode = spec.get("volumeMode")
    if mode and mode not in VOLUME_MODES:
        faults.append(unsupported("spec.volumeMode", mode, VOLUME_MODES))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            faults.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            validate_node_selector(affinity["required"], "spec.nodeAffinity.required", faults)
    elif "local" in spec:
        faults.append(required("spec.nodeAffinity", "Local volume requires node affinity"))


def validate_storage_class(item: Raw, faults: Faults) -> None:
    provisioner = item.get("provisioner") or ""
    if not provisioner:
        faults.append(required("provisioner"))
    else:
        faults += [invalid("provisioner", provisioner, why) for why in qualified_name(provisioner.lower())]
    policy = item.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        faults.append(unsupported("reclaimPolicy", policy, ("Delete", "Retain")))
    mode = item.get("volumeBindingMode")
    if mode is None:
        faults.append(required("volumeBindingMode"))
    elif mode not in _BINDING_MODES:
        faults.append(unsupported("volumeBindingMode", mode, _BINDING_MODES))
    for index, term in enumerate(item.get("allowedTopologies") or ()):
        keys = set()
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            here = f"allowedTopologies[{index}].matchLabelExpressions[{number}]"
            key = expression.get("key", "")
            faults += [invalid(f"{here}.key", key, why) for why in qualified_name(key)]
            if not expression.get("values"):
                faults.append(required(f"{here}.values"))
            values = expression.get("values") or ()
            for place, value in enumerate(values):
                if value in values[:place]:
                    faults.append(duplicate(f"{here}.values[{place}]", value))
            if key in keys:
                faults.append(duplicate(f"{here}.key", key))
            keys.add(key)


def validate_csi_node(node: Raw, faults: Faults) -> None:
    names = set()
    for index, driver in enumerate((node.get("spec") or {}).get("drivers") or ()):
        here = f"spec.drivers[{index}]"
        name = driver.get("name") or ""
        if not name:
            faults.append(required(f"{here}.name"))
        else:
            faults += [invalid(f"{here}.name", name, why) for why in dns_subdomain(name.lower())]
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        if not driver.get("nodeID"):
            faults.append(required(f"{here}.nodeID"))
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            faults.append(invalid(f"{here}.allocatable.count", count, NOT_NEGATIVE))


def validate_csi_driver(driver: Raw, faults: Faults) -> None:
    for mode in (driver.get("spec") or {}).get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            faults.append(unsupported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))


def validate_storage_capacity(item: Raw, faults: Faults) -> None:
    name = item.get("storageClassName") or ""
    faults += [invalid("storageClassName", name, why) for why in dns_subdomain(name)]
    for field in ("capacity", "maximumVolumeSize"):
        quantity = item.get(field)
        if quantity is not None and nanos(quantity) < 0:
            faults.append(invalid(field, quantity, NOT_NEGATIVE))
    validate_label_selector(item.get("nodeTopology"), "nodeTopology", faults)


def validate_attachment(item: Raw, faults: Faults) -> None:
    spec = item.get("spec") or {}
    for field in ("attacher", "nodeName"):
        if not spec.get(field):
            faults.append(required(f"spec.{field}"))
    source = spec.get("source") or {}
    if not source.get("persistentVolumeName") and not source.get("inlineVolumeSpec"):
        faults.append(required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
