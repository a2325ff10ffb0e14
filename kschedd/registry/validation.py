"""Validation: all errors in an object, with kube-apiserver's messages.

Source: Kubernetes v1.34, pkg/apis/*/validation. `validate` receives an object with its defaults (`defaults`), and
reports all errors in the fields that kschedd reads. Types are checked first, because all further checks require correct
types. `default_and_validate` sets the defaults and validates the object. The store validates updates with
`validation_update`. Objects of unknown kinds need only a name.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.check import (
    check_meta_schema,
    check_node_affinity_schema,
    check_pod_spec_schema,
    check_pod_status_schema,
    check_schema,
)
from kschedd.api.schemas.codec import decoded, decoded_object
from kschedd.api.schemas.fields import WHOLE, FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.schemas.kinds import Kind, kind_of
from kschedd.api.schemas.schema import type_named
from kschedd.api.selecting.names import dns_label, qualified_name
from kschedd.registry.defaults import (
    default_meta,
    default_pod_spec,
    default_pod_status,
    default_typed,
)
from kschedd.registry.devices.validation import (
    validate_claim as validate_resource_claim,
)
from kschedd.registry.devices.validation import (
    validate_claim_template,
    validate_device_class,
    validate_slice,
)
from kschedd.registry.networking.endpoints import validate_endpoint_slice, validate_endpoints
from kschedd.registry.networking.service_ranges import validate_address, validate_service_range
from kschedd.registry.networking.services_validation import validate_service
from kschedd.registry.networking.validation import (
    validate_ingress,
    validate_ingress_class,
    validate_network_policy,
    validate_new_ingress,
)
from kschedd.registry.pods.annotations import (
    validate_claims_by_name,
    validate_pod_annotations,
    validate_profiles_match,
)
from kschedd.registry.pods.containers import config_key_faults
from kschedd.registry.pods.status import validate_pod_status
from kschedd.registry.pods.validation import validate_new_pod, validate_pod_spec, validate_tokens
from kschedd.registry.policy.admission_policies import validate_policy, validate_policy_binding
from kschedd.registry.policy.api_services import validate_api_service
from kschedd.registry.policy.certificates import validate_signing_request, validate_updated_signing_request
from kschedd.registry.policy.definitions import validate_definition
from kschedd.registry.policy.flow_control import validate_flow_schema, validate_priority_level
from kschedd.registry.policy.quota import validate_limit_range, validate_resource_quota
from kschedd.registry.policy.rbac import (
    validate_cluster_role,
    validate_cluster_role_binding,
    validate_role,
    validate_role_binding,
)
from kschedd.registry.policy.webhooks import validate_updated_webhooks, validate_webhooks
from kschedd.registry.storage.validation import (
    validate_attachment,
    validate_attributes_class,
    validate_claim,
    validate_csi_driver,
    validate_csi_node,
    validate_storage_capacity,
    validate_storage_class,
    validate_updated_claim,
    validate_volume,
)
from kschedd.registry.validation_events import validate_event, validate_updated_event
from kschedd.registry.validation_meta import (
    NOT_STANDARD,
    STANDARD_FINALIZERS,
    WITHOUT_META,
    validate_custom_kind,
    validate_labels,
    validate_meta,
)
from kschedd.registry.validation_nodes import validate_node
from kschedd.registry.validation_resources import validate_requirements
from kschedd.registry.validation_secrets import validate_secret
from kschedd.registry.validation_selectors import validate_node_affinity, validate_tolerations
from kschedd.registry.validation_status import validate_status_alone
from kschedd.registry.validation_times import updated_faults, validates_meta
from kschedd.registry.workloads.autoscaling import validate_autoscaler, validate_updated_autoscaler
from kschedd.registry.workloads.batch import (
    validate_cron_job,
    validate_job,
    validate_updated_cron_job,
    validate_updated_job,
)
from kschedd.registry.workloads.validation import (
    validate_daemon_set,
    validate_deployment,
    validate_disruption_budget,
    validate_pod_template,
    validate_replica_set,
    validate_replication_controller,
    validate_revision,
    validate_stateful_set,
    validate_updated_revision,
    validate_updated_stateful_set,
)

__all__ = [
    "Validated",
    "default_and_validate",
    "default_and_validate_meta",
    "default_and_validate_node_affinity",
    "default_and_validate_pod_spec",
    "default_and_validate_pod_status",
    "defaulted_pod_spec",
    "validate",
    "validate_meta",
    "validate_pod_spec",
    "validate_status",
    "validate_typed",
]

Raw = dict[str, Any]
Faults = list[FieldError]
_NOTHING: Final[Mapping[str, Any]] = {}

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


@attrs.frozen
class Validated:
    """An object in stored form, or the errors that make it invalid."""

    raw: Raw
    faults: tuple[FieldError, ...] = ()


def default_and_validate(raw: Raw) -> Validated:
    """Return the object with its defaults, and all its errors."""
    if faults := check_schema(raw):
        return Validated(raw, tuple(faults))
    done = default_typed(decoded_object(raw))
    return Validated(done, tuple(validate_typed(done)))


def validate(raw: Raw) -> Faults:
    """Return all errors of an object that has its defaults."""
    return check_schema(raw) or validate_typed(decoded_object(raw))


def defaulted_pod_spec(spec: object) -> tuple[Raw, Faults]:
    """Return a pod's spec with its defaults, or the errors that prevent decoding."""
    if faults := check_pod_spec_schema(spec):
        return {}, faults
    return default_pod_spec(decoded(spec, type_named("PodSpec"))), []


