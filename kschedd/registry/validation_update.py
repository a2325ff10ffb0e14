"""Validation of updates: immutable fields of an object.

Source: Kubernetes v1.34, the Validate*Update functions of pkg/apis/*/validation, pkg/registry/*/strategy.go. The
functions require the object before and after, both with their defaults. `validation` reports the errors in the new
object. Paths are as in upstream's messages, which sometimes differ from the field's path (`volumeMode`,
`spec.attachedRequired`). Rules for pods are in `pods.update`; rules for volumes and workloads are in `storage.updates`
and `workloads.updates`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.conditions import is_true
from kschedd.api.schemas.fields import FieldError, forbidden, invalid
from kschedd.api.schemas.kinds import kind_of
from kschedd.api.schemas.schema import STR, Fields, schema_of
from kschedd.api.simulation.standard_class import is_standard_class
from kschedd.registry.devices.claim_status import validate_claim_status
from kschedd.registry.go_structs import go_selector, go_struct, go_template
from kschedd.registry.networking.service_addresses import changed_addresses
from kschedd.registry.networking.service_ranges import validate_address_change, validate_service_range_change
from kschedd.registry.networking.services_validation import validate_balancer_status, validate_service_changes
from kschedd.registry.networking.validation import validate_ingress_status
from kschedd.registry.pods.annotations import validate_annotation_changes, validate_pod_annotations
from kschedd.registry.pods.status import validate_status_beside_spec
from kschedd.registry.policy.api_services import validate_api_service_status
from kschedd.registry.policy.certificates import validate_approval, validate_signing_status
from kschedd.registry.policy.flow_control import validate_flow_control_status
from kschedd.registry.policy.rbac import validate_role_ref_change
from kschedd.registry.same import FIELD_IS_IMMUTABLE, at, same_in
from kschedd.registry.storage.updates import UPDATES as STORAGE_UPDATES
from kschedd.registry.strategy import strategy_of
from kschedd.registry.validation_events import validate_event_changes
from kschedd.registry.validation_nodes import validate_node_annotations, validate_preemption_policy
from kschedd.registry.validation_status import (
    node_addresses,
    validate_pod_claims,
)
from kschedd.registry.workloads.autoscaling import validate_autoscaler_status
from kschedd.registry.workloads.job_status import validate_job_status
from kschedd.registry.workloads.updates import UPDATES as WORKLOAD_UPDATES

Raw = Mapping[str, Any]
Faults = list[FieldError]

# Immutable fields of each kind, each with its path in upstream's messages.
_IMMUTABLE: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    kind: tuple((field.partition("=")[0], field.partition("=")[2] or field) for field in fields.split())
    for kind, fields in {
        "Deployment": "spec.selector",
        "ReplicaSet": "spec.selector",
        "DaemonSet": "spec.selector",
        "ControllerRevision": "data",
        "PriorityClass": "preemptionPolicy",
        "RuntimeClass": "handler",
        "IngressClass": "spec.controller",
        "EndpointSlice": "addressType",
        "StorageClass": "volumeBindingMode",
        "CSIDriver": "spec.attachRequired=spec.attachedRequired spec.volumeLifecycleModes",
        "CSIStorageCapacity": "nodeTopology storageClassName",
        "VolumeAttachment": "spec",
        "ResourceClaim": "spec",
        "ResourceClaimTemplate": "spec",
        "ResourceSlice": "spec.driver spec.pool.name spec.nodeName",
        "PersistentVolumeClaim": "spec.volumeMode=volumeMode",
        "PersistentVolume": "spec.volumeMode=volumeMode",
    }.items()
}


def validate_update(old: Raw, new: Raw) -> Faults:
    """Return the errors of an update from `old` to `new`: changes to immutable fields."""
    kind = kind_of(old)
    if not kind.known or is_standard_class(old):
        return []
    faults: Faults = []
    check = _BY_KIND.get(kind.name)
    if check:
        check(old, new, faults)
    schema = schema_of(kind.api_version, kind.name)
    for field, called in _IMMUTABLE.get(kind.name, ()):
        assert schema is not None
        unchanged, shown = _kept(old, new, field, schema)
        if not unchanged:
            faults.append(invalid(called, _shown(kind.name, shown), FIELD_IS_IMMUTABLE))
    return faults


def _kept(old: Raw, new: Raw, path: str, fields: Fields) -> tuple[bool, Any]:
    """Return whether a field is unchanged, and its value; an absent text equals "" unless it is a pointer in Go."""
    name, _, rest = path.partition(".")
    inner = fields[name]
    if rest:
        assert isinstance(inner, Fields)
        return _kept(old.get(name) or {}, new.get(name) or {}, rest, inner)
    nothing = "" if inner is STR and name not in fields.pointers else None
    return same_in(old, new, name, fields), new.get(name, nothing)


def _shown(kind: str, value: Any) -> Any:
    """Return a value as upstream prints it; a selector is printed without empty parts and with sorted labels."""
    if kind == "ResourceClaim":
        return go_struct("ResourceClaimSpec", value)
    if kind == "ResourceClaimTemplate":
        return go_template(value or {}, "ResourceClaimSpec")
    if not isinstance(value, Mapping) or not value.keys() <= {"matchLabels", "matchExpressions"}:
        return value
    return go_selector(value)


def validate_status_update(old: Raw, new: Raw, subresource: str = "status") -> Faults:
    """Return the errors of an update through a subresource that changes only the status."""
    faults: Faults = []
    if subresource == "approval":
        validate_approval(old, new, faults)
        return faults
    kind = kind_of(old).name
    if kind == "Pod":
        _pod_annotations(old, new, faults)
        before, after = (old.get("status") or {}).get("qosClass"), (new.get("status") or {}).get("qosClass")
        if before and after != before:
            faults.append(invalid("status.qosClass", after, FIELD_IS_IMMUTABLE))
        if (new.get("status") or {}).get("resourceClaimStatuses"):
            validate_pod_claims(old, new, faults)
        validate_status_beside_spec(old, new, faults)
    elif kind == "ResourceClaim":
        validate_claim_status(old, new, faults)
    elif kind == "Job":
        validate_job_status(old, new, faults)
    elif kind == "Node":
        validate_node_annotations(new["metadata"].get("annotations") or {}, faults)
        node_addresses(new.get("status") or {}, faults)
    elif kind == "Namespace":
        _namespace_status(new, faults)
    elif kind == "Service":
        validate_balancer_status(new, faults)
    elif kind == "Ingress":
        validate_ingress_status(new, faults)
    elif kind == "CertificateSigningRequest":
        validate_signing_status(old, new, faults)
    elif kind in ("FlowSchema", "PriorityLevelConfiguration"):
        validate_flow_control_status(new, faults)
    elif kind == "APIService":
        validate_api_service_status(new, faults)
    elif kind == "HorizontalPodAutoscaler":
        validate_autoscaler_status(new, faults)
    elif kind in ("Deployment", "StatefulSet", "DaemonSet"):
        before, after = at(old, "status.collisionCount"), at(new, "status.collisionCount")
        if before is not None and (after is None or after < before):
            faults.append(invalid("status.collisionCount", after or 0, "cannot be decremented"))
    return faults


def _pod_annotations(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = (pod["metadata"].get("annotations") or {} for pod in (old, new))
    if before != after:
        validate_annotation_changes(before, after, "metadata.annotations", faults)
        validate_pod_annotations(after, new.get("spec") or {}, "metadata.annotations", faults, before)


def _namespace_status(namespace: Raw, faults: Faults) -> None:
    phase = at(namespace, "status.phase") or ""
    going = "deletionTimestamp" in namespace["metadata"]
    if phase != ("Terminating" if going else "Active"):
        when = "not empty" if going else "empty"
        why = f"may only be '{'Terminating' if going else 'Active'}' if `deletionTimestamp` is {when}"
        faults.append(invalid("status.Phase", phase, why))


def validate_meta_update(old: Raw, given: Raw) -> Faults:
    """Return the errors of metadata changes: of the UID, of finalizers, and of fields that only a deletion may set."""
    faults: Faults = []
    if given.get("uid") and given["uid"] != old.get("uid"):
        faults.append(invalid("metadata.uid", given["uid"], FIELD_IS_IMMUTABLE))
    if "deletionTimestamp" in old:
        if added := sorted({*(given.get("finalizers") or ())} - {*(old.get("finalizers") or ())}):
            shown = ", ".join(f'"{each}"' for each in added)
            why = "no new finalizers can be added if the object is being deleted"
            faults.append(forbidden("metadata.finalizers", f"{why}, found new finalizers []string{{{shown}}}"))
    if given.get("deletionTimestamp") is not None and "deletionTimestamp" not in old:
        faults.append(invalid("metadata.deletionTimestamp", given["deletionTimestamp"], FIELD_IS_IMMUTABLE))
    grace = given.get("deletionGracePeriodSeconds")
    if grace not in (None, old.get("deletionGracePeriodSeconds")):
        faults.append(invalid("metadata.deletionGracePeriodSeconds", grace, FIELD_IS_IMMUTABLE))
    return faults


def validate_version(kind: str, meta: Raw) -> Faults:
    """Return the errors of the resourceVersion of an update."""
    if not strategy_of(kind).unconditional and meta.get("resourceVersion") in (None, "", "0"):
        return [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
    return []


def _priority_class(old: Raw, new: Raw, faults: Faults) -> None:
    if (old.get("value") or 0) != (new.get("value") or 0):
        faults.append(forbidden("value", "may not be changed in an update."))


def _node(old: Raw, new: Raw, faults: Faults) -> None:
    """Append errors for changes of a node's immutable fields, such as its pod address ranges."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    then, now = before.get("podCIDRs") or [], after.get("podCIDRs") or []
    changed = 1 if len(then) != len(now) else sum(one != other for one, other in zip(then, now, strict=True))
    if then:
        why = 'node updates may not change podCIDR except from "" to valid'
        faults += [forbidden("spec.podCIDRs", why)] * changed
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        why = 'node updates may not change providerID except from "" to valid'
        faults.append(forbidden("spec.providerID", why))
    if (before.get("externalID") or "") != (after.get("externalID") or ""):
        faults.append(forbidden("spec.externalID", "may not be updated"))
    if before.get("podPreemptionPolicy") != after.get("podPreemptionPolicy"):
        validate_preemption_policy(after, faults)


