"""The embedded API server: the verbs by which every object of the cluster is written.

Every write has the next resourceVersion and adds one event to the log; readers get typed objects that never change.
A write that would change nothing is none: it adds no version and no event, so two writers cannot feed each other for
ever. Pods take a fast path (`pod_strategy`): equal specs are checked once and held once.

A verb finds the object that it is about, has the new one prepared, and commits it:

    RequestAdmission   in whose name, and what admission says of it
    Creation           what becomes of a manifest before it is kept as a new object
    Replacement        what an object becomes that is updated, patched or applied
    Generated          new uids and names
    StoredObjects      the objects, their indexes and the log of what was written
    StoreReader        all of that as it is read: the part of `ClusterReader` in the store

Does no I/O and waits for nothing: whoever owns the store (an actor, a simulation, a what-if fork) calls it. Time comes
from `now` (seconds since the epoch), randomness from `seed`: the same calls give the same uids and names.
Raises: the errors in `kschedd.store.errors`, nothing else.
"""

import builtins
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.check import check_schema, without_nulls
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.api.schemas.fields import required
from kschedd.api.schemas.kinds import BY_NAME, group_of
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.config.versions.rules import Rules
from kschedd.errors import without_traceback
from kschedd.registry.validation_update import validate_version
from kschedd.store import eviction
from kschedd.store.admission.chain import Admission
from kschedd.store.admission.request import RequestAdmission
from kschedd.store.admission_plugins.attributes import Attributes, UserInfo
from kschedd.store.admission_plugins.resourcequota import Charge
from kschedd.store.binding import bound, refuse_binding
from kschedd.store.built_in import built_in, is_built_in
from kschedd.store.cluster_api import Applied
from kschedd.store.creating import updates
from kschedd.store.creating.cluster_rules import managing_write, with_names
from kschedd.store.creating.creation import Creation
from kschedd.store.creating.job_selector import with_uid
from kschedd.store.creating.replacement import Replacement
from kschedd.store.creating.service_addresses import SERVICE_RANGE
from kschedd.store.custom_resources import kinds as custom
from kschedd.store.custom_resources.definition_names import is_established
from kschedd.store.custom_resources.rule_kinds import rule_kind
from kschedd.store.deletion import (
    Propagation,
    begin_deletion,
    check_delete_preconditions,
    check_grace_period,
    finished,
    marked,
    marked_pod,
)
from kschedd.store.errors import AlreadyExists, ApiError, Forbidden, Gone, Invalid, NotFound, Unadmitted
from kschedd.store.identity import check_version, same_object
from kschedd.store.managing import (
    MANAGED,
    NOBODY,
    Component,
    Managing,
    applied_by,
    created_by,
    noted_after,
    with_resolved_entries,
)
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, EventLog, EventType, WatchEvent
from kschedd.store.objects.stored import StoredObjects, retyped
from kschedd.store.patch_decoding import decode_patched
from kschedd.store.patches.apply import applied, first_applied
from kschedd.store.patching import PatchType, patched
from kschedd.store.prototypes.generated import Generated
from kschedd.store.prototypes.nodes import NodePrototype, NodePrototypes
from kschedd.store.prototypes.pod_strategy import MOST_NODE_AFFINITIES, PodStrategy
from kschedd.store.prototypes.pods import PodPrototype, PodPrototypes
from kschedd.store.reader import StoreReader
from kschedd.store.set_aside import SetAside
from kschedd.store.system_namespaces import UNDELETABLE
from kschedd.store.times import stamp
from kschedd.store.trial import Changes, Key, changes_of, unchanged
from kschedd.store.writes import Bind
from kschedd.values import run_steps

MAX_OBJECT_BYTES: Final = 1536 * 1024  # etcd's --max-request-bytes
_CLASSES: Final = frozenset(("PriorityClass", "RuntimeClass"))
_SCOPES: Final = frozenset(("Namespace", "LimitRange"))


