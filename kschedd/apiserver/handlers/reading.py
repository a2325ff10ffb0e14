"""Encoding of objects and lists in JSON, YAML or protobuf: as whole objects, as metadata only, or as a table.

Lists are encoded in slices, and large lists are sent while they are being encoded.
Raises: StatusError, and the errors of the store.
"""

import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.weight import is_large
from kschedd.api.text.numbers import whole_number
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
from kschedd.apiserver.codec.status import StatusError
from kschedd.apiserver.handlers.options import LATEST, continue_token, reading_request
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse, Send
from kschedd.service.operations.reading import ListPage, get, list_objects
from kschedd.service.operations.versions import converted
from kschedd.service.request import ReadOptions, Request
from kschedd.store.errors import Gone
from kschedd.values import in_parts

_AT_ONCE: Final = 200  # number of objects encoded without interruption
_AT_ONCE_SLOWLY: Final = 5  # number of objects encoded in one step as YAML or indented JSON, which is slower
_PIECE: Final = 64 << 10  # bytes
_LOOKED_AT: Final = 200
_INCONSISTENT: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


async def find(face: FaceServices, call: ApiCall, computed: Sequence[Object] = ()) -> Object:
    """Return the object that the path names: a stored object, or one of the given `computed` objects."""
    target = call.target
    version = whole_number(call.query.text("resourceVersion")) if not target.subresource else None
    options = ReadOptions(version=version, computed=computed)
    request = Request("get", target.resource.stored, target.namespace, target.name, reading=options)
    return await get(face.cluster, request)


async def get_object(face: FaceServices, call: ApiCall, obj: Object) -> HttpResponse:
    """Return the response with one object in the requested form."""
    form = wanted_form(call.headers.get("accept", ""), single=True)
    return await object_response(face, call, obj.raw, 200, form)


async def object_response(
    face: FaceServices,
    call: ApiCall,
    raw: Raw,
    status: int,
    form: Form,
    headers: tuple[tuple[str, str], ...] = (),
) -> HttpResponse:
    """Return the response with an object. The response for a large object is created in a thread."""
    resource, now = call.target.resource, face.now()

    def shown() -> Any:
        if form.shape == "Table":
            columns = table_columns(resource)
            rows = [_row(columns, call, resource, raw, now)]
            version = (raw.get("metadata") or {}).get("resourceVersion", "")
            return _table({"resourceVersion": version}, columns, rows, form)
        return metadata_of(raw) if form.shape else converted(raw, resource.api_version)

    if not is_large(raw):
        return _encode(call, shown(), form, status, headers)
    return await face.shares.workers.run(call.client, lambda given_up: _encode(call, shown(), form, status, headers))


def _encode(
    call: ApiCall, value: Any, form: Form, status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> HttpResponse:
    pretty = call.query.flag("pretty")
    return json_response(value, status, form=form, headers=headers, request_headers=call.headers, pretty=pretty)


async def _encoded(face: FaceServices, call: ApiCall, value: Any, form: Form, large: bool) -> HttpResponse:
    """Return the response with this body.

    A thread creates the response if the body is large and in YAML, indented or compressed.
    """
    if not large or not (call.query.flag("pretty") or form.media != JSON or takes_gzip(call.headers)):
        return _encode(call, value, form)
    return await face.shares.workers.run(call.client, lambda given_up: _encode(call, value, form))


async def list_all(face: FaceServices, call: ApiCall, computed: Sequence[Object] = ()) -> HttpResponse:
    request = await reading_request(face, call)
    request = attrs.evolve(request, reading=attrs.evolve(request.reading, computed=computed))
    form = wanted_form(call.headers.get("accept", ""), single=False)
    async with face.shares.large.slot(call.client):
        page = await read_page(face, call, request)
    return await list_response(face, call, page, form)


async def read_page(face: FaceServices, call: ApiCall, request: Request) -> ListPage:
    """Return the listed objects. Raises StatusError if the requested version is too old."""
    try:
        return await list_objects(face.cluster, request, face.shares.turns, call.client)
    except Gone:
        if request.reading.cont is None:
            why = "The resourceVersion for the provided list is too old."
            raise StatusError(410, "Expired", why) from None
        token = continue_token(LATEST, request.reading.cont.after)
        raise StatusError(410, "Expired", _INCONSISTENT, metadata={"continue": token}) from None


def _list_metadata(page: ListPage) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.more is not None:
        meta["continue"] = continue_token(page.version, page.more)
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    return meta


# Encoding of a page


def _row(columns: TableColumns, call: ApiCall, resource: Resource, raw: Raw, now: float) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": columns.row(raw, now)}
    if resource.stored == "Pod" and (conditions := row_conditions(raw)):
        row["conditions"] = conditions
    included = call.query.text("includeObject") or "Metadata"
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
    columns: TableColumns, call: ApiCall, raw: Raw, form: Form, now: float, *, headers: bool
) -> dict[str, Any]:
    """Return the Table with one row that a watch sends for an object."""
    version = (raw.get("metadata") or {}).get("resourceVersion", "")
    row = _row(columns, call, call.target.resource, raw, now)
    return _table({"resourceVersion": version}, columns, [row], form, headers=headers)


