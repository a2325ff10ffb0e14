"""Validation of updates: which fields of an object are immutable.

Source: Kubernetes v1.34, the Validate*Update functions of pkg/apis/*/validation, pkg/registry/*/strategy.go.
Takes the object before and after, both with their defaults; faults of the new object by itself are reported by
`validation`. The paths are upstream's even where the field's real path differs (`volumeMode`, `spec.attachedRequired`).
The rules for pods are in `validation_pod_update`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.conditions import is_true
from kschedd.api.schemas.fields import FieldError, forbidden, invalid
from kschedd.api.schemas.kinds import kind_of
from kschedd.api.schemas.schema import STR, Fields, schema_of, type_named
from kschedd.registry.devices.claim_status import validate_claim_status
from kschedd.registry.go_structs import go_diff, go_selector, go_source_diff, go_struct, go_template
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
from kschedd.registry.same import canonical_amount, same, same_in
from kschedd.registry.storage.validation import validate_attributes_class
from kschedd.registry.strategy import strategy_of
from kschedd.registry.validation_events import validate_event_changes
from kschedd.registry.validation_nodes import validate_node_annotations, validate_preemption_policy
from kschedd.registry.validation_status import (
    node_addresses,
    validate_pod_claims,
)
from kschedd.registry.workloads.autoscaling import validate_autoscaler_status
from kschedd.registry.workloads.job_status import validate_job_status

Raw = Mapping[str, Any]
Faults = list[FieldError]

FIELD_IS_IMMUTABLE: Final = "field is immutable"

# Kind -> its immutable fields, each as (path, path in upstream's message).
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
    """The faults of updating `old` to `new`: changes to immutable fields."""
    kind = kind_of(old)
    if not kind.known:
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
    """Whether a field is as it was, and its value; of a text that is no pointer, no value is an empty one."""
    name, _, rest = path.partition(".")
    inner = fields[name]
    if rest:
        assert isinstance(inner, Fields)
        return _kept(old.get(name) or {}, new.get(name) or {}, rest, inner)
    nothing = "" if inner is STR and name not in fields.pointers else None
    return same_in(old, new, name, fields), new.get(name, nothing)


def _shown(kind: str, value: Any) -> Any:
    """A value as it is printed: a selector without what it does not say, its labels in order."""
    if kind == "ResourceClaim":
        return go_struct("ResourceClaimSpec", value)
    if kind == "ResourceClaimTemplate":
        return go_template(value or {}, "ResourceClaimSpec")
    if not isinstance(value, Mapping) or not value.keys() <= {"matchLabels", "matchExpressions"}:
        return value
    return go_selector(value)


def validate_status_update(old: Raw, new: Raw, subresource: str = "status") -> Faults:
    """`validate_update` for the status subresource, or another that changes the status alone."""
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
        before, after = _at(old, "status.collisionCount"), _at(new, "status.collisionCount")
        if before is not None and (after is None or after < before):
            faults.append(invalid("status.collisionCount", after or 0, "cannot be decremented"))
    return faults


def _pod_annotations(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = (pod["metadata"].get("annotations") or {} for pod in (old, new))
    if before != after:
        validate_annotation_changes(before, after, "metadata.annotations", faults)
        validate_pod_annotations(after, new.get("spec") or {}, "metadata.annotations", faults, before)


def _namespace_status(namespace: Raw, faults: Faults) -> None:
    phase = _at(namespace, "status.phase") or ""
    going = "deletionTimestamp" in namespace["metadata"]
    if phase != ("Terminating" if going else "Active"):
        when = "not empty" if going else "empty"
        why = f"may only be '{'Terminating' if going else 'Active'}' if `deletionTimestamp` is {when}"
        faults.append(invalid("status.Phase", phase, why))


def validate_meta_update(old: Raw, given: Raw) -> Faults:
    """The faults of changes of metadata: of the uid, of finalizers, and of what only a deletion may set."""
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
    """The faults of an update's resourceVersion."""
    if not strategy_of(kind).unconditional and meta.get("resourceVersion") in (None, "", "0"):
        return [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
    return []


def _at(raw: Raw, path: str) -> Any:
    found: Any = raw
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _priority_class(old: Raw, new: Raw, faults: Faults) -> None:
    if (old.get("value") or 0) != (new.get("value") or 0):
        faults.append(forbidden("value", "may not be changed in an update."))


def _storage_class(old: Raw, new: Raw, faults: Faults) -> None:
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        same_value = same_in(old, new, field, type_named("storage.v1.StorageClass"))
        none_now_stated = (
            field == "parameters" and new.get(field) == {} and field not in old
        )  # upstream tells them apart
        if not same_value or none_now_stated:
            faults.append(forbidden(field, f"updates to {field} are forbidden."))


def _attributes_class(old: Raw, new: Raw, faults: Faults) -> None:
    for field in ("driverName", "parameters"):
        if (old.get(field) or None) != (new.get(field) or None):
            faults.append(forbidden(field, f"updates to {field} are forbidden."))
    validate_attributes_class(dict(new), faults)  # once more, after the change


_STATEFUL_SET_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _stateful_set(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = (_without(each.get("spec"), _STATEFUL_SET_MUTABLE) for each in (old, new))
    if not same(before, after, type_named("apps.v1.StatefulSetSpec")):
        fields = ", ".join(f"'{field}'" for field in _STATEFUL_SET_MUTABLE[:-1])
        last = _STATEFUL_SET_MUTABLE[-1]
        why = f"updates to statefulset spec for fields other than {fields} and '{last}' are forbidden"
        faults.append(forbidden("spec", why))


def _without(spec: Raw | None, fields: tuple[str, ...]) -> Raw:
    return {field: value for field, value in (spec or {}).items() if field not in fields}


def _job(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    completions = after.get("completions")
    if before.get("completions") != completions:
        if after.get("completionMode") != "Indexed":
            faults.append(invalid("spec.completions", completions, FIELD_IS_IMMUTABLE))
        elif completions is not None and completions != after.get("parallelism"):
            faults.append(
                invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")
            )
    if before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        before = {**before, "template": _directed(before.get("template") or {}, after.get("template") or {})}
    for field in _FIXED_OF_JOB:
        if not same_in(before, after, field, type_named("batch.v1.JobSpec")):
            faults.append(invalid(f"spec.{field}", _shown_of_job(field, after.get(field)), FIELD_IS_IMMUTABLE))


_FIXED_OF_JOB: Final = (
    "selector",
    "template",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)


def _directed(template: Raw, by: Raw) -> Raw:
    """A template with the other's directives for scheduling, which a suspended Job that has not started may change."""
    meta, spec = _taking(template.get("metadata"), by.get("metadata"), ("labels", "annotations")), template.get("spec")
    now: Raw = by.get("spec") or {}
    spec = _taking(spec, now, ("nodeSelector", "tolerations", "schedulingGates"))
    affinity = _taking(spec.get("affinity"), now.get("affinity"), ("nodeAffinity",))
    if affinity or now.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
    return {**template, "metadata": meta, "spec": spec}


def _taking(one: Raw | None, other: Raw | None, fields: tuple[str, ...]) -> dict[str, Any]:
    """`one` with the fields of `other`, or without them."""
    taken = {field: (other or {}).get(field) for field in fields}
    held = {**(one or {}), **taken}
    return {field: value for field, value in held.items() if value is not None}


def _shown_of_job(field: str, value: Any) -> Any:
    if field == "template":
        return go_template(value or {}, "PodSpec")
    if field == "selector":
        return _shown("Job", value)
    kind = {"podFailurePolicy": "batch.v1.PodFailurePolicy", "successPolicy": "batch.v1.SuccessPolicy"}.get(field)
    return value if value is None or kind is None else go_struct(kind, value)


def _node(old: Raw, new: Raw, faults: Faults) -> None:
    """What somebody assigned to a node stays."""
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


def _csi_node(old: Raw, new: Raw, faults: Faults) -> None:
    """Drivers may be added and removed, but the entry of a driver is immutable."""
    before = {driver.get("name"): driver for driver in (old.get("spec") or {}).get("drivers") or ()}
    for driver in (new.get("spec") or {}).get("drivers") or ():
        known = before.get(driver.get("name"))
        if known is not None and not same(known, driver, type_named("storage.v1.CSINodeDriver")):
            faults.append(invalid("spec.drivers", go_struct("CSINodeDriver", driver), FIELD_IS_IMMUTABLE))


_CLAIM_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim(old: Raw, new: Raw, faults: Faults) -> None:
    """A claim may be bound once, get a storage class if it had none, and be expanded while it is bound."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    then, now = _requested(before), _requested(after)
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if "storageClassName" not in before and _class_noted(old) in (None, after.get("storageClassName")):
        after.pop("storageClassName", None)
    if (new.get("status") or {}).get("phase") == "Bound":
        if "requests" in (after.get("resources") or {}):
            before["resources"], after["resources"] = _without_storage(before), _without_storage(after)
        if after.get("volumeAttributesClassName") is not None:
            before.pop("volumeAttributesClassName", None)
            after.pop("volumeAttributesClassName", None)
    then_all, now_all = _amounts(before), _amounts(after)
    _claim_class(old, new, faults)
    bare = _without(before, ("resources",)), _without(after, ("resources",))
    if not same(*bare, type_named("PersistentVolumeClaimSpec")) or then_all != now_all:
        changed = go_diff("PersistentVolumeClaimSpec", old.get("spec") or {}, new.get("spec") or {})
        faults.append(forbidden("spec", f"{_CLAIM_IMMUTABLE}\n{changed}"))
    provided = canonical_amount(((old.get("status") or {}).get("capacity") or {}).get("storage") or 0)
    if now < then and now <= provided:
        why = "field can not be less than status.capacity"
        faults.append(forbidden("spec.resources.requests.storage", why))
    had, has = _at(old, "spec.volumeAttributesClassName"), _at(new, "spec.volumeAttributesClassName")
    if had is not None and has != had and not has:
        what = "nil" if has is None else "an empty string"
        faults.append(forbidden("spec.volumeAttributesClassName", f"update from non-nil value to {what} is forbidden"))


_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _class_noted(claim: Raw) -> str | None:
    noted: str | None = (claim["metadata"].get("annotations") or {}).get(_CLASS)
    return noted


def _claim_class(old: Raw, new: Raw, faults: Faults) -> None:
    """The class by the older annotation stays, unless the field takes its place."""
    before, after = _class_noted(old), _class_noted(new)
    had, has = _at(old, "spec.storageClassName"), _at(new, "spec.storageClassName")
    moved = before is not None and had is None and has == before and after in (None, before)
    if not moved and (before or "") != (after or ""):
        faults.append(invalid(f"metadata.annotations.{_CLASS}", after or "", FIELD_IS_IMMUTABLE))


def _requested(spec: Raw) -> Any:
    return canonical_amount(((spec.get("resources") or {}).get("requests") or {}).get("storage") or 0)


def _without_storage(spec: Raw) -> Raw:
    resources = spec.get("resources") or {}
    requests = {name: amount for name, amount in (resources.get("requests") or {}).items() if name != "storage"}
    return {**resources, "requests": requests}


def _amounts(spec: Raw) -> dict[tuple[str, str], Any]:
    resources = spec.get("resources") or {}
    return {
        (part, name): canonical_amount(amount)
        for part in ("requests", "limits")
        for name, amount in (resources.get(part) or {}).items()
    }


_VOLUME_MUTABLE: Final = (
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
)


def _volume(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    secret = "controllerExpandSecretRef"  # may be named later
    if "csi" in before and "csi" in after and secret not in before["csi"]:
        after = {**after, "csi": {name: value for name, value in after["csi"].items() if name != secret}}
    sources = _without(before, _VOLUME_MUTABLE), _without(after, _VOLUME_MUTABLE)
    if not same(*sources, type_named("PersistentVolumeSpec")):
        why = f"spec.persistentvolumesource is immutable after creation\n{go_source_diff(before, after)}"
        faults.append(forbidden("spec.persistentvolumesource", why))
    then = {"nodeAffinity": _with_new_labels(before.get("nodeAffinity"), after.get("nodeAffinity"))}
    if "nodeAffinity" in before and not same_in(then, after, "nodeAffinity", type_named("PersistentVolumeSpec")):
        why = f"{FIELD_IS_IMMUTABLE}, except for updating from beta label to GA"
        shown = after.get("nodeAffinity")
        faults.append(invalid("nodeAffinity", None if shown is None else go_struct("VolumeNodeAffinity", shown), why))
    if before.get("volumeAttributesClassName") is not None and after.get("volumeAttributesClassName") is None:
        why = "update from non-nil value to nil is forbidden"
        faults.append(forbidden("spec.volumeAttributesClassName", why))


_NEW_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _with_new_labels(then: Any, now: Any) -> Any:
    """Node affinity with labels called as they are called now, where that is their name of today."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        renamed = {name: _with_new_labels(value, now.get(name)) for name, value in then.items()}
        if "key" in then and _NEW_LABELS.get(then["key"], "") == now.get("key"):
            renamed["key"] = now["key"]
        return renamed
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [_with_new_labels(*pair) for pair in zip(then, now, strict=True)]
    return then


def _service(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    faults += changed_addresses(after, before)
    validate_service_changes(before, after, faults)


def _config_map(old: Raw, new: Raw, faults: Faults) -> None:
    """What is said to be immutable, and that it is."""
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
    """The resource's name is for good; its kind and scope are once the kind is served, as there may be objects."""
    served = is_true(old.get("status") or {}, "Established")
    stored = (new.get("status") or {}).get("storedVersions") or ()
    before, after = ({version.get("name") for version in _at(each, "spec.versions") or ()} for each in (old, new))
    for index, version in enumerate(stored):
        if version in before - after:  # upstream: whatever it was, so that an odd status ends all updates
            why = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
                f"{version} from status.storedVersions"
            )
            faults.append(invalid(f"status.storedVersions[{index}]", version, why))
    for path in (*(("spec.scope", "spec.names.kind") * served), "spec.group", "spec.names.plural"):
        if _at(old, path) != _at(new, path):
            faults.append(invalid(path, _at(new, path), FIELD_IS_IMMUTABLE))


def _resource_quota(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = (_at(quota, "spec.scopes") or [] for quota in (old, new))
    if set(before) != set(after):
        faults.append(invalid("spec.scopes", _at(new, "spec.scopes"), FIELD_IS_IMMUTABLE))


_BY_KIND: Final[Mapping[str, Callable[[Raw, Raw, Faults], None]]] = {
    "Node": _node,
    "PriorityClass": _priority_class,
    "StorageClass": _storage_class,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "CSINode": _csi_node,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "Service": _service,
    "ConfigMap": _config_map,
    "Secret": _secret,
    "ResourceQuota": _resource_quota,
    "Event": validate_event_changes,
    "CustomResourceDefinition": _definition,
    "VolumeAttributesClass": _attributes_class,
    "ServiceCIDR": validate_service_range_change,
    "IPAddress": validate_address_change,
    "RoleBinding": validate_role_ref_change,
    "ClusterRoleBinding": validate_role_ref_change,
}
