"""Reading objects: one of them, or a list as it is now, was at a version, or goes on after a page.

What was is worked out from what is: the log of writes has each object as it was before. Lists are sorted, selected and
encoded in slices, and large ones are sent while they are encoded.
Source: Kubernetes v1.34, apiserver/pkg/registry/generic/registry/store.go, apiserver/pkg/storage/cacher.
Raises: StatusError and the store's errors.
"""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.field_labels import check_field_selector
from kschedd.api.schemas.weight import is_large
from kschedd.apiserver.catalogue.resources import Resource
from kschedd.apiserver.catalogue.tables import TableColumns, row_conditions, table_columns
from kschedd.apiserver.codec.encoding import listed_item, row_object
from kschedd.apiserver.codec.encoding import partial as metadata_of
from kschedd.apiserver.codec.negotiation import (
    COMPRESSION,
    JSON,
    Form,
    encode,
    json_response,
    takes_gzip,
    wanted_form,
)
from kschedd.apiserver.codec.status import StatusError, too_large_version
from kschedd.apiserver.codec.versions import converted
from kschedd.apiserver.handlers.options import LATEST, ReadOptions, continue_token, exact, read_options
from kschedd.apiserver.requests import Asked
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse, Send
from kschedd.service.objects.recorded_events import with_recorded_events
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.errors import Gone
from kschedd.store.objects.listing import by_namespace, in_order
from kschedd.values import in_parts

_AT_ONCE: Final = 200  # objects that are encoded without sharing the loop
_AT_ONCE_SLOWLY: Final = 5  # the same in YAML, or with line breaks
_PIECE: Final = 64 << 10  # bytes
_LOOKED_AT: Final = 200
_INCONSISTENT: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


async def find(face: FaceServices, asked: Asked) -> Object:
    target = asked.target
    return await face.cluster.store.do(lambda store: store.get(target.resource.stored, target.namespace, target.name))


@attrs.frozen(eq=False)
class ListPage:
    """Objects in order, as they were at `version`; `more` is the key of the last one where others follow."""

    objects: Sequence[Object]
    version: int
    more: tuple[str, str] | None = None
    remaining: int | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.more is not None:
            meta["continue"] = continue_token(self.version, self.more)
            if self.remaining is not None:
                meta["remainingItemCount"] = self.remaining
        return meta


async def get_object(face: FaceServices, asked: Asked, obj: Object) -> HttpResponse:
    """One object in the form that the client wants."""
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    return await object_response(face, asked, obj.raw, 200, form)


async def object_response(
    face: FaceServices,
    asked: Asked,
    raw: Raw,
    status: int,
    form: Form,
    headers: tuple[tuple[str, str], ...] = (),
) -> HttpResponse:
    value: Any
    resource = asked.target.resource
    if form.shape == "Table":
        columns = table_columns(resource)
        rows = [_row(columns, asked, resource, raw, face.now())]
        version = (raw.get("metadata") or {}).get("resourceVersion", "")
        value = _table({"resourceVersion": version}, columns, rows, form)
    elif form.shape:
        value = metadata_of(raw)
    else:
        value = converted(raw, resource.api_version)
    return await _encoded(face, asked, value, form, is_large(raw), status, headers)


async def _encoded(
    face: FaceServices,
    asked: Asked,
    value: Any,
    form: Form,
    large: bool,
    status: int = 200,
    headers: tuple[tuple[str, str], ...] = (),
) -> HttpResponse:
    """Return the response with this body; a large one in YAML, indented or compressed is made in a thread."""
    pretty = asked.query.flag("pretty")

    def encode_whole() -> HttpResponse:
        return json_response(value, status, form=form, headers=headers, request_headers=asked.headers, pretty=pretty)

    if not large or not (pretty or form.media != JSON or takes_gzip(asked.headers)):
        return encode_whole()
    return await face.shares.workers.run(asked.client, lambda given_up: encode_whole())


async def list_objects(face: FaceServices, asked: Asked) -> HttpResponse:
    options = await read_options(face, asked, watch=False, api_version=asked.target.resource.api_version)
    form = wanted_form(asked.headers.get("accept", ""), single=False)
    async with face.shares.large.slot(asked.client):
        page = await read_page(face, asked, options)
    return await list_response(face, asked, page, form)