async def list_response(face: FaceServices, call: ApiCall, page: ListPage, form: Form) -> HttpResponse:
    head, name, item, tail = _parts(face, call, page, form)
    large = any(is_large(obj.raw) for obj in page.objects[:_AT_ONCE])
    if form.media != JSON or call.query.flag("pretty"):
        items = await face.shares.turns.drive(call.client, _items(page.objects, item))
        large = large or len(items) > _AT_ONCE_SLOWLY
        return await _encoded(face, call, {**head, name: items, **tail}, form, large)
    if not large and len(page.objects) <= _AT_ONCE:
        return await _encoded(face, call, {**head, name: list(map(item, page.objects)), **tail}, form, large)
    compressed = takes_gzip(call.headers)
    pieces = _pieces(head, name, page.objects, lambda obj: encode(item(obj)), compressed)

    async def stream(send: Send) -> None:
        while True:
            piece = await face.shares.turns.drive(call.client, _next_piece(pieces))
            if piece is None:
                return
            await send(piece)

    headers = [("Content-Type", form.content_type), ("Cache-Control", "no-cache, private")]
    if compressed:
        headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    return HttpResponse(200, headers, stream=stream)


def _items(objects: Sequence[Object], item: Callable[[Object], Any]) -> Generator[None, None, list[Any]]:
    """Return the objects as items of a list; yield after each part, so that the caller can pause."""
    made: list[Any] = []
    for part in in_parts(objects, _AT_ONCE):
        made += map(item, part)
        yield
    return made


def _parts(
    face: FaceServices, call: ApiCall, page: ListPage, form: Form
) -> tuple[dict[str, Any], str, Any, dict[str, Any]]:
    """Return the parts of the list around its items: head, name of the items' field, encoding of an item, tail."""
    resource = call.target.resource
    if form.shape == "Table":
        columns, now = table_columns(resource), face.now()
        head = _table(_list_metadata(page), columns, (), form)
        del head["rows"]
        return head, "rows", lambda obj: _row(columns, call, resource, obj.raw, now), {}
    if form.shape:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{form.version}"}
        return {**head, "metadata": _list_metadata(page)}, "items", lambda obj: metadata_of(obj.raw), {}
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": _list_metadata(page)}
    if resource.definition is not None:  # items of custom resources state their kind
        return head, "items", lambda obj: converted(obj.raw, resource.api_version), {}
    return head, "items", lambda obj: listed_item(obj.raw, resource.api_version), {}


def _pieces(
    head: Mapping[str, Any], name: str, objects: Sequence[Object], encoded: Any, compressed: bool
) -> Generator[bytes | None, None, None]:
    """Yield the body in pieces; yield None at points where the work may be interrupted."""
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
