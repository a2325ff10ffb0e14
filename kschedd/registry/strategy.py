"""Strategies: changes other than defaults that kube-apiserver makes to objects of each kind at creation and update.

A strategy defines whether the kind has a status subresource, which changes increment metadata.generation, and which
fields the server sets or preserves. `prepare_create`, `prepare_update` and `prepare_status` apply the strategy to a
decoded object with its defaults. The caller validates the object afterwards. The functions of a strategy return a new
object; they modify nothing in place.

Source: Kubernetes v1.34, pkg/registry/*/strategy.go (PrepareForCreate, PrepareForUpdate), and the conversions of
deprecated fields in pkg/apis/*/v1/conversion.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.kinds import BY_NAME
from kschedd.api.schemas.schema import schema_of, type_named
from kschedd.api.text.numbers import whole_number
from kschedd.registry.devices.claim_status import allocated_devices, device_id
from kschedd.registry.devices.taint_rules import date_taints
from kschedd.registry.disabled_fields import (
    NO_FEATURES,
    drop_disabled,
    drop_disabled_claim_status,
    drop_disabled_device_fields,
    drop_terminating_replicas,
)
from kschedd.registry.networking.services import update_service
from kschedd.registry.networking.validation import drop_topology, fill_network_policy
from kschedd.registry.same import same_in

Raw = dict[str, Any]
Old = Mapping[str, Any]

_LAST_GENERATION: Final = 2**63 - 1
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"

_OF_ALL_KINDS: Final = frozenset(("apiVersion", "kind", "metadata"))


@attrs.frozen
class KindStrategy:
    """The strategy of one kind. A change of the fields in `counts` increments the generation."""

    # True if the kind has a status subresource, so that the status is dropped at creation and preserved by plain
    # updates
    status: bool = False
    created_with_status: bool = False
    updated_with_status: bool = False  # True if a plain update also changes the status
    counts: tuple[str, ...] = ()
    counts_empty: bool = False  # True if setting an absent field to an empty list or map is a change
    born: bool = False  # True if new objects have generation 1
    unconditional: bool = True  # True if an update need not contain a resourceVersion
    status_keeps: tuple[str, ...] = ()  # metadata fields that a status update does not change
    on_create: Callable[[Raw, str], None] | None = None  # with the current time
    on_update: Callable[[Raw, Old], None] | None = None
    on_status: Callable[[Raw, Old, str], None] | None = None
    on_write: Callable[[Raw, str], None] | None = None  # called at creation and update, with the current time
    # Functions that drop fields of disabled features (`disabled_fields`) or set defaults of enabled features. Their
    # second argument is the old object, or None.
    drop: Callable[[Raw, Old | None, frozenset[str]], None] | None = None
    drop_status: Callable[[Raw, Old, frozenset[str]], None] | None = None
    # sets defaults of enabled features, but not in objects of a dump or of a mirrored cluster; the second argument is
    # the old object, or None
    default: Callable[[Raw, Old | None, frozenset[str]], None] | None = None


def strategy_of(kind: str) -> KindStrategy:
    return _BY_KIND.get(kind, _PLAIN if kind in BY_NAME else _CUSTOM)


def prepare_create(
    kind: str, raw: Raw, at: str, features: frozenset[str] = NO_FEATURES, *, restore: bool = False
) -> Raw:
    """Return the object to create; `at` is the current time, and `features` are the enabled features.

    With `restore`, the object is from another cluster.
    """
    strategy = strategy_of(kind)
    new = dict(raw)
    if strategy.status and not strategy.created_with_status:
        new["status"] = {}
    if strategy.born:
        new["metadata"] = {**(new.get("metadata") or {}), "generation": 1}
    if strategy.drop is not None:
        strategy.drop(new, None, features)
    if strategy.default is not None and not restore:
        strategy.default(new, None, features)
    if strategy.on_create is not None:
        strategy.on_create(new, at)
    if strategy.on_write is not None:
        strategy.on_write(new, at)
    return new


def prepare_update(kind: str, raw: Raw, old: Old, at: str, features: frozenset[str] = NO_FEATURES) -> Raw:
    """Return the updated object with its generation; fields that a plain update cannot change have their old values.

    `at` is the current time; `features` are the enabled features.
    """
    strategy = strategy_of(kind)
    new = dict(raw)
    if strategy.status and not strategy.updated_with_status:
        _keep(new, old, "status")
    if strategy.drop is not None:
        strategy.drop(new, old, features)
    if strategy.default is not None:
        strategy.default(new, old, features)
    if strategy.on_update is not None:
        strategy.on_update(new, old)
    if strategy.on_write is not None:
        strategy.on_write(new, at)
    counts = strategy.counts if strategy is not _CUSTOM else (new.keys() | old.keys()) - _OF_ALL_KINDS
    if any(not _same(kind, new, old, part) for part in counts) or (
        (described := _COUNTED_METADATA.get(kind)) is not None
        and ((new.get("metadata") or {}).get(described) or {}) != ((old.get("metadata") or {}).get(described) or {})
    ):
        new["metadata"] = {**new["metadata"], "generation": next_generation(old.get("metadata") or {})}
    return new


def _same(kind: str, one: Raw, other: Old, part: str) -> bool:
    known = kind in BY_NAME and not strategy_of(kind).counts_empty
    schema = schema_of(BY_NAME[kind].api_version, kind) if known else None
    return one.get(part) == other.get(part) if schema is None else same_in(one, other, part, schema)


def prepare_finalize(raw: Raw, old: Old) -> Raw:
    """Return the namespace with the finalizers and metadata of the request, and with the old status."""
    new = dict(raw)
    _keep(new, old, "status")
    return new


def prepare_status(
    kind: str, raw: Raw, old: Old, at: str, features: frozenset[str] = NO_FEATURES, subresource: str = "status"
) -> Raw:
    """Return the old object with the status of the request; some kinds also allow changes of the metadata.

    `at` is the current time; `features` are the enabled features.
    """
    strategy = strategy_of(kind)
    new = {**old, "status": raw.get("status") or {}, "metadata": raw["metadata"]}
    if strategy.status_keeps and new["metadata"] is not old["metadata"]:
        meta = dict(new["metadata"])
        for field in strategy.status_keeps:
            _keep(meta, old["metadata"], field)
        new["metadata"] = meta
    if subresource == "approval":
        _approve(new, old, at)
    elif strategy.on_status is not None:
        strategy.on_status(new, old, at)
    if strategy.drop_status is not None:
        strategy.drop_status(new, old, features)
    return new


_COUNTED_METADATA: Final = {"Deployment": "annotations", "EndpointSlice": "labels"}


def next_generation(meta: Old) -> int:
    """Return the incremented generation, capped at int64's maximum."""
    return min((meta.get("generation") or 0) + 1, _LAST_GENERATION)


