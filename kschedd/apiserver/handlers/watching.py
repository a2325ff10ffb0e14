"""Encoding of watches: the initial objects, if requested, and then each change until the watch ends.

A watch from a version that is no longer stored gets one ERROR event. A watch from a future version gets no events until
that version exists. A bookmark contains the version that a watch has reached. Bookmarks are sent about once a minute,
and shortly before the end.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers/watch.go.
"""

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final

import attrs
import trio

from kschedd.actors.mailbox import Doorbell
from kschedd.api.objects import Raw
from kschedd.api.selecting.selector_text import FieldSelector, FieldSelectorRequirement
from kschedd.apiserver.catalogue.skeletons import skeleton
from kschedd.apiserver.catalogue.tables import table_columns
from kschedd.apiserver.codec.encoding import partial
from kschedd.apiserver.codec.negotiation import Form, encode, wanted_form
from kschedd.apiserver.codec.status import failure
from kschedd.apiserver.handlers.options import reading_request
from kschedd.apiserver.handlers.reading import table_event
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.watch_groups import Member, WatchGroup
from kschedd.http.body_sender import BodySender
from kschedd.http.protocol import chunk
from kschedd.http.server import HttpResponse, Send
from kschedd.service.operations.recorded_events import EVENT, changes_of_scheduler
from kschedd.service.operations.watching import MOST_BEHIND, Change, Watching, watch_objects
from kschedd.store.errors import Gone
from kschedd.store.objects.log import ADDED, WatchEvent

_PIECE: Final = 32 << 10  # largest number of bytes combined into a piece; longer lines are sent unchanged and shared
_EVENTS: Final = 50  # number of events sent together, which takes about 2 ms if each is encoded again
_LONGEST_S: Final = 45 * 60.0
_BOOKMARK_S: Final = 60.0
_BEFORE_END_S: Final = 2.0
_INITIAL_END: Final = "k8s.io/initial-events-end"


Piece = tuple[bytes, ...]


async def watch(face: FaceServices, call: ApiCall) -> HttpResponse:
    request = await reading_request(face, call, "watch")
    options = attrs.evolve(request.reading, patient=True)
    if options.initial_events is False and options.version == 0:
        options = attrs.evolve(options, version=None)  # any version is acceptable, so the current version is used
    if call.target.name:  # the deprecated path for a watch on one object
        named = FieldSelectorRequirement("metadata.name", True, call.target.name)
        own = () if options.fields is None else options.fields.requirements
        options = attrs.evolve(options, fields=FieldSelector((*own, named)))
    form = wanted_form(call.headers.get("accept", ""), single=True)
    headers = (("Content-Type", "application/json"), ("Cache-Control", "no-cache, private"))
    recorded, bell = None, Doorbell()
    if request.kind == EVENT:
        recorded = await face.cluster.log.query(lambda log: log.events.number)
    request = attrs.evolve(request, reading=options)
    try:
        watching = await watch_objects(face.cluster, request, face.shares.turns, call.client, bell)
    except Gone as gone:
        refused = _expired(gone)
        return HttpResponse(200, headers, stream=lambda send: send(refused))
    if recorded is not None:
        await face.cluster.log.query(lambda log: log.subscribers.add(bell))
    return HttpResponse(200, headers, stream=_Streaming(face, call, watching, form, recorded).run)


def _expired(gone: Gone) -> bytes:
    return encode({"type": "ERROR", "object": failure(410, "Expired", str(gone))}) + b"\n"


async def _send_piece(send: Send, piece: Piece) -> None:
    if len(piece) > 1 and isinstance(send, BodySender):
        await send.parts(piece)
    else:
        await send(b"".join(piece))


