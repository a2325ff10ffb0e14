"""The prompt: one line at a time with completion, history, suggestions and a status bar.

prompt_toolkit runs an event loop of its own, so each prompt runs in a worker thread. A prompt reads the state of other
parts through functions that return immutable values, and never waits for the daemon. Cancellation ends the prompt.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ConditionalAutoSuggest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from kschedd.errors import KscheddError
from kschedd_repl.prompt.checking import LineFault, line_faults
from kschedd_repl.prompt.completion import NameCompleter
from kschedd_repl.prompt.highlighting import STYLE, LineLexer
from kschedd_repl.prompt.history import LineHistory, history_file
from kschedd_repl.prompt.names import Names
from kschedd_repl.prompt.pasting import line_too_long, objects_in, pasted_manifest
from kschedd_repl.prompt.search import HistorySearch
from kschedd_repl.settings import SessionSettings

APPLY_PASTED = "apply -f -"


@attrs.define(eq=False)
class InputCancelled(KscheddError):
    """The user cancelled the input with Ctrl-C."""

    def __str__(self) -> str:
        return "cancelled: nothing was done"


@attrs.frozen
class BarText:
    """The status bar. `stopped_at`: where scheduling is stopped, in the form for the prompt; "" while it runs."""

    text: str
    connected: bool = True
    stopped_at: str = ""


@attrs.define(eq=False)
class Terminal:
    """The prompt of one session."""

    names: Callable[[], Names]
    namespace: Callable[[], str]
    bar: Callable[[], BarText]
    unicode: bool
    settings: SessionSettings = attrs.field(factory=SessionSettings)
    macros: Mapping[str, str] = attrs.field(factory=dict)
    options: Mapping[str, Any] = attrs.field(factory=dict)  # options of prompt_toolkit: another input and output
    asking: bool = False
    history: LineHistory = attrs.field(init=False)
    _pasted: deque[str] = attrs.field(factory=deque)  # lines of a multi-line paste that have not been run yet
    _manifest: str = ""  # a manifest that was pasted at the prompt
    # the text of the prompt when a paste was rejected, and the reason for the rejection
    _refused: tuple[str, str] = ("", "")
    _tabbed: str = ""  # the line for which Tab could add nothing
    _checked: tuple[str, list[LineFault]] = ("", [])  # the latest line that was checked
    _completer: NameCompleter = attrs.field(init=False)
    _search: HistorySearch = attrs.field(init=False)
    _prompt: PromptSession[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.history = LineHistory(history_file())
        self._completer = NameCompleter(self.names, self.namespace, self.macros)
        self._search = HistorySearch(lambda: self.history.get_strings()[::-1], self._completer)
        suggests = Condition(lambda: self.settings.is_on("suggest") and not self._search.on)
        self._prompt = PromptSession(
            self._message,
            # Not in a thread: prompt_toolkit would drop text typed during a completion, and then show no menu.
            completer=self._search,
            key_bindings=self._keys(),
            lexer=LineLexer(self._faults, lambda: tuple(self.macros)),
            style=STYLE,
            history=self.history,
            auto_suggest=ConditionalAutoSuggest(AutoSuggestFromHistory(), suggests),
            bottom_toolbar=self._toolbar,
            complete_while_typing=True,
            enable_open_in_editor=True,  # with Ctrl-X Ctrl-E, or with v in vi's navigation mode
            refresh_interval=1.0,  # updates the time in the status bar
            **self.options,
        )

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("tab")(self._complete)
        keys.add(Keys.BracketedPaste)(self._paste)
        self._search.bind(keys)
        return keys

    def _complete(self, event: KeyPressEvent) -> None:
        """Handle Tab as in a shell: insert the common prefix; then show the list; then cycle through the entries."""
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

    def _paste(self, event: KeyPressEvent) -> None:
        """Offer to apply a manifest pasted at an empty prompt; insert any other text as if it were typed."""
        buffer = event.current_buffer
        manifest = "" if buffer.text.strip() else pasted_manifest(event.data)
        if manifest:
            self._manifest = manifest
            event.app.exit(result="")
        else:
            self._insert(buffer, event.data)

    def _insert(self, buffer: Buffer, pasted: str) -> None:
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        why = line_too_long(text)
        self._refused = (buffer.text, why)
        if not why:
            buffer.insert_text(text)

    def carried_out(self, line: str, *, good: bool) -> int:
        """Record a line's result.

        Return how many of the pasted lines that remain were dropped because the command failed.
        """
        if good:
            self.history.keep(line)
            return 0
        dropped = len(self._pasted)
        self._pasted.clear()
        return dropped

    async def ask(self) -> str | None:
        """Return the next line; "" after Ctrl-C, None after Ctrl-D."""
        if not self._pasted:
            line = await self._read()
            if self._manifest:
                manifest, self._manifest = self._manifest, ""
                question = f"Apply the {objects_in(manifest)} pasted?"
                if not await trio.to_thread.run_sync(self.ask_yes, question):
                    return ""
                self._pasted.extend([APPLY_PASTED, *manifest.splitlines(), "."])
            elif line is None or "\n" not in line:
                return line
            else:
                self._pasted.extend(line.splitlines())
        return self._pasted.popleft()

    async def _read(self) -> str | None:
        cancelled = False

        def unless_cancelled() -> None:
            # The prompt was cancelled before its event loop ran, so it could not be ended earlier.
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
        self._refused = ("", "")
        self._search.on = False
        self._prompt.editing_mode = EditingMode.VI if self.settings["editing"] == "vi" else EditingMode.EMACS
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
        """Return the lines up to a single dot, Ctrl-D or Escape Enter.

        Must be called from the thread of a verb. Raises InputCancelled after Ctrl-C.
        """
        lines: list[str] = []
        while self._pasted:
            line = self._pasted.popleft()
            if line.strip() == ".":
                return _text(lines)
            lines.append(line)
        self._refused = ("", "")
        hint = "manifests; a line with a dot, Ctrl-D or Escape Enter ends them, Ctrl-C takes them back"
        block: PromptSession[str] = PromptSession(
            "  ... ",
            multiline=True,
            prompt_continuation="  ... ",
            key_bindings=_block_keys(self._insert),
            bottom_toolbar=lambda: self._refusal(block.default_buffer.text) or hint,
            style=STYLE,
            editing_mode=self._prompt.editing_mode,
            enable_open_in_editor=True,
            tempfile_suffix=".yaml",
            **self.options,
        )
        try:
            typed = block.prompt(default="".join(f"{line}\n" for line in lines)).split("\n")
        except EOFError:
            return b""
        except KeyboardInterrupt:
            raise InputCancelled from None
        end = next((place for place, line in enumerate(typed) if line.strip() == "."), None)
        if end is not None:
            self._pasted.extend(line for line in typed[end + 1 :] if line.strip())
            typed = typed[:end]
        return _text(typed)

    def ask_yes(self, question: str) -> bool:
        """Ask a yes-no question and return whether the answer is yes. Must be called from the thread of a verb."""
        if self._pasted:
            # Lines pasted after the command cannot be an answer, because the user had not read the question.
            self._pasted.clear()
        asker: PromptSession[str] = PromptSession(**self.options)
        try:
            return asker.prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def redraw(self) -> None:
        """Redraw the status bar. Any thread may call this method."""
        if self.asking:
            self._prompt.app.invalidate()

    def _faults(self, line: str) -> list[LineFault]:
        """Return the errors in a line; the lexer and the toolbar call this for the same line after each key."""
        if not self.settings.is_on("check") or self._search.on:
            return []
        if self._checked[0] != line:
            self._checked = (line, line_faults(line, self.names(), self.macros))
        return self._checked[1]

    def _message(self) -> StyleAndTextTuples:
        if self._search.on:
            return [("class:namespace", "search: ")]
        namespace, stopped = self.namespace(), self.bar().stopped_at
        where: StyleAndTextTuples = [("class:namespace", f" {namespace}")] if namespace != "default" else []
        if stopped:
            where.append(("class:stopped", f" [{stopped}]"))
        sign = "❯" if self.unicode else ">"  # noqa: RUF001 - the sign of a prompt
        return [("class:prompt", "kschedd"), *where, ("class:prompt", f" {sign} ")]

    def _refusal(self, text: str) -> StyleAndTextTuples:
        """Return the reason why the last paste was rejected, until the text of the prompt changes."""
        beside, why = self._refused
        return [("class:bottom-toolbar.fault", f" {why} ")] if why and text == beside else []

    def _toolbar(self) -> StyleAndTextTuples:
        refusal = self._refusal(self._prompt.default_buffer.text)
        if refusal:
            return refusal
        faults = self._faults(self._prompt.default_buffer.text) if self.asking else []
        if faults:
            return [("class:bottom-toolbar.fault", f" {faults[0].why} ")]
        bar = self.bar()
        return [("class:bottom-toolbar" if bar.connected else "class:bottom-toolbar.off", bar.text)]


def _text(lines: list[str]) -> bytes:
    while lines and not lines[-1].strip():
        lines.pop()
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _block_keys(insert: Callable[[Buffer, str], None]) -> KeyBindings:
    """Return the keys for a block of lines: Enter begins a new line, unless the line is a single dot."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line.strip() == ".":
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("c-d")
    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        insert(buffer, event.data)
        if any(line.strip() == "." for line in buffer.text.split("\n")):
            buffer.validate_and_handle()

    return keys
