"""Completion at the prompt: an adapter between `kschedd.verbs.completing` and prompt_toolkit."""

from collections.abc import Callable, Iterator, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kschedd.verbs.completing import CompletionCandidate, CompletionNames, candidates, file_candidates, split
from kschedd_repl.line import tokens
from kschedd_repl.own import SUMMARIES
from kschedd_repl.settings import SETTINGS

_MOST_SHOWN = 100


def line_candidates(
    line: str, names: CompletionNames, namespace: str, macros: Mapping[str, str] = {}, most: int | None = None
) -> tuple[list[CompletionCandidate], int]:
    """Return completions at the end of a line, at most `most` names, and the number of characters that they replace."""
    start = 0
    for token in tokens(line):
        if token.operator and token.text == "|":
            return [], 0  # the shell command after a pipe is not completed
        if token.operator and token.text == ";":
            start = token.end
        elif token.operator:
            word = line[token.end :].lstrip()
            return ([] if " " in word else file_candidates(word, every=True)), len(word)
    part = line[start:].lstrip()
    words, last = split(part)
    if words and words[0] == "setting":
        return _begin_with(last, _of_setting(words[1:])), len(last)
    if words[:1] == ["macro"]:
        found = [CompletionCandidate("delete")] if len(words) == 1 else []
        found += [CompletionCandidate(name, body) for name, body in macros.items() if words[1:] == ["delete"]]
        return _begin_with(last, found), len(last)
    others = {**SUMMARIES, **{name: f"macro: {body}" for name, body in macros.items()}}
    return candidates(part, names, namespace, others, most), len(last)


def _of_setting(words: list[str]) -> list[CompletionCandidate]:
    if not words:
        return [CompletionCandidate(name, setting.meaning) for name, setting in SETTINGS.items()]
    setting = SETTINGS.get(words[0])
    return (
        [CompletionCandidate(choice) for choice in setting.choices] if setting is not None and len(words) == 1 else []
    )


def _begin_with(last: str, found: list[CompletionCandidate]) -> list[CompletionCandidate]:
    return [each for each in found if each.text.startswith(last) and each.text != last]


class NameCompleter(Completer):
    """A completer for prompt_toolkit.

    The completer runs in the thread of the prompt and reads only immutable values, which tasks replace.
    """

    def __init__(
        self, names: Callable[[], CompletionNames], namespace: Callable[[], str], macros: Mapping[str, str] = {}
    ) -> None:
        self._names = names
        self._namespace = namespace
        self._macros = macros

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        # Tab requires all candidates, for their common prefix; the menu, which is built after each key, shows only the
        # first few.
        most = None if complete_event.completion_requested else _MOST_SHOWN
        found, replaced = line_candidates(line, self._names(), self._namespace(), self._macros, most)
        for candidate in found[:most]:
            yield Completion(candidate.text, -replaced, display_meta=candidate.meaning)
