"""KeptStore: commits the writes of `Store`'s methods, and objects from other sources.

The other sources are a journal, a dump, a mirrored cluster, and the changes of a fork.
"""

import builtins
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.check import check_schema
from kschedd.api.schemas.kinds import BY_NAME, group_of
from kschedd.api.text.times import stamp
from kschedd.store.admission.chain import Admission
from kschedd.store.admission.request import RequestAdmission
from kschedd.store.admission_plugins.attributes import Attributes
from kschedd.store.admission_plugins.resourcequota import Charge
from kschedd.store.built_in import is_built_in
from kschedd.store.creating import updates
from kschedd.store.creating.cluster_rules import with_names
from kschedd.store.creating.creation import Creation
from kschedd.store.creating.job_selector import with_uid
from kschedd.store.creating.replacement import Replacement
from kschedd.store.custom_resources import kinds as custom
from kschedd.store.deletion import finished, marked_pod
from kschedd.store.errors import AlreadyExists, ApiError, Forbidden, Unadmitted
from kschedd.store.leases import LEASE, next_renewal, renewed, renewed_at
from kschedd.store.managing import (
    MANAGED,
    NOBODY,
    Component,
    Managing,
    noted_after,
)
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, EventType
from kschedd.store.objects.stored import retyped
from kschedd.store.prototypes.generated import Generated
from kschedd.store.prototypes.pod_strategy import MOST_NODE_AFFINITIES, PodStrategy
from kschedd.store.reader import StoreReader
from kschedd.store.trial import Changes, Key, changes_of, unchanged
from kschedd.values import in_parts

_PART: Final = 100  # number of Leases renewed in one step, which takes about 1 ms