class _Streaming:
    """A watch of one client."""

    def __init__(
        self, face: FaceServices, call: ApiCall, watching: Watching, form: Form, recorded: int | None = None
    ) -> None:
        self._face = face
        self._api_call = call
        self._watching = watching
        self._watch = watching.events
        self._options = watching.request.reading
        self._resource = call.target.resource
        self._form = form
        self._recorded = recorded  # number of the scheduler's last Event sent; None: no such Events
        self._columns = table_columns(self._resource) if form.shape == "Table" else None
        self._headers_due = True
        self._group: WatchGroup | None = None
        self._member: Member | None = None

    async def run(self, send: Send) -> None:
        try:
            await self._initial(send)
            await self._changes(send)
        finally:
            if self._group is not None and self._member is not None:
                self._group.leave(self._member)
            else:
                self._watch.close()

    async def _initial(self, send: Send) -> None:
        await send(b"")  # send the headers, so that the client notices that the watch is open
        pieces = self._pieces((ADDED, obj.raw) for obj in self._watching.first)
        while True:
            async with self._face.shares.turns.turn(self._api_call.client):
                piece = next(pieces, None)
            if piece is None:
                break
            await _send_piece(send, piece)
        self._watching.first = ()
        if self._options.initial_events and self._options.bookmarks:
            await send(self._bookmark(self._watch.version, {_INITIAL_END: "true"}))

    async def _changes(self, send: Send) -> None:
        """Send changes individually until the watch has caught up, and then together with equal watches."""
        given = self._options.timeout_s
        began = trio.current_time()
        ends = began + (min(given, _LONGEST_S) if given else _LONGEST_S)
        bookmarks = iter(self._bookmark_times(began, ends))
        bookmark = next(bookmarks)
        while trio.current_time() < ends:
            if self._recorded is not None:
                self._recorded = await self._send_recorded(self._recorded, send)
            if self._member is None and not await self._catch_up(send, ends):
                return
            if self._member is not None:
                if not await self._flush(self._member, send):
                    return
                if self._member is None:  # the watch has left its group
                    continue
            if trio.current_time() >= bookmark:
                bookmark = next(bookmarks)
                if self._version < self._watching.after:
                    continue
                line = self._bookmark(max(self._version, 0))
                if self._member is None:
                    await send(line)
                else:
                    self._member.offer(line, chunk(line), self._version)
                continue  # there may be new events
            with trio.move_on_at(min(ends, bookmark)):
                if self._member is not None:
                    await self._member.wait()
                elif not await self._watch.wait():
                    return

    @property
    def _version(self) -> int:
        """The version up to which all changes have been sent."""
        if self._group is not None and self._member is not None:
            return self._group.version_of(self._member)
        return self._watch.version

    async def _send_recorded(self, number: int, send: Send) -> int:
        """Send the scheduler's Events after the Event with this number.

        Return the number of the last Event that was sent.
        """
        version = max(self._version, self._watching.after)
        number, events = await changes_of_scheduler(self._face.cluster, number, version)
        for piece in self._pieces(self._watching.selected(events)):
            await _send_piece(send, piece)
        return number

    async def _catch_up(self, send: Send, ends: float) -> bool:
        """Send the changes so far, and then join equal watches. Return False if the watch has ended."""
        watch = self._watch
        while watch.behind and trio.current_time() < ends:
            if watch.lag > MOST_BEHIND:
                return False
            try:
                taken = watch.take(_EVENTS)
            except Gone as gone:
                await send(_expired(gone))
                return False
            sent = False
            for piece in self._pieces(change for event in taken for change in self._watching.changes(event)):
                await _send_piece(send, piece)
                sent = True
            if not sent:
                await trio.lowlevel.checkpoint()
        # a watch of Events never joins equal watches, because it also sends Events that are not in the log of writes
        alone = self._recorded is not None
        if (
            not alone
            and watch.version >= self._watching.after
            and not (self._columns is not None and self._headers_due)
        ):
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
        """Leave the group, because the client is too slow. Return False if the log lacks the client's next events."""
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
        """The key shared by equal watches, which does not depend on the client."""
        call, form = self._api_call, self._form
        selectors = tuple(call.query.text(name) for name in ("labelSelector", "fieldSelector", "includeObject"))
        namespace = self._watching.request.namespace
        where = (self._resource.stored, self._resource.api_version, namespace, call.target.name)
        return (*where, *selectors, form.shape, form.version)

    def _bookmark_times(self, began: float, ends: float) -> Iterator[float]:
        """Yield the times of bookmarks. Earlier bookmarks do not delay the last bookmark."""
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
        for change in self._watching.changes(event):
            yield b"".join(self._parts(*change))

    def _pieces(self, changes: Iterable[Change]) -> Iterator[Piece]:
        """Yield the lines of these changes, combined into pieces.

        A long line is yielded in parts; the part with the object is shared by all watches.
        """
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

    def _parts(self, event_type: str, raw: Raw) -> tuple[bytes, bytes, bytes]:
        """Return the parts of a line: the text before the object, the object, and the text after it."""
        if self._columns is not None:
            table = table_event(
                self._columns, self._api_call, raw, self._form, self._face.now(), headers=self._headers_due
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
                self._columns, self._api_call, shown, self._form, self._face.now(), headers=self._headers_due
            )
            self._headers_due = False
        elif self._form.shape:
            shown = partial(shown)
        return encode({"type": "BOOKMARK", "object": shown}) + b"\n"
