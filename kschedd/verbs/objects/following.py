"""Streams that resume after a restart of the daemon: `get -w`, `events -w`, `logs -f`.

A stream resumes after the last printed item, so that each item is printed once, in order. If the daemon no longer has
the next items, or has another history, a message reports that items may be missing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.session import VerbSession

_RETRY_S: Final = 0.3


@attrs.frozen
class Place:
    """Position from which a stream resumes: a number within one history; None if the number is unknown.

    `number_field` and `history_field` are the fields of the number and the history in answers; items also contain
    `number_field`.
    """

    number_field: str
    history_field: str
    number: int | None = None
    history: str | None = None

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the position as parameters of the method that opens the stream."""
        given = {"since": self.number, self.history_field: self.history}
        return {name: value for name, value in given.items() if value is not None}

    def after(self, event: Mapping[str, Any]) -> "Place":
        """Return the position after an item, or after the answer that opened the stream."""
        number = event[self.number_field]
        return attrs.evolve(
            self,
            number=number if self.number is None else max(number, self.number),
            history=event.get(self.history_field, self.history),
        )

    def __str__(self) -> str:
        return f"{self.number_field.replace('_', ' ')} {self.number}"


def follow(
    session: VerbSession,
    method: str,
    params: Mapping[str, Any],
    place: Place,
    show: Callable[[Any], None],
    start_over: Callable[[Place], Place],
    missed: str,
) -> None:
    """Print each item of a stream until the daemon or the user ends it.

    If the stream cannot be resumed, `start_over` prints the current objects and returns a new position. `missed` is the
    message about missing items. Raises RpcError. While the position is unknown, an error of the first attempt
    (ConnectionLostError, NoDaemonError) is raised as well.
    """
    opened, lost, gone = place.number is not None, False, False
    while True:
        try:
            if gone:
                place, gone = start_over(place), False
            with session.daemon.subscribe(method, **params, **place.params) as stream:
                place = place.after(stream.result)
                if lost:
                    session.write_error(f"The daemon is back; continuing after {place}.\n")
                opened, lost = True, False
                for item in stream:
                    show(item)
                    place = place.after(item)
            return
        except (ConnectionLostError, NoDaemonError, RpcError) as failure:
            why: KscheddError = failure
            code = failure.code if isinstance(failure, RpcError) else "connection_lost"
            if not opened or code not in ("connection_lost", "shutting_down", "too_slow", "gone"):
                raise
        if code == "gone":
            event = "The daemon is back" if lost else f"The daemon has nothing from {place} on"
            session.write_error(f"{event}: {missed}.\n")
            lost, gone = False, True
        elif code != "too_slow":  # which is resumed at once
            if not lost and not session.loss_is_told:
                session.write_error(f"Interrupted: {why}. Waiting for the daemon; Ctrl-C stops.\n")
            lost = True
        session.forget_daemon()
        session.sleep(_RETRY_S)
