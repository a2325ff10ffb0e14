"""Execution of lines with several commands, macros, pipes and files, and of the REPL's own commands.

Owns: the macros, and the destination of output while a command runs. Verbs run in a worker thread and write through
`write`. Uses: the daemon through the verbs of the session, and the terminal through functions passed to it. `interrupt`
ends the running command, and the shell command that reads its output.
"""

import os
import subprocess
from collections.abc import Awaitable, Callable, Sequence

import attrs
import trio

from kschedd.api.text.similar import did_you_mean
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.verbs.command_line.overview import by_topic, listing, paragraph
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import BY_NAME, GROUPS, VERBS, WRONG_USE, run_words, short_words, without_program
from kschedd_repl.line import LineError, TypedCommand, read_line
from kschedd_repl.macros import MacroBook, MacroError, macro_text
from kschedd_repl.own import ALIASES, OWN, SUMMARIES, own_name
from kschedd_repl.prompt.fuzzy import fuzzy
from kschedd_repl.settings import SessionSettings, SettingError, known_setting
from kschedd_repl.sinks import (
    FileSink,
    OutputSink,
    PagedSink,
    ReaderLeft,
    ShellSink,
    SinkError,
    ending,
    may_be_paged,
    pager_of,
)

INTERRUPTED, FAILED = 130, 1
__all__ = ["FAILED", "INTERRUPTED", "WRONG_USE", "CommandRunner"]


