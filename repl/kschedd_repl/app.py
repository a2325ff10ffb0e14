"""The terminal client: a read-eval-print loop over the CLI's verbs, with a live status bar.

Tasks: the connection to the daemon (which updates the status bar and the completion candidates), Ctrl-C, and the
prompt loop or script. The prompt and the verbs run in worker threads, since prompt_toolkit has its own event loop and
verbs are blocking functions. Talks to: the daemon through `DaemonConnection`, the terminal. Ends: at `exit`, Ctrl-D, or
the end of the script. The daemon keeps running.
"""

import errno
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial

import trio
from prompt_toolkit.patch_stdout import patch_stdout

from kschedd.errors import KscheddError
from kschedd.printing.pipes import pipe_of, wait_until_unread
from kschedd.printing.safe import safe
from kschedd.printing.scheduling import bar_text
from kschedd.printing.terminal_style import style_of
from kschedd.rpc.client import Client
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.verbs.overview import listing, paragraph
from kschedd.verbs.session import VerbSession
from kschedd.verbs.table import VERBS, WRONG_USE, run_words
from kschedd_repl.completion import OWN_WORDS
from kschedd_repl.link import DaemonConnection, ThreadDaemon, together
from kschedd_repl.names import NameBook, NameKeeper
from kschedd_repl.script import Lines, Script, read_scripts
from kschedd_repl.terminal import Terminal

_INTERRUPTED = 130
_PATIENCE_S = 2.0  # longest wait for the first completion data before the prompt
_LEAVE = ("exit", "quit", "detach")


def run_repl(
    socket: str | None,
    *,
    files: Sequence[str] = (),
    commands: Sequence[str] = (),
    keep_going: bool = False,
    namespace: str = "default",
    farewell: str = "The daemon goes on.",
) -> int:
    """Run the prompt until the user leaves, or scripts. Returns an exit status. Raises KscheddError only on start."""
    scripts = read_scripts(files, commands)
    if not scripts and not (sys.stdin.isatty() and sys.stdout.isatty()):
        scripts = [Script("standard input", sys.stdin.read().splitlines())]
    return trio.run(Shell(socket, scripts, keep_going, namespace, farewell).run)


