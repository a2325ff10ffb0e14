"""Ctrl-R: a fuzzy search in the history, in the menu below the prompt.

During a search, the typed text is the query and the menu shows the matching lines. Enter, Tab and the right arrow
insert the selected line (or the best line, if none is selected) into the prompt, where it can be edited or run with
Enter. Ctrl-G, Escape and Ctrl-C restore the text from before the search.
"""

from collections.abc import Callable, Iterator, Sequence

import attrs
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from kschedd_repl.prompt.fuzzy import fuzzy


@attrs.define(eq=False)
class HistorySearch(Completer):
    """A search. `lines` returns the history, newest first; `usual` completes while no search is active."""

    lines: Callable[[], Sequence[str]]
    usual: Completer
    on: bool = False
    _before: Document = attrs.field(factory=Document)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        if not self.on:
            yield from self.usual.get_completions(document, complete_event)
            return
        for line in fuzzy(document.text, self.lines()):
            yield Completion(line, -document.cursor_position)

    def bind(self, keys: KeyBindings) -> None:
        searching = Condition(lambda: self.on)
        keys.add("c-r", filter=~searching)(self._begin)
        for key in ("c-r", "down", "up"):
            keys.add(key, filter=searching, eager=True)(self._move)
        for key in ("enter", "tab", "right"):
            keys.add(key, filter=searching, eager=True)(self._take)
        for key in ("c-g", "c-c", "escape"):
            keys.add(key, filter=searching, eager=True)(self._give_back)
        keys.add("backspace", filter=searching, eager=True)(self._delete)

    def _begin(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        self._before = buffer.document
        self.on = True
        buffer.cursor_position = len(buffer.text)
        buffer.start_completion()

    def _move(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if event.key_sequence[0].key == "up":
            buffer.complete_previous()
        else:
            buffer.complete_next()

    def _take(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            taken = state.current_completion.text
        else:
            taken = next(iter(fuzzy(buffer.text, self.lines())), buffer.text)
        self._end(buffer, Document(taken, len(taken)))

    def _give_back(self, event: KeyPressEvent) -> None:
        self._end(event.current_buffer, self._before)

    def _delete(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.cancel_completion()
        buffer.delete_before_cursor()
        buffer.start_completion()

    def _end(self, buffer: Buffer, document: Document) -> None:
        self.on = False
        buffer.complete_state = None
        buffer.document = document
