"""What may come next on a half-typed line: verbs, flags, kinds, live names, labels, files.

`candidates` is a plain function of the line and the names; the completer of prompt_toolkit only dresses it up.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import attrs
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kschedd.api.kinds import KINDS, lookup
from kschedd.printing.scheduling import PLACES
from kschedd.verbs.grammar import Verb
from kschedd.verbs.table import BY_NAME
from kschedd_repl.names import Names

#: what the REPL itself understands besides verbs
OWN_WORDS = {
    "help": "what can be typed here",
    "exit": "leave; the daemon goes on",
    "use": "make another namespace the default",
    "clear": "clear the screen",
}
_OUTPUTS = ("table", "wide", "yaml", "json", "name", "jsonpath=")


@attrs.frozen
class Candidate:
    text: str
    meaning: str = ""


def split(line: str) -> tuple[list[str], str]:
    """The finished words of a line, and the unfinished last one. Quotes need not be closed."""
    words: list[str] = []
    word = ""
    quote = ""
    inside = False
    for char in line:
        if quote:
            if char == quote:
                quote = ""
            else:
                word += char
        elif char in "'\"":
            quote, inside = char, True
        elif char.isspace():
            if word or inside:
                words.append(word)
            word, inside = "", False
        else:
            word += char
    return words, word


def candidates(line: str, names: Names, namespace: str) -> list[Candidate]:
    """What the last word of the line may become, in the order to offer it."""
    words, last = split(line)
    return [c for c in _all(words, last, names, namespace) if c.text.startswith(last) and c.text != last]


def _all(words: Sequence[str], last: str, names: Names, namespace: str) -> Iterable[Candidate]:
    if not words:
        return _verbs()
    if words[0] == "help":
        return _verbs() if len(words) == 1 else ()
    if words[0] == "use":
        return [Candidate(name) for name in names.namespaces] if len(words) == 1 else ()
    if words[0] == "watch":
        return _all(words[1:], last, names, namespace)
    verb = BY_NAME.get(words[0])
    return () if verb is None else _after(verb, words[1:], last, names, namespace)


def _verbs() -> list[Candidate]:
    found = [Candidate(name, verb.summary) for name, verb in BY_NAME.items() if name == verb.name]
    return sorted([*found, *(Candidate(name, what) for name, what in OWN_WORDS.items())], key=lambda c: c.text)


def _after(verb: Verb, words: Sequence[str], last: str, names: Names, namespace: str) -> Iterable[Candidate]:
    parser = verb.parser()
    plain: list[str] = []
    waits = ""  # the flag whose value comes next
    for word in words:
        if waits:
            if waits in ("-n", "--namespace"):
                namespace = word
            waits = ""
        elif word.startswith("-") and len(word) > 1:
            waits = word if parser.takes_value(word) else ""
        else:
            plain.append(word)
    kind = _kind(verb, plain)
    if waits:
        return _values(waits, last, kind, names, namespace)
    if last.startswith("-"):
        flag, equals, value = last.partition("=")
        if equals:
            return [Candidate(f"{flag}={c.text}", c.meaning) for c in _values(flag, value, kind, names, namespace)]
        return [Candidate(action, _flag_help(parser, action)) for action in parser.flags()]
    return _positional(verb, plain, last, names, namespace)


def _flag_help(parser: object, flag: str) -> str:
    action = parser._option_string_actions.get(flag)  # type: ignore[attr-defined] # argparse tells it nowhere else
    return "" if action is None else str(action.help or "")


def _kind(verb: Verb, plain: Sequence[str]) -> str:
    """The kind that the words so far are about, as `Pod`."""
    if verb.completes in ("pod", "queue"):
        return "Pod"
    if verb.completes == "node":
        return "Node"
    return lookup(plain[0].split(",")[-1].split("/")[0]).name if plain else ""


def _values(flag: str, value: str, kind: str, names: Names, namespace: str) -> Iterable[Candidate]:
    match flag:
        case "-n" | "--namespace":
            return [Candidate(name) for name in names.namespaces]
        case "-o" | "--output":
            return [Candidate(name) for name in _OUTPUTS]
        case "-l" | "--selector":
            return list(_selectors(value, kind, names))
        case "-f" | "--filename" | "--patch-file":
            return list(_files(value))
        case "--node":
            return [Candidate(name) for name in names.of("Node", "")]
        case "--plugin":
            return [Candidate(name) for name in names.plugins]
        case "--profile":
            return [Candidate(name) for name in names.profiles]
        case "--for":
            return _slashed(value, names, namespace)
        case "--types":
            return [Candidate("Normal"), Candidate("Warning")]
        case "--field-selector":
            fields = ("metadata.name=", "metadata.namespace=", "spec.nodeName=", "status.phase=")
            return [Candidate(field) for field in fields]
        case _:
            return ()


def _selectors(value: str, kind: str, names: Names) -> Iterator[Candidate]:
    """Label keys; once there is a `=`, whole labels. After a comma, the next one."""
    before, comma, last = value.rpartition(",")
    for text in names.labels.get(kind, ()) if "=" in last else names.label_keys.get(kind, ()):
        yield Candidate(before + comma + text)


def _files(value: str) -> Iterator[Candidate]:
    folder, _, start = value.rpartition("/")
    here = Path(os.path.expanduser(folder + "/" if folder or value.startswith("/") else "."))
    try:
        found = sorted(here.iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(start) and (start.startswith(".") or not path.name.startswith(".")):
            is_folder = path.is_dir()
            if is_folder or path.suffix in (".yaml", ".yml", ".json"):
                text = f"{folder}/{path.name}" if folder or value.startswith("/") else path.name
                yield Candidate(text + ("/" if is_folder else ""))


def _positional(verb: Verb, plain: Sequence[str], last: str, names: Names, namespace: str) -> Iterable[Candidate]:
    match verb.completes:
        case "kinds":
            if not plain:
                return [*_kinds(last, names), *_slashed(last, names, namespace)] if "/" in last else _kinds(last, names)
            if "/" in plain[0]:
                return _slashed(last, names, namespace)
            kind = lookup(plain[0].split(",")[-1]).name
            live = [Candidate(name) for name in names.of(kind, namespace) if name not in plain]
            if verb.name in ("label", "annotate") and len(plain) > 1:
                keys = names.label_keys.get(kind, ()) if verb.name == "label" else ()
                return [*live, *(Candidate(key + "=") for key in keys)]
            return live
        case "pod":
            return [Candidate(name) for name in names.of("Pod", namespace) if name not in plain]
        case "queue":
            if plain[:1] == ["pod"]:
                return [Candidate(name) for name in names.of("Pod", namespace)]
            return (
                [Candidate("pod", "the way of one pod"), *(Candidate(place) for place in PLACES)] if not plain else ()
            )
        case "node":
            return [Candidate(name) for name in names.of("Node", "") if name not in plain]
        case "object":
            return _slashed(last, names, namespace) if not plain else ()
        case "profile":
            return [Candidate(name) for name in names.profiles] if not plain else ()
        case "weight":
            return (
                [Candidate("weight")] if not plain else [Candidate(n) for n in names.plugins] if len(plain) == 1 else ()
            )
        case _:
            return ()


def _kinds(last: str, names: Names) -> list[Candidate]:
    before, comma, _ = last.rpartition(",")
    short = {kind.plural: ", ".join(kind.short) for kind in KINDS}
    live = {lookup(name).plural for name, count in names.counts if count}
    ordered = sorted(names.kinds, key=lambda kind: (kind not in live, kind))
    return [Candidate(before + comma + kind, short.get(kind, "")) for kind in ordered]


def _slashed(last: str, names: Names, namespace: str) -> list[Candidate]:
    """KIND/NAME of live objects; of the kind before the slash, or of every kind."""
    word, slash, _ = last.partition("/")
    if slash:
        return [Candidate(f"{word}/{name}") for name in names.of(lookup(word).name, namespace)]
    return [Candidate(f"{lookup(kind).singular}/") for kind, count in names.counts if count]


class NameCompleter(Completer):
    """Runs in the prompt's thread: reads values only, which tasks replace as a whole."""

    def __init__(self, names: Callable[[], Names], namespace: Callable[[], str]) -> None:
        self._names = names
        self._namespace = namespace

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        last = split(line)[1]
        for candidate in candidates(line, self._names(), self._namespace()):
            yield Completion(candidate.text, -len(last), display_meta=candidate.meaning)
