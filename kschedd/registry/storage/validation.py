"""Validation of storage: pod volumes, PersistentVolumes and claims, StorageClasses and CSI objects.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go, pkg/apis/storage/validation/validation.go and
pkg/volume/validation/pv_validation.go.
The functions require values that match the schema and have their defaults.
"""

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.quantity import nanos
from kschedd.api.quantity import value as whole
from kschedd.api.schemas.fields import ENOUGH, FieldError, duplicate, forbidden, invalid, repeats, required, unsupported
from kschedd.api.selecting.names import dns_label, dns_subdomain, qualified_name
from kschedd.registry.storage.volume_sources import initiator_too_long, validate_common_source, validate_no_backsteps
from kschedd.registry.validation_resources import NOT_NEGATIVE
from kschedd.registry.validation_selectors import validate_label_selector, validate_node_selector

Raw = dict[str, Any]
Faults = list[FieldError]

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")


def _validate_access_modes(modes: Sequence[str], path: str, faults: Faults) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            faults.append(unsupported(path, mode, ACCESS_MODES))
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        faults.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def validate_claim_spec(spec: Raw, path: str, faults: Faults, *, any_group: bool = False) -> None:
    """Validate the spec of a PersistentVolumeClaim; with `any_group`, data sources may have any API group."""
    modes = spec.get("accessModes") or ()
    if not modes:
        faults.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    validate_label_selector(spec.get("selector"), f"{path}.selector", faults)
    _validate_access_modes(modes, f"{path}.accessModes", faults)
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        faults.append(required(f"{path}.resources[storage]"))
    elif nanos(requests["storage"]) <= 0:
        faults.append(invalid(f"{path}.resources[storage]", requests["storage"], "must be greater than zero"))
    if name := spec.get("storageClassName"):
        faults += [invalid(f"{path}.storageClassName", name, why) for why in dns_subdomain(name)]
    _validate_mode(spec, path, faults)
    for field in ("dataSource", "dataSourceRef"):
        if field in spec:
            _validate_data_source(spec[field], f"{path}.{field}", faults, any_group)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is not None:
        if reference.get("namespace"):
            faults.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
        elif not _same_source(source, reference):
            faults.append(invalid(path, {}, "must match dataSourceRef"))
    if name := spec.get("volumeAttributesClassName"):
        faults += [invalid(f"{path}.volumeAttributesClassName", name, why) for why in dns_subdomain(name)]


def _validate_mode(spec: Raw, path: str, faults: Faults) -> None:
    if (mode := spec.get("volumeMode")) is not None and mode not in VOLUME_MODES:
        faults.append(unsupported(f"{path}.volumeMode", mode, VOLUME_MODES))


def _same_source(source: Raw, reference: Raw) -> bool:
    named = all((source.get(field) or "") == (reference.get(field) or "") for field in ("kind", "name"))
    return named and source.get("apiGroup") == reference.get("apiGroup")


