"""Server-side defaults of a pod's spec.

Source: Kubernetes v1.34, pkg/apis/core/v1/defaults.go and pkg/registry/core/pod/strategy.go
(applyMatchLabelKeysAndMismatchLabelKeys, applySchedulingGatedCondition). The functions require specs that match the
schema (checked by `schema_check`) and do not modify them; changed parts are copied. Quantities are returned in
canonical form and rounded up to thousandths, as kube-apiserver stores them. Defaults of probes, hooks and environment
are in `container_defaults`.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from kschedd.api.quantity import as_stored, format_nanos, nanos, style
from kschedd.api.schemas.schema import Fields, ListOf, MapOf, type_named
from kschedd.registry.pods.container_defaults import default_details, default_field_sources
from kschedd.registry.pods.image_names import image_pull_policy

Raw = dict[str, Any]

_MILLI: Final = 10**6  # nanos


@lru_cache(1 << 13, typed=True)
def stored_quantity(quantity: str | int | float) -> str:
    """Return a ResourceList quantity in the form that kube-apiserver stores: rounded up to thousandths."""
    amount = nanos(quantity)
    rounded = -(-abs(amount) // _MILLI) * _MILLI
    if rounded == abs(amount):
        return as_stored(quantity)
    return format_nanos(rounded if amount >= 0 else -rounded, style(quantity))


def stored_resources(resources: Raw) -> Raw:
    """Return a ResourceList with its quantities in stored form, or the argument itself if nothing changes."""
    for quantity in resources.values():
        if stored_quantity(quantity) != quantity:
            return {name: stored_quantity(value) for name, value in resources.items()}
    return resources


def without_empty(raw: Raw, fields: Fields, *needed: str) -> Raw:
    """Return a copy without empty lists and maps (omitempty in the API types), except the fields in `needed`."""
    return {
        field: value
        for field, value in raw.items()
        if value or not isinstance(fields.get(field), (ListOf, MapOf)) or field in needed
    }


def default_pod_spec(spec: Raw, *, template: bool = False) -> Raw:
    """Return the spec with its defaults.

    In a template, requests are not derived from limits and ports get no defaults, because this is done when the pod is
    created.
    """
    new = without_empty(spec, type_named("PodSpec"), "containers", *(() if template else ("overhead",)))
    if not new.get("restartPolicy"):
        new["restartPolicy"] = "Always"
    if not new.get("dnsPolicy"):
        new["dnsPolicy"] = "ClusterFirst"
    if not new.get("schedulerName"):
        new["schedulerName"] = "default-scheduler"
    new.setdefault("terminationGracePeriodSeconds", 30)
    if "securityContext" not in new:
        new["securityContext"] = {}
    if account := new.get("serviceAccountName") or new.get("serviceAccount"):  # the deprecated field
        new["serviceAccountName"] = new["serviceAccount"] = account
    if not template and "enableServiceLinks" not in new:
        new["enableServiceLinks"] = True
    host_network = not template and bool(spec.get("hostNetwork"))
    for field in ("containers", "initContainers", "ephemeralContainers"):
        containers = spec.get(field)
        if containers:
            new[field] = [
                _container(container, host_network, template or field == "ephemeralContainers")
                for container in containers
            ]
    if volumes := spec.get("volumes"):
        new["volumes"] = [_volume(volume) for volume in volumes]
    if overhead := spec.get("overhead"):
        new["overhead"] = stored_resources(overhead)
    if resources := spec.get("resources"):
        new["resources"] = stored_requirements(resources)
        if not template:
            _default_pod_level(new)
    return new


def with_positive_grace(spec: Raw) -> Raw:
    """Return a pod's spec with a negative grace period replaced by 1 s (pkg/registry/core/pod/strategy.go)."""
    if (spec.get("terminationGracePeriodSeconds") or 0) >= 0:
        return spec
    return {**spec, "terminationGracePeriodSeconds": 1}


