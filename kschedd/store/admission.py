"""Admission: the API server's admission plugins for pods, each enabled or disabled by configuration.

Every plugin is a function from a defaulted pod spec to the spec that replaces it. Its only inputs are the spec, the
pod's name (for messages) and the cluster's PriorityClasses and RuntimeClasses, so the result may be cached per spec
until a class changes. NamespaceLifecycle (the namespace must exist) is enforced by the store itself.

Source: Kubernetes v1.34, plugin/pkg/admission/{priority,runtimeclass,defaulttolerationseconds,
podtolerationrestriction,extendedresourcetoleration,antiaffinity}.
Raises: Forbidden, with the upstream plugin's message.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from kschedd.api.objects import Object
from kschedd.api.qos import qos_of_spec
from kschedd.api.terms import NO_EXECUTE, NO_SCHEDULE
from kschedd.errors import KscheddError
from kschedd.store.errors import Forbidden

Raw = Mapping[str, Any]

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
HOSTNAME: Final = "kubernetes.io/hostname"
DEFAULT_TOLERATION_SECONDS: Final = 300
PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
SYSTEM_CLASSES: Final[Mapping[str, int]] = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


class Classes(Protocol):
    """The part of the store that plugins read."""

    def find(self, kind: str, namespace: str, name: str) -> Object | None: ...
    def list(self, kind: str, namespace: str | None = None) -> Sequence[Object]: ...


Plugin = Callable[[str, Raw, Classes], Raw]


def default_priority_class(classes: Classes) -> Object | None:
    """The class marked globalDefault; of several, the one with the lowest value."""
    begin_deletion = [c for c in classes.list("PriorityClass") if c.raw.get("globalDefault")]
    return min(begin_deletion, key=lambda c: (c.raw.get("value") or 0, c.name), default=None)


def priority(pod: str, spec: Raw, classes: Classes) -> Raw:
    """Set priority, class name and preemptionPolicy from the PriorityClass; a pod that states others is refused."""
    class_name = spec.get("priorityClassName") or ""
    if class_name:
        found = classes.find("PriorityClass", "", class_name)
        if found is None and class_name not in SYSTEM_CLASSES:
            raise Forbidden("Pod", pod, f"no PriorityClass with name {class_name} was found")
    else:
        found = default_priority_class(classes)
        class_name = found.name if found is not None else ""
    value = (found.raw.get("value") or 0) if found is not None else SYSTEM_CLASSES.get(class_name, 0)
    policy = (found.raw.get("preemptionPolicy") if found is not None else None) or PREEMPT_LOWER_PRIORITY
    computed = "must not be provided in pod spec; priority admission controller computed"
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) {computed} {value} from the given PriorityClass name"
        raise Forbidden("Pod", pod, why)
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        why = f"the string value of PreemptionPolicy ({given}) {computed} {policy} from the given PriorityClass name"
        raise Forbidden("Pod", pod, why)
    admitted = {**spec, "priority": value, "preemptionPolicy": policy}
    if class_name:
        admitted["priorityClassName"] = class_name
    return admitted


def runtime_class(pod: str, spec: Raw, classes: Classes) -> Raw:
    """Add the RuntimeClass' overhead, nodeSelector and tolerations; a pod may not set another overhead itself."""
    name = spec.get("runtimeClassName")
    own = spec.get("overhead")
    found = classes.find("RuntimeClass", "", name) if name else None
    if name and found is None:
        raise Forbidden("Pod", pod, f'pod rejected: RuntimeClass "{name}" not found')
    fixed = ((found.raw.get("overhead") or {}).get("podFixed") or None) if found is not None else None
    if own and not fixed:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise Forbidden("Pod", pod, why)
    if own and own != fixed:
        raise Forbidden("Pod", pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if found is None:
        return spec
    admitted = dict(spec)
    if fixed:
        admitted["overhead"] = fixed
    scheduling = found.raw.get("scheduling") or {}
    if wanted := scheduling.get("nodeSelector"):
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in wanted.items():
            if selector.get(key, value) != value:
                why = (
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
                raise Forbidden("Pod", pod, why)
            selector[key] = value
        admitted["nodeSelector"] = selector
    if more := scheduling.get("tolerations"):
        admitted["tolerations"] = merge_tolerations(spec.get("tolerations") or (), more)
    return admitted


def default_toleration_seconds(pod: str, spec: Raw, classes: Classes) -> Raw:
    """Tolerate the not-ready and unreachable NoExecute taints for 300 s, unless the pod has own tolerations."""
    tolerations = spec.get("tolerations") or ()
    added = [
        {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": DEFAULT_TOLERATION_SECONDS}
        for key in (NOT_READY, UNREACHABLE)
        if not any(t.get("key") in (key, None, "") and t.get("effect") in (NO_EXECUTE, None, "") for t in tolerations)
    ]
    return {**spec, "tolerations": [*tolerations, *added]} if added else spec


def memory_pressure_toleration(pod: str, spec: Raw, classes: Classes) -> Raw:
    """Pods that are not BestEffort tolerate the memory-pressure taint.

    Upstream does this in PodTolerationRestriction, a plugin that is off by default.
    """
    if qos_of_spec(spec) == "BestEffort":
        return spec
    added = {"key": MEMORY_PRESSURE, "operator": "Exists", "effect": NO_SCHEDULE}
    tolerations = spec.get("tolerations") or []
    merged = merge_tolerations(tolerations, [added])
    return spec if merged == tolerations else {**spec, "tolerations": merged}


def extended_resource_toleration(pod: str, spec: Raw, classes: Classes) -> Raw:
    """A pod that requests `example.com/device` tolerates the NoSchedule taint of that name."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    names = {name for c in containers for name in (c.get("resources") or {}).get("requests") or ()}
    tolerations = list(spec.get("tolerations") or ())
    for name in sorted(filter(is_extended_resource, names)):
        wanted = {"key": name, "operator": "Exists", "effect": NO_SCHEDULE}
        if wanted not in tolerations:
            tolerations.append(wanted)
    return {**spec, "tolerations": tolerations} if tolerations else spec


def limit_hard_anti_affinity(pod: str, spec: Raw, classes: Classes) -> Raw:
    """Forbid required anti-affinity by any key but the hostname: one pod could exclude others from a whole zone."""
    anti = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        key = term.get("topologyKey")
        if key != HOSTNAME:
            why = (
                f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} "
                f"but only key {HOSTNAME} is allowed"
            )
            raise Forbidden("Pod", pod, why)
    return spec


def tainted_node(node: dict[str, Any]) -> dict[str, Any]:
    """A new node with the not-ready taint, which the node lifecycle controller takes away once it is ready."""
    spec = node.get("spec") or {}
    taints = spec.get("taints") or []
    if any(taint.get("key") == NOT_READY and taint.get("effect") == NO_SCHEDULE for taint in taints):
        return node
    return {**node, "spec": {**spec, "taints": [*taints, {"key": NOT_READY, "effect": NO_SCHEDULE}]}}


def is_extended_resource(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def _superset(wide: Raw, narrow: Raw) -> bool:
    """Whether `wide` tolerates all that `narrow` does. Source: util/tolerations/tolerations.go."""
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if (wide.get("key") or "") != (narrow.get("key") or "") and not (exists and not wide.get("key")):
        return False
    if wide.get("effect") and wide.get("effect") != narrow.get("effect"):
        return False
    if wide.get("effect") == NO_EXECUTE and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if exists:
        return True
    same_value = (wide.get("value") or "") == (narrow.get("value") or "")
    return (narrow.get("operator") or "Equal") == "Equal" and same_value


def merge_tolerations(first: Sequence[Raw], second: Sequence[Raw]) -> list[Raw]:
    """Both lists in order, without tolerations that another one covers; of equal ones the first stays."""
    together = [*first, *second]
    merged: list[Raw] = []
    for place, toleration in enumerate(together):
        if any(_superset(kept, toleration) for kept in merged):
            continue
        if any(later != toleration and _superset(later, toleration) for later in together[place + 1 :]):
            continue
        merged.append(toleration)
    return merged


# In execution order: (plugin, whether it also runs on updates, whether it is enabled by default).
_CHAIN: Final[Mapping[str, tuple[Plugin, bool, bool]]] = {
    "Priority": (priority, False, True),
    "DefaultTolerationSeconds": (default_toleration_seconds, True, True),
    "MemoryPressureToleration": (memory_pressure_toleration, True, False),
    "ExtendedResourceToleration": (extended_resource_toleration, True, False),
    "RuntimeClass": (runtime_class, False, True),
    "LimitPodHardAntiAffinityTopology": (limit_hard_anti_affinity, True, False),
}
NAMESPACE_LIFECYCLE: Final = "NamespaceLifecycle"
TAINT_NODES: Final = "TaintNodesByCondition"
PLUGINS: Final[Mapping[str, bool]] = {
    NAMESPACE_LIFECYCLE: True,
    TAINT_NODES: False,  # on upstream, where a node is not ready at once
    **{name: on for name, (_, _, on) in _CHAIN.items()},
}
"""All plugins, and whether each is enabled by default."""


@attrs.define(eq=False)
class UnknownAdmissionPlugin(KscheddError):
    name: str

    def __str__(self) -> str:
        return f'admission plugin "{self.name}" does not exist; there are: {", ".join(PLUGINS)}'


class Admission:
    """The configured plugin chain, e.g. `{"RuntimeClass": False, "ExtendedResourceToleration": True}`."""

    def __init__(self, configured: Mapping[str, bool] | None = None) -> None:
        for name in configured or ():
            if name not in PLUGINS:
                raise UnknownAdmissionPlugin(name)
        self.enabled: Mapping[str, bool] = {**PLUGINS, **(configured or {})}
        chain = [entry for name, entry in _CHAIN.items() if self.enabled[name]]
        self._on_create = [plugin for plugin, _, _ in chain]
        self._on_update = [plugin for plugin, on_update, _ in chain if on_update]

    def create_pod(self, name: str, spec: Raw, classes: Classes) -> Raw:
        """The spec as admitted; raises Forbidden."""
        for plugin in self._on_create:
            spec = plugin(name, spec, classes)
        return spec

    def update_pod(self, name: str, spec: Raw, classes: Classes) -> Raw:
        for plugin in self._on_update:
            spec = plugin(name, spec, classes)
        return spec

    def create_object(self, kind: str, raw: dict[str, Any]) -> dict[str, Any]:
        """A new object of a kind other than Pod, as the mutating plugins leave it."""
        if kind == "Node" and self.enabled[TAINT_NODES]:
            return tainted_node(raw)
        return raw

    def check(self, kind: str, raw: Raw, name: str, classes: Classes) -> None:
        """Admission of kinds other than Pod: at most one PriorityClass is the global default. Raises Forbidden."""
        if kind == "PriorityClass" and raw.get("globalDefault") and self.enabled["Priority"]:
            present = default_priority_class(classes)
            if present is not None and present.name != name:
                why = f"PriorityClass {present.name} is already marked as default. Only one default can exist"
                raise Forbidden("PriorityClass", name, why)
