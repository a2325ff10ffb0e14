"""Watches: what is there first where that is wanted, then each change, until the client or the time says stop.

An event whose object leaves the selection is DELETED with the object as it was and the version of now; one that enters
is ADDED. A watch from a version that is no longer kept says so in one ERROR event; one from a version still to come is
silent until that comes. Bookmarks tell how far a watch has come: about once a minute, and shortly before its end.
Source: Kubernetes v1.34, apiserver/pkg/storage/cacher, apiserver/pkg/endpoints/handlers/watch.go.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import trio

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.field_labels import check_field_selector
from kschedd.api.selecting.selector_text import FieldSelector, FieldSelectorRequirement
from kschedd.apiserver.catalogue.skeletons import skeleton
from kschedd.apiserver.catalogue.tables import table_columns
from kschedd.apiserver.codec.encoding import at_version, partial
from kschedd.apiserver.codec.negotiation import Form, encode, wanted_form
from kschedd.apiserver.codec.status import failure
from kschedd.apiserver.codec.versions import converted
from kschedd.apiserver.handlers.options import ReadOptions, read_options
from kschedd.apiserver.handlers.reading import read_page, table_event
from kschedd.apiserver.requests import Asked
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.watch_groups import Member, WatchGroup
from kschedd.http.body_sender import BodySender
from kschedd.http.protocol import chunk
from kschedd.http.server import HttpResponse, Send
from kschedd.store.cluster_api import ClusterWatch
from kschedd.store.errors import Gone, StillToCome
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, WatchEvent

_PIECE: Final = 32 << 10  # bytes that are put together for a client; what is longer is sent as it is, and shared
_EVENTS: Final = 50  # sent at once: about 2 ms where each is encoded anew
_MOST_BEHIND: Final = 200_000  # events that are kept for a watcher that does not read them
_LONGEST_S: Final = 45 * 60.0
_BOOKMARK_S: Final = 60.0
_BEFORE_END_S: Final = 2.0
_INITIAL_END: Final = "k8s.io/initial-events-end"


Change = tuple[str, Raw]  # ADDED, MODIFIED or DELETED, and the object
Piece = tuple[bytes, ...]


async def watch_objects(face: FaceServices, asked: Asked) -> HttpResponse:
    options = await read_options(face, asked, watch=True, api_version=asked.target.resource.api_version)
    target = asked.target
    if (kind := target.resource.stored_kind) is not None:
        check_field_selector(kind, options.fields)
    if target.name:  # the old path of a watch on one object
        named = FieldSelectorRequirement("metadata.name", True, target.name)
        own = () if options.fields is None else options.fields.requirements
        options = attrs.evolve(options, fields=FieldSelector((*own, named)))
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    streaming = _Streaming(face, asked, options, form)
    await streaming.open()
    headers = (("Content-Type", "application/json"), ("Cache-Control", "no-cache, private"))
    return HttpResponse(200, headers, stream=streaming.run)


def _expired(gone: Gone) -> bytes:
    return encode({"type": "ERROR", "object": failure(410, "Expired", str(gone))}) + b"\n"


async def _send_piece(send: Send, piece: Piece) -> None:
    if len(piece) > 1 and isinstance(send, BodySender):
        await send.parts(piece)
    else:
        await send(b"".join(piece))


class _Streaming:
    """One watch of a client."""

    def __init__(self, face: FaceServices, asked: Asked, options: ReadOptions, form: Form) -> None:
        self._face = face
        self._asked = asked
        self._options = options
        self._resource = asked.target.resource
        self._namespace = asked.target.namespace if self._resource.namespaced else ""
        self._form = form
        self._columns = table_columns(self._resource) if form.shape == "Table" else None
        self._headers_due = True
        self._first: Sequence[Object] = ()
        self._announce_end = False
        self._watch: ClusterWatch | None = None
        self._refused: bytes = b""
        self._group: WatchGroup | None = None
        self._member: Member | None = None
        self._from = 0  # events up to this version are none of this watch

    async def open(self) -> None:
        """Take the watch's place in the log. Raises StatusError and the store's errors."""
        options = self._options
        since = options.version
        wants_first = options.initial_events if options.initial_events is not None else not options.version
        if wants_first:
            if since:
                options = attrs.evolve(options, match="NotOlderThan")
            page = await read_page(self._face, self._asked, attrs.evolve(options, limit=0))
            self._first, since = page.objects, page.version
            self._announce_end = bool(options.initial_events)
        elif since == 0:
            since = None
        try:
            self._watch = await self._face.cluster.store.watch({self._resource.stored}, since)
        except Gone as gone:
            self._refused = _expired(gone)
        except StillToCome:
            assert since is not None, "only a version that was given can be still to come"
            self._watch = await self._face.cluster.store.watch({self._resource.stored})
            self._from = since

    async def run(self, send: Send) -> None:
        if self._watch is None:
            await send(self._refused)
            return
        try:
            await self._initial(send)
            await self._changes(send)
        finally:
            if self._group is not None and self._member is not None:
                self._group.leave(self._member)
            else:
                self._watch.close()

    async def _initial(self, send: Send) -> None:
        await send(b"")  # the head: the client learns that the watch is open
        pieces = self._pieces((ADDED, obj.raw) for obj in self._first)
        while True:
            async with self._face.shares.turns.turn(self._asked.client):
                piece = next(pieces, None)
            if piece is None:
                break
            await _send_piece(send, piece)
        self._first = ()
        if self._announce_end and self._options.bookmarks and self._watch is not None:
            await send(self._bookmark(self._watch.version, {_INITIAL_END: "true"}))

    async def _changes(self, send: Send) -> None:
        """Send what happens: alone until all is sent that has happened, then with all who watch the same."""
        given = self._options.timeout_s
        began = trio.current_time()
        ends = began + (min(given, _LONGEST_S) if given else _LONGEST_S)
        bookmarks = iter(self._bookmark_times(began, ends))
        bookmark = next(bookmarks)
        while trio.current_time() < ends:
            if self._member is None and not await self._catch_up(send, ends):
                return
            if self._member is not None:
                if not await self._flush(self._member, send):
                    return
                if self._member is None:  # it goes its own way
                    continue
            if trio.current_time() >= bookmark:
                bookmark = next(bookmarks)
                if self._version < self._from:
                    continue
                line = self._bookmark(max(self._version, 0))
                if self._member is None:
                    await send(line)
                else:
                    self._member.offer(line, chunk(line), self._version)
                continue  # there may be more to send by now
            with trio.move_on_at(min(ends, bookmark)):
                if self._member is not None:
                    await self._member.wait()
                elif not await self._own.wait():
                    return

    @property
    def _own(self) -> ClusterWatch:
        assert self._watch is not None, "a watch that was refused does not run"
        return self._watch

    @property
    def _version(self) -> int:
        """Everything up to this version has been sent."""
        if self._group is not None and self._member is not None:
            return self._group.version_of(self._member)
        return self._own.version

    async def _catch_up(self, send: Send, ends: float) -> bool:
        """Send what has happened, then join those who watch the same; False where the watch is over."""
        watch = self._own
        while watch.behind and trio.current_time() < ends:
            if watch.lag > _MOST_BEHIND:
                return False
            try:
                taken = watch.take(_EVENTS)
            except Gone as gone:
                await send(_expired(gone))
                return False
            sent = False
            for piece in self._pieces(change for event in taken for change in self._told(event)):
                await _send_piece(send, piece)
                sent = True
            if not sent:
                await trio.lowlevel.checkpoint()
        if watch.version >= self._from and not (self._columns is not None and self._headers_due):
            joined = self._face.groups.join(self._key, watch, self._lines, send)
            if joined is not None:
                self._group, self._member = joined
        return True

    async def _flush(self, member: Member, send: Send) -> bool:
        await member.flush()
        if member.expired:
            await send(_expired(Gone(member.version, member.version)))
        if member.behind and not member.ended:
            return await self._go_alone(member, send)
        return not member.ended

    async def _go_alone(self, member: Member, send: Send) -> bool:
        """Leave the group, whose pace the client does not keep; False where the log does not have what follows."""
        assert self._group is not None, "only a member falls behind"
        self._group.leave(member)
        self._group = self._member = None
        try:
            self._watch = await self._face.cluster.store.watch({self._resource.stored}, member.version)
        except Gone as gone:
            await send(_expired(gone))
            return False
        return True

    @property
    def _key(self) -> Hashable:
        """What makes two watches the same, whoever has them."""
        asked, form = self._asked, self._form
        selectors = tuple(asked.query.text(name) for name in ("labelSelector", "fieldSelector", "includeObject"))
        where = (self._resource.stored, self._resource.api_version, self._namespace, asked.target.name)
        return (*where, *selectors, form.shape, form.version)

    def _bookmark_times(self, began: float, ends: float) -> Iterator[float]:
        """When bookmarks are due. The moment of the last one is not put off by those before it."""
        if self._options.bookmarks:
            last = ends - _BEFORE_END_S
            due = began + _BOOKMARK_S
            while due < last:
                yield due
                due += _BOOKMARK_S
            if last > began:
                yield last
        while True:
            yield math.inf

    def _lines(self, event: WatchEvent) -> Iterator[bytes]:
        return (self._line(event_type, raw) for event_type, raw in self._told(event))

    def _told(self, event: WatchEvent) -> Iterator[Change]:
        """Yield the changes that the event is for this watch, at most one: what became of an object."""
        new = event.new
        if event.version <= self._from or (self._namespace and new.namespace != self._namespace):
            return
        now = event.type != DELETED and self._matches(new)
        before = event.old is not None and self._matches(event.old)
        if now:
            yield MODIFIED if before else ADDED, new.raw
        elif before:
            if event.type == DELETED:
                yield DELETED, new.raw
            else:
                assert event.old is not None, "what matched before was there before"
                yield DELETED, at_version(event.old, event.version)

    def _matches(self, obj: Object) -> bool:
        labels, fields = self._options.labels, self._options.fields
        if labels is not None and not labels.matches(obj.labels):
            return False
        return fields is None or fields.matches(converted(obj.raw, "v1") if obj.kind == "Event" else obj.raw)

    def _pieces(self, changes: Iterable[Change]) -> Iterator[Piece]:
        """Yield the lines of these changes, put together to pieces; a long one as its parts, of which one is shared."""
        waiting: list[bytes] = []
        size = 0
        for event_type, raw in changes:
            parts = self._parts(event_type, raw)
            length = sum(map(len, parts))
            if length > _PIECE:
                if waiting:
                    yield (b"".join(waiting),)
                    waiting, size = [], 0
                yield parts
                continue
            waiting += parts
            size += length
            if size > _PIECE or len(waiting) >= 3 * _EVENTS:
                yield (b"".join(waiting),)
                waiting, size = [], 0
        if waiting:
            yield (b"".join(waiting),)

    def _line(self, event_type: str, raw: Raw) -> bytes:
        return b"".join(self._parts(event_type, raw))

    def _parts(self, event_type: str, raw: Raw) -> tuple[bytes, bytes, bytes]:
        """Return a line: what comes before the object, the object, and what comes after it."""
        if self._columns is not None:
            table = table_event(
                self._columns, self._asked, raw, self._form, self._face.now(), headers=self._headers_due
            )
            self._headers_due = False
            body = encode(table)
        elif self._form.shape:
            body = self._face.encoder.partial(raw)
        else:
            body = self._face.encoder.whole(raw, self._resource.api_version)
        return b'{"type":"%b","object":' % event_type.encode(), body, b"}\n"

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
        empty = skeleton(self._resource)
        if annotations := {**(empty.get("metadata") or {}).get("annotations", {}), **(annotations or {})}:
            meta["annotations"] = annotations
        kind = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        shown: dict[str, Any] = {**kind, **empty, "metadata": meta}
        if self._columns is not None:
            shown = table_event(
                self._columns, self._asked, shown, self._form, self._face.now(), headers=self._headers_due
            )
            self._headers_due = False
        elif self._form.shape:
            shown = partial(shown)
        return encode({"type": "BOOKMARK", "object": shown}) + b"\n"
