"""The embedded API server: the methods that write objects of the cluster.

Every write gets the next resourceVersion and adds one event to the log. Readers get immutable typed objects. A write
that changes nothing is a no-op without a version or event, so two clients cannot trigger each other forever.
`pod_strategy` makes pods faster: equal specs are validated and stored only once.

A method looks up its object, prepares the new object, and commits it. The following parts are involved:

    RequestAdmission   the request's user, and admission
    Creation           from a manifest to a new object
    Replacement        from an update, patch or apply to the updated object
    Generated          new uids and names
    StoredObjects      the objects, their indexes and the event log
    Copies             pods and nodes that differ from an earlier one in their names only
    KeptStore          commits, and writes from a journal, a dump or a fork
    StoreReader        read access: the part of `ClusterReader` in the store

The store does no I/O and never waits; an actor, a simulation or a fork calls it. Time comes from `now`
(seconds since the epoch) and randomness from `seed`: the same calls give the same UIDs and names. Raises only the
errors in `kschedd.store.errors`.
"""

import builtins
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.check import without_nulls
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.api.schemas.fields import required
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.api.text.times import stamp
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.config.versions.rules import Rules
from kschedd.errors import without_traceback
from kschedd.registry.validation_update import validate_version
from kschedd.store import eviction
from kschedd.store.admission.chain import Admission
from kschedd.store.admission.request import REVIEWING, RequestAdmission
from kschedd.store.admission_plugins.attributes import Attributes, SubresourceOf, UserInfo
from kschedd.store.authorization.bootstrap import bootstrap_policy
from kschedd.store.authorization.judge import RBAC_KINDS, RbacJudge
from kschedd.store.awaited import LongEvaluation, WebhookAnswers, WebhookCall, WebhooksNeeded
from kschedd.store.binding import bound, refuse_binding
from kschedd.store.built_in import UNDELETABLE, built_in
from kschedd.store.cluster_api import Applied
from kschedd.store.copies import Copies
from kschedd.store.creating import updates
from kschedd.store.creating.cluster_rules import managing_write
from kschedd.store.creating.creation import Creation
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
    marked,
)
from kschedd.store.errors import ApiError, Forbidden, Gone, Invalid, NotFound
from kschedd.store.identity import check_version, same_object
from kschedd.store.keeping import KeptStore
from kschedd.store.managing import (
    MANAGED,
    NOBODY,
    Managing,
    applied_by,
    created_by,
    with_resolved_entries,
)
from kschedd.store.objects.log import EventLog, WatchEvent
from kschedd.store.objects.stored import StoredObjects, retyped
from kschedd.store.patch_decoding import decode_patched
from kschedd.store.patches.apply import applied, first_applied
from kschedd.store.patches.patching import PatchType, patched
from kschedd.store.prototypes.generated import Generated
from kschedd.store.prototypes.pod_strategy import PodStrategy
from kschedd.store.remarks import Remarks
from kschedd.store.set_aside import SetAside
from kschedd.store.webhooks.modes import WebhookMode
from kschedd.store.writes import Bind
from kschedd.values import run_steps

MAX_OBJECT_BYTES: Final = 1536 * 1024  # the default of etcd's --max-request-bytes
_CLASSES: Final = frozenset(("PriorityClass", "RuntimeClass"))
_SCOPES: Final = frozenset(("Namespace", "LimitRange", "ServiceAccount"))