def _container(container: Raw, host_network: bool, keep_requests: bool) -> Raw:
    new = without_empty(container, type_named("Container"))
    if not new.get("imagePullPolicy"):
        new["imagePullPolicy"] = image_pull_policy(container.get("image") or "")
    if not new.get("terminationMessagePath"):
        new["terminationMessagePath"] = "/dev/termination-log"
    if not new.get("terminationMessagePolicy"):
        new["terminationMessagePolicy"] = "File"
    resources = container.get("resources")
    if resources is None:
        new["resources"] = {}
    elif resources:
        resources = stored_requirements(resources)
        limits = resources.get("limits")
        if limits and not keep_requests:
            requests = resources.get("requests") or {}
            if any(name not in requests for name in limits):
                resources = {**resources, "requests": {**limits, **requests}}
        new["resources"] = resources
    default_details(new)
    if ports := container.get("ports"):
        new["ports"] = [_port(port, host_network) for port in ports]
    return new


def stored_requirements(resources: Raw) -> Raw:
    """Return ResourceRequirements with the quantities in stored form."""
    requests = resources.get("requests")
    limits = resources.get("limits")
    if requests:
        requests = stored_resources(requests)
    if limits:
        limits = stored_resources(limits)
    if requests is resources.get("requests") and limits is resources.get("limits"):
        return resources
    new = dict(resources)
    if requests is not None:
        new["requests"] = requests
    if limits is not None:
        new["limits"] = limits
    return new


def _port(port: Raw, host_network: bool) -> Raw:
    missing: Raw = {}
    if not port.get("protocol"):
        missing["protocol"] = "TCP"
    if host_network and not port.get("hostPort") and "containerPort" in port:
        missing["hostPort"] = port["containerPort"]
    return {**port, **missing} if missing else port


