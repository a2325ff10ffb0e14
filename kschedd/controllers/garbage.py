"""Garbage collection: deletes dependents of deleted owners, and completes the deletion of owners and namespaces.

An object is deleted if its last owner was deleted or never existed. An object deleted with propagation Foreground (or
Orphan) is removed once its dependents are deleted (or orphaned). A namespace being deleted is emptied first. The
existence of an owner is checked only when the reference is written, unlike in Kubernetes. Objects from a dump or the
journal therefore keep references to missing owners, because only a part of a cluster may be loaded. Source: Kubernetes
v1.34, controller/garbagecollector, controller/namespace.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.kinds import Kind
from kschedd.controllers.running.controller import InSteps, Reconciling, View, of_each
from kschedd.object_faults import FaultLedger, ObjectRef
from kschedd.store.custom_resources.kinds import definition_of
from kschedd.store.deletion import FOREGROUND, ORPHAN, Propagation
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, MODIFIED, WatchEvent
from kschedd.store.writes import Delete, FinalizeNamespace, Patch, Write, patch_of
from kschedd.values import run_steps


def owner_of(reference: Raw, namespace: str, view: View) -> Object | None:
    """Return the object to which an owner reference refers (the uid must match), or None if it does not exist."""
    kind = _kind_of_owner(reference, namespace, view)
    found = view.find(kind.name, namespace if kind.namespaced else "", reference.get("name") or "")
    return found if found is not None and found.uid == reference.get("uid") else None


def _kind_of_owner(reference: Raw, namespace: str, view: View) -> Kind:
    return view.kind_of({**reference, "metadata": {"namespace": namespace}})


def is_absent(reference: Raw, namespace: str, view: View) -> bool:
    """Return whether an owner reference refers to an object that does not exist.

    Objects of a kind that is not served may exist nevertheless. A namespaced owner of a cluster-scoped object is
    invalid, and Kubernetes ignores a reference to such an owner.
    """
    kind = _kind_of_owner(reference, namespace, view)
    served = reference.get("apiVersion") in kind.api_versions and (
        kind.known or definition_of(view, reference) is not None
    )
    return served and (bool(namespace) or not kind.namespaced) and owner_of(reference, namespace, view) is None


def _new_references(event: WatchEvent) -> list[Raw]:
    """Return the owner references that this write added; none for an object from a dump or the journal."""
    after = event.new.metadata.get("ownerReferences")
    if not after or event.loaded or event.type == DELETED:
        return []
    before = event.old.metadata.get("ownerReferences") or () if event.old is not None else ()
    return [] if before is after else [reference for reference in after if reference not in before]


class GarbageCollector(InSteps):
    name: Final = "garbage"
    kinds: Final = None
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        return event.type == DELETED or event.new.deleting or bool(_new_references(event))

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        writes: list[Write] = []
        waiting: dict[tuple[str, str, str], None] = {}
        namespaces: dict[tuple[str, str], None] = {}
        for event in events:
            new = event.new
            if added := _new_references(event):
                ref = ObjectRef(new.kind, new.namespace, new.name)
                absent = partial(self._without_absent, new, added, view)
                writes += self.faults.run(ref, absent, now, "its new owners") or []
            if event.type == DELETED:
                ref = ObjectRef(new.kind, new.namespace, new.name)
                look = partial(self._after_owner, new, view)
                writes += (yield from self.faults.run_in_steps(ref, look, now, "after its owner")) or []
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
            let_go = partial(self._let_go, view, kind)
            writes += yield from self.faults.each_in_steps(kind, [(namespace, name)], let_go, now)
        emptying = partial(self._empty, view)
        return writes + (yield from self.faults.each_in_steps("Namespace", namespaces, emptying, now, "emptying"))

    def _let_go(self, view: View, kind: str, namespace: str, name: str, now: float) -> Reconciling:
        owner = view.find(kind, namespace, name)
        return (yield from self._release(owner, view)) if owner is not None and owner.deleting else []

    def _after_owner(self, gone: Object, view: View, now: float) -> Reconciling:
        """Delete the dependents of a deleted object; a dependent with other owners only loses its reference."""

        def after(dependent: Object) -> list[Write]:
            references = dependent.metadata.get("ownerReferences") or ()
            left = [r for r in references if owner_of(r, dependent.namespace, view) is not None]
            if left:
                return [patch_of(dependent, {"metadata": {"ownerReferences": left}}, exactly=True)]
            return _deletion(dependent)

        return (yield from of_each(view.owned_by(gone.uid), after))

    def _without_absent(self, new: Object, added: Sequence[Raw], view: View, now: float) -> list[Write]:
        """Delete an object if none of its owners exists; otherwise remove new references to missing owners."""
        found = view.find(new.kind, new.namespace, new.name)
        absent = [reference for reference in added if is_absent(reference, new.namespace, view)]
        if not absent or found is None or found.uid != new.uid or found.deleting:
            return []
        left = [r for r in found.metadata.get("ownerReferences") or () if r not in absent]
        if left:
            return [patch_of(found, {"metadata": {"ownerReferences": left}}, exactly=True)]
        return _deletion(found)

    def _waiting_owners(self, gone: Object, view: View, waiting: dict[tuple[str, str, str], None]) -> None:
        for reference in gone.metadata.get("ownerReferences") or ():
            owner = owner_of(reference, gone.namespace, view)
            if owner is not None and owner.deleting:
                waiting[owner.kind, owner.namespace, owner.name] = None

    def _release(self, owner: Object, view: View) -> Reconciling:
        """Return the next step for an object being deleted with propagation Foreground or Orphan."""
        finalizers = owner.metadata.get("finalizers") or []
        dependents = view.owned_by(owner.uid)
        if ORPHAN in finalizers:
            writes = yield from of_each(dependents, partial(_without_owner, owner))
            return [*writes, self._without_finalizer(owner, ORPHAN)]
        if FOREGROUND not in finalizers:
            return []
        waits = False

        def in_foreground(dependent: Object) -> list[Write]:
            nonlocal waits
            if _has_other_owner(dependent, view):
                return []  # the dependent is not deleted, and loses this reference after its owner's deletion
            below = view.owned_by(dependent.uid)
            # Objects that own each other must not wait for each other: a dependent that is itself waiting does not
            # block its owner.
            waits = waits or (_blocks(dependent, owner) and not any(map(_in_foreground, below)))
            return _deletion(dependent, "Foreground" if below else "Background")

        writes = yield from of_each(dependents, in_foreground)
        return writes if waits else [*writes, self._without_finalizer(owner, FOREGROUND)]

    def _without_finalizer(self, obj: Object, finalizer: str) -> Patch:
        left = [f for f in obj.metadata.get("finalizers") or () if f != finalizer]
        return patch_of(obj, {"metadata": {"finalizers": left or None}}, exactly=True)

    def _empty(self, view: View, namespace: str, name: str, now: float) -> Reconciling:
        """Delete all objects in a namespace being deleted; finalize the namespace when it is empty."""
        found = view.find("Namespace", "", name)
        if found is None or not found.deleting:
            return []
        content = view.in_namespace(name)
        if not content:
            return [FinalizeNamespace(name)] if found.spec.get("finalizers") else []
        return (yield from of_each(content, _deletion))

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Retry a rejected patch of an object being deleted; after other rejections an event triggers the retry."""
        if isinstance(write, Patch):
            found = view.find(write.kind, write.namespace, write.name)
            if found is not None and found.deleting:
                return run_steps(self._release(found, view))
        return []