async def read_page(face: FaceServices, asked: Asked, options: ReadOptions) -> ListPage:
    target = asked.target
    if (kind := target.resource.stored_kind) is not None:
        check_field_selector(kind, options.fields)
    namespace = target.namespace if target.resource.namespaced and target.namespace else None
    wanted = options.version if options.cont is None else options.cont.version
    precise = options.cont is not None or exact(options)
    if wanted is not None and wanted < 0:
        wanted = None

    def read(store: ClusterReader) -> tuple[Sequence[Sequence[Object]], int]:
        if wanted is not None and wanted > store.version:
            raise too_large_version(wanted, store.version, waited=not precise)
        return store.present(target.resource.stored, namespace), store.version

    present, version = await face.cluster.store.do(read)
    if target.resource.stored == "Event":
        present = await with_recorded_events(face.cluster, present, namespace)
        present = [[_as_core_event(obj) for obj in space] for space in present]
    if precise and wanted:
        present = await _as_it_was(face, asked, options, present, wanted, version, namespace)
        version = wanted
    found = await face.shares.turns.drive(asked.client, in_order(present, options.labels, options.fields))
    # A name with its namespace is a key: then one object is looked up, and nothing follows.
    by_key = _selected_name(options) and (namespace is not None or not target.resource.namespaced)
    others = present if options.selects and not by_key else None
    return _page(found, options, version, others)


def _selected_name(options: ReadOptions) -> bool:
    """Whether one name is asked for."""
    named = () if options.fields is None or options.cont is not None else options.fields.requirements
    return any(each.path == "metadata.name" and each.equal and each.value for each in named)


def _as_core_event(event: Object) -> Object:
    """An Event whose fields have the names that are selected by."""
    if event.raw.get("apiVersion") == "v1":
        return event
    return attrs.evolve(event, raw=converted(event.raw, "v1"))


async def _as_it_was(
    face: FaceServices,
    asked: Asked,
    options: ReadOptions,
    present: Sequence[Sequence[Object]],
    wanted: int,
    version: int,
    namespace: str | None,
) -> Sequence[Sequence[Object]]:
    """What was there at the version wanted: what is there now without what was written since."""
    if wanted == version:
        return present
    kind = asked.target.resource.stored
    try:
        watch = await face.cluster.store.watch({kind}, wanted)
    except Gone:
        raise _too_old(options) from None
    try:
        events = [event for event in watch.take() if event.version <= version]
    finally:
        watch.close()

    def undo() -> Generator[None, None, Sequence[Sequence[Object]]]:
        there = {obj.key: obj for space in present for obj in space}
        yield
        for number, event in enumerate(reversed(events)):
            if namespace is None or event.new.namespace == namespace:
                if event.old is None:
                    there.pop(event.new.key, None)
                else:
                    there[event.new.key] = event.old
            if number % _LOOKED_AT == 0:
                yield
        return by_namespace([list(there.values())])

    return await face.shares.turns.drive(asked.client, undo())


def _too_old(options: ReadOptions) -> StatusError:
    if options.cont is not None:
        token = continue_token(LATEST, options.cont.after)
        return StatusError(410, "Expired", _INCONSISTENT, metadata={"continue": token})
    return StatusError(410, "Expired", "The resourceVersion for the provided list is too old.")


def _page(
    found: list[Object], options: ReadOptions, version: int, others: Sequence[Sequence[Object]] | None
) -> ListPage:
    """A page of what was found. `others` is what a selector chose from: as upstream, a full page says that there may be
    more where anything follows that was not looked at."""
    if options.cont is not None:
        keys = [(obj.namespace, obj.name) for obj in found]
        found = found[bisect_right(keys, options.cont.after) :]
    limit = options.limit
    if options.version == 0 and not options.match:
        limit = 0  # any version will do: such a list is given whole
    if not limit or len(found) < limit or (len(found) == limit and not _follows(others, found[-1])):
        return ListPage(found, version)
    page = found[:limit]
    last = page[-1]
    remaining = None if options.selects else len(found) - limit
    return ListPage(page, version, (last.namespace, last.name), remaining)


def _follows(others: Sequence[Sequence[Object]] | None, last: Object) -> bool:
    key = (last.namespace, last.name)
    return any((obj.namespace, obj.name) > key for space in others or () for obj in space)


# How a page goes out


def _row(columns: TableColumns, asked: Asked, resource: Resource, raw: Raw, now: float) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": columns.row(raw, now)}
    if resource.stored == "Pod" and (conditions := row_conditions(raw)):
        row["conditions"] = conditions
    included = asked.query.text("includeObject") or "Metadata"
    if included == "Object":
        row["object"] = converted(raw, resource.api_version)
    elif included != "None":
        row["object"] = row_object(raw)
    else:
        row["object"] = None
    return row