class Store(StoreReader):
    """See the module. A new store has the built-in namespaces and priority classes, unless `objects` are given.

    `events` are those that the log has after `version`; the objects include what they did.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.time,
        seed: int = 0,
        admission: Admission | None = None,
        objects: Iterable[Object] | None = None,
        version: int = 0,
        events: Iterable[WatchEvent] = (),
        history: int = 100_000,
        max_object_bytes: int = MAX_OBJECT_BYTES,
        service_range: str = SERVICE_RANGE,
        rules: Rules = DEFAULT.default_rules,
    ) -> None:
        stored = StoredObjects(EventLog(version, history=history, events=events), self._changed)
        super().__init__(stored, now, rules, max_object_bytes, service_range)
        self._generated = Generated(seed, version)
        self._admission = RequestAdmission(admission or Admission(), self)
        self._pod_strategy = PodStrategy(self.admission, self, lambda: self.features)
        self._creation = Creation(self, self._admission, self._pod_strategy, self._generated)
        self._replacement = Replacement(self, self._admission, self._pod_strategy)
        self.set_aside: Sequence[SetAside] = ()  # what it started without
        self._seeding = False  # what is built in is no request: no plugin of a file is asked about it
        self._prototypes: PodPrototypes | None = None  # within a request of several writes
        self._node_prototypes: NodePrototypes | None = None  # likewise
        if objects is None:
            self.seed_defaults()
        else:
            for obj in objects:
                self._objects.place(None, obj)

    def keep_admitted(self, most: int, node_affinities: int = MOST_NODE_AFFINITIES) -> None:
        """Keep what admission made of at most so many kinds of pods, of as many without their amounts, and of so many
        node affinities of theirs."""
        self._pod_strategy.remembered.most = self._pod_strategy.remembered_without_amounts.most = most
        self._pod_strategy.remembered_with_node_affinity.most = node_affinities

    @property
    def admitted_used(self) -> tuple[int, int]:
        """Of how many kinds of pods that is kept, and of how many it was at most."""
        remembered = self._pod_strategy.remembered
        return len(remembered), remembered.most_kept

    @property
    def node_affinities_used(self) -> tuple[int, int]:
        """The same of their node affinities."""
        remembered = self._pod_strategy.remembered_with_node_affinity
        return len(remembered), remembered.most_kept

    @property
    def admission(self) -> Admission:
        return self._admission.chain

    def stand_for(self, rules: Rules) -> None:
        super().stand_for(rules)
        self._pod_strategy.forget()
        if self._prototypes is not None:
            self._prototypes.clear()
        if self._node_prototypes is not None:
            self._node_prototypes.clear()

    def seed_defaults(self) -> None:
        """Create what every cluster has, as far as it is not there."""
        self._seeding = True
        try:
            for raw in built_in():
                if self.find(raw["kind"], "", raw["metadata"]["name"]) is None:
                    self.create(raw)
        finally:
            self._seeding = False

    # --- who asks -----------------------------------------------------------------------------------------------

    def on_behalf_of(self, user: UserInfo) -> AbstractContextManager[builtins.list[str]]:
        """What is done inside is asked for by this user; the list takes what the user is to be warned of."""
        return self._admission.on_behalf_of(user)

    def warn(self, text: str) -> None:
        """Tell the user in whose name something is done; once, however often it is found."""
        self._admission.warn(text)

    # --- writing -----------------------------------------------------------------------------------------------

    def create(
        self,
        raw: Raw,
        *,
        dry_run: bool = False,
        restore: bool = False,
        as_client: bool = False,
        manager: str = "",
    ) -> Object:
        """A new object. `restore` keeps status, uid and creation time as the manifest has them (a cluster's dump).

        What a client hands in (`as_client`) must be of a kind that is served. Its fields are the `manager`'s ("": are
        nobody's).
        """
        copied = None if dry_run or restore or manager else self._copied(raw)
        if copied is not None:
            return copied
        made = self._create(raw, Managing(manager) if manager else NOBODY, dry_run, restore, as_client)
        if not (dry_run or restore or manager):
            self._may_be_copied(made, raw)
        return made

    def create_many(self, raws: Iterable[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        """Create each on its own; the answers in the same order."""
        answers: builtins.list[Object | ApiError] = []
        with self.one_request():
            for raw in raws:
                try:
                    answers.append(self.create(raw, restore=restore))
                except ApiError as refusal:
                    answers.append(without_traceback(refusal))
        return answers

    @contextmanager
    def one_request(self) -> Iterator[None]:
        """What is written inside is one request's, whose manifests nobody changes meanwhile: pods and nodes may be
        copies."""
        within, nodes_within = self._prototypes, self._node_prototypes
        self._prototypes, self._node_prototypes = within or PodPrototypes(), nodes_within or NodePrototypes()
        try:
            yield
        finally:
            self._prototypes, self._node_prototypes = within, nodes_within

    def _copied(self, raw: Raw) -> Object | None:
        """What `create` would make of this manifest, if that is a copy of what the request has created before."""
        kind = raw.get("kind")
        if kind == "Pod" and self._prototypes is not None:
            prototype = self._prototypes.of(raw)
            return None if prototype is None else self._copy(prototype, raw)
        if kind == "Node" and self._node_prototypes is not None:
            of_node = self._node_prototypes.of(raw)
            return None if of_node is None else self._copy_node(of_node, raw)
        return None

    def _may_be_copied(self, made: Object, raw: Raw) -> None:
        """It was created of that manifest: what the request creates after it may be copies of it."""
        if isinstance(made, Pod) and self._prototypes is not None:
            if not self._admission.looks_at_each("Pod", made.namespace):
                self._prototypes.add(PodPrototype(made, raw, self._pod_strategy, self.max_object_bytes), raw)
        elif isinstance(made, Node) and self._node_prototypes is not None:
            if not self._admission.looks_at_each("Node", ""):
                self._node_prototypes.add(NodePrototype(made, raw), raw, self.max_object_bytes)

    def _copy_node(self, prototype: NodePrototype, raw: Raw) -> Node | None:
        if raw["metadata"]["name"] in self._objects.space("Node", ""):
            return None
        made = prototype.copy(raw, self._generated.uid("Node"), self.log.version + 1, stamp(self._now()))
        self._objects.commit(ADDED, None, made)
        return made

    def _copy(self, prototype: PodPrototype, raw: Raw) -> Pod | None:
        """What `create` would make of this manifest, if that is a copy of the prototype."""
        admitted, namespace = prototype.admitted(raw), prototype.pod.namespace
        name = None if admitted is None else prototype.name_of_copy(raw)
        taken = self._objects.space("Pod", namespace)
        if admitted is None or name is None or name in taken or not prototype.may_be_born(at := stamp(self._now())):
            return None
        if prototype.generates:
            name = self._generated.name("Pod", raw["metadata"]["generateName"], taken)
        made = prototype.copy(admitted, name, self._generated.uid("Pod"), self.log.version + 1, at)
        self._objects.commit_copy(made, prototype.indexed)
        return made

    def _create(
        self, raw: Raw, managing: Managing, dry_run: bool, restore: bool = False, as_client: bool = False
    ) -> Object:
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
        asked = Attributes("CREATE", kind, namespace, name)
        self._admission.check_namespace(kind, namespace, name)
        if self._admission.asks_who(kind) and not (kind in BY_NAME and check_schema(dict(raw))):
            self._admission.authorize(asked, raw, None)
        created = self._creation.new(kind, raw, meta, managing, restore=restore, dry_run=dry_run)
        if (there := self._objects.find(kind, namespace, name)) is not None:
            other = str(there.raw.get("apiVersion") or "")
            alike = kind in BY_NAME or group_of(other) == group_of(str(raw.get("apiVersion") or ""))
            raise AlreadyExists(kind, name, deleting=there.deleting, other="" if alike else other)
        if not restore:
            if not self._seeding:
                self._admission.validate_whole(asked, created.raw, None)
            charges = self._admission.charges(asked, created.raw, None)
            if charges and not dry_run:
                self._charge(charges)
                created = created.at_version(self.log.version + 1)
        if not dry_run:
            self._objects.commit(ADDED, None, created, loaded=restore)
        return created

    def update(
        self,
        raw: Raw,
        *,
        subresource: updates.Subresource = "",
        with_status: bool = False,
        dry_run: bool = False,
        as_client: bool = False,
        manager: str = "",
    ) -> Object:
        """Replace an object. If `raw` names a resourceVersion it must be the current one, else Conflict.

        Of some kinds a client (`as_client`) must name it.

        The status stays as it is, unless `with_status` (for whoever plays the part of a kubelet or a cloud).
        """
        kind, meta = self._creation.identified(raw)
        if not meta["name"]:
            raise Invalid(kind, "", (required("metadata.name", "name or generateName is required"),))
        old = self._objects.get(kind, meta.get("namespace") or "", meta["name"])
        check_version(old, raw)
        if as_client and (faults := validate_version(kind, meta)):
            raise Invalid(kind, old.name, tuple(faults))
        updates.check_preconditions(old, meta)
        return self._replace(old, raw, subresource, with_status, dry_run, Managing(manager))

    def update_status(self, raw: Raw, *, dry_run: bool = False) -> Object:
        """Replace an object's status, and nothing else of it."""
        return self.update(raw, subresource="status", dry_run=dry_run)

    def merge_patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Raw,
        *,
        subresource: updates.Subresource = "",
        with_status: bool = False,
        dry_run: bool = False,
        manager: str = "",
    ) -> Object:
        """Change an object by an RFC 7386 patch. Strategic merge patches are not supported: lists are replaced."""
        old = self._objects.get(kind, namespace, name)
        whole = same_object(old, updates.merge_patched(old, patch))
        return self._replace(old, whole, subresource, with_status, dry_run, Managing(manager))

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType = "strategic",
        *,
        subresource: updates.Subresource = "",
        validation: FieldValidation = "Strict",
        dry_run: bool = False,
        manager: str = "",
        duplicates: Sequence[str] = (),
    ) -> tuple[Object, tuple[str, ...]]:
        """Change an object as a client asks; the object and what the client is to be warned of.

        `duplicates` are the paths of fields that the patch has twice. Whoever is refused is warned, too (see `warn`).
        """
        old = self._objects.get(kind, namespace, name)
        live = with_resolved_entries(old.raw)
        definition = None if self.kind_of(live).known else custom.definition_of(self, live)
        of_rule = rule_kind(definition)
        whole = patched(live, patch, patch_type, validation, None if of_rule is None else of_rule.merge_schema)
        whole, warnings = decode_patched(
            live, whole, patch, patch_type, validation, duplicates, self.features, definition
        )
        try:
            whole = same_object(old, whole)
            updates.check_resource_version(old, whole["metadata"])
            return self._replace(old, whole, subresource, False, dry_run, Managing(manager)), warnings
        except ApiError:
            for warning in warnings:
                self.warn(warning)
            raise

    def patch_status(self, kind: str, namespace: str, name: str, patch: Raw) -> Object:
        """Merge `patch` into an object's status: `{"phase": "Running"}`."""
        return self.merge_patch(kind, namespace, name, {"status": patch}, subresource="status")

    def server_side_apply(
        self,
        kind: str,
        namespace: str,
        name: str,
        config: Raw,
        manager: str,
        *,
        api_version: str = "",
        force: bool = False,
        subresource: updates.Subresource = "",
        dry_run: bool = False,
    ) -> tuple[Object, Applied]:
        """`kubectl apply --server-side`: the object gets what its manager states, and loses what only it did state.

        Raises ApplyConflict where fields of others would change and `force` does not say that they may. `api_version`
        is what the request is for ("": what the configuration says).
        """
        old = self._objects.find(kind, namespace, name)
        named = {"kind": config.get("kind"), "apiVersion": api_version or config.get("apiVersion")}
        if old is not None:
            named["kind"] = old.raw["kind"]
        elif kind in BY_NAME:
            named["kind"] = kind
        write = managing_write(self, manager, named, subresource, kind)
        if old is None:
            if subresource:
                raise NotFound(kind, name)
            raw, entries = created_by(kind, namespace, name, config, write)
            return self._create(raw, Managing(manager, entries), dry_run, as_client=True), "created"
        whole = same_object(old, applied_by(old, config, write, force=force))
        updates.check_resource_version(old, whole["metadata"])
        entries = whole["metadata"].get(MANAGED) or []
        changed = self._replace(old, without_nulls(whole), subresource, False, dry_run, Managing(manager, entries))
        return changed, "unchanged" if changed is old else "configured"

    def apply(
        self,
        raw: Raw,
        *,
        dry_run: bool = False,
        restore: bool = False,
        as_client: bool = False,
        manager: str = "",
        annotated: bool = True,
    ) -> tuple[Object, Applied]:
        """`kubectl apply`: create the object or merge the manifest into it (see `kschedd.store.patches.merging`).

        `annotated`: the object gets kubectl's last-applied annotation, which a later apply needs to remove fields.
        A Node's manifest also sets its status, since no real kubelet reports it here; so does any with `restore`.
        """
        kind, meta = self._creation.identified(raw, served=as_client)
        old = self._objects.find(kind, meta.get("namespace") or "", meta["name"])
        if old is None:
            made = self.create(
                first_applied(raw, annotated=annotated),
                dry_run=dry_run,
                restore=restore,
                as_client=as_client,
                manager=manager,
            )
            return made, "created"
        check_version(old, raw)
        with_status = restore or kind == "Node"
        changed = self._replace(
            old, applied(old, raw, annotated=annotated), "", with_status, dry_run, Managing(manager)
        )
        return changed, "unchanged" if changed is old else "configured"

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        grace_period_s: int | None = None,
        uid: str | None = None,
        resource_version: int | str | None = None,
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> Object:
        """Delete an object, or mark it if it first has something to finish; returns its last state.

        Dependents are for the garbage machine to delete. `uid` and `resource_version` are preconditions (None: any).
        """
        old = self._objects.get(kind, namespace, name)
        check_grace_period(grace_period_s)
        check_delete_preconditions(old, uid, resource_version)
        asked = Attributes("DELETE", kind, namespace, name)
        self._admission.authorize(asked, None, old.raw)
        if kind == "Namespace" and name in UNDELETABLE:
            raise Forbidden(kind, name, "this namespace may not be deleted")
        self._admission.validate_whole(asked, None, old.raw)
        left = begin_deletion(old, grace_period_s, propagation, self._now())
        if dry_run:
            if left is None and isinstance(old, Pod):
                left = marked(old, self._now())
            return old if left is None else retyped(old, left)
        if kind == custom.DEFINITION:
            return self._delete_definition(old, left)
        if left is not None:
            return self._write(old, left)
        if isinstance(old, Pod):
            # Pods are deleted gracefully even without a grace period: watchers see that it is being deleted first.
            if not old.deleting:
                return self._end(old)
            old = self._write(old, marked(old, self._now()))
        return self._remove(old)

    def _end(self, old: Pod) -> Pod:
        """Delete a pod that nobody has begun to delete, and that has nothing to wait for."""
        going = marked_pod(old, self._now(), self.log.version + 1)
        gone = going.at_version(self.log.version + 2)
        self._objects.commit_end(old, going, gone)
        return gone

    def _delete_definition(self, old: Object, left: dict[str, Any] | None) -> Object:
        """Delete the objects of a custom resource, and its definition with the last of them."""
        kind = custom.defined_kind(old).name if is_established(old) else ""  # else the objects are another one's
        for obj in tuple(self.list(kind)):
            if not obj.deleting:
                self.delete(kind, obj.namespace, obj.name)
        if not self.count(kind):
            return self._remove(old) if left is None else self._write(old, left)
        return self._write(old, custom.with_cleanup(left or old.raw, stamp(self._now())))

    def _finish_definition(self, gone: Object) -> None:
        """Let the definition of a custom resource go if it was only waiting for this object."""
        if self.count(gone.kind):
            return
        there = custom.definition_of(self, gone.raw)
        if there is not None and there.deleting:
            self._write_or_remove(there, custom.without_cleanup(there.raw))

    def finalize_namespace(self, name: str) -> Object:
        """Let an emptied namespace go: the word of the one who emptied it."""
        old = self.get("Namespace", "", name)
        spec = {field: value for field, value in old.spec.items() if field != "finalizers"}
        return self._write_or_remove(old, {**old.raw, "spec": spec})

    def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Pod:
        """Give a pod its node: the Binding subresource. Whether the node exists is not asked, as upstream."""
        return self._bind(namespace, name, node_name, uid, stamp(self._now()))

    def _bind(self, namespace: str, name: str, node_name: str, uid: str, at: str) -> Pod:
        pod = self._objects.find("Pod", namespace, name)
        if pod is None:
            raise NotFound("Pod", name)
        assert isinstance(pod, Pod)
        if self._admission.user is not None:
            self._admission.authorize(Attributes("CREATE", "Pod", namespace, name, "binding"), None, pod.raw)
        refuse_binding(pod, node_name, uid)
        now_bound = bound(pod, node_name, self.log.version + 1, at)
        self._objects.commit_binding(pod, now_bound)
        return now_bound

    def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        resource_version: int | str | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> Pod:
        """The Eviction subresource: delete a pod if its disruption budget allows that; returns its last state.

        As upstream, the preconditions are those of the deletion: the budget has been asked, and spent, before them.
        """
        pod = self.get("Pod", namespace, name)
        assert isinstance(pod, Pod)
        self._admission.authorize(Attributes("CREATE", "Pod", namespace, name, "eviction"), None, pod.raw)
        budget = eviction.guarding(pod, self.list(eviction.BUDGET, namespace))
        if budget is not None:
            status = eviction.spent(budget, pod, stamp(self._now()))
            if not dry_run:
                self.update_status({**budget.raw, "status": status})
        check_delete_preconditions(pod, uid, resource_version)
        if not dry_run:
            conditions = eviction.with_disruption_target(pod, stamp(self._now()))
            self.patch_status("Pod", namespace, name, {"conditions": conditions})
        gone = self.delete("Pod", namespace, name, grace_period_s=grace_period_s, uid=pod.uid, dry_run=dry_run)
        assert isinstance(gone, Pod)
        return gone

    def bind_many(self, bindings: Iterable[Bind]) -> builtins.list[Exception | None]:
        """Bind each on its own, all at one time; why each could not be bound (None: it is), in the same order.

        That is an ApiError, or, where the pod is at fault, whatever handling it raises.
        """
        at = stamp(self._now())
        failures: builtins.list[Exception | None] = []
        for wanted in bindings:
            try:
                self._bind(wanted.namespace, wanted.name, wanted.node_name, wanted.uid, at)
                failures.append(None)
            except ApiError as refusal:
                failures.append(without_traceback(refusal))
            except Exception as fault:  # of this pod: the others are bound
                failures.append(fault)
        return failures

    # --- keeping -----------------------------------------------------------------------------------------------

    def replay(self, events: Iterable[tuple[EventType, Object]]) -> None:
        """Take over writes that were committed before, as the journal has them; their versions follow on from ours."""
        try:
            for event_type, obj in events:
                self._objects.commit(event_type, self._objects.find(obj.kind, obj.namespace, obj.name), obj)
        finally:
            self._generated.begin_at(self.version)

    def roll_back(self, version: int) -> None:
        """Take back what was written after this version, none of which was shown."""
        self._objects.roll_back(version)

    def take_in(self, objects: Iterable[Object]) -> Generator[None, None, builtins.list[Object]]:
        """Hold objects as they stood in another cluster, each with the next version; those that were in the way.

        What is built in gives way to the dump's object of its name; an object of the same uid is replaced; any other of
        its name stays. It may be left wherever it yields, but nobody else may write before it is done.
        """
        in_the_way: builtins.list[Object] = []
        for obj in objects:
            old = self._objects.find(obj.kind, obj.namespace, obj.name)
            if old is not None and old.uid != obj.uid and not is_built_in(old):
                in_the_way.append(old)
                continue
            event: EventType = ADDED if old is None else MODIFIED
            self._objects.commit(event, old, obj.at_version(self.log.version + 1), loaded=True)
            yield
        self._objects.forget_uids()
        return in_the_way

    def refuse_writes(self, refusal: ApiError) -> None:
        """From now on nothing changes but by `reflect`: whatever else would be written is refused so."""
        self._objects.refusal = refusal

    def reflect(self, objects: Iterable[Object], gone: Iterable[Key]) -> Generator[None, None, None]:
        """Hold objects as they stand in the cluster that this one mirrors, each with the next version, and let go of
        those that are gone there. It may be left wherever it yields, but nobody else may write before it is done."""
        refusal, self._objects.refusal = self._objects.refusal, None
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
                yield
        finally:
            self._objects.refusal = refusal

    def take_over(self, obj: Object) -> None:
        """Hold an object as it was, with the version it had: for whoever starts a store. All of it or nothing."""
        self._objects.place_whole(obj)

    # --- what is tried out aside -------------------------------------------------------------------------------

    def fork(self) -> "Store":
        """A store of its own with the same objects, at this moment's time; see `kschedd.store.trial`."""
        return run_steps(self.forking())

    def forking(self, since: int | None = None) -> Generator[None, None, "Store"]:
        """In steps, between which nobody may write: a store of its own with the same objects, at this moment's time.

        With `since` it is to go on as this one would: the events after that version are in its log, and the names and
        uids that it will make are those that this one would. Raises Gone where the log does not go back that far.
        """
        if since is not None and since < self.log.oldest:
            raise Gone(since, self.log.oldest)
        moment = self._now()
        twin = Store(
            now=lambda: moment,
            seed=self._generated.seed,
            admission=self.admission,
            objects=(),
            version=self.version if since is None else since,
            events=() if since is None else self.log.written_after(since),
            max_object_bytes=self.max_object_bytes,
            service_range=self.service_range,
            rules=self.rules,
        )
        twin.keep_admitted(self._pod_strategy.remembered.most, self._pod_strategy.remembered_with_node_affinity.most)
        if since is not None:
            twin._generated.go_on_as(self._generated)
        yield from twin._objects.copying(self._objects)
        return twin

    def changes_since(self, version: int) -> Changes:
        return changes_of(version, self.log.written_after(version))

    def adopt(self, changes: Changes) -> Generator[None, None, Mapping[Key, Object] | None]:
        """Do here what was done to a fork, object by object; what they became here, or None if that is stale.

        It may be left wherever it yields, but nobody else may write before it is done.
        """
        if not self.log.oldest <= changes.since <= self.version or changes.stale(self.log.written_after(changes.since)):
            return None
        if not (yield from unchanged(changes, self._objects.find)):
            return None  # what the fork had seen was taken back
        adopted: dict[Key, Object] = {}
        for key, (old, new) in changes.objects.items():
            if new is None:
                assert old is not None, "what neither was nor is has not changed"
                self._remove(old)
            else:
                version = self.log.version + 1
                # A fork gives its own uids to objects that get others here.
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

    # --- how a write is made -----------------------------------------------------------------------------------

    def _charge(self, charges: Iterable[Charge]) -> None:
        """Write what is used of the quotas: the last thing that could keep the write itself from being done."""
        for quota, used in charges:
            self._write(quota, {**quota.raw, "status": {**quota.status, "used": used}})

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
            asked = Attributes("UPDATE", old.kind, old.namespace, old.name, subresource)
            charges = self._admission.charges(asked, wanted, old.raw)
            if not dry_run:
                self._charge(charges)
        wanted = self._replacement.managed(old, wanted, requested, subresource, managing)
        if dry_run:
            if _equal(old, wanted):
                return old
            meta = {**wanted["metadata"], "resourceVersion": old.metadata["resourceVersion"]}
            return retyped(old, {**wanted, "metadata": meta})
        if "selfLink" in wanted["metadata"]:  # is not stored, so only an answer to a dry run has it
            wanted["metadata"] = {field: each for field, each in wanted["metadata"].items() if field != "selfLink"}
        noted = managing.manager if isinstance(managing.manager, Component) and subresource == "status" else ""
        return self._write_or_remove(old, wanted, noted)

    def _write_or_remove(self, old: Object, wanted: dict[str, Any], noted: str = "") -> Object:
        """Write `wanted` unless nothing changes; if the object was only waiting for this change to go, it goes."""
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

    def _accept_freed_names(self) -> None:
        """A definition is gone: others may have the names that were its own."""
        for definition in tuple(self.list(custom.DEFINITION)):
            named = with_names(self, definition.raw)
            if named["status"] != definition.raw.get("status"):
                self._write(definition, named)

    def _changed(self, kind: str) -> None:
        """An object that is no pod came, went, or changed: what pods like those before become may be something else."""
        if self._prototypes is not None:
            self._prototypes.clear()
        if kind in _CLASSES:
            self._pod_strategy.forget()
        elif kind in _SCOPES:
            self._pod_strategy.forget_scopes()


def _equal(old: Object, wanted: Raw) -> bool:
    """Return whether `wanted` states what the object already is, at whichever version."""
    meta = {**wanted["metadata"], "resourceVersion": old.metadata.get("resourceVersion")}
    return meta == old.metadata and _but_metadata(wanted) == _but_metadata(old.raw)


def _but_metadata(raw: Raw) -> dict[str, Any]:
    """What the object states besides its metadata."""
    return {part: value for part, value in raw.items() if value is not None and part != "metadata"}
