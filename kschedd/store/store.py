"""The embedded API server: every object of the cluster, the rules of writing them, and the log of what was written.

Every write has the next resourceVersion and adds one event to the log; readers get typed objects that never change.
A write that would change nothing is none: it adds no version and no event, so two writers cannot feed each other for
ever. Pods take a fast path (`pod_strategy`): equal specs are checked once and held once.

Owns all objects, indexes over them (pods by node, dependents by owner) and the event log. Does no I/O and waits for
nothing: whoever owns the store (an actor, a simulation, a what-if fork) calls it. Time comes from `now` (seconds since
the epoch), randomness from `seed`: the same calls give the same uids and names.
Raises: the errors in `kschedd.store.errors`, nothing else.
"""

import builtins
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import attrs

from kschedd.api.codec import decoded_object, encoded_object
from kschedd.api.decoding import FieldValidation
from kschedd.api.fields import FieldError, invalid, required
from kschedd.api.kinds import BY_NAME, Kind, group_of, kind_of
from kschedd.api.objects import Object, Raw, parse
from kschedd.api.pods import Pod
from kschedd.api.schema_check import check_meta_schema, check_schema, without_nulls
from kschedd.api.selector_text import FieldSelector
from kschedd.api.selectors import LabelSelector
from kschedd.config.kube_versions import DEFAULT
from kschedd.config.rules import Rules
from kschedd.devices.checks import KINDS as DEVICE_KINDS
from kschedd.devices.checks import admin_faults, selector_faults
from kschedd.errors import without_traceback
from kschedd.managed_fields.field_manager import FieldWrite
from kschedd.registry.defaults import default_typed
from kschedd.registry.service_addresses import stack_faults, validate_addresses
from kschedd.registry.strategy import prepare_create, prepare_finalize, prepare_status, prepare_update, strategy_of
from kschedd.registry.validation import status_meta_faults, times_validated, validate_updated
from kschedd.registry.validation_update import validate_status_update, validate_version
from kschedd.store import custom, eviction, patches, updates
from kschedd.store.admission import NAMESPACE_LIFECYCLE, Admission
from kschedd.store.admission_plugins.attributes import Attributes, Operation, UserInfo
from kschedd.store.admission_plugins.podpriority import SYSTEM_CLASSES
from kschedd.store.admission_plugins.resourcequota import QUOTA
from kschedd.store.apply import applied, first_applied
from kschedd.store.binding import bound, refuse_binding
from kschedd.store.cluster_api import Applied
from kschedd.store.deletion import Propagation, begin_deletion, check_delete_preconditions, finished, marked
from kschedd.store.errors import (
    AlreadyExists,
    ApiError,
    ApplyError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooLarge,
    Undecodable,
)
from kschedd.store.identity import check_path, check_version, same_object
from kschedd.store.indexes import Indexes
from kschedd.store.job_selector import with_own_labels, with_selector
from kschedd.store.leases import LEASE, renewed
from kschedd.store.log import ADDED, DELETED, MODIFIED, Cursor, EventLog, EventType, WatchEvent
from kschedd.store.managing import (
    MANAGED,
    NOBODY,
    Component,
    Managing,
    applied_by,
    as_stated,
    entries_after,
    entries_of_new,
    field_write,
    new_pod_entries,
    noted_after,
    unless_times_only,
    with_entries,
    with_resolved_entries,
)
from kschedd.store.patch_decoding import decode_patched
from kschedd.store.patching import PatchType, patched
from kschedd.store.pod_prototype import PodPrototype, PodPrototypes
from kschedd.store.pod_strategy import (
    MOST_NODE_AFFINITIES,
    SHARED_META,
    PodStrategy,
    accepted,
    checked_status,
    new_pod,
    packed,
    rebuild_pod,
    status_with_faults,
)
from kschedd.store.service_addresses import SERVICE_RANGE, allocate
from kschedd.store.set_aside import SetAside
from kschedd.store.system_namespaces import BUILT_IN_NAMESPACES, UNDELETABLE
from kschedd.store.times import stamp
from kschedd.store.trial import Changes, Key, changes_of
from kschedd.store.writes import Bind
from kschedd.values import run_steps

_NOTHING: Mapping[str, Any] = {}
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED_BASE: Final = 58
MAX_OBJECT_BYTES: Final = 1536 * 1024  # etcd's --max-request-bytes
_ASIDE: Final = frozenset(("Event", "Lease"))  # what is written about others does not change what others are called
_LOOKED_AT: Final = 1_000  # objects of a fork, before others may have their turn
_CLASSES: Final = frozenset(("PriorityClass", "RuntimeClass"))
_SCOPES: Final = frozenset(("Namespace", "LimitRange"))


