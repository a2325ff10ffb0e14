"""Validation of workloads, Services and PodDisruptionBudgets.

Source: Kubernetes v1.34, pkg/apis/{apps,batch,core,policy}/validation/validation.go.
The functions require objects that match the schema and have their defaults.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import dns_label, percent
from kschedd.api.selecting.requirements import SelectorError
from kschedd.api.selecting.selectors import from_map, parse_label_selector
from kschedd.registry.go_structs import go_selector, go_struct
from kschedd.registry.pods.annotations import validate_pod_annotations, validate_profiles_match
from kschedd.registry.pods.validation import validate_pod_spec
from kschedd.registry.storage.validation import validate_claim_spec
from kschedd.registry.validation_meta import validate_annotations, validate_labels
from kschedd.registry.validation_resources import NOT_NEGATIVE
from kschedd.registry.validation_selectors import validate_label_selector

Raw = dict[str, Any]
Faults = list[FieldError]


def _validate_counts(spec: Raw, faults: Faults, *fields: str) -> None:
    for field in fields:
        count = spec.get(field)
        if count is not None and count < 0:
            faults.append(invalid(f"spec.{field}", count, NOT_NEGATIVE))


def _validate_template(spec: Raw, faults: Faults, without_deadline: str = "ReplicaSet") -> None:
    """Validate the template of pods that are always restarted; `without_deadline` is the kind in upstream's message."""
    template = spec.get("template") or {}
    if without_deadline == "StatefulSet":  # upstream validates the metadata, and then the whole template again
        validate_template_meta(template, "spec.template", faults)
    validate_template(template, "spec.template", faults)
    _validate_ends(template.get("spec"), faults, without_deadline)


def _validate_ends(pod: Raw | None, faults: Faults, without_deadline: str) -> None:
    if pod is None:
        return
    if (policy := pod.get("restartPolicy")) != "Always":
        faults.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {without_deadline} is not Supported"
        faults.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))


def validate_template(template: Raw, path: str, faults: Faults) -> None:
    """Validate a pod template."""
    validate_template_meta(template, path, faults)
    pod = template.get("spec")
    if pod is None:  # there are no containers, so defaults cannot be invalid
        faults.append(required(f"{path}.spec.containers"))
        return
    faults += validate_pod_spec(pod, f"{path}.spec", template=True)
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    validate_profiles_match(annotations, pod, f"{path}.spec", faults)
    if pod.get("ephemeralContainers"):
        faults.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))


def validate_pod_template(item: Raw, faults: Faults) -> None:
    """Validate a PodTemplate."""
    validate_template(item.get("template") or {}, "template", faults)


def validate_template_meta(template: Raw, path: str, faults: Faults) -> None:
    meta = template.get("metadata") or {}
    validate_labels(meta.get("labels") or {}, f"{path}.labels", faults)
    annotations = meta.get("annotations") or {}
    validate_annotations(annotations, f"{path}.annotations", faults)
    validate_pod_annotations(annotations, template.get("spec") or {}, f"{path}.annotations", faults)


