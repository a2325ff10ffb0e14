"""Methods over objects: reading, writing, watching. Requests are put and answers shaped here; the store works."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import trio

from kschedd.actors.events import Told
from kschedd.api.decoding import FIELD_VALIDATIONS
from kschedd.api.field_labels import check_field_selector
from kschedd.api.kinds import lookup
from kschedd.api.objects import Object
from kschedd.api.selector_text import parse_field_selector, parse_selector_text
from kschedd.api.unsupported import unsupported
from kschedd.rpc import methods_edit as edit
from kschedd.rpc.cluster import Cluster
from kschedd.rpc.methods_apply import Outcome, Parsed, Terms, apply_all, apply_atomically, in_namespace, parse, try_all
from kschedd.rpc.methods_events import SPACES, as_object, follow
from kschedd.rpc.methods_kinds import described, find_kind, space_of
from kschedd.rpc.params import Param
from kschedd.rpc.table import Call, Method, Stream
from kschedd.store.errors import NotFound, OtherEpoch
from kschedd.store.field_validation import known_fields
from kschedd.store.patching import PATCH_TYPES
from kschedd.store.store import Store

Raw = Mapping[str, Any]

_CHUNK = 100  # objects applied in one request to the store
_ITEMS = 500  # watch events sent in one go

KIND = Param("kind", "string", doc="a kind: `Pod`, `pods`, `po`, `deployments.apps`")
NAME = Param("name", "string", doc="the object's name")
NAMESPACE = Param("namespace", "string", False, doc="null: `default` for kinds that live in a namespace")
METADATA_ONLY = Param("metadata_only", "boolean", False, False, "of each object only apiVersion, kind and metadata")
OVERWRITE = Param("overwrite", "boolean", False, False, "whether a value that is there may be replaced")

OBJECT = "`{object}`, the object as it is now, as kubectl would print it."
WARNED = (
    "`{object, warnings, unsupported}`: the object as it is now, texts to warn of, and what is kept but not acted on "
    "yet, each `{kind, namespace, name, why}`."
)
CHANGED = (
    "`{object, changed, warnings, unsupported}`: the object as it is now, the paths of the fields that changed, texts "
    "to warn of, and what is kept but not acted on yet, each `{kind, namespace, name, why}`."
)
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
    _cluster: Cluster

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
                ),
                doc="Creates objects or changes those that are there, as `kubectl apply`. One bad manifest does not "
                "spoil the others, unless `atomic`. Lists and several documents are taken.",
                returns="`{results: [{kind, namespace, name, action, resource}], errors: [{source, line, path, value, "
                "why, message, code, kind?, namespace?, name?}], warnings: [string], "
                "unsupported: [{kind, namespace, name, why}]}`, the latter what is kept but not acted on. An action is "
                "`created`, `configured` or "
                "`unchanged`; a line counts from 1, 0 where there is none.",
            ),
            Method(
                "objects.create",
                self.create,
                (Param("manifest", "map", doc="the object"), VALIDATION, DRY_RUN, GIVEN_SPACE),
                doc="Creates one object; refuses one that is there.",
                returns=WARNED,
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
                returns=WARNED,
            ),
            Method("objects.get", self.get, (KIND, NAME, NAMESPACE), doc="Reads one object.", returns=OBJECT),
            Method(
                "objects.list",
                self.list,
                (
                    KIND,
                    SPACES,
                    Param("label_selector", "string", False, doc="as of `kubectl get -l`: `app=web,tier!=db`"),
                    Param("field_selector", "string", False, doc="`status.phase=Pending,spec.nodeName!=n1`"),
                    METADATA_ONLY,
                ),
                doc="Lists the objects of a kind, sorted by namespace and name. Among those of kind Event are the "
                "scheduler's, which are kept in memory only.",
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
                    Param("all", "boolean", False, False, "or: all of them"),
                    Param("namespace", "string", False, doc="null: `default`"),
                    Param("grace_period_s", "integer", False, doc="null: what the pod says"),
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
                returns="`{deleted: [{kind, namespace, name, gone}]}`; `gone` is false while something is awaited.",
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
                returns=CHANGED,
            ),
            Method(
                "objects.scale",
                self.scale,
                (KIND, NAME, NAMESPACE, Param("replicas", "integer", doc="how many")),
                doc="Sets the number of replicas of a workload.",
                returns="`{object, before, after}`.",
            ),
            self._marking("objects.label", self.label, "labels"),
            self._marking("objects.annotate", self.annotate, "annotations"),
            Method(
                "objects.kinds",
                self.kinds,
                doc="Every kind there is, those of which there are only objects among them.",
                returns="An array of `{name, plural, singular, short_names, api_version, namespaced, known, count}`.",
            ),
            Method(
                "objects.watch",
                self.watch,
                (
                    Param("kind", "string", False, doc="null: all kinds"),
                    SPACES,
                    Param("since", "integer", False, doc="a resource_version; null: from now on"),
                    Param("epoch", "string", False, doc="the epoch that `since` belongs to, as it came with it"),
                    METADATA_ONLY,
                ),
                doc="Follows changes; of the kind Event, those of the scheduler's events too. To resume after a break, "
                "give the last resource_version seen, and the epoch; `gone` is answered where that is too long ago, or "
                "of another history than this daemon's: list again.",
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
            returns=CHANGED,
        )

    async def apply(self, call: Call) -> Any:
        # Reading a large text takes its time, and needs nothing of ours.
        parsed: Parsed = await trio.to_thread.run_sync(parse, call["manifests"], call["source"])
        outcome = Outcome(errors=list(parsed.errors))
        do = self._cluster.store.do
        terms = Terms(call["field_validation"], call["namespace"])
        if call["dry_run"]:
            outcome.add(await do(lambda store: try_all(parsed.wanted, store, terms)))
        elif call["atomic"]:
            if parsed.errors:
                outcome.errors.extend((await do(lambda store: try_all(parsed.wanted, store, terms))).errors)
            else:
                outcome.add(await do(lambda store: apply_atomically(parsed.wanted, store, terms)))
        else:
            for first in range(0, len(parsed.wanted), _CHUNK):
                chunk = parsed.wanted[first : first + _CHUNK]
                outcome.add(await self._apply_chunk(chunk, terms))
        return attrs.asdict(outcome, recurse=False)

    async def _apply_chunk(self, chunk: Sequence[Any], terms: Terms) -> Outcome:
        return await self._cluster.store.do(lambda store: apply_all(chunk, store, terms))

    async def create(self, call: Call) -> Any:
        raw, warnings = known_fields(call["manifest"], call["field_validation"])
        made = await self._cluster.store.do(
            lambda store: store.create(
                in_namespace(store, raw, call["namespace"]), dry_run=call["dry_run"], as_client=True
            )
        )
        return _made(made, warnings)

    async def replace(self, call: Call) -> Any:
        raw, warnings = known_fields(call["manifest"], call["field_validation"])
        made = await self._cluster.store.do(lambda store: store.update(raw, dry_run=call["dry_run"], as_client=True))
        return _made(made, warnings)

    async def get(self, call: Call) -> Any:
        def read(store: Store) -> Any:
            kind = find_kind(store, call["kind"])
            return store.get(kind.name, space_of(kind, call["namespace"]), call["name"]).raw

        try:
            return {"object": await self._cluster.store.do(read)}
        except NotFound:
            if lookup(call["kind"]).name == "Event":
                for event in await self._recorded(call["namespace"] or "default"):
                    if event["metadata"]["name"] == call["name"]:
                        return {"object": event}
            raise

    async def _recorded(self, namespace: str | None) -> Sequence[dict[str, Any]]:
        """The events of the scheduler as objects."""
        return [as_object(told) for told in await self._cluster.events.ask(lambda record: record.latest(namespace))]

    async def list(self, call: Call) -> Any:
        labels = None if call["label_selector"] is None else parse_selector_text(call["label_selector"])
        fields = None if call["field_selector"] is None else parse_field_selector(call["field_selector"])

        shown = _metadata if call["metadata_only"] else _whole

        def read(store: Store) -> Any:
            kind = find_kind(store, call["kind"])
            space = call["namespace"] if kind.namespaced else None
            check_field_selector(kind, fields)
            items = [shown(obj.raw) for obj in store.list(kind.name, space, labels, fields)]
            return {
                "kind": kind.name,
                "items": items,
                "resource_version": store.version,
                "epoch": self._cluster.epoch,
            }

        found = await self._cluster.store.do(read)
        if found["kind"] == "Event":
            found["items"] += [
                shown(event)
                for event in await self._recorded(call["namespace"])
                if (labels is None or labels.matches({})) and (fields is None or fields.matches(event))
            ]
            found["items"].sort(key=lambda event: (event["metadata"]["namespace"], event["metadata"]["name"]))
        return found

    async def delete(self, call: Call) -> Any:
        return await self._cluster.store.do(
            lambda store: edit.delete(
                store,
                find_kind(store, call["kind"]),
                call["name"],
                call["label_selector"],
                call["all"],
                call["namespace"],
                call["grace_period_s"],
                call["propagation"],
                call["dry_run"],
            )
        )

    async def patch(self, call: Call) -> Any:
        return await self._cluster.store.do(
            lambda store: edit.patch(
                store,
                find_kind(store, call["kind"]),
                call["name"],
                call["namespace"],
                call["patch"],
                call["type"],
                call["subresource"],
                call["field_validation"],
                call["dry_run"],
            )
        )

    async def scale(self, call: Call) -> Any:
        return await self._cluster.store.do(
            lambda store: edit.scale(
                store, find_kind(store, call["kind"]), call["name"], call["namespace"], call["replicas"]
            )
        )

    async def label(self, call: Call) -> Any:
        return await self._mark("labels", call)

    async def annotate(self, call: Call) -> Any:
        return await self._mark("annotations", call)

    async def _mark(self, field: str, call: Call) -> Any:
        return await self._cluster.store.do(
            lambda store: edit.mark(
                store,
                field,
                find_kind(store, call["kind"]),
                call["name"],
                call["namespace"],
                call["set"] or {},
                call["remove"] or (),
                call["overwrite"],
            )
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
        since = watch.cursor.version
        namespace = call["namespace"]
        shown = _metadata if call["metadata_only"] else _whole
        told = await self._cluster.events.ask(lambda record: record.number)

        def recorded(event: Told) -> dict[str, Any]:
            change = "ADDED" if event.count == 1 else "MODIFIED"
            return {"type": change, "object": shown(as_object(event)), "resource_version": since}

        async def feed(stream: Stream) -> None:
            async with trio.open_nursery() as beside:
                if kinds == {"Event"}:
                    beside.start_soon(follow, self._cluster, told, namespace, recorded, stream)
                await stored(stream)
                beside.cancel_scope.cancel()

        async def stored(stream: Stream) -> None:
            try:
                while watch.behind or await watch.wait():
                    await stream.send_many(
                        [
                            {"type": event.type, "object": shown(event.new.raw), "resource_version": event.version}
                            for event in watch.take(_ITEMS)
                            if namespace in (None, event.new.namespace)
                        ]
                    )
            finally:
                watch.close()

        return {"stream": call.open_stream(feed), "resource_version": since, "epoch": self._cluster.epoch}


def _made(obj: Object, warnings: Sequence[str]) -> dict[str, Any]:
    told = [attrs.asdict(each) for each in unsupported(obj.raw)]
    return {"object": obj.raw, "warnings": list(warnings), "unsupported": told}


def _whole(raw: Raw) -> Raw:
    return raw


def _metadata(raw: Raw) -> Raw:
    return {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "metadata": raw.get("metadata") or {}}