def default_and_validate_pod_spec(spec: object) -> tuple[Raw, Faults]:
    """Return a pod's spec with its defaults, and its errors; the result is valid for every pod with this spec."""
    done, faults = defaulted_pod_spec(spec)
    return done, faults or validate_pod_spec(done)


def default_and_validate_node_affinity(affinity: object, path: str) -> tuple[Raw, Faults]:
    """Return a pod's node affinity and its errors, which do not depend on any other field."""
    faults = check_node_affinity_schema(affinity, path)
    clean: Raw = {}
    if not faults:
        clean = decoded(affinity, type_named("NodeAffinity"))
        validate_node_affinity(clean, path, faults)
    return clean, faults


def default_and_validate_pod_status(status: object, path: str = "status") -> tuple[Raw, Faults]:
    """Return a pod's status with its defaults, and its errors."""
    if faults := check_pod_status_schema(status, path):
        return {}, faults
    done = default_pod_status(decoded(status, type_named("PodStatus")))
    return done, validate_pod_status(done, path)


def default_and_validate_meta(meta: object, kind: Kind) -> tuple[Raw, Faults]:
    """Return an object's metadata, with a namespace if its kind is namespaced, and the errors."""
    if faults := check_meta_schema(meta):
        return (meta if isinstance(meta, dict) else {}), faults
    done = default_meta(decoded(meta, type_named("meta.ObjectMeta")), namespaced=kind.namespaced)
    return done, validate_meta(done, kind)


def validate_status(kind: str, status: Raw) -> Faults:
    """Return the errors of a built-in kind's status that matches the schema."""
    faults: Faults = []
    if kind == "Pod":
        faults = validate_pod_status(status)
    else:
        validate_status_alone(kind, status, faults)
    return faults


def validate_typed(raw: Raw) -> Faults:
    """Return all errors of a decoded object that has its defaults."""
    kind = kind_of(raw)
    own = _kind_faults(raw, kind)
    if own and kind.name in WITHOUT_META:
        return [*_identity_faults(raw, kind), *own]
    return [*_identity_faults(raw, kind), *validate_meta(raw.get("metadata") or {}, kind), *own]


def validate_updated(raw: Raw, changes: Faults, old: Mapping[str, Any] = _NOTHING) -> Faults:
    """Return all errors of an updated object.

    `changes` contains the errors in the changes of the metadata; `old` is the previous object.
    """
    kind = kind_of(raw)
    any_name = kind.known and not validates_meta(kind.name)
    meta = validate_meta(raw.get("metadata") or {}, kind, any_name=any_name)
    faults: Faults = []
    if kind.known and (check_with_old := _BESIDE_OLD.get(kind.name)):
        check_with_old(raw, old, faults)
    elif kind.known and (check := _OF_UPDATES.get(kind.name)):
        check(raw, faults)
    return [*_identity_faults(raw, kind), *updated_faults(kind.name, meta, changes, faults)]


