"""Validation of workloads, Services and PodDisruptionBudgets.

Source: Kubernetes v1.34, pkg/apis/{apps,batch,core,policy}/validation/validation.go.
Takes objects that match the schema and have their defaults.
"""

from typing import Any, Final

from kschedd.api.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.requirements import SelectorError
from kschedd.api.selectors import from_map, parse_label_selector
from kschedd.api.validation_meta import validate_labels
from kschedd.api.validation_names import dns_subdomain, percent, port_name
from kschedd.api.validation_pod import PORT_RANGE, validate_pod_spec
from kschedd.api.validation_resources import NOT_NEGATIVE
from kschedd.api.validation_selectors import validate_label_selector
from kschedd.api.validation_volumes import validate_claim_spec

Raw = dict[str, Any]
Faults = list[FieldError]

_COUNTS: Final = (
    "replicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
)


def _validate_counts(spec: Raw, faults: Faults) -> None:
    for field in _COUNTS:
        count = spec.get(field)
        if count is not None and count < 0:
            faults.append(invalid(f"spec.{field}", count, NOT_NEGATIVE))


def _validate_template(spec: Raw, policies: tuple[str, ...], faults: Faults) -> None:
    template = spec.get("template")
    if not template:
        faults.append(required("spec.template"))
        return
    meta = template.get("metadata") or {}
    validate_labels(meta.get("labels") or {}, "spec.template.metadata.labels", faults)
    pod = template.get("spec")
    if pod is None:
        faults.append(required("spec.template.spec.containers"))
        return
    faults += validate_pod_spec(pod, "spec.template.spec")
    policy = pod.get("restartPolicy")
    if policy not in policies:
        faults.append(unsupported("spec.template.spec.restartPolicy", policy, policies))
    if policies == ("Always",) and pod.get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in ReplicaSet is not Supported"
        faults.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))


def _validate_selected(spec: Raw, word: str, faults: Faults) -> None:
    """Validate the selector, and that it matches the template's labels."""
    selector = spec.get("selector")
    if selector is None:
        faults.append(required("spec.selector"))
        return
    before = len(faults)
    validate_label_selector(selector, "spec.selector", faults)
    if len(faults) > before:
        return
    try:
        parsed = parse_label_selector(selector)
    except SelectorError as wrong:
        faults.append(invalid("spec.selector", selector, str(wrong)))
        return
    if parsed.empty:
        faults.append(invalid("spec.selector", selector, f"empty selector is invalid for {word}"))
        return
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if template and not parsed.matches(labels):
        why = "`selector` does not match template `labels`"
        faults.append(invalid("spec.template.metadata.labels", labels, why))


