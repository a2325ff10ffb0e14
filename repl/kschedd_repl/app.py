"""The terminal client: a read-eval-print loop for the verbs of the command line, with a live status bar.

Tasks: the connection to the daemon (which updates the status bar and the completion candidates), Ctrl-C, and the prompt
loop or script. The prompt and the verbs run in worker threads, because prompt_toolkit has an event loop of its own and
verbs are blocking functions. Uses: the daemon through `DaemonConnection`, the terminal. Ends: at `exit`, Ctrl-D, or
the end of the script. The daemon keeps running.
"""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import trio
from prompt_toolkit.application import create_app_session
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.patch_stdout import patch_stdout

from kschedd.errors import KscheddError
from kschedd.garbage_collection import freeze_present
from kschedd.printing.terminal.pipes import pipe_of, wait_until_unread
from kschedd.printing.terminal.safe import brief, safe
from kschedd.printing.terminal.style import style_of
from kschedd.rpc.client import Client
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.editor import open_editor
from kschedd_repl.dashboard.dashboard import Dashboard
from kschedd_repl.link import DaemonConnection, ThreadDaemon, together
from kschedd_repl.own import own_name
from kschedd_repl.prompt.names import NameBook, NameKeeper
from kschedd_repl.prompt.status_bar import StatusBar
from kschedd_repl.prompt.terminal import BarText, Terminal
from kschedd_repl.rc import rc_file, read_rc
from kschedd_repl.running import FAILED, INTERRUPTED, CommandRunner
from kschedd_repl.script import Lines, Script, ScriptError, read_scripts
from kschedd_repl.settings import SessionSettings

# interval in seconds at which threads alternate: a key must not wait while a batch of changes is processed
_SWITCH_S = 0.001
_PATIENCE_S = 2.0  # maximum wait in seconds for the first completion data before the prompt


def run_repl(
    socket: str | None,
    *,
    files: Sequence[str] = (),
    commands: Sequence[str] = (),
    keep_going: bool = False,
    namespace: str = "default",
    farewell: str = "The daemon keeps running.",
    rc: bool = True,
) -> int:
    """Run the prompt until the user exits, or run scripts.

    Return an exit status. Raises KscheddError only at the start.
    """
    scripts = read_scripts(files, commands)
    if not scripts and not (sys.stdin.isatty() and sys.stdout.isatty()):
        scripts = [Script("standard input", sys.stdin.read().splitlines())]
    sys.setswitchinterval(_SWITCH_S)
    return trio.run(Shell(socket, scripts, keep_going, namespace, farewell, rc=rc).run)