class Shell:
    """One interactive session or script run."""

    def __init__(
        self, socket: str | None, scripts: Sequence[Script], keep_going: bool, namespace: str, farewell: str
    ) -> None:
        self._socket = socket
        self._scripts = scripts
        self._keep_going = keep_going
        self._farewell = farewell
        self._out, self._err = sys.stdout, sys.stderr  # the real streams, before patch_stdout replaces them
        self._look = style_of(self._out, os.environ)
        self._book = NameBook()
        self._named = trio.Event()  # completion data is available
        self._keeper = NameKeeper(self._book, self._named.set)
        self._bar: str | None = None
        self._unread = False  # the reader of standard output has closed the pipe
        self._running: trio.CancelScope | None = None
        self._lines: Lines | None = None
        self._link: DaemonConnection
        self._terminal: Terminal | None = None
        self._session = VerbSession(
            lambda: ThreadDaemon(self._link),
            self._write,
            self._write_error,
            self._look,
            time.time,
            lambda seconds: trio.from_thread.run(trio.sleep, seconds),
            self._read_input,
            self._confirm,
            namespace,
            measure=lambda: style_of(self._out, os.environ),
        )

    async def run(self) -> int:
        failure: KscheddError | BrokenPipeError | None = None
        code = 0
        async with trio.open_nursery() as nursery:
            self._link = DaemonConnection(self._socket, self._notice, nursery)
            try:
                await nursery.start(self._link.run, self._keep_up)
                await nursery.start(self._interrupts)
                if self._scripts:
                    nursery.start_soon(self._readers_leave)
                code = await (self._run_scripts() if self._scripts else self._converse())
            except (KscheddError, BrokenPipeError) as error:
                failure = error  # raised outside the nursery, which would wrap it in an ExceptionGroup
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return code

    # -- background tasks -------------------------------------------------------------------------------------

    async def _keep_up(self, client: Client) -> None:
        """While connected: update the status bar and the completion candidates."""
        if self._scripts:
            await trio.sleep_forever()  # a lost connection is reported by the command that uses it
        await together(partial(self._keep_bar, client), partial(self._keeper.run, client))

    async def _keep_bar(self, client: Client) -> None:
        async with client.subscribe("scheduler.watch") as stream:
            async for status in stream:
                self._bar = bar_text(status, self._look)
                if self._terminal is not None:
                    self._terminal.redraw()

    async def _interrupts(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Ctrl-C cancels the running command. At the prompt, prompt_toolkit handles it as a key."""
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                if self._running is not None:
                    self._running.cancel()

    async def _readers_leave(self) -> None:
        """End the running command when the program that reads its output, such as `head`, has exited."""
        output = pipe_of(self._out)
        if output is not None:
            # The thread is abandoned on cancellation and ends with the process.
            await trio.to_thread.run_sync(wait_until_unread, output, abandon_on_cancel=True)
            self._unread = True
            if self._running is not None:
                self._running.cancel()

    # -- the terminal -----------------------------------------------------------------------------------------

    async def _converse(self) -> int:
        self._terminal = Terminal(
            lambda: self._book.names, lambda: self._session.namespace, self._status_line, self._look.unicode
        )
        with trio.move_on_after(_PATIENCE_S):
            await self._named.wait()  # so that the first Tab has them, unless the daemon is very busy
        with patch_stdout(raw=True):
            self._write("help says what can be typed; Tab completes; exit leaves.\n")
            while True:
                line = await self._terminal.ask()
                if line is None:
                    break
                words = self._words(line)
                if words and words[0] in _LEAVE:
                    break
                code = WRONG_USE if words is None else await self._carry_out(words) if words else 0
                dropped = self._terminal.carried_out(line, good=code in (0, _INTERRUPTED))
                if dropped:
                    self._write_error(
                        f"(the {dropped} {'line' if dropped == 1 else 'lines'} pasted after it are dropped)\n"
                    )
        self._write(f"{self._farewell}\n")
        return 0

    def _status_line(self) -> tuple[str, bool]:
        """The status bar's text, and whether the daemon is connected."""
        if self._link.client is None:
            return " no daemon ", False
        return f" {self._bar or 'connected'} ", True

    # -- scripts ----------------------------------------------------------------------------------------------

    async def _run_scripts(self) -> int:
        worst = 0
        for script in self._scripts:
            self._lines = Lines(script)
            for number, line in self._lines:
                words = self._words(line)
                if words is None:
                    code = WRONG_USE
                elif not words:
                    continue
                elif words[0] in _LEAVE:
                    return worst
                else:
                    code = await self._carry_out(words)
                if code:
                    self._write_error(f"{script.name}:{number}: failed: {line.strip()}\n")
                    worst = worst or code
                    if not self._keep_going or code == _INTERRUPTED:
                        return code
        return worst

    # -- commands ---------------------------------------------------------------------------------------------

    def _words(self, line: str) -> list[str] | None:
        """The words of a line; None if its quoting is invalid, after printing an error."""
        try:
            return shlex.split(line, comments=True)
        except ValueError as wrong:
            self._session.error(f"{str(wrong).lower()}: check the quotes")
            return None

    async def _carry_out(self, words: list[str]) -> int:
        if (code := self._own(words)) is not None:
            return code
        with trio.CancelScope() as scope:
            self._running = scope
            try:
                return await trio.to_thread.run_sync(run_words, self._session, words, tuple(OWN_WORDS))
            except (ConnectionLostError, NoDaemonError) as lost:
                self._session.error(str(lost))
                return 1
            finally:
                self._running = None
        if self._unread:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        self._write_error("\n(cancelled)\n")
        return _INTERRUPTED

    def _own(self, words: list[str]) -> int | None:
        """Run a command of the REPL itself and return its exit status; None if it is a verb."""
        match words:
            case ["help"]:
                self._write(overview(style_of(self._out, os.environ).width))
            case ["help", verb, *_] if verb in OWN_WORDS:
                self._write(f"{verb}: {OWN_WORDS[verb]}\n")
            case ["help", *rest]:
                return run_words(self._session, [rest[0], "--help"], tuple(OWN_WORDS))
            case ["clear"]:
                self._write("\x1b[H\x1b[2J" if self._look.width else "")
            case ["use"]:
                self._write(f"{self._session.namespace}\n")
            case ["use", namespace]:
                self._session.namespace = namespace
                if self._book.names.namespaces and namespace not in self._book.names.namespaces:
                    self._session.warn(f"there is no namespace {namespace} yet")
                self._write(f"now in namespace {namespace}\n")
            case ["use" | "clear", *_]:
                self._session.error("use NAMESPACE" if words[0] == "use" else "clear takes no words")
                return WRONG_USE
            case _:
                return None
        return 0

    # -- what verbs call --------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _write_error(self, text: str) -> None:
        self._out.flush()
        self._err.write(text)
        self._err.flush()

    def _notice(self, text: str) -> None:
        """Print an asynchronous notice, above the prompt if one is active."""
        if self._terminal is not None and self._terminal.asking:
            print(self._look.paint(safe(text), "yellow"))
            self._terminal.redraw()
        else:
            self._write_error(f"{safe(text)}\n")

    def _read_input(self) -> bytes:
        """The input of `-f -`: the following lines, up to a line with a single dot."""
        if self._lines is not None:
            return self._lines.block().encode() if not self._lines.from_command else sys.stdin.buffer.read()
        assert self._terminal is not None, "without a script there is a terminal"
        return self._terminal.ask_block()

    def _confirm(self, question: str) -> bool:
        if self._terminal is None:
            self._write_error(f"{question} A script has to say so: --yes\n")
            return False
        return self._terminal.ask_yes(question)


def overview(columns: int = 0) -> str:
    """Output of `help`, for a terminal with that many columns (0: not a terminal)."""
    entries = [*((verb.name, verb.summary) for verb in VERBS), *OWN_WORDS.items()]
    more = "help VERB says more. Ctrl-C ends what runs, Ctrl-D leaves, Ctrl-R searches in what was typed before."
    return listing(entries, columns) + "\n" + paragraph(more, columns)