def _identity_faults(raw: Raw, kind: Kind) -> Faults:
    faults: Faults = []
    api_version = raw.get("apiVersion")
    if kind.known and api_version not in kind.api_versions:
        faults.append(unsupported("apiVersion", api_version, kind.api_versions))
    if not kind.known:
        faults += validate_custom_kind(raw.get("kind"), api_version)
    return faults


def _kind_faults(raw: Raw, kind: Kind) -> Faults:
    faults: Faults = []
    if kind.known and (check := _BY_KIND.get(kind.name)):
        check(raw, faults)
    return faults


def _pod(pod: Raw, faults: Faults) -> None:
    spec = pod.get("spec")
    if spec is None:
        faults.append(required("spec.containers"))
        return
    meta = pod.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    validate_pod_annotations(annotations, spec, "metadata.annotations", faults)
    faults += validate_pod_spec(spec)
    validate_claims_by_name(meta.get("name") or "", spec, faults)
    validate_tokens(spec, faults)
    validate_new_pod(spec, faults)
    validate_profiles_match(annotations, spec, "spec", faults)
    if status := pod.get("status"):
        faults += validate_pod_status(status)


_MOST_CONFIGURED: Final = 1 << 20


def _config_map(item: Raw, faults: Faults) -> None:
    data, binary = item.get("data") or {}, item.get("binaryData") or {}
    for key in data:
        faults += [invalid(f"data[{key}]", key, why) for why in config_key_faults(key)]
        if key in binary:
            faults.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in binary:
        faults += [invalid(f"binaryData[{key}]", key, why) for why in config_key_faults(key)]
    size = sum(len(text.encode()) for text in data.values()) + sum(map(_decoded_size, binary.values()))
    if size > _MOST_CONFIGURED:
        faults.append(FieldError(WHOLE, None, f"Too long: may not be more than {_MOST_CONFIGURED} bytes"))


def _decoded_size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64.count("=")


def _namespace(namespace: Raw, faults: Faults) -> None:
    for finalizer in (namespace.get("spec") or {}).get("finalizers") or ():
        _finalizer(finalizer, "spec.finalizers", faults)


def _finalized_namespace(namespace: Raw, faults: Faults) -> None:
    """Validate finalizers, each with its path; only the finalize subresource can change them."""
    for index, finalizer in enumerate((namespace.get("spec") or {}).get("finalizers") or ()):
        _finalizer(finalizer, f"spec.finalizers[{index}]", faults)


def _finalizer(finalizer: str, path: str, faults: Faults) -> None:
    faults += [invalid(path, finalizer, why) for why in qualified_name(finalizer)]
    if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
        faults.append(invalid(path, finalizer, NOT_STANDARD))


def _priority_class(item: Raw, faults: Faults) -> None:
    name = (item.get("metadata") or {}).get("name") or ""
    value = item.get("value") or 0
    if name.startswith("system-"):
        known = _SYSTEM_PRIORITIES.get(name)
        if known != value or item.get("globalDefault"):
            error = f"{name} is not a known system priority class"
            if known == value:
                error = f"globalDefault of {name} PriorityClass must be false"
            elif known is not None:
                error = f"value of {name} PriorityClass must be {known}"
            why = f"priority class names with 'system-' prefix are reserved for system use only. error: {error}"
            faults.append(forbidden("metadata.name", why))
    elif value > HIGHEST_USER_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        faults.append(forbidden("value", why))
    policy = item.get("preemptionPolicy")
    if not policy:
        faults.append(required("preemptionPolicy"))
    elif policy not in ("Never", "PreemptLowerPriority"):
        faults.append(unsupported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))


def _runtime_class(item: Raw, faults: Faults) -> None:
    handler = item.get("handler") or ""
    faults += [invalid("handler", handler, why) for why in dns_label(handler)]
    fixed = (item.get("overhead") or {}).get("podFixed") or {}
    validate_requirements({"limits": fixed}, "overhead", faults)
    scheduling = item.get("scheduling") or {}
    validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector", faults)
    tolerations = scheduling.get("tolerations") or ()
    validate_tolerations(tolerations, "scheduling.tolerations.tolerations", faults)
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        tolerated = tuple(toleration.get(field) or "" for field in _TOLERATION)  # regardless of its time
        if tolerated in seen:
            shown = {name[0].upper() + name[1:]: toleration.get(name) or "" for name in _TOLERATION}
            shown["TolerationSeconds"] = toleration.get("tolerationSeconds")
            faults.append(duplicate(f"scheduling.tolerations[{index}]", shown))
        seen.add(tolerated)


