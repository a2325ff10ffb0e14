"""The limits on messages from the peer: those of a server, whose clients are not trusted, and those of its clients."""

from __future__ import annotations

import attrs

from kschedd.limits import MAX_REQUEST_BYTES

_MIB = 1 << 20
_ENVELOPE = 4096  # bytes of a message in addition to what the API server calls the body


@attrs.frozen
class Limits:
    """The limits on messages from the peer; lengths in bytes or entries."""

    message: int = MAX_REQUEST_BYTES + _ENVELOPE
    text: int = MAX_REQUEST_BYTES + _ENVELOPE
    binary: int = MAX_REQUEST_BYTES + _ENVELOPE
    array: int = MAX_REQUEST_BYTES
    map: int = MAX_REQUEST_BYTES // 2
    # None: only the unpacker's own limit, about 1,000.
    depth: int | None = 64
    trusted: bool = False  # unpack messages as they arrive, before they are complete
    told: int = MAX_REQUEST_BYTES  # the limit that the error for a too large message names

    @classmethod
    def of_requests(cls, max_bytes: int) -> Limits:
        """The limits for requests of at most `max_bytes`."""
        whole = max_bytes + _ENVELOPE
        return cls(whole, whole, whole, max_bytes, max_bytes // 2, told=max_bytes)


#: For a server, whose clients are untrusted.
FROM_CLIENTS = Limits()
#: For a client, which trusts its daemon and may request a hundred thousand pods.
FROM_DAEMON = Limits(1024 * _MIB, 256 * _MIB, 1024 * _MIB, 1 << 24, 1 << 24, None, trusted=True, told=1024 * _MIB)
