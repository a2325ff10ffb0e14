"""Completion at the prompt: an adapter from `kschedd.verbs.completing` to prompt_toolkit."""

from collections.abc import Callable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kschedd.verbs.completing import candidates, split
from kschedd_repl.names import Names

#: commands of the REPL itself, besides verbs
OWN_WORDS = {
    "help": "what can be typed here",
    "exit": "leave; the daemon goes on",
    "use": "make another namespace the default",
    "clear": "clear the screen",
}


class NameCompleter(Completer):
    """prompt_toolkit completer. Runs in the prompt's thread: it reads only immutable values, which tasks replace."""

    def __init__(self, names: Callable[[], Names], namespace: Callable[[], str]) -> None:
        self._names = names
        self._namespace = namespace

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        last = split(line)[1]
        for candidate in candidates(line, self._names(), self._namespace(), OWN_WORDS):
            yield Completion(candidate.text, -len(last), display_meta=candidate.meaning)