def _validate_selected(spec: Raw, word: str, faults: Faults) -> bool:
    """Validate the selector and whether it matches the template's labels; return False if it cannot be parsed."""
    selector = spec.get("selector")
    if selector is None:
        if word != "daemonset":
            faults.append(required("spec.selector"))
        _mismatch(spec, faults)  # an absent selector matches nothing
        return True
    shown = go_selector(selector)
    before = len(faults)
    validate_label_selector(selector, "spec.selector", faults)
    if not shown:
        faults.append(invalid("spec.selector", shown, f"empty selector is invalid for {word}"))
        return True
    try:
        parsed = parse_label_selector(selector) if len(faults) == before else None
    except SelectorError:
        parsed = None
    if parsed is None:
        if word != "daemonset":
            faults.append(invalid("spec.selector", shown, "" if word == "statefulset" else "invalid label selector"))
        return False
    if not parsed.matches(((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}):
        _mismatch(spec, faults)
    return True


def _mismatch(spec: Raw, faults: Faults) -> None:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    shown = None if labels is None else dict(sorted(labels.items()))
    why = "`selector` does not match template `labels`"
    faults.append(invalid("spec.template.metadata.labels", shown, why))


def validate_replica_set(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    _validate_counts(spec, faults, "replicas", "minReadySeconds")
    if _validate_selected(spec, "deployment", faults):  # upstream's messages contain this name for both kinds
        _validate_template(spec, faults)


_STRATEGIES: Final = ("Recreate", "RollingUpdate")


def validate_deployment(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    _validate_counts(spec, faults, "replicas")
    if _validate_selected(spec, "deployment", faults):
        _validate_template(spec, faults)
    strategy = spec.get("strategy") or {}
    kind = strategy.get("type")
    rolling = strategy.get("rollingUpdate")
    if kind not in _STRATEGIES:
        faults.append(unsupported("spec.strategy", go_struct("apps.v1.DeploymentStrategy", strategy), _STRATEGIES))
    elif kind == "Recreate" and rolling is not None:
        why = "may not be specified when strategy `type` is 'Recreate'"
        faults.append(forbidden("spec.strategy.rollingUpdate", why))
    elif rolling:
        _validate_rolling(rolling, "spec.strategy.rollingUpdate", faults)
    _validate_counts(spec, faults, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    limit = spec.get("progressDeadlineSeconds")
    if limit is not None and limit <= (spec.get("minReadySeconds") or 0):
        faults.append(invalid("spec.progressDeadlineSeconds", limit, "must be greater than minReadySeconds"))


def _validate_rolling(rolling: Raw, path: str, faults: Faults) -> None:
    for field in ("maxUnavailable", "maxSurge"):
        validate_share(rolling.get(field), f"{path}.{field}", faults)
    goes, comes = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    if not _amount(goes) and not _amount(comes):
        faults.append(invalid(f"{path}.maxUnavailable", goes, "may not be 0 when `maxSurge` is 0"))
    if goes is not None:
        _validate_not_over_100(goes, f"{path}.maxUnavailable", faults)


def validate_share(share: int | str | None, path: str, faults: Faults) -> None:
    """Validate a field that contains a number of pods or a percentage of them."""
    if isinstance(share, str):
        faults += [invalid(path, share, why) for why in percent(share)]
    elif share is not None and share < 0:
        faults.append(invalid(path, share, NOT_NEGATIVE))


def _amount(share: int | str | None) -> int:
    """Return the number, or the number of the percentage; 0 for any other value."""
    if not isinstance(share, str):
        return share or 0
    text = share if percent(share) else share[:-1]
    return int(text[:9]) if _NUMBER.fullmatch(text) else 0


_NUMBER: Final = re.compile("[+-]?[0-9]+", re.ASCII)


def _validate_not_over_100(share: int | str, path: str, faults: Faults) -> None:
    if isinstance(share, str) and not percent(share) and int(share[:-1][:9]) > 100:
        faults.append(invalid(path, share, "must not be greater than 100%"))


def validate_stateful_set(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    if name := spec.get("serviceName"):
        faults += [invalid("spec.serviceName", name, why) for why in dns_label(name)]
    _validate_set(spec, spec.get("volumeClaimTemplates") or (), faults)


def validate_updated_stateful_set(workload: Raw, faults: Faults) -> None:
    """Validate a changed StatefulSet, except its service name and claim templates, which are immutable."""
    _validate_set(workload.get("spec") or {}, (), faults)


def _validate_set(spec: Raw, claims: Sequence[Raw], faults: Faults) -> None:
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        faults.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("OnDelete", "RollingUpdate"):
        why = "must be 'RollingUpdate' or 'OnDelete'"
        faults.append(invalid("spec.updateStrategy", go_struct("apps.v1.StatefulSetUpdateStrategy", strategy), why))
    elif (rolling := strategy.get("rollingUpdate")) is not None:
        _validate_partition(strategy["type"], rolling, "spec.updateStrategy.rollingUpdate", faults)
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        if (policy := retention.get(field)) and policy not in ("Retain", "Delete"):
            here = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            faults.append(unsupported(here, policy, ("Retain", "Delete")))
    for index, claim in enumerate(claims):
        validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec", faults)
    _validate_counts(spec, faults, "replicas", "minReadySeconds")
    start = (spec.get("ordinals") or {}).get("start") or 0
    if start < 0:
        faults.append(invalid("spec.ordinals.start", start, NOT_NEGATIVE))
    if _validate_selected(spec, "statefulset", faults):
        _validate_template({**spec, "template": _with_identity(spec)}, faults, "StatefulSet")
    else:
        _validate_ends((spec.get("template") or {}).get("spec"), faults, "StatefulSet")


def _validate_partition(kind: str, rolling: Raw, path: str, faults: Faults) -> None:
    partition = rolling.get("partition") or 0
    if kind == "OnDelete":
        shown = go_struct("apps.v1.RollingUpdateStatefulSetStrategy", rolling)
        faults.append(invalid(path, shown, "only allowed for updateStrategy 'RollingUpdate'"))
    elif partition < 0:
        faults.append(invalid(f"{path}.partition", partition, NOT_NEGATIVE))


def _with_identity(spec: Raw) -> Raw | None:
    """Return the template with the host name of its pods, and with a volume for each claim template.

    The volume of a claim template replaces a volume of the same name.
    """
    template: Raw | None = spec.get("template")
    pod = (template or {}).get("spec")
    if not template or pod is None:
        return template
    pod = {field: value for field, value in pod.items() if field not in ("hostname", "subdomain")}
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    if claims:
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
        pod["volumes"] = volumes + [each for each in pod.get("volumes") or () if each.get("name") not in claims]
    return {**template, "spec": pod}


def validate_daemon_set(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    _validate_selected(spec, "daemonset", faults)
    _validate_template(spec, faults, "DaemonSet")
    _validate_counts(spec, faults, "minReadySeconds")
    update = spec.get("updateStrategy") or {}
    if update.get("type") not in ("OnDelete", "RollingUpdate"):
        shown = go_struct("apps.v1.DaemonSetUpdateStrategy", update)
        faults.append(unsupported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete")))
    elif update["type"] == "RollingUpdate" and (rolling := update.get("rollingUpdate")):
        _validate_daemons(rolling, "spec.updateStrategy.rollingUpdate", faults)
    _validate_counts(spec, faults, "revisionHistoryLimit")


def _validate_daemons(rolling: Raw, path: str, faults: Faults) -> None:
    """Validate the rolling update of a DaemonSet; it must set exactly one of maxUnavailable and maxSurge."""
    shares = {field: rolling.get(field) for field in ("maxUnavailable", "maxSurge")}
    for check in (validate_share, _validate_not_over_100):
        for field, share in shares.items():
            if share is not None:
                check(share, f"{path}.{field}", faults)
    goes, comes = (_amount(share) for share in shares.values())
    if not goes and not comes:
        faults.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif goes and comes:
        faults.append(invalid(f"{path}.maxSurge", shares["maxSurge"], "may not be set when maxUnavailable is non-zero"))


def validate_revision(item: Raw, faults: Faults) -> None:
    """Append the errors of a new ControllerRevision."""
    validate_updated_revision(item, faults)
    if item.get("data") is None:
        faults.append(required("data", "data is mandatory"))


def validate_updated_revision(item: Raw, faults: Faults) -> None:
    """Append the errors of a new or changed ControllerRevision."""
    if item.get("data") is not None and not isinstance(item["data"], dict):
        faults.append(required("data", "data must be a valid JSON object"))
    if (number := item.get("revision") or 0) < 0:
        faults.append(invalid("revision", number, NOT_NEGATIVE))


def validate_replication_controller(controller: Raw, faults: Faults) -> None:
    spec = controller.get("spec") or {}
    _validate_counts(spec, faults, "minReadySeconds")
    selector = spec.get("selector")
    if not selector:
        faults.append(required("spec.selector"))
    _validate_counts(spec, faults, "replicas")
    if spec.get("template") is None:
        faults.append(required("spec.template"))
        return
    if selector:
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if not from_map(selector).matches(labels or {}):
            why = "`selector` does not match template `labels`"
            faults.append(invalid("spec.template.metadata.labels", labels, why))
    _validate_template(spec, faults, "ReplicationController")


def validate_disruption_budget(budget: Raw, faults: Faults) -> None:
    spec = budget.get("spec") or {}
    stated = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(stated) > 1:
        shown = go_struct("policy.v1.PodDisruptionBudgetSpec", spec)
        faults.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field in stated:
        validate_share(spec[field], f"spec.{field}", faults)
        _validate_not_over_100(spec[field], f"spec.{field}", faults)
    validate_label_selector(spec.get("selector"), "spec.selector", faults)
    policy = spec.get("unhealthyPodEvictionPolicy")
    allowed = ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in allowed:
        faults.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, allowed))
