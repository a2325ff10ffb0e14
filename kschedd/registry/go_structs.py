"""Parts of objects as upstream prints them in messages: Go structs of its internal types, formatted as JSON.

Internal types have no JSON names, so all fields are printed with their Go names, in Go's order. Most internal types
have the fields of the versioned type in the same order, so the schema can be used. The tables below list types that
differ. The metadata types (ObjectMeta, LabelSelector) are used both internally and externally, and have JSON names.

Source: Kubernetes v1.34, pkg/apis/core/types.go, pkg/apis/batch/types.go, pkg/apis/resource/types.go.
"""

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Final

from kschedd.api.schemas.go_order import go_json, in_go_order, sorted_keys
from kschedd.api.schemas.schema import (
    BOOL,
    BYTES,
    INT,
    INT32,
    INT_OR_STR,
    NUMBER,
    QUANTITY,
    STR,
    Fields,
    ListOf,
    Schema,
    type_named,
)

# The fields of each type, with their types. A type `''`, `0` or `null` is a scalar with this default value, `*T` is a
# pointer, and `[T]` is a list.
_STRUCTS: Final[Mapping[str, Mapping[str, str]]] = {
    name: dict(field.split(":") for field in fields.split())
    for name, fields in {
        "ResourceClaimSpec": "Devices:DeviceClaim",
        "DeviceClaim": "Requests:[DeviceRequest] Constraints:[DeviceConstraint] Config:[DeviceClaimConfiguration]",
        "DeviceRequest": "Name:'' Exactly:*ExactDeviceRequest FirstAvailable:[DeviceSubRequest]",
        "ExactDeviceRequest": (
            "DeviceClassName:'' Selectors:[DeviceSelector] AllocationMode:'' Count:0 AdminAccess:null "
            "Tolerations:[DeviceToleration] Capacity:*CapacityRequirements"
        ),
        "DeviceSubRequest": (
            "Name:'' DeviceClassName:'' Selectors:[DeviceSelector] AllocationMode:'' Count:0 "
            "Tolerations:[DeviceToleration] Capacity:*CapacityRequirements"
        ),
        "DeviceSelector": "CEL:*CELDeviceSelector",
        "CELDeviceSelector": "Expression:''",
        "DeviceToleration": "Key:'' Operator:'' Value:'' Effect:'' TolerationSeconds:null",
        "CapacityRequirements": "Requests:null",
        "DeviceConstraint": "Requests:null MatchAttribute:null DistinctAttribute:null",
        "DeviceClaimConfiguration": "Requests:null Opaque:*OpaqueDeviceConfiguration",
        "OpaqueDeviceConfiguration": "Driver:'' Parameters:null",
        "AllocationResult": "Devices:DeviceAllocationResult NodeSelector:*NodeSelector AllocationTimestamp:null",
        "DeviceAllocationResult": "Results:[DeviceRequestAllocationResult] Config:[DeviceAllocationConfiguration]",
        "DeviceRequestAllocationResult": (
            "Request:'' Driver:'' Pool:'' Device:'' AdminAccess:null Tolerations:[DeviceToleration] "
            "BindingConditions:null BindingFailureConditions:null ShareID:null ConsumedCapacity:null"
        ),
        "DeviceAllocationConfiguration": "Source:'' Requests:null Opaque:*OpaqueDeviceConfiguration",
        "CSINodeDriver": "Name:'' NodeID:'' TopologyKeys:null Allocatable:*VolumeNodeResources",
        "VolumeNodeResources": "Count:null",
    }.items()
}
_LEAVES: Final[Mapping[str, Any]] = {"''": "", "0": 0, "null": None}
_META: Final = ("name", "generateName", "namespace", "labels", "annotations")


# The fields of each type, in the order of the internal type. Fields that exist in only one of the two types are omitted
# or moved.
_ORDER: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(fields.split())
    for name, fields in {
        "PodSpec": (
            "volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds "
            "activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName automountServiceAccountToken nodeName "
            "securityContext imagePullSecrets hostname subdomain setHostnameAsFQDN affinity schedulerName "
            "tolerations hostAliases priorityClassName priority preemptionPolicy dnsConfig readinessGates "
            "runtimeClassName overhead enableServiceLinks topologySpreadConstraints os schedulingGates "
            "resourceClaims resources hostnameOverride"
        ),
        "ObjectReference": "kind namespace name uid apiVersion resourceVersion fieldPath",
        "PodSecurityContext": (
            "seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups "
            "supplementalGroupsPolicy fsGroup fsGroupChangePolicy sysctls seccompProfile appArmorProfile "
            "seLinuxChangePolicy"
        ),
        "Volume": (
            "name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs "
            "persistentVolumeClaim rbd quobyte flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap "
            "vsphereVolume azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral "
            "image"
        ),
    }.items()
}
# The internal type has these fields in the security context; the versioned type has them in the pod's spec.
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_GO_NAMES: Final[Mapping[str, str]] = {
    **{name.lower(): name for name in "OS TTY IP UID NFS ISCSI RBD FC CSI GRPC IQN".split()},
    **dict(
        pair.split("=")
        for pair in (
            "dnsConfig=DNSConfig dnsPolicy=DNSPolicy fsGroup=FSGroup fsGroupChangePolicy=FSGroupChangePolicy "
            "fsType=FSType pdName=PDName seLinuxOptions=SELinuxOptions seLinuxChangePolicy=SELinuxChangePolicy "
            "gcePersistentDisk=GCEPersistentDisk awsElasticBlockStore=AWSElasticBlockStore cephfs=CephFS "
            "storageos=StorageOS httpGet=HTTPGet httpHeaders=HTTPHeaders tcpSocket=TCPSocket apiVersion=APIVersion "
            "apiGroup=APIGroup apiGroups=APIGroups "
            "gmsaCredentialSpecName=GMSACredentialSpecName gmsaCredentialSpec=GMSACredentialSpec "
            "iscsiInterface=ISCSIInterface chapAuthDiscovery=DiscoveryCHAPAuth chapAuthSession=SessionCHAPAuth "
            "sslEnabled=SSLEnabled wwids=WWIDs diskURI=DataDiskURI"
        ).split()
    ),
}
_RBD_NAMES: Final = {"monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser"}
_ZERO: Final[Mapping[Schema, Any]] = {STR: "", INT: 0, INT32: 0, NUMBER: 0, BOOL: False, INT_OR_STR: 0, QUANTITY: "0"}
# The fields of each type that are values in the internal type, but pointers in the versioned type.
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "RollingUpdateStatefulSetStrategy": ("partition",),
    "RollingUpdateDaemonSet": ("maxUnavailable", "maxSurge"),
    "RollingUpdateDeployment": ("maxUnavailable", "maxSurge"),
    "LimitedPriorityLevelConfiguration": ("nominalConcurrencyShares",),
}
_AS_OUTSIDE: Final = ("LabelSelector", "ObjectMeta")