def _table(
    metadata: Mapping[str, Any], columns: TableColumns, rows: Sequence[Any], form: Form, *, headers: bool = True
) -> dict[str, Any]:
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata,
        "columnDefinitions": columns.definitions if headers else None,
        "rows": rows,
    }


def table_event(
    columns: TableColumns, asked: Asked, raw: Raw, form: Form, now: float, *, headers: bool
) -> dict[str, Any]:
    """The Table of one row that a watch sends of an object."""
    version = (raw.get("metadata") or {}).get("resourceVersion", "")
    row = _row(columns, asked, asked.target.resource, raw, now)
    return _table({"resourceVersion": version}, columns, [row], form, headers=headers)


async def list_response(face: FaceServices, asked: Asked, page: ListPage, form: Form) -> HttpResponse:
    head, name, item, tail = _parts(face, asked, page, form)
    large = any(is_large(obj.raw) for obj in page.objects[:_AT_ONCE])
    if form.media != JSON or asked.query.flag("pretty"):
        items = await face.shares.turns.drive(asked.client, _items(page.objects, item))
        large = large or len(items) > _AT_ONCE_SLOWLY
        return await _encoded(face, asked, {**head, name: items, **tail}, form, large)
    if not large and len(page.objects) <= _AT_ONCE:
        return await _encoded(face, asked, {**head, name: list(map(item, page.objects)), **tail}, form, large)
    compressed = takes_gzip(asked.headers)
    pieces = _pieces(head, name, page.objects, lambda obj: encode(item(obj)), compressed)

    async def stream(send: Send) -> None:
        while True:
            piece = await face.shares.turns.drive(asked.client, _next_piece(pieces))
            if piece is None:
                return
            await send(piece)

    headers = [("Content-Type", form.content_type), ("Cache-Control", "no-cache, private")]
    if compressed:
        headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    return HttpResponse(200, headers, stream=stream)


def _items(objects: Sequence[Object], item: Callable[[Object], Any]) -> Generator[None, None, list[Any]]:
    """Return the objects as items of a list, in steps."""
    made: list[Any] = []
    for part in in_parts(objects, _AT_ONCE):
        made += map(item, part)
        yield
    return made


def _parts(
    face: FaceServices, asked: Asked, page: ListPage, form: Form
) -> tuple[dict[str, Any], str, Any, dict[str, Any]]:
    """The list around the items: what comes before, the items' field, an object as an item, what comes after."""
    resource = asked.target.resource
    if form.shape == "Table":
        columns, now = table_columns(resource), face.now()
        head = _table(page.metadata, columns, (), form)
        del head["rows"]
        return head, "rows", lambda obj: _row(columns, asked, resource, obj.raw, now), {}
    if form.shape:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{form.version}"}
        return {**head, "metadata": page.metadata}, "items", lambda obj: metadata_of(obj.raw), {}
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": page.metadata}
    if resource.definition is not None:  # items of custom resources name their kind
        return head, "items", lambda obj: converted(obj.raw, resource.api_version), {}
    return head, "items", lambda obj: listed_item(obj.raw, resource.api_version), {}


def _pieces(
    head: Mapping[str, Any], name: str, objects: Sequence[Object], encoded: Any, compressed: bool
) -> Generator[bytes | None, None, None]:
    """The body in pieces; None wherever it may be left."""
    packer = zlib.compressobj(COMPRESSION, wbits=31) if compressed else None
    opening = encode(head)[:-1] + b"," + encode(name) + b":["
    waiting, size = [opening], len(opening)
    for place, obj in enumerate(objects):
        data = encoded(obj)
        if place:
            waiting.append(b",")
        waiting.append(data)
        size += len(data) + 1
        if size >= _PIECE:
            joined = b"".join(waiting)
            yield packer.compress(joined) if packer is not None else joined
            waiting, size = [], 0
        elif place % 16 == 0:
            yield None
    joined = b"".join((*waiting, b"]}\n"))
    yield packer.compress(joined) + packer.flush() if packer is not None else joined


def _next_piece(pieces: Generator[bytes | None, None, None]) -> Generator[None, None, bytes | None]:
    for piece in pieces:
        if piece:
            return piece
        yield
    return None
