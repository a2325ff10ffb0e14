"""Methods that write objects. The methods create requests and format answers; the store executes the requests."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import Kind
from kschedd.api.schemas.weight import LARGE, weight
from kschedd.api.unsupported import unsupported
from kschedd.controllers.running.awaited import controllers_run_between
from kschedd.service.cluster import ClusterBackend
from kschedd.service.execution import Executor
from kschedd.service.objects import editing as edit
from kschedd.service.objects.answers import (
    ApplyAnswer,
    ChangeAnswer,
    DeletedObject,
    DeletionAnswer,
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
from kschedd.service.objects.kinds import kind_meant, named_object, resolve_namespace
from kschedd.service.objects.parameters import (
    DRY_RUN,
    GIVEN_SPACE,
    KIND,
    NAME,
    NAMESPACE,
    OVERWRITE,
    VALIDATION,
    selectors,
)
from kschedd.service.operations.authorizing import authorize_read
from kschedd.service.operations.reading import list_objects
from kschedd.service.operations.recorded_events import EVENT, delete_recorded, recorded_event
from kschedd.service.params import Param
from kschedd.service.request import PatchBody, ReadOptions, Request, Response, Verb, WriteOptions
from kschedd.service.table import Call, H, Large, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.store.cluster_api import ClusterReader, ClusterWriter
from kschedd.store.errors import NotFound
from kschedd.store.managing import without_entries
from kschedd.store.patches.patching import PATCH_TYPES
from kschedd.store.trial import key_of

Raw = Mapping[str, Any]

_INT32, _INT64 = 2**31 - 1, 2**63 - 1
_READ_AT_ONCE = 4_000  # maximum number of characters of manifests that are parsed without a thread
_RESULT_BYTES = 400  # of memory, per result
_PORTION = 400  # maximum number of values that one request to the store applies


def _marking(name: str, what: str) -> Callable[[H], H]:
    """Return the decorator of a method that changes labels or annotations."""
    params = (
        Param("set", "map", False, doc=f"{what} to set: text by key"),
        Param("remove", "string[]", False, doc=f"keys of {what} to remove"),
    )
    doc = f"Sets and removes {what} of one object."
    return method(name, (KIND, NAME, NAMESPACE, *params, OVERWRITE), doc=doc, answer=ChangeAnswer, judged=True)


@attrs.frozen(eq=False)
class WritingMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "objects.apply",
        (
            Param("manifests", "string|map|map[]", doc="YAML or JSON text, an object, or an array of objects"),
            Param("source", "string", False, "-", "name of the source in errors, such as a file name"),
            Param("dry_run", "boolean", False, False, "report what would happen and change nothing"),
            Param("atomic", "boolean", False, False, "apply all of them, or none if any is rejected"),
            VALIDATION,
            GIVEN_SPACE,
            Param("with_objects", "boolean", False, False, "include each resulting object"),
            Param("field_manager", "string", False, "", "manager that owns the fields; empty: none"),
            Param("server_side", "boolean", False, False, "merge by field managers (server-side apply)"),
            Param("force_conflicts", "boolean", False, False, "`server_side`: take over fields of other managers"),
        ),
        doc="Creates or changes objects, like `kubectl apply`. An invalid manifest does not affect the others, unless "
        "`atomic`. Lists and multiple documents are accepted. With `server_side`, the manifest determines the fields "
        "of its `field_manager`: fields in the manifest are set, and fields that only this manager set before are "
        "removed. A field that another field manager owns with another value is a `conflict`.",
        answer=ApplyAnswer,
        judged=True,
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
            await workers.run(call.client, partial(_fill_in, outcome, parsed, portions))
        answer = outcome.tell()
        head = {
            "errors": answer.errors,
            "warnings": answer.warnings,
            "unsupported": answer.unsupported,
        }
        results = [result.answer(call["with_objects"]) for result in answer.results]
        return Large(head, "results", results, each=_RESULT_BYTES)

    @method(
        "objects.create",
        (Param("manifest", "map", doc="the object"), VALIDATION, DRY_RUN, GIVEN_SPACE),
        doc="Creates one object; an existing object of that name is an error.",
        answer=WrittenAnswer,
        judged=True,
    )
    async def create(self, call: Call) -> Any:
        options = WriteOptions(call["dry_run"], validation=call["field_validation"], by_field=True)
        return await self._written(call, "create", call["namespace"], options)

    @method(
        "objects.replace",
        (
            Param("manifest", "map", doc="the object; a resourceVersion in it must be the current one"),
            VALIDATION,
            DRY_RUN,
        ),
        doc="Replaces an existing object. Its status is unchanged.",
        answer=WrittenAnswer,
        judged=True,
    )
    async def replace(self, call: Call) -> Any:
        options = WriteOptions(call["dry_run"], "kubectl-replace", call["field_validation"], by_field=True)
        return await self._written(call, "update", "default", options)

    async def _written(self, call: Call, verb: Verb, namespace: str, options: WriteOptions) -> Any:
        """Write the manifest's object, in this namespace if the manifest has none."""
        raw = call["manifest"]
        request = Request(verb, namespace=namespace_for(raw, namespace), body=raw, options=options)
        executor = Executor.of(self._cluster, call)
        response = await executor.change(
            lambda store: executor.requested(store, request), partial(_named_in, raw), given=raw
        )
        return _made(response)

    @method(
        "objects.delete",
        (
            KIND,
            Param("name", "string", False, doc="name of the object"),
            Param("label_selector", "string", False, doc="or: all that it matches"),
            Param(
                "field_selector", "string", False, doc="or: all objects that match this selector and the label selector"
            ),
            Param("all", "boolean", False, False, "or: all of them"),
            Param("namespace", "string", False, doc="null: `default`"),
            Param(
                "grace_period_s",
                "integer",
                False,
                doc="null: the grace period in the pod's spec",
                minimum=0,
                maximum=_INT64,
            ),
            Param("dry_run", "boolean", False, False, "return what would be deleted without deleting it"),
            Param(
                "propagation",
                "string",
                False,
                "Background",
                "handling of dependent objects",
                ("Background", "Foreground", "Orphan"),
            ),
        ),
        doc="Deletes an object, or several objects. A running pod first gets its grace period to terminate.",
        answer=DeletionAnswer,
        judged=True,
    )
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
        kind = await kind_meant(self._cluster, call["kind"])
        if kind.name == EVENT:
            chosen, recorded = await self._events(call, deletion, kind)
        else:
            chosen, recorded = await self._cluster.store.do_in_steps(deletion.chosen), ()
        served = await Executor.of(self._cluster, call).serve_each(deletion.request, chosen)
        deleted = [DeletedObject(*key_of(response.object), response.gone) for response in served]
        deleted += [DeletedObject(*key_of(event), True) for event in recorded]
        return Large({}, "deleted", deleted, each=_RESULT_BYTES)

    async def _events(
        self, call: Call, deletion: edit.Deletion, kind: Kind
    ) -> tuple[Sequence[Object], Sequence[Object]]:
        """Return the chosen Events that are stored, and the others, which are deleted here."""
        cluster, space = self._cluster, resolve_namespace(kind, deletion.namespace) or ""
        if deletion.name is not None:
            name = deletion.name
            stored = await cluster.store.do(lambda store: store.find(EVENT, space, name))
            event = stored or await recorded_event(cluster, space, name)
            if event is None:
                raise NotFound(EVENT, name)
            found: Sequence[Object] = (event,)
        else:
            reading = ReadOptions(deletion.label_selector, deletion.field_selector, selected_in=kind)
            request = Request("list", EVENT, space, reading=reading)
            found = (await list_objects(cluster, request, call.services.turns, call.client)).objects
        recorded = [event for event in found if not event.resource_version]
        if recorded:
            await authorize_read(cluster, call, "delete", kind, space, deletion.name or "")
            if not deletion.dry_run:
                await delete_recorded(cluster, recorded)
        return [event for event in found if event.resource_version], recorded

    @method(
        "objects.patch",
        (
            KIND,
            NAME,
            NAMESPACE,
            Param("patch", "map|array|null", doc="the patch; for type json: an array of operations"),
            Param("subresource", "string", False, "", "the part to change", ("", "status", "resize")),
            Param("type", "string", False, "strategic", "type of the patch", PATCH_TYPES),
            VALIDATION,
            DRY_RUN,
        ),
        doc="Changes fields of one object. A `strategic` patch (the default, as in kubectl) merges maps, and lists of "
        "named items by their keys; it supports `$patch`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…` and "
        "`$retainKeys`. `merge` is RFC 7386: lists are replaced. `json` is RFC 6902. Custom resources accept only"
        " `merge` and `json`.",
        answer=ChangeAnswer,
        judged=True,
    )
    async def patch(self, call: Call) -> Any:
        options = WriteOptions(call["dry_run"], "kubectl-patch", call["field_validation"])
        patch = PatchBody(call["type"], call["patch"])

        def wanted(store: ClusterReader, obj: Object) -> Request:
            return Request("patch", obj.kind, obj.namespace, obj.name, call["subresource"], patch, options)

        return await self._edited(call, wanted, call["patch"])

    @method(
        "objects.scale",
        (
            KIND,
            NAME,
            NAMESPACE,
            Param("replicas", "integer", doc="number of replicas", minimum=0, maximum=_INT32),
            Param(
                "current", "integer", False, doc="precondition: the object has this number of replicas now; null: none"
            ),
        ),
        doc="Sets the number of replicas of a workload, or of a custom resource with a scale subresource.",
        answer=ScaleAnswer,
        judged=True,
    )
    async def scale(self, call: Call) -> Any:
        before: list[int] = []

        def wanted(store: ClusterReader, obj: Object) -> Request:
            before[:] = [edit.replicas_of(store, obj)]
            return edit.scale(store, obj, call["replicas"], call["current"])

        response = await Executor.of(self._cluster, call).edit(partial(named_object, call), wanted)
        return ScaleAnswer(without_entries(response.object.raw), before[0], call["replicas"])

    async def _edited(self, call: Call, make: Callable[[ClusterReader, Object], Request], given: Any = None) -> Any:
        """Change the object that the call names."""
        response = await Executor.of(self._cluster, call).edit(partial(named_object, call), make, given)
        return edit.change_result(response)

    @_marking("objects.label", "labels")
    async def label(self, call: Call) -> Any:
        return await self._mark("labels", call)

    @_marking("objects.annotate", "annotations")
    async def annotate(self, call: Call) -> Any:
        return await self._mark("annotations", call)

    async def _mark(self, field: str, call: Call) -> Any:
        wanted, remove = call["set"] or {}, call["remove"] or ()
        return await self._edited(
            call, lambda store, obj: edit.set_metadata(obj, field, wanted, remove, call["overwrite"])
        )


def _made(response: Response) -> WrittenAnswer:
    raw = response.object.raw
    return WrittenAnswer(without_entries(raw), response.warnings, unsupported(raw, jobs_finish=response.jobs_finish))


class _Refused(Exception):
    """The error if an object of an atomic apply is rejected, so that nothing is applied."""

    def __init__(self, outcome: ApplyOutcome) -> None:
        self.outcome = outcome


def _read(manifests: Any, source: str, given_up: GivenUp | None = None) -> tuple[Parsed, list[Sequence[Wanted]]]:
    """Return the objects, and the same objects in parts that are small enough not to block other work."""
    parsed = parse(manifests, source, given_up)
    return parsed, list(chunks(parsed.wanted, _PORTION))


def _fill_in(outcome: ApplyOutcome, parsed: Parsed, portions: list[Sequence[Wanted]], given_up: GivenUp) -> None:
    outcome.tell()
    portions.clear()  # free memory, because the parts contain the objects in `parsed`
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
