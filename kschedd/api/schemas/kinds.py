"""Kinds: the built-in API resources with their plural, singular and short names, and whether they are namespaced.

For an unknown kind, `known` is false; its objects are stored and listed unchanged.
Source: Kubernetes v1.34, the API discovery of a cluster without extensions (`kubectl api-resources`).
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs


@attrs.frozen
class Kind:
    """An API kind. `api_versions` contains the supported versions; the preferred version is first.

    For a custom resource, `selectable` contains the fields that a field selector may use in addition to metadata
    fields.
    """

    name: str
    plural: str
    singular: str
    short: tuple[str, ...]
    api_versions: tuple[str, ...]
    namespaced: bool
    known: bool = True
    selectable: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return self.api_versions[0]

    @property
    def group(self) -> str:
        """The API group; "" for the core group."""
        return group_of(self.api_version)

    @property
    def resource(self) -> str:
        """The resource name in kubectl's output, such as pod or deployment.apps."""
        if "." in self.singular:
            return self.singular  # a kind of another group has the name of a built-in kind
        return f"{self.singular}.{self.group}" if self.group else self.singular


def group_of(api_version: str) -> str:
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def _kind(
    name: str, plural: str, *short: str, api: str = "v1", also: tuple[str, ...] = (), namespaced: bool = True
) -> Kind:
    return Kind(name, plural, name.lower(), short, (api, *also), namespaced)


# kind -> path of its pod template
POD_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"), ("spec", "template")
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}

_APPS: Final = "apps/v1"
_BATCH: Final = "batch/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_DEVICES: Final = "resource.k8s.io/v1"
_DEVICES_BETA: Final = ("resource.k8s.io/v1beta2",)
_NETWORK: Final = "networking.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_FLOW: Final = "flowcontrol.apiserver.k8s.io/v1"
_RBAC: Final = "rbac.authorization.k8s.io/v1"

KINDS: Final[tuple[Kind, ...]] = (
    _kind("Namespace", "namespaces", "ns", namespaced=False),
    _kind("Node", "nodes", "no", namespaced=False),
    _kind("Pod", "pods", "po"),
    _kind("Service", "services", "svc"),
    _kind("ReplicationController", "replicationcontrollers", "rc"),
    _kind("ResourceQuota", "resourcequotas", "quota"),
    _kind("PersistentVolume", "persistentvolumes", "pv", namespaced=False),
    _kind("PersistentVolumeClaim", "persistentvolumeclaims", "pvc"),
    _kind("ServiceAccount", "serviceaccounts", "sa"),
    _kind("ConfigMap", "configmaps", "cm"),
    _kind("Secret", "secrets"),
    _kind("Endpoints", "endpoints", "ep"),
    _kind("LimitRange", "limitranges", "limits"),
    _kind("PodTemplate", "podtemplates"),
    _kind("Event", "events", "ev", also=("events.k8s.io/v1",)),
    _kind("ReplicaSet", "replicasets", "rs", api=_APPS),
    _kind("StatefulSet", "statefulsets", "sts", api=_APPS),
    _kind("Deployment", "deployments", "deploy", api=_APPS),
    _kind("DaemonSet", "daemonsets", "ds", api=_APPS),
    _kind("ControllerRevision", "controllerrevisions", api=_APPS),
    _kind("Job", "jobs", api=_BATCH),
    _kind("CronJob", "cronjobs", "cj", api=_BATCH),
    _kind("PodDisruptionBudget", "poddisruptionbudgets", "pdb", api="policy/v1"),
    _kind("PriorityClass", "priorityclasses", "pc", api="scheduling.k8s.io/v1", namespaced=False),
    _kind("RuntimeClass", "runtimeclasses", api="node.k8s.io/v1", namespaced=False),
    _kind("StorageClass", "storageclasses", "sc", api=_STORAGE, namespaced=False),
    _kind("CSINode", "csinodes", api=_STORAGE, namespaced=False),
    _kind("CSIDriver", "csidrivers", api=_STORAGE, namespaced=False),
    _kind("CSIStorageCapacity", "csistoragecapacities", api=_STORAGE),
    _kind("VolumeAttachment", "volumeattachments", api=_STORAGE, namespaced=False),
    _kind("VolumeAttributesClass", "volumeattributesclasses", "vac", api=_STORAGE, namespaced=False),
    _kind("Lease", "leases", api="coordination.k8s.io/v1"),
    _kind("ResourceSlice", "resourceslices", api=_DEVICES, also=_DEVICES_BETA, namespaced=False),
    _kind("ResourceClaim", "resourceclaims", api=_DEVICES, also=_DEVICES_BETA),
    _kind("ResourceClaimTemplate", "resourceclaimtemplates", api=_DEVICES, also=_DEVICES_BETA),
    _kind("DeviceClass", "deviceclasses", api=_DEVICES, also=_DEVICES_BETA, namespaced=False),
    _kind(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        api="autoscaling/v2",
        also=("autoscaling/v1",),
    ),
    _kind("Ingress", "ingresses", "ing", api=_NETWORK),
    _kind("IngressClass", "ingressclasses", api=_NETWORK, namespaced=False),
    _kind("NetworkPolicy", "networkpolicies", "netpol", api=_NETWORK),
    _kind("IPAddress", "ipaddresses", "ip", api=_NETWORK, namespaced=False),
    _kind("ServiceCIDR", "servicecidrs", api=_NETWORK, namespaced=False),
    _kind("EndpointSlice", "endpointslices", api="discovery.k8s.io/v1"),
    _kind("Role", "roles", api=_RBAC),
    _kind("RoleBinding", "rolebindings", api=_RBAC),
    _kind("ClusterRole", "clusterroles", api=_RBAC, namespaced=False),
    _kind("ClusterRoleBinding", "clusterrolebindings", api=_RBAC, namespaced=False),
    _kind(
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "csr",
        api="certificates.k8s.io/v1",
        namespaced=False,
    ),
    _kind("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", api=_ADMISSION, namespaced=False),
    _kind("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", api=_ADMISSION, namespaced=False),
    _kind("ValidatingAdmissionPolicy", "validatingadmissionpolicies", api=_ADMISSION, namespaced=False),
    _kind("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", api=_ADMISSION, namespaced=False),
    _kind("FlowSchema", "flowschemas", api=_FLOW, namespaced=False),
    _kind("PriorityLevelConfiguration", "prioritylevelconfigurations", api=_FLOW, namespaced=False),
    _kind("APIService", "apiservices", api="apiregistration.k8s.io/v1", namespaced=False),
    _kind(
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd",
        "crds",
        api="apiextensions.k8s.io/v1",
        namespaced=False,
    ),
)

