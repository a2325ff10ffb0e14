"""Methods over objects: reading, writing, watching. Requests are put and answers shaped here; the store works."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from kschedd.api.objects import Object
from kschedd.api.schemas.decoding import FIELD_VALIDATIONS
from kschedd.api.schemas.field_labels import check_field_selector
from kschedd.api.schemas.kinds import lookup
from kschedd.api.schemas.weight import LARGE, weight
from kschedd.api.unsupported import unsupported
from kschedd.controllers.running.awaited import controllers_run_between
from kschedd.log.events import EventSeries
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.execution import Executor
from kschedd.service.objects import editing as edit
from kschedd.service.objects.answers import (
    ApplyAnswer,
    ChangeAnswer,
    DeletedObject,
    DeletionAnswer,
    KindAnswer,
    ObjectAnswer,
    ScaleAnswer,
    WrittenAnswer,
)
from kschedd.service.objects.applying import (
    FROM_FILES,
    Applier,
    ApplyOutcome,
    Parsed,
    Wanted,
    chunks,
    namespace_for,
    parse,
)
from kschedd.service.objects.events import SPACES, follow
from kschedd.service.objects.kinds import described, find_kind, resolve_namespace
from kschedd.service.objects.recorded_events import EVENT, as_object, recorded_event, with_recorded_events
from kschedd.service.params import Param
from kschedd.service.request import PatchBody, Request, Response, Verb, WriteOptions
from kschedd.service.selecting import selectors
from kschedd.service.table import Call, Large, Method, Stream
from kschedd.service.workers import GivenUp
from kschedd.store.cluster_api import ClusterReader, ClusterWatch, ClusterWriter
from kschedd.store.errors import NotFound, OtherEpoch
from kschedd.store.managing import with_resolved_entries, without_entries
from kschedd.store.objects.listing import raw_in_order
from kschedd.store.objects.log import WatchEvent
from kschedd.store.patching import PATCH_TYPES
from kschedd.store.trial import key_of
from kschedd.values import run_steps

Raw = Mapping[str, Any]

_INT32, _INT64 = 2**31 - 1, 2**63 - 1
_READ_AT_ONCE = 4_000  # characters of manifests that are read without a thread
_FEW = 256  # objects that are put in order at once
_RESULT_BYTES = 400  # of memory
_PORTION = 400  # values in the objects that are applied in one request to the store
_MOST_BEHIND = 200_000  # events that are kept for a watcher that does not read them
_ITEMS = 500  # watch events sent in one go

KIND = Param("kind", "string", doc="a kind: `Pod`, `pods`, `po`, `deployments.apps`")
NAME = Param("name", "string", doc="the object's name")
NAMESPACE = Param("namespace", "string", False, doc="null: `default` for kinds that live in a namespace")
_LONGEST_PAUSE_S = 60
FIELDS = Param(
    "fields",
    "string[]",
    False,
    doc="of each object only apiVersion, kind, metadata and these, such as `spec.nodeName`",
)
MANAGERS = Param("managed_fields", "boolean", False, False, "with metadata.managedFields: who manages which fields")
METADATA_ONLY = Param("metadata_only", "boolean", False, False, "of each object only apiVersion, kind and metadata")
OVERWRITE = Param("overwrite", "boolean", False, False, "whether a value that is there may be replaced")

VALIDATION = Param(
    "field_validation",
    "string",
    False,
    "Strict",
    "fields that the kind does not have: refuse the object, or take it without them, with or without a warning",
    FIELD_VALIDATIONS,
)
GIVEN_SPACE = Param("namespace", "string", False, "default", "for objects that name none")
DRY_RUN = Param("dry_run", "boolean", False, False, "say what would happen, change nothing")


@attrs.frozen(eq=False)
class ObjectMethods:
    _cluster: ClusterBackend

    def table(self) -> list[Method]:
        return [
            Method(
                "objects.apply",
                self.apply,
                (
                    Param("manifests", "string|map|map[]", doc="YAML or JSON text, an object, or an array of objects"),
                    Param("source", "string", False, "-", "what errors call it, such as a file name"),
                    Param("dry_run", "boolean", False, False, "say what would happen, change nothing"),
                    Param("atomic", "boolean", False, False, "apply all of them, or none if any is refused"),
                    VALIDATION,
                    GIVEN_SPACE,
                    Param("with_objects", "boolean", False, False, "tell each object as it is then, too"),
                    Param("field_manager", "string", False, "", "whose the fields are; empty: nobody's"),
                    Param("server_side", "boolean", False, False, "merge by who manages which field"),
                    Param("force_conflicts", "boolean", False, False, "`server_side`: take fields that others manage"),
                ),
                doc="Creates objects or changes those that are there, as `kubectl apply`. One bad manifest does not "
                "spoil the others, unless `atomic`. Lists and several documents are taken. With `server_side` an "
                "object gets what its `field_manager` states, and loses what only that one did state; a field that "
                "another manager has with another value is a `conflict`.",
                answer=ApplyAnswer,
            ),
            Method(
                "objects.create",
                self.create,
                (Param("manifest", "map", doc="the object"), VALIDATION, DRY_RUN, GIVEN_SPACE),
                doc="Creates one object; refuses one that is there.",
                answer=WrittenAnswer,
            ),
            Method(
                "objects.replace",
                self.replace,
                (
                    Param("manifest", "map", doc="the object; a resourceVersion in it must be the current one"),
                    VALIDATION,
                    DRY_RUN,
                ),
                doc="Replaces one object that is there. Its status stays as it is.",
                answer=WrittenAnswer,
            ),
            Method(
                "objects.get",
                self.get,
                (KIND, NAME, NAMESPACE, MANAGERS),
                reads=True,
                doc="Reads one object.",
                answer=ObjectAnswer,
            ),
            Method(
                "objects.list",
                self.list,
                (
                    KIND,
                    SPACES,
                    Param("label_selector", "string", False, doc="as of `kubectl get -l`: `app=web,tier!=db`"),
                    Param("field_selector", "string", False, doc="`status.phase=Pending,spec.nodeName!=n1`"),
                    METADATA_ONLY,
                    FIELDS,
                    MANAGERS,
                ),
                reads=True,
                doc="Lists the objects of a kind, sorted by namespace and name. Among those of kind Event are the "
                "scheduler's, which are kept in memory only.",
                large=True,
                small=self.short_list,
                returns="`{kind, items, resource_version, epoch}`; watch from that version on to hear of every change "
                "since.",
            ),
            Method(
                "objects.delete",
                self.delete,
                (
                    KIND,
                    Param("name", "string", False, doc="which one"),
                    Param("label_selector", "string", False, doc="or: all that it matches"),
                    Param("field_selector", "string", False, doc="or: all that it matches, and the label selector"),
                    Param("all", "boolean", False, False, "or: all of them"),
                    Param("namespace", "string", False, doc="null: `default`"),
                    Param("grace_period_s", "integer", False, doc="null: what the pod says", minimum=0, maximum=_INT64),
                    Param("dry_run", "boolean", False, False, "say what would be deleted, delete nothing"),
                    Param(
                        "propagation",
                        "string",
                        False,
                        "Background",
                        "what becomes of what it owns",
                        ("Background", "Foreground", "Orphan"),
                    ),
                ),
                doc="Deletes one object or several. A running pod first gets its grace period.",
                answer=DeletionAnswer,
            ),
            Method(
                "objects.patch",
                self.patch,
                (
                    KIND,
                    NAME,
                    NAMESPACE,
                    Param("patch", "map|array|null", doc="the patch; of type json an array of operations"),
                    Param("subresource", "string", False, "", "which part may change", ("", "status", "resize")),
                    Param("type", "string", False, "strategic", "of which type the patch is", PATCH_TYPES),
                    VALIDATION,
                    DRY_RUN,
                ),
                doc="Changes fields of one object. A `strategic` patch (the default, as of kubectl) merges maps, and "
                "lists of named things by their keys; it knows `$patch`, `$setElementOrder/…`, "
                "`$deleteFromPrimitiveList/…` and `$retainKeys`. `merge` is RFC 7386: lists are replaced. `json` is "
                "RFC 6902. Objects of custom resources take the latter two.",
                answer=ChangeAnswer,
            ),
            Method(
                "objects.scale",
                self.scale,
                (
                    KIND,
                    NAME,
                    NAMESPACE,
                    Param("replicas", "integer", doc="how many", minimum=0, maximum=_INT32),
                    Param("current", "integer", False, doc="null, or how many it has to ask for now"),
                ),
                doc="Sets the number of replicas of a workload, or of a custom resource whose definition says where.",
                answer=ScaleAnswer,
            ),
            self._marking("objects.label", self.label, "labels"),
            self._marking("objects.annotate", self.annotate, "annotations"),
            Method(
                "objects.kinds",
                self.kinds,
                reads=True,
                doc="Every kind there is, those of which there are only objects among them.",
                answer=list[KindAnswer],
            ),
            Method(
                "objects.watch",
                self.watch,
                (
                    Param("kind", "string", False, doc="null: all kinds"),
                    Param("without", "string[]", False, doc="names of kinds that are left out, such as `Pod`"),
                    SPACES,
                    Param("since", "integer", False, doc="a resource_version; null: from now on", minimum=0),
                    Param("epoch", "string", False, doc="the epoch that `since` belongs to, as it came with it"),
                    METADATA_ONLY,
                    FIELDS,
                    Param(
                        "interval_s",
                        "number",
                        False,
                        0.0,
                        "pause between two batches of changes; of each object a batch has only the latest",
                        (),
                        0,
                        _LONGEST_PAUSE_S,
                    ),
                ),
                reads=True,
                doc="Follows changes; of the kind Event, those of the scheduler's events too. To resume after a break, "
                "give the last resource_version seen, and the epoch; `gone` is answered where that is too long ago, or "
                "of another history than this daemon's: list again. A stream that falls too "
                "far behind ends with `too_slow`.",
                returns="`{stream, resource_version, epoch}`, the version from which on it watches.",
                items="`{type, object, resource_version}`, where type is `ADDED`, `MODIFIED` or `DELETED`.",
            ),
        ]

    @staticmethod
    def _marking(name: str, handler: Callable[[Call], Any], what: str) -> Method:
        return Method(
            name,
            handler,
            (
                KIND,
                NAME,
                NAMESPACE,
                Param("set", "map", False, doc=f"{what} to set: text by key"),
                Param("remove", "string[]", False, doc=f"keys of {what} to take away"),
                OVERWRITE,
            ),
            doc=f"Sets and takes away {what} of one object.",
            answer=ChangeAnswer,
        )

    async def apply(self, call: Call) -> Any:
        manifests, source = call["manifests"], call["source"]
        workers = call.services.workers
        large = bool(call.size) or (isinstance(manifests, str) and len(manifests) > _READ_AT_ONCE)
        if large:
            parsed, portions = await workers.run(call.client, partial(_read, manifests, source))
        else:
            parsed, portions = _read(manifests, source)
        outcome = ApplyOutcome(errors=list(parsed.errors))
        executor = Executor.of(self._cluster, call)
        options = attrs.evolve(
            FROM_FILES,
            manager=call["field_manager"],
            validation=call["field_validation"],
            force=call["force_conflicts"],
            server_side=call["server_side"],
        )
        apply = Applier(options, call["namespace"], executor.user_info)
        if call["dry_run"] or (call["atomic"] and parsed.errors):
            tried = await executor.beside(partial(_tried, parsed.wanted, apply))
            if call["atomic"] and (parsed.errors or tried.errors):
                tried.results = []
            outcome.add(tried)
        elif call["atomic"]:
            try:
                outcome.add(await executor.aside(partial(_all_or_nothing, parsed.wanted, apply)))
            except _Refused as refused:
                outcome.add(refused.outcome)
        else:
            before: Wanted | None = None
            for portion in portions:
                if before is not None and controllers_run_between(before.raw, portion[0].raw):
                    await self._cluster.run_controllers()
                before = portion[-1]
                if len(portion) == 1 and weight(portion[0].raw) > LARGE:
                    outcome.add(await executor.aside(partial(_tried, portion, apply)))
                else:
                    outcome.add(await self._cluster.store.do(partial(apply.each, portion)))
        if large:
            await workers.run(call.client, partial(_tell, outcome, parsed, portions))
        told = outcome.tell()
        head = {
            "errors": told.errors,
            "warnings": told.warnings,
            "unsupported": told.unsupported,
        }
        results = [result.told(call["with_objects"]) for result in told.results]
        return Large(head, "results", results, each=_RESULT_BYTES)

    async def create(self, call: Call) -> Any:
        options = WriteOptions(call["dry_run"], validation=call["field_validation"], by_field=True)
        return await self._written(call, "create", call["namespace"], options)

    async def replace(self, call: Call) -> Any:
        options = WriteOptions(call["dry_run"], "kubectl-replace", call["field_validation"], by_field=True)
        return await self._written(call, "update", "default", options)

    async def _written(self, call: Call, verb: Verb, namespace: str, options: WriteOptions) -> Any:
        """Write the object of a manifest, in this namespace if it names none."""
        raw = call["manifest"]
        request = Request(verb, namespace=namespace_for(raw, namespace), body=raw, options=options)
        executor = Executor.of(self._cluster, call)
        response = await executor.change(
            lambda store: executor.requested(store, request), partial(_named_in, raw), given=raw
        )
        return _made(response)

    async def get(self, call: Call) -> Any:
        try:
            found = await self._cluster.store.do(partial(_found, call))
        except NotFound:
            event = None
            if lookup(call["kind"]).name == EVENT:
                event = await recorded_event(self._cluster, call["namespace"] or "default", call["name"])
            if event is None:
                raise
            found = event
        return ObjectAnswer(with_resolved_entries(found.raw) if call["managed_fields"] else without_entries(found.raw))

    async def list(self, call: Call) -> Any:
        return await self._listed(call)

    async def short_list(self, call: Call) -> Any | None:
        """The same where there are few objects of the kind, else None."""
        return await self._listed(call, _FEW)

    async def _listed(self, call: Call, most: int | None = None) -> Large | None:
        labels, fields = await selectors(call, call["label_selector"], call["field_selector"])
        shown = _shown(call["metadata_only"], call["fields"], call["managed_fields"])

        def read(store: ClusterReader) -> tuple[str, Sequence[Sequence[Object]], int] | None:
            kind = find_kind(store, call["kind"])
            if most is not None and (kind.name == EVENT or store.count(kind.name) > most):
                return None  # events are kept elsewhere as well
            space = call["namespace"] if kind.namespaced else None
            check_field_selector(kind, fields)
            return kind.name, store.present(kind.name, space), store.version

        there = await self._cluster.store.do(read)
        if there is None:
            return None
        name, present, version = there
        if name == EVENT:
            present = await with_recorded_events(self._cluster, present, call["namespace"])
        sorting = raw_in_order(present, labels, fields)
        items: Sequence[Raw]
        if sum(map(len, present)) <= _FEW:
            items = run_steps(sorting)
        else:
            items = await call.services.turns.drive(call.client, sorting)
        head = {"kind": name, "resource_version": version, "epoch": self._cluster.epoch}
        return Large(head, "items", items, shown=shown)

    async def delete(self, call: Call) -> Any:
        labels, fields = await selectors(call, call["label_selector"], call["field_selector"])
        deletion = edit.Deletion(
            call["kind"],
            call["name"],
            labels,
            call["all"],
            call["namespace"],
            call["grace_period_s"],
            call["propagation"],
            call["dry_run"],
            fields,
        )
        chosen = await self._cluster.store.do_in_steps(lambda store: deletion.chosen(store))
        served = await Executor.of(self._cluster, call).serve_each(deletion.request, chosen)
        deleted = [DeletedObject(*key_of(response.object), response.gone) for response in served]
        return Large({}, "deleted", deleted, each=_RESULT_BYTES)

    async def patch(self, call: Call) -> Any:
        options = WriteOptions(call["dry_run"], "kubectl-patch", call["field_validation"])
        patch = PatchBody(call["type"], call["patch"])

        def wanted(store: ClusterReader, obj: Object) -> Request:
            return Request("patch", obj.kind, obj.namespace, obj.name, call["subresource"], patch, options)

        return await self._edited(call, wanted, call["patch"])

    async def scale(self, call: Call) -> Any:
        before: list[int] = []

        def wanted(store: ClusterReader, obj: Object) -> Request:
            before[:] = [edit.replicas_of(store, obj)]
            return edit.scale(store, obj, call["replicas"], call["current"])

        response = await Executor.of(self._cluster, call).edit(partial(_found, call), wanted)
        return ScaleAnswer(without_entries(response.object.raw), before[0], call["replicas"])

    async def _edited(self, call: Call, make: Callable[[ClusterReader, Object], Request], given: Any = None) -> Any:
        """Change the object that the call names."""
        response = await Executor.of(self._cluster, call).edit(partial(_found, call), make, given)
        return edit.change_result(response)

    async def label(self, call: Call) -> Any:
        return await self._mark("labels", call)

    async def annotate(self, call: Call) -> Any:
        return await self._mark("annotations", call)

    async def _mark(self, field: str, call: Call) -> Any:
        wanted, remove = call["set"] or {}, call["remove"] or ()
        return await self._edited(
            call, lambda store, obj: edit.set_metadata(obj, field, wanted, remove, call["overwrite"])
        )

    async def kinds(self, call: Call) -> Any:
        return await self._cluster.store.do(described)

    async def watch(self, call: Call) -> Any:
        store = self._cluster.store
        kinds = None
        if call["kind"] is not None:
            kinds = {(await store.do(lambda owned: find_kind(owned, call["kind"]))).name}
        if call["since"] is not None and call["epoch"] not in (None, self._cluster.epoch):
            raise OtherEpoch(call["since"], call["epoch"])
        watch = await store.watch(kinds, call["since"])
        since = watch.version
        namespace, without = call["namespace"], frozenset(call["without"] or ())
        shown = _shown(call["metadata_only"], call["fields"])
        pause_s = float(call["interval_s"])
        latest = await self._cluster.log.query(lambda log: log.events.number)

        def recorded(event: EventSeries) -> dict[str, Any]:
            change = "ADDED" if event.count == 1 else "MODIFIED"
            return {"type": change, "object": shown(as_object(event)), "resource_version": since}

        def wanted(event: WatchEvent) -> bool:
            return event.new.kind not in without and namespace in (None, event.new.namespace)

        async def feed(stream: Stream) -> None:
            async with trio.open_nursery() as beside:
                if kinds == {EVENT}:
                    beside.start_soon(follow, self._cluster, latest, namespace, recorded, stream)
                await stored(stream)
                beside.cancel_scope.cancel()

        async def stored(stream: Stream) -> None:
            try:
                while watch.behind or await watch.wait():
                    if watch.lag > _MOST_BEHIND:
                        raise RpcError("too_slow", f"{watch.lag} events behind; resume from the last one read")
                    fresh = await _all_behind(watch, wanted) if pause_s else list(filter(wanted, watch.take(_ITEMS)))
                    for start in range(0, len(fresh), _ITEMS):
                        await stream.send_many(
                            [
                                {"type": event.type, "object": shown(event.new.raw), "resource_version": event.version}
                                for event in fresh[start : start + _ITEMS]
                            ]
                        )
                    if pause_s:
                        await trio.sleep(pause_s)
            finally:
                watch.close()

        return {"stream": call.open_stream(feed), "resource_version": since, "epoch": self._cluster.epoch}


def _made(response: Response) -> WrittenAnswer:
    raw = response.object.raw
    return WrittenAnswer(without_entries(raw), response.warnings, unsupported(raw))


def _found(call: Call, store: ClusterReader) -> Object:
    """The object that a call names. Raises RpcError and NotFound."""
    kind = find_kind(store, call["kind"])
    return store.get(kind.name, resolve_namespace(kind, call["namespace"]), call["name"])


def _metadata(raw: Raw) -> Raw:
    return {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "metadata": raw.get("metadata") or {}}


def _shown(metadata_only: bool, fields: Sequence[str] | None, managers: bool = False) -> Callable[[Raw], Raw]:
    """What is sent of an object; who manages its fields only where that is asked for."""
    known = with_resolved_entries if managers else without_entries
    if fields is None and not metadata_only:
        return known
    part = _part_shown(fields)
    return lambda raw: part(known(raw))


def _part_shown(fields: Sequence[str] | None) -> Callable[[Raw], Raw]:
    if fields is None:
        return _metadata
    paths = _outermost(dict.fromkeys(tuple(path.split(".")) for path in fields))
    return lambda raw: _with_fields(raw, paths)


def _outermost(paths: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Leave out the paths within another of them, which are sent with that one."""
    kept: dict[tuple[str, ...], None] = {}
    last: tuple[str, ...] | None = None
    for path in sorted(paths):
        if last is None or path[: len(last)] != last:
            kept[path] = None
            last = path
    return [path for path in paths if path in kept]


