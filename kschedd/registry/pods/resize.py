"""Validation of a pod's resize: only its containers' requests and limits of cpu and memory may change.

Source: Kubernetes v1.34, ValidatePodResize in pkg/apis/core/validation/validation.go.
The functions require pods that have their defaults.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.qos import qos_of_spec
from kschedd.api.schemas.fields import WHOLE, FieldError, forbidden, invalid
from kschedd.api.schemas.schema import type_named
from kschedd.registry.pods.annotations import MIRROR
from kschedd.registry.same import same

Raw = Mapping[str, Any]
Faults = list[FieldError]

POD_LEVEL: Final = "pod_level_resize"  # feature that allows resizing of pods with pod-level resources
_RESIZED: Final = ("cpu", "memory")
_LISTS: Final = ("requests", "limits")
_NOTHING: Final[Raw] = {}


def refuse_resize(old: Raw, new: Raw, features: frozenset[str]) -> Faults:
    """Return the reason why a pod cannot be resized at all, which upstream reports alone."""
    why = ""
    if POD_LEVEL not in features and (_states_resources(old["spec"]) or _states_resources(new["spec"])):
        why = "pods with pod-level resources cannot be resized"
    elif MIRROR in (old["metadata"].get("annotations") or _NOTHING):
        why = "static pods cannot be resized"
    elif (old["spec"].get("os") or _NOTHING).get("name") == "windows":
        why = "windows pods cannot be resized"
    return [forbidden(WHOLE, why)] if why else []


def validate_pod_resize(old: Raw, new: Raw) -> Faults:
    """Return the errors of a resize. `old` is the current pod, with its status."""
    before, after = old["spec"], new["spec"]
    faults: Faults = []
    qos = (old.get("status") or _NOTHING).get("qosClass") or qos_of_spec(before)
    if qos != qos_of_spec(after):
        faults.append(invalid("spec", qos, "Pod QOS Class may not change as a result of resizing"))
    if not _can_be_resized(old.get("status") or _NOTHING):
        faults.append(forbidden("spec", "Pod running on node without support for resize"))
    if reordered := [*_reordered("containers", before, after), *_reordered("initContainers", before, after)]:
        return faults + reordered
    for field in ("initContainers", "containers"):
        for path, then, now in _pairs(field, before, after):
            if field == "containers" or _is_sidecar(then):
                faults += _removed(f"{path}.resources", then, now)
    for field in ("containers", "initContainers"):
        for _, then, now in _pairs(field, before, after):
            faults += _changed(field, then, now)
    return faults


def _states_resources(spec: Raw) -> bool:
    return any((spec.get("resources") or _NOTHING).get(part) for part in _LISTS)


def _is_sidecar(container: Raw) -> bool:
    return container.get("restartPolicy") == "Always"


def _can_be_resized(status: Raw) -> bool:
    """Return whether the kubelet supports resizing: it must report the resources of the first running container.

    A pod without a running container can be resized.
    """
    for container in status.get("containerStatuses") or ():
        if (container.get("state") or _NOTHING).get("running") is not None:
            return container.get("resources") is not None
    return True


def _reordered(field: str, before: Raw, after: Raw) -> Faults:
    then, now = before.get(field) or (), after.get(field) or ()
    if len(then) != len(now):
        return [forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")]
    why = f"{field} may not be renamed or reordered on resize"
    return [
        forbidden(f"spec.{field}[{index}].name", why)
        for index, (one, other) in enumerate(zip(then, now, strict=True))
        if one.get("name") != other.get("name")
    ]


def _pairs(field: str, before: Raw, after: Raw) -> list[tuple[str, Raw, Raw]]:
    """Return, for each container of the field, its path and the container before and after the change."""
    pairs = zip(before.get(field) or (), after.get(field) or (), strict=True)
    return [(f"spec.{field}[{index}]", then, now) for index, (then, now) in enumerate(pairs)]


def _amounts(container: Raw, part: str) -> Raw:
    return (container.get("resources") or _NOTHING).get(part) or _NOTHING


def _removed(path: str, then: Raw, now: Raw) -> Faults:
    return [
        forbidden(f"{path}.{part}", f"resource {part} cannot be removed")
        for part in _LISTS
        if not _amounts(then, part).keys() <= _amounts(now, part).keys()
    ]


def _changed(field: str, then: Raw, now: Raw) -> Faults:
    """Return errors for changes other than cpu and memory, and for changes to init containers that are not sidecars."""
    if field == "containers":
        why = "only cpu and memory resources are mutable"
    elif _is_sidecar(now):
        why = "only cpu and memory resources for sidecar containers are mutable"
    elif same(now, then, type_named("Container")):
        return []
    else:
        return [forbidden("spec", "resources for non-sidecar init containers are immutable")]
    kept = {part: _with_cpu_and_memory_of(_amounts(then, part), _amounts(now, part)) for part in _LISTS}
    return [] if same({**now, "resources": kept}, then, type_named("Container")) else [forbidden("spec", why)]


def _with_cpu_and_memory_of(then: Raw, now: Raw) -> Raw:
    """Return the new amounts with the old cpu and memory.

    If there were no old amounts, any new amounts are allowed, as in kube-apiserver.
    """
    if not then:
        return then
    others = {name: amount for name, amount in now.items() if name not in _RESIZED}
    return {**others, **{name: then[name] for name in _RESIZED if name in then}}
