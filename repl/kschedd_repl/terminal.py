"""The prompt: one line at a time with completion, history, suggestions and a status bar.

prompt_toolkit runs a loop of its own, so each prompt runs in a worker thread. What it shows of the rest of the
program it reads through functions that return immutable values. A cancelled prompt is told to end, and does.
"""

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import trio
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from kschedd.errors import KscheddError
from kschedd_repl.completion import NameCompleter
from kschedd_repl.highlighting import STYLE, LineLexer
from kschedd_repl.names import Names


@attrs.define(eq=False)
class TakenBackError(KscheddError):
    """The user broke off what they were typing."""

    def __str__(self) -> str:
        return "taken back: nothing was done"


def history_file() -> Path:
    """Where lines are kept between sessions."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base, "kschedd", "history")


def kept_history(path: Path) -> History:
    """The history in that file; one that ends with this session where the file cannot be written."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


class Terminal:
    """The prompt of one conversation."""

    def __init__(
        self,
        names: Callable[[], Names],
        namespace: Callable[[], str],
        status_line: Callable[[], tuple[str, bool]],
        unicode: bool,
        **options: Any,
    ) -> None:
        self.asking = False
        self._pasted: deque[str] = deque()  # lines after the first of what was pasted at once
        self._namespace = namespace
        self._status_line = status_line
        self._sign = "❯" if unicode else ">"  # noqa: RUF001 - the sign of a prompt
        self._prompt: PromptSession[str] = PromptSession(
            self._message,
            completer=NameCompleter(names, namespace),
            lexer=LineLexer(),
            style=STYLE,
            history=kept_history(history_file()),
            auto_suggest=AutoSuggestFromHistory(),
            bottom_toolbar=self._toolbar,
            complete_while_typing=True,
            **options,
        )

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
            # Cancelled before the prompt's loop ran: nobody has told it yet.
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
        """Lines up to one with a dot, or Ctrl-D. For a verb's thread. Raises TakenBackError after Ctrl-C."""
        print_prompt: PromptSession[str] = PromptSession("  ... ")
        lines = []
        while True:
            try:
                line = (
                    self._pasted.popleft()
                    if self._pasted
                    else print_prompt.prompt(
                        bottom_toolbar="manifests; a line with a dot ends them, Ctrl-C takes them back"
                    )
                )
            except EOFError:
                break
            except KeyboardInterrupt:
                raise TakenBackError from None
            if line.strip() == ".":
                break
            lines.append(line)
        return "".join(f"{line}\n" for line in lines).encode()

    def ask_yes(self, question: str) -> bool:
        """Whether the answer is yes. For a verb's thread."""
        asker: PromptSession[str] = PromptSession()
        try:
            return asker.prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def redraw(self) -> None:
        """Show the status bar as it is now. From any thread."""
        if self.asking:
            self._prompt.app.invalidate()

    def _message(self) -> StyleAndTextTuples:
        namespace = self._namespace()
        where: StyleAndTextTuples = [("class:namespace", f" {namespace}")] if namespace != "default" else []
        return [("class:prompt", "kschedd"), *where, ("class:prompt", f" {self._sign} ")]

    def _toolbar(self) -> StyleAndTextTuples:
        text, there = self._status_line()
        return [("class:bottom-toolbar" if there else "class:bottom-toolbar.off", text)]
