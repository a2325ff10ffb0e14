"""The default selector of a pod without spread constraints: the selectors of its Services and its controller.

PodTopologySpread uses this selector for default constraints. Results are cached until a Service, ReplicationController,
ReplicaSet or StatefulSet changes. Source: Kubernetes v1.34, plugins/helper/spread.go (DefaultSelector). Errors: none. A
controller that does not exist, or whose selector cannot be parsed, is ignored.
"""

from collections.abc import Mapping

import attrs

from kschedd.api.objects import OwnerReference
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import EVERYTHING, LabelSelector, SelectorError, from_map, parse_label_selector
from kschedd.cache.scheduler_cache import SchedulerCache

_CONTROLLERS = {
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
}
_REMEMBERED = 1024

_Owner = tuple[str, str] | None  # kind and name


@attrs.define(eq=False)
class DefaultSelectors:
    """The default selectors of one cluster's pods."""

    _cluster: SchedulerCache
    _stamp: int = 0
    _services: dict[str, list[tuple[LabelSelector, Mapping[str, str]]]] = attrs.field(factory=dict)
    _known: dict[tuple[int, _Owner], LabelSelector] = attrs.field(factory=dict)

    def of(self, pod: Pod) -> LabelSelector:
        """Return the combined selector of the pod's Services and controller; empty if there are none."""
        self._refresh()
        owner = _owner(pod)
        if owner is None and pod.namespace not in self._services:
            return EVERYTHING
        key = (pod.signature.id, owner)
        selector = self._known.get(key)
        if selector is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            selector = self._known[key] = self._worked_out(pod, owner)
        return selector

    def _refresh(self) -> None:
        versions, stamp = self._cluster.versions, self._stamp
        if stamp >= versions.latest("Service", "ReplicationController", "ReplicaSet", "StatefulSet"):
            return
        self._stamp = versions.now
        self._known.clear()
        if versions.changed(stamp, "Service"):
            self._services.clear()
            for service in self._cluster.of_kind("Service").values():
                labels = service.spec.get("selector")
                if labels:  # a Service without a selector selects no pods
                    self._services.setdefault(service.namespace, []).append((from_map(labels), labels))

    def _worked_out(self, pod: Pod, owner: _Owner) -> LabelSelector:
        merged: dict[str, str] = {}
        for selects, labels in self._services.get(pod.namespace, ()):
            if selects.matches(pod.labels):
                merged.update(labels)
        controller = None
        if owner is not None:
            controller = self._cluster.get(owner[0], f"{pod.namespace}/{owner[1]}")
        if controller is None:
            return from_map(merged)
        selects_raw = controller.spec.get("selector")
        if controller.kind == "ReplicationController":
            return from_map({**merged, **(selects_raw or {})})
        try:
            selector = parse_label_selector(selects_raw)
        except SelectorError:
            return from_map(merged)
        return from_map(merged).adding(selector)


def _owner(pod: Pod) -> _Owner:
    if not pod.metadata.get("ownerReferences"):
        return None
    owner: OwnerReference | None = pod.owner
    if owner is None or (owner.api_version, owner.kind) not in _CONTROLLERS:
        return None
    return owner.kind, owner.name