class KeptStore(StoreReader):
    """The part of the store that commits writes. The subclass `Store` sets its attributes."""

    _generated: Generated
    _admission: RequestAdmission
    _pod_strategy: PodStrategy
    _creation: Creation
    _replacement: Replacement
    _seeding: bool  # True while built-in objects are created, without calling plugins from plugin files

    def keep_admitted(self, most: int, node_affinities: int = MOST_NODE_AFFINITIES) -> None:
        """Set the size limit of the admission caches.

        The cache for pod specs and the cache for specs without amounts have this limit each.
        """
        self._pod_strategy.remembered.most = self._pod_strategy.remembered_without_amounts.most = most
        self._pod_strategy.remembered_with_node_affinity.most = node_affinities

    @property
    def admitted_used(self) -> tuple[int, int]:
        """Number of pod specs with cached admission results, and the largest number so far."""
        remembered = self._pod_strategy.remembered
        return len(remembered), remembered.most_kept

    @property
    def node_affinities_used(self) -> tuple[int, int]:
        """Number of node affinities with cached admission results, and the largest number so far."""
        remembered = self._pod_strategy.remembered_with_node_affinity
        return len(remembered), remembered.most_kept

    @property
    def admission(self) -> Admission:
        return self._admission.chain

    def replay(self, events: Iterable[tuple[EventType, Object]]) -> None:
        """Replay committed writes from the journal; their versions follow the versions of this store."""
        try:
            for event_type, obj in events:
                self.log.skip_to(obj.resource_version - 1)
                self._objects.commit(event_type, self._objects.find(obj.kind, obj.namespace, obj.name), obj)
        finally:
            self._generated.begin_at(self.version)

    def skip_to(self, version: int) -> None:
        """Give the next write a version after `version`, because clients may have received versions up to it."""
        self.log.skip_to(version)
        self._generated.begin_at(self.version)

    def roll_back(self, version: int) -> None:
        """Undo the writes after this version; none of them may have been delivered to watches."""
        self._objects.roll_back(version)

    def take_in(self, objects: Iterable[Object]) -> Generator[None, None, builtins.list[Object]]:
        """Store objects as they are in another cluster, each with the next version.

        Return the existing objects that conflict. A built-in object is replaced by the dump's object of the same name,
        and any object is replaced by an object with the same uid. Any other existing object of the same name stays, and
        is returned. The caller may pause the generator, but must not make other writes until it ends.
        """
        in_the_way: builtins.list[Object] = []
        uids: builtins.list[str] = []
        for obj in objects:
            old = self._objects.find(obj.kind, obj.namespace, obj.name)
            if old is not None and old.uid != obj.uid and not is_built_in(old):
                in_the_way.append(old)
                continue
            event: EventType = ADDED if old is None else MODIFIED
            self._objects.commit(event, old, obj.at_version(self.log.version + 1), loaded=True)
            uids.append(obj.uid)
            yield
        self._objects.forget_uids()
        self._generated.begin_beside(uids, self.version)
        return in_the_way

    def refuse_writes(self, refusal: ApiError) -> None:
        """Reject all later writes except `reflect`, with this error."""
        self._objects.refusal = refusal

    def reflect(self, objects: Iterable[Object], gone: Iterable[Key]) -> Generator[None, None, None]:
        """Store objects as in the mirrored cluster, each with the next version; remove objects deleted there.

        The caller may pause the generator, but must not make other writes until it ends.
        """
        refusal, self._objects.refusal = self._objects.refusal, None
        uids: builtins.list[str] = []
        try:
            for key in gone:
                if (old := self._objects.find(*key)) is not None:
                    self._objects.commit(DELETED, old, old.at_version(self.log.version + 1))
                    yield
            for obj in objects:
                old = self._objects.find(obj.kind, obj.namespace, obj.name)
                if old is not None and old.uid != obj.uid:
                    self._objects.commit(DELETED, old, old.at_version(self.log.version + 1))
                    old = None
                if old is None or old.raw != obj.at_version(old.resource_version).raw:
                    event: EventType = ADDED if old is None else MODIFIED
                    self._objects.commit(event, old, obj.at_version(self.log.version + 1), loaded=True)
                    if old is None:
                        uids.append(obj.uid)
                yield
        finally:
            self._objects.refusal = refusal
            if uids:
                self._generated.begin_beside(uids, self.version)

    def take_over(self, obj: Object) -> None:
        """Store an object with its version unchanged, or raise an error and change nothing.

        Used to fill a store at startup.
        """
        self._objects.place_whole(obj)

    def changes_since(self, version: int) -> Changes:
        return changes_of(version, self.log.written_after(version))

    def adopt(self, changes: Changes) -> Generator[None, None, Mapping[Key, Object] | None]:
        """Apply a fork's changes, object by object.

        Return the resulting objects; None if objects of this cluster have changed since the fork.

        The caller may pause the generator, but must not make other writes until it ends.
        """
        if not self.log.oldest <= changes.since <= self.version or changes.stale(self.log.written_after(changes.since)):
            return None
        if not (yield from unchanged(changes, self._objects.find)):
            return None  # the writes on which the fork is based were rolled back
        adopted: dict[Key, Object] = {}
        for key, (old, new) in changes.objects.items():
            if new is None:
                assert old is not None, "a change has an old or a new object"
                self._remove(old)
            else:
                version = self.log.version + 1
                # An object created in the fork gets a new UID here.
                uid = new.uid if old is not None and old.uid == new.uid else self._generated.uid(new.kind)
                raw = {**new.raw, "metadata": {**new.metadata, "resourceVersion": str(version)}}
                if new.kind == "Job" and uid != new.uid:
                    here = retyped(new, with_uid(raw, uid))
                else:
                    raw["metadata"]["uid"] = uid
                    here = attrs.evolve(new, resource_version=version, uid=uid, raw=raw)
                self._objects.commit(ADDED if old is None else MODIFIED, old, here, loaded=key in changes.loaded)
                adopted[key] = here
            yield
        return adopted

    def _charge(self, charges: Iterable[Charge]) -> None:
        """Write the new usage of the quotas.

        Writing the usage is the last step that can reject the write of an object.
        """
        for quota, used in charges:
            self._write(quota, {**quota.raw, "status": {**quota.status, "used": used}})

    def _create(
        self, raw: Raw, managing: Managing, dry_run: bool, restore: bool = False, as_client: bool = False
    ) -> Object:
        if dry_run:
            with self._generated.apart():
                return self._create_named(raw, managing, dry_run, restore, as_client)
        return self._create_named(raw, managing, dry_run, restore, as_client)

    def _create_named(self, raw: Raw, managing: Managing, dry_run: bool, restore: bool, as_client: bool) -> Object:
        kind, meta = self._creation.identified(raw, served=as_client)
        try:
            return self._create_identified(kind, meta, raw, managing, dry_run, restore)
        except Unadmitted as refused:
            if (raw.get("metadata") or {}).get("name"):
                raise
            raise Forbidden(refused.kind, meta.get("generateName") or "Unknown", refused.why) from None

    def _create_identified(
        self, kind: str, meta: dict[str, Any], raw: Raw, managing: Managing, dry_run: bool, restore: bool
    ) -> Object:
        name, namespace = meta["name"], meta.get("namespace") or ""
        attributes = Attributes("CREATE", kind, namespace, name)
        self._admission.check_namespace(kind, namespace, name)
        if self._admission.depends_on_user(kind) and not (kind in BY_NAME and check_schema(dict(raw))):
            self._admission.authorize(attributes, raw, None)
        created = self._creation.new(kind, raw, meta, managing, restore=restore, dry_run=dry_run)
        if (there := self._objects.find(kind, namespace, name)) is not None:
            other = str(there.raw.get("apiVersion") or "")
            alike = kind in BY_NAME or group_of(other) == group_of(str(raw.get("apiVersion") or ""))
            raise AlreadyExists(kind, name, deleting=there.deleting, other="" if alike else other)
        if not restore:
            if not self._seeding:
                self._admission.validate_whole(attributes, created.raw, None, dry_run=dry_run)
            charges = self._admission.charges(attributes, created.raw, None)
            if charges and not dry_run:
                self._charge(charges)
                created = created.at_version(self.log.version + 1)
        if not dry_run:
            self._objects.commit(ADDED, None, created, loaded=restore)
        return created

    def _replace(
        self,
        old: Object,
        raw: Raw,
        subresource: updates.Subresource,
        with_status: bool,
        dry_run: bool,
        managing: Managing = NOBODY,
    ) -> Object:
        wanted, requested = self._replacement.checked(old, raw, subresource, with_status, dry_run)
        if subresource not in updates.OF_STATUS:
            attributes = Attributes("UPDATE", old.kind, old.namespace, old.name, subresource)
            charges = self._admission.charges(attributes, wanted, old.raw)
            if not dry_run:
                self._charge(charges)
        wanted = self._replacement.managed(old, wanted, requested, subresource, managing)
        if dry_run:
            if _equal(old, wanted):
                return old
            meta = {**wanted["metadata"], "resourceVersion": old.metadata["resourceVersion"]}
            return retyped(old, {**wanted, "metadata": meta})
        if "selfLink" in wanted["metadata"]:  # only dry-run results contain this field, so it is not stored
            wanted["metadata"] = {field: each for field, each in wanted["metadata"].items() if field != "selfLink"}
        noted = managing.manager if isinstance(managing.manager, Component) and subresource == "status" else ""
        return self._write_or_remove(old, wanted, noted)

    def _write_or_remove(self, old: Object, wanted: dict[str, Any], noted: str = "") -> Object:
        """Write `wanted` unless it equals the existing object.

        Remove the object if this change completes its deletion.
        """
        if finished(old.kind, wanted):
            gone = self._remove(old)
            meta = {**wanted["metadata"], "resourceVersion": str(gone.resource_version)}
            return retyped(old, {**wanted, "metadata": meta})
        return self._write(old, wanted, noted)

    def _write(self, old: Object, wanted: dict[str, Any], noted: str = "") -> Object:
        if _equal(old, wanted):
            return old
        meta = {**wanted["metadata"], "resourceVersion": str(self.log.version + 1)}
        if noted and MANAGED in meta:
            meta[MANAGED] = noted_after(old, noted, stamp(self._now()))
        wanted["metadata"] = meta
        changed = retyped(old, wanted)
        self._objects.commit(MODIFIED, old, changed)
        return changed

    def _remove(self, old: Object) -> Object:
        gone = old.at_version(self.log.version + 1)
        self._objects.commit(DELETED, old, gone)
        if old.kind not in BY_NAME:
            self._finish_definition(gone)
        elif old.kind == custom.DEFINITION:
            self._accept_freed_names()
        return gone

    def _finish_definition(self, gone: Object) -> None:
        """Remove the definition of a custom resource if its deletion waits only for this object."""
        if self.count(gone.kind):
            return
        there = custom.definition_of(self, gone.raw)
        if there is not None and there.deleting:
            self._write_or_remove(there, custom.without_cleanup(there.raw))

    def _accept_freed_names(self) -> None:
        """Accept names of other definitions that the deleted definition used."""
        for definition in tuple(self.list(custom.DEFINITION)):
            named = with_names(self, definition.raw)
            if named["status"] != definition.raw.get("status"):
                self._write(definition, named)

    def finalize_namespace(self, name: str) -> Object:
        """Remove a namespace's finalizers once it is empty, which completes its deletion."""
        old = self.get("Namespace", "", name)
        spec = {field: value for field, value in old.spec.items() if field != "finalizers"}
        return self._write_or_remove(old, {**old.raw, "spec": spec})

    def renew_lease(self, namespace: str, name: str) -> Object:
        """Write the current renewal of a Lease to the log, if kschedd renews this Lease; return the Lease."""
        old = self._objects.get(LEASE, namespace, name)
        new = renewed(old, self._now())
        if new is old:
            return old
        new = new.at_version(self.log.version + 1)
        self._objects.commit_renewal(old, new)
        return new

    def renewing_leases(self) -> Generator[None, None, None]:
        """Write the current renewals of all Leases that kschedd renews, in steps.

        If no renewal is due, one Lease is renewed early, because the heartbeat controller starts at the first renewal.
        """
        if self._objects.refusal is not None:
            return
        before, last = self.log.version, None
        for some in self._renewable():
            for lease in some:
                last = self.renew_lease(lease.namespace, lease.name)
            yield
        if last is not None and self.log.version == before:
            self._renew_early(last)

    def renew_all_leases(self) -> None:
        """Write a renewal of each Lease that kschedd renews, because clients may have received lost renewals."""
        for some in self._renewable():
            for lease in some:
                self._renew_early(lease)

    def _renewable(self) -> Iterator[builtins.list[Object]]:
        """Yield the Leases that kschedd renews, in parts."""
        for space in self._objects.spaces(LEASE, None):
            yield from in_parts([lease for lease in space.values() if next_renewal(lease) is not None], _PART)

    def _renew_early(self, lease: Object) -> None:
        renewal = renewed_at(lease, self._now())
        self._objects.commit_renewal(lease, renewal.at_version(self.log.version + 1))

    def _end(self, old: Pod) -> Pod:
        """Delete a pod that is not being deleted yet and can be removed immediately."""
        going = marked_pod(old, self._now(), self.log.version + 1)
        gone = going.at_version(self.log.version + 2)
        self._objects.commit_end(old, going, gone)
        return gone


def _equal(old: Object, wanted: Raw) -> bool:
    """Return whether `wanted` equals the existing object, ignoring the version."""
    meta = {**wanted["metadata"], "resourceVersion": old.metadata.get("resourceVersion")}
    return meta == old.metadata and _but_metadata(wanted) == _but_metadata(old.raw)


def _but_metadata(raw: Raw) -> dict[str, Any]:
    """Return the object without its metadata."""
    return {part: value for part, value in raw.items() if value is not None and part != "metadata"}