class Shell:
    """One interactive session or script run."""

    def __init__(
        self,
        socket: str | None,
        scripts: Sequence[Script],
        keep_going: bool,
        namespace: str,
        farewell: str,
        *,
        rc: bool = True,
    ) -> None:
        self._socket = socket
        self._scripts = scripts
        self._keep_going = keep_going
        self._farewell = farewell
        self._rc = rc
        self._out, self._err = sys.stdout, sys.stderr  # the real streams, before patch_stdout replaces them
        self._look = style_of(self._out, os.environ)
        self._book = NameBook()
        self._named = trio.Event()  # event that is set when completion data is available
        self._keeper = NameKeeper(self._book, self._named.set)
        self._bar = StatusBar()
        self._kept_back: list[str] | None = None  # notices to print later, while the dashboard is shown; otherwise None
        self._unread = False  # the reader of standard output has closed the pipe
        self._lines: Lines | None = None
        self._link: DaemonConnection
        self._terminal: Terminal | None = None
        self._settings = SessionSettings()
        self._session = VerbSession(
            lambda: ThreadDaemon(self._link),
            lambda text: self._runner.write(text),
            self._write_error,
            self._look,
            sleep=lambda seconds: trio.from_thread.run(trio.sleep, seconds),
            read_input=self._read_input,
            confirm=self._confirm,
            namespace=namespace,
            measure=lambda: self._runner.measure(),
            open_editor=None if scripts else open_editor,
            cluster_time=lambda: float(self._session.daemon.call("time.get")["now_s"]),
            asks_first=lambda: not self._scripts and self._settings.is_on("confirm"),
            loss_is_told=True,
        )
        self._runner = CommandRunner(
            self._session,
            self._write,
            self._write_error,
            lambda: style_of(self._out, os.environ),
            self._settings,
            lambda: self._book.names.namespaces,
            lambda: self._terminal.history.get_strings() if self._terminal is not None else [],
            may_page=not scripts,
            dashboard=None if scripts else self._show_dashboard,
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
                failure = error  # raised again outside the nursery, which would wrap the error in an ExceptionGroup
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return code

    # -- background tasks -------------------------------------------------------------------------------------

    async def _keep_up(self, client: Client) -> None:
        """Update the status bar and the completion candidates while the daemon is connected."""
        if self._scripts:
            await trio.sleep_forever()  # a lost connection is reported by the command that uses it
        await together(partial(self._keep_bar, client), partial(self._keeper.run, client))

    async def _keep_bar(self, client: Client) -> None:
        try:
            self._bar.info = await client.call("daemon.info")
        except RpcError as error:
            self._notice(f"Cannot get information about the daemon: {error}")
        async with client.subscribe("scheduler.watch") as stream:
            async for status in stream:
                self._bar.status = status
                if self._terminal is not None:
                    self._terminal.redraw()

    async def _interrupts(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Cancel the running command on Ctrl-C. prompt_toolkit handles Ctrl-C at the prompt as a key."""
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                self._runner.interrupt()

    async def _readers_leave(self) -> None:
        """End the running command when the program that reads its output, such as `head`, has exited."""
        output = pipe_of(self._out)
        if output is not None:
            # The thread is abandoned on cancellation and ends with the process.
            await trio.to_thread.run_sync(wait_until_unread, output, abandon_on_cancel=True)
            self._unread = True
            self._runner.interrupt(announced=False)

    # -- the terminal -----------------------------------------------------------------------------------------

    async def _converse(self) -> int:
        if not _is_dumb():
            return await self._prompts()
        # Only for such a terminal: in others, a thread that uses the default session prints text above the prompt.
        with create_app_session(output=PlainTextOutput(self._out)):
            return await self._prompts()

    async def _prompts(self) -> int:
        self._terminal = Terminal(
            lambda: self._book.names,
            lambda: self._session.namespace,
            self._bar_text,
            self._look.unicode,
            self._settings,
            self._runner.macros.bodies,
        )
        with trio.move_on_after(_PATIENCE_S):
            await self._named.wait()  # the first Tab then has candidates, unless the daemon is very busy
        freeze_present()  # without this, a full garbage collection could delay the response to a key press
        with patch_stdout(raw=True):
            if self._rc:
                await self._run_rc(rc_file(os.environ))
            self._runner.tells = True
            self._write("Type help for the commands, Tab to complete, exit to leave.\n")
            while True:
                line = await self._terminal.ask()
                if line is None or _leaves(line):
                    break
                code = await self._runner.run_line(line)
                self._keeper.ask_again()
                dropped = self._terminal.carried_out(line, good=code in (0, INTERRUPTED))
                if dropped:
                    lines = "line pasted after it is" if dropped == 1 else f"{dropped} lines pasted after it are"
                    self._write_error(f"(the {lines} dropped)\n")
        self._write(f"{self._farewell}\n")
        return 0

    async def _run_rc(self, path: Path) -> None:
        """Run the lines of the rc file; errors are reported with their line, and the other lines are still run."""
        try:
            script = read_rc(path)
        except ScriptError as wrong:
            self._session.error(str(wrong))
            return
        if script is None:
            return
        self._lines = Lines(script)
        for number, line in self._lines:
            code = await self._runner.run_line(line)
            if code:
                self._write_error(f"{script.name}:{number}: failed: {_shown(line)}\n")
        self._lines = None

    async def _show_dashboard(self) -> int:
        if _is_dumb():
            self._session.error("the dashboard needs a terminal that can move its cursor, unlike the one in TERM")
            return FAILED
        self._kept_back = []
        try:
            await Dashboard(self._link, self._session, self._look.unicode).run()
        finally:
            notices, self._kept_back = self._kept_back, None
            for text in notices:
                self._notice(text)
        return 0

    def _bar_text(self) -> BarText:
        if self._link.client is None:
            return BarText(" no daemon: waiting to reconnect ", connected=False)
        style = style_of(self._out, os.environ)
        return BarText(safe(self._bar.text(style)), stopped_at=safe(self._bar.stopped_briefly))

    # -- scripts ----------------------------------------------------------------------------------------------

    async def _run_scripts(self) -> int:
        worst = 0
        for script in self._scripts:
            self._lines = Lines(script)
            for number, line in self._lines:
                if _leaves(line):
                    return worst or self._runner.result
                code = await self._runner.run_line(line)
                if self._unread:
                    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
                if code:
                    self._write_error(f"{script.name}:{number}: failed: {_shown(line)}\n")
                    worst = worst or code
                    if not self._keep_going or code == INTERRUPTED:
                        return code
        return worst or self._runner.result

    # -- functions for verbs --------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _write_error(self, text: str) -> None:
        self._out.flush()
        self._err.write(text)
        self._err.flush()

    def _notice(self, text: str) -> None:
        """Print an asynchronous notice above an active prompt; if the dashboard is shown, print it afterwards."""
        if self._kept_back is not None:
            self._kept_back.append(text)
        elif self._terminal is not None and self._terminal.asking:
            # in a single write, because other threads write here as well
            sys.stdout.write(f"{self._look.paint(safe(text), 'yellow')}\n")
            self._terminal.redraw()
        else:
            self._write_error(f"{safe(text)}\n")

    def _read_input(self) -> bytes:
        """Return the input of `-f -`: the following lines, up to a line with a single dot."""
        if self._lines is not None:
            return self._lines.block().encode() if not self._lines.from_command else sys.stdin.buffer.read()
        assert self._terminal is not None, "without a script there is a terminal"
        return self._terminal.ask_block()

    def _confirm(self, question: str) -> bool:
        if self._terminal is None or self._lines is not None:
            self._write_error(f"{question} In a script, --yes is required\n")
            return False
        return self._terminal.ask_yes(question)


def _shown(line: str) -> str:
    """Return a line for a message: shortened, without control characters, and with escapes for invalid text."""
    return safe(brief(line.strip())).encode("utf-8", "backslashreplace").decode()


def _is_dumb() -> bool:
    """Return whether the terminal can only print lines."""
    return os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")


def _leaves(line: str) -> bool:
    return own_name(line.strip()) == "exit"