def _with_fields(raw: Raw, paths: Sequence[Sequence[str]]) -> Raw:
    """apiVersion, kind, metadata, and of the rest what is at these paths, in the places where it is."""
    shown: dict[str, Any] = {**_metadata(raw)}
    for path in paths:
        found: Any = raw
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is None or path[0] == "metadata":
            continue
        into = shown
        for name in path[:-1]:
            into = into.setdefault(name, {})
        into[path[-1]] = found
    return shown


async def _all_behind(watch: ClusterWatch, wanted: Callable[[WatchEvent], bool]) -> list[WatchEvent]:
    """All that is waiting and is wanted, of each object only its latest event, in the order of these."""
    latest: dict[tuple[str, str, str], WatchEvent] = {}
    while watch.behind:
        for event in filter(wanted, watch.take(_ITEMS)):
            key = (event.new.kind, event.new.namespace, event.new.name)
            before = latest.pop(key, None)
            if before is not None and before.type == "ADDED" and event.type == "MODIFIED":
                event = attrs.evolve(event, type=before.type, old=None)
            latest[key] = event
        await trio.lowlevel.checkpoint()
    return list(latest.values())


class _Refused(Exception):
    """Not all of an atomic apply was accepted, so nothing of it is done."""

    def __init__(self, outcome: ApplyOutcome) -> None:
        self.outcome = outcome