def validate_replica_set(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    _validate_counts(spec, faults)
    _validate_selected(spec, "replicaset", faults)
    _validate_template(spec, ("Always",), faults)


def validate_deployment(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    _validate_counts(spec, faults)
    _validate_selected(spec, "deployment", faults)
    _validate_template(spec, ("Always",), faults)
    strategy = spec.get("strategy") or {}
    kind = strategy.get("type")
    rolling = strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        faults.append(unsupported("spec.strategy.type", kind, ("Recreate", "RollingUpdate")))
    elif kind == "Recreate" and rolling is not None:
        why = "may not be specified when strategy `type` is 'Recreate'"
        faults.append(forbidden("spec.strategy.rollingUpdate", why))
    elif rolling:
        _validate_rolling(rolling, "spec.strategy.rollingUpdate", faults)
    limit = spec.get("progressDeadlineSeconds")
    if limit is not None and limit <= (spec.get("minReadySeconds") or 0):
        faults.append(invalid("spec.progressDeadlineSeconds", limit, "must be greater than minReadySeconds"))


def _validate_rolling(rolling: Raw, path: str, faults: Faults) -> None:
    for field in ("maxUnavailable", "maxSurge"):
        validate_share(rolling.get(field), f"{path}.{field}", faults)
    shares = (rolling.get("maxUnavailable"), rolling.get("maxSurge"))
    if all(share in (0, "0%") for share in shares):
        faults.append(invalid(f"{path}.maxUnavailable", shares[0], "may not be 0 when `maxSurge` is 0"))
    if (share := rolling.get("maxUnavailable")) is not None:
        _validate_not_over_100(share, f"{path}.maxUnavailable", faults)


def validate_share(share: int | str | None, path: str, faults: Faults) -> None:
    """An int-or-percent: a number of pods, or a percentage of them."""
    if isinstance(share, str):
        faults += [invalid(path, share, why) for why in percent(share)]
    elif share is not None and share < 0:
        faults.append(invalid(path, share, NOT_NEGATIVE))


def _validate_not_over_100(share: int | str, path: str, faults: Faults) -> None:
    if isinstance(share, str) and not percent(share) and int(share[:-1][:9]) > 100:
        faults.append(invalid(path, share, "must not be greater than 100%"))


def validate_stateful_set(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    _validate_counts(spec, faults)
    _validate_selected(spec, "statefulset", faults)
    _validate_template({**spec, "template": _with_claims(spec)}, ("Always",), faults)
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        faults.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    kind = (spec.get("updateStrategy") or {}).get("type")
    if kind not in ("OnDelete", "RollingUpdate"):
        faults.append(unsupported("spec.updateStrategy.type", kind, ("OnDelete", "RollingUpdate")))
    start = (spec.get("ordinals") or {}).get("start") or 0
    if start < 0:
        faults.append(invalid("spec.ordinals.start", start, NOT_NEGATIVE))
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec", faults)


def _with_claims(spec: Raw) -> Raw | None:
    """The template with a volume for each volume claim template, replacing a volume of the same name."""
    template: Raw | None = spec.get("template")
    pod = (template or {}).get("spec")
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    if not template or pod is None or not claims:
        return template
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    volumes += [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
    return {**template, "spec": {**pod, "volumes": volumes}}


def validate_daemon_set(workload: Raw, faults: Faults) -> None:
    spec = workload.get("spec") or {}
    _validate_counts(spec, faults)
    _validate_selected(spec, "daemonset", faults)
    _validate_template(spec, ("Always",), faults)
    update = spec.get("updateStrategy") or {}
    if update.get("type") not in ("OnDelete", "RollingUpdate"):
        faults.append(unsupported("spec.updateStrategy.type", update.get("type"), ("OnDelete", "RollingUpdate")))
    elif rolling := update.get("rollingUpdate"):
        _validate_rolling(rolling, "spec.updateStrategy.rollingUpdate", faults)


def validate_job(job: Raw, faults: Faults) -> None:
    spec = job.get("spec") or {}
    _validate_counts(spec, faults)
    _validate_template(spec, ("OnFailure", "Never"), faults)
    validate_label_selector(spec.get("selector"), "spec.selector", faults)
    mode = spec.get("completionMode")
    if mode not in ("NonIndexed", "Indexed"):
        faults.append(unsupported("spec.completionMode", mode, ("NonIndexed", "Indexed")))
    elif mode == "Indexed" and spec.get("completions") is None:
        faults.append(required("spec.completions", "when completion mode is Indexed"))


def validate_replication_controller(controller: Raw, faults: Faults) -> None:
    spec = controller.get("spec") or {}
    _validate_counts(spec, faults)
    selector = spec.get("selector")
    if spec.get("template") is None:
        return  # accepted: without a template it creates no pods
    if not selector:
        faults.append(required("spec.selector"))
    else:
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        if not from_map(selector).matches(labels):
            why = "`selector` does not match template `labels`"
            faults.append(invalid("spec.template.metadata.labels", labels, why))
    _validate_template(spec, ("Always",), faults)


_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def validate_service(service: Raw, faults: Faults) -> None:
    spec = service.get("spec") or {}
    kind = spec.get("type")
    if kind not in _SERVICE_TYPES:
        faults.append(unsupported("spec.type", kind, _SERVICE_TYPES))
    validate_labels(spec.get("selector") or {}, "spec.selector", faults)
    ports = spec.get("ports") or ()
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        faults.append(required("spec.ports"))
    names = set()
    for index, port in enumerate(ports):
        here = f"spec.ports[{index}]"
        name = port.get("name") or ""
        if not name and len(ports) > 1:
            faults.append(required(f"{here}.name"))
        elif name:
            if name in names:
                faults.append(duplicate(f"{here}.name", name))
            names.add(name)
        number = port.get("port") or 0
        if not 1 <= number <= 65535:
            faults.append(invalid(f"{here}.port", number, PORT_RANGE))
        if port.get("protocol") not in _PROTOCOLS:
            faults.append(unsupported(f"{here}.protocol", port.get("protocol"), _PROTOCOLS))
        target = port.get("targetPort")
        if isinstance(target, str):
            faults += [invalid(f"{here}.targetPort", target, why) for why in port_name(target)]
        elif target is not None and not 1 <= target <= 65535:
            faults.append(invalid(f"{here}.targetPort", target, PORT_RANGE))


def validate_disruption_budget(budget: Raw, faults: Faults) -> None:
    spec = budget.get("spec") or {}
    stated = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(stated) > 1:
        faults.append(FieldError("spec", spec, "Invalid value: minAvailable and maxUnavailable cannot be both set"))
    for field in stated:
        validate_share(spec[field], f"spec.{field}", faults)
        _validate_not_over_100(spec[field], f"spec.{field}", faults)
    validate_label_selector(spec.get("selector"), "spec.selector", faults)
    policy = spec.get("unhealthyPodEvictionPolicy")
    allowed = ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in allowed:
        faults.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, allowed))
    validate_budget_status(budget.get("status") or {}, faults)


def validate_budget_status(status: Raw, faults: Faults) -> None:
    for name in status.get("disruptedPods") or ():
        faults += [invalid("status.disruptedPods", name, why) for why in dns_subdomain(name)]
