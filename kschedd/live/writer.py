"""RemoteWriter: does one write at a real API server, at the pace that the configuration allows.

A write that depends on a version is compared first: if what the server has is what is held here in that version, the
server's own version is named to it in its place; otherwise it is a Conflict, as if the server had said so.

Raises: LiveError for what the server refuses or does not answer, Conflict.
"""

from collections.abc import MutableMapping
from typing import Any, Final

import attrs
import trio

from kschedd.api.objects import Object, Raw
from kschedd.live.api_server import ApiServer
from kschedd.live.connection import ServerRequest
from kschedd.live.errors import LiveError
from kschedd.live.holding import as_held, new_standing
from kschedd.live.rate_limit import RateLimit, ask_at_pace
from kschedd.live.write_requests import key_written, made_from, read_request, request_of
from kschedd.store.cluster_api import ClusterApi
from kschedd.store.errors import Conflict
from kschedd.store.trial import Key
from kschedd.store.writes import Bind, Write

Written = MutableMapping[Key, Raw]
"""What writes that belong together were answered with, by object: a later one depends on what an earlier one made."""

_AT_ONCE: Final = 32  # requests that wait for their answers
_GONE: Final = 404


@attrs.define(eq=False)
class RemoteWriter:
    server: ApiServer
    _store: ClusterApi  # what is held here
    _rate: RateLimit
    _open: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(_AT_ONCE), init=False)

    async def write(self, write: Write, written: Written) -> None:
        """Do it; what the server answers is noted in `written`."""
        key = key_written(write)
        if isinstance(write, Bind):  # of nothing that is held here
            await self._ask(request_of(write, None))
            return
        held = await self._store.find(*key)
        version = await self._version(write, key, held, written)
        answer = await self._ask(request_of(write, held, version))
        if _version_in(answer):
            written[key] = answer

    async def uid_of(self, namespace: str, name: str) -> str | None:
        """Of the pod that has this name there now; None if no pod has."""
        try:
            found = await self._ask(read_request(("Pod", namespace, name), None))
        except LiveError as failure:
            if failure.code == _GONE:
                return None
            raise
        return _text_in(found, "uid")

    async def _version(self, write: Write, key: Key, held: Object | None, written: Written) -> str:
        """The server's version that the write depends on; "" if on none."""
        own = made_from(write)
        if not own:
            return ""
        if key in written:
            return _version_in(written[key])
        if held is None or own != str(held.resource_version):
            raise Conflict(key[0], key[2])
        there = await self._ask(read_request(key, held))
        there |= {"kind": held.kind, "apiVersion": held.raw["apiVersion"]}
        found = as_held([there], lambda what: None, (), new_standing())
        if not found or found[0].at_version(held.resource_version).raw != held.raw:
            raise Conflict(key[0], key[2])
        return _version_in(there)

    async def _ask(self, asked: ServerRequest) -> dict[str, Any]:
        async with self._open:
            return await ask_at_pace(self.server, self._rate, asked)


def _version_in(answer: Raw) -> str:
    return _text_in(answer, "resourceVersion")


def _text_in(answer: Raw, field: str) -> str:
    """This field of the answer's metadata; "" where it has none."""
    meta = answer.get("metadata")
    value = meta.get(field) if isinstance(meta, dict) else None
    return value if isinstance(value, str) else ""