_VOLUME_SOURCES: Final = (
    "GCEPersistentDisk AWSElasticBlockStore HostPath Glusterfs NFS RBD Quobyte ISCSI FlexVolume Cinder CephFS FC "
    "Flocker AzureFile VsphereVolume AzureDisk PhotonPersistentDisk PortworxVolume ScaleIO Local StorageOS CSI"
).split()


def go_struct(name: str, raw: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return an object in the form of this Go type, which must be in one of the tables below or in the schema."""
    raw = raw or {}
    if name in _STRUCTS:
        return {field: _value(kind, raw.get(_key(field))) for field, kind in _STRUCTS[name].items()}
    return _internal(raw, type_named(name))


def go_template(spec: Mapping[str, Any], type_of_spec: str) -> dict[str, Any]:
    """Return the template of a pod or claim as a Go struct; its metadata has JSON names."""
    meta = spec.get("metadata") or {}
    shown = {field: sorted_keys(meta[field]) for field in _META if meta.get(field)}
    return {**shown, "Spec": go_struct(type_of_spec, spec.get("spec"))}


def go_selector(selector: Mapping[str, Any]) -> dict[str, Any]:
    """Return a label selector in Go form: without empty parts other than keys and operators, with sorted labels."""
    shown = {
        "matchLabels": dict(sorted((selector.get("matchLabels") or {}).items())),
        "matchExpressions": [
            {"key": each.get("key") or "", "operator": each.get("operator") or ""}
            | ({"values": each["values"]} if each.get("values") else {})
            for each in selector.get("matchExpressions") or ()
        ],
    }
    return {field: value for field, value in shown.items() if value}


def go_diff(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the line-by-line differences between two objects of this Go type, ending with a line feed."""
    return _diff(go_struct(name, old), go_struct(name, new))


def go_source_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the differences between the volume sources of two PersistentVolumes' specs."""
    before, after = (go_struct("PersistentVolumeSpec", spec) for spec in (old, new))
    return _diff(*({name: spec[name] for name in _VOLUME_SOURCES} for spec in (before, after)))


def _diff(old: dict[str, Any], new: dict[str, Any]) -> str:
    before, after = (go_json(struct, indent=1).splitlines() for struct in (old, new))
    return "".join(f"{line}\n" for line in list(unified_diff(before, after, lineterm=""))[2:])


def _internal(raw: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    name = fields.short_name
    renamed = {**_GO_NAMES, **_RBD_NAMES} if name == "RBDVolumeSource" else _GO_NAMES
    found: dict[str, Any] = {}
    for field in _ORDER.get(name) or [each for each in fields if each not in fields.rules]:  # the order of 1.34
        if field == "metadata":
            meta = in_go_order(dict(raw.get(field) or {}), fields[field])
            found.update({each: value for each, value in meta.items() if value})
            continue
        go_name = renamed.get(field) or field[0].upper() + field[1:]
        found[go_name] = _field(raw.get(field), fields, field)
    if name == "PodSpec":
        host = {field[0].upper() + field[1:]: _field(raw.get(field), fields, field) for field in _HOST}
        found["SecurityContext"] = {**host, **_internal(raw.get("securityContext") or {}, fields["securityContext"])}
    return found


def _field(value: Any, fields: Fields, field: str) -> Any:
    schema = fields[field]
    if value is None:
        if field in fields.pointers and field not in _VALUES.get(fields.short_name, ()):
            return None
        if isinstance(schema, Fields):
            return _inner({}, schema) if field in fields.always else None
        return _ZERO.get(schema) if isinstance(schema, str) and schema is not BYTES else None
    return _inner(value, schema)


def _inner(value: Any, schema: Schema) -> Any:
    if isinstance(schema, Fields):
        if schema.short_name in _AS_OUTSIDE:
            ordered = in_go_order(dict(value), schema)
            return {field: each for field, each in ordered.items() if each}
        return _internal(value, schema)
    if isinstance(schema, ListOf):
        return [_inner(each, schema.item) for each in value]
    return in_go_order(value, schema)


def _key(field: str) -> str:
    return field.lower() if field.isupper() else field[0].lower() + field[1:]


def _value(kind: str, value: Any) -> Any:
    if kind in _LEAVES:
        return _LEAVES[kind] if value is None else value
    if kind[0] == "[":
        return [go_struct(kind[1:-1], each) for each in value] if value else None
    if kind[0] == "*":
        return None if value is None else go_struct(kind[1:], value)
    return go_struct(kind, value)