def _keep(new: Raw, old: Old, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _annotations(raw: Old) -> Any:
    return (raw.get("metadata") or {}).get("annotations")


# --- core ----------------------------------------------------------------------------------------------------------


def _pod_status(new: Raw, old: Old, at: str) -> None:
    """Set the old QoS class and observed generations if the request omits them."""
    before = old.get("status") or {}
    if not new["status"].get("qosClass") and "qosClass" in before:
        new["status"] = {**new["status"], "qosClass": before["qosClass"]}
    if "observedGeneration" in before and not new["status"].get("observedGeneration"):
        new["status"] = {**new["status"], "observedGeneration": before["observedGeneration"]}
    generations: dict[Any, list[int]] = {}
    for condition in before.get("conditions") or ():
        if isinstance(condition, Mapping):
            generations.setdefault(condition.get("type"), []).append(condition.get("observedGeneration") or 0)
    conditions = new["status"].get("conditions") or []
    if any(map(any, generations.values())) and isinstance(conditions, list):
        new["status"] = {**new["status"], "conditions": [_observed(each, generations) for each in conditions]}


def _observed(condition: Any, generations: dict[Any, list[int]]) -> Any:
    """Return a condition; if it lacks an observed generation, it gets that of the old condition."""
    if not isinstance(condition, Mapping):
        return condition
    known = generations.get(condition.get("type"))
    before = known.pop(0) if known else 0
    if condition.get("observedGeneration") or not before:
        return condition
    return {**condition, "observedGeneration": before}


def _create_namespace(new: Raw, at: str) -> None:
    new["status"] = {"phase": "Active"}
    spec = new.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    if "kubernetes" not in finalizers:
        new["spec"] = {**spec, "finalizers": [*finalizers, "kubernetes"]}


def _update_namespace(new: Raw, old: Old) -> None:
    spec = dict(new.get("spec") or {})
    _keep(spec, old.get("spec") or {}, "finalizers")
    new["spec"] = spec


def _create_node(new: Raw, at: str) -> None:
    if "config" in (new.get("status") or {}):
        new["status"] = _without_config(new["status"])
    _update_node(new, {})


def _update_node(new: Raw, old: Old) -> None:
    """Drop the obsolete kubelet configuration of a Node, and make podCIDR and podCIDRs[0] equal.

    If they differ, podCIDR takes precedence.
    """
    spec = new.get("spec") or {}
    if "configSource" in spec and "configSource" not in (old.get("spec") or {}):
        spec = new["spec"] = {name: value for name, value in spec.items() if name != "configSource"}
    one, more = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not more or more[0] != one):
        new["spec"] = {**spec, "podCIDRs": [one]}
    elif more and not one:
        new["spec"] = {**spec, "podCIDR": more[0]}