class Store:
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
        rules: Rules = DEFAULT.rules,
    ) -> None:
        self.max_object_bytes = max_object_bytes
        self.service_range = service_range
        self._now = now
        self._seed = seed
        self._random = random.Random(f"{seed}/{version}")
        self._random_aside = random.Random(f"{seed}/{version}/aside")  # of `_ASIDE`
        self._admission = admission or Admission()
        self._by_kind: dict[str, dict[str, dict[str, Object]]] = {}
        self._indexes = Indexes()
        self._log = EventLog(version, history=history, events=events)
        self._pod_strategy = PodStrategy(self._admission, self, lambda: self.features)
        self.stand_for(rules)
        self.set_aside: Sequence[SetAside] = ()  # what it started without
        self._seeding = False  # what is built in is no request: no plugin of a file is asked about it
        self._user: UserInfo | None = None  # in whose name something is done
        self._warnings: builtins.list[str] = []
        self._uids: set[str] | None = None  # of all objects, once anybody has brought one along
        self._prototypes: PodPrototypes | None = None  # within a request of several writes
        if objects is None:
            self.seed_defaults()
        else:
            for obj in objects:
                self._place(None, obj)

    def keep_history(self, events: int) -> None:
        """Have watches begin at least so many changes back."""
        self._log.keep(events)

    @property
    def history_used(self) -> tuple[int, int]:
        """How many changes are kept, and how many there were at most."""
        return self._log.used

    def keep_admitted(self, most: int, node_affinities: int = MOST_NODE_AFFINITIES) -> None:
        """Keep what admission made of at most so many kinds of pods, and of so many node affinities of theirs."""
        self._pod_strategy.remembered.most = most
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

    def seed_defaults(self) -> None:
        """Create what every cluster has, as far as it is not there."""
        self._seeding = True
        try:
            self._seed_defaults()
        finally:
            self._seeding = False

    def _seed_defaults(self) -> None:
        for name in BUILT_IN_NAMESPACES:
            if self.find("Namespace", "", name) is None:
                self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            if self.find("PriorityClass", "", name) is not None:
                continue
            wording = "nodes" if "node" in name else "clusters"
            self.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                    "preemptionPolicy": "PreemptLowerPriority",
                    "description": f"Used for system critical pods without which {wording} cannot work.",
                }
            )

    # --- reading -----------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the last write."""
        return self._log.version

    def stand_for(self, rules: Rules) -> None:
        """Be the API server of the version of Kubernetes in which these rules hold."""
        self.rules = rules
        self.features = frozenset(rules.names)
        self._pod_strategy.forget()

    @property
    def now(self) -> float:
        return self._now()

    def set_clock(self, now: Callable[[], float]) -> None:
        """From now on this is the time."""
        self._now = now

    @property
    def admission(self) -> Admission:
        return self._admission

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        try:
            found = self._by_kind[kind][namespace][name]
        except KeyError:
            return None
        return renewed(found, self._now()) if kind == LEASE else found

    def get(self, kind: str, namespace: str, name: str) -> Object:
        found = self.find(kind, namespace, name)
        if found is None:
            raise NotFound(kind, name)
        return found

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
    ) -> Sequence[Object]:
        """All objects of a kind, sorted by namespace and name; `namespace` None means all of them."""
        spaces = self._by_kind.get(kind) or {}
        chosen = sorted(spaces) if namespace is None else [namespace]
        found = [spaces[space][name] for space in chosen if space in spaces for name in sorted(spaces[space])]
        if label_selector is not None and not label_selector.empty:
            found = [obj for obj in found if label_selector.matches(obj.labels)]
        if field_selector is not None and field_selector.requirements:
            found = [obj for obj in found if field_selector.matches(obj.raw)]
        return self._as_read(kind, found)

    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]:
        """All objects of a kind as they are now, by namespace, in no order: for `listing.in_order` to put in one."""
        spaces = self._by_kind.get(kind) or {}
        chosen = sorted(spaces) if namespace is None else [namespace]
        return [self._as_read(kind, [*spaces[space].values()]) for space in chosen if spaces.get(space)]

    def _as_read(self, kind: str, found: builtins.list[Object]) -> builtins.list[Object]:
        """Objects as readers see them: of Leases that somebody here renews the latest renewal."""
        if kind != LEASE:
            return found
        now = self._now()
        return [renewed(obj, now) for obj in found]

    def present_in(self, kind: str, namespace: str) -> bool:
        """Whether there are, or were, objects of a kind in a namespace: asked for each new pod."""
        return kind in self._by_kind and namespace in self._by_kind[kind]

    def kinds(self) -> Sequence[str]:
        """The kinds of which there is at least one object."""
        return sorted(kind for kind, spaces in self._by_kind.items() if any(spaces.values()))

    def kind_of(self, raw: Raw) -> Kind:
        """The kind of an object; that of a custom resource as its definition has it, if there is one."""
        known = kind_of(raw)
        definition = None if known.known else self._definition_of(raw)
        return known if definition is None else custom.defined_kind(definition)

    def count(self, kind: str) -> int:
        return sum(len(space) for space in (self._by_kind.get(kind) or {}).values())

    def owned_by(self, uid: str) -> Sequence[Object]:
        """The objects that name this uid in their ownerReferences, in order of creation."""
        return [self._by_kind[k][ns][n] for k, ns, n in self._indexes.dependents(uid)]

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """The pods that have this node, finished ones too, in the order in which they got it."""
        found = (self._by_kind["Pod"][ns][n] for ns, n in self._indexes.on_node(node_name))
        return [pod for pod in found if isinstance(pod, Pod)]

    def in_namespace(self, namespace: str) -> Sequence[Object]:
        """All that lives in a namespace."""
        return [obj for kind in sorted(self._by_kind) for obj in self._by_kind[kind].get(namespace, {}).values()]

    def watch(self, kinds: Iterable[str] | None = None, since_version: int | None = None) -> Cursor:
        """What is written after `since_version` (None: from now on). Raises Gone if that is no longer kept."""
        return self._log.watch(kinds, self.shown if since_version is None else since_version)

    def shown_after(self, version: int) -> builtins.list[WatchEvent]:
        """What was written after that version and may be shown, oldest first. Raises Gone if it is no longer kept."""
        return self._log.after(version)

    # --- keeping -----------------------------------------------------------------------------------------------

    @property
    def shown(self) -> int:
        """The version up to which watches see what was written: all of it, unless somebody calls `show`."""
        return self._log.shown

    def show(self, version: int) -> None:
        """Until the next call watches see what was written up to this version: the rest is not kept yet."""
        self._log.show(version)

    def written_after(self, version: int) -> builtins.list[WatchEvent]:
        """Shown or not."""
        return self._log.written_after(version)

    def written_between(self, after: int, up_to: int) -> builtins.list[WatchEvent]:
        """Shown or not."""
        return self._log.written_after(after)[: up_to - after]

    def roll_back(self, version: int) -> None:
        """Take back what was written after this version, none of which was shown."""
        for event in reversed(self._log.written_after(version)):
            self._place(None if event.type == DELETED else event.new, event.old)
        self._log.truncate(version)

    # --- who asks -----------------------------------------------------------------------------------------------

    @contextmanager
    def on_behalf_of(self, user: UserInfo) -> Iterator[builtins.list[str]]:
        """What is done inside is asked for by this user; the list takes what the user is to be warned of."""
        before = self._user, self._warnings
        self._user, self._warnings = user, []
        try:
            yield self._warnings
        finally:
            self._user, self._warnings = before

    def warn(self, text: str) -> None:
        """Tell the user in whose name something is done; once, however often it is found."""
        if self._user is not None and text not in self._warnings:
            self._warnings.append(text)

    def authorize(
        self,
        operation: Operation,
        kind: str,
        namespace: str,
        name: str,
        new: Raw | None,
        old: Raw | None,
        subresource: str = "",
    ) -> None:
        """Have admission refuse what the user may not do. Raises ApiError."""
        if self._user is None or not self._admission.asks_who(kind):
            return
        asked = Attributes(operation, kind, namespace, name, subresource, self._user)
        self._admission.authorize(asked, new, old, self)

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
        alike = None if dry_run or restore or manager or raw.get("kind") != "Pod" else self._prototypes
        if alike is not None and (prototype := alike.of(raw)) is not None:
            copied = self._copy(prototype, raw)
            if copied is not None:
                return copied
        made = self._create(raw, Managing(manager) if manager else NOBODY, dry_run, restore, as_client)
        if alike is not None and isinstance(made, Pod) and self._has_copies(made):
            alike.add(PodPrototype(made, raw, self._pod_strategy, self.max_object_bytes), raw)
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
        """What is written inside is one request's, whose manifests nobody changes meanwhile: pods may be copies."""
        within, self._prototypes = self._prototypes, self._prototypes or PodPrototypes()
        try:
            yield
        finally:
            self._prototypes = within

    def _has_copies(self, made: Pod) -> bool:
        """Whether nobody looks at each pod by itself."""
        asked_who = self._user is not None and self._admission.asks_who("Pod")
        return not (asked_who or self._admission.others or self.present_in(QUOTA, made.namespace))

    def _copy(self, prototype: PodPrototype, raw: Raw) -> Pod | None:
        """What `create` would make of this manifest, if that is a copy of the prototype."""
        admitted = prototype.admitted(raw)
        name = None if admitted is None else prototype.name_of_copy(raw)
        space = self._by_kind["Pod"][prototype.pod.namespace]
        if admitted is None or name is None or name in space or stamp(self._now()) != prototype.born:
            return None
        if prototype.generates:
            name = self._generated_name("Pod", prototype.pod.namespace, raw["metadata"]["generateName"])
        version = self._log.version + 1
        space[name] = made = prototype.copy(admitted, name, self._new_uid("Pod"), version)
        if prototype.indexed:
            self._indexes.move(None, made)
        if self._uids is not None:
            self._uids.add(made.uid)
        self._log.append(WatchEvent(ADDED, None, made, version))
        return made

    def _create(
        self, raw: Raw, managing: Managing, dry_run: bool, restore: bool = False, as_client: bool = False
    ) -> Object:
        kind, meta = self._identified(raw, served=as_client)
        name, namespace = meta["name"], meta.get("namespace") or ""
        self._check_namespace(kind, namespace, name)
        if self._user is not None and not (kind in BY_NAME and check_schema(dict(raw))):
            self.authorize("CREATE", kind, namespace, name, raw, None)
        if kind not in BY_NAME and not restore:
            raw = self._by_schema(raw, None, "")
        make = self._new_pod if kind == "Pod" else self._new_object
        created = make(kind, raw, meta, name, restore, dry_run, managing)
        if (there := self._space(kind, namespace).get(name)) is not None:
            other = str(there.raw.get("apiVersion") or "")
            alike = kind in BY_NAME or group_of(other) == group_of(str(raw.get("apiVersion") or ""))
            raise AlreadyExists(kind, name, deleting=there.deleting, other="" if alike else other)
        if self._admission.others and not (restore or self._seeding):
            self._admission.validate_whole(Attributes("CREATE", kind, namespace, name), created.raw, None)
        if (
            self.present_in(QUOTA, namespace)
            and not restore
            and self._charge(Attributes("CREATE", kind, namespace, name), created.raw, None, dry_run)
        ):
            created = created.at_version(self._log.version + 1)
        if not dry_run:
            self._commit(ADDED, None, created)
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
        kind, meta = self._identified(raw)
        old = self._existing(kind, meta.get("namespace") or "", meta["name"])
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
        old = self._existing(kind, namespace, name)
        if not isinstance(patch, Mapping) or not isinstance(patch.get("metadata") or _NOTHING, Mapping):
            raise Invalid(kind, name, (invalid("", patch, "a merge patch is a mapping, and so is its metadata"),))
        meta = patch.get("metadata") or _NOTHING
        updates.check_resource_version(old, meta)
        patched = {**patches.merge_patch(old.raw, patch), "metadata": patches.merge_patch(old.metadata, meta)}
        if "metadata" in patch and patch["metadata"] is None:
            patched["metadata"] = None
        return self._replace(old, same_object(old, patched), subresource, with_status, dry_run, Managing(manager))

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
        old = self._existing(kind, namespace, name)
        live = with_resolved_entries(old.raw)
        whole = patched(live, patch, patch_type, validation)
        whole, warnings = decode_patched(live, whole, patch, patch_type, validation, duplicates, self.features)
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
        old = self._stored(kind, namespace, name)
        named = {"kind": config.get("kind"), "apiVersion": api_version or config.get("apiVersion")}
        if old is not None:
            named["kind"] = old.raw["kind"]
        elif kind in BY_NAME:
            named["kind"] = kind
        write = self._field_write(manager, named, subresource, kind)
        if old is None:
            if subresource:
                raise NotFound(kind, name)
            return self._create_applied(kind, namespace, name, config, write, dry_run), "created"
        whole = same_object(old, applied_by(old, config, write, force=force))
        updates.check_resource_version(old, whole["metadata"])
        entries = whole["metadata"].get(MANAGED) or []
        changed = self._replace(old, without_nulls(whole), subresource, False, dry_run, Managing(manager, entries))
        return changed, "unchanged" if changed is old else "configured"

    def _create_applied(
        self, kind: str, namespace: str, name: str, config: Raw, write: FieldWrite, dry_run: bool
    ) -> Object:
        whole = applied_by(None, config, write, force=True)
        meta = whole["metadata"]
        if meta.get("uid"):
            why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
            raise Conflict(kind, name, why)
        check_path(kind, namespace, name, whole)
        if meta.get("resourceVersion"):
            raise ApplyError("resourceVersion should not be set on objects to be created")
        raw = without_nulls({**config, "metadata": {**(config.get("metadata") or {}), "namespace": namespace}})
        return self._create(raw, Managing(write.manager, meta.get(MANAGED) or []), dry_run, as_client=True)

    def apply(
        self,
        raw: Raw,
        *,
        dry_run: bool = False,
        restore: bool = False,
        as_client: bool = False,
        manager: str = "",
    ) -> tuple[Object, Applied]:
        """`kubectl apply`: create the object or merge the manifest into it (see `kschedd.store.patches`).

        A Node's manifest also sets its status, since no real kubelet reports it here; so does any with `restore`.
        """
        kind, meta = self._identified(raw, served=as_client)
        old = self._stored(kind, meta.get("namespace") or "", meta["name"])
        if old is None:
            made = self.create(
                first_applied(raw), dry_run=dry_run, restore=restore, as_client=as_client, manager=manager
            )
            return made, "created"
        check_version(old, raw)
        with_status = restore or kind == "Node"
        changed = self._replace(old, applied(old, raw), "", with_status, dry_run, Managing(manager))
        return changed, "unchanged" if changed is old else "configured"

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        grace_period_s: int | None = None,
        uid: str = "",
        resource_version: int | None = None,
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> Object:
        """Delete an object, or mark it if it first has something to finish; returns its last state.

        Dependents are for the garbage machine to delete. `uid` and `resource_version` are preconditions.
        """
        old = self._existing(kind, namespace, name)
        if grace_period_s is not None and not -(2**63) <= grace_period_s < 2**63:
            wrong = invalid("gracePeriodSeconds", grace_period_s, "must be a 64-bit integer")
            raise Invalid("DeleteOptions", "", (wrong,))
        check_delete_preconditions(old, uid, resource_version)
        self.authorize("DELETE", kind, namespace, name, None, old.raw)
        if kind == "Namespace" and name in UNDELETABLE:
            raise Forbidden(kind, name, "this namespace may not be deleted")
        if self._admission.others:
            self._admission.validate_whole(Attributes("DELETE", kind, namespace, name), None, old.raw)
        left = begin_deletion(old, grace_period_s, propagation, self._now())
        if dry_run:
            if left is None and isinstance(old, Pod):
                left = marked(old, self._now())
            return old if left is None else self._retyped(old, left)
        if kind == custom.DEFINITION:
            return self._delete_definition(old, left)
        if left is not None:
            return self._write(old, left)
        if isinstance(old, Pod):
            # Pods are deleted gracefully even without a grace period: watchers see that it is being deleted first.
            old = self._write(old, marked(old, self._now()))
        return self._remove(old)

    def _delete_definition(self, old: Object, left: dict[str, Any] | None) -> Object:
        """Delete the objects of a custom resource, and its definition with the last of them."""
        kind = custom.defined_kind(old).name
        for obj in tuple(self.list(kind)):
            if not obj.deleting:
                self.delete(kind, obj.namespace, obj.name)
        if not self.count(kind):
            return self._remove(old) if left is None else self._write(old, left)
        meta = {"deletionTimestamp": stamp(self._now()), **(left or old.raw)["metadata"]}
        meta["finalizers"] = [*(f for f in meta.get("finalizers") or () if f != custom.CLEANUP), custom.CLEANUP]
        return self._write(old, {**old.raw, "metadata": meta})

    def _finish_definition(self, gone: Object) -> None:
        """Let the definition of a custom resource go if it was only waiting for this object."""
        if self.count(gone.kind):
            return
        there = self._definition_of(gone.raw)
        if there is not None and there.deleting:
            left = [each for each in there.metadata.get("finalizers") or () if each != custom.CLEANUP]
            self._settle(there, {**there.raw, "metadata": {**there.metadata, "finalizers": left}})

    def finalize_namespace(self, name: str) -> Object:
        """Let an emptied namespace go: the word of the one who emptied it."""
        old = self.get("Namespace", "", name)
        spec = {field: value for field, value in old.spec.items() if field != "finalizers"}
        return self._settle(old, {**old.raw, "spec": spec})

    def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Pod:
        """Give a pod its node: the Binding subresource. Whether the node exists is not asked, as upstream."""
        return self._bind(namespace, name, node_name, uid, stamp(self._now()))

    def _bind(self, namespace: str, name: str, node_name: str, uid: str, at: str) -> Pod:
        try:
            space = self._by_kind["Pod"][namespace]
            pod = space[name]
        except KeyError:
            raise NotFound("Pod", name) from None
        assert isinstance(pod, Pod)
        if self._user is not None:
            self.authorize("CREATE", "Pod", namespace, name, None, pod.raw, "binding")
        refuse_binding(pod, node_name, uid)
        version = self._log.version + 1
        space[name] = now_bound = bound(pod, node_name, version, at)
        # Of all that is indexed only the node has changed.
        self._indexes.got_node(now_bound)
        self._log.append(WatchEvent(MODIFIED, pod, now_bound, version))
        return now_bound

    def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: int | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> Pod:
        """The Eviction subresource: delete a pod if its disruption budget allows that; returns its last state.

        As upstream, the preconditions are those of the deletion: the budget has been asked, and spent, before them.
        """
        pod = self.get("Pod", namespace, name)
        assert isinstance(pod, Pod)
        self.authorize("CREATE", "Pod", namespace, name, None, pod.raw, "eviction")
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

    def replay(self, events: Iterable[tuple[EventType, Object]]) -> None:
        """Take over writes that were committed before, as the journal has them; their versions follow on from ours."""
        try:
            for event_type, obj in events:
                self._commit(event_type, self._stored(obj.kind, obj.namespace, obj.name), obj)
        finally:
            self._random = random.Random(f"{self._seed}/{self.version}")
            self._random_aside = random.Random(f"{self._seed}/{self.version}/aside")

    def take_in(self, objects: Iterable[Object]) -> Generator[None, None, builtins.list[Object]]:
        """Hold objects as they stood in another cluster, each with the next version; those that were in the way.

        What is built in gives way to the dump's object of its name; an object of the same uid is replaced; any other of
        its name stays. It may be left wherever it yields, but nobody else may write before it is done.
        """
        in_the_way: builtins.list[Object] = []
        for obj in objects:
            old = self._stored(obj.kind, obj.namespace, obj.name)
            if old is not None and old.uid != obj.uid and not _is_built_in(old):
                in_the_way.append(old)
                continue
            self._commit(ADDED if old is None else MODIFIED, old, obj.at_version(self._log.version + 1))
            yield
        self._uids = None
        return in_the_way

    def take_over(self, obj: Object) -> None:
        """Hold an object as it was, with the version it had: for whoever starts a store. All of it or nothing."""
        try:
            self._place(None, obj)
        except Exception:
            self._space(obj.kind, obj.namespace).pop(obj.name, None)
            raise

    # --- what is tried out aside -------------------------------------------------------------------------------

    def fork(self) -> "Store":
        """A store of its own with the same objects, at this moment's time; see `kschedd.store.trial`."""
        return run_steps(self.forking())

    def forking(self, since: int | None = None) -> Generator[None, None, "Store"]:
        """In steps, between which nobody may write: a store of its own with the same objects, at this moment's time.

        With `since` it is to go on as this one would: the events after that version are in its log, and the names and
        uids that it will make are those that this one would. Raises Gone where the log does not go back that far.
        """
        if since is not None and since < self._log.oldest:
            raise Gone(since, self._log.oldest)
        moment = self._now()
        twin = Store(
            now=lambda: moment,
            seed=self._seed,
            admission=self._admission,
            objects=(),
            version=self.version if since is None else since,
            events=() if since is None else self._log.written_after(since),
            max_object_bytes=self.max_object_bytes,
            service_range=self.service_range,
            rules=self.rules,
        )
        twin.keep_admitted(self._pod_strategy.remembered.most, self._pod_strategy.remembered_with_node_affinity.most)
        if since is not None:
            twin._random.setstate(self._random.getstate())
            twin._random_aside.setstate(self._random_aside.getstate())
        for kind, spaces in self._by_kind.items():
            twin._by_kind[kind] = {namespace: space.copy() for namespace, space in spaces.items()}
            yield
        twin._indexes = yield from self._indexes.copying()
        return twin

    def changes_since(self, version: int) -> Changes:
        return changes_of(version, self._log.written_after(version))

    def adopt(self, changes: Changes) -> Generator[None, None, Mapping[Key, Object] | None]:
        """Do here what was done to a fork, object by object; what they became here, or None if that is stale.

        It may be left wherever it yields, but nobody else may write before it is done.
        """
        if not self._log.oldest <= changes.since <= self.version or changes.stale(
            self._log.written_after(changes.since)
        ):
            return None
        for number, (key, (old, _)) in enumerate(changes.objects.items(), 1):
            if self._stored(*key) is not old:
                return None  # what the fork had seen was taken back
            if not number % _LOOKED_AT:
                yield
        adopted: dict[Key, Object] = {}
        for key, (old, new) in changes.objects.items():
            if new is None:
                assert old is not None, "what neither was nor is has not changed"
                self._remove(old)
            else:
                meta = {**new.metadata, "resourceVersion": str(self._log.version + 1)}
                if old is None or old.uid != new.uid:
                    meta["uid"] = self._new_uid(new.kind)  # a fork gives those that others get here
                raw = {**new.raw, "metadata": meta}
                here = attrs.evolve(new, resource_version=self._log.version + 1, uid=meta["uid"], raw=raw)
                self._commit(ADDED if old is None else MODIFIED, old, here)
                adopted[key] = here
            yield
        return adopted

    # --- how a write is made -----------------------------------------------------------------------------------

    def _identified(self, raw: Raw, *, served: bool = False) -> tuple[str, dict[str, Any]]:
        """The kind, and the metadata with name and namespace as they will be stored.

        With `served` the kind must be one that is served in this version, else NoMatch.
        """
        kind = raw.get("kind")
        if not isinstance(kind, str) or not kind:
            raise Invalid("Object", "", (required("kind"),))
        given = raw.get("metadata")
        pod = kind == "Pod" and raw.get("apiVersion", "v1") == "v1"
        known = BY_NAME["Pod"] if pod else self._served_kind(raw) if served else self.kind_of(raw)
        if given is None:
            given = _NOTHING
        if type(given) is not dict and not isinstance(given, Mapping):
            raise Undecodable(known.name, "", (invalid("metadata", given, "must be a mapping"),))
        meta = {
            field: value
            for field, value in given.items()
            if value or (value is not None and value != {} and value != [])  # most say something: asked first
        }
        if known.namespaced:
            meta["namespace"] = meta.get("namespace") or "default"
        else:
            meta.pop("namespace", None)
        if not meta.get("name"):
            base = meta.get("generateName")
            if not base or not isinstance(base, str):
                if known.name in BY_NAME:
                    accepted(known.name, "", {**raw, "metadata": meta})  # whatever else is wrong with it is told, too
                raise Invalid(known.name, "", (required("metadata.name", "name or generateName is required"),))
            meta["name"] = self._generated_name(known.name, meta.get("namespace") or "", base)
        if not isinstance(meta["name"], str) or not isinstance(meta.get("namespace") or "", str):
            raise Invalid(known.name, "", (invalid("metadata", meta, "name and namespace must be text"),))
        return known.name, meta

    def _served_kind(self, raw: Raw) -> Kind:
        """The kind of an object to be made. Raises NoMatch, and Forbidden where its definition is about to go."""
        found = custom.served_kind(custom.definitions(self), raw)
        if not found.known:
            definition = self._definition_of(raw)
            if definition is not None and definition.deleting:
                why = "create not allowed while custom resource definition is terminating"
                raise Forbidden(found.name, "", why)
        return found

    def _definition_of(self, raw: Raw) -> Object | None:
        definitions = custom.definitions(self)
        return custom.find_definition(definitions, str(raw.get("kind")), str(raw.get("apiVersion")))

    def _generated_name(self, kind: str, namespace: str, base: str) -> str:
        taken = self._space(kind, namespace)
        while True:
            name = base[:_LONGEST_GENERATED_BASE] + "".join(self._random_of(kind).choices(_SUFFIX_LETTERS, k=5))
            if name not in taken:
                return name

    def _check_namespace(self, kind: str, namespace: str, name: str) -> None:
        if not namespace or not self._admission.enabled[NAMESPACE_LIFECYCLE]:
            return
        found = self.find("Namespace", "", namespace)
        if found is None:
            raise NotFound("Namespace", namespace)
        if found.deleting:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise Forbidden(kind, name, why)

    def _born(self, kind: str, meta: dict[str, Any], restore: bool) -> None:
        """Complete the metadata of a new object in place (it is our own copy)."""
        if not (restore and meta.get("uid")) or self.has_uid(meta["uid"]):
            meta["uid"] = self._new_uid(kind)
        if not (restore and meta.get("creationTimestamp")):
            meta["creationTimestamp"] = stamp(self._now())
        meta.pop("selfLink", None)
        if not restore:
            meta.pop("deletionTimestamp", None)
            meta.pop("deletionGracePeriodSeconds", None)
        meta.pop("managedFields", None)
        meta["resourceVersion"] = str(self._log.version + 1)
        if strategy_of(kind).born and not (restore and meta.get("generation")):
            meta["generation"] = 1

    def has_uid(self, uid: str) -> bool:
        """Whether an object has this uid already. Nobody can have it too: it is what objects are told apart by."""
        if self._uids is None:
            self._uids = {
                obj.uid for spaces in self._by_kind.values() for space in spaces.values() for obj in space.values()
            }
        return uid in self._uids

    def _random_of(self, kind: str) -> random.Random:
        return self._random_aside if kind in _ASIDE else self._random

    def _new_uid(self, kind: str) -> str:
        bits = self._random_of(kind).getrandbits(128).to_bytes(16, "big").hex()  # half the time of formatting it
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

    def _field_write(self, manager: str, raw: Raw, subresource: str, stored: str = "") -> FieldWrite:
        known = raw.get("kind") in BY_NAME
        return field_write(
            manager, raw, None if known else self._definition_of(raw), subresource, stamp(self._now()), stored
        )

    def _new_pod(
        self,
        kind: str,
        raw: Raw,
        meta: dict[str, Any],
        name: str,
        restore: bool,
        dry_run: bool,
        managing: Managing,
    ) -> Object:
        spec = raw.get("spec")
        node_name = (spec.get("nodeName") or "") if type(spec) is dict or isinstance(spec, Mapping) else ""
        if raw.get("apiVersion") != "v1":
            accepted(kind, name, {**raw, "metadata": meta})
        admitted = self._pod_strategy.admit(raw, meta, name)
        for warning in admitted.warnings:
            self.warn(warning)
        for field in SHARED_META:
            meta.pop(field, None)
        meta.update(admitted.meta)
        if admitted.annotations:
            meta["annotations"] = {**(meta.get("annotations") or {}), **admitted.annotations}
        self._born(kind, meta, restore)
        if managing is not NOBODY and (managing.manager or managing.entries):
            meta[MANAGED] = new_pod_entries(managing, meta, admitted.stated_spec, node_name)
        status: Raw = admitted.status_at(meta["creationTimestamp"])
        if restore and raw.get("status"):
            status = self._pod_strategy.restored_status(status, raw, meta, name)
        self._check_size(kind, name, admitted.size + len(packed(kind, name, (meta, status))))
        return new_pod(raw, meta, admitted, node_name, status)

    def _new_object(
        self,
        kind: str,
        raw: Raw,
        meta: dict[str, Any],
        name: str,
        restore: bool,
        dry_run: bool,
        managing: Managing,
    ) -> Object:
        asked = Attributes("CREATE", kind, meta.get("namespace") or "", name)
        entries = managing.entries

        def prepare(defaulted: dict[str, Any]) -> dict[str, Any]:
            nonlocal entries
            if entries is None and managing.manager:
                write = self._field_write(managing.manager, defaulted, "", kind)
                entries = entries_of_new(encoded_object(as_stated(defaulted, raw)), write)
            admitted = self._admission.admit(asked, defaulted, self)
            prepared = prepare_create(kind, admitted, stamp(self._now()), self.features)
            if restore and defaulted.get("status"):
                prepared["status"] = defaulted["status"]
            meta = dict(prepared["metadata"])
            if restore and (given := defaulted["metadata"].get("generation")):
                meta["generation"] = given
            if kind == "Job":
                self._born(kind, meta, restore)
            prepared["metadata"] = meta
            if kind == "Service" and not restore:
                return self._with_addresses(prepared, None, dry_run)
            if kind == "Job":
                return with_selector(prepared)
            return prepared

        whole = accepted(kind, name, {**raw, "metadata": meta}, prepare, self._all_device_faults)
        if kind == "Job" and not (raw.get("metadata") or {}).get("labels"):
            whole = with_own_labels(whole)
        self._check_schemas(kind, whole)
        for warning in self._admission.validate(asked, whole, None, self):
            self.warn(warning)
        if kind != "Job":  # whose selector names its uid
            meta = dict(whole["metadata"])
            self._born(kind, meta, restore)
            whole["metadata"] = meta
        stored = encoded_object(whole)
        if entries:
            stored = with_entries(stored, entries)
        self._check_size(kind, name, len(packed(kind, name, stored)))
        return self._typed(kind, stored)

    def _with_addresses(self, service: dict[str, Any], old: Object | None, dry_run: bool) -> dict[str, Any]:
        """A Service with its cluster IP and node ports; raises Invalid if it cannot have those it asks for.

        Of one whose ports or address are at fault by themselves nothing is allocated: validation refuses it.
        """
        spec = service["spec"]
        faults = validate_addresses(spec) or stack_faults(spec, None if old is None else old.spec)
        if faults:
            raise Invalid("Service", service["metadata"].get("name") or "", tuple(faults))
        others = [obj for space in self.present("Service") for obj in space if old is None or obj.uid != old.uid]
        return allocate(service, others, self.service_range, dry_run)

    def _charge(self, asked: Attributes, raw: Raw, old: Raw | None, dry_run: bool) -> bool:
        """Count the object against the quotas of its namespace; whether any was written.

        Raises Forbidden where it does not fit: the last thing that can keep a write from being done.
        """
        if not self.present_in(QUOTA, asked.namespace):
            return False
        charges = self._admission.charges(asked, raw, old, self)
        if not dry_run:
            for quota, used in charges:
                self._write(quota, {**quota.raw, "status": {**quota.status, "used": used}})
        return bool(charges) and not dry_run

    def _check_size(self, kind: str, name: str, size: int) -> None:
        if size > self.max_object_bytes:
            raise TooLarge(kind, name, size, self.max_object_bytes)

    def _device_faults(self, kind: str, raw: Raw) -> tuple[builtins.list[FieldError], builtins.list[FieldError]]:
        """Device selectors that do not compile, and admin access where the namespace does not allow it."""
        if kind not in DEVICE_KINDS:
            return [], []
        namespace = self.find("Namespace", "", raw["metadata"].get("namespace") or "")
        shares = self.rules.consumable_capacity
        return selector_faults(raw, shares=shares), admin_faults(raw, {} if namespace is None else namespace.labels)

    def _all_device_faults(self, raw: Raw) -> builtins.list[FieldError]:
        selectors, admin = self._device_faults(raw.get("kind") or "", raw)
        return admin + selectors

    def _by_schema(self, raw: Raw, old: Object | None, subresource: str) -> Raw:
        """A custom object as its schema has it. A status with a subresource of its own is changed by that only."""
        definition = self._definition_of(raw)
        if definition is None:
            return raw
        made = custom.by_schema(definition, raw, old)
        if not subresource and custom.has_status(definition, str(raw.get("apiVersion") or "")):
            made.pop("status", None)
            if old is not None and "status" in old.raw:
                made["status"] = old.raw["status"]
        return made

    def _check_schemas(self, kind: str, raw: Raw) -> None:
        """Refuse a definition whose schemas are not structural, or have rules that do not compile."""
        if kind != custom.DEFINITION:
            return
        if faults := custom.definition_faults(raw):
            raise Invalid(kind, raw["metadata"].get("name") or "", tuple(faults))

    def _typed(self, kind: str, raw: Raw) -> Object:
        if kind in BY_NAME:
            return parse(raw)
        # A kind of another group may bear the name of one of ours: it is known by kind and group.
        return attrs.evolve(Object.from_raw(raw), kind=kind)

    def _replace(
        self,
        old: Object,
        raw: Raw,
        subresource: updates.Subresource,
        with_status: bool,
        dry_run: bool,
        managing: Managing = NOBODY,
    ) -> Object:
        if subresource == "status" and isinstance(old, Pod):
            # Much the most frequent write; the rest of the pod is not looked at.
            mistyped = [] if raw.get("metadata") == old.metadata else check_meta_schema(raw.get("metadata"))
        else:
            mistyped = check_schema(dict(raw)) if old.kind in BY_NAME else []
        if mistyped:
            raise Undecodable(old.kind, old.name, tuple(mistyped))
        self.authorize("UPDATE", old.kind, old.namespace, old.name, raw, old.raw, subresource)
        if old.kind not in BY_NAME:
            raw = self._by_schema(raw, old, subresource)
        requested: Raw
        if subresource == "status":
            requested = wanted = self._checked_status(old, raw)
            self._check_size(old.kind, old.name, len(packed(old.kind, old.name, wanted.get("status"))))
        else:
            wanted, requested = self._checked(old, raw, subresource, dry_run)
            if with_status and raw.get("status"):
                wanted = checked_status(old.kind, old.name, {**wanted, "status": raw["status"]})
            self._check_size(old.kind, old.name, len(packed(old.kind, old.name, wanted)))
            asked = Attributes("UPDATE", old.kind, old.namespace, old.name, subresource)
            if self._admission.others and not subresource:
                self._admission.validate_whole(asked, wanted, old.raw)
            self._charge(asked, wanted, old.raw, dry_run)
        wanted = self._managed(old, wanted, requested, subresource, managing)
        if dry_run:
            meta = {**wanted["metadata"], "resourceVersion": old.metadata["resourceVersion"]}
            return self._retyped(old, {**wanted, "metadata": meta})
        noted = managing.manager if isinstance(managing.manager, Component) and subresource == "status" else ""
        return self._settle(old, wanted, noted)

    def _managed(
        self, old: Object, wanted: dict[str, Any], requested: Raw, subresource: str, managing: Managing
    ) -> dict[str, Any]:
        """The object with its entries after this write; where nobody is named, or only noted, with those it had."""
        before = old.metadata.get(MANAGED)
        if not managing.manager or (isinstance(managing.manager, Component) and subresource == "status"):
            if wanted["metadata"].get(MANAGED) is before:
                return wanted
            return with_entries(wanted, before or [])
        entries = managing.entries
        if entries is None:
            write = self._field_write(managing.manager, old.raw, subresource, old.kind)
            entries = entries_after(old, requested, write)
        return unless_times_only(old, with_entries(wanted, entries))

    def _checked_status(self, old: Object, raw: Raw) -> dict[str, Any]:
        """The object with its new status, decoded and found valid."""
        given = raw.get("metadata") or _NOTHING
        meta = old.metadata if given == old.metadata else updates.merged_meta(old, given)
        wanted = {**raw, "metadata": meta}
        if not isinstance(old, Pod) and old.kind in BY_NAME:
            wanted = default_typed(decoded_object(wanted))
        elif meta is not old.metadata:
            wanted["metadata"] = decoded_object({**old.raw, "metadata": meta})["metadata"]
        wanted = prepare_status(old.kind, wanted, old.raw, stamp(self._now()))
        faults: builtins.list[FieldError] = []
        if meta is not old.metadata:
            faults = status_meta_faults(kind_of(old.raw), wanted["metadata"], updates.meta_faults(old, given))
        wanted, wrong = status_with_faults(old.kind, old.name, wanted)
        if faults := [*faults, *wrong, *validate_status_update(old.raw, wanted)]:
            raise Invalid(old.kind, old.name, tuple(faults))
        return wanted

    def _checked(
        self, old: Object, raw: Raw, subresource: updates.Subresource, dry_run: bool
    ) -> tuple[dict[str, Any], Raw]:
        """The object as defaulted, admitted and found valid; its generation counted up if it asks for something new.

        And the object as it was asked for: with its defaults alone, where admission may have changed it.
        """
        wanted = updates.merged_update(old, raw, subresource)
        wrong = updates.meta_faults(old, raw.get("metadata") or _NOTHING)

        asked = Attributes("UPDATE", old.kind, old.namespace, old.name, subresource)
        # A pod's update is compared as it is stored, any other as it is decoded.
        before = old.raw if isinstance(old, Pod) else decoded_object(dict(old.raw))

        requested: list[dict[str, Any]] = []

        def prepare(new: dict[str, Any]) -> dict[str, Any]:
            requested.append(new)
            if subresource == "finalize":
                return prepare_finalize(new, before)
            prepared = prepare_update(old.kind, new, before, self.features)
            return self._with_addresses(prepared, old, dry_run) if old.kind == "Service" else prepared

        def check(new: Raw) -> builtins.list[FieldError]:
            found = updates.update_faults(old, before, new, subresource)
            if not isinstance(old, Pod):
                selectors, admin = self._device_faults(old.kind, new)
                found += times_validated(old.kind) * selectors + admin
            return found

        if isinstance(old, Pod):
            wanted["spec"] = _kept_fields(old.raw["spec"], wanted.get("spec"))
            checked = self._pod_strategy.admit_update(wanted, old, subresource, check, wrong, self.warn)
            checked = prepare(checked)
            if checked["spec"] == old.raw["spec"]:
                checked["spec"] = old.raw["spec"]
            return checked, checked
        checked = accepted(old.kind, old.name, wanted, prepare, check, lambda done: validate_updated(done, wrong))
        self._check_schemas(old.kind, checked)
        for warning in self._admission.validate(asked, checked, before, self):
            self.warn(warning)
        return encoded_object(checked), encoded_object(requested[0])

    def _settle(self, old: Object, wanted: dict[str, Any], noted: str = "") -> Object:
        """Write `wanted` unless nothing changes; if the object was only waiting for this change to go, it goes."""
        if finished(old.kind, wanted):
            gone = self._remove(old)
            meta = {**wanted["metadata"], "resourceVersion": str(gone.resource_version)}
            return self._retyped(old, {**wanted, "metadata": meta})
        return self._write(old, wanted, noted)

    def _write(self, old: Object, wanted: dict[str, Any], noted: str = "") -> Object:
        meta = {**wanted["metadata"], "resourceVersion": old.metadata.get("resourceVersion")}
        if meta == old.metadata and all(
            wanted.get(part) is old.raw.get(part) or wanted.get(part) == old.raw.get(part)
            for part in wanted.keys() | old.raw.keys()
            if part != "metadata"
        ):
            return old
        meta["resourceVersion"] = str(self._log.version + 1)
        if noted and MANAGED in meta:
            meta[MANAGED] = noted_after(old, noted, stamp(self._now()))
        wanted["metadata"] = meta
        changed = self._retyped(old, wanted)
        self._commit(MODIFIED, old, changed)
        return changed

    def _retyped(self, old: Object, raw: dict[str, Any]) -> Object:
        return rebuild_pod(raw, old) if isinstance(old, Pod) else self._typed(old.kind, raw)

    def _remove(self, old: Object) -> Object:
        gone = old.at_version(self._log.version + 1)
        self._commit(DELETED, old, gone)
        if old.kind not in BY_NAME:
            self._finish_definition(gone)
        return gone

    def _commit(self, event_type: EventType, old: Object | None, new: Object) -> None:
        self._place(old, None if event_type == DELETED else new)
        self._log.append(WatchEvent(event_type, old, new, new.resource_version))

    def _place(self, old: Object | None, new: Object | None) -> None:
        """Put `new` where `old` was, in the objects and in all indexes."""
        obj = new if new is not None else old
        assert obj is not None, "there is nothing to place"
        space = self._space(obj.kind, obj.namespace)
        if new is not None:
            space[obj.name] = new
        else:
            del space[obj.name]
        self._indexes.move(old, new)
        if self._uids is not None:
            if old is not None:
                self._uids.discard(old.uid)
            if new is not None:
                self._uids.add(new.uid)
        if self._prototypes is not None and obj.kind != "Pod":
            self._prototypes.clear()
        if obj.kind in _CLASSES:
            self._pod_strategy.forget()
        elif obj.kind in _SCOPES:
            self._pod_strategy.forget_scopes()

    def _stored(self, kind: str, namespace: str, name: str) -> Object | None:
        """The object as it was written last: what a write starts from."""
        try:
            return self._by_kind[kind][namespace][name]
        except KeyError:
            return None

    def _existing(self, kind: str, namespace: str, name: str) -> Object:
        """The same; raises NotFound."""
        found = self._stored(kind, namespace, name)
        if found is None:
            raise NotFound(kind, name)
        return found

    def _space(self, kind: str, namespace: str) -> dict[str, Object]:
        try:
            return self._by_kind[kind][namespace]
        except KeyError:
            return self._by_kind.setdefault(kind, {}).setdefault(namespace, {})


def _is_built_in(obj: Object) -> bool:
    if obj.kind == "Namespace":
        return obj.name in BUILT_IN_NAMESPACES
    return obj.kind == "PriorityClass" and obj.name in SYSTEM_CLASSES


def _kept_fields(old: Raw, new: Any) -> Any:
    """What admission filled in at birth and an update need not repeat."""
    if not isinstance(new, Mapping):
        return new
    kept = ("priority", "preemptionPolicy", "priorityClassName", "overhead")
    return {**new, **{name: old[name] for name in kept if name in old and new.get(name) is None}}