def _read(manifests: Any, source: str, given_up: GivenUp | None = None) -> tuple[Parsed, list[Sequence[Wanted]]]:
    """The objects, and the same in portions that hold nobody up."""
    parsed = parse(manifests, source, given_up)
    return parsed, list(chunks(parsed.wanted, _PORTION))


def _tell(outcome: ApplyOutcome, parsed: Parsed, portions: list[Sequence[Wanted]], given_up: GivenUp) -> None:
    outcome.tell()
    portions.clear()  # their objects are those of `parsed`
    parsed.free()


def _tried(wanted: Sequence[Wanted], apply: Applier, fork: ClusterWriter, given_up: GivenUp) -> ApplyOutcome:
    return apply.each(wanted, fork, given_up).tell()


def _all_or_nothing(wanted: Sequence[Wanted], apply: Applier, fork: ClusterWriter, given_up: GivenUp) -> ApplyOutcome:
    outcome = _tried(wanted, apply, fork, given_up)
    if outcome.errors:
        outcome.results = []
        raise _Refused(outcome)
    return outcome


def _named_in(raw: dict[str, Any], store: ClusterWriter) -> Object | None:
    meta = raw.get("metadata")
    if not isinstance(meta, dict):
        return None
    kind, name, namespace = raw.get("kind"), meta.get("name"), meta.get("namespace")
    found = [store.find(str(kind), str(space), str(name)) for space in (namespace or "default", "")]
    return found[0] or found[1]
