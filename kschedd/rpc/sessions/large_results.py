"""Messages for results that grow with the cluster (`Large`), which are encoded in parts while they are sent."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from kschedd.rpc.encoding import encode_pieces
from kschedd.service.table import Large

_FEW: Final = 256  # maximum number of values that are encoded in one step


def encode_large(msgid: int, large: Large) -> Iterator[bytes]:
    """Yield the response with this result in parts."""
    return encode_pieces(msgid, large.head, large.name, large.encoded, len(large.values))


def encode_large_at_once(msgid: int, large: Large) -> bytes | Iterator[bytes]:
    """Return the response as bytes if it is small, otherwise in parts."""
    pieces = encode_large(msgid, large)
    if len(large.values) > _FEW:
        return pieces
    first = next(pieces)
    second = next(pieces, None)
    return first if second is None else chain((first, second), pieces)
