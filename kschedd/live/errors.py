"""What can be wrong with a real API server, and how the faults of the libraries beneath become that."""

from typing import Any

import attrs
import trio

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class LiveError(KscheddError):
    """The server cannot be reached, refuses, or answers with what cannot be used.

    `code`: the HTTP status of a refusal (0: there is none); `message`: what its Status says ("": nothing).
    """

    server: str
    why: str
    code: int = 0
    message: str = ""

    def __str__(self) -> str:
        return f"{self.server}: {self.why}"


class RequestFailed(LiveError):
    """The server is there and has failed, or is too busy: what it says now it may not say the next time."""


class NotServed(LiveError):
    """The server does not have this resource, or does not let us see it."""


class HistoryLost(LiveError):
    """The server no longer knows what happened since that version: all is to be listed again."""


@attrs.frozen
class faults_of:
    """Whatever goes wrong inside comes out as a LiveError of this server; `hint` says what was expected."""

    server: str
    hint: str = ""

    def __enter__(self) -> None: ...

    def __exit__(self, sort: Any, fault: BaseException | None, trace: Any) -> None:
        if isinstance(fault, LiveError) or not isinstance(fault, Exception):
            return
        why = "no answer in time" if isinstance(fault, trio.TooSlowError) else said(fault)
        raise LiveError(self.server, f"{self.hint}{why}") from None


def said(fault: Exception) -> str:
    """What it says, in one line; its sort where it says nothing."""
    return " ".join(str(fault).split()) or type(fault).__name__
