"""The prompt: one line at a time with completion, history, suggestions and a status bar.

prompt_toolkit runs its own event loop, so each prompt runs in a worker thread. It reads the rest of the program's state
through functions that return immutable values. Cancellation makes the prompt exit.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import trio
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from kschedd.errors import KscheddError
from kschedd_repl.completion import NameCompleter
from kschedd_repl.highlighting import STYLE, LineLexer
from kschedd_repl.history import LineHistory, history_file
from kschedd_repl.names import Names


@attrs.define(eq=False)
class InputCancelled(KscheddError):
    """The user cancelled the input with Ctrl-C."""

    def __str__(self) -> str:
        return "taken back: nothing was done"


class Terminal:
    """The prompt of one session."""

    def __init__(
        self,
        names: Callable[[], Names],
        namespace: Callable[[], str],
        status_line: Callable[[], tuple[str, bool]],
        unicode: bool,
        **options: Any,
    ) -> None:
        self.asking = False
        self._pasted: deque[str] = deque()  # remaining lines of a multi-line paste
        self._namespace = namespace
        self._status_line = status_line
        self._options = options
        self._history = LineHistory(history_file())
        self._completer = NameCompleter(names, namespace)
        self._tabbed = ""  # the line at which Tab had nothing to add
        self._sign = "❯" if unicode else ">"  # noqa: RUF001 - the sign of a prompt
        self._prompt: PromptSession[str] = PromptSession(
            self._message,
            completer=self._completer,
            key_bindings=self._keys(),
            lexer=LineLexer(),
            style=STYLE,
            history=self._history,
            auto_suggest=AutoSuggestFromHistory(),
            bottom_toolbar=self._toolbar,
            complete_while_typing=True,
            **options,
        )

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("tab")(self._complete)
        return keys

    def _complete(self, event: KeyPressEvent) -> None:
        """Tab, as in a shell: insert the common prefix; then show the list; then cycle through the entries."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_next()
            return
        before = buffer.document.text_before_cursor
        found = list(self._completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        common = get_common_complete_suffix(buffer.document, found)
        if len(found) == 1:
            buffer.apply_completion(found[0])
            if not found[0].text.endswith(("=", "/", ":")):
                buffer.insert_text(" ")
        elif common:
            buffer.insert_text(common)
            buffer.start_completion()
        elif self._tabbed == before and state is not None:
            buffer.complete_next()
        else:
            self._tabbed = before
            buffer.start_completion()

    def carried_out(self, line: str, *, good: bool) -> int:
        """Record a line's result. Returns how many remaining pasted lines were dropped because it failed."""
        if good:
            self._history.keep(line)
            return 0
        dropped = len(self._pasted)
        self._pasted.clear()
        return dropped

    async def ask(self) -> str | None:
        """The next line; "" after Ctrl-C, None after Ctrl-D."""
        if not self._pasted:
            line = await self._ask()
            if line is None or "\n" not in line:
                return line
            self._pasted.extend(line.splitlines())
        return self._pasted.popleft()

    async def _ask(self) -> str | None:
        cancelled = False

        def unless_cancelled() -> None:
            # Cancelled before the prompt's event loop ran: the prompt could not be told to exit yet.
            if cancelled:
                self._prompt.app.exit(result="")

        def read() -> str | None:
            try:
                return self._prompt.prompt(pre_run=unless_cancelled)
            except KeyboardInterrupt:
                return ""
            except EOFError:
                return None

        async def end_with_us() -> None:
            nonlocal cancelled
            try:
                await trio.sleep_forever()
            finally:
                cancelled = True
                loop = self._prompt.app.loop
                if loop is not None and self._prompt.app.is_running:
                    loop.call_soon_threadsafe(self._exit)

        line: str | None = None
        self.asking = True
        try:
            async with trio.open_nursery() as beside:
                beside.start_soon(end_with_us)
                line = await trio.to_thread.run_sync(read)
                beside.cancel_scope.cancel()
        finally:
            self.asking = False
        return line

    def _exit(self) -> None:
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit(result="")

    def ask_block(self) -> bytes:
        """Lines up to a single dot, or Ctrl-D. Call from a verb's thread. Raises TakenBackError after Ctrl-C."""
        keys = KeyBindings()
        keys.add(Keys.BracketedPaste)(_take_whole_lines)
        prompt: PromptSession[str] = PromptSession("  ... ", key_bindings=keys, **self._options)
        hint = "manifests; a line with a dot ends them, Ctrl-C takes them back"
        lines = []
        while True:
            if not self._pasted:
                try:
                    # A paste arrives as one string, without a line end after its last line.
                    self._pasted.extend(prompt.prompt(bottom_toolbar=hint).split("\n"))
                except EOFError:
                    break
                except KeyboardInterrupt:
                    raise InputCancelled from None
            line = self._pasted.popleft()
            if line.strip() == ".":
                break
            lines.append(line)
        return "".join(f"{line}\n" for line in lines).encode()

    def ask_yes(self, question: str) -> bool:
        """Ask a yes-no question. Call from a verb's thread."""
        asker: PromptSession[str] = PromptSession(**self._options)
        try:
            return asker.prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def redraw(self) -> None:
        """Redraw the status bar. May be called from any thread."""
        if self.asking:
            self._prompt.app.invalidate()

    def _message(self) -> StyleAndTextTuples:
        namespace = self._namespace()
        where: StyleAndTextTuples = [("class:namespace", f" {namespace}")] if namespace != "default" else []
        return [("class:prompt", "kschedd"), *where, ("class:prompt", f" {self._sign} ")]

    def _toolbar(self) -> StyleAndTextTuples:
        text, there = self._status_line()
        return [("class:bottom-toolbar" if there else "class:bottom-toolbar.off", text)]


def _take_whole_lines(event: KeyPressEvent) -> None:
    """Pasted lines count as typed: complete lines are accepted at once, and a single dot among them ends the block."""
    text = event.data.replace("\r\n", "\n").replace("\r", "\n")
    buffer = event.current_buffer
    if text.endswith("\n") or any(line.strip() == "." for line in text.split("\n")):
        buffer.insert_text(text.removesuffix("\n"))
        buffer.validate_and_handle()
    else:
        buffer.insert_text(text)