# defaults of volume sources that pods and PersistentVolumes have in common
SOURCE_DEFAULTS: Final[Mapping[str, Raw]] = {
    "hostPath": {"type": ""},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_VOLUME_DEFAULTS: Final[Mapping[str, Raw]] = {
    **SOURCE_DEFAULTS,
    "secret": {"defaultMode": 420},
    "configMap": {"defaultMode": 420},
    "downwardAPI": {"defaultMode": 420},
    "projected": {"defaultMode": 420},
}


def _volume(volume: Raw) -> Raw:
    if not volume.keys() - {"name"}:
        return {**volume, "emptyDir": {}}
    for source, defaults in _VOLUME_DEFAULTS.items():
        stated = volume.get(source)
        if stated is not None:
            missing = {field: default for field, default in defaults.items() if field not in stated}
            if source == "downwardAPI" and stated.get("items"):
                missing["items"] = default_field_sources(stated["items"])
            elif source == "projected" and stated.get("sources"):
                missing["sources"] = [_projected(each) for each in stated["sources"]]
            return {**volume, source: {**stated, **missing}} if missing else volume
    if image := volume.get("image"):
        if not image.get("pullPolicy"):
            return {**volume, "image": {**image, "pullPolicy": image_pull_policy(image.get("reference") or "")}}
    ephemeral = volume.get("ephemeral")
    if ephemeral and ephemeral.get("volumeClaimTemplate"):
        template = ephemeral["volumeClaimTemplate"]
        claim = default_claim_spec(template.get("spec") or {})
        return {**volume, "ephemeral": {**ephemeral, "volumeClaimTemplate": {**template, "spec": claim}}}
    return volume


def _projected(source: Raw) -> Raw:
    downward, token = source.get("downwardAPI"), source.get("serviceAccountToken")
    if downward and downward.get("items"):
        return {**source, "downwardAPI": {**downward, "items": default_field_sources(downward["items"])}}
    if token is not None and "expirationSeconds" not in token:
        return {**source, "serviceAccountToken": {**token, "expirationSeconds": 3600}}
    return source


def default_claim_spec(spec: Raw) -> Raw:
    """Return the spec of a PersistentVolumeClaim with its defaults."""
    new = dict(spec)
    new.setdefault("volumeMode", "Filesystem")
    if resources := spec.get("resources"):
        new["resources"] = stored_requirements(resources)
    return new


def _is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def _for_pods(name: str) -> bool:
    """Return whether the resource is supported at pod level."""
    return name in ("cpu", "memory") or _is_huge_page(name)


def _default_pod_level(spec: Raw) -> None:
    """Set the defaults of pod-level requests and limits that are incomplete.

    The function modifies `spec`, which is already a copy.
    """
    resources = spec["resources"]
    limits = dict(resources.get("limits") or {})
    requests = dict(resources.get("requests") or {})
    if not limits and not requests:
        return
    if not limits and not any(map(_is_huge_page, _all_resources(spec, "limits"))):
        return
    for name, total in aggregate(spec, "limits").items():
        if _is_huge_page(name) and name not in requests and name not in limits:
            limits[name] = format_nanos(total, _style_of(spec, "limits", name))
    if limits:
        for name, total in aggregate(spec, "requests").items():
            if name not in requests and name in ("cpu", "memory"):
                requests[name] = format_nanos(total, _style_of(spec, "requests", name))
        for name, quantity in limits.items():
            if name not in requests and _for_pods(name):
                requests[name] = quantity
    new = dict(resources)
    if limits:
        new["limits"] = limits
    if requests:
        new["requests"] = requests
    spec["resources"] = new


def _each(spec: Raw) -> list[Raw]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _all_resources(spec: Raw, side: str) -> set[str]:
    return {name for container in _each(spec) for name in (container.get("resources") or {}).get(side) or ()}


def _style_of(spec: Raw, side: str, name: str) -> Any:
    """Return the format of a sum: the format of its first amount."""
    for container in _each(spec):
        quantity = ((container.get("resources") or {}).get(side) or {}).get(name)
        if quantity is not None:
            return style(quantity)
    return "DecimalSI"


def aggregate(spec: Raw, side: str) -> dict[str, int]:
    """Return a pod's total requests or limits in units of 1e-9: the maximum over its init phase and its main phase."""
    total: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("containers") or ():
        for name, quantity in ((container.get("resources") or {}).get(side) or {}).items():
            total[name] = total.get(name, 0) + nanos(quantity)
    for container in spec.get("initContainers") or ():
        requested = {n: nanos(q) for n, q in ((container.get("resources") or {}).get(side) or {}).items()}
        if container.get("restartPolicy") == "Always":
            for name, amount in requested.items():
                total[name] = total.get(name, 0) + amount
                sidecars[name] = sidecars.get(name, 0) + amount
            at_once: Mapping[str, int] = sidecars
        else:
            at_once = {name: amount + sidecars.get(name, 0) for name, amount in requested.items()}
        for name, amount in at_once.items():
            starting[name] = max(starting.get(name, 0), amount)
    for name, amount in starting.items():
        total[name] = max(total.get(name, 0), amount)
    return total


def merge_label_keys(spec: Raw, labels: Mapping[str, str]) -> Raw:
    """Return a new pod's spec with its matchLabelKeys and mismatchLabelKeys merged into the label selectors.

    Keys without a matching label on the pod are ignored. Keys that were already merged are not merged again, so that an
    object exported from one cluster can be created in another.
    """
    new = None
    if any(constraint.get("matchLabelKeys") for constraint in spec.get("topologySpreadConstraints") or ()):
        new = dict(spec)
        new["topologySpreadConstraints"] = [_merged(c, labels) for c in spec["topologySpreadConstraints"]]
    affinity = spec.get("affinity")
    for side in ("podAffinity", "podAntiAffinity"):
        terms = (affinity or {}).get(side)
        if terms:
            changed = _each_term(terms, lambda term: _merged(term, labels))
            if changed is not terms:
                new = new or dict(spec)
                new["affinity"] = {**new["affinity"], side: changed}
    return new or spec


def _each_term(terms: Raw, change: Callable[[Raw], Raw]) -> Raw:
    hard, soft = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    required = [change(term) for term in terms.get(hard) or ()]
    preferred = [
        {**weighted, "podAffinityTerm": change(weighted["podAffinityTerm"])}
        if "podAffinityTerm" in weighted
        else weighted
        for weighted in terms.get(soft) or ()
    ]
    if required == (terms.get(hard) or []) and preferred == (terms.get(soft) or []):
        return terms
    return {**terms, **({hard: required} if required else {}), **({soft: preferred} if preferred else {})}


def _merged(term: Raw, labels: Mapping[str, str]) -> Raw:
    selector = term.get("labelSelector")
    if selector is None:
        return term
    expressions = list(selector.get("matchExpressions") or ())
    before = len(expressions)
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or ():
            if key in labels:
                expression = {"key": key, "operator": operator, "values": [labels[key]]}
                if expression not in expressions:
                    expressions.append(expression)
    if len(expressions) == before:
        return term
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}
