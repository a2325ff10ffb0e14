"""Completion of a partial command line: verbs, flags, kinds, names of live objects, labels, files.

`candidates` is a pure function of the line and the known names. The REPL shows the result in the prompt; `kschedd
__complete` prints it for shells.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from kschedd.api.schemas.kinds import KINDS, lookup
from kschedd.api.simulation.annotations import PRESSURES
from kschedd.printing.reports.scheduling import PLACES
from kschedd.values import fast_frozen
from kschedd.verbs.command_line.grammar import LiveState, Verb, VerbParser
from kschedd.verbs.command_line.parsing import Flag
from kschedd.verbs.nodes.node import ADD as NODE_ADD
from kschedd.verbs.nodes.node import CHANGES as NODE_CHANGES
from kschedd.verbs.nodes.node import PRESSURE as NODE_PRESSURE
from kschedd.verbs.nodes.node import SWITCH
from kschedd.verbs.nodes.node import WORDS as NODE_WORDS
from kschedd.verbs.objects.rollout import ACTIONS, ROLLED_OUT
from kschedd.verbs.scheduler.config import ACTIONS as CONFIG_ACTIONS
from kschedd.verbs.scheduler.config import SETS
from kschedd.verbs.scheduler.forks import OVER_FORKS
from kschedd.verbs.scheduler.plan import READING
from kschedd.verbs.setting import OBJECT_SETS
from kschedd.verbs.table import BY_NAME, GROUPS, group_members, short_words, without_program

_MOST_FILES = 5_000  # maximum number of folder entries to read, because the user is waiting


class CompletionNames(Protocol):
    """Source of the names to complete. The keys of the mappings are kinds, such as `Pod`."""

    @property
    def kinds(self) -> Sequence[str]:
        """The plural names of all kinds."""

    @property
    def namespaces(self) -> Sequence[str]: ...

    @property
    def label_keys(self) -> Mapping[str, Sequence[str]]: ...

    @property
    def labels(self) -> Mapping[str, Sequence[str]]:
        """Return the labels of each kind as `key=value`."""

    @property
    def profiles(self) -> Sequence[str]: ...

    @property
    def plugins(self) -> Sequence[str]: ...

    @property
    def counts(self) -> Sequence[tuple[str, int]]:
        """Return the number of objects of each kind."""

    @property
    def taints(self) -> Mapping[str, Sequence[str]]:
        """Return the taints of each tainted node as `key:Effect`."""

    @property
    def plugins_on(self) -> Mapping[str, bool]:
        """Return every known plugin, and whether a profile enables it."""

    def of(self, kind: str, namespace: str) -> Sequence[str]:
        """Return the names of the objects of a kind in a namespace."""

    def live(self, state: LiveState, namespace: str) -> Sequence[str]:
        """Return the names of the objects that are in this state."""

    def pending_elsewhere(self, namespace: str) -> Sequence[str]:
        """Return the pods without a node in all other namespaces, as `namespace/name`."""


@fast_frozen
class CompletionCandidate:
    text: str
    meaning: str = ""


def split(line: str) -> tuple[list[str], str]:
    """Return the complete words of a line, and the incomplete last word. Quotes need not be closed."""
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


@cache
def parser_of(verb: str) -> VerbParser:
    """Return the parser of a verb, for its flags.

    The parser is cached, because a line is parsed after every key press.
    """
    return BY_NAME[verb].parser()


def candidates(
    line: str,
    names: CompletionNames,
    namespace: str,
    others: Mapping[str, str] = {},
    most: int | None = None,
    *,
    short: bool = True,
) -> list[CompletionCandidate]:
    """Return at most `most` completions of the line's last word, in display order.

    `others` are commands that are not verbs, with their help texts. With `short`, verbs of groups also have short
    names.
    """
    words, last = split(line)
    found = _all(list(without_program(words)), last, names, namespace, others, short=short)
    return list(itertools.islice((c for c in found if c.text.startswith(last) and c.text != last), most))


def _all(
    words: Sequence[str],
    last: str,
    names: CompletionNames,
    namespace: str,
    others: Mapping[str, str],
    *,
    short: bool = True,
) -> Iterable[CompletionCandidate]:
    if not words:
        return _verbs(others, short=short)
    if words[0] in ("help", "?"):
        return _verbs(others, short=short) if len(words) == 1 else ()
    if len(words) == 1 and words[0] in GROUPS:
        return [CompletionCandidate(name, what) for name, what in group_members(words[0])]
    words = short_words(words)
    if words[0] == "use" and "use" in others:
        return [CompletionCandidate(name) for name in names.namespaces] if len(words) == 1 else ()
    if words[0] in ("watch", "plan") and (inner := _inner(words)) is not None and not (last[:1] == "-" and not inner):
        found = _all(inner, last, names, namespace, {}, short=short)
        return (
            found
            if inner or words[0] == "watch"
            else [each for each in found if each.text not in OVER_FORKS and each.text not in READING]
        )
    if words[0] == "in" and len(words) > 1:
        return _all(words[2:], last, names, namespace, {}, short=short)  # any verb, in a fork
    verb = BY_NAME.get(words[0])
    return () if verb is None else _after(verb, words[1:], last, names, namespace)


def _inner(words: Sequence[str]) -> Sequence[str] | None:
    """Return the words of the command that `plan` or `watch` runs; None if a preceding flag lacks its value."""
    parser = parser_of(words[0])
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if "=" not in words[place] and parser.takes_value(words[place]) else 1
    return words[place:] if place <= len(words) else None


def _verbs(others: Mapping[str, str], *, short: bool) -> list[CompletionCandidate]:
    verbs = {name: verb.summary for name, verb in BY_NAME.items() if name == verb.name and " " not in name}
    if not short:
        verbs = {name: what for name, what in verbs.items() if not BY_NAME[name].whole}
    found = {**GROUPS, **verbs, **others}
    return sorted((CompletionCandidate(name, what) for name, what in found.items()), key=lambda c: c.text)


def _after(
    verb: Verb, words: Sequence[str], last: str, names: CompletionNames, namespace: str
) -> Iterable[CompletionCandidate]:
    parser = parser_of(verb.name)
    plain: list[str] = []
    waits = ""  # flag whose value is the next word
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
        return _values(parser, waits, last, kind, names, namespace)
    if last.startswith("-"):
        flag, equals, value = last.partition("=")
        if equals:
            return [
                CompletionCandidate(f"{flag}={c.text}", c.meaning)
                for c in _values(parser, flag, value, kind, names, namespace)
            ]
        return flags_of(parser.noted)
    return _positional(verb, plain, last, names, namespace)


def flags_of(noted: Iterable[Flag]) -> list[CompletionCandidate]:
    """Return the flags of a command, long flags first."""
    found = [CompletionCandidate(name, flag.help) for flag in noted for name in flag.names]
    return sorted(found, key=lambda candidate: (-len(candidate.text), candidate.text))


def _kind(verb: Verb, plain: Sequence[str]) -> str:
    """Return the kind that the complete words contain, such as `Pod`."""
    if verb.completes in ("pod", "queue"):
        return "Pod"
    if verb.completes in ("node", "kubelet", "taint"):
        return "Node"
    if verb.completes == "rollout":
        plain = plain[1:]
    return lookup(plain[0].split(",")[-1].split("/")[0]).name if plain else ""


def _values(
    parser: VerbParser, flag: str, value: str, kind: str, names: CompletionNames, namespace: str
) -> Iterable[CompletionCandidate]:
    match flag:
        case "-n" | "--namespace":
            return [CompletionCandidate(name) for name in names.namespaces]
        case "-o" | "--output":
            noted = parser.flag("-o")
            forms = noted.help.removeprefix("one of ").split(", ") if noted is not None else ()
            return [CompletionCandidate(form.removesuffix("TEMPLATE")) for form in forms]
        case "-L" | "--label-columns":
            return list(_selectors(value, kind, names))
        case "-l" | "--selector":
            return list(_selectors(value, kind, names))
        case "-f" | "--filename" | "--patch-file":
            return file_candidates(value)
        case "--node":
            return [CompletionCandidate(name) for name in names.of("Node", "")]
        case "--weight":
            return [CompletionCandidate(f"{name}=") for name in names.plugins]
        case "--kube-version":
            return version_candidates(value)
        case "--from" if parser.verb == "create":
            return [CompletionCandidate(f"cronjob/{name}") for name in names.of("CronJob", namespace)]
        case "--plugin" | "--config" | "--from" | "--scenario":
            return file_candidates(value, every=True)
        case "--plugin-name":
            return [CompletionCandidate(name) for name in names.plugins]
        case "--profile":
            return [CompletionCandidate(name) for name in names.profiles]
        case "--for" if parser.verb == "wait":
            return [CompletionCandidate(text) for text in ("condition=", "jsonpath=", "create", "delete")]
        case "--for":
            return _slashed(value, names, namespace)
        case "--types":
            return [CompletionCandidate("Normal"), CompletionCandidate("Warning")]
        case "--field-selector":
            fields = ("metadata.name=", "metadata.namespace=", "spec.nodeName=", "status.phase=")
            return [CompletionCandidate(field) for field in fields]
        case _:
            noted = parser.flag(flag)
            return [CompletionCandidate(choice) for choice in noted.choices] if noted is not None else ()


#: the supported releases of Kubernetes. A test compares this list with that of the configuration, which verbs do not
# import.
VERSIONS: Final = ("1.34.1", "1.34", "1.35", "1.36", "1.37")


def version_candidates(value: str) -> Iterator[CompletionCandidate]:
    """Yield the supported releases of Kubernetes. After a comma, completes the second version."""
    before, comma, _ = value.rpartition(",")
    for name in VERSIONS:
        yield CompletionCandidate(before + comma + name)


def _selectors(value: str, kind: str, names: CompletionNames) -> Iterator[CompletionCandidate]:
    """Complete label keys; after `=`, complete whole labels. After a comma, completes the next requirement."""
    before, comma, last = value.rpartition(",")
    for text in names.labels.get(kind, ()) if "=" in last else names.label_keys.get(kind, ()):
        yield CompletionCandidate(before + comma + text)


def file_candidates(value: str, *, every: bool = False) -> list[CompletionCandidate]:
    """Complete folders and manifests whose path begins with the typed text; with `every`, all files."""
    folder, _, start = value.rpartition("/")
    here = Path(os.path.expanduser(folder + "/" if folder or value.startswith("/") else "."))
    try:
        with os.scandir(here) as entries:
            found = sorted(itertools.islice(entries, _MOST_FILES), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return []
    shown = []
    for entry in found:
        if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith(".")):
            is_folder = entry.is_dir()
            if is_folder or every or entry.name.endswith((".yaml", ".yml", ".json")):
                text = f"{folder}/{entry.name}" if folder or value.startswith("/") else entry.name
                shown.append(CompletionCandidate(text + ("/" if is_folder else "")))
    return shown


def _positional(
    verb: Verb, plain: Sequence[str], last: str, names: CompletionNames, namespace: str
) -> Iterable[CompletionCandidate]:
    match verb.completes:
        case "kinds":
            return _of_kinds(verb, plain, last, names, namespace)
        case "rollout":
            return _of_rollout(plain, last, names, namespace)
        case "pod":
            others = _fitting(names.pending_elsewhere(namespace) if verb.name == "explain" else (), last, plain)
            if "/" in last:
                return [*_slashed(last, names, namespace), *others]
            return itertools.chain(_fitting(_live(verb, "Pod", last, names, namespace), last, plain), others)
        case "queue":
            if plain[:1] == ["pod"]:
                return [CompletionCandidate(name) for name in names.of("Pod", namespace)]
            if plain:
                return ()
            return [CompletionCandidate("pod", "the way of one pod"), *(CompletionCandidate(place) for place in PLACES)]
        case "node":
            return _fitting(_live(verb, "Node", last, names, ""), last, plain)
        case "taint":
            return _taints(plain, names)
        case "break":
            if not plain:
                return [CompletionCandidate(action) for action in _choices(verb)]
            found = names.live(LiveState.BREAKPOINTS, "") if plain[0] in ("disable", "enable", "delete") else ()
            return [CompletionCandidate(number) for number in found if number not in plain]
        case "fork":
            found = names.live(LiveState.FORKS, "")
            return [CompletionCandidate(name) for name in found if name not in plain]
        case "config":
            return [CompletionCandidate(action) for action in (*CONFIG_ACTIONS, "undo")] if not plain else ()
        case "kubelet":
            return [CompletionCandidate(word) for word in _of_kubelet(plain, names)]
        case "object":
            return _slashed(last, names, namespace) if not plain else ()
        case "profile":
            return [CompletionCandidate(name) for name in names.profiles] if not plain else ()
        case "set":
            if not plain:
                return [CompletionCandidate(what, text) for what, text in {**SETS, **OBJECT_SETS}.items()]
            if plain[0] in OBJECT_SETS:
                return _of_object_set(plain, last, names, namespace)
            return _of_setting(plain, names)
        case _:
            return [CompletionCandidate(choice) for choice in _choices(verb)] if not plain else ()


def _of_kinds(
    verb: Verb, plain: Sequence[str], last: str, names: CompletionNames, namespace: str
) -> Iterable[CompletionCandidate]:
    """Complete a kind and names of its objects, or KIND/NAME. For some verbs, complete labels after the names."""
    if not plain:
        return [*_kinds(last, names), *_slashed(last, names, namespace)] if "/" in last else _kinds(last, names)
    if "/" in plain[0]:
        return _slashed(last, names, namespace)
    kind = lookup(plain[0].split(",")[-1]).name
    live = _fitting(names.of(kind, namespace), last, plain)
    if verb.name in ("label", "annotate") and len(plain) > 1:
        keys = names.label_keys.get(kind, ()) if verb.name == "label" else ()
        return [*live, *(CompletionCandidate(key + "=") for key in keys)]
    return live


def _of_kubelet(plain: Sequence[str], names: CompletionNames) -> Sequence[str]:
    """Complete the words after `node`: actions, nodes, and the resources and states of `node pressure`."""
    if not plain:
        return tuple(NODE_WORDS)
    nodes, what = names.of("Node", ""), plain[0]
    if what == NODE_ADD:
        return nodes if len(plain) == 1 else ()
    if what == NODE_PRESSURE and plain[-1] in PRESSURES:
        return tuple(SWITCH)
    found = [name for name in nodes if name not in plain] if what in (*NODE_CHANGES, NODE_PRESSURE) else []
    return [*found, *PRESSURES] if what == NODE_PRESSURE and len(plain) > 1 else found


def _of_object_set(
    plain: Sequence[str], last: str, names: CompletionNames, namespace: str
) -> Iterable[CompletionCandidate]:
    """Complete the objects that `set image` and similar verbs change: a kind and its names, or KIND/NAME."""
    if len(plain) == 1 and "/" not in last:
        return [*_kinds(last, names), *_slashed(last, names, namespace)]
    if "/" in last or len(plain) == 1:
        return _slashed(last, names, namespace)
    return [CompletionCandidate(name) for name in names.of(lookup(plain[1]).name, namespace)]


def _choices(verb: Verb) -> Sequence[str]:
    """Return the choices of the first positional argument, if it has fixed choices."""
    return next((argument.choices for argument in parser_of(verb.name).noted if not argument.names), ())


def _fitting(found: Sequence[str], last: str, plain: Sequence[str]) -> Iterator[CompletionCandidate]:
    """Yield the names that begin with the typed text.

    A generator, because there may be thousands of names.
    """
    return (CompletionCandidate(name) for name in found if name.startswith(last) and name not in plain)


def _live(verb: Verb, kind: str, last: str, names: CompletionNames, namespace: str) -> Sequence[str]:
    """Return the names in the state that the verb requires; all names if the verb accepts any state."""
    if verb.live is None:
        return names.of(kind, namespace)
    found = names.live(verb.live, namespace)
    if verb.live == LiveState.PENDING and not any(name.startswith(last) for name in found):
        return names.of(kind, namespace)
    return found


def _taints(plain: Sequence[str], names: CompletionNames) -> list[CompletionCandidate]:
    """Complete the words of `taint`: nodes, the taints of a given node to remove, and more nodes with such a taint."""
    removed = [word.removesuffix("-") for word in plain if word.endswith("-")]
    if removed:
        having = [node for node, taints in names.taints.items() if all(_is_of(word, taints) for word in removed)]
        return [CompletionCandidate(node) for node in having if node not in plain]
    taints = dict.fromkeys(taint for node in plain for taint in names.taints.get(node, ()))
    keys = dict.fromkeys(taint.partition(":")[0] for taint in taints)
    found = [CompletionCandidate(f"{word}-", "remove it") for word in (*keys, *taints)]
    return [*found, *(CompletionCandidate(node) for node in names.of("Node", "") if node not in plain)]


def _is_of(removed: str, taints: Sequence[str]) -> bool:
    """Return whether `key` or `key:Effect` matches one of these taints."""
    return any(removed in (taint, taint.partition(":")[0]) for taint in taints)


def _of_setting(plain: Sequence[str], names: CompletionNames) -> Iterable[CompletionCandidate]:
    """Complete the words after `set WHAT`: a plugin, and for `plugin` its state."""
    if plain[0] == "profile":
        return [CompletionCandidate(name) for name in (names.profiles if len(plain) == 1 else ("on", "off"))]
    if plain[0] not in ("weight", "plugin", "args"):
        return ()
    if len(plain) == 1:
        return [CompletionCandidate(name) for name in (names.plugins if plain[0] == "weight" else names.plugins_on)]
    if plain[0] == "plugin" and len(plain) == 2:
        states = (
            ("on", "off") if plain[1] not in names.plugins_on else ("off",) if names.plugins_on[plain[1]] else ("on",)
        )
        return [CompletionCandidate(state) for state in states]
    return ()


def _of_rollout(
    plain: Sequence[str], last: str, names: CompletionNames, namespace: str
) -> Iterable[CompletionCandidate]:
    if not plain:
        return [CompletionCandidate(action, what) for action, what in ACTIONS.items()]
    if "/" in last or any("/" in word for word in plain[1:]):
        return _slashed(last, names, namespace)
    if len(plain) == 1:
        found = [CompletionCandidate(lookup(kind).plural) for kind in ROLLED_OUT]
        return [*found, *(CompletionCandidate(f"{lookup(kind).singular}/") for kind in ROLLED_OUT)]
    return [CompletionCandidate(name) for name in names.of(lookup(plain[1]).name, namespace) if name not in plain]


def _kinds(last: str, names: CompletionNames) -> list[CompletionCandidate]:
    before, comma, _ = last.rpartition(",")
    short = {kind.plural: ", ".join(kind.short) for kind in KINDS}
    live = {lookup(name).plural for name, count in names.counts if count}
    ordered = sorted(names.kinds, key=lambda kind: (kind not in live, kind))
    return [CompletionCandidate(before + comma + kind, short.get(kind, "")) for kind in ordered]


def _slashed(last: str, names: CompletionNames, namespace: str) -> list[CompletionCandidate]:
    """Complete KIND/NAME with live objects of the typed kind, or of every kind."""
    word, slash, _ = last.partition("/")
    if slash:
        return [CompletionCandidate(f"{word}/{name}") for name in names.of(lookup(word).name, namespace)]
    return [CompletionCandidate(f"{lookup(kind).singular}/") for kind, count in names.counts if count]
