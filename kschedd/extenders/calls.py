"""One POST request to an extender as a value, and the failure of such a request.

A scheduling attempt or binding cycle that needs an extender yields such calls. The result of a call is the
value that `read` returns for the body, or an ExtenderFailure. The code that runs the attempt makes the call: the daemon
without blocking (`kschedd.actors.scheduler.extenders`), all other code by calling this object.

Source: Kubernetes v1.34, scheduler/extender.go (send).
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kschedd.config.model import Extender
from kschedd.errors import KscheddError
from kschedd.extenders.messages import UnreadableAnswer


@attrs.define(eq=False)
class ExtenderFailure(KscheddError):
    """A failed call of an extender."""

    why: str


@attrs.frozen(eq=False)
class ExtenderCall:
    """One call of an extender, as a value."""

    extender: Extender
    action: str  # name of the verb in the configuration
    pod: str  # "namespace/name"
    write: Callable[[], Sequence[bytes]]  # returns the parts of the body; this may take long
    _read: Callable[[bytes], Any]
    _send: Callable[["ExtenderCall"], Any]

    @property
    def url(self) -> str:
        return f"{self.extender.url_prefix.rstrip('/')}/{self.action}"

    def read(self, status: int, body: bytes) -> Any:
        """Return the result. Raises ExtenderFailure."""
        if status != 200:
            raise ExtenderFailure(f"failed {self.action} with extender at URL {self.url}, code {status}")
        try:
            return self._read(body)
        except UnreadableAnswer as wrong:
            raise ExtenderFailure(str(wrong)) from None

    def failed(self, why: str) -> ExtenderFailure:
        """Return the failure of a request without a response."""
        return ExtenderFailure(f'Post "{self.url}": {why}')

    def __call__(self) -> Any:
        """Call the extender in this thread; return the result, or an ExtenderFailure as a value."""
        return self._send(self)