def _node_status(new: Raw, old: Old, at: str) -> None:
    if "config" in new["status"] and "config" not in (old.get("status") or {}):
        new["status"] = _without_config(new["status"])


def _without_config(status: Raw) -> Raw:
    return {name: value for name, value in status.items() if name != "config"}


def _create_volume(new: Raw, at: str) -> None:
    new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": at}


def _volume_status(new: Raw, old: Old, at: str) -> None:
    status, before = new["status"], old.get("status") or {}
    given, known = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") != before.get("phase"):
        known = at if given is None or given == known else given
    elif given is not None:
        return
    if known is not None:
        new["status"] = {**status, "lastPhaseTransitionTime": known}


def _create_claim(new: Raw, at: str) -> None:
    new["status"] = {"phase": "Pending"}
    _claim_sources(new, {})


def _claim_sources(new: Raw, old: Old) -> None:
    """Make dataSource and dataSourceRef equal; dataSource supports only claims and snapshots."""
    spec, before = dict(new["spec"]), old.get("spec") or {}
    if (spec.get("dataSourceRef") or {}).get("namespace") and "dataSourceRef" not in before:
        del spec["dataSourceRef"]  # the feature CrossNamespaceVolumeDataSource is disabled
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        if _claim_or_snapshot(source) or "dataSource" in before or "dataSourceRef" in before:
            spec["dataSourceRef"] = source
        else:
            del spec["dataSource"]
    elif source is None and reference is not None and not reference.get("namespace"):
        spec["dataSource"] = {field: value for field, value in reference.items() if field != "namespace"}
    new["spec"] = spec


def _claim_or_snapshot(source: Raw) -> bool:
    kind, group = source.get("kind"), source.get("apiGroup")
    if kind == "PersistentVolumeClaim":
        return not group
    return kind == "VolumeSnapshot" and group == "snapshot.storage.k8s.io"


