"""ResourceQuotas: status.hard follows the spec, and status.used what there is in the namespace.

Admission counts what is created; here is counted what is there when a quota is new or its spec changes, and taken off
again what goes, or asks for less. A namespace is looked through once for each change of a quota's spec; the end of an
object costs the same however many there are.

Owns the quotas it has counted for, with the spec and the version of the cluster it counted at: what ended before that
was not counted. Ends: never by itself.
Source: Kubernetes v1.34, pkg/controller/resourcequota.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.quantity import format_nanos, nanos, style
from kschedd.controllers.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.admission_plugins.quantities import ResourceList, add
from kschedd.store.admission_plugins.quota_usage import in_scope, matching, usage
from kschedd.store.admission_plugins.resourcequota import QUOTA
from kschedd.store.errors import ApiError
from kschedd.store.log import ADDED, DELETED, WatchEvent
from kschedd.store.writes import Patch, Write, patch_of

_ENDED: Final = ("Succeeded", "Failed")
_SHRINK: Final = frozenset(("Service", "PersistentVolumeClaim", "ResourceClaim"))


@attrs.frozen
class _LastCount:
    """What a quota was last counted for."""

    uid: str
    spec: Mapping[str, Any]
    version: int  # of the cluster


class Quotas:
    name: Final = "resourcequota"
    kinds: Final[frozenset[str] | None] = None
    next_deadline: Final[float | None] = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)
        self._counted: dict[str, dict[str, _LastCount]] = {}  # by namespace and name

    def concerns(self, event: WatchEvent) -> bool:
        new = event.new
        if new.kind == QUOTA:
            return True
        return event.type != ADDED and new.namespace in self._counted and (event.type == DELETED or _asks_less(event))

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
            if event.type != ADDED and (event.type == DELETED or _asks_less(event)):
                for name in self._counted.get(new.namespace, ()):
                    changed.setdefault((new.namespace, name), []).append(event)
        writes: list[Write] = []
        for key, released in changed.items():
            writes += self.faults.each(QUOTA, [key], partial(self._sync, view, released), now)
        return writes

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Somebody else has written the quota meanwhile: count anew."""
        if not isinstance(write, Patch) or view.find(QUOTA, write.namespace, write.name) is None:
            return []
        self._counted.get(write.namespace, {}).pop(write.name, None)
        return self.faults.each(QUOTA, [(write.namespace, write.name)], partial(self._sync, view, []), now)

    def _forget(self, quota: Object) -> None:
        names = self._counted.get(quota.namespace, {})
        names.pop(quota.name, None)
        if not names:
            self._counted.pop(quota.namespace, None)

    def _sync(self, view: View, released: Sequence[WatchEvent], namespace: str, name: str, now: float) -> list[Write]:
        quota = view.find(QUOTA, namespace, name)
        if quota is None:
            return []
        hard = quota.spec.get("hard") or {}
        there = self._counted.get(namespace, {}).get(name)
        if there is None or there.uid != quota.uid or there.spec != quota.spec:
            self._counted.setdefault(namespace, {})[name] = _LastCount(quota.uid, quota.spec, view.version)
            status = {"hard": hard, "used": _counted_anew(quota, view)}
        else:
            used = dict(quota.status.get("used") or {})
            for event in released:
                if event.version > there.version:
                    _take_off(used, _released(event, quota))
            status = {"hard": hard, "used": used}
        if quota.status == status:
            return []
        gone = {field: dict.fromkeys((quota.status.get(field) or {}).keys() - status[field].keys()) for field in status}
        patch = {"status": {field: {**gone[field], **status[field]} for field in status}}
        return [patch_of(quota, patch, "status", exactly=True)]


def _asks_less(event: WatchEvent) -> bool:
    """Whether an object may count less than before."""
    old, new = event.old, event.new
    if old is None:
        return False
    if new.kind == "Pod":
        return new.status.get("phase") in _ENDED and old.status.get("phase") not in _ENDED
    return new.kind in _SHRINK and new.spec != old.spec


def _usage(obj: Object | None, quota: Object) -> ResourceList:
    """What the object counts against this quota."""
    hard = quota.spec.get("hard") or {}
    if obj is None or not (names := matching(obj.kind, hard)) or not in_scope(obj.kind, obj.raw, quota.spec):
        return {}
    return {name: quantity for name, quantity in usage(obj.kind, obj.raw).items() if name in names}


def _counted_anew(quota: Object, view: View) -> ResourceList:
    used: ResourceList = dict.fromkeys(quota.spec.get("hard") or {}, "0")
    for obj in view.in_namespace(quota.namespace):
        add(used, _usage(obj, quota))
    return used


def _released(event: WatchEvent, quota: Object) -> ResourceList:
    before = _usage(event.new if event.type == DELETED else event.old, quota)
    after = {} if event.type == DELETED else _usage(event.new, quota)
    less = {name: nanos(quantity) - nanos(after.get(name, 0)) for name, quantity in before.items()}
    return {name: format_nanos(n, style(before[name])) for name, n in less.items() if n > 0}


def _take_off(used: ResourceList, released: ResourceList) -> None:
    for name, quantity in released.items():
        if name in used:
            left = max(0, nanos(used[name]) - nanos(quantity))
            used[name] = format_nanos(left, style(used[name]))