@attrs.define(eq=False)
class CommandRunner:
    """A runner of lines.

    `print` and `print_error` write to the terminal. `history` returns earlier lines, oldest first.
    """

    _session: VerbSession
    _print: Callable[[str], None]
    _print_error: Callable[[str], None]
    _terminal_style: Callable[[], TerminalStyle]
    _settings: SessionSettings
    _namespaces: Callable[[], Sequence[str]]
    _history: Callable[[], Sequence[str]]
    _may_page: bool = False
    _dashboard: Callable[[], Awaitable[int]] | None = None  # function that shows the dashboard; None without a terminal
    macros: MacroBook = attrs.field(
        factory=lambda: MacroBook(frozenset({*BY_NAME, *GROUPS, *OWN, *ALIASES, "kschedd", "kubectl"}))
    )
    _sink: OutputSink | None = None
    _child: "subprocess.Popen[bytes] | None" = None  # the process of `! COMMAND`
    tells: bool = False  # True if the REPL prints a confirmation when a macro is defined
    result: int = 0  # exit status of the first verb whose answer was "no", such as 1 of `diff`; 0: none
    _running: trio.CancelScope | None = None
    _announces: bool = True  # True if the cancellation of the running command must be reported

    # -- output -----------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Write output of the running command to its destination. The thread of the command may call this method."""
        if self._sink is None:
            self._print(text)
        else:
            self._sink.write(text)

    def measure(self) -> TerminalStyle:
        """Return the width and the colors of the current output destination."""
        return self._terminal_style() if self._sink is None or isinstance(self._sink, PagedSink) else TerminalStyle()

    def interrupt(self, *, announced: bool = True) -> None:
        """End the running command, and the reader of its output. `announced`: report the interruption to the user."""
        if self._running is not None:
            self._announces = announced
            self._running.cancel()
            if self._sink is not None:
                self._sink.interrupt()
            if self._child is not None and self._child.poll() is None:
                self._child.terminate()

    # -- lines ------------------------------------------------------------------------------------------------

    async def run_line(self, line: str, depth: int = 0) -> int:
        """Run the commands of a line, in order, until one fails.

        Return the exit status of the failed command, or 0; a status that is a result, such as 1 of a diff, is in
        `result`.
        """
        if "\0" in line or any("\ud800" <= char <= "\udfff" for char in line):
            self._session.error("the line has characters that are not text")
            return WRONG_USE
        if line.lstrip().startswith("!"):
            return await self._guarded(lambda: self._run_shell(line.lstrip()[1:].strip()))
        defined = macro_text(line)
        if defined is not None:
            return self._macro(defined)
        try:
            commands = read_line(line)
        except LineError as wrong:
            self._session.error(str(wrong))
            return WRONG_USE
        for place, command in enumerate(commands):
            code = await self._run_command(command, depth)
            if code:
                left = len(commands) - place - 1
                if left:
                    after = "the command after it is" if left == 1 else f"the {left} commands after it are"
                    self._print_error(f"({after} not run)\n")
                return code
        return 0

    async def _run_command(self, command: TypedCommand, depth: int) -> int:
        if command.words[0].startswith("!"):
            return await self._guarded(lambda: self._run_shell(command.words[0][1:].strip()))
        try:
            expanded = self.macros.expand(command.words, depth)
        except MacroError as wrong:
            self._session.error(str(wrong))
            return WRONG_USE
        if command.pipe or command.target:
            return await self._into_sink(command, expanded, depth)
        if expanded is not None:
            return await self.run_line(expanded, depth + 1)
        if self._dashboard is not None and self._sink is None and command.words in (("dashboard",), ("top",)):
            return await self._guarded(self._dashboard)
        pager = pager_of(self._settings["pager"], os.environ) if self._may_page and self._sink is None else ""
        if pager and may_be_paged(command.words):
            return await self._paged(command.words, pager)
        return await self._run_words(command.words)

    async def _into_sink(self, command: TypedCommand, expanded: str | None, depth: int) -> int:
        """Run a command, or the line of a macro, with its output sent to a file or a shell command."""
        before, style = self._sink, self._session.style
        try:
            if command.target:
                self._sink = FileSink.open(command.target, append=command.append)
            else:
                self._sink = ShellSink(command.pipe)
        except SinkError as wrong:
            self._session.error(str(wrong))
            return FAILED
        self._session.style = TerminalStyle()
        sink = self._sink
        try:
            if expanded is not None:
                code = await self.run_line(expanded, depth + 1)
            else:
                code = await self._run_words(command.words)
        finally:
            self._session.style = style
            status = await self._close(sink)
            self._sink = before
        if isinstance(sink, ShellSink):
            if code != INTERRUPTED and (text := ending(command.pipe, status)):
                self._print_error(f"{text}\n")
            elif sink.left and not status:
                self._print_error(f"({command.pipe.split()[0]} ended before it had read everything)\n")
        return code or status

    async def _close(self, sink: OutputSink) -> int:
        """Wait for the reader of the output. Ctrl-C ends it."""
        status = 0

        async def wait() -> int:
            nonlocal status
            try:
                status = await trio.to_thread.run_sync(sink.close)
            except SinkError as wrong:
                self._session.error(str(wrong))
                status = FAILED
            return status

        await self._guarded(wait, announced=False)
        return status

    async def _paged(self, words: Sequence[str], pager: str) -> int:
        style = self._terminal_style()
        self._sink = PagedSink(self._print, style, pager)
        try:
            return await self._run_words(words)
        finally:
            sink, self._sink = self._sink, None
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(sink.close)

    async def _run_words(self, words: Sequence[str]) -> int:
        words = list(without_program(words))

        async def run() -> int:
            try:
                if (code := self._own(words)) is not None:
                    return code
                code = await trio.to_thread.run_sync(run_words, self._session, words, tuple(OWN))
            except (ConnectionLostError, NoDaemonError, SinkError) as lost:
                self._session.error(str(lost))
                return FAILED
            except ReaderLeft:
                return 0
            verb = BY_NAME.get(short_words(words)[0])
            if verb is not None and code < verb.failed:
                self.result = self.result or code
                return 0
            return code

        return await self._guarded(run)

    async def _run_shell(self, command: str) -> int:
        """Run the shell command of `! COMMAND` with the terminal."""
        if not command:
            self._session.error("a shell command is expected after !")
            return WRONG_USE
        try:
            self._child = subprocess.Popen(["/bin/sh", "-c", command])  # noqa: ASYNC220 - starting is fast
        except (OSError, ValueError) as wrong:
            self._session.error(f"{command}: cannot be run: {wrong}")
            return FAILED
        try:
            status = await trio.to_thread.run_sync(self._child.wait)
        finally:
            self._child = None
        if text := ending(command, status):
            self._print_error(f"{text}\n")
        return FAILED if status else 0

    async def _guarded(self, run: Callable[[], Awaitable[int]], *, announced: bool = True) -> int:
        """Run a function, which Ctrl-C cancels."""
        outer = self._running
        with trio.CancelScope() as scope:
            self._running = scope
            try:
                return await run()
            finally:
                self._running = outer
        if announced and self._announces:
            self._print_error("\n(cancelled)\n")
        return INTERRUPTED

    # -- the REPL's own commands ------------------------------------------------------------------------------

    def _own(self, words: list[str]) -> int | None:
        """Run a command of the REPL itself and return its exit status; None if the words are a verb."""
        name = own_name(words[0])
        if name and ("--help" in words[1:] or "-h" in words[1:]):
            self.write(OWN[name].help())
            return 0
        match [name, *words[1:]]:
            case ["help"]:
                self.write(overview(self.measure().width))
            case ["help", command, *_] if own_name(command):
                self.write(OWN[own_name(command)].help())
            case ["help", command, *_] if command in self.macros.bodies:
                self.write(f"macro {command} = {self.macros.bodies[command]}\n")
            case ["help", *rest]:
                return run_words(self._session, [*rest, "--help"], tuple(OWN))
            case ["clear"]:
                self.write("\x1b[H\x1b[2J" if self.measure().width else "")
            case ["use"]:
                self.write(f"{self._session.namespace}\n")
            case ["use", namespace]:
                self._session.namespace = namespace
                known = self._namespaces()
                if known and namespace not in known:
                    self._session.warn(f"there is no namespace {namespace} yet{did_you_mean(namespace, known)}")
                self.write(f"now in namespace {namespace}\n")
            case ["setting", *rest] if len(rest) <= 2:
                return self._setting(rest)
            case ["history", *rest]:
                self._show_history(" ".join(rest))
            case ["dashboard"]:
                self._session.error("the dashboard needs a terminal; `top nodes` and `status` print what it shows")
                return WRONG_USE
            case ["macro", *_]:
                self._session.error("macro begins a line of its own")
                return WRONG_USE
            case ["", *_]:
                return None
            case _:
                self._session.error(f"usage: {OWN[name].usage}")
                return WRONG_USE
        return 0

    def _macro(self, text: str) -> int:
        words = text.split()
        try:
            if words in (["-h"], ["--help"]):
                self.write(OWN["macro"].help())
            elif not words:
                self.write("".join(f"macro {name} = {body}\n" for name, body in sorted(self.macros.bodies.items())))
            elif words[0] == "delete" and len(words) == 2 and words[1] != "=":
                self.macros.delete(words[1])
                self.write(f"macro {words[1]} deleted\n")
            elif len(words) == 1 and words[0] in self.macros.bodies:
                self.write(f"macro {words[0]} = {self.macros.bodies[words[0]]}\n")
            else:
                name = self.macros.define(text)
                if self.tells:
                    self.write(f"macro {name} defined\n")
        except MacroError as wrong:
            self._session.error(str(wrong))
            return WRONG_USE
        return 0

    def _setting(self, rest: Sequence[str]) -> int:
        try:
            if not rest:
                self.write(self._settings.table())
            elif len(rest) == 1:
                known_setting(rest[0])
                self.write(f"{self._settings[rest[0]]}\n")
            else:
                self._settings.set(rest[0], rest[1])
        except SettingError as wrong:
            self._session.error(str(wrong))
            return WRONG_USE
        return 0

    def _show_history(self, query: str) -> None:
        lines = self._history()
        found = fuzzy(query, reversed(lines))[::-1] if query else lines
        self.write("".join(f"{line}\n" for line in found))


def overview(columns: int = 0) -> str:
    """Return the output of `help` for a terminal with this number of columns (0: not a terminal)."""
    verbs = {verb.name: verb.summary for verb in VERBS if not verb.whole}
    more = (
        "`help COMMAND` describes a command, with examples. Verbs of `debug` and `fork` have short forms: step, next, "
        "until, where, break, force, veto, score, drop; forks, in, discard, export. COMMAND | SHELL COMMAND, "
        "COMMAND > FILE, COMMAND; COMMAND and ! SHELL COMMAND work as in a shell. Ctrl-C ends the running command, "
        "Ctrl-D leaves, Ctrl-R searches the history, Ctrl-X Ctrl-E edits the line in $EDITOR."
    )
    return (
        by_topic({**GROUPS, **verbs}, columns)
        + f"This prompt:\n{listing(SUMMARIES.items(), columns)}\n"
        + paragraph(more, columns)
    )
