"""The environment of a verb: daemon connection, output streams, terminal style, and the user's settings.

The command line creates one session for the single verb that it runs. The REPL creates one session for all its
commands. Verbs are synchronous functions that block in `DaemonClient.call`. The caller decides how this call waits: in
a blocking socket, or in a Trio task.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import attrs

from kschedd.api.unsupported import Unsupported, grouped
from kschedd.printing.terminal.safe import safe
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import flowing


class ItemStream(Protocol):
    """A stream from the daemon; `result` is the result of the call that opened the stream."""

    @property
    def result(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


class DaemonClient(Protocol):
    """A client of the daemon's methods; `BlockingClient` implements it."""

    def call(self, method: str, /, *args: Any, **named: Any) -> Any: ...

    def subscribe(self, method: str, /, **named: Any) -> AbstractContextManager[ItemStream]: ...


@attrs.define(eq=False)
class VerbSession:
    """The session of a verb; `write` and `write_error` write texts that end with a line feed.

    `write` and `write_error` escape control characters if the output is a terminal.
    """

    connect: Callable[[], DaemonClient]
    _write: Callable[[str], None]
    _write_error: Callable[[str], None]
    style: TerminalStyle = attrs.field(factory=TerminalStyle)
    now: Callable[[], float] = time.time  # seconds since the epoch
    sleep: Callable[[float], None] = time.sleep
    read_input: Callable[[], bytes] = bytes  # returns the input of `-f -`; empty by default
    # asks the user for confirmation; by default it returns True without a question, as kubectl does
    confirm: Callable[[str], bool] = lambda question: True
    namespace: str = "default"
    folder: Path = Path()  # folder to which relative file paths refer
    # returns the style of the terminal, which may have been resized
    measure: Callable[[], TerminalStyle] | None = None
    streams: bool = True  # True if the daemon can send changes while a command runs; otherwise, verbs poll
    cluster_time: Callable[[], float] | None = None  # returns the daemon's time; None: the time is `now`
    outlived: bool = False  # True if the debugger's state survives the end of the connection
    program: str = ""  # prefix of verbs in hints: "kschedd " on the command line, "" in the REPL
    remedies_for: str = ""  # program for the commands of remedies; "": the daemon chooses
    offline: Callable[[str, Mapping[str, Any]], Any] | None = None  # calls methods for files without a daemon
    # runs the user's editor on a file and returns its exit status; None: no terminal
    open_editor: Callable[[Path], int] | None = None
    loss_is_told: bool = False  # True if the caller reports a lost connection
    asks_first: Callable[[], bool] = lambda: False  # True if irreversible actions require a confirmation
    whole_names: bool = False  # True if verbs of a group require their whole names: `debug step`, not `step`
    _daemon: DaemonClient | None = None

    @property
    def own_program(self) -> str:
        """Prefix of kschedd's own verbs in hints: a program named kubectl has only the verbs of kubectl."""
        return "kschedd " if self.program == "kubectl " else self.program

    def cluster_now(self) -> float:
        """Return the cluster's time in seconds since the epoch, for computing the ages of objects."""
        return self.now() if self.cluster_time is None else self.cluster_time()

    @property
    def daemon(self) -> DaemonClient:
        """The daemon, connected on first use."""
        if self._daemon is None:
            self._daemon = self.connect()
        return self._daemon

    def forget_daemon(self) -> None:
        """Drop the connection, which was lost; the next call connects again."""
        self._daemon = None

    def ask_of_file(self, method: str, **named: Any) -> Any:
        """Call a method that needs only this file; if possible, without a daemon."""
        if self.offline is not None:
            return self.offline(method, named)
        return self.daemon.call(method, **named)

    def write(self, text: str) -> None:
        self._write(safe(text, color=self.style.color))

    def write_error(self, text: str) -> None:
        self._write_error(safe(text, color=self.style.color))

    def command(self, terminal: str) -> None:
        """Write a control sequence to the terminal without escaping it."""
        self._write(terminal)

    def warn(self, text: str) -> None:
        self.hint(f"{self.style.paint('Warning:', 'yellow')} {text}")

    def warn_unsupported(self, answers: Iterable[Mapping[str, Any]]) -> None:
        """Warn about fields without effect (`unsupported` in the results), once for each kind and reason."""
        entries = [Unsupported(**entry) for answer in answers for entry in answer.get("unsupported") or ()]
        for text in grouped(entries):
            self.warn(text)

    def error(self, text: str) -> None:
        self.hint(f"{self.style.paint('error:', 'red')} {text}")

    def note(self, text: str) -> None:
        """Write what was assumed about the input, or another fact beside the output."""
        self.hint(f"{self.style.paint('Note:', 'cyan')} {text}")

    def hint(self, text: str) -> None:
        """Write a hint to standard error, wrapped at the terminal's width."""
        self.write_error(f"{flowing(text, self.style)}\n")