def _service_account(new: Raw, *_: Any) -> None:
    """Keep only the names of a service account's secrets."""
    if secrets := new.get("secrets"):
        new["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in secrets]


def _lease(new: Raw, *_: Any) -> None:
    """Drop the fields of CoordinatedLeaderElection, which is disabled."""
    spec = new.get("spec") or {}
    if "strategy" in spec or "preferredHolder" in spec:
        new["spec"] = {name: value for name, value in spec.items() if name not in ("strategy", "preferredHolder")}


def _csi_driver_by_features(new: Raw, old: Old | None, features: frozenset[str]) -> None:
    """Drop the field of MutableCSINodeAllocatableCount (before 1.35); set the default of VolumeLimitScaling (1.37)."""
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    field = "nodeAllocatableUpdatePeriodSeconds"
    if field in spec and field not in before and "fields_of_1_35" not in features:
        spec = {name: value for name, value in spec.items() if name != field}
    if "volumes_need_driver" in features:
        spec = {"preventPodSchedulingIfMissing": False, **spec}
    new["spec"] = spec


def _claim_status(new: Raw, old: Old, at: str) -> None:
    """Drop the status of devices that are no longer allocated."""
    status = new["status"]
    gone = allocated_devices(old.get("status") or {}) - allocated_devices(status)
    if gone and (devices := status.get("devices")):
        kept = [device for device in devices if device_id(device) not in gone]
        new["status"] = {**{field: part for field, part in status.items() if field != "devices"}}
        if kept:
            new["status"]["devices"] = kept


# --- workloads -----------------------------------------------------------------------------------------------------


def _drop_from_template(new: Raw, old: Old | None, features: frozenset[str]) -> None:
    template = (new.get("spec") or {}).get("template") or {}
    pod = template.get("spec")
    if pod is None:
        return
    before = ((((old or {}).get("spec") or {}).get("template")) or {}).get("spec")
    kept = drop_disabled(pod, before, features)
    if kept is not pod:
        new["spec"] = {**new["spec"], "template": {**template, "spec": kept}}


def _drop_from_stateful_set(new: Raw, old: Old | None, features: frozenset[str]) -> None:
    """Drop the fields of disabled features, among them that of MaxUnavailableStatefulSet."""
    _drop_from_template(new, old, features)
    before = ((((old or {}).get("spec") or {}).get("updateStrategy")) or {}).get("rollingUpdate") or {}
    rolling = _rolling_update(new)
    if rolling and "stateful_sets_replace_several" not in features and "maxUnavailable" not in before:
        _set_rolling_update(new, {name: value for name, value in rolling.items() if name != "maxUnavailable"})


def _default_stateful_set(new: Raw, old: Old | None, features: frozenset[str]) -> None:
    """Set the default of MaxUnavailableStatefulSet, unless the update strategy stays as it was in a dump."""
    rolling = _rolling_update(new)
    if rolling is None or (old is not None and rolling == _rolling_update(old)):
        return
    if "stateful_sets_replace_several" in features:
        _set_rolling_update(new, {"maxUnavailable": 1, **rolling})


def _rolling_update(stateful_set: Old) -> Old | None:
    strategy = (stateful_set.get("spec") or {}).get("updateStrategy") or {}
    rolling: Old | None = strategy.get("rollingUpdate")
    return rolling


def _set_rolling_update(stateful_set: Raw, rolling: Old) -> None:
    if rolling != _rolling_update(stateful_set):
        spec = stateful_set["spec"]
        stateful_set["spec"] = {**spec, "updateStrategy": {**spec["updateStrategy"], "rollingUpdate": rolling}}


def _create_daemon_set(new: Raw, at: str) -> None:
    given = (new["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or "1"
    _annotate(new, TEMPLATE_GENERATION, given if 1 <= (whole_number(given) or 0) <= _LAST_GENERATION else "1")


def _update_daemon_set(new: Raw, old: Old) -> None:
    before = whole_number((_annotations(old) or {}).get(TEMPLATE_GENERATION) or "0") or 0
    changed = not same_in(new.get("spec") or {}, old.get("spec") or {}, "template", type_named("apps.v1.DaemonSetSpec"))
    if before + changed:
        _annotate(new, TEMPLATE_GENERATION, str(before + changed))


def _daemon_set_status(new: Raw, old: Old, at: str) -> None:
    """Preserve the template generation, which is a field of the internal type, not an annotation."""
    if generation := (_annotations(old) or {}).get(TEMPLATE_GENERATION):
        _annotate(new, TEMPLATE_GENERATION, generation)


def _annotate(new: Raw, name: str, value: str) -> None:
    meta = new["metadata"]
    new["metadata"] = {**meta, "annotations": {**(meta.get("annotations") or {}), name: value}}


def _drop_from_job_template(new: Raw, old: Old | None, features: frozenset[str]) -> None:
    template = (new.get("spec") or {}).get("jobTemplate")
    if template:
        inner = dict(template)
        _drop_from_template(inner, ((old or {}).get("spec") or {}).get("jobTemplate"), features)
        new["spec"] = {**new["spec"], "jobTemplate": inner}


def _drop_from_pod_template(new: Raw, old: Old | None, features: frozenset[str]) -> None:
    inner = {"spec": {"template": new.get("template")}}
    _drop_from_template(inner, {"spec": {"template": (old or {}).get("template")}}, features)
    if new.get("template") is not inner["spec"]["template"]:
        new["template"] = inner["spec"]["template"]


def _create_api_service(new: Raw, at: str) -> None:
    """Mark kube-apiserver's own APIs as available; `kschedd.controllers.api_services` handles all others."""
    if "service" not in (new.get("spec") or {}):
        condition = {"type": "Available", "status": "True", "lastTransitionTime": at, "reason": "Local"}
        new["status"] = {"conditions": [{**condition, "message": "Local APIServices are always available"}]}


def _update_signing_request(new: Raw, old: Old) -> None:
    """Preserve the spec of a CertificateSigningRequest; only its subresources may change it."""
    _keep(new, old, "spec")


def _approve(new: Raw, old: Old, at: str) -> None:
    """Preserve the status except for the conditions, which an approval changes."""
    conditions = new["status"].get("conditions")
    new["status"] = {**(old.get("status") or {})}
    new["status"].pop("conditions", None)
    if conditions:
        new["status"]["conditions"] = _dated(conditions, old, at)


def _sign(new: Raw, old: Old, at: str) -> None:
    """Preserve the conditions Approved and Denied, which a signer may not change."""
    status, before = new["status"], (old.get("status") or {}).get("conditions") or []
    conditions = list(status.get("conditions") or [])
    for kind in ("Approved", "Denied"):
        then = [each for each in before if each.get("type") == kind]
        places = [place for place, each in enumerate(conditions) if each.get("type") == kind]
        if len(then) == len(places):
            for place, condition in zip(places, then, strict=True):
                conditions[place] = condition
    if conditions:
        new["status"] = {**status, "conditions": _dated(conditions, old, at)}


def _dated(conditions: list[Any], old: Old, at: str) -> list[Any]:
    """Return the conditions with transition times; the time of an unchanged condition stays."""
    known = {
        (each.get("type"), each.get("status")): each["lastTransitionTime"]
        for each in reversed((old.get("status") or {}).get("conditions") or [])
        if each.get("lastTransitionTime")
    }
    return [
        {
            **each,
            "lastUpdateTime": each.get("lastUpdateTime") or at,
            "lastTransitionTime": each.get("lastTransitionTime")
            or known.get((each.get("type"), each.get("status")), at),
        }
        for each in conditions
    ]


_DESCRIBED: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_PLAIN: Final = KindStrategy()
# custom resources: every change outside of the metadata increments the generation
_CUSTOM: Final = KindStrategy(born=True)
_WITH_STATUS: Final = KindStrategy(status=True)
_WORKLOAD: Final = KindStrategy(status=True, counts=("spec",), born=True, drop=_drop_from_template)
_CONDITIONAL: Final = KindStrategy(unconditional=False)
_DEVICES: Final = KindStrategy(drop=drop_disabled_device_fields)

_WEBHOOKS: Final = KindStrategy(counts=("webhooks",), counts_empty=True, born=True, unconditional=False)
_BY_KIND: Final[Mapping[str, KindStrategy]] = {
    "CustomResourceDefinition": KindStrategy(status=True, counts=("spec",), born=True, unconditional=False),
    "Pod": KindStrategy(
        status=True, counts=("spec",), born=True, status_keeps=("ownerReferences",), on_status=_pod_status
    ),
    "Node": KindStrategy(
        status=True, created_with_status=True, on_create=_create_node, on_update=_update_node, on_status=_node_status
    ),
    "Namespace": KindStrategy(status=True, on_create=_create_namespace, on_update=_update_namespace),
    "Service": KindStrategy(status=True, on_update=update_service),
    "ResourceQuota": _WITH_STATUS,
    "PersistentVolume": KindStrategy(status=True, on_create=_create_volume, on_status=_volume_status),
    "PersistentVolumeClaim": KindStrategy(status=True, on_create=_create_claim, on_update=_claim_sources),
    "ReplicationController": _WORKLOAD,
    "ReplicaSet": attrs.evolve(_WORKLOAD, drop_status=drop_terminating_replicas),
    "Deployment": attrs.evolve(_WORKLOAD, status_keeps=("labels",), drop_status=drop_terminating_replicas),
    "StatefulSet": attrs.evolve(_WORKLOAD, drop=_drop_from_stateful_set, default=_default_stateful_set),
    "DaemonSet": attrs.evolve(
        _WORKLOAD, on_create=_create_daemon_set, on_update=_update_daemon_set, on_status=_daemon_set_status
    ),
    "Job": _WORKLOAD,
    "CronJob": KindStrategy(status=True, counts=("spec",), born=True, drop=_drop_from_job_template),
    "PodTemplate": KindStrategy(counts=("template",), born=True, drop=_drop_from_pod_template),
    "PodDisruptionBudget": KindStrategy(status=True, counts=("spec",), born=True, unconditional=False),
    "ServiceAccount": KindStrategy(on_create=_service_account, on_update=_service_account),
    "PriorityClass": KindStrategy(born=True),
    "RuntimeClass": _CONDITIONAL,
    "CSINode": _CONDITIONAL,
    "CSIDriver": KindStrategy(counts=("spec",), unconditional=False, drop=_csi_driver_by_features),
    "CSIStorageCapacity": _CONDITIONAL,
    "VolumeAttachment": KindStrategy(status=True, unconditional=False),
    "Lease": KindStrategy(unconditional=False, on_create=_lease, on_update=_lease),
    "ResourceClaim": attrs.evolve(
        _DEVICES,
        status=True,
        status_keeps=(*_DESCRIBED, "deletionTimestamp"),
        on_status=_claim_status,
        drop_status=drop_disabled_claim_status,
    ),
    "ResourceClaimTemplate": _DEVICES,
    "ResourceSlice": attrs.evolve(_DEVICES, counts=("spec",), born=True, on_write=date_taints),
    "DeviceTaintRule": KindStrategy(status=True, counts=("spec",), born=True, on_write=date_taints),
    "DeviceClass": attrs.evolve(_DEVICES, counts=("spec",), born=True),
    "Ingress": KindStrategy(status=True, counts=("spec",), born=True),
    "NetworkPolicy": KindStrategy(
        counts=("spec",), counts_empty=True, born=True, on_create=fill_network_policy, on_update=fill_network_policy
    ),
    "HorizontalPodAutoscaler": _WITH_STATUS,
    "IngressClass": KindStrategy(counts=("spec",), born=True),
    "EndpointSlice": KindStrategy(
        counts=("addressType", "endpoints", "ports"), born=True, on_create=drop_topology, on_update=drop_topology
    ),
    "ServiceCIDR": KindStrategy(status=True, updated_with_status=True, status_keeps=_DESCRIBED),
    "CertificateSigningRequest": KindStrategy(status=True, on_update=_update_signing_request, on_status=_sign),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": KindStrategy(status=True, counts=("spec",), born=True, unconditional=False),
    "ValidatingAdmissionPolicyBinding": KindStrategy(counts=("spec",), born=True, unconditional=False),
    "MutatingAdmissionPolicy": KindStrategy(counts=("spec",), born=True, unconditional=False),
    "MutatingAdmissionPolicyBinding": KindStrategy(counts=("spec",), born=True, unconditional=False),
    "ClusterTrustBundle": _CONDITIONAL,
    "PodCertificateRequest": KindStrategy(status=True, unconditional=False),
    "StorageVersionMigration": KindStrategy(status=True, unconditional=False),
    "FlowSchema": KindStrategy(status=True, counts=("spec",), born=True, status_keeps=_DESCRIBED),
    "PriorityLevelConfiguration": KindStrategy(status=True, counts=("spec",), born=True, status_keeps=_DESCRIBED),
    "APIService": KindStrategy(status=True, unconditional=False, on_create=_create_api_service),
}