def _validate_data_source(source: Raw, path: str, faults: Faults, any_group: bool) -> None:
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    faults += [required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    if not group and kind != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        faults.append(invalid(path, kind, why))
    if group and not any_group:
        faults += [invalid(f"{path}.apiGroup", group, why) for why in dns_subdomain(group)]
    if space := source.get("namespace"):
        faults += [invalid(f"{path}.namespace", space, why) for why in dns_label(space)]


def validate_claim(claim: Raw, faults: Faults) -> None:
    validate_claim_spec(claim.get("spec") or {}, "spec", faults)


def validate_updated_claim(claim: Raw, old: Mapping[str, Any], faults: Faults) -> None:
    """Validate an updated claim; data sources may have any API group if the old claim's data source had one."""
    before = old.get("spec") or {}
    stated = any("apiGroup" in (before.get(field) or {}) for field in ("dataSource", "dataSourceRef"))
    validate_claim_spec(claim.get("spec") or {}, "spec", faults, any_group=stated)


_SOURCES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip


def _validate_volume_source(spec: Raw, name: str, faults: Faults) -> None:
    """Check that there is exactly one source, with its required fields.

    If there are two sources, the later source in upstream's order is rejected.
    """
    stated = [source for source in _SOURCES if spec.get(source) is not None]
    for index, kind in enumerate(stated):
        source = spec[kind]
        if index and kind != "flexVolume":  # upstream does not reject these second sources
            called = "cephFS" if kind == "cephfs" else kind
            faults.append(forbidden(f"spec.{called}", "may not specify more than 1 volume type"))
            continue
        here = f"spec.{'persistentDisk' if kind == 'gcePersistentDisk' else kind}"
        if kind == "iscsi" and (why := initiator_too_long(source, name)):
            faults.append(invalid(f"{here}.targetportal", source.get("targetPortal") or "", why))
        if kind == "csi":
            _validate_csi_source(source, here, faults)
        elif kind == "local":
            _validate_local(spec, here, faults)
        else:
            validate_common_source(kind, source, here, faults, persistent=True)
    if not stated:
        faults.append(required("spec", "must specify a volume type"))


def _validate_local(spec: Raw, path: str, faults: Faults) -> None:
    if not (place := spec["local"].get("path") or ""):
        faults.append(required(f"{path}.path"))
    validate_no_backsteps(place, f"{path}.path", faults)
    if spec.get("nodeAffinity") is None:
        faults.append(required("spec.nodeAffinity", "Local volume requires node affinity"))


def validate_driver_name(name: str, path: str, faults: Faults) -> None:
    """Validate the name of a CSI driver."""
    if not name:
        faults.append(required(path))
    if len(name) > _LONGEST_DRIVER:
        faults.append(FieldError(path, name, f"Too long: may not be more than {_LONGEST_DRIVER} bytes"))
    faults += [invalid(path, name, why) for why in dns_subdomain(name.lower())]


def _validate_csi_source(source: Raw, path: str, faults: Faults) -> None:
    validate_driver_name(source.get("driver") or "", f"{path}.driver", faults)
    if not source.get("volumeHandle"):
        faults.append(required(f"{path}.volumeHandle"))
    for field in _SECRETS:
        if (secret := source.get(field)) is None:
            continue
        for part, check in (("name", dns_subdomain), ("namespace", dns_label)):
            if not (value := secret.get(part) or ""):
                faults.append(required(f"{path}.{field}.{part}"))
            else:
                faults += [invalid(f"{path}.{field}.{part}", value, why) for why in check(value)]


_LONGEST_DRIVER: Final = 63
# Upstream does not check nodeStageSecretRef.
_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_WITH_MOUNT_OPTIONS: Final = (
    "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs",
    "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
)  # fmt: skip


def validate_volume(volume: Raw, faults: Faults) -> None:
    """Validate a PersistentVolume."""
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
        if nanos(quantity) < 0:
            faults.append(invalid(f"spec.capacity[{name}]", whole(quantity), "must be a valid resource quantity"))
        if nanos(quantity) <= 0:
            faults.append(invalid(f"spec.capacity[{name}]", quantity, "must be greater than zero"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _RECLAIM:
        faults.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
    if (affinity := spec.get("nodeAffinity")) is not None:
        if affinity.get("required") is None:
            faults.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            validate_node_selector(affinity["required"], "spec.nodeAffinity.required", faults)
    _validate_volume_source(spec, (volume.get("metadata") or {}).get("name") or "", faults)
    if "hostPath" in spec and policy == "Recycle" and _is_root(spec["hostPath"].get("path") or ""):
        why = "may not be 'recycle' for a hostPath mount of '/'"
        faults.append(forbidden("spec.persistentVolumeReclaimPolicy", why))
    if name := spec.get("storageClassName"):
        faults += [invalid("spec.storageClassName", name, why) for why in dns_subdomain(name)]
    _validate_mode(spec, "spec", faults)
    name = spec.get("volumeAttributesClassName")
    if name == "":
        faults.append(required("spec.volumeAttributesClassName", "an empty string is disallowed"))
    elif name is not None:
        faults += [invalid("spec.volumeAttributesClassName", name, why) for why in dns_subdomain(name)]
    if name is not None and "csi" not in spec:
        why = "has to be specified when using volumeAttributesClassName"
        faults.append(required("spec.csi", why))
    annotations = (volume.get("metadata") or {}).get("annotations") or {}
    if MOUNT_OPTIONS in annotations and not any(source in spec for source in _WITH_MOUNT_OPTIONS):
        why = "may not specify mount options for this volume type"
        faults.append(forbidden(f"metadata.annotations.{MOUNT_OPTIONS}", why))


def _is_root(path: str) -> bool:
    return path.startswith("/") and posixpath.normpath(path).strip("/") == ""


_MOST_PARAMETERS, _LARGEST_PARAMETERS = 512, 256 * 1024


def _validate_provisioner(provisioner: str, path: str, faults: Faults) -> None:
    if not provisioner:
        faults.append(required(path))
    else:
        low = provisioner.lower()
        faults += [invalid(path, low, why) for why in qualified_name(low)]


def _validate_parameters(parameters: Raw, faults: Faults) -> None:
    if len(parameters) > _MOST_PARAMETERS:
        faults.append(FieldError("parameters", None, f"Too long: may not be more than {_MOST_PARAMETERS} bytes"))
        return
    if "" in parameters:
        faults.append(invalid("parameters", "", "field can not be empty."))
    if sum(len(name) + len(value) for name, value in parameters.items()) > _LARGEST_PARAMETERS:
        faults.append(FieldError("parameters", None, f"Too long: may not be more than {_LARGEST_PARAMETERS} bytes"))


def validate_attributes_class(item: Raw, faults: Faults) -> None:
    """Append the errors of a VolumeAttributesClass."""
    parameters = item.get("parameters") or {}
    _validate_provisioner(item.get("driverName") or "", "driverName", faults)
    _validate_parameters(parameters, faults)
    if not parameters:
        faults.append(required("parameters", "must contain at least one key/value pair"))


def validate_storage_class(item: Raw, faults: Faults) -> None:
    _validate_provisioner(item.get("provisioner") or "", "provisioner", faults)
    policy = item.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        faults.append(unsupported("reclaimPolicy", policy, ("Delete", "Retain")))
    mode = item.get("volumeBindingMode")
    if mode is None:
        faults.append(required("volumeBindingMode"))
    elif mode not in _BINDING_MODES:
        faults.append(unsupported("volumeBindingMode", mode, _BINDING_MODES))
    _validate_parameters(item.get("parameters") or {}, faults)
    topologies = item.get("allowedTopologies") or ()
    # Upstream compares each term with all earlier terms, and once with an empty term.
    terms: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter({frozenset(): len(topologies)})
    for index, term in enumerate(topologies):
        expressions = term.get("matchLabelExpressions") or ()
        values_of = {each.get("key", ""): frozenset(each.get("values") or ()) for each in expressions}
        pairs = frozenset(values_of.items())
        here = f"allowedTopologies[{index}].matchLabelExpressions"
        faults += [duplicate(here, "")] * min(terms[pairs], max(0, ENOUGH - len(faults)))
        terms[pairs] += 1
        keys = set()
        for number, expression in enumerate(expressions):
            here = f"allowedTopologies[{index}].matchLabelExpressions[{number}]"
            key = expression.get("key", "")
            if not expression.get("values"):
                faults.append(required(f"{here}.values"))
            faults += [invalid(f"{here}.key", key, why) for why in qualified_name(key)]
            repeated = repeats(expression.get("values") or ())
            faults += [duplicate(f"{here}.values[{place}]", value) for place, value in repeated]
            if key in keys:
                faults.append(duplicate(f"{here}.key", key))
            keys.add(key)


_LONGEST_NODE_ID: Final = 256


def validate_csi_node(node: Raw, faults: Faults) -> None:
    names = set()
    for index, driver in enumerate((node.get("spec") or {}).get("drivers") or ()):
        here = f"spec.drivers[{index}]"
        name = driver.get("name") or ""
        validate_driver_name(name, f"{here}.name", faults)
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        identity = driver.get("nodeID") or ""
        if not identity:
            faults.append(required(f"{here}.nodeID"))
        elif len(identity) > _LONGEST_NODE_ID:
            why = f"must be {_LONGEST_NODE_ID} characters or less"
            faults.append(invalid(f"{here}.nodeID", identity, why))
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                faults.append(required(here))
            faults += [invalid(here, key, why) for why in qualified_name(key)]
            if key in keys:
                faults.append(duplicate(here, key))
            keys.add(key)
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            faults.append(invalid(f"{here}.allocatable.count", count, NOT_NEGATIVE))


_SHORTEST_TOKEN_S: Final = 600


_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")


def validate_csi_driver(driver: Raw, faults: Faults) -> None:
    policy = (driver.get("spec") or {}).get("fsGroupPolicy")
    if policy is not None and policy not in _GROUP_POLICIES:
        faults.append(unsupported("spec.fsGroupPolicy", policy, _GROUP_POLICIES))
    for mode in (driver.get("spec") or {}).get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            faults.append(unsupported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))
    _validate_token_requests(driver, faults)


def _validate_token_requests(driver: Raw, faults: Faults) -> None:
    """Validate a CSIDriver's token requests, and the source of the tokens (`serviceAccountTokenInSecrets`, 1.35)."""
    audiences: set[str] = set()
    spec = driver.get("spec") or {}
    in_secrets, requests = spec.get("serviceAccountTokenInSecrets"), spec.get("tokenRequests") or ()
    if in_secrets is not None and not requests:
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        faults.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, why))
    for index, request in enumerate(requests):
        here, audience = f"spec.tokenRequests[{index}]", request.get("audience") or ""
        if audience in audiences:
            faults.append(duplicate(f"{here}.audience", audience))
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN_S:
            why = "may not specify a duration less than 10 minutes"
            faults.append(invalid(f"{here}.expirationSeconds", seconds, why))
        elif seconds is not None and seconds > 1 << 32:
            why = "may not specify a duration larger than 2^32 seconds"
            faults.append(invalid(f"{here}.expirationSeconds", seconds, why))


def validate_storage_capacity(item: Raw, faults: Faults) -> None:
    name = item.get("storageClassName") or ""
    faults += [invalid("storageClassName", name, why) for why in dns_subdomain(name)]
    quantity = item.get("capacity")  # upstream does not validate maximumVolumeSize
    if quantity is not None and nanos(quantity) < 0:
        faults.append(invalid("capacity", quantity, NOT_NEGATIVE))
    validate_label_selector(item.get("nodeTopology"), "nodeTopology", faults)


def validate_attachment(item: Raw, faults: Faults) -> None:
    spec = item.get("spec") or {}
    validate_driver_name(spec.get("attacher") or "", "spec.attacher", faults)
    source, node = spec.get("source") or {}, spec.get("nodeName") or ""
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        faults.append(required("spec.source", one))
    elif name is not None and inline is not None:
        faults.append(forbidden("spec.source", one))
    elif name == "":
        why = "must specify non empty persistentVolumeName"
        faults.append(required("spec.source.persistentVolumeName", why))
    if name is not None:
        faults += [invalid("spec.source.persistentVolumeName", name, why) for why in dns_subdomain(name)]
    faults += [invalid("spec.nodeName", node, why) for why in dns_subdomain(node)]