_TOLERATION: Final = ("key", "operator", "value", "effect")


def _lease(lease: Raw, faults: Faults) -> None:
    spec = lease.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        faults.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    transitions = spec.get("leaseTransitions")
    if transitions is not None and transitions < 0:
        faults.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))


def _nothing(item: Raw, faults: Faults) -> None:
    """Append no errors: for such kinds, another function validates mutable fields."""


_BY_KIND: Final[Mapping[str, Callable[[Raw, Faults], None]]] = {
    "Pod": _pod,
    "Node": validate_node,
    "Service": validate_service,
    "ReplicationController": validate_replication_controller,
    "ReplicaSet": validate_replica_set,
    "Deployment": validate_deployment,
    "StatefulSet": validate_stateful_set,
    "DaemonSet": validate_daemon_set,
    "ControllerRevision": validate_revision,
    "PodTemplate": validate_pod_template,
    "Job": validate_job,
    "CronJob": validate_cron_job,
    "ConfigMap": _config_map,
    "Secret": validate_secret,
    "Namespace": _namespace,
    "LimitRange": validate_limit_range,
    "Event": validate_event,
    "PodDisruptionBudget": validate_disruption_budget,
    "PriorityClass": _priority_class,
    "RuntimeClass": _runtime_class,
    "ResourceQuota": validate_resource_quota,
    "PersistentVolume": validate_volume,
    "PersistentVolumeClaim": validate_claim,
    "StorageClass": validate_storage_class,
    "CSINode": validate_csi_node,
    "CSIDriver": validate_csi_driver,
    "CSIStorageCapacity": validate_storage_capacity,
    "VolumeAttachment": validate_attachment,
    "Lease": _lease,
    "ResourceSlice": validate_slice,
    "ResourceClaim": validate_resource_claim,
    "ResourceClaimTemplate": validate_claim_template,
    "DeviceClass": validate_device_class,
    "CustomResourceDefinition": validate_definition,
    "Ingress": validate_new_ingress,
    "IngressClass": validate_ingress_class,
    "NetworkPolicy": validate_network_policy,
    "HorizontalPodAutoscaler": validate_autoscaler,
    "Role": validate_role,
    "ClusterRole": validate_cluster_role,
    "RoleBinding": validate_role_binding,
    "ClusterRoleBinding": validate_cluster_role_binding,
    "Endpoints": validate_endpoints,
    "EndpointSlice": validate_endpoint_slice,
    "ValidatingWebhookConfiguration": validate_webhooks,
    "MutatingWebhookConfiguration": validate_webhooks,
    "ValidatingAdmissionPolicy": validate_policy,
    "FlowSchema": validate_flow_schema,
    "PriorityLevelConfiguration": validate_priority_level,
    "CertificateSigningRequest": validate_signing_request,
    "APIService": validate_api_service,
    "VolumeAttributesClass": validate_attributes_class,
    "ServiceCIDR": validate_service_range,
    "IPAddress": validate_address,
    "ValidatingAdmissionPolicyBinding": validate_policy_binding,
}
_BESIDE_OLD: Final[Mapping[str, Callable[[Raw, Mapping[str, Any], Faults], None]]] = {
    "CronJob": validate_updated_cron_job,
    "Job": validate_updated_job,
    "PersistentVolumeClaim": validate_updated_claim,
    "HorizontalPodAutoscaler": validate_updated_autoscaler,
    "CertificateSigningRequest": validate_updated_signing_request,
    "ValidatingWebhookConfiguration": validate_updated_webhooks,
    "MutatingWebhookConfiguration": validate_updated_webhooks,
}
_OF_UPDATES: Final = {
    **_BY_KIND,
    "StatefulSet": validate_updated_stateful_set,
    "ControllerRevision": validate_updated_revision,
    "Event": validate_updated_event,
    "Namespace": _finalized_namespace,
    "Ingress": validate_ingress,
    "ServiceCIDR": _nothing,
}
