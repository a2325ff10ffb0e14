"""Warnings that kube-apiserver returns for an accepted object.

`creation_warnings` and `update_warnings` examine the stored form of the object. Warnings about unknown fields are in
`kschedd.store.field_validation`.
Source: Kubernetes v1.34, WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go, pkg/api/*/warnings.go,
apimachinery/pkg/util/validation/ip.go.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSpec
from kschedd.api.selecting.names import dns_label
from kschedd.registry.storage.validation import MOUNT_OPTIONS
from kschedd.registry.warnings.addresses import address_warnings, range_warnings
from kschedd.registry.warnings.pods import (
    REMOVED_VOLUMES,
    claim_spec_warnings,
    is_warned_of,
    node_label_warning,
    pod_warnings,
    term_warnings,
)

Raw = Mapping[str, Any]

_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_CLASS_WARNING: Final = (
    f'metadata.annotations[{_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
)
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_RECOMMENDED: Final = "which can result in surprising behavior; a DNS label is recommended"
_MANY_INDEXES: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)
_TOKENS_SEEN: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)
_IN_POD_NAMES: Final = frozenset(("Deployment", "ReplicaSet", "ReplicationController", "Job", "CronJob"))


def creation_warnings(obj: Object, features: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the warnings about a created object."""
    if isinstance(obj, Pod):
        return _of_pod(obj)
    if obj.kind == "CSIDriver" and "fields_of_1_35" in features:
        return _of_tokens(obj.spec)
    look = _new_stateful_set if obj.kind == "StatefulSet" else _BY_KIND.get(obj.kind)
    named = _name(obj.name) if obj.kind in _IN_POD_NAMES else ()
    return _once((*named, *(look(obj.raw) if look else ())))


