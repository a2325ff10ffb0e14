"""Garbage collection: deletes dependents of deleted owners, and completes foreground, orphan and namespace deletion.

Rules: an object whose last owner was deleted is deleted; an object deleted with propagation Foreground (or Orphan) is
removed once its dependents are gone (or orphaned); a namespace being deleted is emptied first. Unlike upstream, objects
whose owner never existed are kept, because part of a cluster's dump may be loaded without the rest.
Source: Kubernetes v1.34, controller/garbagecollector, controller/namespace.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.api.kinds import kind_of
from kschedd.api.objects import Object, Raw
from kschedd.controllers.controller import View
from kschedd.object_faults import FaultLedger, ObjectRef
from kschedd.store.deletion import FOREGROUND, ORPHAN
from kschedd.store.errors import ApiError
from kschedd.store.log import DELETED, MODIFIED, WatchEvent
from kschedd.store.writes import Delete, FinalizeNamespace, Patch, Write, patch_of


def owner_of(reference: Raw, namespace: str, view: View) -> Object | None:
    """The object that an owner reference refers to, uid included; None if it does not exist."""
    kind = kind_of({**reference, "metadata": {"namespace": namespace}})
    found = view.find(kind.name, namespace if kind.namespaced else "", reference.get("name") or "")
    return found if found is not None and found.uid == reference.get("uid") else None


class GarbageCollector:
    name: Final = "garbage"
    kinds: Final = None
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        return event.type == DELETED or event.new.deleting

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        writes: list[Write] = []
        waiting: dict[tuple[str, str, str], None] = {}
        namespaces: dict[tuple[str, str], None] = {}
        for event in events:
            new = event.new
            if event.type == DELETED:
                ref = ObjectRef(new.kind, new.namespace, new.name)
                writes += self.faults.run(ref, partial(self._after_owner, new, view), now, "after its owner") or []
                self._waiting_owners(new, view, waiting)
                if new.namespace:
                    namespaces["", new.namespace] = None
            elif event.type == MODIFIED and not new.deleting:
                continue
            elif new.kind == "Namespace" and new.deleting:
                namespaces["", new.name] = None
            elif new.deleting and new.metadata.get("finalizers"):
                waiting[new.kind, new.namespace, new.name] = None
        for kind, namespace, name in waiting:
            writes += self.faults.each(kind, [(namespace, name)], partial(self._let_go, view, kind), now)
        writes += self.faults.each("Namespace", namespaces, partial(self._empty, view), now, "emptying")
        return writes

    def _let_go(self, view: View, kind: str, namespace: str, name: str, now: float) -> list[Write]:
        owner = view.find(kind, namespace, name)
        return self._release(owner, view) if owner is not None and owner.deleting else []

    def _after_owner(self, gone: Object, view: View, now: float) -> list[Write]:
        """Delete the dependents of a deleted object, or remove the reference from those with other owners."""
        writes: list[Write] = []
        for dependent in view.owned_by(gone.uid):
            references = dependent.metadata.get("ownerReferences") or ()
            left = [r for r in references if owner_of(r, dependent.namespace, view) is not None]
            if left:
                writes.append(patch_of(dependent, {"metadata": {"ownerReferences": left}}, exactly=True))
            elif not dependent.deleting:
                writes.append(Delete(dependent.kind, dependent.namespace, dependent.name, dependent.uid))
        return writes

    def _waiting_owners(self, gone: Object, view: View, waiting: dict[tuple[str, str, str], None]) -> None:
        for reference in gone.metadata.get("ownerReferences") or ():
            owner = owner_of(reference, gone.namespace, view)
            if owner is not None and owner.deleting:
                waiting[owner.kind, owner.namespace, owner.name] = None

    def _release(self, owner: Object, view: View) -> list[Write]:
        """The next step for an object being deleted with propagation Foreground or Orphan."""
        finalizers = owner.metadata.get("finalizers") or []
        dependents = view.owned_by(owner.uid)
        if ORPHAN in finalizers:
            writes: list[Write] = []
            for dependent in dependents:
                references = dependent.metadata.get("ownerReferences") or ()
                left = [r for r in references if r.get("uid") != owner.uid]
                writes.append(patch_of(dependent, {"metadata": {"ownerReferences": left or None}}))
            return [*writes, self._without_finalizer(owner, ORPHAN)]
        if FOREGROUND not in finalizers:
            return []
        blocking = [d for d in dependents if _blocks(d, owner)]
        if not blocking:
            return [self._without_finalizer(owner, FOREGROUND)]
        return [
            Delete(
                d.kind, d.namespace, d.name, d.uid, propagation="Foreground" if view.owned_by(d.uid) else "Background"
            )
            for d in dependents
            if not d.deleting
        ]

    def _without_finalizer(self, obj: Object, finalizer: str) -> Patch:
        left = [f for f in obj.metadata.get("finalizers") or () if f != finalizer]
        return patch_of(obj, {"metadata": {"finalizers": left or None}}, exactly=True)

    def _empty(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        """Delete all objects in a namespace being deleted; once it is empty, finalize it."""
        found = view.find("Namespace", "", name)
        if found is None or not found.deleting:
            return []
        content = view.in_namespace(name)
        if not content:
            return [FinalizeNamespace(name)] if found.spec.get("finalizers") else []
        return [Delete(obj.kind, obj.namespace, obj.name, obj.uid) for obj in content if not obj.deleting]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Retry a refused patch of an object being deleted; other refusals are followed by an event that retries."""
        if isinstance(write, Patch):
            found = view.find(write.kind, write.namespace, write.name)
            if found is not None and found.deleting:
                return self._release(found, view)
        return []


def _blocks(dependent: Object, owner: Object) -> bool:
    references = dependent.metadata.get("ownerReferences") or ()
    return any(r.get("uid") == owner.uid and r.get("blockOwnerDeletion") for r in references)
