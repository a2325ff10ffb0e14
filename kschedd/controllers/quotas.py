"""ResourceQuotas: copies the spec to status.hard, and the namespace's usage to status.used.

Admission adds new objects and increased amounts to the usage. The quota controller adds existing objects to the usage
when a quota is new or its spec changes, and objects that later begin to match the quota's scopes. The controller
subtracts objects that are deleted or no longer match the scopes, and decreased amounts. The controller lists a
namespace's objects once for each change of a quota's spec, and when pods are not deleted in time. Processing the
deletion of an object takes the same time for any number of objects.

For each quota, the controller stores the counted spec and the cluster version of the count, because objects deleted
before this version were not counted. The controller also stores the pods that were not counted, and the times from
which terminating pods are no longer counted. Source: Kubernetes v1.34, pkg/controller/resourcequota,
pkg/quota/v1/evaluator/core/pods.go (QuotaV1Pod). kube-controller-manager notices a pod that is not deleted in time at
its next recount, at most five minutes later.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.quantity import format_nanos, nanos, style
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.admission_plugins.quantities import ResourceList, add
from kschedd.store.admission_plugins.quota_usage import charged_until, in_scope, matching, usage
from kschedd.store.admission_plugins.resourcequota import QUOTA
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import ADDED, DELETED, WatchEvent
from kschedd.store.writes import Patch, Write, patch_of

_ENDED: Final = ("Succeeded", "Failed")
_SHRINK: Final = frozenset(("Service", "PersistentVolumeClaim", "ResourceClaim"))
_POD_FIELDS: Final = ("containers", "initContainers", "resources", "activeDeadlineSeconds")
"""Mutable spec fields of a pod that its usage and scopes depend on."""


@attrs.frozen
class _LastCount:
    """The quota's spec and the counted objects at the last recount."""

    uid: str
    spec: Mapping[str, Any]
    version: int  # cluster version
    overdue: frozenset[str]  # uids of overdue pods, of which only the number was counted