def update_warnings(old: Object, new: Object, features: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the warnings about an updated object; its pod template causes warnings only if the spec has changed."""
    if new.kind == "CSIDriver" and "fields_of_1_35" in features:
        same = (old.spec.get("tokenRequests") or []) == (new.spec.get("tokenRequests") or [])
        return () if same else _of_tokens(new.spec)
    look = _BY_KIND.get(new.kind)
    if look is None:
        return ()
    before, after = old.metadata.get("generation"), new.metadata.get("generation")
    warned = () if new.kind in _OF_TEMPLATES and before == after else look(new.raw)
    if new.kind == "StatefulSet":
        return _once((*warned, *_of_claims(new.raw, "].Spec"), *_of_revisions(new.raw)))
    return _once(tuple(warned))


def _of_tokens(spec: Raw) -> tuple[str, ...]:
    unset = spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None
    return (_TOKENS_SEEN,) if unset else ()


def _once(texts: Iterator[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _of_pod(pod: Pod) -> tuple[str, ...]:
    noted = {key: text for key, text in pod.annotations.items() if is_warned_of(key)}
    wrong = dns_label(pod.name)
    if not wrong and not noted:  # the annotation of an applied pod contains its whole manifest
        return _of_spec(pod.pod_spec)
    begin = "metadata.name: this is used in the Pod's hostname"
    named = (f"{begin}, {_RECOMMENDED}: [{' '.join(wrong)}]",) if wrong else ()
    return _once((*named, *pod_warnings(pod.spec, noted)))


@lru_cache(64)  # small, because each entry keeps its spec in memory
def _of_spec(spec: PodSpec) -> tuple[str, ...]:
    """Return the warnings about a spec from a cache; pods with equal specs share one `PodSpec`."""
    return _once(pod_warnings(spec.raw, {}))


def _name(name: str) -> tuple[str, ...]:
    wrong = dns_label(name)
    begin = "metadata.name: this is used in Pod names and hostnames"
    return (f"{begin}, {_RECOMMENDED}: [{' '.join(wrong)}]",) if wrong else ()


def _template(template: Raw, path: str) -> Iterator[str]:
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return pod_warnings(template.get("spec") or {}, annotations, path)


def _workload(raw: Raw) -> Iterator[str]:
    yield from _template((raw.get("spec") or {}).get("template") or {}, "spec.template")


def _new_stateful_set(raw: Raw) -> Iterator[str]:
    yield from _workload(raw)
    yield from _of_claims(raw, "]")
    yield from _of_revisions(raw)


def _of_claims(raw: Raw, end: str) -> Iterator[str]:
    """Yield the warnings of a StatefulSet's claim templates.

    `end` is the last part of the paths in the warnings, which differs between creations and updates.
    """
    for index, claim in enumerate((raw.get("spec") or {}).get("volumeClaimTemplates") or ()):
        yield from claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}{end}")


def _of_revisions(raw: Raw) -> Iterator[str]:
    if ((raw.get("spec") or {}).get("revisionHistoryLimit") or 0) < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


def _job_spec(spec: Raw, path: str) -> Iterator[str]:
    if (
        spec.get("completionMode") == "Indexed"
        and (spec.get("completions") or 0) > 100_000
        and (spec.get("parallelism") or 0) > 10_000
    ):
        yield f"{path}: {_MANY_INDEXES}"
    yield from _template(spec.get("template") or {}, f"{path}.template")


def _job(raw: Raw) -> Iterator[str]:
    return _job_spec(raw.get("spec") or {}, "spec")


def _cron_job(raw: Raw) -> Iterator[str]:
    spec = raw.get("spec") or {}
    yield from _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    if "TZ" in (spec.get("schedule") or ""):
        yield (
            "CRON_TZ or TZ used in spec.spec.schedule is not officially supported, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


def _pod_template(raw: Raw) -> Iterator[str]:
    return _template(raw.get("template") or {}, "template")


def _node(raw: Raw) -> Iterator[str]:
    spec = raw.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is deprecated in v1.22 and removed in v1.26"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, text in enumerate(spec.get("podCIDRs") or ()):
        yield from range_warnings(text, f"spec.podCIDRs[{index}]")


def _volume(raw: Raw) -> Iterator[str]:
    spec, annotations = raw.get("spec") or {}, raw["metadata"].get("annotations") or {}
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    if _CLASS in annotations:
        yield _CLASS_WARNING
    if MOUNT_OPTIONS in annotations:
        yield f'metadata.annotations[{MOUNT_OPTIONS}]: deprecated since v1.31; use "mountOptions" attribute instead'
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    for name, why in REMOVED_VOLUMES.items():
        if name in spec and why:
            yield f"spec.{'storageOS' if name == 'storageos' else name}: {why}"


def _claim(raw: Raw) -> Iterator[str]:
    if _CLASS in (raw["metadata"].get("annotations") or {}):
        yield _CLASS_WARNING
    yield from claim_spec_warnings(raw.get("spec") or {}, "spec")


def _storage_class(raw: Raw) -> Iterator[str]:
    for index, term in enumerate(raw.get("allowedTopologies") or ()):
        for place, expression in enumerate(term.get("matchLabelExpressions") or ()):
            if why := node_label_warning(expression.get("key")):
                yield f"allowedTopologies[{index}].matchLabelExpressions[{place}].key: {why}"


def _storage_capacity(raw: Raw) -> Iterator[str]:
    return term_warnings(raw.get("nodeTopology") or {}, "nodeTopology")


def _runtime_class(raw: Raw) -> Iterator[str]:
    for key in (raw.get("scheduling") or {}).get("nodeSelector") or ():
        if why := node_label_warning(key):
            yield f"scheduling.nodeSelector: {why}"


def _service(raw: Raw) -> Iterator[str]:
    spec = raw.get("spec") or {}
    kind, external = spec.get("type"), spec.get("externalIPs") or ()
    if _HINTS in (raw["metadata"].get("annotations") or {}):
        yield f"annotation {_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if spec.get("clusterIP") not in (None, "", "None"):
        for index, text in enumerate(spec.get("clusterIPs") or ()):
            yield from address_warnings(text, f"spec.clusterIPs[{index}]")
    if headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, text in enumerate(external):
        yield from address_warnings(text, f"spec.externalIPs[{index}]")
    if spec.get("loadBalancerIP"):
        yield from address_warnings(spec["loadBalancerIP"], "spec.loadBalancerIP")
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from range_warnings(text.strip(), f"spec.loadBalancerSourceRanges[{index}]")
    if kind == "ExternalName" and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'


_BY_KIND: Final[Mapping[str, Callable[[Raw], Iterator[str]]]] = {
    "Deployment": _workload,
    "ReplicaSet": _workload,
    "DaemonSet": _workload,
    "ReplicationController": _workload,
    "StatefulSet": _workload,
    "Job": _job,
    "CronJob": _cron_job,
    "PodTemplate": _pod_template,
    "Node": _node,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass": _storage_class,
    "CSIStorageCapacity": _storage_capacity,
    "RuntimeClass": _runtime_class,
    "Service": _service,
}
_OF_TEMPLATES: Final = frozenset(
    ("Deployment", "ReplicaSet", "DaemonSet", "ReplicationController", "StatefulSet", "Job", "CronJob")
)