BY_NAME: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}
_BEHIND_GATES: Final = (("PodGroup", "scheduling.k8s.io"), ("Workload", "scheduling.k8s.io"))
_WORDS: Final[Mapping[str, Kind]] = {word: kind for kind in KINDS for word in (kind.singular, kind.plural, *kind.short)}


def name_in_group(name: str, group: str) -> str:
    """Return the unique name of a kind that is not built in, with its group if another kind has the same name.

    The group is included for kinds of other groups with the name of a built-in kind. The group is also included for
    built-in kinds behind a feature gate if their names are common among custom resources: Volcano's PodGroup and the
    scheduler's PodGroup are different kinds.
    """
    return f"{name}.{group}" if group and (name in BY_NAME or (name, group) in _BEHIND_GATES) else name


def lookup(word: str) -> Kind:
    """Return the kind for a resource argument, such as Pod, pods, po, deployments.apps, deploy.v1.apps.

    For an unknown word, return a kind whose `known` is False.
    """
    named, _, group = word.lower().partition(".")
    kind = _WORDS.get(named)
    if kind is not None and (not group or group in _spellings(kind)):
        return kind
    name, _, group = word.partition(".")
    return _generic(name if kind is None else word, f"{group}/v1" if group else "v1", namespaced=True)


def _spellings(kind: Kind) -> set[str]:
    """Return the suffixes allowed after a resource name and a dot: group, or version and group."""
    spellings = {group_of(version) for version in kind.api_versions}
    for version in kind.api_versions:
        group = group_of(version)
        number = version.rpartition("/")[2]
        spellings.add(f"{number}.{group}" if group else number)
    return spellings


def kind_of(raw: Mapping[str, Any]) -> Kind:
    """Return the kind of an object by `apiVersion` and `kind`.

    A kind of another group with the name of a built-in kind is a separate kind.
    """
    name = str(raw.get("kind", ""))
    api_version = str(raw.get("apiVersion", ""))
    kind = BY_NAME.get(name)
    if kind is not None and (
        api_version in kind.api_versions
        or any(group_of(api_version) == group_of(version) for version in kind.api_versions)
    ):
        return kind
    metadata = raw.get("metadata")
    namespaced = isinstance(metadata, Mapping) and bool(metadata.get("namespace"))
    group = group_of(api_version)
    return _generic(name_in_group(name, group), api_version, namespaced=namespaced)


def _generic(name: str, api_version: str, *, namespaced: bool) -> Kind:
    singular = name.lower()
    stem, dot, rest = singular.partition(".")
    if stem.endswith("s") and not stem.endswith(("ss", "us")):
        plural = stem
    elif stem.endswith(("s", "x", "ch", "sh")):
        plural = f"{stem}es"
    elif stem.endswith("y") and stem[-2:-1] not in ("a", "e", "i", "o", "u"):
        plural = f"{stem[:-1]}ies"
    else:
        plural = f"{stem}s"
    return Kind(name, plural + dot + rest, singular, (), (api_version,), namespaced, known=False)
