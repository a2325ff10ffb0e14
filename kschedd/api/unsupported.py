"""Warnings for the submitting client about features that kschedd accepts and stores without effect.

A command warns once per feature and lists the objects; `grouped` builds the sentences.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.kinds import group_of, kind_of
from kschedd.api.simulation.annotations import annotation_faults, pod_settings

Raw = Mapping[str, Any]

_NAMED: Final = 5  # maximum number of objects listed in a sentence; further objects are only counted

# kinds whose expected behavior kschedd does not implement
_KINDS: Final[Mapping[str, str]] = {
    "HorizontalPodAutoscaler": (
        "scales by the annotations kschedd.io/cpu-usage and kschedd.io/memory-usage of its pods; pods without them are "
        "idle"
    ),
    "APIService": "stored, but requests for its API are not forwarded",
    "CertificateSigningRequest": "stored, but it is not signed",
    "FlowSchema": "stored, but it does not limit requests",
    "Ingress": "stored, but it routes no requests and gets no address",
    "NetworkPolicy": "stored, but simulated pods have no traffic that it could restrict",
    "PriorityLevelConfiguration": "stored, but it does not limit requests",
    "ServiceCIDR": "stored, but the addresses of Services come only from --service-cluster-ip-range",
}

_SCHEDULED_BY: Final = (("PodGroup", "scheduling.k8s.io"), ("DeviceTaintRule", "resource.k8s.io"))
"""Kinds, with their groups, that only some versions have and that the scheduler uses."""

_USED_BY_CLUSTER: Final = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "SimulatedBehavior")
"""Kinds that only some versions have and that the creation of objects uses."""

_WITH_TEMPLATE: Final = frozenset(
    ("ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")
)


@attrs.frozen(order=True)
class Unsupported:
    """A field or feature without effect in kschedd that an object uses."""

    kind: str
    namespace: str
    name: str
    why: str


def unsupported(raw: Raw, *, jobs_finish: bool = False) -> list[Unsupported]:
    """Return the features of a stored object that have no effect. `jobs_finish`: pods of Jobs end by themselves."""
    kind = kind_of(raw)
    found = [*_never_completing(kind.name, raw, jobs_finish), *ignored(raw)]
    if not kind.known and not is_scheduled_by(raw) and kind.name not in _USED_BY_CLUSTER:
        found.append(_of(raw, kind.name, "stored, but no controller acts on it"))
    return found


def ignored(raw: Raw) -> list[Unsupported]:
    """Return the features that never have an effect, regardless of other clients of the daemon.

    A client of the REST API may be the controller of a custom resource.
    """
    kind = kind_of(raw).name
    found = [_KINDS[kind]] if kind in _KINDS else []
    found += _details(kind, raw)
    return [_of(raw, kind, why) for why in found]


def _of(raw: Raw, kind: str, why: str) -> Unsupported:
    meta = raw.get("metadata") or {}
    return Unsupported(kind, meta.get("namespace") or "", meta.get("name") or "", why)


def is_scheduled_by(raw: Raw) -> bool:
    """Return whether the scheduler reads the object, although its kind is not built in."""
    return (raw.get("kind"), group_of(str(raw.get("apiVersion")))) in _SCHEDULED_BY


def newly_unsupported(old: Raw, new: Raw, *, jobs_finish: bool = False) -> list[Unsupported]:
    """Return the unsupported features that an update adds."""
    before = unsupported(old, jobs_finish=jobs_finish)
    return [each for each in unsupported(new, jobs_finish=jobs_finish) if each not in before]


def _details(kind: str, raw: Raw) -> list[str]:
    spec = raw.get("spec")
    if kind == "Node":
        return annotation_faults(kind, _annotations(raw))
    if kind == "CSIStorageCapacity" and raw.get("maximumVolumeSize") and not raw.get("capacity"):
        return ["maximumVolumeSize without capacity crashes kube-scheduler 1.37.0 to 1.37.2; kschedd reads capacity 0"]
    if not isinstance(spec, Mapping):
        return []
    if kind == "Pod":
        return annotation_faults(kind, _annotations(raw), _containers(spec))
    if kind == "Service" and spec.get("type") == "LoadBalancer":
        return ["no load balancer is created, so its external address stays pending"]
    found = []
    if kind == "CustomResourceDefinition" and (spec.get("conversion") or {}).get("strategy") == "Webhook":
        found.append("its webhook is not called: objects have the same fields in every version")
    if kind == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    template = spec.get("template")
    if kind not in _WITH_TEMPLATE or not isinstance(template, Mapping):
        return found
    return found + annotation_faults("Pod", _annotations(template), _containers(template.get("spec") or {}))


def _never_completing(kind: str, raw: Raw, jobs_finish: bool) -> list[Unsupported]:
    spec = raw.get("spec")
    if kind == "CronJob" and isinstance(spec, Mapping):
        spec = (spec.get("jobTemplate") or {}).get("spec")
    if kind not in ("Job", "CronJob") or not isinstance(spec, Mapping):
        return []
    return [_of(raw, kind, why) for why in _never_completes(spec, jobs_finish)]


def _never_completes(spec: Raw, jobs_finish: bool) -> list[str]:
    """Return why a Job can never complete without a change; empty if it can."""
    if spec.get("parallelism") == 0:
        return ["parallelism is 0: it creates no pods and cannot complete until that is changed"]
    if jobs_finish:
        return []
    template = spec.get("template") or {}
    settings = pod_settings(_annotations(template))
    containers = (template.get("spec") or {}).get("containers") or ()
    if all(settings.of("run-seconds", each.get("name") or "") is not None for each in containers):
        return []
    return [
        "its pods run forever, so it never completes: simulated containers end only if the pod template has the "
        "annotation kschedd.io/run-seconds (and kschedd.io/exit-code), or with `kschedd run --pod-behavior "
        "finish-jobs=5s`"
    ]


def _annotations(raw: Raw) -> Mapping[str, str]:
    return (raw.get("metadata") or {}).get("annotations") or {}


def _containers(spec: Raw) -> list[str]:
    return [each.get("name") or "" for part in ("initContainers", "containers") for each in spec.get(part) or ()]


def grouped(found: Iterable[Unsupported]) -> list[str]:
    """Return a sentence for each kind and reason, with the objects."""
    together: dict[tuple[str, str], list[str]] = {}
    for each in found:
        names = together.setdefault((each.kind, each.why), [])
        name = f"{each.namespace}/{each.name}" if each.namespace not in ("", "default") else each.name
        if name not in names:
            names.append(name)
    return [f"{kind} {_listed(names)}: {why}" for (kind, why), names in together.items()]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
