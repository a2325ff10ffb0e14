"""ExtenderCall: one POST to an extender as a value, and what its answer is where it fails.

An attempt or a binding cycle that asks an extender yields such calls; the answer to one is what `read` makes of the
body, or an ExtenderFailure. Who runs the attempt makes the call: the daemon without blocking
(`kschedd.actors.scheduler.extenders`), everybody else at once, by calling it.

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
    """A call of an extender came to nothing."""

    why: str


@attrs.frozen(eq=False)
class ExtenderCall:
    """See the module."""

    extender: Extender
    action: str  # as the configuration calls it
    pod: str  # "namespace/name"
    write: Callable[[], Sequence[bytes]]  # the body in parts; may take long
    _read: Callable[[bytes], Any]
    _send: Callable[["ExtenderCall"], Any]

    @property
    def url(self) -> str:
        return f"{self.extender.url_prefix.rstrip('/')}/{self.action}"

    def read(self, status: int, body: bytes) -> Any:
        """What is answered. Raises ExtenderFailure."""
        if status != 200:
            raise ExtenderFailure(f"failed {self.action} with extender at URL {self.url}, code {status}")
        try:
            return self._read(body)
        except UnreadableAnswer as wrong:
            raise ExtenderFailure(str(wrong)) from None

    def failed(self, why: str) -> ExtenderFailure:
        """For a request without an answer."""
        return ExtenderFailure(f'Post "{self.url}": {why}')

    def __call__(self) -> Any:
        """Make the call now, in this thread: the answer, or an ExtenderFailure as a value."""
        return self._send(self)