def _service(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    faults += changed_addresses(after, before)
    validate_service_changes(before, after, faults)


def _config_map(old: Raw, new: Raw, faults: Faults) -> None:
    """Append errors for changes of an immutable ConfigMap."""
    if not old.get("immutable"):
        return
    why = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        faults.append(forbidden("immutable", why))
    for field in ("data", "binaryData"):
        if (old.get(field) or {}) != (new.get(field) or {}):
            faults.append(forbidden(field, why))


def _secret(old: Raw, new: Raw, faults: Faults) -> None:
    if (old.get("type") or "") != (new.get("type") or ""):
        faults.append(invalid("type", new.get("type") or "", FIELD_IS_IMMUTABLE))
    _config_map(old, new, faults)


def _definition(old: Raw, new: Raw, faults: Faults) -> None:
    """Append errors for a changed name, and for a changed kind or scope once the kind is served."""
    served = is_true(old.get("status") or {}, "Established")
    stored = (new.get("status") or {}).get("storedVersions") or ()
    before, after = ({version.get("name") for version in at(each, "spec.versions") or ()} for each in (old, new))
    for index, version in enumerate(stored):
        # As in upstream, this is checked for an unchanged status, too; an invalid old status therefore blocks all
        # updates.
        if version in before - after:
            why = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
                f"{version} from status.storedVersions"
            )
            faults.append(invalid(f"status.storedVersions[{index}]", version, why))
    for path in (*(("spec.scope", "spec.names.kind") * served), "spec.group", "spec.names.plural"):
        if at(old, path) != at(new, path):
            faults.append(invalid(path, at(new, path), FIELD_IS_IMMUTABLE))


def _resource_quota(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = (at(quota, "spec.scopes") or [] for quota in (old, new))
    if set(before) != set(after):
        faults.append(invalid("spec.scopes", at(new, "spec.scopes"), FIELD_IS_IMMUTABLE))


_BY_KIND: Final[Mapping[str, Callable[[Raw, Raw, Faults], None]]] = {
    **STORAGE_UPDATES,
    **WORKLOAD_UPDATES,
    "Node": _node,
    "PriorityClass": _priority_class,
    "Service": _service,
    "ConfigMap": _config_map,
    "Secret": _secret,
    "ResourceQuota": _resource_quota,
    "Event": validate_event_changes,
    "CustomResourceDefinition": _definition,
    "ServiceCIDR": validate_service_range_change,
    "IPAddress": validate_address_change,
    "RoleBinding": validate_role_ref_change,
    "ClusterRoleBinding": validate_role_ref_change,
}
