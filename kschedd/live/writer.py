"""RemoteWriter: performs one write on a real API server, within the configured rate limit.

If a write depends on a version, the server's object is read and compared first. If the server's object equals the local
copy of the earlier version, the write is sent with the server's version. If the object differs from the local copy,
Conflict is raised, as if the server had rejected the write.

Raises: Conflict; LiveError if the server rejects the write or does not respond.
"""

from collections.abc import MutableMapping
from typing import Any, Final

import attrs
import trio

from kschedd.api.objects import Object, Raw
from kschedd.live.api_server import ApiServer
from kschedd.live.connection import ServerRequest
from kschedd.live.errors import LiveError
from kschedd.live.holding import as_held, new_importer
from kschedd.live.rate_limit import RateLimit
from kschedd.live.write_requests import key_written, made_from, read_request, request_of
from kschedd.store.cluster_api import ClusterApi
from kschedd.store.errors import Conflict
from kschedd.store.trial import Key
from kschedd.store.writes import Bind, Write

Written = MutableMapping[Key, Raw]
"""The responses to writes that belong together, by object: a later write depends on the result of an earlier one."""

_AT_ONCE: Final = 32  # maximum number of requests that wait for responses, without those for a Bind
_GONE: Final = 404


@attrs.define(eq=False)
class RemoteWriter:
    server: ApiServer
    _store: ClusterApi  # the local objects
    _rate: RateLimit
    _open: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(_AT_ONCE), init=False)

    async def write(self, write: Write, written: Written) -> None:
        """Perform the write; record the server's response in `written`."""
        if isinstance(write, Bind):  # a Bind does not depend on the local copy of an object
            await self.server.ask(request_of(write, None), self._rate)
            return
        key = key_written(write)
        held = await self._store.find(*key)
        version = await self._version(write, key, held, written)
        answer = await self._request(request_of(write, held, version))
        if _version_in(answer):
            written[key] = answer

    async def uid_of(self, namespace: str, name: str) -> str | None:
        """Return the UID of the server's pod with this name, or None."""
        try:
            found = await self._request(read_request(("Pod", namespace, name), None))
        except LiveError as failure:
            if failure.code == _GONE:
                return None
            raise
        return _text_in(found, "uid")

    async def _version(self, write: Write, key: Key, held: Object | None, written: Written) -> str:
        """Return the server's version on which the write depends, or ""."""
        own = made_from(write)
        if not own:
            return ""
        if key in written:
            return _version_in(written[key])
        if held is None or own != str(held.resource_version):
            raise Conflict(key[0], key[2])
        there = await self._request(read_request(key, held))
        there |= {"kind": held.kind, "apiVersion": held.raw["apiVersion"]}
        found = as_held([(there, None)], lambda raw, why: None, lambda what: None, (), new_importer())
        if not found or found[0].at_version(held.resource_version).raw != held.raw:
            raise Conflict(key[0], key[2])
        return _version_in(there)

    async def _request(self, request: ServerRequest) -> dict[str, Any]:
        async with self._open:
            return await self.server.ask(request, self._rate)


def _version_in(answer: Raw) -> str:
    return _text_in(answer, "resourceVersion")


def _text_in(answer: Raw, field: str) -> str:
    """Return this field of the response's metadata, or ""."""
    meta = answer.get("metadata")
    value = meta.get(field) if isinstance(meta, dict) else None
    return value if isinstance(value, str) else ""