class Store(KeptStore):
    """The store with all its methods. A new store contains the built-in objects, unless `objects` are given.

    `events` are the log events after `version`, and are already applied to `objects`.
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
        self.rbac = RbacJudge(self)
        self._generated = Generated(seed, version)
        self._admission = RequestAdmission(admission or Admission(), self)
        self._pod_strategy = PodStrategy(self.admission, self, lambda: self.features)
        self._creation = Creation(self, self._admission, self._pod_strategy, self._generated)
        self._replacement = Replacement(self, self._admission, self._pod_strategy)
        self.set_aside: Sequence[SetAside] = ()  # objects that were not restored at startup
        self._seeding = False  # True while built-in objects are created, without calling plugins from plugin files
        self._copies = Copies(self, stored, self._admission, self._pod_strategy, self._generated)
        if objects is None:
            self.seed_defaults()
        else:
            for obj in objects:
                self._objects.place(None, obj)

    def stand_for(self, rules: Rules) -> None:
        super().stand_for(rules)
        self._pod_strategy.forget()
        self._admission.forget_policies()
        self.rbac.forget()
        self._copies.forget(nodes=True)

    def seed_defaults(self) -> None:
        """Create the built-in objects that do not exist yet."""
        self._seeding = True
        try:
            for raw in built_in():
                if self.find(raw["kind"], "", raw["metadata"]["name"]) is None:
                    self.create(raw)
        finally:
            self._seeding = False

    # --- users --------------------------------------------------------------------------------------------------------

    def on_behalf_of(self, user: UserInfo) -> AbstractContextManager[Remarks]:
        """Make the requests inside the context as this user; yield the remarks of admission about them."""
        return self._admission.on_behalf_of(user)

    @contextmanager
    def calling_webhooks(self, answers: WebhookAnswers) -> Iterator[None]:
        """Use these answers of webhooks inside the context; a write that needs others raises WebhooksNeeded."""
        before, self._admission.webhook_answers = self._admission.webhook_answers, answers
        answers.begin()
        try:
            yield
        finally:
            self._admission.webhook_answers = before

    def set_webhook_mode(self, mode: WebhookMode) -> None:
        """Set what happens to webhooks whose Service has only simulated pods."""
        self._admission.webhook_mode = mode

    def seed_bootstrap_policy(self) -> None:
        """Create the default roles and bindings that do not exist yet."""
        for raw in bootstrap_policy(self.features):
            if self.find(raw["kind"], raw["metadata"].get("namespace", ""), raw["metadata"]["name"]) is None:
                self.create(raw)

    def warn(self, text: str) -> None:
        """Add a warning for the user of the current request. Equal warnings are added only once."""
        self._admission.warn(text)

    # --- writing ------------------------------------------------------------------------------------------------------

    def create(
        self,
        raw: Raw,
        *,
        dry_run: bool = False,
        restore: bool = False,
        as_client: bool = False,
        manager: str = "",
    ) -> Object:
        """Create an object.

        `restore` uses the status, UID and creation time in the manifest (for dumps). With `as_client`, the object's
        kind must be served. The object's fields are recorded for the field manager `manager`, unless it is "".
        """
        copied = None if dry_run or restore or manager else self._copies.of(raw)
        if copied is not None:
            return copied
        made = self._create(raw, Managing(manager) if manager else NOBODY, dry_run, restore, as_client)
        if not (dry_run or restore or manager):
            self._copies.add(made, raw)
        return made

    def one_request(self) -> AbstractContextManager[None]:
        """Treat all writes inside the context as one request, so that pods and nodes may be copies of each other."""
        return self._copies.one_request()

    def create_many(self, raws: Iterable[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        """Create each object independently; return the results in the same order."""
        answers: builtins.list[Object | ApiError] = []
        with self.one_request():
            for raw in raws:
                try:
                    answers.append(self.create(raw, restore=restore))
                except ApiError as refusal:
                    answers.append(without_traceback(refusal))
        return answers

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
        """Replace an object. A resourceVersion in `raw` must be current, otherwise Conflict is raised.

        With `as_client`, some kinds require a resourceVersion. The status is replaced only with `with_status`, which is
        for callers that replace a kubelet or cloud provider.
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
        """Replace only an object's status."""
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
        """Apply an RFC 7386 merge patch to an object. Lists are replaced; for strategic merge patches use `patch`."""
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
        """Apply a client's patch. Return the object and the warnings for the client.

        `duplicates` are the paths of fields that occur twice in the patch. The warnings of rejected requests are added
        as well (see `warn`).
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
        """Apply like `kubectl apply --server-side`: set the manager's fields; remove fields that it no longer applies.

        Fields that other field managers also own are not removed. Raises ApplyConflict if fields of other field
        managers would change and `force` is not set. `api_version` is the version of the request, or "" for the version
        of the configuration.
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
        """Apply like `kubectl apply`: create the object, or merge the manifest into it (`store.patches.merging`).

        With `annotated`, the object gets kubectl's last-applied annotation, which a later apply needs in order to
        remove fields. A Node's manifest also sets its status, because no real kubelet reports it.
        With `restore`, the manifest sets the status for every kind.
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
        """Delete an object, or mark it as deleting if the deletion takes time. Return its last state.

        The garbage collector deletes the object's dependents. `uid` and `resource_version` are preconditions (None:
        any).
        """
        old = self._objects.get(kind, namespace, name)
        check_grace_period(grace_period_s)
        check_delete_preconditions(old, uid, resource_version)
        attributes = Attributes("DELETE", kind, namespace, name)
        self._admission.authorize(attributes, None, old.raw)
        if kind == "Namespace" and name in UNDELETABLE:
            raise Forbidden(kind, name, "this namespace may not be deleted")
        self._admission.validate_whole(attributes, None, old.raw, dry_run=dry_run)
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
            # Even without a grace period, a pod is deleted gracefully: watchers first receive it as deleting.
            if not old.deleting:
                return self._end(old)
            old = self._write(old, marked(old, self._now()))
        return self._remove(old)

    def _delete_definition(self, old: Object, left: dict[str, Any] | None) -> Object:
        """Delete the objects of a custom resource; after the last object, delete its definition."""
        # the objects belong to another definition if this one is not established
        kind = custom.defined_kind(old).name if is_established(old) else ""
        for obj in tuple(self.list(kind)):
            if not obj.deleting:
                self.delete(kind, obj.namespace, obj.name)
        if not self.count(kind):
            return self._remove(old) if left is None else self._write(old, left)
        return self._write(old, custom.with_cleanup(left or old.raw, stamp(self._now())))

    def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Pod:
        """Bind a pod to a node: the Binding subresource.

        The existence of the node is not checked, as in kube-apiserver.
        """
        return self._bind(namespace, name, node_name, uid, stamp(self._now()))

    def _bind(self, namespace: str, name: str, node_name: str, uid: str, at: str) -> Pod:
        pod = self._objects.find("Pod", namespace, name)
        if pod is None:
            raise NotFound("Pod", name)
        assert isinstance(pod, Pod)
        if self._admission.user is not None:
            self._admission.authorize(Attributes("CREATE", "Pod", namespace, name, "binding"), None, pod.raw)
        if self._admission.validates:
            self._review_created(
                "binding", ("v1", "Binding"), pod, {"target": {"kind": "Node", "name": node_name}}, False
            )
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
        """Evict a pod: delete it if its disruption budget allows the eviction. Return its last state.

        The preconditions are checked with the deletion, after the budget was checked and charged, as in kube-apiserver.
        """
        pod = self.get("Pod", namespace, name)
        assert isinstance(pod, Pod)
        self._admission.authorize(Attributes("CREATE", "Pod", namespace, name, "eviction"), None, pod.raw)
        if self._admission.validates:
            self._review_created("eviction", ("policy/v1", "Eviction"), pod, {}, dry_run)
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

    def _review_created(
        self, subresource: str, api_kind: tuple[str, str], pod: Pod, fields: Raw, dry_run: bool
    ) -> None:
        """Raise PolicyDenied if a policy rejects the creation of a pod's subresource."""
        attributes = Attributes("CREATE", "Pod", pod.namespace, pod.name, subresource)
        meta = {"name": pod.name, "namespace": pod.namespace}
        new = {"apiVersion": api_kind[0], "kind": api_kind[1], "metadata": meta, **fields}
        self._admission.validate_whole(attributes, new, None, dry_run=dry_run, of=SubresourceOf(*api_kind, pod.raw))

    def bind_many(self, bindings: Iterable[Bind]) -> builtins.list[Exception | None]:
        """Bind each pod independently.

        Return for each pod an error, or None if it was bound, in the same order.

        An error is an ApiError, or another exception that an invalid pod caused. Raises WebhooksNeeded.
        """
        at = stamp(self._now())
        failures: builtins.list[Exception | None] = []
        needed: builtins.list[WebhookCall | LongEvaluation] = []
        for wanted in bindings:
            try:
                self._bind(wanted.namespace, wanted.name, wanted.node_name, wanted.uid, at)
                failures.append(None)
            except ApiError as refusal:
                failures.append(without_traceback(refusal))
            except WebhooksNeeded as missing:  # call the webhooks of all bindings together
                needed += missing.calls
            except Exception as fault:  # an error of this pod; the other pods are bound
                failures.append(fault)
        if needed:
            raise WebhooksNeeded(needed)
        return failures

    # --- forks --------------------------------------------------------------------------------------------------------

    def fork(self) -> "Store":
        """Return an independent store with the same objects and the same time."""
        return run_steps(self.forking())

    def forking(self, since: int | None = None) -> Generator[None, None, "Store"]:
        """Fork step by step: return an independent store with the same objects and the same time.

        No write is allowed between the steps. With `since`, watches of the fork can start at that version, and the fork
        generates the same names and UIDs as this store. Raises Gone if the log does not contain all these events.
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
        twin.simulate_pods(self.pod_behavior)
        twin.keep_admitted(self._pod_strategy.remembered.most, self._pod_strategy.remembered_with_node_affinity.most)
        if since is None:
            twin._generated.begin_as(self._generated, self.version)
        else:
            twin._generated.go_on_as(self._generated)
        yield from twin._objects.copying(self._objects)
        twin._admission.recheck()
        return twin

    def _changed(self, old: Object | None, new: Object | None) -> None:
        """Drop cached results that may be invalid after this change of an object other than a pod."""
        changed = new or old
        assert changed is not None, "a change has an old or a new object"
        kind = changed.kind
        self._copies.forget()
        if kind in _CLASSES:
            self._pod_strategy.forget()
        elif kind in _SCOPES:
            self._pod_strategy.forget_scopes()
        elif kind in REVIEWING:
            self._admission.recheck()
            self._copies.forget(nodes=True)
        elif kind in RBAC_KINDS:
            self.rbac.note(old, new)
