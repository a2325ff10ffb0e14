"""What a verb runs in: the daemon, where to write, how it looks, what the user chose before.

The command line makes one for its one verb, the REPL one for all that is typed. Verbs are plain functions that wait in
`Daemon.call`; whoever runs them decides what that waiting is (a blocking socket, or a task of a Trio program).
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import attrs

from kschedd.api.unsupported import Unsupported, grouped
from kschedd.printing.look import Look
from kschedd.printing.safe import safe


class Daemon(Protocol):
    """The daemon's methods; `BlockingClient` is one."""

    def call(self, method: str, /, *args: Any, **named: Any) -> Any: ...

    def subscribe(self, method: str, /, **named: Any) -> AbstractContextManager[Iterable[Any]]: ...


@attrs.define(eq=False)
class Session:
    """`write` and `complain` take whole pieces of text, line ends included, and make them safe for a terminal."""

    connect: Callable[[], Daemon]
    _write: Callable[[str], None]
    _complain: Callable[[str], None]
    look: Look
    now: Callable[[], float]  # seconds since the epoch
    sleep: Callable[[float], None]
    read_input: Callable[[], bytes]  # what `-f -` stands for
    confirm: Callable[[str], bool]
    namespace: str = "default"
    folder: Path = Path()  # from where relative paths of files count
    measure: Callable[[], Look] | None = None  # the look as it is now: a terminal may have been resized
    program: str = ""  # before verbs in hints: "kschedd " on the command line, "" in the REPL
    _daemon: Daemon | None = None

    @property
    def daemon(self) -> Daemon:
        """The daemon, connected to when first asked for: a usage error needs none."""
        if self._daemon is None:
            self._daemon = self.connect()
        return self._daemon

    def write(self, text: str) -> None:
        self._write(safe(text, colour=self.look.colour))

    def complain(self, text: str) -> None:
        self._complain(safe(text, colour=self.look.colour))

    def command(self, terminal: str) -> None:
        """A command of ours to the terminal."""
        self._write(terminal)

    def warn(self, text: str) -> None:
        self.complain(f"{self.look.paint('Warning:', 'yellow')} {text}\n")

    def warn_unsupported(self, answers: Iterable[Mapping[str, Any]]) -> None:
        """Say of what the answers are about that nothing acts on it yet: once for each kind and reason."""
        entries = [Unsupported(**entry) for answer in answers for entry in answer.get("unsupported") or ()]
        for text in grouped(entries):
            self.warn(text)

    def error(self, text: str) -> None:
        self.complain(f"{self.look.paint('error:', 'red')} {text}\n")