class Quotas:
    name: Final = "resourcequota"
    kinds: Final[frozenset[str] | None] = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)
        self._counted: dict[str, dict[str, _LastCount]] = {}  # by namespace and name
        # by pod: time from which its resources are no longer counted
        self._charged_until: Timers[tuple[str, str]] = Timers()

    @property
    def next_deadline(self) -> float | None:
        return self._charged_until.next

    def concerns(self, event: WatchEvent) -> bool:
        new = event.new
        if new.kind == QUOTA:
            return True
        return (
            event.type != ADDED
            and new.namespace in self._counted
            and (event.type == DELETED or _counts_otherwise(event) or _begins_to_end(event))
        )

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[tuple[str, str], list[WatchEvent]] = {}
        for event in events:
            new = event.new
            if new.kind == QUOTA:
                if event.type == DELETED:
                    self._forget(new)
                else:
                    changed.setdefault((new.namespace, new.name), [])
            if new.kind == QUOTA and event.type != DELETED:
                continue
            if new.kind == "Pod":
                if event.type == DELETED:
                    self._charged_until.clear((new.namespace, new.name))
                elif new.namespace in self._counted:
                    self._is_overdue(new, now)
            if event.type == DELETED or _counts_otherwise(event):
                for name in self._counted.get(new.namespace, ()):
                    changed.setdefault((new.namespace, name), []).append(event)
        for namespace, _ in self._charged_until.due(now):
            quotas = self._counted.get(namespace, {})
            changed |= {(namespace, name): [] for name in quotas}
            quotas.clear()
        writes: list[Write] = []
        for key, released in changed.items():
            writes += self.faults.each(QUOTA, [key], partial(self._sync, view, released), now)
        return writes

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Recount the quota, because another client has written the quota meanwhile."""
        if not isinstance(write, Patch) or view.find(QUOTA, write.namespace, write.name) is None:
            return []
        self._counted.get(write.namespace, {}).pop(write.name, None)
        return self.faults.each(QUOTA, [(write.namespace, write.name)], partial(self._sync, view, []), now)

    def _is_overdue(self, pod: Object, now: float) -> bool:
        """Return whether a pod is terminating and its grace period has long passed.

        Set a timer for a terminating pod whose grace period has not passed.
        """
        until = charged_until(pod.raw)
        if now < until < math.inf:
            self._charged_until.set((pod.namespace, pod.name), until)
        return until <= now

    def _forget(self, quota: Object) -> None:
        names = self._counted.get(quota.namespace, {})
        names.pop(quota.name, None)
        if not names:
            self._counted.pop(quota.namespace, None)

    def _sync(self, view: View, changes: Sequence[WatchEvent], namespace: str, name: str, now: float) -> list[Write]:
        quota = view.find(QUOTA, namespace, name)
        if quota is None:
            return []
        hard = quota.spec.get("hard") or {}
        there = self._counted.get(namespace, {}).get(name)
        if there is None or there.uid != quota.uid or there.spec != quota.spec:
            used, overdue = self._counted_anew(quota, view, now)
            last = _LastCount(quota.uid, quota.spec, view.version, overdue)
            self._counted.setdefault(namespace, {})[name] = last
        else:
            used = dict(quota.status.get("used") or {})
            for event in changes:
                if event.version > there.version:
                    _apply(used, event, quota, overdue=event.new.uid in there.overdue)
        status = {"hard": hard, "used": used}
        if quota.status == status:
            return []
        gone = {field: dict.fromkeys((quota.status.get(field) or {}).keys() - status[field].keys()) for field in status}
        patch = {"status": {field: {**gone[field], **status[field]} for field in status}}
        return [patch_of(quota, patch, "status", exactly=True)]

    def _counted_anew(self, quota: Object, view: View, now: float) -> tuple[ResourceList, frozenset[str]]:
        """Return the usage after a recount, and the uids of overdue pods."""
        used: ResourceList = dict.fromkeys(quota.spec.get("hard") or {}, "0")
        overdue: set[str] = set()
        for obj in view.in_namespace(quota.namespace):
            if obj.kind == "Pod" and self._is_overdue(obj, now):
                overdue.add(obj.uid)
            if in_scope(obj.kind, obj.raw, quota.spec):
                add(used, _usage(obj, quota, overdue=obj.uid in overdue))
        return used, frozenset(overdue)


def _counts_otherwise(event: WatchEvent) -> bool:
    """Return whether the usage of an object, or the scopes it matches, may have changed."""
    old, new = event.old, event.new
    if old is None:
        return False
    if new.kind == "Pod":
        ended = new.status.get("phase") in _ENDED and old.status.get("phase") not in _ENDED
        return ended or any(new.spec.get(field) != old.spec.get(field) for field in _POD_FIELDS)
    return new.kind in _SHRINK and new.spec != old.spec


def _begins_to_end(event: WatchEvent) -> bool:
    old, new = event.old, event.new
    return new.kind == "Pod" and old is not None and charged_until(new.raw) != charged_until(old.raw)


def _usage(obj: Object, quota: Object, *, overdue: bool) -> ResourceList:
    """Return the usage of the object under this quota, ignoring scopes."""
    if not (names := matching(obj.kind, quota.spec.get("hard") or {})):
        return {}
    return {name: quantity for name, quantity in usage(obj.kind, obj.raw, overdue=overdue).items() if name in names}


def _apply(used: ResourceList, event: WatchEvent, quota: Object, *, overdue: bool) -> None:
    """Add the change in usage caused by an event, without the increases that admission has already charged."""
    new = event.new
    old = new if event.old is None or event.type == DELETED else event.old
    was_in = in_scope(old.kind, old.raw, quota.spec)
    is_in = event.type != DELETED and in_scope(new.kind, new.raw, quota.spec)
    before, after = _usage(old, quota, overdue=overdue), _usage(new, quota, overdue=overdue)
    for name in used.keys() & before.keys():
        had = nanos(before[name])
        change = min(had, nanos(after.get(name, 0))) * is_in - had * was_in
        if change:
            notation = style(used[name]) if nanos(used[name]) else style(before[name])
            used[name] = format_nanos(max(0, nanos(used[name]) + change), notation)