def _deletion(obj: Object, propagation: Propagation = "Background") -> list[Write]:
    """Return the write that deletes an object, or nothing if the object is already being deleted."""
    return [] if obj.deleting else [Delete(obj.kind, obj.namespace, obj.name, obj.uid, propagation=propagation)]


def _without_owner(owner: Object, dependent: Object) -> list[Write]:
    references = dependent.metadata.get("ownerReferences") or ()
    left = [r for r in references if r.get("uid") != owner.uid]
    return [patch_of(dependent, {"metadata": {"ownerReferences": left or None}})]


def _in_foreground(obj: Object) -> bool:
    """Return whether the object is being deleted and waits for its dependents."""
    return obj.deleting and FOREGROUND in (obj.metadata.get("finalizers") or ())


def _has_other_owner(dependent: Object, view: View) -> bool:
    """Return whether the dependent has another existing owner, which does not wait for the dependent's deletion."""
    owners = (owner_of(each, dependent.namespace, view) for each in dependent.metadata.get("ownerReferences") or ())
    return any(owner is not None and not _in_foreground(owner) for owner in owners)


def _blocks(dependent: Object, owner: Object) -> bool:
    references = dependent.metadata.get("ownerReferences") or ()
    return any(r.get("uid") == owner.uid and r.get("blockOwnerDeletion") for r in references)
